// SPDX-License-Identifier: MIT OR Apache-2.0

//! Batches that are not accepted yet, in a folder: what is not sent when the process ends, or is killed, is sent by the next
//! one.
//!
//! ```text
//! STATE/push/http%3A%2F%2Flocalhost%3A4318%2Fv1%2Fmetrics/     what goes to one receiver, and to no other
//!     1/  2/  …                                                 of each process at the same time, which has a lock (flock(2)) on it
//!         00000000000000000041                                  a batch
//! ```
//!
//! What has another name, or is no file, is not the queue's: it is left alone.
//!
//! A file is a line with the length and a checksum, and the batch. One that was cut off, as when the machine went down, is left
//! out, and counted. Nothing waits for the disk: what the kernel has not written when the machine goes down is lost.
//!
//! If a file cannot be written, as when the disk is full, the batch is held in memory, and written when that can be done again.
//! If one cannot be read for now, as when the process has no more file descriptors, it stays, and others have their turn.

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
use rustix::fs::FlockOperation;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Batch;
use super::Encoding;

/// Characters of a URL that the name of a folder keeps.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Processes that push to the same receiver at the same time.
const FOLDERS: u32 = 64;

/// No batch has a larger number: counting on from there ends nowhere.
const LAST: u64 = 1 << 62;

/// What a file takes of the disk at least.
const BLOCK: u64 = 4096;

/// Longer first lines are none.
const MAX_HEADER: u64 = 80;

/// Names another folder for what is kept, for tests.
pub const STATE_VARIABLE: &str = "RHIST_STATE";

/// Where queues are, if nothing else is said: what systemd gives a service, `/var/lib/rhist` for root, for others the folder
/// that programs of a user have. `None` if there is no such folder.
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

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all batches. A file counts as no less than 4 KiB, which it takes on most file systems.
    pub bytes: u64,
    /// Bytes of those that are held in memory, since they cannot be written.
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

/// Batches in their order. Beyond a limit, the oldest are dropped.
#[derive(Debug)]
pub struct Queue {
    /// `None` if all of them are held in memory.
    folder: Option<Folder>,
    limits: Limits,
    entries: VecDeque<Entry>,
    /// Number of the next one.
    next: u64,
    /// Since a batch was removed, attempts with those up to this number have failed.
    passed: u64,
    dropped: u64,
    unreadable: u64,
}

/// A folder of this process.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Has the lock, as long as it is open.
    _lock: File,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// What it counts for.
    bytes: u64,
    /// `None` if it is in a file.
    held: Option<Batch>,
    /// Attempts that have failed.
    failures: u32,
    /// Until then, others have their turn.
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

/// What came of adding a batch.
#[derive(Debug, Default)]
pub struct Added {
    /// Why it could not be written, and is held in memory.
    pub held: Option<io::Error>,
    /// How many older ones were dropped for it.
    pub dropped: u64,
}

impl Queue {
    /// The queue of a receiver, in a folder of this process below `state`, with what others have left that are gone.
    ///
    /// # Errors
    ///
    /// The file system's, if there can be no such folder.
    pub fn open(state: &Path, url: &str, limits: Limits) -> io::Result<Self> {
        let all = state.join("push").join(utf8_percent_encode(url, KEPT).to_string());
        // What is measured is for nobody else.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        let folder = (1..=FOLDERS).find_map(|number| Folder::lock(all.join(number.to_string())).transpose());
        let folder = folder.ok_or(io::Error::other("too many processes push to there"))??;
        let mut queue = Queue {
            folder: Some(folder),
            ..Self::in_memory(limits)
        };
        queue.find()?;
        queue.adopt(&all);
        queue.shorten(None);
        Ok(queue)
    }

    /// The queue of a receiver in a folder below `state`, or if there can be none, in memory, which `tell` gets a sentence about.
    pub fn somewhere(state: Option<PathBuf>, url: &str, limits: Limits, tell: impl FnOnce(&str)) -> Self {
        let open =
            |state: PathBuf| Self::open(&state, url, limits).map_err(|error| format!("{}: {error}", state.display()));
        let queue = state
            .ok_or_else(|| "there is no folder for it".to_owned())
            .and_then(open);
        queue.unwrap_or_else(|error| {
            tell(&format!(
                "the queue is not on disk, and what it has when rhist ends is lost: {error}"
            ));
            Self::in_memory(limits)
        })
    }

    /// A queue that is gone when the process ends.
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

    /// Finds the batches in the folder.
    fn find(&mut self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        // Also behind what has such a name and is no batch.
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

    /// Takes over what is in folders of processes that are gone.
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

    /// Adds a batch. `in_flight` is one that must not be dropped for it.
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

    /// Writes what is held in memory, the oldest first, as far as that can be done now. Returns how many were dropped, as
    /// files count for more. `in_flight` is one that must not be.
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

    /// Drops the oldest ones beyond the limits.
    fn shorten(&mut self, in_flight: Option<u64>) -> u64 {
        let before = self.dropped;
        // In memory alone there is no other limit.
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

    /// The batch whose turn it is, and its number: the oldest one that is not put off, after those that have failed since
    /// another one was removed. What is no batch is left out, and counted.
    ///
    /// # Errors
    ///
    /// Why the batch cannot be read for now.
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

    /// Notes that an attempt with a batch has failed, which may be due to it. From the failure number `most` on, others have
    /// their turn, at least until the time that `until` has for so many failures. Returns how many there were.
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

    /// When the first of those that are put off has its turn again.
    pub fn due(&self) -> Option<Instant> {
        self.entries.iter().filter_map(|entry| entry.put_off).min()
    }

    /// Removes a batch, since it was accepted, or never will be.
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
            // If it stays, it is sent again by the next process: nothing can be done about that here.
            let _ = fs::remove_file(folder.file(entry.number));
        }
    }

    /// How many batches there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What they count for.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// How many bytes are held in memory.
    pub fn held(&self) -> u64 {
        let held = self.entries.iter().filter(|entry| entry.held.is_some());
        held.map(|entry| entry.bytes).sum()
    }

    /// How many there are that end with this process.
    pub fn volatile(&self) -> u64 {
        self.entries.iter().filter(|entry| entry.held.is_some()).count() as u64
    }

    /// How many were dropped for others.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many could not be read, such as files that were cut off.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Where they are.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path.as_path())
    }
}

impl Folder {
    /// Makes a folder, if it is not there, and locks it. `None` if somebody has the lock, or it is something else.
    fn lock(path: PathBuf) -> io::Result<Option<Self>> {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => (),
        }
        let lock = match open(&path, OFlags::DIRECTORY) {
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            lock => lock?,
        };
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Folder { path, _lock: lock })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:020}"))
    }

    /// What has the name of a batch, and its number.
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

    /// Numbers of the batches in their order, and what each counts for.
    fn batches(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut batches = self.entries()?;
        batches.retain(|(_, entry)| entry.file_type().is_ok_and(|kind| kind.is_file()));
        batches.sort_unstable_by_key(|(number, _)| *number);
        // One whose length cannot be had now may be read later.
        let bytes = |entry: fs::DirEntry| entry.metadata().map_or(BLOCK, |file| on_disk(file.len()));
        Ok(batches
            .into_iter()
            .map(|(number, entry)| (number, bytes(entry)))
            .collect())
    }

    /// Reads a batch: `None` if there is none, or not all of it. This waits for nobody, whatever is there.
    fn read(&self, number: u64) -> io::Result<Option<Batch>> {
        let mut file = match open(&self.file(number), OFlags::NONBLOCK) {
            // Unless the folder itself is away.
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

    /// Writes a batch. Returns what it counts for. If it fails, nothing is left.
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

/// The first line of a file.
fn header(batch: &Batch) -> String {
    format!(
        "rhist 1 {} {} {:016x}\n",
        batch.encoding.word(),
        batch.body.len(),
        checksum(&batch.body)
    )
}

/// Opens what is there itself, no other place that it names.
fn open(path: &Path, flags: OFlags) -> rustix::io::Result<File> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// The batch that these bytes of a file are, if it is whole.
fn parse(mut bytes: Vec<u8>) -> Option<Batch> {
    let end = bytes.iter().take(MAX_HEADER as usize).position(|byte| *byte == b'\n')? + 1;
    let line = std::str::from_utf8(&bytes[..end]).ok()?.to_owned();
    let encoding = Encoding::parse(line.split(' ').nth(2)?)?;
    bytes.drain(..end);
    let batch = Batch { encoding, body: bytes };
    (header(&batch) == line).then_some(batch)
}

/// FNV-1a of 64 bits: it finds what was cut off, or never written.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
