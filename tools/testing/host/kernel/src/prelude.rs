// SPDX-License-Identifier: GPL-2.0

//! Names that all code imports, as in the kernel.

pub use core::mem::align_of;
pub use core::mem::align_of_val;
pub use core::mem::size_of;
pub use core::mem::size_of_val;
pub use core::pin::Pin;

pub use core::ffi::CStr;

pub use crate::alloc::flags::*;
pub use crate::alloc::Box;
pub use crate::alloc::KBox;
pub use crate::alloc::KVBox;
pub use crate::alloc::KVVec;
pub use crate::alloc::KVec;
pub use crate::alloc::VBox;
pub use crate::alloc::VVec;
pub use crate::alloc::Vec;
pub use crate::alloc::Zeroable;
pub use crate::error::code::*;
pub use crate::error::Error;
pub use crate::error::Result;
pub use crate::fmt;
pub use crate::static_assert;
