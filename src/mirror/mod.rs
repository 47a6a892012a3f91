// SPDX-License-Identifier: GPL-2.0

//! A mirror of the tracing directory with files of rhist in it.
//!
//! [`Mirror`] makes one directory in the root of tracefs. Whatever is looked up below it is looked
//! up in the kernel's own tracing directory at that moment, so events appear and vanish with the
//! kernel's. A directory becomes a directory of rhist, which mirrors it in turn; a file becomes a
//! file of rhist with the kernel's operations and the kernel's data. Files that an [`Overlay`]
//! names are put beside them, or in the place of the kernel's file of that name.

mod dir;
mod number;
mod overlay;

use crate::rust::{
    poll::{
        Mask,
        PollTable, //
    },
    tracefs::{
        self,
        Access,
        CreatedDentry,
        Dentry,
        DentryKind,
        EventName,
        Inode,
        KernelFile,
        LookedUp,
        ObjectType,
        Objects,
        TracingDir,
        UserBuffer, //
    },
};
pub(crate) use dir::{
    Dir,
    Numbered, //
};
use kernel::{
    mm::virt::VmaNew,
    prelude::*,
    sync::Arc, //
};
use number::NumberName;
pub(crate) use overlay::{
    FileOps,
    Opened,
    Overlay,
    OverlayFile,
    OverlayFolder,
    OverlaySpecial, //
};

/// The directory in tracefs with everything below it.
///
/// Dropping it removes the directory. Its files are closed by then, since each open one pins the
/// module.
pub(crate) struct Mirror<T: Overlay> {
    shared: Arc<MirrorShared<T>>,
    /// The directory, and the files beside it.
    entered: KVec<CreatedDentry>,
}

/// State shared by all objects of a mirror.
#[pin_data]
struct MirrorShared<T: Overlay> {
    overlay: T,
    name: &'static CStr,
    #[pin]
    objects: Objects<Node<T>>,
}

/// The kind of an object of the mirror; identifies it among the objects for the same dentry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NodeKind {
    Dir(Dir),
    /// A file of the kernel.
    Kernel,
    /// A file of rhist, by its index in [`Overlay::files`].
    Ours(Dir, usize),
}

/// An object of the mirror that was looked up.
struct Node<T: Overlay> {
    shared: Arc<MirrorShared<T>>,
    kind: NodeKind,
    /// The tracing directory that a file of rhist is in or below.
    tracing: Option<TracingDir>,
}

impl<T: Overlay> Mirror<T> {
    /// Makes the directory `name` in `root`, the root of tracefs.
    ///
    /// # Errors
    ///
    /// `EEXIST` if the name is taken, `ENOMEM`.
    pub(crate) fn new(name: &'static CStr, root: Dentry, overlay: T) -> Result<Self> {
        let objects = Objects::new(&root)?;
        let shared = Arc::pin_init(
            pin_init!(MirrorShared {
                overlay,
                name,
                objects <- objects,
            }),
            GFP_KERNEL,
        )?;
        let mut mirror = Self {
            shared,
            entered: KVec::new(),
        };
        let top =
            MirrorShared::find_or_create(&mirror.shared, root.clone(), NodeKind::Dir(Dir::Root))?;
        mirror.entered.reserve(1, GFP_KERNEL)?;
        let top = CreatedDentry::dir(&root, name, &top)?;
        mirror.entered.push(top, GFP_KERNEL)?;
        for (index, file) in T::files(Dir::Root).iter().enumerate() {
            if file.also_in_tracefs_root && root.lookup(file.name.to_bytes()).is_err() {
                let kind = NodeKind::Ours(Dir::Root, index);
                let inode = MirrorShared::find_or_create(&mirror.shared, root.clone(), kind)?;
                mirror.entered.reserve(1, GFP_KERNEL)?;
                let file = CreatedDentry::file(&root, file.name, &inode)?;
                mirror.entered.push(file, GFP_KERNEL)?;
            }
        }
        Ok(mirror)
    }
}

impl<T: Overlay> Drop for Mirror<T> {
    fn drop(&mut self) {
        let entered = core::mem::replace(&mut self.entered, KVec::new());
        self.shared.objects.close(entered);
    }
}

impl<T: Overlay> MirrorShared<T> {
    /// The inode for `kind` beside the kernel's `real`.
    fn find_or_create(this: &Arc<Self>, real: Dentry, kind: NodeKind) -> Result<Inode> {
        this.objects.find_or_create(real, kind, |real| {
            let tracing = match kind {
                // `events/<system>/<event>`
                NodeKind::Ours(Dir::Event, _) => Some(real.parent().parent().parent()),
                NodeKind::Ours(..) => Some(real.clone()),
                _ => None,
            };
            let node = Node {
                shared: this.clone(),
                kind,
                tracing: tracing.map(TracingDir::new),
            };
            Ok((node, this.type_of(kind)?))
        })
    }

    fn type_of(&self, kind: NodeKind) -> Result<ObjectType> {
        let (dir, index) = match kind {
            NodeKind::Dir(dir) if dir.is_own() => {
                return Ok(ObjectType::Folder {
                    mode: T::FOLDER.mode,
                })
            }
            NodeKind::Dir(_) => return Ok(ObjectType::Dir),
            NodeKind::Kernel => return Ok(ObjectType::Kernel),
            NodeKind::Ours(dir, index) => (dir, index),
        };
        let file = T::files(dir).get(index).ok_or(ENOENT)?;
        let access = file.ops.access(&self.overlay).unwrap_or(Access {
            mode: file.mode,
            uid: Access::SAME,
            gid: Access::SAME,
        });
        Ok(match file.ops.special(&self.overlay, dir.numbered())? {
            Some(special) => ObjectType::Special {
                access,
                operations: special.operations,
                size: special.size,
            },
            None => ObjectType::File {
                access,
                polls: file.polls,
                writes: file.mode & 0o222 != 0,
            },
        })
    }

    /// Returns whether `name` of the kernel's directory is hidden in the mirror.
    fn hides(&self, dir: Dir, name: &[u8]) -> bool {
        // The mirror in itself would recurse without end.
        let own = [self.name, T::FOLDER.name];
        (dir == Dir::Root && own.iter().any(|own| own.to_bytes() == name))
            || T::files(dir)
                .iter()
                .any(|file| file.name.to_bytes() == name)
    }

    /// Returns rhist's own folder of this name.
    fn folder_in(&self, dir: Dir, name: &[u8]) -> Option<Dir> {
        match dir {
            Dir::Root if name == T::FOLDER.name.to_bytes() => Some(Dir::Folder),
            Dir::Folder => NumberName::parse(name)
                .and_then(|number| self.overlay.numbered(number))
                .map(Dir::Numbered),
            _ => None,
        }
    }
}

impl<T: Overlay> Node<T> {
    /// The kind of this directory, or of the directory that a file of rhist is in.
    fn dir(&self) -> Dir {
        match self.kind {
            NodeKind::Dir(dir) | NodeKind::Ours(dir, _) => dir,
            NodeKind::Kernel => Dir::Other,
        }
    }

    /// Returns the entry in [`Overlay::files`] of an open file of rhist, and its location. `real`
    /// is the kernel's counterpart of the directory that it is in.
    fn opened<'a>(
        &'a self,
        real: &'a Dentry,
        kernel: Option<&'a KernelFile>,
        nonblock: bool,
    ) -> Result<(&'static OverlayFile<T>, Opened<'a>)> {
        let (NodeKind::Ours(dir, index), Some(tracing)) = (self.kind, &self.tracing) else {
            return Err(EINVAL);
        };
        let opened = Opened {
            dir: tracing,
            event: (dir == Dir::Event).then(|| EventName {
                dir: tracing,
                system: real.parent_name(),
                event: real.name(),
            }),
            folder: dir.numbered(),
            kernel,
            nonblock,
            real,
        };
        Ok((T::files(dir).get(index).ok_or(EINVAL)?, opened))
    }
}

impl<T: Overlay> tracefs::NodeOps for Node<T> {
    type Id = NodeKind;
    type Contents = T::Contents;
    type OpenState = T::OpenState;

    fn lookup(&self, real: &Dentry, name: &[u8]) -> Result<LookedUp> {
        let dir = self.dir();
        let mut files = T::files(dir).iter();
        if let Some(index) = files.position(|file| file.name.to_bytes() == name) {
            let file = &T::files(dir)[index];
            if !file.is_of(real) {
                return Err(ENOENT);
            }
            if file.replaces_only {
                file.in_kernel(|name| real.lookup_nested(name))?;
            }
            let kind = NodeKind::Ours(dir, index);
            return Ok(LookedUp {
                inode: MirrorShared::find_or_create(&self.shared, real.clone(), kind)?,
                lasts_as: real.clone(),
            });
        }
        if let Some(folder) = self.shared.folder_in(dir, name) {
            let kind = NodeKind::Dir(folder);
            return Ok(LookedUp {
                inode: MirrorShared::find_or_create(&self.shared, real.clone(), kind)?,
                lasts_as: real.clone(),
            });
        }
        if dir.is_own() || self.shared.hides(dir, name) {
            return Err(ENOENT);
        }
        let real = real.lookup_nested(name)?;
        let kind = match real.kind().ok_or(ENOENT)? {
            DentryKind::Dir => NodeKind::Dir(dir.child(name)),
            DentryKind::File => NodeKind::Kernel,
        };
        let lasts_as = match kind {
            // Dentries below it stay, and have to be removed with it.
            NodeKind::Dir(Dir::Instance) => real.lookup_nested(b"events")?,
            _ => real.clone(),
        };
        Ok(LookedUp {
            inode: MirrorShared::find_or_create(&self.shared, real, kind)?,
            lasts_as,
        })
    }

    fn hides(&self, name: &[u8]) -> bool {
        self.shared.hides(self.dir(), name)
    }

    fn is_gone(&self) -> bool {
        let folder = self.dir().numbered();
        folder.is_some_and(|folder| !self.shared.overlay.lasts(folder))
    }

    fn is_read_in_rounds(&self) -> bool {
        match self.kind {
            NodeKind::Ours(dir, index) => T::files(dir).get(index).is_some_and(|file| file.rounds),
            _ => false,
        }
    }

    fn entries(
        &self,
        real: &Dentry,
        from: u64,
        mut each: impl FnMut(u64, &[u8], DentryKind) -> bool,
    ) -> Result {
        let dir = self.dir();
        let files = T::files(dir);
        for (index, file) in (0..).zip(files).skip_while(|(index, _)| *index < from) {
            let in_kernel = || file.in_kernel(|name| real.lookup(name)).is_ok();
            let is_there = file.is_of(real) && (!file.replaces_only || in_kernel());
            if is_there && !each(index, file.name.to_bytes(), DentryKind::File) {
                return Ok(());
            }
        }
        // Folders come behind the files, each at the index of its number.
        let first = files.len() as u64;
        match dir {
            Dir::Root if first >= from => {
                each(first, T::FOLDER.name.to_bytes(), DentryKind::Dir);
            }
            Dir::Folder => {
                for number in self.shared.overlay.numbers()? {
                    let index = first + u64::from(number);
                    let name = NumberName::of(number);
                    if index >= from && !each(index, name.as_bytes(), DentryKind::Dir) {
                        break;
                    }
                }
            }
            _ => (),
        }
        Ok(())
    }

    fn child_removed(&self) {
        self.shared.overlay.instance_removed();
    }

    fn behind(&self, real: &Dentry) -> Result<Dentry> {
        let NodeKind::Ours(dir, index) = self.kind else {
            return Err(ENOENT);
        };
        if dir.is_own() {
            return Err(ENOENT);
        }
        let file = T::files(dir).get(index).ok_or(ENOENT)?;
        file.in_kernel(|name| real.lookup(name))
    }

    fn open(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        truncate: bool,
        nonblock: bool,
    ) -> Result<T::OpenState> {
        let (file, opened) = self.opened(real, kernel, nonblock)?;
        if !file.ignores_lockdown {
            tracefs::check_lockdown()?;
        }
        file.ops.open(&self.shared.overlay, &opened, truncate)
    }

    fn read(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &T::OpenState,
        nonblock: bool,
    ) -> Result<T::Contents> {
        let (file, opened) = self.opened(real, kernel, nonblock)?;
        file.ops.read(&self.shared.overlay, &opened, open)
    }

    fn write(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &T::OpenState,
        data: &UserBuffer,
    ) -> Result<usize> {
        let (file, opened) = self.opened(real, kernel, true)?;
        file.ops.write(&self.shared.overlay, &opened, open, data)
    }

    fn poll(
        &self,
        real: &Dentry,
        kernel: Option<&KernelFile>,
        open: &T::OpenState,
        table: &PollTable<'_>,
    ) -> Result<Mask> {
        let (file, opened) = self.opened(real, kernel, true)?;
        file.ops.poll(&self.shared.overlay, &opened, open, table)
    }

    fn map(&self, real: &Dentry, kernel: Option<&KernelFile>, vma: &VmaNew) -> Result {
        let (file, opened) = self.opened(real, kernel, true)?;
        file.ops.map(&self.shared.overlay, &opened, vma)
    }
}
