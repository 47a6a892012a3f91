// SPDX-License-Identifier: MIT OR Apache-2.0

//! Columns side by side, as many as fit on the page.

use super::page::Page;
use super::page::Style;
use super::page::columns;

/// Columns between two cells.
pub(super) const GAP: usize = 2;
/// Minimum width of a column of keys.
const MIN_KEY: usize = 16;

/// Columns side by side, all with the same number of cells.
#[derive(Debug, Default)]
pub(super) struct Grid {
    columns: Vec<Column>,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    /// Title; may be empty.
    pub title: String,
    pub cells: Vec<String>,
    pub kind: Kind,
    /// On narrow pages, columns with the lowest rank are left out first.
    pub rank: u8,
}

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Texts, which may be cut.
    Key,
    /// Numbers, aligned to the right.
    Number,
    /// Bars, aligned to the left.
    Bar,
}

impl Grid {
    /// Adds a column on the right.
    pub(super) fn add(&mut self, column: Column) {
        self.columns.push(column);
    }

    /// Width without cutting.
    pub(super) fn width(&self, page: &Page) -> usize {
        let width = |text: &String| columns(&page.text(text));
        let natural = |column: &Column| column.cells.iter().chain([&column.title]).map(width).max().unwrap_or(0);
        total(&self.columns.iter().map(natural).collect::<Vec<_>>())
    }

    /// Formats the titles, and a line for each row of cells. No line is wider than the page.
    pub(super) fn lines(mut self, page: &Page) -> Vec<String> {
        for column in &mut self.columns {
            column.title = page.text(&column.title);
            for cell in &mut column.cells {
                *cell = page.text(cell);
            }
        }
        let mut widths = self.widths(page.width);
        while total(&widths) > page.width {
            let Some(least) = self.least() else {
                break;
            };
            self.columns.remove(least);
            widths = self.widths(page.width);
        }
        let rows = self.columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
        let mut lines = Vec::with_capacity(rows + 1);
        if self.columns.iter().any(|column| !column.title.is_empty()) {
            let title = self.line(page, &widths, false, |column| Some(&column.title));
            lines.push(page.paint(Style::Faint, &title));
        }
        lines.extend((0..rows).map(|row| self.line(page, &widths, true, |column| column.cells.get(row))));
        lines
    }

    fn line<'a>(
        &'a self,
        page: &Page,
        widths: &[usize],
        paints: bool,
        cell: impl Fn(&'a Column) -> Option<&'a String>,
    ) -> String {
        let mut line = String::new();
        for (at, (column, &width)) in self.columns.iter().zip(widths).enumerate() {
            let text = page.cut(cell(column).map_or("", String::as_str), width);
            let space = " ".repeat(width - columns(&text));
            if at > 0 {
                line += &" ".repeat(GAP);
            }
            match column.kind {
                Kind::Key => line += &(text + &space),
                Kind::Number => line += &(space + &text),
                Kind::Bar if paints => line += &(page.paint(Style::Bar, &text) + &space),
                Kind::Bar => line += &(text + &space),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// Index of the column to leave out: the rightmost one of the lowest rank. `None` if only one
    /// is left.
    fn least(&self) -> Option<usize> {
        let ranks = self.columns.iter().enumerate().rev();
        let (at, _) = ranks.min_by_key(|(_, column)| column.rank)?;
        (self.columns.len() > 1).then_some(at)
    }

    /// Widths of the columns. If the contents are too wide, narrows keys, the widest first.
    fn widths(&self, page: usize) -> Vec<usize> {
        let natural = |column: &Column| {
            let cells = column.cells.iter().map(|cell| columns(cell));
            cells.max().unwrap_or(0).max(columns(&column.title)).min(page)
        };
        let mut widths: Vec<usize> = self.columns.iter().map(natural).collect();
        while total(&widths) > page {
            let keys = self.columns.iter().zip(&mut widths);
            let keys = keys.filter_map(|(column, width)| (column.kind == Kind::Key).then_some(width));
            match keys.max() {
                Some(width) if *width > MIN_KEY => *width -= 1,
                _ => break,
            }
        }
        widths
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + widths.len().saturating_sub(1) * GAP
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(width: usize) -> Page {
        Page {
            width,
            rows: 20,
            utf8: true,
            colour: false,
        }
    }

    fn grid() -> Grid {
        let mut grid = Grid::default();
        let column = |title: &str, cells: [&str; 2], kind, rank| Column {
            title: title.to_owned(),
            cells: cells.map(str::to_owned).to_vec(),
            kind,
            rank,
        };
        grid.add(column("comm", ["a rather long name of a task", "sed"], Kind::Key, 9));
        grid.add(column("hits", ["12", "3,456"], Kind::Number, 8));
        grid.add(column("p50", ["1 µs", "2 µs"], Kind::Number, 1));
        grid.add(column("", ["███", ""], Kind::Bar, 2));
        grid
    }

    #[test]
    fn wide() {
        insta::assert_snapshot!(grid().lines(&page(60)).join("\n"), @r"
        comm                           hits   p50
        a rather long name of a task     12  1 µs  ███
        sed                           3,456  2 µs
        ");
    }

    #[test]
    fn narrow() {
        assert_eq!(
            grid().lines(&page(30)),
            [
                "comm                 hits",
                "a rather …f a task     12  ███",
                "sed                 3,456"
            ]
        );
        assert_eq!(grid().lines(&page(20)), ["comm", "a rather l…of a task", "sed"]);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide(width in 20..200usize, texts in prop::collection::vec(("[a-z漢]{0,60}", 0..3u8, any::<u8>()), 1..9)) {
            let mut grid = Grid::default();
            for (text, kind, rank) in texts {
                let kind = [Kind::Key, Kind::Number, Kind::Bar][usize::from(kind)];
                grid.add(Column { title: text.clone(), cells: vec![text; 2], kind, rank });
            }
            for line in grid.lines(&page(width)) {
                prop_assert!(columns(&line) <= width);
            }
        }
    }
}
