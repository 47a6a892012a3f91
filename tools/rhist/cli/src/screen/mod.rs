// SPDX-License-Identifier: MIT OR Apache-2.0

//! Output of a run, for people (`text`) and for programs (`json`, `folded`).

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

use crate::options::Format;

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

/// Settings for all output of a run.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// The question that the counts answer.
    pub question: &'a Question,
    /// Names of numbers.
    pub names: &'a Names,
    /// The page to print on.
    pub page: Page,
    /// Output format.
    pub format: Format,
    /// Whether rows are shown by key, rather than their total.
    pub by: bool,
    /// Leaves out everything that is printed once at the end: notes, cost and triggers.
    pub quiet: bool,
}

impl Screen<'_> {
    /// Prints counts. Fails if `out` fails.
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

    /// Noun for the counted things, in the plural.
    fn noun(&self) -> String {
        match self.question.noun.as_str() {
            "" => "hits".to_owned(),
            noun => page::plain(noun),
        }
    }
}

#[cfg(test)]
mod tests;
