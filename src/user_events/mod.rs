// SPDX-License-Identifier: GPL-2.0

//! Events that programs describe, and write when somebody listens.
//!
//! A program opens `user_events_data` ([`file`]) and registers an event there: what it is like
//! ([`description`]), and a bit in its memory that is to say whether anybody listens ([`enabler`]).
//! By the original interface it is told a bit in a page that it maps instead ([`status_page`]).
//! The event is a trace event of the kernel from then on, for as long as somebody has a use for it
//! ([`registry`]).
//!
//! # Locks
//!
//! [`registry::Registry`], then event_mutex, then [`enabler::Enablers`], then mmap_lock of any
//! process. Whoever listens to an event calls us with event_mutex held, so nothing there takes the
//! registry: what is left to do is done by work of a queue. [`status_page::StatusPage`] is taken
//! inside of the first two, with nothing inside.

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
