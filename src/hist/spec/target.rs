// SPDX-License-Identifier: GPL-2.0

//! The targets of actions: synthetic events, and the conditional snapshot of a tracing directory.

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

/// The targets of a trigger's actions, one for each action. Owned by the trigger alone: readers of
/// its histogram share the spec, but must not keep a synthetic event or the snapshot in use after
/// the trigger was removed.
#[derive(Default)]
pub struct Targets(pub(in crate::hist) KVec<Target>);

/// The target of an action.
pub(in crate::hist) enum Target {
    /// None: `save()` stores in the entry.
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
    /// Size in bytes.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
    /// The kind of its value.
    pub kind: ValueKind,
    /// Whether it is a string of any length.
    pub dynamic: bool,
}

impl SynthField {
    /// Returns whether a variable can be written to it (`check_synth_field()`). Field variables
    /// count as unsigned.
    pub(super) fn takes(&self, type_: &[u8], size: u32, signed: bool, kind: ValueKind) -> bool {
        let text = self.kind == ValueKind::Text;
        if text && self.dynamic && trigger::contains(type_, b"char[") {
            return true;
        }
        match (self.kind, kind) {
            (ValueKind::Stack, ValueKind::Stack) => true,
            (ValueKind::Stack, _) | (_, ValueKind::Stack | ValueKind::UserStack) => false,
            _ if self.type_[..] == *type_ => true,
            // C would store the address of the string as the number.
            (ValueKind::Number, ValueKind::Text) => false,
            // A number for a string is the string's address.
            _ => self.size == size && (text || self.signed == signed),
        }
    }
}

/// A synthetic event of the kernel, which cannot be deleted while it is referenced.
pub trait SynthTarget: Send + Sync {
    /// Its fields, in the order of the record.
    fn fields(&self) -> &[SynthField];

    /// Emits the event, if it has a listener. Any context.
    ///
    /// Its hits have the stack of the hit with this `context`, which emits it.
    ///
    /// Field `n` gets value `idx[n]`. Numbers are in `vals`. `write` writes a string or a stack:
    /// the characters with at least one NUL behind them; or the number of return addresses, and the
    /// addresses.
    ///
    /// Returns false if the event was not emitted: `write` has returned false, or too many events
    /// are nested on this CPU.
    fn emit(
        &self,
        context: &dyn Context,
        preempt: PreemptOff<'_>,
        vals: &[u64],
        idx: &[u32],
        write: &mut dyn FnMut(usize, &mut Wide) -> bool,
    ) -> bool;

    /// The histogram that is the only listener, if its hits call nothing that can be traced. Any
    /// context.
    fn leaf<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<&'a dyn SynthLeaf>;
}

/// A histogram that is the only listener of a synthetic event, and whose hits call nothing that can
/// be traced.
pub trait SynthLeaf {
    /// Counts a hit of a record that begins with `words`: the head, of which only the process id is
    /// read, and a word for each field of the event. Returns false, and has done nothing, if the
    /// event has got another listener. Any context.
    fn count(&self, preempt: PreemptOff<'_>, words: &[u64]) -> bool;
}

/// A string or a stack, as a variable or a field of a synthetic event.
pub type Wide = [u64; WIDE_WORDS];

/// The conditional snapshot of a tracing directory.
pub trait SnapshotTarget: Send + Sync {
    /// Takes a snapshot during `hit`, if `decide` returns true; it is called for one hit at a time.
    /// Any context.
    fn take(&self, hit: &Hit<'_>, decide: &mut dyn FnMut() -> bool);
}
