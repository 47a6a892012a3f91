// SPDX-License-Identifier: GPL-2.0

//! `source`, `frequency` and `period` of the event `rhist:sample`: where its samples come from, and
//! how often.

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
        sample::{
            Refused,
            SampleSource,
            Setting, //
        },
        tracefs::UserBuffer, //
    },
    text::Text,
    trigger::{
        number,
        Command, //
    },
};
use kernel::prelude::*;

pub(super) const SOURCE: OverlayFile<Tree> = OverlayFile {
    only_of: Some([c"rhist", c"sample"]),
    ..OverlayFile::new(c"source", 0o640, &SourceOps)
};

pub(super) const FREQUENCY: OverlayFile<Tree> = OverlayFile {
    only_of: Some([c"rhist", c"sample"]),
    ..OverlayFile::new(c"frequency", 0o640, &SettingOps(Setting::Frequency))
};

pub(super) const PERIOD: OverlayFile<Tree> = OverlayFile {
    only_of: Some([c"rhist", c"sample"]),
    ..OverlayFile::new(c"period", 0o640, &SettingOps(Setting::Period))
};

/// More than a number, or a name, and white space takes.
const TEXT_MAX: usize = 64;

struct SourceOps;

impl FileOps<Tree> for SourceOps {
    /// All sources, the chosen one in brackets, as in `trace_clock`.
    fn read(&self, _tree: &Tree, _file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        let chosen = SampleSource::chosen();
        for (n, source) in SampleSource::ALL.into_iter().enumerate() {
            out.bytes(if n == 0 { b"" } else { b" " })?;
            let name = source.name();
            match source == chosen {
                true => out.format(format_args!("[{name}]"))?,
                false => out.bytes(name.as_bytes())?,
            }
        }
        out.bytes(b"\n")?;
        Shown::text(out)
    }

    fn write(
        &self,
        tree: &Tree,
        file: &Opened<'_>,
        _open: &OpenState,
        data: &UserBuffer,
    ) -> Result<usize> {
        if data.len() > TEXT_MAX {
            return Err(EINVAL);
        }
        let text = data.read()?;
        let name = text.trim_ascii();
        let is_named = |source: &SampleSource| source.name().as_bytes() == name;
        let source = SampleSource::ALL.into_iter().find(is_named).ok_or(EINVAL)?;
        source.choose().map_err(|refused| {
            // If allocating the entry fails, the errno still reaches the user.
            let _ = log(tree, file, name, &refused);
            refused.errno
        })?;
        Ok(data.len())
    }
}

/// Logs why a source was refused.
fn log(tree: &Tree, file: &Opened<'_>, name: &[u8], refused: &Refused) -> Result {
    let mut text = Text::new();
    match refused.cpu {
        Some(cpu) => lacking(&mut text, cpu, refused.errno)?,
        None if refused.errno == EBUSY => {
            text.bytes(b"The source cannot be changed while the event has a histogram")?
        }
        None => return Ok(()),
    }
    let command = Command::parse(name);
    tree.error_logs
        .log_own(file.event()?, &command, text.as_bytes(), 0)
}

/// Appends that a CPU lacks a counter of cycles, and why.
pub(super) fn lacking(out: &mut Text, cpu: u32, errno: Error) -> Result {
    if errno == EBUSY {
        out.format(format_args!("all counters of CPU {cpu} are in use"))
    } else if errno == EOPNOTSUPP {
        out.format(format_args!("CPU {cpu} has no counter of cycles"))
    } else {
        let errno = errno.to_errno();
        out.format(format_args!("CPU {cpu} gives no counter, error {errno}"))
    }
}

struct SettingOps(Setting);

impl FileOps<Tree> for SettingOps {
    fn read(&self, _tree: &Tree, _file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        out.format(format_args!("{}\n", self.0.get()))?;
        Shown::text(out)
    }

    fn write(
        &self,
        _tree: &Tree,
        _file: &Opened<'_>,
        _open: &OpenState,
        data: &UserBuffer,
    ) -> Result<usize> {
        if data.len() > TEXT_MAX {
            return Err(EINVAL);
        }
        let value = number(&data.read()?)?;
        self.0.set(value.try_into().map_err(|_| EINVAL)?)?;
        Ok(data.len())
    }
}
