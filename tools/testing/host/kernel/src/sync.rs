// SPDX-License-Identifier: GPL-2.0

//! Synchronisation.

pub mod atomic;
