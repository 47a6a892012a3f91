// SPDX-License-Identifier: GPL-2.0

//! Where the stack of an event begins: at the function that was traced.
//!
//! Between that function and us are functions of the kernel whose number depends on the kind of the
//! event, on who else traces it, and on what the compiler inlined. Those next to the traced function
//! are known by their addresses. They are left out, as far as they follow one another without a gap,
//! with everything before them.

use crate::ftrace::event::Event;
use crate::ftrace::function;
use crate::ftrace::stack;
use crate::hist::limits::STACK_DEPTH;
use kernel::prelude::*;

/// Entries that are looked through for the beginning.
const BEFORE: usize = 24;

/// A function next to traced ones.
#[derive(Clone, Copy)]
struct Handler {
    start: usize,
    end: usize,
    /// Entries without a name between it and the next function: trampolines.
    trampolines: usize,
}

impl Handler {
    fn new(address: usize, trampolines: usize) -> Option<Self> {
        let (start, size) = function::around(address)?;
        Some(Self {
            start,
            end: start + size,
            trampolines,
        })
    }

    /// Whether it made the call that returns to `entry`.
    fn made(&self, entry: usize) -> bool {
        (self.start + 1..=self.end).contains(&entry)
    }
}

/// The functions next to traced ones, for events that are not fired by a tracepoint of their own,
/// and how many trampolines follow them: system calls, kprobes, function probes, uprobes.
const HANDLERS: [(&CStr, usize); 23] = [
    (c"ftrace_syscall_enter", 0),
    (c"ftrace_syscall_exit", 0),
    (c"__traceiter_sys_enter", 0),
    (c"__traceiter_sys_exit", 0),
    (c"kprobe_dispatcher", 0),
    (c"aggr_pre_handler", 0),
    (c"kprobe_ftrace_handler", 1),
    (c"kprobe_int3_handler", 0),
    (c"do_int3", 0),
    (c"exc_int3", 0),
    (c"asm_exc_int3", 0),
    (c"opt_pre_handler", 0),
    (c"optimized_callback", 1),
    (c"kretprobe_dispatcher", 0),
    (c"kretprobe_rethook_handler", 0),
    (c"rethook_trampoline_handler", 0),
    (c"arch_rethook_trampoline_callback", 0),
    (c"arch_rethook_trampoline", 0),
    (c"fentry_dispatcher", 0),
    (c"fprobe_ftrace_entry", 1),
    (c"uprobe_dispatcher", 0),
    (c"uretprobe_dispatcher", 0),
    (c"handler_chain", 0),
];

/// The functions between us and what an event traces.
pub(crate) struct Handlers {
    next_to_traced: KVec<Handler>,
    /// What calls any trigger: where the stack begins for want of something better.
    caller: Option<Handler>,
}

impl Handlers {
    /// Those that all events share which no tracepoint of their own fires. Sleeps.
    pub(crate) fn shared() -> Result<Self> {
        let addresses = function::addresses(&HANDLERS.map(|(name, _)| name))?;
        let mut handlers = KVec::with_capacity(HANDLERS.len(), GFP_KERNEL)?;
        for (address, (_, trampolines)) in addresses.into_iter().zip(HANDLERS) {
            if let Some(handler) = Handler::new(address, trampolines) {
                handlers.push(handler, GFP_KERNEL)?;
            }
        }
        let caller = function::address(c"event_triggers_call");
        Ok(Self {
            next_to_traced: handlers,
            caller: caller.and_then(|address| Handler::new(address, 0)),
        })
    }

    /// Those of `event`, if a tracepoint of its own fires it.
    pub(crate) fn of(event: &Event) -> Result<Option<Self>> {
        let Some(addresses) = stack::handlers(event) else {
            return Ok(None);
        };
        let mut handlers = KVec::with_capacity(addresses.len(), GFP_KERNEL)?;
        for address in addresses {
            if let Some(handler) = Handler::new(address, 0) {
                handlers.push(handler, GFP_KERNEL)?;
            }
        }
        Ok(Some(Self {
            next_to_traced: handlers,
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
        while let Some(handler) = entries.get(begin).copied().and_then(handler) {
            begin += 1 + handler.trampolines;
        }
        begin
    }

    /// Writes the return addresses of the running hit to `to`, the one into the traced function
    /// first. Returns how many there are. Any context.
    #[inline(never)]
    pub(super) fn stack(&self, to: &mut [u64; STACK_DEPTH]) -> usize {
        let mut entries = [0; BEFORE + STACK_DEPTH];
        let len = stack::save(&mut entries);
        let entries = entries.get(..len).unwrap_or_default();
        let before = entries.get(..BEFORE.min(len)).unwrap_or_default();
        let entries = entries.get(self.begin(before)..).unwrap_or_default();
        for (to, &entry) in to.iter_mut().zip(entries) {
            *to = entry as u64;
        }
        entries.len().min(STACK_DEPTH)
    }
}
