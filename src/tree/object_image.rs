// SPDX-License-Identifier: GPL-2.0

//! `user_objects/N/image`: the mapped file itself, for a task that may read it.

use super::state::Tree;
use crate::{
    mirror::{
        FileOps,
        Numbered,
        OverlayFile,
        OverlaySpecial, //
    },
    rust::{
        mapped_file::{
            MappedFile,
            ReadFile, //
        },
        tracefs::{
            self,
            Special,
            SpecialFops, //
        },
    },
    user_stack::Identity,
    worker::objects::ObjectKeeper, //
};
use kernel::{
    iov::IovIterDest,
    prelude::*,
    sync::Arc, //
};

pub(super) const FILE: OverlayFile<Tree> = OverlayFile::new(c"image", 0o400, &ImageOps);

struct ImageOps;

impl FileOps<Tree> for ImageOps {
    fn special(&self, tree: &Tree, folder: Option<Numbered>) -> Result<Option<OverlaySpecial>> {
        let folder = folder.ok_or(ENOENT)?;
        let keeper = tree.engine.user_objects();
        let objects = keeper.nth_table(folder.life)?;
        let object = objects.object(folder.number).ok_or(ENOENT)?;
        let size = match object.identity {
            Some(Identity::File(file)) => file.size,
            _ => 0,
        };
        let image = Image {
            keeper: keeper.clone(),
            folder,
        };
        let operations = SpecialFops::new(Arc::new(image, GFP_KERNEL)?)?;
        Ok(Some(OverlaySpecial { operations, size }))
    }
}

struct Image {
    keeper: Arc<ObjectKeeper>,
    folder: Numbered,
}

#[vtable]
impl Special for Image {
    type OpenState = ReadFile;

    /// Fails with `ENOENT` if the object is gone, with `ESTALE` while the file is not held, and as
    /// [`MappedFile::open`].
    fn open(self: &Arc<Self>) -> Result<ReadFile> {
        tracefs::check_lockdown()?;
        let objects = self.keeper.nth_table(self.folder.life)?;
        // SAFETY: The table keeps its reference during the call.
        let hold = |file| unsafe { MappedFile::hold(file) };
        let file = objects.with_file(self.folder.number, hold);
        file.ok_or(ESTALE)??.open()
    }

    fn read(file: &ReadFile, pos: &mut i64, to: &mut IovIterDest<'_>) -> Result<usize> {
        file.read(pos, to)
    }

    fn size(file: &ReadFile) -> i64 {
        file.size()
    }
}
