// SPDX-License-Identifier: GPL-2.0

//! Kinds of directories in tracefs.

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
    /// Any other.
    Other,
}

impl Dir {
    /// The kind of the subdirectory `name`.
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
