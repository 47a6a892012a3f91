// SPDX-License-Identifier: GPL-2.0

//! Means that hits rely on: preemption that is off, pointers that are replaced while hits use them,
//! and inline atomic loads and stores, and their order.

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
