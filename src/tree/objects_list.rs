// SPDX-License-Identifier: GPL-2.0

//! `user_objects/list`: the objects that stacks of programs name.

use super::{
    contents::Shown,
    state::{
        OpenList,
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
        poll::{
            self,
            Mask,
            PollTable, //
        },
        user, //
    },
    text::Text,
    user_stack::{
        Identity,
        Object,
        ObjectState,
        Objects, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

pub(super) const FILE: OverlayFile<Tree> = OverlayFile {
    polls: true,
    ..OverlayFile::new(c"list", 0o440, &ObjectsListOps)
};

struct ObjectsListOps;

impl FileOps<Tree> for ObjectsListOps {
    fn open(&self, _tree: &Tree, _file: &Opened<'_>, _truncate: bool) -> Result<OpenState> {
        Ok(OpenState::Objects(OpenList {
            seen: Atomic::new(UNSEEN),
            sees_begins: user::may_see_mappings(),
        }))
    }

    fn read(&self, tree: &Tree, _file: &Opened<'_>, open: &OpenState) -> Result<Shown> {
        let table = tree.engine.user_objects().table();
        let OpenState::Objects(open) = open else {
            return Err(EINVAL);
        };
        open.seen.store(version(&table), Relaxed);
        let mut out = Text::new();
        out.bytes(b"# number kind device inode generation size changed process begin state\n")?;
        let mut all = KVVec::new();
        if let Some((_, objects)) = &table {
            objects.for_each(|object| Ok(all.push(object, GFP_KERNEL)?))?;
        }
        for index in order(&all)? {
            if let Some(object) = all.get(index as usize) {
                line(&mut out, object, open.sees_begins)?;
            }
        }
        Shown::text(out)
    }

    fn poll(
        &self,
        tree: &Tree,
        _file: &Opened<'_>,
        open: &OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask> {
        let OpenState::Objects(open) = open else {
            return Err(EINVAL);
        };
        let keeper = tree.engine.user_objects();
        keeper.queue_poll(table);
        let is_new = open.seen.load(Relaxed) != version(&keeper.table());
        Ok(if is_new { poll::IN } else { 0 })
    }
}

/// Returns the indices of objects, by their numbers. Sorts small items: a sort keeps dozens of them
/// on the stack. Fails with `ENOMEM`.
fn order(objects: &[Object]) -> Result<impl Iterator<Item = u32>> {
    let mut order = KVVec::with_capacity(objects.len(), GFP_KERNEL)?;
    for (index, object) in (0_u32..).zip(objects) {
        order.push((object.number, index), GFP_KERNEL)?;
    }
    order.sort_unstable();
    Ok(order.into_iter().map(|(_, index)| index))
}

/// A number that is another one when the list has changed. Not [`UNSEEN`].
fn version(table: &Option<(u32, Arc<Objects>)>) -> u64 {
    // A table has less than 2^40 changes.
    let version = |(nth, objects): &(u32, Arc<Objects>)| u64::from(*nth) << 40 | objects.version();
    table.as_ref().map_or(0, version)
}

/// The version of a list that was not read yet.
const UNSEEN: u64 = u64::MAX;

/// Appends the line of an object. A field that its kind lacks is `-`.
fn line(out: &mut Text, object: &Object, sees_begins: bool) -> Result {
    out.format(format_args!("{} ", object.number))?;
    match object.identity {
        None => out.bytes(b"vdso - - - - - - -")?,
        Some(Identity::File(file)) => out.format(format_args!(
            "file {}:{} {} {} {} {} - -",
            file.device >> MINOR_BITS,
            file.device & ((1 << MINOR_BITS) - 1),
            file.inode,
            file.generation,
            file.size,
            file.changed_ns,
        ))?,
        Some(Identity::Memory { process, begin, .. }) => {
            out.format(format_args!("memory - - - - - {process} "))?;
            match sees_begins {
                true => out.format(format_args!("{begin:x}"))?,
                false => out.bytes(b"-")?,
            }
        }
    }
    out.bytes(match object.state {
        ObjectState::Released => b" released\n",
        ObjectState::Readable => b" readable\n",
        ObjectState::Ruled {
            readable: false, ..
        } => b" rules\n",
        ObjectState::Ruled { readable: true, .. } => b" rules,readable\n",
    })
}

/// Bits of the minor number in the number of a device (`MINORBITS`).
const MINOR_BITS: u32 = 20;
