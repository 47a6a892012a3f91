// SPDX-License-Identifier: GPL-2.0

//! A file of histograms that is being read: a printer formats it in pieces.

use kernel::prelude::*;

use super::{
    row::{
        Row,
        TrackedBuf, //
    },
    snapshot::Snapshot,
    Names, //
};
use crate::text::Text;

/// A piece of a file ends with the row that makes it this long, in bytes.
const PIECE: usize = 16384;

/// Formats the entries of a histogram, and the lines after them.
pub(super) trait Printer: Send + Sync {
    /// Appends an entry. Fails with `ENOMEM`, and as [`Row::read_saved`].
    fn row(&self, out: &mut Text, row: &Row<'_>, buf: &mut TrackedBuf, names: &dyn Names)
        -> Result;

    /// Appends the lines after the entries. Fails as [`Printer::row`].
    fn end(&self, out: &mut Text, snapshot: &Snapshot, names: &dyn Names) -> Result;
}

/// Snapshot of the histograms in a file; text is formatted in pieces while reading. The text of all
/// rows may take a hundred times as much memory.
pub struct HistFile {
    printer: &'static dyn Printer,
    hists: KVec<Section>,
    /// The next row to show: index of the histogram, index of the row.
    next: (usize, usize),
}

/// A histogram of the file, below its heading.
struct Section {
    heading: Text,
    snapshot: Snapshot,
}

impl HistFile {
    /// Makes a section of each of `views`: `section` appends its heading and returns the snapshot.
    /// Fails with `ENOMEM`, and as [`Names::check_signal`].
    pub(super) fn with_printer<V>(
        printer: &'static dyn Printer,
        views: impl Iterator<Item = V>,
        section: impl Fn(&mut Text, V, usize) -> Result<Snapshot>,
    ) -> Result<Self> {
        let mut hists = KVec::new();
        for (n, view) in views.enumerate() {
            let mut heading = Text::new();
            let snapshot = section(&mut heading, view, n)?;
            hists.push(Section { heading, snapshot }, GFP_KERNEL)?;
        }
        Ok(Self {
            printer,
            hists,
            next: (0, 0),
        })
    }

    /// Number of hits in the snapshots.
    pub fn hits(&self) -> u64 {
        let hits = self.hists.iter().map(|hist| hist.snapshot.hits());
        hits.fold(0, u64::wrapping_add)
    }

    /// Starts again with the first piece.
    pub fn rewind(&mut self) {
        self.next = (0, 0);
    }

    /// Formats the next piece of the text; `None` at its end. Fails with `ENOMEM`, as
    /// [`Names::check_signal`], and with `EAGAIN` if hits kept replacing the saved fields of an
    /// entry; the next call formats the same piece.
    pub fn next_piece(&mut self, names: &dyn Names) -> Result<Option<Text>> {
        names.check_signal()?;
        let mut out = Text::new();
        let mut buf = TrackedBuf::new(self.hists.iter().map(|hist| hist.snapshot.program()))?;
        let (mut n, mut row) = self.next;
        while let Some(hist) = self.hists.get(n) {
            let full = |out: &Text| out.as_bytes().len() >= PIECE;
            if full(&out) {
                break;
            }
            if row == 0 {
                out.bytes(hist.heading.as_bytes())?;
            }
            while let Some(shown) = hist.snapshot.row(row) {
                self.printer.row(&mut out, &shown, &mut buf, names)?;
                row += 1;
                if full(&out) {
                    break;
                }
            }
            if row < hist.snapshot.shown() {
                break;
            }
            self.printer.end(&mut out, &hist.snapshot, names)?;
            (n, row) = (n + 1, 0);
        }
        self.next = (n, row);
        Ok((!out.as_bytes().is_empty()).then_some(out))
    }
}
