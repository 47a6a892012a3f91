// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of functions of programs. A word of a stack is a file and an offset in it, so functions
//! are looked up by their place in the file, not by address.
//!
//! [`Symbols`] reads the symbol tables of an ELF file, or of the file with its debugging
//! information, which [`debug_paths()`] finds. [`PerfMap`] reads the names of code that a program
//! compiled while it ran. A [`Name`] is shown demangled, and so that no terminal interprets it.
//!
//! Files may be hostile: time and memory are linear in the size of a file. Symbol tables that are
//! compressed (`.gnu_debugdata`) are not read, nor are tables in a file without section headers.

mod debug;
mod demangle;
mod error;
mod extent;
mod limits;
mod name;
mod names;
mod perf_map;
mod plt;
mod shown;
mod spans;
mod symbols;

pub use debug::debug_paths;
pub use error::Error;
pub use limits::MOST_LINES;
pub use limits::MOST_MAP_BYTES;
pub use limits::MOST_RAW;
pub use limits::MOST_SHOWN;
pub use limits::MOST_SYMBOLS;
pub use name::Name;
pub use perf_map::PerfMap;
pub use rhist_elf::build_id;
pub use shown::Shown;
pub use symbols::Symbols;
