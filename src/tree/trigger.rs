// SPDX-License-Identifier: GPL-2.0

//! `trigger` of an event: takes commands, and lists the triggers.

use super::{
    contents::Shown,
    names::{
        view,
        KernelNames, //
    },
    state::{
        OpenState,
        Tree, //
    },
};
use crate::{
    engine::Engine,
    hist::show,
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::tracefs::{
        EventName,
        KernelFile,
        UserBuffer, //
    },
    text::Text,
    trigger::{
        merge_by_age,
        Command,
        Error,
        HintText,
        KernelTriggers, //
    },
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Most events of the tracer itself have no `trigger`.
pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    replaces_only: true,
    ..OverlayFile::new(c"trigger", 0o640, &TriggerOps)
};

struct TriggerOps;

impl FileOps<Tree> for TriggerOps {
    fn open(&self, tree: &Tree, file: &Opened<'_>, truncate: bool) -> Result<OpenState> {
        let name = file.event()?;
        if truncate {
            // As in C, it succeeds even if it removes nothing.
            if let Some(by) = tree.engine.remove_all(name)? {
                let _ = tree
                    .error_logs
                    .log_own(name, &Command::parse(b">"), by.as_bytes(), 0);
            }
        }
        Ok(OpenState::None)
    }

    fn read(&self, tree: &Tree, file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        let kernel = file.kernel.map(KernelFile::read).transpose()?;
        let kernel = kernel.as_deref().unwrap_or_default();
        list(&mut out, &tree.engine, b"", file.event()?, kernel)?;
        if out.as_bytes().is_empty() {
            out.bytes(show::NO_TRIGGERS)?;
        }
        Shown::text(out)
    }

    fn write(
        &self,
        tree: &Tree,
        file: &Opened<'_>,
        _open: &OpenState,
        data: &UserBuffer,
    ) -> Result<usize> {
        write(tree, file.event()?, file.kernel, data)?;
        Ok(data.len())
    }
}

/// Appends the triggers of an event, rhist's and the kernel's in `listing`, one per line with
/// `column` before each. Fails as [`Engine::triggers`].
pub(super) fn list(
    out: &mut Text,
    engine: &Engine,
    column: &[u8],
    name: EventName<'_>,
    listing: &[u8],
) -> Result {
    let theirs = KernelTriggers::all(listing)?;
    let switches = engine.switches(name)?;
    let switches = switches.iter().map(|(older, line)| (*older, &line[..]));
    let triggers = engine.triggers(name)?;
    let names = KernelNames::default();
    let views = triggers.iter().map(|trigger| view(trigger, &names));
    show::triggers(out, column, merge_by_age(switches, &theirs), views)
}

/// Executes the command of one write.
///
/// # Errors
///
/// `EINVAL` for a text of a page or more, `EFAULT`, and the errors of [`Engine::execute`]. All are
/// logged.
fn write(
    tree: &Tree,
    name: EventName<'_>,
    kernel: Option<&KernelFile>,
    data: &UserBuffer,
) -> Result {
    let logs = &tree.error_logs;
    let none = Command::parse(b"");
    if data.len() >= PAGE_SIZE {
        return Err(logs.log(name, &none, Error::own(HintText::TooLong, 0).into()));
    }
    let written = data
        .read()
        .map_err(|errno| logs.log(name, &none, errno.into()))?;
    let command = Command::parse(&written);
    let done = match kernel {
        Some(kernel) => tree.engine.execute(name, kernel, &command, data),
        None => Err(EINVAL.into()),
    };
    let note = done.map_err(|failure| logs.log(name, &command, failure))?;
    if let Some(hint) = note {
        // The command has succeeded, even if allocating the entry fails.
        let _ = logs.log_own(name, &command, hint.text.as_str().as_bytes(), hint.caret);
    }
    Ok(())
}
