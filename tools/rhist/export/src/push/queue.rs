// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queue of batches that no receiver has accepted yet, in a folder. Batches left when the process
//! ends or is killed are sent by the next process.
//!
//! ```text
//! STATE/push/http%3A%2F%2Flocalhost%3A4318%2Fv1%2Fmetrics/    one folder per receiver
//!     1/  2/  …                         one per concurrent process, locked with flock(2)
//!         00000000000000000041          a batch
//! ```
//!
//! Entries with other names, and anything but regular files, are left alone.
//!
//! A file is a line with the length and a checksum, then the batch. A truncated file, as after a
//! crash of the machine, is skipped and counted. Nothing waits for the disk: data that the kernel
//! has not written at a crash is lost.
//!
//! If a file cannot be written, because the disk is full for example, the batch stays in memory
//! until a write succeeds. If one cannot be read for now, because the process has no file
//! descriptors left for example, it stays, and others go first.

use std::collections::VecDeque;
use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Instant;

use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;
use rhist_core::lock::LockFile;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Batch;
use super::Encoding;

/// Characters of a URL that stay as they are in the name of a folder.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Limit of processes that push to the same receiver at the same time.
const FOLDERS: u32 = 64;

/// Limit of a batch's number, far from an overflow of the numbers that follow.
const LAST: u64 = 1 << 62;

/// Minimum size of a file on disk, in bytes.
const BLOCK: u64 = 4096;

/// Limit of the first line of a file, in bytes.
const MAX_HEADER: u64 = 80;

/// Variable that names another folder for the state, for tests.
pub const STATE_VARIABLE: &str = "RHIST_STATE";

/// Default folder for queues: the state directory that systemd gives a service, `/var/lib/rhist`
/// for root, for others the user's state folder. `None` if no variable names one.
pub fn state_folder() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = variable(STATE_VARIABLE).or_else(|| variable("STATE_DIRECTORY")) {
        return Some(folder);
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/rhist"));
    }
    let folder = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(folder.join("rhist"))
}

/// Limits of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of all batches, in bytes. A file counts at least 4 KiB, which it occupies on most file
    /// systems.
    pub bytes: u64,
    /// Size of the batches held in memory because they cannot be written, in bytes.
    pub held: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bytes: 64 << 20,
            held: 4 << 20,
        }
    }
}

/// Batches in order. Beyond a limit, the oldest are dropped.
#[derive(Debug)]
pub struct Queue {
    /// `None` for a queue in memory.
    folder: Option<Folder>,
    limits: Limits,
    entries: VecDeque<Entry>,
    /// Number for the next batch.
    next: u64,
    /// Highest number with a failed attempt since the last removal of a batch.
    passed: u64,
    dropped: u64,
    unreadable: u64,
}

/// Folder of this process.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Has the lock.
    _lock: LockFile,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// Size for the limits, in bytes.
    bytes: u64,
    /// `None` if the batch is in a file.
    held: Option<Batch>,
    /// Number of failed attempts.
    failures: u32,
    /// Time until which other batches go first.
    put_off: Option<Instant>,
}

impl Entry {
    fn new(number: u64, bytes: u64, held: Option<Batch>) -> Self {
        Self {
            number,
            bytes,
            held,
            failures: 0,
            put_off: None,
        }
    }
}

/// Result of adding a batch.
#[derive(Debug, Default)]
pub struct Added {
    /// The error, if the batch could not be written, and is held in memory.
    pub held: Option<io::Error>,
    /// Number of older batches dropped for it.
    pub dropped: u64,
}

impl Queue {
    /// Opens the queue of a receiver, in a folder of this process below `state`. Takes over the
    /// batches of processes that have ended.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, read or locked, or too many processes push to this receiver.
    pub fn open(state: &Path, url: &str, limits: Limits) -> io::Result<Self> {
        let all = state.join("push").join(utf8_percent_encode(url, KEPT).to_string());
        // Measurements are private to this user.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        let folder = (1..=FOLDERS).find_map(|number| Folder::lock(all.join(number.to_string())).transpose());
        let folder = folder.ok_or(io::Error::other("too many processes push to this receiver"))??;
        let mut queue = Queue {
            folder: Some(folder),
            ..Self::in_memory(limits)
        };
        queue.find()?;
        queue.adopt(&all);
        queue.shorten(None);
        Ok(queue)
    }

    /// Opens the queue of a receiver in a folder below `state`. If that fails, opens one in memory,
    /// and passes the reason to `tell`.
    pub fn somewhere(state: Option<PathBuf>, url: &str, limits: Limits, tell: impl FnOnce(&str)) -> Self {
        let open =
            |state: PathBuf| Self::open(&state, url, limits).map_err(|error| format!("{}: {error}", state.display()));
        let queue = state.ok_or_else(|| "no folder for it".to_owned()).and_then(open);
        queue.unwrap_or_else(|error| {
            tell(&format!(
                "the queue is in memory only, and lost when rhist ends: {error}"
            ));
            Self::in_memory(limits)
        })
    }

    /// Creates a queue that exists only as long as the process.
    pub fn in_memory(limits: Limits) -> Self {
        Queue {
            folder: None,
            limits,
            entries: VecDeque::new(),
            next: 1,
            passed: 0,
            dropped: 0,
            unreadable: 0,
        }
    }

    /// Lists the batches in the folder.
    fn find(&mut self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        // Continues after all names, also of entries that are not batches.
        self.next = folder
            .entries()?
            .iter()
            .map(|(number, _)| number + 1)
            .max()
            .unwrap_or(1);
        let found = folder.batches()?.into_iter();
        self.entries = found.map(|(number, bytes)| Entry::new(number, bytes, None)).collect();
        Ok(())
    }

    /// Takes over batches from folders of processes that have ended.
    fn adopt(&mut self, all: &Path) {
        let Some(folder) = &self.folder else { return };
        let others = (1..=FOLDERS).map(|number| all.join(number.to_string()));
        for other in others.filter(|path| *path != folder.path && path.is_dir()) {
            let Ok(Some(other)) = Folder::lock(other) else { continue };
            for (number, bytes) in other.batches().unwrap_or_default() {
                if fs::rename(other.file(number), folder.file(self.next)).is_ok() {
                    self.entries.push_back(Entry::new(self.next, bytes, None));
                    self.next += 1;
                }
            }
        }
    }

    /// Adds a batch. Does not drop `in_flight` to make space.
    pub fn push(&mut self, batch: Batch, in_flight: Option<u64>) -> Added {
        let number = self.next;
        self.next += 1;
        let written = match &self.folder {
            Some(folder) => folder.write(number, &batch),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        let mut added = Added::default();
        self.entries.push_back(match written {
            Ok(bytes) => Entry::new(number, bytes, None),
            Err(error) => {
                added.held = self.folder.is_some().then_some(error);
                Entry::new(number, batch.body.len() as u64, Some(batch))
            }
        });
        added.dropped = match added.held {
            None => self.write_held(in_flight),
            Some(_) => self.shorten(in_flight),
        };
        added
    }

    /// Writes the batches held in memory, the oldest first, until a write fails. Returns the number
    /// dropped, since files count for more. Does not drop `in_flight`.
    pub fn write_held(&mut self, in_flight: Option<u64>) -> u64 {
        if let Some(folder) = &self.folder {
            for entry in &mut self.entries {
                let Some(batch) = &entry.held else { continue };
                let Ok(bytes) = folder.write(entry.number, batch) else {
                    break;
                };
                (entry.bytes, entry.held) = (bytes, None);
            }
        }
        self.shorten(in_flight)
    }

    /// Drops the oldest batches beyond the limits.
    fn shorten(&mut self, in_flight: Option<u64>) -> u64 {
        let before = self.dropped;
        // A queue in memory has only the limit for all batches.
        let held_limit = self.folder.as_ref().map_or(self.limits.bytes, |_| self.limits.held);
        let (mut bytes, mut held) = (self.bytes(), self.held());
        let mut place = 0;
        while bytes > self.limits.bytes || held > held_limit {
            let Some(entry) = self.entries.get(place) else { break };
            let frees = bytes > self.limits.bytes || entry.held.is_some();
            if in_flight == Some(entry.number) || !frees {
                place += 1;
                continue;
            }
            bytes -= entry.bytes;
            if entry.held.is_some() {
                held -= entry.bytes;
            }
            self.take(place);
            self.dropped += 1;
        }
        self.dropped - before
    }

    /// Next batch to send, with its number: the oldest one that is not put off, but first the ones
    /// that have not failed since the last removal. Drops and counts invalid files.
    ///
    /// # Errors
    ///
    /// The batch cannot be read for now.
    pub fn next(&mut self, now: Instant) -> Option<(u64, io::Result<Batch>)> {
        loop {
            let is_ready = |entry: &&Entry| entry.put_off.is_none_or(|until| until <= now);
            let mut ready = self.entries.iter().filter(is_ready);
            let entry = ready
                .clone()
                .find(|entry| entry.number > self.passed)
                .or_else(|| ready.next())?;
            let number = entry.number;
            let batch = match (&entry.held, &self.folder) {
                (Some(batch), _) => Ok(Some(batch.clone())),
                (None, Some(folder)) => folder.read(number),
                (None, None) => Ok(None),
            };
            if let Some(batch) = batch.transpose() {
                return Some((number, batch));
            }
            self.unreadable += 1;
            self.drop_entry(number);
        }
    }

    /// Records a failed attempt that the batch itself may have caused. From the failure number
    /// `most` on, others go first, at least until `until(failures)`. Returns the number of
    /// failures.
    pub fn failed(&mut self, number: u64, most: u32, until: impl FnOnce(u32) -> Instant) -> u32 {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) else {
            return 0;
        };
        entry.failures = entry.failures.saturating_add(1);
        if entry.failures >= most {
            entry.put_off = Some(until(entry.failures));
            self.passed = number;
        }
        entry.failures
    }

    /// Earliest end of a delay among the batches put off.
    pub fn due(&self) -> Option<Instant> {
        self.entries.iter().filter_map(|entry| entry.put_off).min()
    }

    /// Removes a batch that was accepted or rejected.
    pub fn remove(&mut self, number: u64) {
        self.drop_entry(number);
        self.passed = 0;
    }

    fn drop_entry(&mut self, number: u64) {
        if let Some(place) = self.entries.iter().position(|entry| entry.number == number) {
            self.take(place);
        }
    }

    fn take(&mut self, place: usize) {
        if let Some(entry) = self.entries.remove(place)
            && let (None, Some(folder)) = (&entry.held, &self.folder)
        {
            // If that fails, the next process sends the batch again.
            let _ = fs::remove_file(folder.file(entry.number));
        }
    }

    /// Number of batches.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Size of all batches for the limits, in bytes.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// Size of the batches held in memory, in bytes.
    pub fn held(&self) -> u64 {
        let held = self.entries.iter().filter(|entry| entry.held.is_some());
        held.map(|entry| entry.bytes).sum()
    }

    /// Number of batches that are lost when this process ends.
    pub fn volatile(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.held.is_some()).count() as u64
    }

    /// Number of batches dropped because of a limit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Number of unreadable batches, such as truncated files.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Folder of the batches; `None` for a queue in memory.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path.as_path())
    }
}

impl Folder {
    /// Creates a folder if necessary, and locks it. `None` if another process holds the lock, or
    /// the path is not a folder.
    fn lock(path: PathBuf) -> io::Result<Option<Self>> {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => (),
        }
        let lock = match open(&path, OFlags::DIRECTORY) {
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            lock => LockFile::new(lock?),
        };
        match lock.lock() {
            Ok(()) => Ok(Some(Folder { path, _lock: lock })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:020}"))
    }

    /// Entries named like batches, with their numbers.
    fn entries(&self) -> io::Result<Vec<(u64, fs::DirEntry)>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(number) = number.filter(|number| *number <= LAST && entry.path() == self.file(*number)) {
                entries.push((number, entry));
            }
        }
        Ok(entries)
    }

    /// Numbers of the batches in order, with their sizes.
    fn batches(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut batches = self.entries()?;
        batches.retain(|(_, entry)| entry.file_type().is_ok_and(|kind| kind.is_file()));
        batches.sort_unstable_by_key(|(number, _)| *number);
        // If the length is unavailable now, the file may still be readable later.
        let bytes = |entry: fs::DirEntry| entry.metadata().map_or(BLOCK, |file| on_disk(file.len()));
        Ok(batches
            .into_iter()
            .map(|(number, entry)| (number, bytes(entry)))
            .collect())
    }

    /// Reads a batch. `None` if it is missing or incomplete. Never blocks, whatever the path refers
    /// to.
    fn read(&self, number: u64) -> io::Result<Option<Batch>> {
        let mut file = match open(&self.file(number), OFlags::NONBLOCK) {
            // Missing only if the folder itself still exists.
            Err(Errno::NOENT) if fs::symlink_metadata(&self.path).is_ok() => return Ok(None),
            Err(Errno::LOOP | Errno::NXIO) => return Ok(None),
            file => file?,
        };
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(parse(bytes))
    }

    /// Writes a batch. Returns its size for the limits. Removes the file on failure.
    fn write(&self, number: u64, batch: &Batch) -> io::Result<u64> {
        let path = self.file(number);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let header = header(batch);
        let written = file
            .write_all(header.as_bytes())
            .and_then(|()| file.write_all(&batch.body));
        if let Err(error) = written {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(on_disk((header.len() + batch.body.len()) as u64))
    }
}

fn on_disk(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK).max(BLOCK)
}

/// First line of a file.
fn header(batch: &Batch) -> String {
    format!(
        "rhist 1 {} {} {:016x}\n",
        batch.encoding.word(),
        batch.body.len(),
        checksum(&batch.body)
    )
}

/// Opens a path without following a symbolic link.
fn open(path: &Path, flags: OFlags) -> rustix::io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Parses the contents of a file. `None` if it is incomplete or damaged.
fn parse(mut bytes: Vec<u8>) -> Option<Batch> {
    let end = bytes.iter().take(MAX_HEADER as usize).position(|byte| *byte == b'\n')? + 1;
    let line = std::str::from_utf8(&bytes[..end]).ok()?.to_owned();
    let encoding = Encoding::parse(line.split(' ').nth(2)?)?;
    bytes.drain(..end);
    let batch = Batch { encoding, body: bytes };
    (header(&batch) == line).then_some(batch)
}

/// FNV-1a of 64 bits, which detects truncated and unwritten data.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
