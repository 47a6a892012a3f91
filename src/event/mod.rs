// SPDX-License-Identifier: GPL-2.0

//! What a trace event and one hit of it are: the description of its fields, its record, and the
//! context of a hit.
//!
//! Everything else is built on this folder, and it on nothing but the `kernel` crate.

pub mod address;
pub mod clock;
pub mod exponential;
pub mod field;
pub mod hit;
pub mod number;
pub mod pointed;
pub mod record;
pub mod stack;
pub mod unaligned;
pub mod words;

pub use address::{
    AddressField,
    Network, //
};
pub use clock::Clock;
pub use exponential::{
    Bucket,
    Exponential,
    Tenths,
    Unit,
    Whole, //
};
pub use field::{
    EventDesc,
    EventField,
    FilterType, //
};
pub use hit::{
    Context,
    Hit, //
};
pub use number::{
    Number,
    NumberType,
    Scale, //
};
pub use record::Record;
pub use stack::Stack;
pub use words::{
    words_of,
    Words, //
};
