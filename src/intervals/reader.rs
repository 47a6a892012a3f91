// SPDX-License-Identifier: GPL-2.0

//! An open file of intervals.

use crate::{
    event::Moment,
    hist::{
        Begins,
        End,
        Ended,
        HistInterval,
        Histogram,
        IntervalReader,
        Room, //
    },
    hook::{
        trigger::HistData,
        HistTrigger,
        InDir, //
    },
    rust::{
        cpu,
        event::EventId,
        poll::{
            self,
            Mask, //
        },
        tracefs::{
            Dentry,
            TracingDir, //
        },
    },
    text::copy,
    worker::{
        Turn,
        Worker, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// Maximum number of ended histograms that are kept for a reader which has not read them.
const ENDED_MAX: usize = 16;

/// A reader of the intervals of an event's histograms: an open file.
///
/// Its lock is taken inside the registry. With it held, nothing is charged to a control group or
/// waited for.
#[pin_data]
pub(crate) struct Reader {
    event: EventId,
    dir: TracingDir,
    /// The kernel's directory of the event.
    real: Dentry,
    worker: Arc<Worker>,
    #[pin]
    state: Mutex<State>,
}

struct State {
    /// The histograms that the next interval shows, in the order in which they began.
    lives: KVec<Life>,
    /// The identity of the next life.
    next_id: u64,
    /// When the triggers were looked at last.
    updated: Moment,
    /// Number of ended histograms that were forgotten, or missing, before they were read.
    lost: u64,
    /// The request of a read without waiting.
    asked: Option<Asked>,
    /// Number of histograms for which an allocation has failed.
    missing: u64,
}

/// A histogram of the event, from its begin, or the begin of the reader, to its end.
#[derive(Clone)]
pub(crate) struct Life {
    id: u64,
    data: Arc<HistData>,
    pub(crate) histogram: Arc<Histogram>,
    /// The texts of its trigger.
    pub(crate) trigger: Arc<Texts>,
    pub(crate) paused: bool,
    begins: Begins,
    /// `None` until it is read.
    pub(crate) reader: Option<Arc<IntervalReader>>,
    pub(crate) ended: Option<End>,
}

/// The texts of a trigger.
pub(crate) struct Texts {
    /// The text `name=…`, if it has one.
    pub(crate) name: Option<KVec<u8>>,
    /// The text of its filter.
    pub(crate) filter: Option<KVec<u8>>,
}

/// Histograms that are being cut for a read.
struct Asked {
    turn: Turn,
    lives: KVec<Life>,
}

/// An interval of each histogram, taken by a read.
pub(crate) struct Taken {
    /// The lives with their intervals.
    pub(crate) intervals: KVec<(Life, HistInterval)>,
    /// Number of histograms that ended, and were forgotten before they were read.
    pub(crate) lost: u64,
}

impl Life {
    /// Returns whether its histogram has ended, and nothing of it was read: it needs no reader.
    fn is_whole(&self) -> bool {
        let ended = self.ended.is_some_and(|end| !end.lives_on);
        ended && self.reader.is_none() && self.begins == Begins::WithHistogram
    }

    /// Bytes of memory that reading it takes. `None`: the size overflows.
    fn bytes(&self) -> Option<usize> {
        let interval = self.histogram.interval_bytes();
        match self.reader.is_some() || self.is_whole() {
            true => Some(interval),
            false => self.histogram.reader_bytes()?.checked_add(interval),
        }
    }

    /// Takes the interval that was not read yet: see [`IntervalReader::take`].
    fn take(&self, room: Option<Room>) -> Result<HistInterval> {
        match (&self.reader, room, self.ended) {
            (Some(reader), Some(room), ended) => reader.take(room, ended),
            (None, None, Some(end)) => {
                HistInterval::whole(&self.histogram, end, &cpu::yield_unless_killed)
            }
            _ => Err(EAGAIN),
        }
    }

    /// Returns whether it is of this trigger.
    fn is_of(&self, trigger: &HistTrigger) -> bool {
        Arc::ptr_eq(&self.data, &trigger.data) && self.trigger.filter.as_deref() == trigger.filter()
    }

    /// Notes that its trigger is gone.
    fn removed(&mut self, at: Moment, lives_on: bool) {
        self.ended.get_or_insert(End {
            how: Ended::Removed,
            at,
            rejected: lives_on.then(|| self.histogram.rejected().counted()),
            lives_on,
        });
    }

    /// Notes that `next` has replaced its histogram.
    fn cleared(&mut self, next: &Histogram) {
        self.ended.get_or_insert(End {
            how: Ended::Cleared,
            at: next.begin(),
            rejected: Some(self.histogram.rejected().counted_before(next.rejected())),
            lives_on: false,
        });
    }
}

impl Reader {
    /// Creates a reader of an event in a tracing directory, without histograms. Its first intervals
    /// begin now. Fails with `ENOMEM`.
    pub(super) fn new(
        event: EventId,
        dir: TracingDir,
        real: Dentry,
        worker: Arc<Worker>,
    ) -> Result<Arc<Self>> {
        let state = State {
            lives: KVec::new(),
            next_id: 0,
            updated: worker.clocks().now(),
            lost: 0,
            asked: None,
            missing: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                event,
                dir,
                real,
                worker,
                state <- kernel::new_mutex!(state),
            }),
            GFP_KERNEL,
        )
    }

    /// The event and the tracing directory.
    pub(crate) fn site(&self) -> (EventId, &TracingDir) {
        (self.event, &self.dir)
    }

    /// Notes the triggers that the event has now; `is_used` returns whether any event has a trigger
    /// of a histogram. Called with the lock of commands and the registry held. If an allocation
    /// fails, the reader [is behind](Reader::is_behind).
    pub(crate) fn update(
        &self,
        triggers: Option<&InDir<HistTrigger>>,
        is_used: impl Fn(&Arc<HistData>) -> bool,
    ) {
        if self.is_gone() {
            return self.end();
        }
        let triggers = || triggers.into_iter().flat_map(InDir::iter);
        let now = self.worker.clocks().now();
        let mut state = self.state.lock();
        for life in &mut state.lives {
            match triggers().find(|trigger| life.is_of(trigger)) {
                _ if life.ended.is_some() => (),
                None => life.removed(now, is_used(&life.data)),
                Some(trigger) => {
                    life.paused = trigger.paused();
                    let histogram = trigger.data.histogram();
                    if !Arc::ptr_eq(&histogram, &life.histogram) {
                        life.cleared(&histogram);
                    }
                }
            }
        }
        let (mut added, mut missing) = (0, 0);
        for trigger in triggers() {
            let mut lives = state.lives.iter();
            if !lives.any(|life| life.ended.is_none() && life.is_of(trigger)) {
                match state.add(trigger) {
                    Ok(()) => added += 1,
                    Err(_) => missing += 1,
                }
            }
        }
        // The others have ended since.
        state.lost += state.missing.saturating_sub(added + missing);
        state.missing = missing;
        if missing == 0 {
            state.updated = now;
        }
        state.forget_oldest();
    }

    /// Returns whether it lacks a histogram: the next call of [`Reader::update`] notes it.
    pub(crate) fn is_behind(&self) -> bool {
        self.state.lock().missing > 0
    }

    /// Notes which of the triggers that the event has now are paused. Called with the registry
    /// held.
    pub(crate) fn update_paused(&self, triggers: Option<&InDir<HistTrigger>>) {
        let mut state = self.state.lock();
        for trigger in triggers.into_iter().flat_map(InDir::iter) {
            let mut lives = state.lives.iter_mut();
            let life = lives.find(|life| life.ended.is_none() && life.is_of(trigger));
            if let Some(life) = life {
                life.paused = trigger.paused();
            }
        }
    }

    /// Returns whether the event is gone: another one may have its identity.
    pub(crate) fn is_gone(&self) -> bool {
        self.real.removed()
    }

    /// Notes that the event is gone, with its triggers.
    pub(crate) fn end(&self) {
        let now = self.worker.clocks().now();
        let mut state = self.state.lock();
        let lives = state.lives.iter_mut();
        // Another event may have a trigger of its name.
        lives.for_each(|life| life.removed(now, life.data.name().is_some()));
    }

    /// Makes readers of the histograms that need one. Returns the lives to read: all that have not
    /// ended, and the oldest of the others, as far as `max_bytes` allow. Without locks, since the
    /// memory is charged to the caller. Fails as [`IntervalReader::new`], and with `ENOMEM` if
    /// `max_bytes` are too few for the former, or for any.
    fn join(&self, max_bytes: usize) -> Result<KVec<Life>> {
        let mut lives = self.lives()?;
        let (mut left, all) = (Some(max_bytes), lives.len());
        let take = |left: Option<usize>, life: &Life| left?.checked_sub(life.bytes()?);
        for life in lives.iter().filter(|life| life.ended.is_none()) {
            left = take(left, life);
        }
        let mut left = left.ok_or(ENOMEM)?;
        let mut is_full = false;
        lives.retain(|life| {
            if life.ended.is_some() {
                match take(Some(left), life).filter(|_| !is_full) {
                    Some(rest) => left = rest,
                    None => is_full = true,
                }
            }
            life.ended.is_none() || !is_full
        });
        if lives.is_empty() && all > 0 {
            return Err(ENOMEM);
        }
        for life in &mut lives {
            if life.reader.is_none() && !life.is_whole() {
                let reader = IntervalReader::new(&life.histogram, life.begins)?;
                life.reader = Some(Arc::new(reader, GFP_KERNEL_ACCOUNT)?);
                if let Some(own) = self.state.lock().life(life.id) {
                    own.reader = life.reader.clone();
                }
            }
        }
        Ok(lives)
    }

    fn lives(&self) -> Result<KVec<Life>> {
        loop {
            let len = self.state.lock().lives.len();
            let mut lives = KVec::with_capacity(len, GFP_KERNEL)?;
            let state = self.state.lock();
            if state.lives.len() <= len {
                for life in &state.lives {
                    lives.push_within_capacity(life.clone())?;
                }
                return Ok(lives);
            }
        }
    }

    /// Begins the first interval. Waits for the cut unless `nonblock`. Fails as [`Reader::take`],
    /// except with `EAGAIN`.
    pub(crate) fn begin(&self, nonblock: bool, max_bytes: usize) -> Result {
        let asked = self.ask(max_bytes)?;
        match asked {
            Some(asked) if !nonblock => self.worker.wait(asked.turn),
            _ => Ok(()),
        }
    }

    /// Asks for a cut of all histograms; `None` without histograms.
    fn ask(&self, max_bytes: usize) -> Result<Option<Asked>> {
        let lives = self.join(max_bytes)?;
        if lives.is_empty() {
            return Ok(None);
        }
        let turn = self.cut(&lives)?;
        Ok(Some(Asked { turn, lives }))
    }

    fn cut(&self, lives: &[Life]) -> Result<Turn> {
        self.worker.ask(lives.iter().map(|life| &life.histogram))
    }

    /// Takes an interval of each histogram, up to an edge that comes after this call, or after the
    /// first of several calls with `nonblock`. One task at a time.
    ///
    /// # Errors
    ///
    /// `EAGAIN` with `nonblock`, until the cut has ended; `ERESTARTSYS` if a signal comes first;
    /// `EUSERS` and `ENOMEM` as [`IntervalReader::new`]. No hit is lost then.
    pub(crate) fn take(&self, nonblock: bool, max_bytes: usize) -> Result<Taken> {
        let before = self.state.lock().asked.take().filter(|_| nonblock);
        let asks = before.is_none();
        let mut asked = match before {
            Some(asked) => asked,
            None => match self.ask(max_bytes)? {
                Some(asked) => asked,
                None => return Ok(Taken::nothing(self.lost())),
            },
        };
        if nonblock && (asks || !self.worker.has_ended(asked.turn)) {
            self.state.lock().asked = Some(asked);
            return Err(EAGAIN);
        }
        let mut one_edge = true;
        loop {
            self.worker.wait(asked.turn)?;
            self.note_cleared(&mut asked.lives);
            match Taken::all(&asked.lives, self.lost(), one_edge) {
                // The next turn moves counts just now, for less than a grace period more, or has
                // ended meanwhile. If that happens again, histograms may have different edges.
                Err(EAGAIN) => asked.turn = self.next_end(&asked.lives)?,
                taken => return taken,
            }
            one_edge = false;
        }
    }

    /// The turn whose end `lives` can be taken after: the one at work, or another one.
    fn next_end(&self, lives: &[Life]) -> Result<Turn> {
        let turn = self.worker.turn();
        match self.worker.has_ended(turn) {
            true => self.cut(lives),
            false => Ok(turn),
        }
    }

    /// Notes which of `lives` were cleared since the cut was asked for: no hit counts in them any
    /// more. If a trigger was removed since then, a hit may: the next read shows its end.
    fn note_cleared(&self, lives: &mut [Life]) {
        let mut state = self.state.lock();
        for life in lives {
            let ended = state.life(life.id).and_then(|own| own.ended);
            life.ended = life.ended.or(ended.filter(|end| end.how == Ended::Cleared));
        }
    }

    fn lost(&self) -> u64 {
        self.state.lock().lost
    }

    /// Notes that an interval is shown: forgets the histograms whose last one it was.
    pub(crate) fn shown(&self, taken: &Taken) {
        let mut dropped = KVec::new();
        let mut state = self.state.lock();
        state.lost -= taken.lost;
        for (life, _) in &taken.intervals {
            if life.ended.is_some() {
                let nth = state.lives.iter().position(|own| own.id == life.id);
                let own = nth.and_then(|nth| state.lives.remove(nth).ok());
                // If it cannot be kept, it is dropped here.
                let _ = dropped.push(own, GFP_KERNEL);
            }
        }
        drop(state);
    }

    /// The events that the file is ready for: the next interval, if [`Reader::take`] would not
    /// wait; and the end, if it was read and the event is gone. The caller is queued already.
    pub(crate) fn poll(&self) -> Mask {
        let (is_gone, state) = (self.is_gone(), self.state.lock());
        match &state.asked {
            _ if state.lives.is_empty() => poll::IN | if is_gone { poll::HUP } else { 0 },
            Some(asked) if self.worker.has_ended(asked.turn) => poll::IN,
            // So that a reader asks for the last interval.
            None if is_gone => poll::IN,
            _ => 0,
        }
    }

    /// The worker that cuts for it.
    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }
}

impl State {
    fn life(&mut self, id: u64) -> Option<&mut Life> {
        self.lives.iter_mut().find(|life| life.id == id)
    }

    /// Adds the histogram of a trigger.
    fn add(&mut self, trigger: &HistTrigger) -> Result {
        let histogram = trigger.data.histogram();
        // One that is older has another trigger of its name, or was there before the reader.
        let begins = match histogram.begin().boot_ns < self.updated.boot_ns {
            true => Begins::AtNextEdge,
            false => Begins::WithHistogram,
        };
        let copy = |text: &[u8]| copy(text);
        let texts = Texts {
            name: trigger.data.name().map(copy).transpose()?,
            filter: trigger.filter().map(copy).transpose()?,
        };
        let life = Life {
            id: self.next_id,
            data: trigger.data.clone(),
            histogram,
            trigger: Arc::new(texts, GFP_KERNEL)?,
            paused: trigger.paused(),
            begins,
            reader: None,
            ended: None,
        };
        self.lives.push(life, GFP_KERNEL)?;
        self.next_id += 1;
        Ok(())
    }

    /// Forgets ended histograms above [`ENDED_MAX`], the oldest first.
    fn forget_oldest(&mut self) {
        let ended = |life: &Life| life.ended.is_some();
        while self.lives.iter().filter(|life| ended(life)).count() > ENDED_MAX {
            if let Some(nth) = self.lives.iter().position(ended) {
                drop(self.lives.remove(nth));
                self.lost += 1;
            }
        }
    }
}

impl Taken {
    fn nothing(lost: u64) -> Self {
        Self {
            intervals: KVec::new(),
            lost,
        }
    }

    /// Takes an interval of each of `lives`, or of none if one fails. With `one_edge`, it fails
    /// with `EAGAIN` if another turn ends meanwhile.
    fn all(lives: &[Life], lost: u64, one_edge: bool) -> Result<Self> {
        let mut taken = Self::nothing(lost);
        taken.intervals.reserve(lives.len(), GFP_KERNEL)?;
        // All allocations first: they may take as long as a turn.
        let mut rooms = KVec::with_capacity(lives.len(), GFP_KERNEL)?;
        for life in lives {
            let room = life
                .reader
                .as_ref()
                .map(|reader| reader.room())
                .transpose()?;
            rooms.push_within_capacity(room)?;
        }
        for (life, room) in lives.iter().zip(rooms) {
            let interval = match life.take(room) {
                Ok(interval) => interval,
                Err(err) => {
                    taken.put_back();
                    return Err(err);
                }
            };
            // It has been reserved.
            let _ = taken.intervals.push((life.clone(), interval), GFP_KERNEL);
        }
        if one_edge && !taken.has_one_edge() {
            taken.put_back();
            return Err(EAGAIN);
        }
        Ok(taken)
    }

    /// Returns whether all histograms that have not ended are shown up to the same edge: another
    /// turn may have ended while they were taken.
    fn has_one_edge(&self) -> bool {
        let live = self
            .intervals
            .iter()
            .filter(|(life, _)| life.ended.is_none());
        let mut ends = live.map(|(_, interval)| interval.end());
        let first = ends.next();
        ends.all(|end| Some(end) == first)
    }

    /// Gives all intervals back, which are not shown.
    pub(crate) fn put_back(&self) {
        for (life, interval) in &self.intervals {
            if let Some(reader) = &life.reader {
                reader.put_back(interval);
            }
        }
    }
}
