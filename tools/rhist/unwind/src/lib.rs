// SPDX-License-Identifier: MIT OR Apache-2.0

//! Unwind information of programs: compiles the section `.eh_frame` of an ELF file to a table, by
//! which the kernel module walks stacks of programs without frame pointers.
//!
//! [`compile()`] reads the section with gimli, and makes of each row a [`Rule`] of 12 bytes, if one
//! says the same. [`Rules`] has the table, its format, and its limits.
//!
//! Files may be hostile: time and memory are linear in the size of a file, and errors name the
//! fault.

mod code;
mod compiler;
mod eh_frame;
mod entries;
mod error;
mod form;
mod frames;
mod limits;
mod rule;
mod rules;
mod translation;

pub use compiler::compile;
pub use error::Error;
pub use form::Form;
pub use limits::MOST_PAGES;
pub use limits::MOST_ROWS;
pub use limits::MOST_RULES;
pub use rule::Rule;
pub use rules::Rules;
