// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs and libraries of this machine, for the tests of several crates.

use rustix::time::ClockId;
use rustix::time::clock_gettime;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// Paths of the libraries that this program has mapped, the C library among them.
pub fn mapped_libraries() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths: Vec<String> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|path| path.starts_with('/') && path.contains(".so"))
        .map(str::to_owned)
        .collect();
    paths.dedup();
    assert!(paths.iter().any(|path| path.contains("libc.so.6")), "{paths:?}");
    paths
}

/// All files in the folders for programs and libraries, with their contents.
pub fn files() -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
    ["/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"]
        .into_iter()
        .filter(|folder| Path::new(folder).exists())
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| fs::symlink_metadata(path).unwrap().is_file())
        .map(|path| {
            let image = fs::read(&path).unwrap();
            (path, image)
        })
}

/// CPU time of this thread, in seconds.
pub fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
