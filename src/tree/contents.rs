// SPDX-License-Identifier: GPL-2.0

//! Text of a file while it is read.

use super::names::KernelNames;
use crate::{
    hist::show::HistFile,
    rust::tracefs::Contents,
    text::Text, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    },
};

/// Text of a file of rhist.
pub(crate) enum Shown {
    /// The whole text, and whether it was read.
    Text(Arc<Text>, bool),
    /// A `hist` or `hist_jsonl` file, rendered piece by piece.
    Hist(HistFile, KernelNames),
}

impl Shown {
    /// Wraps the whole text of a file. Fails with `ENOMEM`.
    pub(super) fn text(text: Text) -> Result<Self> {
        Ok(Self::Text(Arc::new(text, GFP_KERNEL)?, false))
    }
}

impl Contents for Shown {
    type Piece = Text;

    fn next_piece(&mut self) -> Result<Option<Arc<Text>>> {
        match self {
            Self::Text(text, read) => {
                let first = !core::mem::replace(read, true);
                Ok((first && !text.as_bytes().is_empty()).then(|| text.clone()))
            }
            Self::Hist(file, names) => {
                // Allocated first: a piece that has been formatted must not be lost.
                let to = UniqueArc::new_uninit(GFP_KERNEL)?;
                let piece = file.next_piece(names)?;
                Ok(piece.map(|piece| to.write(piece).into()))
            }
        }
    }

    fn rewind(&mut self) {
        match self {
            Self::Text(_, read) => *read = false,
            Self::Hist(file, _) => file.rewind(),
        }
    }
}
