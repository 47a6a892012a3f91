// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a run prints, for people ([`text`]) and for programs ([`json`], [`folded`]).

mod axis;
mod bars;
mod comparison;
mod comparison_json;
mod folded;
mod grid;
mod json;
mod label;
mod losses;
mod number;
mod page;
mod printer;
mod quantiles;
mod rows;
mod stacks;
mod text;
mod view;

use std::io;
use std::io::Write;

use rhist_core::names::Names;
use rhist_core::picture;
use rhist_core::question::Question;

use crate::args::Format;

pub use comparison::Comparison;
pub use label::Labels;
pub(crate) use number::percent;
pub(crate) use number::rate;
pub(crate) use number::until;
pub use page::Page;
pub use page::lines;
pub use page::plain;
pub use printer::Printer;
pub use view::View;

/// What is the same for all that a run prints.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// What was asked.
    pub question: &'a Question,
    /// Names of numbers.
    pub names: &'a Names,
    /// What is printed on.
    pub page: Page,
    /// For whom.
    pub format: Format,
    /// Whether each key is shown, or all of them together.
    pub by: bool,
    /// Without what is only said once, at the end: notes, cost and triggers.
    pub quiet: bool,
}

impl Screen<'_> {
    /// Prints what was counted. Errors are those of `out`.
    pub fn print(&self, out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
        if self.format == Format::Json {
            return json::print(self, out, view);
        }
        let table = self.labels().named(view.table);
        let view = View { table: &table, ..*view };
        match self.format {
            Format::Folded => folded::print(self, out, &view),
            Format::Svg => out.write_all(picture::of(self.question, &table).as_bytes()),
            Format::Text | Format::Json => text::print(self, out, &view),
        }
    }

    fn labels(&self) -> Labels<'_> {
        Labels {
            question: self.question,
            names: self.names,
        }
    }

    /// What is counted, in the plural.
    fn noun(&self) -> String {
        match self.question.noun.as_str() {
            "" => "hits".to_owned(),
            noun => page::plain(noun),
        }
    }
}

#[cfg(test)]
mod tests;
