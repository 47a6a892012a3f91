// SPDX-License-Identifier: MIT OR Apache-2.0

//! Paths of control groups by number: the inode of the folder.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::container;
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

/// Path of the group of the container whose identifier begins with `id`, below `root`, the top of
/// the hierarchy. The error is a sentence.
pub(crate) fn of_container(root: &Path, id: &str) -> Result<String, String> {
    // Other hierarchies have folders for their controllers there.
    if !root.join("cgroup.procs").exists() {
        return Err(format!("cgroup v2 is not mounted at {}", root.display()));
    }
    // People see the identifier behind the pod's.
    let id = id.rsplit('/').next().unwrap_or_default();
    let groups = read(root);
    let of_it = |path: &&String| !id.is_empty() && container::id(path).is_some_and(|found| found.starts_with(id));
    let mut found: Vec<&str> = groups
        .values()
        .filter(of_it)
        .map(|path| container::whole(path))
        .collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [path] => Ok(path.to_owned()),
        [] => Err(format!(
            "no control group below {} belongs to such a container",
            root.display()
        )),
        _ => Err(format!("{} containers begin so: {}", found.len(), found.join(", "))),
    }
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

    #[test]
    fn groups_of_containers() {
        let root = tempfile::tempdir().unwrap();
        let ids = ["1a".repeat(32), "1b".repeat(32)];
        fs::create_dir_all(root.path().join(format!("docker/{}/init.scope", ids[0]))).unwrap();
        fs::create_dir_all(root.path().join(format!("system.slice/docker-{}.scope", ids[1]))).unwrap();
        let of = |id: &str| of_container(root.path(), id);
        assert!(of("1a").unwrap_err().starts_with("cgroup v2 is not mounted at "));
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        assert_eq!(of("6a6ccdfd/1a1a1a1a1a1a"), of("1a1a1a1a1a1a"));
        assert_eq!(of("1a1a1a1a1a1a"), Ok(format!("/docker/{}", ids[0])));
        assert_eq!(of(&ids[1]), Ok(format!("/system.slice/docker-{}.scope", ids[1])));
        assert!(of("1").unwrap_err().starts_with("2 containers begin so: /docker/1a1a"));
        for none in ["", "2", "docker"] {
            assert!(of(none).unwrap_err().starts_with("no control group below "), "{none}");
        }
    }
}
