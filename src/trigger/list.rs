// SPDX-License-Identifier: GPL-2.0

//! Lists in a hist trigger, which may end with an error.

use super::{
    error::Error,
    text::Span, //
};
use kernel::prelude::*;

/// A list of items in the order in which they are checked. It may end with an error.
pub struct ParsedList<T> {
    /// The list as written, without its keyword. Actions and assignments may be many tokens: the
    /// last one. `None` if it is not given.
    pub text: Option<Span>,
    pub(super) items: KVec<T>,
    pub(super) error: Option<Error>,
    /// The text after the error, which was not parsed.
    pub rest: Option<Span>,
}

impl<T> ParsedList<T> {
    pub(super) fn new(text: Option<Span>) -> Self {
        Self {
            text,
            items: KVec::new(),
            error: None,
            rest: None,
        }
    }

    pub(super) fn fail(&mut self, error: Error, rest: Option<Span>) {
        self.error = Some(error);
        self.rest = rest;
    }

    /// The items, then the error, if the list ends with one.
    pub fn iter(&self) -> impl Iterator<Item = Result<&T, Error>> + '_ {
        Iterator::chain(self.items.iter().map(Ok), self.error.map(Err))
    }

    /// The items without the error.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The error at the end of the list, if any.
    pub fn error(&self) -> Option<Error> {
        self.error
    }
}
