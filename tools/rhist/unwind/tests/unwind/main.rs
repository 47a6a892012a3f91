// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables of small files, of hostile ones, and of the programs of this machine.

mod exercise;
mod file;
mod form;
mod hostile;
mod load;
#[path = "../../../elf/tests/machine/mod.rs"]
mod machine;
mod malformed;
mod places;
mod properties;
mod readelf;
mod table;
mod translated;
