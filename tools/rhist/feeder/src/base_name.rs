// SPDX-License-Identifier: MIT OR Apache-2.0

//! The name of a file without its folders.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

/// Most bytes of a name (`NAME_MAX`), and of a name that is kept.
pub const MOST_NAME: usize = 255;

/// Time for the search in the mappings of processes.
const SEARCH: Duration = Duration::from_millis(200);

/// What the kernel appends to the path of a file that is deleted.
const DELETED: &[u8] = b" (deleted)";

/// The name of the file that is standard input, which was opened by the path `image`; empty if it
/// is not known.
///
/// The module's `image` reads another file without leading to it. So the name is looked for in the
/// mappings of processes, by the device, `MAJOR:MINOR`, and the number of the inode.
pub fn base_name(image: &OsStr, device: &OsStr, inode: &OsStr) -> Vec<u8> {
    let image = Path::new(image);
    let own = image.parent().and_then(|folder| folder.canonicalize().ok());
    let own = own.zip(image.file_name()).map(|(folder, name)| folder.join(name));
    match fs::read_link("/proc/self/fd/0") {
        Ok(path) if Some(&path) != own.as_ref() => last(path.as_os_str().as_bytes()),
        _ => mapped(device, inode).unwrap_or_default(),
    }
}

/// The name in the mappings of a process that has mapped a file, of the newest one first.
fn mapped(device: &OsStr, inode: &OsStr) -> Option<Vec<u8>> {
    let (major, minor) = device.to_str()?.split_once(':')?;
    let device = format!("{:02x}:{:02x}", major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    let begin = Instant::now();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut processes: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    processes.sort_unstable_by_key(|(number, _)| Reverse(*number));
    let mut processes = processes.iter().take_while(|_| begin.elapsed() < SEARCH);
    processes.find_map(|(_, process)| {
        let maps = BufReader::new(fs::File::open(process.join("maps")).ok()?);
        maps.split(b'\n')
            .map_while(Result::ok)
            .find_map(|line| name_of(&line, device.as_bytes(), inode.as_bytes()))
    })
}

/// The name in a line of mappings, if that is of a file: `ADDRESSES RIGHTS OFFSET DEVICE INODE
/// PATH`.
fn name_of(line: &[u8], device: &[u8], inode: &[u8]) -> Option<Vec<u8>> {
    let mut words = line.splitn(6, |byte| *byte == b' ').skip(3);
    let is_it = words.next()? == device && words.next()? == inode;
    is_it.then(|| last(words.next().unwrap_or_default().trim_ascii_start()))
}

/// The last part of a path.
fn last(path: &[u8]) -> Vec<u8> {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name[..name.len().min(MOST_NAME)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_paths() {
        for (path, name) in [
            ("/usr/bin/sh", "sh"),
            ("/tmp/a b (deleted)", "a b"),
            ("/memfd:jit (deleted)", "memfd:jit"),
            ("/", ""),
            ("pipe:[7]", "pipe:[7]"),
        ] {
            assert_eq!(last(path.as_bytes()), name.as_bytes());
        }
        assert_eq!(last(&[b'a'; 300]).len(), MOST_NAME);
    }

    #[test]
    fn lines_of_mappings() {
        let line = b"7f00-7f10 r-xp 00001000 08:01 77                         /usr/bin/a b";
        assert_eq!(name_of(line, b"08:01", b"77").unwrap(), b"a b");
        assert_eq!(name_of(line, b"08:01", b"7"), None);
        assert_eq!(name_of(line, b"08:02", b"77"), None);
        assert_eq!(name_of(b"7f00-7f10 rw-p", b"08:01", b"77"), None);
        assert_eq!(name_of(b"", b"08:01", b"77"), None);
    }

    #[test]
    fn a_file_that_this_program_has_mapped() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("/libc.so.6")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (major, minor) = words[3].split_once(':').unwrap();
        let number = |text| u32::from_str_radix(text, 16).unwrap();
        let device = format!("{}:{}", number(major), number(minor));
        let name = mapped(OsStr::new(&device), OsStr::new(words[4])).unwrap();
        assert_eq!(name, b"libc.so.6");
        assert_eq!(mapped(OsStr::new("-"), OsStr::new("-")), None);
        assert_eq!(mapped(OsStr::new("8:1"), OsStr::new("none")), None);
    }
}
