// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of block devices.

use super::proc::ProcFile;
use super::proc::Table;

pub(super) const FILE: ProcFile = ProcFile {
    name: "partitions",
    parse,
};

/// Bits of the minor number. Trace events record `dev_t` in the kernel's internal form.
const MINOR_BITS: u32 = 20;

fn parse(partitions: &str) -> Table {
    partitions.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(i128, String)> {
    let mut words = line.split_whitespace();
    let major: u32 = words.next()?.parse().ok()?;
    let minor: u32 = words.next()?.parse().ok()?;
    let name = words.nth(1)?;
    Some((i128::from(major) << MINOR_BITS | i128::from(minor), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions() {
        let names = parse(
            "major minor  #blocks  name\n\n 254        0  268435456 vda\n 254        1       1024 vda1\n 259 1048575 5 nvme9\nx\n8",
        );
        assert_eq!(names.len(), 3);
        assert_eq!(names[&266338304], "vda");
        assert_eq!(names[&266338305], "vda1");
        assert_eq!(names[&((259 << 20) + 0xfffff)], "nvme9");
    }
}
