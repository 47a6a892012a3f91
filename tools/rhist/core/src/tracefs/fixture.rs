// SPDX-License-Identifier: MIT OR Apache-2.0

//! A tracing directory for tests: a folder with the events of `tests/fixtures`.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::Tracefs;

/// Creates a directory of rhist or of the kernel. Dropping the first result removes the folder.
pub(crate) fn tracefs(is_rhist: bool) -> (TempDir, Tracefs) {
    let root = tempfile::tempdir().unwrap();
    let events = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/events");
    symlink(events, root.path().join("events")).unwrap();
    if is_rhist {
        fs::write(root.path().join("hist_stats"), "").unwrap();
    }
    let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
    (root, tracefs)
}
