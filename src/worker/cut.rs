// SPDX-License-Identifier: GPL-2.0

//! A cut of histograms that readers of intervals have asked for, step by step.

use crate::{
    event::Moment,
    hist::Histogram,
    map::Generation,
    sync::Retired, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A histogram that is to be cut.
pub struct Asked {
    pub(super) histogram: Arc<Histogram>,
    /// After the edge, until no hit uses it.
    closed: Option<Retired<Generation>>,
    /// Whether it is being cut.
    cut: bool,
}

impl Asked {
    /// Asks for a cut of a histogram with readers.
    pub fn new(histogram: Arc<Histogram>) -> Self {
        Self {
            histogram,
            closed: None,
            cut: false,
        }
    }
}

/// A cut of several histograms. Nothing is allocated in it.
///
/// Before each step but the first one, a grace period has passed since the step before.
#[derive(Default)]
pub struct Cut {
    asked: KVec<Asked>,
    next: Step,
}

/// A step of a cut.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Step {
    /// The edge: publishes the other bank of each.
    #[default]
    Edge,
    /// Moves the counts of the closed banks to the totals.
    Fold,
    /// Ends the cut: elements with hits in the totals are decided.
    End,
}

impl Cut {
    /// The next step.
    pub fn next(&self) -> Step {
        self.next
    }

    /// The edge of `asked`, which is now: `edge`.
    pub fn edge(&mut self, asked: KVec<Asked>, edge: Moment) {
        self.asked = asked;
        for asked in &mut self.asked {
            asked.closed = asked.histogram.cut(edge).ok();
            asked.cut = asked.closed.is_some();
        }
        self.next = Step::Fold;
    }

    /// The generations of the edge, to be dropped after the grace period.
    pub fn closed(&mut self) -> impl Iterator<Item = Retired<Generation>> + '_ {
        let asked = self.asked.iter_mut();
        asked.filter_map(|asked| asked.closed.take())
    }

    fn cut(&self) -> impl Iterator<Item = &Histogram> {
        let cut = self.asked.iter().filter(|asked| asked.cut);
        cut.map(|asked| &*asked.histogram)
    }

    /// Folds the closed banks. Calls `between` now and then.
    pub fn fold(&mut self, between: impl Fn()) {
        self.cut().for_each(|histogram| histogram.fold(&between));
        self.next = Step::End;
    }

    /// Ends the cut.
    pub fn end(&mut self) {
        self.cut().for_each(Histogram::end_cut);
        *self = Self::default();
    }
}
