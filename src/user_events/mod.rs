// SPDX-License-Identifier: GPL-2.0

//! User events: trace events that programs register, and write while they are enabled.
//!
//! A program opens `user_events_data` ([`file`]) and registers an event by its description
//! ([`description`]) and a bit in the memory of the program that is set while the event is enabled
//! ([`enabler`]). In the original interface that is a bit in a page which the program maps
//! ([`status_page`]). The event ([`event`]) is a trace event of the kernel until it is unused
//! ([`registry`]). The memory that events take is limited ([`quota`]). All that is shared is in the
//! [`service`], which also removes unused events.
//!
//! # Locks
//!
//! [`registry::UserEventRegistry`], then event_mutex, then [`enabler::Enablers`]. Memory of
//! programs is waited for without any of these. The callbacks for enabling and disabling an event
//! run with event_mutex held, so they cannot lock the registry, and queue work for what needs it.
//! The lock of [`status_page::StatusPage`] nests inside the first two. The lock of [`quota::Quota`]
//! nests inside all of them. No lock is taken inside these two.

pub mod abi;
pub mod description;
mod enabler;
mod event;
pub mod field;
mod file;
mod payload;
mod quota;
mod registry;
mod service;
mod settings;
mod status_page;
mod table;

pub(crate) use file::DataFile;
pub(crate) use service::{
    Service,
    UserEvents, //
};
pub(crate) use settings::Settings;
