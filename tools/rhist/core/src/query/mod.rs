// SPDX-License-Identifier: MIT OR Apache-2.0

//! A question as it is asked, before it is planned for a machine: a recipe, `count`, or `between`.
//!
//! The command line and the configuration of the service each make one.

mod check;
mod error;
mod model;
mod plans;
pub mod probe;
mod subject;
mod text;
mod words;

pub use error::Error;
pub use error::Written;
pub use model::Query;
pub use model::one_line;
pub use text::QueryText;
