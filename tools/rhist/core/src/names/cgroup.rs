// SPDX-License-Identifier: MIT OR Apache-2.0

//! Paths of control groups by number: the inode of the folder.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::proc::Table;

/// Hierarchy of version 2, relative to the parent of `/proc`.
pub const FOLDER: &str = "sys/fs/cgroup";

/// Limit of groups, far above real machines. Further groups are left out.
const MAX: usize = 1 << 16;

/// Reads the paths of all groups below `root`, the top of the hierarchy.
pub fn read(root: &Path) -> Table {
    let Ok(metadata) = fs::metadata(root) else {
        return Table::new();
    };
    let mut found = Table::from([(metadata.ino().into(), "/".to_owned())]);
    let mut folders = VecDeque::from([root.to_owned()]);
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if found.len() >= MAX {
                return found;
            }
            let path = entry.path();
            // Follows no symbolic links, which may lead elsewhere.
            if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && let Ok(below) = path.strip_prefix(root)
            {
                found.insert(entry.ino().into(), format!("/{}", below.display()));
                folders.push_back(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_groups() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("system.slice/ssh.service")).unwrap();
        fs::write(path("cgroup.procs"), "").unwrap();
        std::os::unix::fs::symlink("/", path("link")).unwrap();
        let groups = read(root.path());
        let name = |path: &Path| groups.get(&fs::metadata(path).unwrap().ino().into()).cloned();
        assert_eq!(groups.len(), 3);
        assert_eq!(name(root.path()).as_deref(), Some("/"));
        assert_eq!(
            name(&path("system.slice/ssh.service")).as_deref(),
            Some("/system.slice/ssh.service")
        );
        assert!(read(&path("nosuch")).is_empty());
    }
}
