// SPDX-License-Identifier: GPL-2.0

//! `user_objects/N/rules`: takes the rules by which stacks are walked in a file, once.

use super::{
    contents::Shown,
    state::{
        OpenState,
        Tree, //
    },
    upload::{
        OpenUpload,
        Refused, //
    },
};
use crate::{
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::tracefs::{
        EventName,
        UserBuffer, //
    },
    text::Text,
    trigger::Command,
    user_stack::{
        Fault,
        ObjectState, //
    },
};
use kernel::{
    prelude::*,
    str::CString, //
};

pub(super) const FILE: OverlayFile<Tree> = OverlayFile::new(c"rules", 0o600, &RulesOps);

struct RulesOps;

impl FileOps<Tree> for RulesOps {
    fn open(&self, _tree: &Tree, _file: &Opened<'_>, _truncate: bool) -> Result<OpenState> {
        Ok(OpenState::Rules(OpenUpload::new()))
    }

    /// Number of rows, and bytes of memory; nothing if no rules were written.
    fn read(&self, tree: &Tree, file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let mut out = Text::new();
        let folder = file.folder()?;
        let objects = tree.engine.user_objects().nth_table(folder.life)?;
        let object = objects.object(folder.number).ok_or(ENOENT)?;
        if let ObjectState::Ruled { rows, bytes, .. } = object.state {
            out.format(format_args!("rows {rows} bytes {bytes}\n"))?;
        }
        Shown::text(out)
    }

    fn write(
        &self,
        tree: &Tree,
        file: &Opened<'_>,
        open: &OpenState,
        data: &UserBuffer,
    ) -> Result<usize> {
        let OpenState::Rules(open) = open else {
            return Err(EINVAL);
        };
        let folder = file.folder()?;
        match open.write(data) {
            Ok(Some(rules)) => {
                let keeper = tree.engine.user_objects();
                let objects = keeper.nth_table(folder.life)?;
                objects.set_rules(folder.number, rules, keeper.max_bytes())?;
                keeper.wake_pollers();
            }
            Ok(None) => (),
            Err(Refused::Other(errno)) => return Err(errno),
            Err(Refused::Fault(Fault::Memory)) => return Err(ENOMEM),
            Err(Refused::Fault(fault)) => {
                // If allocating the entry fails, the errno still reaches the user.
                let _ = log(tree, file, folder.number, fault);
                return Err(EINVAL);
            }
        }
        Ok(data.len())
    }
}

/// Logs a mistake in rules.
fn log(tree: &Tree, file: &Opened<'_>, number: u32, fault: Fault) -> Result {
    let folder = CString::try_from_fmt(fmt!("{number}"))?;
    let name = EventName {
        dir: file.dir,
        system: c"user_objects",
        event: &folder,
    };
    let text = text(fault).as_bytes();
    tree.error_logs
        .log_own(name, &Command::parse(b"rules"), text, 0)
}

fn text(fault: Fault) -> &'static str {
    match fault {
        Fault::Header => "The header is unknown, or of another architecture",
        Fault::TooMany => "Too many rows or pages",
        Fault::Length => "More than the header announces",
        Fault::Rule => "A rule is unknown, or the first one is not for gaps",
        Fault::Page => "The first rows of pages are out of order",
        Fault::Row => "A row is out of order, or has a rule that is missing",
        Fault::Memory => "Out of memory",
    }
}
