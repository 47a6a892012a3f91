// SPDX-License-Identifier: GPL-2.0

//! What actions call: synthetic events, and the conditional snapshot of a tracing directory.

use kernel::prelude::*;

use super::variable::ValueKind;
use crate::{
    event::{
        Context,
        Hit, //
    },
    limits::WIDE_WORDS,
    sync::PreemptOff,
    trigger, //
};

/// What the actions of a trigger call, one for each action. Owned by the trigger alone: readers of its histogram share
/// the spec, but must not keep a synthetic event or the snapshot in use after the trigger was removed.
#[derive(Default)]
pub struct Targets(pub(in crate::hist) KVec<Target>);

/// What an action calls.
pub(in crate::hist) enum Target {
    /// Nothing: `save()` stores in the entry.
    Save,
    /// The synthetic event of `trace()`.
    Trace(KBox<dyn SynthTarget>),
    /// The conditional snapshot of `snapshot()`.
    Snapshot(KBox<dyn SnapshotTarget>),
}

/// A field of a synthetic event (`struct synth_field`).
pub struct SynthField {
    /// Its type as text.
    pub type_: KVec<u8>,
    /// Bytes it takes.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
    /// What it holds.
    pub kind: ValueKind,
    /// Whether it is characters of any length.
    pub dynamic: bool,
}

impl SynthField {
    /// Whether a variable can be written to it (`check_synth_field()`). Field variables count as unsigned.
    pub(super) fn takes(&self, type_: &[u8], size: u32, signed: bool, kind: ValueKind) -> bool {
        let text = self.kind == ValueKind::Text;
        if text && self.dynamic && trigger::contains(type_, b"char[") {
            return true;
        }
        match (self.kind, kind) {
            (ValueKind::Stack, ValueKind::Stack) => true,
            (ValueKind::Stack, _) | (_, ValueKind::Stack) => false,
            _ if self.type_[..] == *type_ => true,
            // C passes the address of a string for a number.
            (ValueKind::Number, ValueKind::Text) => false,
            // A number for a string is the address of one.
            _ => self.size == size && (text || self.signed == signed),
        }
    }
}

/// A synthetic event of the kernel, which cannot be deleted while it is referenced.
pub trait SynthTarget: Send + Sync {
    /// Its fields.
    fn fields(&self) -> &[SynthField];

    /// Makes it happen, if anybody listens. Any context.
    ///
    /// Its hits have the stack of the hit with this `context`, which makes it happen.
    ///
    /// Field `n` gets value `idx[n]`. Numbers are in `vals`. A string or a stack is written by
    /// `write`: the characters with at least one NUL behind them; the number of return addresses, and those.
    ///
    /// False: it did not happen. `write` has returned false, or too many events happen within each other on this CPU.
    fn emit(
        &self,
        context: &dyn Context,
        preempt: PreemptOff<'_>,
        vals: &[u64],
        idx: &[u32],
        write: &mut dyn FnMut(usize, &mut Wide) -> bool,
    ) -> bool;

    /// The histogram that is all that listens, if a hit of it calls nothing that can be traced. Any context.
    fn leaf<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<&'a dyn SynthLeaf>;
}

/// A histogram that is all that listens to a synthetic event, and whose hits call nothing that can be traced.
pub trait SynthLeaf {
    /// Counts a hit of a record that begins with `words`: the head, of which only the process id counts, and a word for each
    /// field, of which there are no more. Returns false, and has done nothing, if it is all that listens no more. Any context.
    fn count(&self, preempt: PreemptOff<'_>, words: &[u64]) -> bool;
}

/// A string or a stack, as a variable or a field of a synthetic event holds it.
pub type Wide = [u64; WIDE_WORDS];

/// The conditional snapshot of a tracing directory.
pub trait SnapshotTarget: Send + Sync {
    /// Takes a snapshot during `hit`, if `decide` says so, which is called for one hit at a time. Any context.
    fn take(&self, hit: &Hit<'_>, decide: &mut dyn FnMut() -> bool);
}
