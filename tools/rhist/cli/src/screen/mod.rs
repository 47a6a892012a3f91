// SPDX-License-Identifier: MIT OR Apache-2.0

//! Output of a run, for people (`text`) and for programs (`json`, `folded`).

mod axis;
mod bars;
mod comparison;
mod comparison_json;
mod comparison_text;
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
mod settings;
mod stacks;
mod text;
mod view;

use std::io;
use std::io::Write;

use rhist_core::names::Names;
use rhist_core::picture;
use rhist_core::picture::Side;

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
pub use settings::Screen;
pub use view::View;

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

    /// Prints a comparison. `names` belong to the first recording, the names of the screen to the
    /// second one. Fails if `out` fails.
    pub fn compare(&self, out: &mut dyn Write, names: &Names, comparison: &Comparison<'_>) -> io::Result<()> {
        let screens = [&Screen { names, ..*self }, self];
        let tables = || [0, 1].map(|i| screens[i].labels().named(&comparison.samples[i].total));
        match self.format {
            Format::Text => comparison_text::print(self, out, comparison),
            Format::Json => comparison_json::print(self, out, comparison),
            Format::Folded => {
                let tables = tables();
                folded::print_both(out, [0, 1].map(|i| (screens[i], &*tables[i])))
            }
            Format::Svg => {
                let tables = tables();
                let [a, b] = [0, 1].map(|i| Side {
                    name: comparison.names[i],
                    table: &tables[i],
                    seconds: comparison.samples[i].duration(),
                });
                out.write_all(picture::difference(self.question, &a, &b).as_bytes())
            }
        }
    }
}

#[cfg(test)]
mod tests;
