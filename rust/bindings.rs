// SPDX-License-Identifier: GPL-2.0

//! Bindings that bindgen generates from `rust/bindings.h` for the kernel that the module is built
//! for.

// If rustc knows this lint, it reports many cases in bindgen's output.
#![cfg_attr(CONFIG_RUSTC_HAS_UNNECESSARY_TRANSMUTES, allow(unnecessary_transmutes))]
#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused
)]

use kernel::ffi;

include!(env!("RHIST_BINDINGS"));
