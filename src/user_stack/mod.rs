// SPDX-License-Identifier: GPL-2.0

//! Stacks of programs, most of which are compiled without frame pointers.
//!
//! The [rules](Rules) of a file say for each of its instructions where the registers of the caller
//! are. The command compiles them from the file's `.eh_frame`. A [walk](Walk) follows them, and
//! frame pointers in files without rules. The result are [words](Word) without addresses of the
//! program.
//!
//! Programs, files and rules are not trusted: see `Documentation/user-stacks.rst`.

mod end;
mod known;
mod learned;
mod objects;
mod rules;
mod walk;
mod word;

pub use self::{
    end::End,
    known::{
        Era,
        FileVersion,
        Here, //
    },
    learned::{
        Key,
        Plain,
        Rulebook, //
    },
    objects::{
        ExecFiles,
        FileIdentity,
        Held,
        Identity,
        Object,
        ObjectState,
        Objects, //
    },
    rules::{
        Fault,
        Kind,
        Machine,
        Rule,
        Rules,
        Upload, //
    },
    walk::{
        Mapping,
        Near,
        Program,
        Registers,
        Walk, //
    },
    word::{
        Place,
        Word, //
    },
};
