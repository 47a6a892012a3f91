// SPDX-License-Identifier: GPL-2.0

//! The pure parts of the module, compiled unchanged for the host.
//!
//! Items that are private in the module are public here, so that tests reach them.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod counts;
pub mod cpu;
#[path = "../../../../../src/errno.rs"]
pub mod errno;
#[path = "../../../../../src/event/mod.rs"]
pub mod event;
#[cfg(not(loom))]
#[path = "../../../../../src/filter/mod.rs"]
pub mod filter;
#[cfg(not(loom))]
#[path = "../../../../../src/engine"]
pub mod engine {
    //! Execution of commands: its pure parts.

    pub mod failure;
    pub mod hist_command;
    pub mod host;
    pub mod triggers;
}
#[cfg(not(loom))]
#[path = "../../../../../src/hist/mod.rs"]
pub mod hist;
#[cfg(loom)]
#[path = "interned.rs"]
pub mod hist;
#[cfg(not(loom))]
#[path = "../../../../../src/hook"]
pub mod hook {
    //! Handling of hits: its pure parts.

    pub mod trigger;
}
#[cfg(not(loom))]
#[path = "../../../../../src/limits.rs"]
pub mod limits;
#[cfg(loom)]
#[path = "../../../../../src"]
pub mod limits {
    //! The limits, but stacks have one word: loom looks at each.

    #[allow(unreachable_pub)]
    #[path = "limits.rs"]
    mod module;

    pub use module::*;

    /// Bytes of a stored stack.
    pub const STACK_SIZE: u32 = 8;
}
#[path = "../../../../../src/map/mod.rs"]
pub mod map;
#[path = "../../../../../src/sync/mod.rs"]
pub mod sync;
#[path = "../../../../../src/text.rs"]
pub mod text;
#[cfg(not(loom))]
#[path = "../../../../../src/trigger/mod.rs"]
pub mod trigger;
#[cfg(not(loom))]
#[path = "../../../../../src/user_stack/mod.rs"]
pub mod user_stack;
#[cfg(not(loom))]
#[path = "../../../../../src/user_events"]
pub mod user_events {
    //! Events of programs: their pure parts.

    pub mod abi;
    pub mod description;
    pub mod field;
    mod payload;
}
#[cfg(not(loom))]
#[path = "../../../../../src/worker"]
pub mod worker {
    //! The worker of all histograms: its pure part.

    pub mod cut;
}
