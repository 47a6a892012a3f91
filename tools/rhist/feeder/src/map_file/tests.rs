// SPDX-License-Identifier: MIT OR Apache-2.0

use std::os::unix::fs::symlink;
use std::process;

use super::*;

/// A number that no process has.
const NOBODYS: u32 = u32::MAX;

/// The process of this test, if it had another number.
fn numbered(number: u32) -> Process {
    Process { number, ..this() }
}

fn this() -> Process {
    Process::of(&fs::read_to_string("/proc/self/status").unwrap()).unwrap()
}

#[test]
fn users_and_numbers_of_processes() {
    let status = "Name:\tjava\nUid:\t1\t2\t3\t4\nNSpid:\t77\t8\t1\nThreads:\t2\n";
    assert_eq!(Process::of(status), Some(Process { user: 2, number: 1 }));
    for cut in [0, 12, 24, 30] {
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
fn only_files_that_are_no_links_are_found() {
    let number = NOBODYS - process::id();
    let path = format!("/tmp/perf-{number}.map");
    let status = numbered(number);
    let kind = || {
        let found = find(process::id(), &status).unwrap().metadata().unwrap();
        (found.is_file(), found.uid() == status.user)
    };
    assert!(find(process::id(), &status).is_err(), "nothing is there");
    fs::write(&path, "1000 10 made\n").unwrap();
    assert_eq!(kind(), (true, true));
    fs::remove_file(&path).unwrap();
    symlink("/proc/self/maps", &path).unwrap();
    assert!(!kind().0, "a link");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(!kind().0, "a directory");
    fs::remove_dir(&path).unwrap();
}

#[test]
fn memory_that_is_not_there() {
    assert!(matches!(MapFile::open(process::id(), 0x1000), Err(End::NotHeld)));
    assert!(matches!(MapFile::open(NOBODYS, 0x1000), Err(End::NotHeld)));
}
