// SPDX-License-Identifier: GPL-2.0

//! Kinds of directories in tracefs, and of rhist's own.

/// A folder for a number, in [`Dir::Folder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    /// Another one for each folder that the number has had.
    pub(crate) life: u32,
}

/// The kinds of directories that the mirror distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dir {
    /// The tracing directory itself.
    Root,
    /// `instances/`, whose subdirectories are instances.
    Instances,
    /// `instances/<instance>/`, a tracing directory of its own.
    Instance,
    /// `events/`, whose subdirectories are systems.
    Events,
    /// `events/<system>/`
    System,
    /// `events/<system>/<event>/`
    Event,
    /// The folder of rhist in the root: [`Overlay::FOLDER`](super::Overlay::FOLDER). The kernel has
    /// none like it.
    Folder,
    /// A folder in that.
    Numbered(Numbered),
    /// Any other.
    Other,
}

impl Dir {
    /// Returns whether rhist alone has such a directory.
    pub(super) fn is_own(self) -> bool {
        matches!(self, Dir::Folder | Dir::Numbered(_))
    }

    /// The folder for a number that it is.
    pub(super) fn numbered(self) -> Option<Numbered> {
        match self {
            Dir::Numbered(folder) => Some(folder),
            _ => None,
        }
    }

    /// The kind of the kernel's subdirectory `name`.
    pub(super) fn child(self, name: &[u8]) -> Self {
        match self {
            Dir::Root | Dir::Instance if name == b"events" => Dir::Events,
            Dir::Root if name == b"instances" => Dir::Instances,
            Dir::Instances => Dir::Instance,
            Dir::Events => Dir::System,
            Dir::System => Dir::Event,
            _ => Dir::Other,
        }
    }
}
