// SPDX-License-Identifier: GPL-2.0

//! `error_log`: the latest errors of a tracing directory, the kernel's and those of commands that
//! rhist executed.

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
    rust::tracefs::{
        KernelFile,
        UserBuffer, //
    },
    text::Text,
    trigger::ErrorLog, //
};
use kernel::prelude::*;

/// Instances of an earlier boot have no `error_log`.
pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    replaces_only: true,
    ..OverlayFile::new(c"error_log", 0o640, &ErrorLogOps)
};

struct ErrorLogOps;

impl FileOps<Tree> for ErrorLogOps {
    fn open(&self, tree: &Tree, file: &Opened<'_>, truncate: bool) -> Result<OpenState> {
        if truncate {
            file.kernel.map(KernelFile::truncate).transpose()?;
            tree.error_logs.with(file.dir, ErrorLog::clear)?;
        }
        Ok(OpenState::None)
    }

    fn read(&self, tree: &Tree, file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        let kernel = file.kernel.map(KernelFile::read).transpose()?;
        let kernel = kernel.as_deref().unwrap_or_default();
        tree.error_logs
            .with(file.dir, |log| log.render(kernel, out.as_mut()))??;
        Shown::text(out)
    }

    /// Like the kernel's: only truncation empties the log, writes are ignored.
    fn write(
        &self,
        _tree: &Tree,
        _file: &Opened<'_>,
        _open: &OpenState,
        _data: &UserBuffer,
    ) -> Result<usize> {
        Ok(0)
    }
}
