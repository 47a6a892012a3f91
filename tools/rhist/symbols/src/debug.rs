// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files with the debugging information of a program or library.

use std::path::Path;
use std::path::PathBuf;

/// Folders of distributions: the second one is NixOS's.
const FOLDERS: [&str; 2] = ["/usr/lib/debug", "/run/current-system/sw/lib/debug"];
const SUFFIX: &str = ".debug";
/// Most bytes of the name of a file (`NAME_MAX`).
const MOST_NAME: usize = 255;

/// Paths at which distributions put the debugging information of the file with this build id, as
/// gdb looks for it: `/usr/lib/debug/.build-id/ab/cdef….debug`. None for a build id of less than 2
/// bytes, or one that does not fit into the name of a file.
///
/// Nothing says that a file at such a path is the right one:
/// [`Symbols::read_with_debug()`](crate::Symbols::read_with_debug) compares the build ids.
pub fn debug_paths(build_id: &[u8]) -> Vec<PathBuf> {
    let [first, rest @ ..] = build_id else {
        return Vec::new();
    };
    if rest.is_empty() || 2 * rest.len() + SUFFIX.len() > MOST_NAME {
        return Vec::new();
    }
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{hex}{SUFFIX}");
    let inner = Path::new(".build-id").join(format!("{first:02x}")).join(name);
    FOLDERS.iter().map(|folder| Path::new(folder).join(&inner)).collect()
}
