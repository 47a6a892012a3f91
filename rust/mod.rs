// SPDX-License-Identifier: GPL-2.0

//! Wrappers over the C interface of the kernel's tracing that the `kernel` crate does not have.
//!
//! Nothing else in the module calls C. Each wrapper says in which context it may be used and what
//! it holds; what is not said otherwise is for task context and may sleep.

mod bindings;
pub(crate) mod boot;
pub(crate) mod clock;
pub(crate) mod cpu;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod function;
pub(crate) mod instance;
pub(crate) mod memory;
pub(crate) mod parameters;
pub(crate) mod poll;
pub(crate) mod queue;
pub(crate) mod shared_page;
mod shrinker;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod stack;
pub(crate) mod synthetic;
pub(crate) mod sysctl;
pub(crate) mod text;
pub(crate) mod tracefs;
pub(crate) mod user;
pub(crate) mod user_event;
pub(crate) mod user_mm;
