// SPDX-License-Identifier: GPL-2.0

//! Synchronisation.

pub mod arc;
pub mod atomic;

pub use arc::Arc;
