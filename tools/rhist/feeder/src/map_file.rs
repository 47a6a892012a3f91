// SPDX-License-Identifier: MIT OR Apache-2.0

//! The file in which a program names the code that it makes while it runs: its perf map.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rhist_symbols::MOST_MAP_BYTES;
use rhist_symbols::PerfMap;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::ResolveFlags;
use rustix::fs::open;
use rustix::fs::openat;
use rustix::fs::openat2;

use crate::confinement::become_user;
use crate::input::End;

/// The argument that stands for code without a file.
pub const MEMORY: &str = "memory";

/// The perf map of a process, before it is read.
#[derive(Debug)]
pub struct MapFile {
    /// The executable mapping whose code is wanted.
    pub mapping: Range<u64>,
}

/// A process, as `/proc` shows it.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    /// Its effective user.
    user: u32,
    /// Its effective group.
    group: u32,
    /// Its number in its own namespace, which it knows.
    number: u32,
}

impl MapFile {
    /// Opens the map of a process as standard input, for code in a mapping of it. `start` is when
    /// that process began: see [`start()`]. To be called before the process that reads it gives up
    /// its rights. This process becomes the user of that one.
    ///
    /// Any user can put anything there, also by a mount of its own. So the path is looked up within
    /// the root of that process, and the file is opened with the rights of its user, and only if it
    /// is a regular one of that user, and no mount.
    ///
    /// # Errors
    ///
    /// [`End::NotHeld`] if it lacks such a map or mapping, has ended, or its user cannot be become.
    pub fn open(process: u32, start: u64, begin: u64) -> Result<Self, End> {
        let found = || -> io::Result<(Range<u64>, File)> {
            // From here on one process, whatever gets its number later.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = openat(CWD, format!("/proc/{process}"), flags, Mode::empty())?;
            if start_of(&text(&folder, "stat")?) != Some(start) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let mapping = mapping(&folder, begin)?.ok_or(io::ErrorKind::NotFound)?;
            let process = Process::of(&text(&folder, "status")?).ok_or(io::ErrorKind::InvalidData)?;
            let root = openat(&folder, "root", flags, Mode::empty())?;
            become_user(process.user, process.group)?;
            let file = find(root, process.number)?;
            let found = file.metadata()?;
            if !found.is_file() || found.uid() != process.user {
                return Err(io::ErrorKind::InvalidData.into());
            }
            // Not before it is known as a regular one: to open a device may do something.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = open(format!("/proc/self/fd/{}", file.as_raw_fd()), flags, Mode::empty())?;
            Ok((mapping, file.into()))
        };
        let (mapping, file) = found().map_err(|_| End::NotHeld)?;
        rustix::stdio::dup2_stdin(&file).map_err(|error| End::failed(io::Error::from(error)))?;
        Ok(Self { mapping })
    }

    /// Reads the map; too long a one is cut off. To be called only after the process has given up
    /// its rights.
    pub fn read(&self) -> Result<PerfMap, End> {
        let mut text = Vec::new();
        let most = MOST_MAP_BYTES as u64 + 1;
        let read = io::stdin().lock().take(most).read_to_end(&mut text);
        read.map_err(|error| End::Failed(format!("cannot be read: {error}")))?;
        Ok(PerfMap::read(&text))
    }
}

/// When a process began, in ticks since the boot. `None` if it has ended.
pub fn start(process: u32) -> Option<u64> {
    start_of(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// The time at which a process began, from the text of its `/proc/PID/stat`.
fn start_of(stat: &str) -> Option<u64> {
    // Field 22. The name, field 2 in parentheses, may have any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// A file of a process.
fn text(folder: &OwnedFd, name: &str) -> io::Result<String> {
    io::read_to_string(File::from(openat(
        folder,
        name,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?))
}

/// The executable mapping without a file that begins at an address.
fn mapping(folder: &OwnedFd, begin: u64) -> io::Result<Option<Range<u64>>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = BufReader::new(File::from(openat(folder, "maps", flags, Mode::empty())?));
    let mut lines = maps.split(b'\n').map_while(Result::ok);
    Ok(lines.find_map(|line| mapping_of(&line).filter(|mapping| mapping.start == begin)))
}

/// The addresses in a line of mappings, if they are executable and without a file.
fn mapping_of(line: &[u8]) -> Option<Range<u64>> {
    let words: Vec<&str> = line
        .splitn(6, |byte| *byte == b' ')
        .filter_map(|word| str::from_utf8(word).ok())
        .collect();
    let [addresses, rights, _, _, inode, ..] = words[..] else {
        return None;
    };
    let (start, end) = addresses.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    (rights.contains('x') && inode == "0").then_some(number(start)?..number(end)?)
}

/// Finds the map of a process, which has this root and number, without opening it.
fn find(root: OwnedFd, number: u32) -> rustix::io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let tmp = openat2(root, "tmp", flags | OFlags::DIRECTORY, Mode::empty(), within)?;
    // No link, and no mount: anybody can mount files of others in a namespace of their own.
    let here = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(tmp, format!("perf-{number}.map"), flags, Mode::empty(), here).map(File::from)
}

impl Process {
    /// Of the text of `/proc/PID/status`.
    fn of(status: &str) -> Option<Self> {
        let words = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_ascii_whitespace())
        };
        Some(Self {
            user: words("Uid:")?.nth(1)?.parse().ok()?,
            group: words("Gid:")?.nth(1)?.parse().ok()?,
            // Of the innermost namespace.
            number: words("NSpid:")?.next_back()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
