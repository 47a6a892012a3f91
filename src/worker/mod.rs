// SPDX-License-Identifier: GPL-2.0

//! The worker of all histograms: it cuts their intervals for readers, and tends histograms that
//! grow or lose entries.
//!
//! Both take several steps, with a grace period between. The worker lets all histograms take a
//! step, then waits for a grace period, which they share, and so on.

pub mod cut;
pub(crate) mod objects;
mod tended;

use crate::{
    event::Clocks,
    hist::{
        Histogram,
        Tenancy, //
    },
    map::{
        Beat,
        Generation,
        Wake, //
    },
    rust::{
        cpu,
        kick::{
            Kick,
            Kicked,
            Kicks, //
        },
        poll::{
            PollQueue,
            PollTable, //
        },
        queue::Queue, //
    },
    sync::Retired,
};
use cut::{
    Asked,
    Cut,
    Step, //
};
use kernel::{
    new_condvar,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        CondVar,
        Mutex, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        impl_has_delayed_work,
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    },
};
use tended::TendedList;

/// The shortest time between two edges, in nanoseconds.
const EDGES_APART_NS: u64 = 10_000_000;

/// How long the worker waits for further requests, which share the turn, in nanoseconds.
const GATHER_NS: u64 = 1_000_000;

/// How long histograms may take further steps at once while others wait for a grace period or a
/// cut, in nanoseconds.
const SLICE_NS: u64 = 1_000_000;

/// The longest delay of the worker, in milliseconds: an hour.
const LATER_MS: u32 = 3_600_000;

/// Cuts and tends histograms. [`Works`] owns it.
///
/// A *turn* is the cut of all histograms that were asked for before. It takes two grace periods,
/// and begins as soon as [`EDGES_APART_NS`] and [`GATHER_NS`] allow and the turn before has ended.
#[pin_data]
pub(crate) struct Worker {
    #[pin]
    turns: Mutex<Turns>,
    /// Notified at the end of a turn.
    #[pin]
    ended: CondVar,
    #[pin]
    tended: Mutex<TendedList>,
    /// Waits until the next turn may begin.
    #[pin]
    gathering: DelayedWork<Worker, GATHERING>,
    /// Cuts and tends. Delayed until a histogram is to be tended again.
    #[pin]
    working: DelayedWork<Worker, WORKING>,
    /// Tasks that poll for the end of a turn.
    polling: Pin<KBox<PollQueue>>,
    kick: Arc<Kick<Worker>>,
    queue: Queue,
    clocks: Clocks,
}

const GATHERING: u64 = 0;
const WORKING: u64 = 1;

impl_has_delayed_work! {
    impl HasDelayedWork<Self, GATHERING> for Worker { self.gathering }
    impl HasDelayedWork<Self, WORKING> for Worker { self.working }
}

/// The turns of the worker.
#[derive(Default)]
struct Turns {
    /// The histograms that the next turn cuts.
    asked: KVec<Asked>,
    /// Whether the next turn may begin.
    due: bool,
    /// Number of turns that have begun. The edge of a turn comes after its begin.
    begun: u64,
    /// Number of turns that have ended.
    ended: u64,
    /// The time of the last edge: nanoseconds since boot.
    last_edge_ns: u64,
}

/// The number of a turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64);

/// The time during which the worker works. Dropping it, after the last reader and the last
/// histogram, waits for the end of all work.
pub(crate) struct Works(Kicks<Worker>);

impl Worker {
    /// Starts a worker. Fails with `ENOMEM`.
    pub(crate) fn start(clocks: Clocks) -> Result<Works> {
        let polling = KBox::pin_init(PollQueue::new(), GFP_KERNEL)?;
        let kick = Kick::new()?;
        let waking = kick.clone();
        let worker: Arc<Self> = Arc::pin_init(
            pin_init!(Self {
                turns <- kernel::new_mutex!(Turns::default()),
                ended <- new_condvar!("rhist::Worker::ended"),
                tended <- kernel::new_mutex!(TendedList::default()),
                gathering <- new_delayed_work!("rhist::Worker::gathering"),
                working <- new_delayed_work!("rhist::Worker::working"),
                polling,
                kick: waking,
                queue: Queue::new()?,
                clocks,
            }? Error),
            GFP_KERNEL,
        )?;
        Ok(Works(Kicks::begin(kick, worker)))
    }

    /// The clocks of edges.
    pub(crate) fn clocks(&self) -> Clocks {
        self.clocks
    }

    /// Asks for a cut of these histograms, which have readers, with an edge from now on. Returns
    /// the turn that makes it. Fails with `ENOMEM`.
    pub(crate) fn ask<'a>(
        self: &Arc<Self>,
        histograms: impl Iterator<Item = &'a Arc<Histogram>>,
    ) -> Result<Turn> {
        let mut turns = self.turns.lock();
        for histogram in histograms {
            let same = |asked: &Asked| Arc::ptr_eq(&asked.histogram, histogram);
            if !turns.asked.iter().any(same) {
                let asked = Asked::new(histogram.clone());
                turns.asked.push(asked, GFP_KERNEL)?;
            }
        }
        let turn = Turn(turns.begun + 1);
        drop(turns);
        // Fails if it is queued: it waits for these, too.
        let queue = self.queue.get();
        let _ = queue.enqueue::<Arc<Self>, GATHERING>(self.clone());
        Ok(turn)
    }

    /// Tends a histogram until the result is dropped. Returns `None` for one that neither grows nor
    /// loses entries. `max_bytes` returns how many bytes it may take in addition, at any time.
    /// Fails with `ENOMEM`.
    pub(crate) fn tend(
        self: &Arc<Self>,
        histogram: &Arc<Histogram>,
        max_bytes: fn() -> usize,
    ) -> Result<Option<Tenancy>> {
        let Some(tending) = histogram.tending(max_bytes)? else {
            return Ok(None);
        };
        let mut tenant = KBox::new(Tenant::new(self), GFP_KERNEL)?;
        tenant.id = Some(self.tended.lock().add(histogram, tending)?);
        self.work_now();
        Ok(Some(tenant))
    }

    /// Wakes the worker for hits.
    pub(crate) fn waker(&self) -> Result<KBox<dyn Wake>> {
        Ok(KBox::new(Waker(self.kick.clone()), GFP_KERNEL)?)
    }

    /// Works without delay. Task or interrupt context.
    fn work_now(self: &Arc<Self>) {
        self.queue.enqueue_now::<Self, WORKING>(self.clone());
    }

    fn now_ns(&self) -> u64 {
        (self.clocks.boot)()
    }

    /// Sleeps until others have had time to ask for the same turn and its edge may come.
    fn gather(&self) {
        let mut left = GATHER_NS;
        while left > 0 {
            cpu::sleep_us(left.div_ceil(1000) as u32);
            let mut turns = self.turns.lock();
            let since = self.now_ns().saturating_sub(turns.last_edge_ns);
            left = EDGES_APART_NS.saturating_sub(since);
            // Without histograms, the last turn has cut them all.
            turns.due = left == 0 && !turns.asked.is_empty();
        }
    }

    /// Returns whether a turn may begin.
    fn is_due(&self) -> bool {
        self.turns.lock().due
    }

    /// Begins a turn, if one may begin.
    fn begin_turn(&self, cut: &mut Cut) {
        let mut turns = self.turns.lock();
        if !turns.due {
            return;
        }
        turns.due = false;
        let asked = core::mem::take(&mut turns.asked);
        turns.begun += 1;
        let edge = self.clocks.now();
        turns.last_edge_ns = edge.boot_ns;
        drop(turns);
        cut.edge(asked, edge);
    }

    /// The next step of a cut.
    fn step(&self, cut: &mut Cut) {
        match cut.next() {
            Step::Edge => (),
            Step::Fold => cut.fold(yield_cpu),
            Step::End => {
                cut.end();
                self.turns.lock().ended += 1;
                self.ended.notify_all();
                self.wake();
            }
        }
        if cut.next() == Step::Edge {
            self.begin_turn(cut);
        }
    }

    /// Lets the histograms that are left in `round` take steps.
    fn tend_all(&self, round: &mut Round) {
        let begin = self.now_ns();
        loop {
            let tended = self.tended.lock().from(round.from);
            let Some(tended) = tended else { break };
            let now = self.now_ns();
            if now.saturating_sub(begin) > SLICE_NS && (round.waits || self.is_due()) {
                round.again = true;
                return;
            }
            match tended.beat(now, yield_cpu) {
                Beat::Again => continue,
                Beat::At(at) => round.at = round.at.min(at),
                Beat::GracePeriod(retired) => round.wait(retired),
            }
            round.from = tended.id() + 1;
        }
        round.from = 0;
    }

    /// Works again at this time, in nanoseconds since boot, if not before.
    fn work_at(self: &Arc<Self>, at: u64) {
        if at == u64::MAX {
            return;
        }
        let left = at.saturating_sub(self.now_ns());
        let ms = left.div_ceil(1_000_000).min(u64::from(LATER_MS));
        let (queue, delay) = (self.queue.get(), msecs_to_jiffies(ms as u32));
        // Fails if it is queued already.
        let _ = queue.enqueue_delayed::<Arc<Self>, WORKING>(self.clone(), delay);
    }

    /// The turn at work, or the last one.
    pub(crate) fn turn(&self) -> Turn {
        Turn(self.turns.lock().begun)
    }

    /// Returns whether a turn has ended.
    pub(crate) fn has_ended(&self, turn: Turn) -> bool {
        self.turns.lock().ended >= turn.0
    }

    /// Waits for the end of a turn. Fails with `ERESTARTSYS` if a signal comes first.
    pub(crate) fn wait(&self, turn: Turn) -> Result {
        let mut turns = self.turns.lock();
        while turns.ended < turn.0 {
            if self.ended.wait_interruptible(&mut turns) {
                return Err(ERESTARTSYS);
            }
        }
        Ok(())
    }

    /// Queues the caller of `poll()` for the end of a turn.
    pub(crate) fn queue_poll(&self, table: &PollTable<'_>) {
        self.polling.wait(table);
    }

    /// Wakes the tasks that poll.
    pub(crate) fn wake(&self) {
        self.polling.wake();
    }
}

fn yield_cpu() {
    // A worker is not killed.
    let _ = cpu::yield_unless_killed();
}

/// A step of each histogram, before a grace period.
struct Round {
    /// The number of the first histogram that is left.
    from: u64,
    /// Whether some were left out, for lack of time.
    again: bool,
    /// Whether a grace period is to be waited for.
    waits: bool,
    /// To be dropped after that.
    retired: KVec<Retired<Generation>>,
    /// When a histogram is to be tended again: nanoseconds since boot.
    at: u64,
}

impl Round {
    /// Begins with the histogram with number `from`.
    fn new(from: u64) -> Self {
        Self {
            from,
            again: from > 0,
            waits: false,
            retired: KVec::new(),
            at: u64::MAX,
        }
    }

    /// Notes that a grace period is to be waited for, and `retired` to be dropped after it.
    fn wait(&mut self, retired: Option<Retired<Generation>>) {
        self.waits = true;
        if let Some(retired) = retired {
            // If the allocation fails, it waits here, for a grace period of its own.
            let _ = self.retired.push(retired, GFP_KERNEL);
        }
    }
}

impl WorkItem<GATHERING> for Worker {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.gather();
        if this.is_due() {
            this.work_now();
        }
    }
}

impl WorkItem<WORKING> for Worker {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut cut = Cut::default();
        let mut from = 0;
        loop {
            let mut round = Round::new(from);
            this.step(&mut cut);
            round.waits = cut.next() != Step::Edge;
            this.tend_all(&mut round);
            if round.waits {
                Retired::drop_after_wait(Iterator::chain(cut.closed(), round.retired));
            } else if !round.again {
                this.work_at(round.at);
                return;
            }
            from = round.from;
        }
    }
}

impl Kicked for Worker {
    fn kicked(this: ArcBorrow<'_, Self>) {
        Arc::from(this).work_now();
    }
}

/// Kicks the worker.
struct Waker(Arc<Kick<Worker>>);

impl Wake for Waker {
    fn wake(&self) {
        self.0.kick();
    }
}

/// A histogram that is tended until this is dropped. A step that is at work goes on.
struct Tenant {
    worker: Arc<Worker>,
    /// Its number on the list, if it is there.
    id: Option<u64>,
}

impl Tenant {
    fn new(worker: &Arc<Worker>) -> Self {
        Self {
            worker: worker.clone(),
            id: None,
        }
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        let mut list = self.worker.tended.lock();
        let removed = self.id.and_then(|id| list.remove(id));
        drop(list);
        // May free the histogram.
        drop(removed);
    }
}

impl Works {
    /// Returns the worker that works meanwhile.
    pub(crate) fn worker(&self) -> &Arc<Worker> {
        self.0.to()
    }
}

impl Drop for Works {
    fn drop(&mut self) {
        // In this order: each of them queues the next one.
        self.0.end();
        Queue::cancel::<_, GATHERING>(self.worker());
        Queue::cancel::<_, WORKING>(self.worker());
    }
}
