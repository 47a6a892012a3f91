// SPDX-License-Identifier: GPL-2.0

//! Synthetic events emitted by actions.
//!
//! Except on the fast path (`SynthTarget::leaf()`), an action calls the probes of the event
//! (`rust/synthetic.c`), so all listeners get it: ftrace, perf, triggers of C and of rhist, in all
//! instances. The probes get the values of the references as they are, and for each field the slot
//! of its value.
//!
//! Hits of such an event nest in the hit that emits it: its histograms may emit further events, and
//! so on. So the nesting depth on a CPU is limited, and strings and stacks are kept in per-CPU
//! memory instead of the kernel's stack.

use super::{
    origin::Origin,
    Dispatch, //
};
use crate::{
    event::Context,
    hist::spec::{
        target::{
            SynthField,
            SynthLeaf,
            SynthTarget,
            Wide, //
        },
        variable::ValueKind, //
    },
    limits::{
        VARS_MAX,
        WIDE_WORDS, //
    },
    rust::{
        cpu,
        instance::Instance,
        source::Receiver,
        stack,
        synthetic::{
            self,
            STACK_DEPTH, //
        },
        task::TaskArg, //
    },
    sync::{
        Load,
        PreemptOff,
        Store, //
    },
    text::copy, //
};
use core::{
    cell::UnsafeCell,
    slice,
    sync::atomic::{
        compiler_fence,
        Ordering::SeqCst, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

/// Maximum number of nested synthetic events on a CPU, in all contexts together. C has 4 for all
/// hits.
const DEPTH_MAX: usize = 4;

/// Per-CPU memory for events while they are emitted.
pub(crate) struct Scratch {
    cpus: KVVec<CpuScratch>,
}

#[repr(align(64))]
struct CpuScratch {
    /// Number of events being emitted.
    depth: Atomic<u64>,
    /// Memory for each of them, the outermost first.
    slots: KVVec<UnsafeCell<ScratchSlot>>,
}

/// Memory for one event with strings or stacks.
struct ScratchSlot {
    /// The values of the references, then the values of strings at addresses that references have.
    vals: [u64; 2 * VARS_MAX],
    /// The strings and stacks: at most one for each reference.
    places: KVVec<Wide>,
}

// SAFETY: The slots are only accessed in `with()`, by the CPU that they belong to, and each only by
// the context that has taken it.
unsafe impl Sync for Scratch {}

impl Scratch {
    /// Allocates it. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let mut cpus = KVVec::with_capacity(cpu::count(), GFP_KERNEL)?;
        for _ in 0..cpu::count() {
            let mut slots = KVVec::with_capacity(DEPTH_MAX, GFP_KERNEL)?;
            for _ in 0..DEPTH_MAX {
                let slot = ScratchSlot {
                    vals: [0; 2 * VARS_MAX],
                    places: KVVec::from_elem([0; WIDE_WORDS], VARS_MAX, GFP_KERNEL)?,
                };
                slots.push(UnsafeCell::new(slot), GFP_KERNEL)?;
            }
            let depth = Atomic::new(0);
            cpus.push(CpuScratch { depth, slots }, GFP_KERNEL)?;
        }
        Ok(Self { cpus })
    }

    /// Calls `run` with a slot for its exclusive use. Returns its result, or false if all slots are
    /// in use.
    #[inline]
    fn with(&self, preempt: PreemptOff<'_>, run: impl FnOnce(&mut ScratchSlot) -> bool) -> bool {
        let Some(cpu) = self.cpus.get(preempt.cpu()) else {
            return false;
        };
        let depth = cpu.depth.relaxed();
        let Some(slot) = cpu.slots.get(depth as usize) else {
            return false;
        };
        cpu.depth.release(depth + 1);
        compiler_fence(SeqCst);
        // SAFETY: The token proves that preemption is off, so no other task runs on this CPU. A
        // context that interrupts this one takes later slots, and has restored `depth` when this
        // one continues. So this context has the slot for itself.
        let done = run(unsafe { &mut *slot.get() });
        cpu.depth.release(depth);
        done
    }
}

/// A synthetic event for actions.
pub(crate) struct SynthEvent {
    event: synthetic::KernelSynthEvent,
    fields: KVec<SynthField>,
    /// Whether some fields are strings or stacks.
    wide: bool,
    scratch: Arc<Scratch>,
}

impl SynthEvent {
    /// Finds the synthetic event `name`; `None` if it does not exist. Takes event_mutex. Fails as
    /// [`synthetic::KernelSynthEvent::find`], and with `ENOMEM`.
    pub(crate) fn find(
        name: &CStr,
        scratch: Arc<Scratch>,
        instance: &Arc<Instance>,
    ) -> Result<Option<Self>> {
        let Some(event) = synthetic::KernelSynthEvent::find(name, instance)? else {
            return Ok(None);
        };
        let mut fields = KVec::new();
        event.for_each_field(|field| {
            let field = SynthField {
                type_: copy(field.type_.to_bytes())?,
                size: field.size,
                signed: field.signed,
                kind: match (field.is_stack, field.is_string) {
                    (true, _) => ValueKind::Stack,
                    (false, true) => ValueKind::Text,
                    (false, false) => ValueKind::Number,
                },
                dynamic: field.is_dynamic,
            };
            Ok(fields.push(field, GFP_KERNEL)?)
        })?;
        Ok(Some(Self {
            event,
            wide: fields.iter().any(|field| field.kind != ValueKind::Number),
            fields,
            scratch,
        }))
    }
}

impl SynthTarget for SynthEvent {
    fn fields(&self) -> &[SynthField] {
        &self.fields
    }

    fn emit(
        &self,
        context: &dyn Context,
        preempt: PreemptOff<'_>,
        vals: &[u64],
        idx: &[u32],
        write: &mut dyn FnMut(usize, &mut Wide) -> bool,
    ) -> bool {
        if !self.event.listened() {
            return true;
        }
        let origin = Origin(context);
        self.scratch.with(preempt, |slot| match self.wide {
            // SAFETY: All fields are numbers.
            false => unsafe { self.event.emit(&origin, preempt, vals, idx) },
            true => self.emit_wide(&origin, preempt, vals, idx, write, slot),
        })
    }

    #[inline]
    fn leaf<'a>(&'a self, preempt: PreemptOff<'a>) -> Option<&'a dyn SynthLeaf> {
        // SAFETY: Hits of synthetic events are received by `Dispatch`.
        let dispatch = unsafe { self.event.only_receiver::<Dispatch>(preempt)? };
        let leaf = dispatch.leaf(preempt);
        leaf.map(|_| dispatch as &dyn SynthLeaf)
    }
}

impl SynthEvent {
    /// Emits an event with strings or stacks.
    #[inline(never)]
    fn emit_wide(
        &self,
        origin: &Origin<'_>,
        preempt: PreemptOff<'_>,
        vals: &[u64],
        idx: &[u32],
        write: &mut dyn FnMut(usize, &mut Wide) -> bool,
        slot: &mut ScratchSlot,
    ) -> bool {
        // Writing them takes some of the stack, too, if they are a stack.
        if !stack::suffices(preempt) {
            return false;
        }
        slot.vals
            .iter_mut()
            .zip(vals)
            .for_each(|(to, val)| *to = *val);
        // Several fields may have the same value.
        let mut written = [ValueKind::Number; 2 * VARS_MAX];
        let mut places = slot.places.iter_mut();
        for (field, &n) in self.fields.iter().zip(idx) {
            let n = n as usize;
            let (Some(val), Some(written)) = (slot.vals.get_mut(n), written.get_mut(n)) else {
                return false;
            };
            if field.kind == *written {
                continue;
            }
            let place = match (*written, places.next()) {
                (ValueKind::Number, Some(place)) => place,
                _ => return false,
            };
            if !write(n, place) {
                return false;
            }
            let complete = match field.kind {
                ValueKind::Stack => complete_stack(place),
                _ => complete_text(place),
            };
            if !complete {
                return false;
            }
            *val = place.as_ptr() as u64;
            *written = field.kind;
        }
        // SAFETY: The value of each string or stack is the address of one that was written above.
        // Strings have at most 256 bytes, the last of which is a NUL. Stacks have 1 to
        // `STACK_DEPTH` entries, and are terminated as required. All are in memory that only this
        // hit uses.
        unsafe { self.event.emit(origin, preempt, &slot.vals, idx) }
    }
}

impl SynthLeaf for Dispatch {
    fn count(&self, preempt: PreemptOff<'_>, words: &[u64]) -> bool {
        // SAFETY: `words` has that many bytes, and any byte is a valid `u8`.
        let record = unsafe { slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
        let leaf = self.leaf(preempt);
        leaf.map(|leaf| self.hit_leaf(leaf, preempt, record, TaskArg::NONE))
            .is_some()
    }
}

/// Ends a string with a NUL, if it has none.
fn complete_text(place: &mut Wide) -> bool {
    if let Some(last) = place.last_mut() {
        let mut bytes = last.to_ne_bytes();
        bytes[size_of::<u64>() - 1] = 0;
        *last = u64::from_ne_bytes(bytes);
    }
    true
}

/// Truncates a stack to the entries that the kernel copies: with more entries, or an entry that is
/// 0, the record would have fewer than its count says, and uninitialized words. Returns false for
/// an empty stack, for which the kernel would not even write the count.
fn complete_stack(place: &mut Wide) -> bool {
    let [count, entries @ ..] = place;
    let len = entries
        .iter()
        .take(STACK_DEPTH)
        .take_while(|entry| **entry != 0)
        .count();
    *count = len as u64;
    len != 0
}
