// SPDX-License-Identifier: MIT OR Apache-2.0

use std::os::unix::fs::symlink;
use std::process;

use super::*;

/// A number that no process has.
const NOBODYS: u32 = u32::MAX;

fn this() -> Process {
    Process::of(&fs::read_to_string("/proc/self/status").unwrap()).unwrap()
}

fn root() -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    openat(CWD, "/proc/self/root", flags, Mode::empty()).unwrap()
}

#[test]
fn users_and_numbers_of_processes() {
    let status = "Name:\tjava\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNSpid:\t77\t8\t1\nThreads:\t2\n";
    let expected = Process {
        user: 2,
        group: 6,
        number: 1,
    };
    assert_eq!(Process::of(status), Some(expected));
    for cut in [0, 12, 24, 30, 40] {
        assert_eq!(Process::of(&status[..cut]), None, "{cut}");
    }
    // The test may run in a namespace of its own.
    assert_eq!(this().number, process::id());
}

#[test]
fn mappings_with_code_and_without_a_file() {
    let line = b"7f00-7f10 rwxp 00000000 00:00 0                          [anon:code]";
    assert_eq!(mapping_of(line), Some(0x7f00..0x7f10));
    for other in [
        &b"7f00-7f10 rw-p 00000000 00:00 0 "[..],
        b"7f00-7f10 r-xp 00000000 08:01 77 /bin/sh",
        b"7f00 r-xp 00000000 00:00 0 ",
        b"x-y r-xp 00000000 00:00 0 ",
        b"7f00-7f10 rwxp",
    ] {
        assert_eq!(mapping_of(other), None, "{}", other.escape_ascii());
    }
}

#[test]
fn only_regular_files_are_found() {
    let number = NOBODYS - process::id();
    let path = format!("/tmp/perf-{number}.map");
    let kind = || {
        let found = find(root(), number).map(|file| file.metadata().unwrap());
        found.map(|found| (found.is_file(), found.uid() == this().user)).ok()
    };
    assert_eq!(kind(), None, "nothing is there");
    fs::write(&path, "1000 10 made\n").unwrap();
    assert_eq!(kind(), Some((true, true)));
    fs::remove_file(&path).unwrap();
    symlink("/proc/self/maps", &path).unwrap();
    assert_eq!(kind(), None, "a link");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(kind(), Some((false, true)), "a directory");
    fs::remove_dir(&path).unwrap();
}

#[test]
fn begins_of_processes() {
    assert_eq!(
        start_of("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"),
        Some(4711)
    );
    assert_eq!(start_of("7 (a) S 1 2"), None);
    assert!(start(process::id()).is_some());
    assert_eq!(start(NOBODYS), None);
}

#[test]
fn memory_that_is_not_there() {
    let now = start(process::id()).unwrap();
    assert!(matches!(MapFile::open(process::id(), now, 0x1000), Err(End::NotHeld)));
    assert!(matches!(MapFile::open(NOBODYS, now, 0x1000), Err(End::NotHeld)));
}
