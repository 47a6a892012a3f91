// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of system calls, by architecture.

use std::collections::BTreeMap;
use std::sync::LazyLock;

type Table = LazyLock<BTreeMap<i128, &'static str>>;

static X86_64: Table = LazyLock::new(|| parse(include_str!("syscalls/x86_64.txt")));
static GENERIC: Table = LazyLock::new(|| parse(include_str!("syscalls/generic.txt")));

/// Name of a system call without `sys_`. `None` also on architectures without a table here.
pub(super) fn name(architecture: &str, number: i128) -> Option<&'static str> {
    let table = match architecture {
        "x86_64" => &X86_64,
        "aarch64" | "riscv64" | "loongarch64" => &GENERIC,
        _ => return None,
    };
    table.get(&number).copied()
}

fn parse(text: &'static str) -> BTreeMap<i128, &'static str> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter_map(|(number, name)| Some((number.parse().ok()?, name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls() {
        assert_eq!(name("x86_64", 0), Some("read"));
        assert_eq!(name("x86_64", 59), Some("execve"));
        assert_eq!(name("x86_64", 400), None);
        assert_eq!(name("aarch64", 63), Some("read"));
        assert_eq!(name("riscv64", 221), Some("execve"));
        assert_eq!(name("aarch64", -1), None);
        assert_eq!(name("sparc64", 0), None);
    }

    #[test]
    fn all_lines_are_read() {
        for text in [
            include_str!("syscalls/x86_64.txt"),
            include_str!("syscalls/generic.txt"),
        ] {
            let lines = text.lines().filter(|line| !line.starts_with('#')).count();
            assert_eq!(parse(text).len(), lines);
            assert!(lines > 300);
        }
    }

    /// Calls newer than 5.1 have the same number on all architectures.
    #[test]
    fn tables_agree() {
        for (number, name) in GENERIC.iter().filter(|(number, _)| **number >= 424) {
            assert_eq!(X86_64.get(number), Some(name));
        }
    }
}
