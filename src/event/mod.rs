// SPDX-License-Identifier: GPL-2.0

//! Trace events and their hits: the description of an event's fields, its record, and the context
//! of a hit.
//!
//! All other folders are built on this one, which depends on nothing but the `kernel` crate.

pub mod address;
pub mod clock;
pub mod exponential;
pub mod field;
pub mod group;
pub mod hit;
pub mod long;
pub mod moment;
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
pub use group::{
    Group,
    GroupNodes,
    GroupPlace,
    GroupTask,
    Groups, //
};
pub use hit::{
    Context,
    Hit, //
};
pub use long::{
    LongBuffer,
    LongBuffers,
    LONG_WORDS, //
};
pub use moment::{
    Clocks,
    Moment, //
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
    Tail,
    Words, //
};
