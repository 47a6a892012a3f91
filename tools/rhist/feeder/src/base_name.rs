// SPDX-License-Identifier: MIT OR Apache-2.0

//! The name of a file without its folders.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::StatxFlags;
use rustix::fs::statx;

/// Most bytes of a name (`NAME_MAX`), and of a name that is kept.
pub const MOST_NAME: usize = 255;

/// Time for the search in the mappings of processes.
const SEARCH: Duration = Duration::from_millis(500);

/// Lines after which the time is looked at.
const LINES: usize = 1000;

/// Appended by the kernel to the path of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// The name of the file that is read by the path `image`; empty if it is not known.
///
/// The module's `image` reads another file without leading to it. So the name is looked for in the
/// mappings of processes, by the device, `MAJOR:MINOR`, and the number of the inode. A link, which
/// stands for it in tests, leads there.
pub fn base_name(image: &OsStr, device: &OsStr, inode: &OsStr) -> Vec<u8> {
    match fs::read_link(image) {
        Ok(path) => last(path.as_os_str().as_bytes()),
        // The module knows the size without asking the file system.
        Err(_) => mapped(device, inode, fs::metadata(image).map_or(0, |image| image.len())).unwrap_or_default(),
    }
}

/// The name in the mappings of a process that has mapped a file, of the newest one first.
///
/// For a file of overlayfs, the list has device and inode of the file in the layer, but mappings
/// have the device of overlayfs, and mostly the same inode. So the same inode with the same size is
/// taken if no file has the same device.
fn mapped(device: &OsStr, inode: &OsStr, size: u64) -> Option<Vec<u8>> {
    let (major, minor) = device.to_str()?.split_once(':')?;
    let device = format!("{:02x}:{:02x}", major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    let begin = Instant::now();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut processes: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    processes.sort_unstable_by_key(|(number, _)| Reverse(*number));
    let mut similar = None;
    for (_, process) in processes.iter().take_while(|_| begin.elapsed() < SEARCH) {
        let Ok(maps) = File::open(process.join("maps")) else {
            continue;
        };
        for (number, line) in BufReader::new(maps).split(b'\n').map_while(Result::ok).enumerate() {
            // A process may have 65,000.
            if number % LINES == LINES - 1 && begin.elapsed() >= SEARCH {
                break;
            }
            let Some(mapping) = Mapping::of(&line).filter(|mapping| mapping.inode == inode.as_bytes()) else {
                continue;
            };
            if mapping.device == device.as_bytes() {
                return Some(last(mapping.path));
            }
            if similar.is_none() && size > 0 && mapping.size(process) == Some(size) {
                similar = Some(last(mapping.path));
            }
        }
    }
    similar
}

/// A line of mappings: `ADDRESSES RIGHTS OFFSET DEVICE INODE PATH`.
#[derive(Clone, Copy, Debug)]
struct Mapping<'a> {
    addresses: &'a [u8],
    device: &'a [u8],
    inode: &'a [u8],
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let words: Vec<&[u8]> = line.splitn(6, |byte| *byte == b' ').collect();
        match words[..] {
            [addresses, _, _, device, inode, path] => Some(Self {
                addresses,
                device,
                inode,
                path: path.trim_ascii_start(),
            }),
            _ => None,
        }
    }

    /// The name of its link in `map_files`, in which addresses lack zeros in front.
    fn link(&self) -> Option<String> {
        let (begin, end) = str::from_utf8(self.addresses).ok()?.split_once('-')?;
        let [begin, end] = [begin, end].map(|address| address.trim_start_matches('0'));
        Some(format!("{begin}-{end}"))
    }

    /// Bytes of the file, as the kernel knows it: a file system that does not answer is not asked.
    fn size(&self, process: &Path) -> Option<u64> {
        let path = process.join("map_files").join(self.link()?);
        let file = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::SIZE).ok()?;
        Some(file.stx_size)
    }
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
        let mapping = Mapping::of(line).unwrap();
        assert_eq!((mapping.addresses, mapping.device), (&b"7f00-7f10"[..], &b"08:01"[..]));
        assert_eq!((mapping.inode, mapping.path), (&b"77"[..], &b"/usr/bin/a b"[..]));
        for len in 0..line.len() {
            let _ = Mapping::of(&line[..len]);
        }
        assert!(Mapping::of(b"7f00-7f10 rw-p 0 08:01 77").is_none());
    }

    #[test]
    fn a_file_that_this_program_has_mapped() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("/libc.so.6")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (major, minor) = words[3].split_once(':').unwrap();
        let number = |text| u32::from_str_radix(text, 16).unwrap();
        let device = format!("{}:{}", number(major), number(minor));
        let size = fs::metadata(words[5]).unwrap().len();
        let find = |device: &str, inode: &str, size| {
            let name = mapped(OsStr::new(device), OsStr::new(inode), size);
            name.map(|name| String::from_utf8(name).unwrap())
        };
        let name = Some("libc.so.6".to_owned());
        assert_eq!(find(&device, words[4], 0), name);
        assert_eq!(find(&device, "none", size), None);
        assert_eq!(find("-", "-", size), None);
        // As with overlayfs. Only some users may look at the file itself.
        let may_look = fs::metadata(format!("/proc/self/map_files/{}", words[0])).is_ok();
        assert_eq!(find("4095:77", words[4], size), name.filter(|_| may_look));
        assert_eq!(find("4095:77", words[4], size + 1), None);
    }

    #[test]
    fn links_of_mappings() {
        let link = |line: &str| Mapping::of(line.as_bytes())?.link();
        let low = "00400000-00420000 r--p 00000000 00:31 20246211      /usr/bin/python3.13";
        assert_eq!(link(low).as_deref(), Some("400000-420000"));
        let high = "7f0000001000-7f0000003000 r-xp 00001000 08:01 7 /a b";
        assert_eq!(link(high).as_deref(), Some("7f0000001000-7f0000003000"));
        assert_eq!(link("00400000 r--p 0 0:0 1 /a"), None);
    }
}
