// SPDX-License-Identifier: GPL-2.0

//! Events that programs describe, and write when somebody listens.

pub mod description;
pub mod field;
mod payload;
