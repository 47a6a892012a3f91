// SPDX-License-Identifier: GPL-2.0

//! Barriers.

#[cfg(loom)]
use loom::sync::atomic as host;
#[cfg(not(loom))]
use std::sync::atomic as host;

/// Earlier stores are not reordered after later ones.
pub fn smp_wmb() {
    host::fence(host::Ordering::Release);
}

/// Later loads are not reordered before earlier ones.
pub fn smp_rmb() {
    host::fence(host::Ordering::Acquire);
}
