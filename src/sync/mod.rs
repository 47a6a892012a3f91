// SPDX-License-Identifier: GPL-2.0

//! Synchronization for hits: a token for disabled preemption, RCU-protected pointers, inline atomic
//! loads and stores, and barriers.

mod barrier;
mod load;
mod preempt;
mod published;

pub use barrier::{
    smp_rmb,
    smp_wmb, //
};
pub(crate) use load::{
    Load,
    Store, //
};
pub use preempt::PreemptOff;
pub use published::{
    Published,
    Retired, //
};
