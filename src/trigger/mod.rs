// SPDX-License-Identifier: GPL-2.0

//! The language of the `trigger` files: from text to a syntax tree with positions.
//!
//! The parser depends on the text alone. Whether a field exists or is a string, and whether a
//! variable is known, depends on the event, and is checked in `src/hist/spec/`.
//!
//! Of several errors in a command only the first one is reported, so the order of the checks is
//! visible to users. It is the order of C: tokens, syntax of the actions, assignments, values,
//! variables, keys, sort keys, filter, meaning of the actions. Some of these steps look up events
//! and fields, so a syntax error may come after a failed lookup. Syntax errors that no lookup can
//! precede are returned by [`Trigger::parse`]. The others stay in the tree and are reported when it
//! is checked in that order: an [`Expr::Bad`] leaf, the last item of a [`ParsedList`], or a field
//! that is a `Result`.
//!
//! Source of the grammar, of the order and of the errors: `kernel/trace/trace_events_hist.c` and
//! `kernel/trace/trace_events_trigger.c` of Linux 7.3.

mod clause;
mod command;
pub mod enable;
mod error;
pub mod error_log;
mod expr;
mod list;
mod listing;
mod modifier;
mod number;
mod parser;
mod room;
mod text;
mod tree;

pub use clause::{
    Clause,
    Clauses,
    Quantile, //
};
pub use command::Command;
pub use error::{
    Error,
    ErrorText,
    Hint,
    HintText, //
};
pub use error_log::ErrorLog;
pub use expr::{
    Expr,
    FieldRef,
    Operator,
    Qualifier,
    VarRefText, //
};
pub use list::ParsedList;
pub use listing::{
    count_same_oldest,
    merge_by_age,
    KernelTriggers, //
};
pub use modifier::{
    Modifier,
    ModifierKind,
    Place, //
};
pub use number::number;
pub use room::{
    Expire,
    Full, //
};
pub use text::{
    contains,
    Span, //
};
pub use tree::{
    Act,
    Action,
    ActionHandler,
    Assignment,
    FilterClause,
    MapSize,
    Order,
    Param,
    SortField,
    Trigger, //
};
