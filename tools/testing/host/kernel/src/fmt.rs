// SPDX-License-Identifier: GPL-2.0

//! Formatting.

pub use core::fmt::Arguments;
pub use core::fmt::Debug;
pub use core::fmt::Display;
pub use core::fmt::Error;
pub use core::fmt::Formatter;
pub use core::fmt::Result;
pub use core::fmt::Write;
