// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends the batches of a queue from a thread of its own.

use std::hash::BuildHasher;
use std::hash::RandomState;
use std::io;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use super::Batch;
use super::Endpoint;
use super::Queue;
use super::client::Answer;
use super::client::Client;

/// Consecutive attempts with a batch before others get their turn. A short failure of the receiver
/// thus does not reorder batches.
const ATTEMPTS: u32 = 3;

/// Failed attempts allowed after the last batch was added, if the batches may be the cause.
const LAST_ATTEMPTS: u32 = 2;

/// Delays before a batch is sent again. Each delay is twice the previous one. The actual delay is a
/// random part between a half and all of it, so that machines that started together drift apart.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// First delay.
    pub first: Duration,
    /// Longest delay.
    pub longest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
        }
    }
}

/// Counts of all batches so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Accepted batches.
    pub accepted: u64,
    /// Data points in accepted batches that the receiver has rejected.
    pub rejected_points: u64,
    /// Rejected batches.
    pub refused: u64,
    /// Batches dropped because of a limit of the queue.
    pub dropped: u64,
    /// Batches in unreadable files, such as truncated ones.
    pub unreadable: u64,
    /// Failed requests that are to be repeated.
    pub retries: u64,
    /// Waiting batches.
    pub waiting: u64,
    /// Waiting batches that exist in memory only, and are lost when the process ends.
    pub volatile: u64,
    /// Size of all waiting batches, in bytes.
    pub bytes: u64,
}

impl Totals {
    /// Batches that no receiver will get.
    pub fn lost(&self) -> u64 {
        self.refused + self.dropped + self.unreadable
    }

    /// Adds the totals of a later pusher, after this one has ended. Batches that this one held in
    /// memory are lost; the waiting batches are the later pusher's.
    pub fn and(self, later: Totals) -> Totals {
        Totals {
            accepted: self.accepted + later.accepted,
            rejected_points: self.rejected_points + later.rejected_points,
            refused: self.refused + later.refused,
            dropped: self.dropped + self.volatile + later.dropped,
            unreadable: self.unreadable + later.unreadable,
            retries: self.retries + later.retries,
            ..later
        }
    }
}

/// Takes batches, and pushes them to a receiver. After a drop, the thread runs on, and batches stay
/// in the queue.
pub struct Pusher {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified at each change of the state.
    changed: Condvar,
}

struct State {
    queue: Queue,
    totals: Totals,
    /// Number of the batch that is being sent.
    in_flight: Option<u64>,
    /// Whether the last batch was added.
    is_closing: bool,
    is_done: bool,
    /// Receives messages for the user.
    tell: Box<dyn FnMut(&str) + Send>,
    /// Whether a message about batches held in memory was given. Reset once they are written.
    is_held_told: bool,
    is_drop_told: bool,
    is_unread_told: bool,
}

impl Pusher {
    /// Starts sending the batches of the queue. `tell` gets a sentence when the receiver stops
    /// accepting batches, when it accepts them again, and when batches are lost.
    pub fn start(endpoint: Endpoint, queue: Queue, pace: Pace, tell: impl FnMut(&str) + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue,
                totals: Totals::default(),
                in_flight: None,
                is_closing: false,
                is_done: false,
                tell: Box::new(tell),
                is_held_told: false,
                is_drop_told: false,
                is_unread_told: false,
            }),
            changed: Condvar::new(),
        });
        let sender = Sender {
            shared: shared.clone(),
            client: Client::new(endpoint),
            pace,
            failures: 0,
            is_told: false,
            last_refusal: String::new(),
        };
        Pusher {
            shared,
            thread: thread::spawn(|| sender.run()),
        }
    }

    /// Adds a batch. Waits for a write to a file, but neither for the disk nor for the receiver.
    pub fn push(&self, batch: Batch) {
        let mut state = self.shared.lock();
        let in_flight = state.in_flight;
        let added = state.queue.push(batch, in_flight);
        match added.held {
            None => state.is_held_told = false,
            Some(error) if !state.is_held_told => {
                state.is_held_told = true;
                (state.tell)(&format!("cannot write the queue, which is kept in memory: {error}"));
            }
            Some(_) => (),
        }
        match added.dropped {
            0 => state.is_drop_told = false,
            _ if state.is_drop_told => (),
            _ => {
                state.is_drop_told = true;
                (state.tell)("the queue is full: the oldest batches are dropped");
            }
        }
        self.shared.changed.notify_all();
    }

    /// Counts of all batches so far.
    pub fn totals(&self) -> Totals {
        self.shared.lock().totals()
    }

    /// Waits until every batch is accepted or lost, at most for `patience`. Returns whether that
    /// happened in time.
    pub fn wait(&self, patience: Duration) -> bool {
        self.wait_until(patience, |state| state.queue.is_empty())
    }

    /// Sends the rest of the queue, as long as the receiver accepts batches at once, and at most
    /// for `patience`. The next process sends the remaining batches, if the queue is in a folder
    /// and can be written.
    pub fn finish(self, patience: Duration) -> Totals {
        self.close();
        if self.wait_until(patience, |state| state.is_done) {
            // It has the queue, too: the folder is free when it has ended.
            let _ = self.thread.join();
        }
        let mut state = self.shared.lock();
        let in_flight = state.in_flight;
        state.queue.write_held(in_flight);
        state.totals()
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_all();
    }

    fn wait_until(&self, patience: Duration, is_over: impl Fn(&State) -> bool) -> bool {
        let state = self.shared.lock();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, patience, |state| !is_over(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn totals(&self) -> Totals {
        Totals {
            dropped: self.queue.dropped(),
            unreadable: self.queue.unreadable(),
            waiting: self.queue.len() as u64,
            volatile: self.queue.volatile(),
            bytes: self.queue.bytes(),
            ..self.totals
        }
    }
}

/// The sending thread.
struct Sender {
    shared: Arc<Shared>,
    client: Client,
    pace: Pace,
    /// Consecutive failures since the receiver last accepted a batch.
    failures: u32,
    /// Whether a message about failures was given.
    is_told: bool,
    last_refusal: String,
}

impl Sender {
    fn run(mut self) {
        let begin = Instant::now();
        let mut not_before = begin;
        // Whether the receiver has asked for a pause. That holds during closing, too.
        let mut is_banned = false;
        let mut last_attempts = LAST_ATTEMPTS;
        let shared = self.shared.clone();
        let mut state = shared.lock();
        loop {
            let now = Instant::now();
            let is_closing = state.is_closing;
            let next = match (is_closing && !is_banned, now >= not_before) {
                _ if is_closing && last_attempts == 0 => None,
                // During closing, batches that were ever put off come after all others.
                (true, _) => state
                    .queue
                    .next(begin)
                    .or_else(|| state.queue.next(now + self.pace.longest)),
                (false, true) => state.queue.next(now),
                (false, false) => None,
            };
            let Some((number, batch)) = next else {
                if is_closing {
                    break;
                }
                // The queue may be empty by now, if the remaining batches were unreadable.
                shared.changed.notify_all();
                let until = match now >= not_before {
                    true => state.queue.due(),
                    false => (!state.queue.is_empty()).then_some(not_before),
                };
                state = match until {
                    None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    Some(until) => {
                        let waited = shared.changed.wait_timeout(state, until.saturating_duration_since(now));
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                };
                continue;
            };
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    self.unread(&mut state, number, &error);
                    not_before = now + self.pace.first;
                    last_attempts -= u32::from(is_closing);
                    continue;
                }
            };
            state.is_unread_told = false;
            state.in_flight = Some(number);
            drop(state);
            let answer = self.client.send(&batch);
            state = shared.lock();
            state.in_flight = None;
            is_banned = false;
            match answer {
                Answer::Accepted { rejected, message } => {
                    state.queue.remove(number);
                    self.accepted(&mut state, rejected, message);
                }
                Answer::Refused { why } => {
                    state.queue.remove(number);
                    self.refused(&mut state, why);
                }
                Answer::Later { after, why, of_batch } => {
                    let times = match of_batch {
                        true => self.put_off(&mut state, number),
                        false => 0,
                    };
                    self.failed(&mut state, &why, times);
                    let wait = after.unwrap_or_default().max(self.back_off(self.failures));
                    not_before = Instant::now() + wait;
                    is_banned = after.is_some();
                    if is_closing {
                        // If the batch is the cause, another one may be accepted.
                        last_attempts = if of_batch { last_attempts - 1 } else { 0 };
                    }
                }
            }
            shared.changed.notify_all();
        }
        state.is_done = true;
        shared.changed.notify_all();
    }

    /// Lets others go first if a batch has failed too often. Returns its number of failures.
    fn put_off(&self, state: &mut State, number: u64) -> u32 {
        let most = if state.is_closing { 1 } else { ATTEMPTS };
        let until = |times| Instant::now() + self.back_off(times);
        state.queue.failed(number, most, until)
    }

    fn unread(&self, state: &mut State, number: u64, error: &io::Error) {
        let times = self.put_off(state, number);
        if times == 1 && !std::mem::replace(&mut state.is_unread_told, true) {
            (state.tell)(&format!(
                "cannot read a batch of the queue now; it stays there: {error}"
            ));
        }
    }

    fn accepted(&mut self, state: &mut State, rejected: u64, message: Option<String>) {
        state.totals.accepted += 1;
        state.totals.rejected_points += rejected;
        let url = self.client.endpoint().url();
        self.failures = 0;
        if std::mem::take(&mut self.is_told) {
            let waiting = state.queue.len();
            (state.tell)(&format!("{url} accepts batches again; waiting: {waiting}"));
        }
        let why = message.unwrap_or_default();
        let sentence = match (rejected, why.is_empty()) {
            (0, true) => return self.last_refusal.clear(),
            (0, false) => format!("{url} says: {why}"),
            (_, true) => format!("{url} has rejected data points: {rejected}"),
            (_, false) => format!("{url} has rejected data points: {rejected}: {why}"),
        };
        self.tell_once(state, why, &sentence);
    }

    fn refused(&mut self, state: &mut State, why: String) {
        state.totals.refused += 1;
        self.failures = 0;
        let sentence = format!("{} refused a batch, which is lost: {why}", self.client.endpoint().url());
        self.tell_once(state, why, &sentence);
    }

    /// Passes on a message that may repeat with each batch, once.
    fn tell_once(&mut self, state: &mut State, why: String, sentence: &str) {
        if why != self.last_refusal {
            (state.tell)(sentence);
            self.last_refusal = why;
        }
    }

    /// Reports that batches fail: once until one is accepted, and only for a batch's first failure.
    /// `times` is the number of failures of this batch.
    fn failed(&mut self, state: &mut State, why: &str, times: u32) {
        state.totals.retries += 1;
        if times <= 1 && !std::mem::replace(&mut self.is_told, true) {
            let url = self.client.endpoint().url();
            (state.tell)(&format!(
                "{url} does not accept batches, which are kept and sent again: {why}"
            ));
        }
        self.failures = self.failures.saturating_add(1);
    }

    /// Delay after this number of failures.
    fn back_off(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let whole = self.pace.first.saturating_mul(1 << doublings).min(self.pace.longest);
        // Random source: each `RandomState` has random keys.
        let random = RandomState::new().hash_one(0) as f64 / u64::MAX as f64;
        whole.mul_f64(0.5 + random / 2.0)
    }
}
