// SPDX-License-Identifier: MIT OR Apache-2.0

//! Symbols of small files, of hostile ones, and of the programs of this machine.

mod binutils;
mod debug;
mod exercise;
mod file;
mod hostile;
mod load;
#[path = "../../../elf/tests/machine/mod.rs"]
mod machine;
mod maps;
mod model;
mod names;
mod places;
mod plt;
mod properties;
