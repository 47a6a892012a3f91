// SPDX-License-Identifier: GPL-2.0

//! `frequency` of the event `rhist:sample`: how often it takes samples.

use super::{
    contents::Shown,
    state::{
        OpenState,
        Tree, //
    },
};
use crate::{
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::{
        sample,
        tracefs::UserBuffer, //
    },
    text::Text,
    trigger::number, //
};
use kernel::prelude::*;

pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    only_of: Some([c"rhist", c"sample"]),
    ..OverlayFile::new(c"frequency", 0o640, &FrequencyOps)
};

/// More than a number and white space takes.
const TEXT_MAX: usize = 64;

struct FrequencyOps;

impl FileOps<Tree> for FrequencyOps {
    fn read(&self, _tree: &Tree, _file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        out.format(format_args!("{}\n", sample::frequency()))?;
        Shown::text(out)
    }

    fn write(&self, _tree: &Tree, _file: &Opened<'_>, data: &UserBuffer) -> Result<usize> {
        if data.len() > TEXT_MAX {
            return Err(EINVAL);
        }
        let frequency = number(&data.read()?)?;
        sample::set_frequency(frequency.try_into().map_err(|_| EINVAL)?)?;
        Ok(data.len())
    }
}
