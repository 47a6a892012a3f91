// SPDX-License-Identifier: GPL-2.0

//! The table of objects that hits use when they take stacks of programs.

use crate::{
    sync::{
        Load,
        PreemptOff, //
    },
    user_stack::Objects,
};
use core::ptr;
use kernel::sync::{
    atomic::{
        Atomic,
        Full, //
    },
    rcu,
    Arc, //
};

/// The table of the module, from `Arc::into_raw()`; null if no histogram has needed one yet. The
/// reference to an old table is dropped a grace period after it was replaced.
static CURRENT: Atomic<*mut Objects> = Atomic::new(ptr::null_mut());

/// The table. Any context.
#[inline(always)]
pub(super) fn current<'a>(_preempt: PreemptOff<'a>) -> Option<&'a Objects> {
    // SAFETY: Null, or a table with a reference that is kept for a grace period after it was
    // replaced, which does not end before preemption is on again.
    unsafe { CURRENT.acquire().as_ref() }
}

/// Replaces the table, and waits until hits have stopped using an old one. Task context, sleeps.
pub(crate) fn set(objects: Option<Arc<Objects>>) {
    let new = objects.map_or(ptr::null_mut(), |objects| Arc::into_raw(objects).cast_mut());
    let old = CURRENT.xchg(new, Full);
    if !old.is_null() {
        rcu::synchronize_rcu();
        // SAFETY: The pointer came from `Arc::into_raw()`, and the exchange has taken over its
        // reference. Hits that have found it have ended.
        drop(unsafe { Arc::from_raw(old) });
    }
}
