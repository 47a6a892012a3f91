// SPDX-License-Identifier: MIT OR Apache-2.0

//! Threads of processes.

use std::fs;
use std::io;
use std::path::Path;

/// Initial PID namespace, whose numbers appear in events, as `/proc` names it (`PID_NS_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Threads of this process, by the numbers that events use. Empty in another PID namespace, such as
/// a container, where these numbers would match other tasks.
pub fn own() -> Vec<i32> {
    let namespace = fs::read_link("/proc/self/ns/pid").ok();
    match namespace.is_none_or(|namespace| namespace == Path::new(FIRST_PID_NAMESPACE)) {
        // Without /proc a run is impossible anyway.
        true => of(std::process::id() as i32).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// All threads of a process. Fails with `NotFound` if it does not exist.
pub fn of(pid: i32) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(folder(pid))?.flatten();
    Ok(entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

/// Folder with the threads of a process.
pub fn folder(pid: i32) -> String {
    format!("/proc/{pid}/task")
}
