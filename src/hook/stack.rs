// SPDX-License-Identifier: GPL-2.0

//! Finds the traced function in the stack of a hit.
//!
//! Between that function and rhist's callback are functions of the kernel whose number depends on
//! the kind of the event, on other users of it, and on inlining by the compiler. The addresses of
//! the functions next to the traced one are known. They are skipped, if they follow one another
//! without a gap, with everything before them. So is `__do_trace_*()`
//! (`include/linux/tracepoint.h`), where the compiler has not inlined it.
//!
//! That function can only be recognized by its name. It is static, several of one name may exist,
//! and no exported function finds all of them. So the name of a return address is looked up at the
//! first hit with it, and the result is cached (`kallsyms_lookup()` by `%ps`, which takes no lock
//! and is used in NMIs by printk(), too).

use crate::{
    event::Stack,
    limits::STACK_DEPTH,
    rust::{
        event::Event,
        function,
        source::handlers,
        stack::{
            self,
            Frame, //
        },
    },
    sync::PreemptOff, //
};
use core::sync::atomic::{
    AtomicUsize,
    Ordering::Relaxed, //
};
use kernel::prelude::*;

/// The entries between a handler and the traced function.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Nothing,
    /// An entry outside functions: a trampoline made at runtime, `ftrace_call` or the like. If the
    /// function has several users, another handler, called by the trampoline, calls this one.
    Trampoline,
    /// `__do_trace_*()`, unless it is inlined.
    Tracepoint,
}

/// A function of the kernel that is called by, or instead of, traced ones.
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

    /// Returns whether the handler made the call that returns to `entry`.
    fn made(&self, entry: u64) -> bool {
        (self.start + 1..=self.end).contains(&(entry as usize))
    }
}

/// The handlers of events without a tracepoint of their own: system calls, kprobes, function
/// probes, uprobes. Each with the entries that follow it. A probed instruction of x86 is replaced
/// by `int3`, one of arm64 by `brk`.
static HANDLERS: [(&CStr, Between); 38] = [
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
    (c"kprobe_brk_handler", Between::Nothing),
    (c"do_el1_brk64", Between::Nothing),
    (c"el1_brk64", Between::Nothing),
    (c"el1h_64_sync_handler", Between::Nothing),
    (c"el1h_64_sync", Between::Nothing),
    (c"opt_pre_handler", Between::Nothing),
    (c"optimized_callback", Between::Trampoline),
    (c"kretprobe_dispatcher", Between::Nothing),
    (c"kretprobe_rethook_handler", Between::Nothing),
    (c"rethook_trampoline_handler", Between::Nothing),
    (c"kretprobe_brk_handler", Between::Nothing),
    (c"__kretprobe_trampoline_handler", Between::Nothing),
    (c"arch_rethook_trampoline_callback", Between::Nothing),
    (c"arch_rethook_trampoline", Between::Nothing),
    (c"arch_ftrace_ops_list_func", Between::Trampoline),
    (c"fentry_dispatcher", Between::Nothing),
    (c"fprobe_ftrace_entry", Between::Trampoline),
    (c"fexit_dispatcher", Between::Nothing),
    (c"fprobe_return", Between::Nothing),
    (c"ftrace_return_to_handler", Between::Nothing),
    (c"return_to_handler", Between::Nothing),
    // Linux 6.12.
    (c"fprobe_handler", Between::Trampoline),
    (c"fprobe_kprobe_handler", Between::Trampoline),
    (c"fprobe_exit_handler", Between::Nothing),
    (c"uprobe_dispatcher", Between::Nothing),
    (c"uretprobe_dispatcher", Between::Nothing),
    (c"handler_chain", Between::Nothing),
];

/// The names of the handlers, for the lookup. Static, since they would take much of the kernel's
/// stack.
static NAMES: [&CStr; HANDLERS.len()] = {
    let mut names = [c""; HANDLERS.len()];
    let mut handler = 0;
    while handler < names.len() {
        names[handler] = HANDLERS[handler].0;
        handler += 1;
    }
    names
};

/// A cache of return addresses, and whether each is in `__do_trace_*()`.
struct Tracepoints([AtomicUsize; 64]);

impl Tracepoints {
    const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; 64])
    }

    /// Returns whether `entry` returns to a `__do_trace_*()`. Any context.
    fn contain(&self, entry: u64) -> bool {
        let entry = entry as usize;
        // Kernel addresses have their upper bits in common: shift one out, and use the lowest bit
        // for the result.
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

/// Creates handlers for the functions at `addresses`, except unknown ones. Fails with `ENOMEM`.
fn all(addresses: impl IntoIterator<Item = (usize, Between)>) -> Result<KVec<Handler>> {
    let mut handlers = KVec::new();
    for (address, between) in addresses {
        if let Some(handler) = Handler::new(address, between) {
            handlers.push(handler, GFP_KERNEL)?;
        }
    }
    Ok(handlers)
}

/// The functions between rhist's callback and the traced function.
pub(crate) struct Handlers {
    next_to_traced: KVec<Handler>,
    tracepoints: Tracepoints,
    /// `event_triggers_call()`: the stack begins behind it if none of the handlers is found.
    caller: Option<Handler>,
    /// The frame of a hit is the traced function, which an interrupt of rhist has stopped.
    interrupted: bool,
}

impl Handlers {
    /// Creates the handlers for all events without a tracepoint of their own. May sleep. Fails with
    /// `ENOMEM`.
    pub(crate) fn shared() -> Result<Self> {
        let addresses = function::addresses(&NAMES)?;
        let kernels = addresses.into_iter().zip(HANDLERS.iter().map(|(_, b)| *b));
        let probes = handlers::of_syscalls().map(|address| (address, Between::Tracepoint));
        let ours = handlers::of_probe_events().map(|address| (address, Between::Nothing));
        let handlers = all(Iterator::chain(Iterator::chain(kernels, probes), ours))?;
        let caller = function::address(c"event_triggers_call");
        Ok(Self {
            next_to_traced: handlers,
            tracepoints: Tracepoints::new(),
            caller: caller.and_then(|address| Handler::new(address, Between::Nothing)),
            interrupted: false,
        })
    }

    /// Creates the handlers of `event`; `None` if it has no tracepoint of its own. Fails with
    /// `ENOMEM`.
    pub(crate) fn of(event: &Event) -> Result<Option<Self>> {
        if event.is_sample() {
            return Ok(Some(Self {
                next_to_traced: KVec::new(),
                tracepoints: Tracepoints::new(),
                caller: None,
                interrupted: true,
            }));
        }
        let Some(addresses) = handlers::of_event(event) else {
            return Ok(None);
        };
        let handlers = all(addresses.map(|address| (address, Between::Tracepoint)))?;
        Ok(Some(Self {
            next_to_traced: handlers,
            tracepoints: Tracepoints::new(),
            caller: None,
            interrupted: false,
        }))
    }

    /// The index in `entries` at which the stack of the traced function begins.
    fn begin(&self, entries: &[u64]) -> usize {
        let handler = |entry: u64| self.next_to_traced.iter().find(|h| h.made(entry));
        let first = entries.iter().position(|&entry| handler(entry).is_some());
        let Some(mut begin) = first else {
            let caller = |&entry: &u64| self.caller.is_some_and(|caller| caller.made(entry));
            return entries.iter().position(caller).map_or(0, |at| at + 1);
        };
        let mut between = Between::Nothing;
        let at = |index: usize| entries.get(index).copied().and_then(handler);
        while let Some(handler) = at(begin) {
            between = handler.between;
            begin += 1;
            begin += usize::from(between == Between::Trampoline && at(begin).is_none());
        }
        let helper = |&entry: &u64| self.tracepoints.contain(entry);
        begin
            + usize::from(between == Between::Tracepoint && entries.get(begin).is_some_and(helper))
    }

    /// Writes the return addresses of the current hit to `to`, beginning with the one into the
    /// traced function. `frame` is the frame of the function of rhist that the kernel has called.
    /// Any context.
    pub(super) fn stack(&self, frame: Frame<'_>, preempt: PreemptOff<'_>, to: &mut Stack) {
        let before = match stack::CAN_BEGIN {
            true => frame.before,
            false => Stack::BEFORE.max(frame.before),
        };
        let most = before + STACK_DEPTH;
        let Some(entries) = to.fill(most, |places| stack::save(frame, places, preempt)) else {
            return;
        };
        let before = entries.get(..before).unwrap_or(entries);
        // The unwinder does not get past the trampoline of an optimized kprobe: then the trampoline
        // is shown.
        let begin = match !stack::CAN_BEGIN && self.interrupted {
            true => before
                .iter()
                .position(|&entry| entry == frame.ip())
                .unwrap_or(0),
            false => self.begin(before).min(entries.len().saturating_sub(1)),
        };
        to.begin_at(begin);
    }
}
