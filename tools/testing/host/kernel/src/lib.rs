// SPDX-License-Identifier: GPL-2.0

//! A stand-in for the kernel crate on the host: the same names, signatures and errors, for the
//! subset that the pure parts of the module use.
//!
//! Memory comes from the host's allocator, and [`fault`] makes any allocation fail. Atomics are
//! the standard library's, or loom's with `--cfg loom`; [`interrupt`] puts another context between
//! any two of them.

pub mod alloc;
pub mod error;
pub mod fault;
pub mod fmt;
pub mod interrupt;
pub mod prelude;
pub mod sync;

/// Makes [`core::fmt::Arguments`], as `format_args!` does.
#[macro_export]
macro_rules! fmt {
    ($($arg:tt)*) => {
        ::core::format_args!($($arg)*)
    };
}

/// Makes a [`KVec`](alloc::KVec) of the arguments; a `Result` unless it is empty.
#[macro_export]
macro_rules! kvec {
    () => {
        $crate::alloc::KVec::new()
    };
    ($elem:expr; $n:expr) => {
        $crate::alloc::KVec::from_elem($elem, $n, $crate::alloc::flags::GFP_KERNEL)
    };
    ($($x:expr),+ $(,)?) => {
        $crate::alloc::KVec::from_array([$($x),+])
    };
}

/// Makes a [`Mutex`](sync::Mutex) of the value.
#[macro_export]
macro_rules! new_mutex {
    ($value:expr) => {
        $crate::sync::Mutex::new($value)
    };
}

/// Makes a [`CondVar`](sync::CondVar).
#[macro_export]
macro_rules! new_condvar {
    ($name:literal) => {
        $crate::sync::CondVar::default()
    };
}

/// Fails the build unless the constant condition holds.
#[macro_export]
macro_rules! static_assert {
    ($($arg:tt)*) => {
        const _: () = ::core::assert!($($arg)*);
    };
}
