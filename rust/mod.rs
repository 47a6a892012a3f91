// SPDX-License-Identifier: GPL-2.0

//! All C of the module, and all Rust that touches C: wrappers for interfaces of the kernel that the
//! `kernel` crate lacks, and the functions that the kernel calls.
//!
//! The rest of the module, `src/`, calls no C. Each wrapper documents the context in which it may
//! be used and the locks that it takes; the default is task context, where it may sleep.

mod bindings;
pub(crate) mod boot;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod cpu;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod function;
pub(crate) mod instance;
pub(crate) mod kick;
pub(crate) mod mapped_file;
pub(crate) mod memory;
pub(crate) mod parameters;
pub(crate) mod poll;
pub(crate) mod queue;
pub(crate) mod sample;
pub(crate) mod shared_page;
mod shrinker;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod stack;
pub(crate) mod synthetic;
pub(crate) mod sysctl;
pub(crate) mod task;
pub(crate) mod text;
pub(crate) mod tracefs;
pub(crate) mod user;
pub(crate) mod user_event;
pub(crate) mod user_mm;
pub(crate) mod user_stack;
