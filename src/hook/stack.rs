// SPDX-License-Identifier: GPL-2.0

//! Where the stack of an event begins: at the function that was traced.
//!
//! Between that function and us are functions of the kernel whose number depends on the kind of the
//! event, on who else traces it, and on what the compiler inlined. Those next to the traced function
//! are known by their addresses. They are left out, as far as they follow one another without a gap,
//! with everything before them; and so is what a tracepoint keeps its call in, where the compiler
//! made a function of its own of that (`__do_trace_*()`, `include/linux/tracepoint.h`).

use crate::event::hit::STACK_DEPTH;
use crate::ftrace::event::Event;
use crate::ftrace::function;
use crate::ftrace::stack;
use crate::ftrace::stack::Frame;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use kernel::prelude::*;

/// Entries that are looked through for the beginning.
const BEFORE: usize = 24;

/// The same for a stack that begins with what calls `rhist_probe_hit_slow()`: that may be `rhist_probe_hit()`;
/// then come a probe of ours, what calls all probes of a tracepoint, and what a tracepoint keeps its call in.
const BEFORE_KNOWN: usize = 5;

/// What stands between a function next to traced ones and the traced one.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Nothing,
    /// An entry without a name.
    Trampoline,
    /// The place of a tracepoint: a function of its own or part of the traced one.
    Tracepoint,
}

/// A function next to traced ones.
#[derive(Clone, Copy)]
struct Handler {
    start: usize,
    end: usize,
    between: Between,
}

impl Handler {
    fn new(address: usize, between: Between) -> Option<Self> {
        let (start, size) = function::around(address)?;
        Some(Self {
            start,
            end: start + size,
            between,
        })
    }

    /// Whether it made the call that returns to `entry`.
    fn made(&self, entry: usize) -> bool {
        (self.start + 1..=self.end).contains(&entry)
    }
}

/// The functions next to traced ones, for events that are not fired by a tracepoint of their own,
/// and what follows them: system calls, kprobes, function probes, uprobes.
const HANDLERS: [(&CStr, Between); 23] = [
    (c"ftrace_syscall_enter", Between::Tracepoint),
    (c"ftrace_syscall_exit", Between::Tracepoint),
    (c"__traceiter_sys_enter", Between::Tracepoint),
    (c"__traceiter_sys_exit", Between::Tracepoint),
    (c"kprobe_dispatcher", Between::Nothing),
    (c"aggr_pre_handler", Between::Nothing),
    (c"kprobe_ftrace_handler", Between::Trampoline),
    (c"kprobe_int3_handler", Between::Nothing),
    (c"do_int3", Between::Nothing),
    (c"exc_int3", Between::Nothing),
    (c"asm_exc_int3", Between::Nothing),
    (c"opt_pre_handler", Between::Nothing),
    (c"optimized_callback", Between::Trampoline),
    (c"kretprobe_dispatcher", Between::Nothing),
    (c"kretprobe_rethook_handler", Between::Nothing),
    (c"rethook_trampoline_handler", Between::Nothing),
    (c"arch_rethook_trampoline_callback", Between::Nothing),
    (c"arch_rethook_trampoline", Between::Nothing),
    (c"fentry_dispatcher", Between::Nothing),
    (c"fprobe_ftrace_entry", Between::Trampoline),
    (c"uprobe_dispatcher", Between::Nothing),
    (c"uretprobe_dispatcher", Between::Nothing),
    (c"handler_chain", Between::Nothing),
];

/// Which entries are the places of tracepoints: names are only looked up for the first hit of each.
struct Tracepoints([AtomicUsize; 64]);

impl Tracepoints {
    const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; 64])
    }

    /// Whether `entry` returns to a function that is the place of a tracepoint. Any context.
    fn contain(&self, entry: usize) -> bool {
        // Kernel addresses have their upper bits in common: the answer takes the place of one.
        let (key, slots) = (entry << 1, self.0.len());
        let Some(slot) = self.0.get((entry ^ entry >> 6) % slots) else {
            return false;
        };
        let known = slot.load(Relaxed);
        if known & !1 == key {
            return known & 1 != 0;
        }
        let contained = function::begins(entry.wrapping_sub(1), c"__do_trace_");
        slot.store(key | usize::from(contained), Relaxed);
        contained
    }
}

/// The functions at addresses, as far as they are known. Fails with `ENOMEM`.
fn all(addresses: impl IntoIterator<Item = (usize, Between)>) -> Result<KVec<Handler>> {
    let mut handlers = KVec::new();
    for (address, between) in addresses {
        if let Some(handler) = Handler::new(address, between) {
            handlers.push(handler, GFP_KERNEL)?;
        }
    }
    Ok(handlers)
}

/// The functions between us and what an event traces.
pub(crate) struct Handlers {
    next_to_traced: KVec<Handler>,
    tracepoints: Tracepoints,
    /// What calls any trigger: where the stack begins for want of something better.
    caller: Option<Handler>,
}

impl Handlers {
    /// Those that all events share which no tracepoint of their own fires. Sleeps.
    pub(crate) fn shared() -> Result<Self> {
        let addresses = function::addresses(&HANDLERS.map(|(name, _)| name))?;
        let theirs = addresses.into_iter().zip(HANDLERS.map(|(_, b)| b));
        let ours = stack::syscall_handlers().map(|address| (address, Between::Tracepoint));
        let handlers = all(Iterator::chain(theirs, ours))?;
        let caller = function::address(c"event_triggers_call");
        Ok(Self {
            next_to_traced: handlers,
            tracepoints: Tracepoints::new(),
            caller: caller.and_then(|address| Handler::new(address, Between::Nothing)),
        })
    }

    /// Those of `event`, if a tracepoint of its own fires it.
    pub(crate) fn of(event: &Event) -> Result<Option<Self>> {
        let Some(addresses) = stack::handlers(event) else {
            return Ok(None);
        };
        let handlers = all(addresses.map(|address| (address, Between::Tracepoint)))?;
        Ok(Some(Self {
            next_to_traced: handlers,
            tracepoints: Tracepoints::new(),
            caller: None,
        }))
    }

    /// Where in `entries` the stack of the traced function begins.
    fn begin(&self, entries: &[usize]) -> usize {
        let handler = |entry: usize| self.next_to_traced.iter().find(|h| h.made(entry));
        let first = entries.iter().position(|&entry| handler(entry).is_some());
        let Some(mut begin) = first else {
            let caller = |&entry: &usize| self.caller.is_some_and(|caller| caller.made(entry));
            return entries.iter().position(caller).map_or(0, |at| at + 1);
        };
        let mut between = Between::Nothing;
        while let Some(handler) = entries.get(begin).copied().and_then(handler) {
            between = handler.between;
            begin += 1 + usize::from(between == Between::Trampoline);
        }
        let helper = |&entry: &usize| self.tracepoints.contain(entry);
        begin
            + usize::from(between == Between::Tracepoint && entries.get(begin).is_some_and(helper))
    }

    /// Writes the return addresses of the running hit to `to`, the one into the traced function
    /// first. Returns how many there are. Any context.
    ///
    /// `frame` is that of the probe, if it is one of ours.
    pub(super) fn stack(&self, frame: Option<Frame<'_>>, to: &mut [u64; STACK_DEPTH]) -> usize {
        let mut entries = [0; BEFORE + STACK_DEPTH];
        let before = match frame {
            Some(_) if stack::CAN_BEGIN => BEFORE_KNOWN,
            _ => BEFORE,
        };
        let len = stack::save(frame, &mut entries[..before + STACK_DEPTH]);
        let entries = entries.get(..len).unwrap_or_default();
        let before = entries.get(..before.min(len)).unwrap_or_default();
        // The kernel cannot look behind the trampoline of an optimized kprobe: that is all there is.
        let begin = self.begin(before).min(len.saturating_sub(1));
        let entries = entries.get(begin..).unwrap_or_default();
        for (to, &entry) in to.iter_mut().zip(entries) {
            *to = entry as u64;
        }
        entries.len().min(STACK_DEPTH)
    }
}
