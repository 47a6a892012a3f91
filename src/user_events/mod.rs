// SPDX-License-Identifier: GPL-2.0

//! Trace events that programs describe, and write while they are enabled.
//!
//! A program opens `user_events_data` ([`file`]) and registers an event: a description of it
//! ([`description`]), and a bit in the memory of the program that is set while the event is enabled
//! ([`enabler`]). In the original interface that is a bit in a page which the program maps
//! ([`status_page`]). From then on it is a trace event of the kernel, until nobody uses it any more
//! ([`registry`]).
//!
//! # Locks
//!
//! [`registry::Registry`], then event_mutex, then [`enabler::Enablers`], then mmap_lock of any
//! process. The callbacks of an event that is enabled or disabled have event_mutex held, so none of
//! them takes the registry: what needs that is left to a work item. [`status_page::StatusPage`] nests
//! inside the first two, and nothing nests inside it.

pub mod abi;
pub mod description;
mod enabler;
pub mod field;
mod file;
mod payload;
mod registry;
mod settings;
mod status_page;
mod table;

pub(crate) use file::DataFile;
pub(crate) use registry::Service;
pub(crate) use registry::UserEvents;
pub(crate) use settings::Settings;
