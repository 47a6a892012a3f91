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
use rustix::fs::openat;
use rustix::fs::openat2;

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
    /// Its number in its own namespace, which it knows.
    number: u32,
}

impl MapFile {
    /// Opens the map of a process as standard input, for code in a mapping of it. To be called
    /// before the process that reads it gives up its rights.
    ///
    /// Any user can put anything there. So the path is looked up within the root of that process,
    /// and the file is opened only if it is a regular one, of the user of that process or of root.
    ///
    /// # Errors
    ///
    /// [`End::NotHeld`] if it lacks such a map or mapping, or has ended.
    pub fn open(process: u32, begin: u64) -> Result<Self, End> {
        let mapping = mapping(process, begin).ok_or(End::NotHeld)?;
        let status = fs::read_to_string(format!("/proc/{process}/status")).map_err(|_| End::NotHeld)?;
        let status = Process::of(&status).ok_or(End::NotHeld)?;
        let file = find(process, &status).map_err(|_| End::NotHeld)?;
        let found = file.metadata().map_err(|_| End::NotHeld)?;
        if !found.is_file() || ![status.user, 0].contains(&found.uid()) {
            return Err(End::NotHeld);
        }
        // Not before it is known as a regular one: to open a device may do something.
        let file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|_| End::NotHeld)?;
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

/// The executable mapping without a file that begins at an address.
fn mapping(process: u32, begin: u64) -> Option<Range<u64>> {
    let maps = BufReader::new(File::open(format!("/proc/{process}/maps")).ok()?);
    let mut lines = maps.split(b'\n').map_while(Result::ok);
    lines.find_map(|line| mapping_of(&line).filter(|mapping| mapping.start == begin))
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

/// Finds the map of a process, without opening it.
fn find(process: u32, status: &Process) -> rustix::io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root: OwnedFd = openat(
        CWD,
        format!("/proc/{process}/root"),
        flags | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    let path = format!("tmp/perf-{}.map", status.number);
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    // Of a link at the end, the link itself is found, which is refused later.
    openat2(root, path, flags | OFlags::NOFOLLOW, Mode::empty(), within).map(File::from)
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
            // Of the innermost namespace.
            number: words("NSpid:")?.next_back()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
