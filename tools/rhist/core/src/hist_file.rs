// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the histograms of an event from the most detailed file: `hist_delta_jsonl` or `hist_jsonl`
//! of rhist, `hist` of C.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::io::ErrorKind;
use std::io::Read;
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::hist_text;
use crate::jsonl;
use crate::question;
use crate::table::Histogram;
use crate::table::Key;
use crate::table::ReadError;
use crate::table::Table;
use crate::table::Time;
use crate::table::Value;
use crate::tracefs::Backend;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;
use crate::tracefs::format::Format;

/// Size of a read, in bytes. The kernel formats its files in pieces of about this size.
const BUFFER: usize = 1 << 16;

/// Why a file could not be read.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    why: ReadError,
}

impl Error {
    /// Returns whether only reading failed and the histograms still exist: out of file descriptors
    /// or of kernel memory, for example.
    pub fn is_passing(&self) -> bool {
        match &self.why {
            ReadError::Io(error) => {
                let is_gone =
                    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::NODEV.raw_os_error());
                !is_gone
            }
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// The intervals of an event's histograms: an open `hist_delta_jsonl`. Each read to the end returns
/// the counts since the one before.
#[derive(Debug)]
pub struct DeltaFile {
    path: PathBuf,
    file: File,
    /// Text of the current round. Kept if a read fails, as the kernel goes on behind it.
    text: Vec<u8>,
    /// Whether `text` is complete.
    is_whole: bool,
}

/// Longest wait for an interval, far above the two grace periods that it takes.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl DeltaFile {
    /// Opens the file of an event. `None` without such a file: in an older module, or in C.
    ///
    /// Histograms that are added later are read from their creation on.
    pub fn open(instance: &Tracefs, event: &str) -> Result<Option<Self>, Error> {
        if instance.backend() == Backend::C {
            return Ok(None);
        }
        let path = instance.dir().join("events").join(event).join("hist_delta_jsonl");
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        match File::options().read(true).custom_flags(flags).open(&path) {
            Ok(file) => Ok(Some(Self {
                path,
                file,
                text: Vec::new(),
                is_whole: false,
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error {
                path,
                why: ReadError::Io(error),
            }),
        }
    }

    /// Asks the kernel to end the interval, without waiting for it. Files that are asked together
    /// share the end. Returns whether [`Self::read()`] would not wait.
    pub fn ask(&mut self) -> Result<bool, Error> {
        let mut piece = [0; BUFFER];
        while !self.is_whole {
            match self.file.read(&mut piece) {
                Ok(0) => self.is_whole = true,
                Ok(length) => self.text.extend_from_slice(piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(ReadError::Io(error))),
            }
        }
        Ok(true)
    }

    /// Reads the interval of each histogram, in the order of their triggers. A histogram that has
    /// ended comes before the one that took its place.
    pub fn read(&mut self) -> Result<Vec<Histogram>, Error> {
        let end = Instant::now() + LONGEST_WAIT;
        while !self.ask()? {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.error(ReadError::Io(ErrorKind::TimedOut.into())));
            }
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(self.error(ReadError::Io(error.into()))),
            }
        }
        self.is_whole = false;
        let text = mem::take(&mut self.text);
        jsonl::read(text.as_slice()).map_err(|why| self.error(why))
    }

    fn error(&self, why: ReadError) -> Error {
        Error {
            path: self.path.clone(),
            why,
        }
    }
}

/// Reads all histograms of an event (`system/event`), in the order of their triggers.
///
/// # Errors
///
/// The file cannot be read, or it does not parse as histograms.
pub fn read(instance: &Tracefs, event: &str) -> Result<Vec<Histogram>, Error> {
    let is_c = instance.backend() == Backend::C;
    let folder = instance.dir().join("events").join(event);
    let path = folder.join(if is_c { "hist" } else { "hist_jsonl" });
    let fail = |why| Error {
        path: path.clone(),
        why,
    };
    let time = Time::now();
    let file = File::open(&path).map_err(|error| fail(ReadError::Io(error)))?;
    let reader = BufReader::with_capacity(BUFFER, file);
    if !is_c {
        return jsonl::read(reader).map_err(fail);
    }
    let mut histograms = hist_text::read(reader).map_err(fail)?;
    // C's text contains neither the event nor the time of reading.
    let (system, name) = event.split_once('/').unwrap_or(("", event));
    let format = instance.format(&EventName {
        system: system.to_owned(),
        event: name.to_owned(),
    });
    for histogram in &mut histograms {
        (histogram.system, histogram.event) = (system.to_owned(), name.to_owned());
        histogram.table.time.clone_from(&time);
        if let Ok(format) = &format {
            with_signs(&mut histogram.table, format);
        }
    }
    Ok(histograms)
}

/// Restores negative numbers, which C prints as unsigned.
fn with_signs(table: &mut Table, format: &Format) {
    let names = format.signed();
    let is_signed = |name: &str| question::is_signed(&names, name);
    let signed: Vec<bool> = table.keys.iter().map(|key| is_signed(&key.name)).collect();
    let signed_values: Vec<bool> = table.values.iter().map(|value| is_signed(&value.name)).collect();
    for row in &mut table.rows {
        let keys = row.keys.iter_mut().zip(&signed).filter(|(_, signed)| **signed);
        let saved = row.worst.iter_mut().flat_map(|worst| Arc::make_mut(&mut worst.saved));
        let saved = saved.filter(|(name, _)| is_signed(name)).map(|(_, key)| key);
        for key in keys.map(|(key, _)| key).chain(saved) {
            match key {
                Key::Number(number) => *number = with_sign(*number),
                Key::Range { first, last } => {
                    (*first, *last) = match (with_sign(*first), with_sign(*last)) {
                        (first, last) if first <= last => (first, last),
                        // A range that wraps around contains both extremes.
                        _ => (i64::MIN.into(), i64::MAX.into()),
                    };
                }
                _ => {}
            }
        }
        for (value, _) in row.values.iter_mut().zip(&signed_values).filter(|(_, signed)| **signed) {
            if let Value::Number(sum) = value {
                *sum = with_sign(*sum);
            }
        }
    }
}

fn with_sign(number: i128) -> i128 {
    if number > i64::MAX.into() {
        number - (1 << 64)
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs() {
        let format = Format::parse(
            "name: sys_exit\nID: 1\nformat:\n\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
             \tfield:void * at;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n",
        )
        .unwrap();
        let text = "# event histogram\n#\n# trigger info: hist:keys=id,at,5-at:vals=hitcount:sort=hitcount:size=2048 [active]\n#\n\n\
                    { id: 18446744073709551607, at: 18446744073709551607, 5-at: 18446744073709551607 } hitcount:          3\n\n\
                    Totals:\n    Hits: 3\n    Entries: 1\n    Dropped: 0\n";
        let mut histograms = hist_text::read(text.as_bytes()).unwrap();
        with_signs(&mut histograms[0].table, &format);
        assert_eq!(
            histograms[0].table.rows[0].keys[..],
            [Key::Number(-9), Key::Number(18446744073709551607), Key::Number(-9)]
        );
    }

    #[test]
    fn signs_of_sums_and_ranges() {
        let format = Format::parse("name: x\nfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n").unwrap();
        let text = "# event histogram\n#\n# trigger info: hist:keys=a.log2:vals=hitcount,a:sort=hitcount:size=2048 [active]\n#\n\n\
                    { a: ~ 2^1  } hitcount:          3  a:          6\n\
                    { a: ~ 2^64 } hitcount:          3  a: 18446744073709551607\n\n\
                    Totals:\n    Hits: 6\n    Entries: 2\n    Dropped: 0\n";
        let mut histograms = hist_text::read(text.as_bytes()).unwrap();
        with_signs(&mut histograms[0].table, &format);
        let table = histograms[0].table.fold_range(0, Default::default(), Some(0), |_| ());
        let Value::Dist(dist) = &table.rows[0].values[0] else {
            panic!("{table:?}")
        };
        assert_eq!((dist.count, dist.in_buckets(), dist.sum), (6, 3, Some(-3)));
    }

    /// Ranges with -5, -12, 4 and the largest number, as the kernel prints them.
    #[test]
    fn ranges_of_negative_numbers() {
        let format = Format::parse("name: x\nfield:long a;\toffset:8;\tsize:8;\tsigned:1;\nfield:unsigned long b;\toffset:16;\tsize:8;\tsigned:0;\n").unwrap();
        let ranges = |key: &str| -> Vec<(i128, i128)> {
            let (name, _) = key.split_once('.').unwrap();
            let shown: &[&str] = match key.ends_with("log2") {
                true => &["2^64", "2^2 ", "2^63"],
                false => &[
                    "18446744073709551610-3",
                    "18446744073709551600-18446744073709551609",
                    "0-9",
                    "9223372036854775800-9223372036854775809",
                ],
            };
            let rows: String = shown
                .iter()
                .map(|range| format!("{{ {name}: ~ {range} }} hitcount:          1\n"))
                .collect();
            let n = shown.len();
            let text = format!(
                "# event histogram\n#\n# trigger info: hist:keys={key}:vals=hitcount:sort=hitcount:size=2048 [active]\n#\n\n\
                 {rows}\nTotals:\n    Hits: {n}\n    Entries: {n}\n    Dropped: 0\n"
            );
            let mut histograms = hist_text::read(text.as_bytes()).unwrap();
            with_signs(&mut histograms[0].table, &format);
            let range = |row: &crate::table::Row| match row.keys[0] {
                Key::Range { first, last } => (first, last),
                _ => panic!("{row:?}"),
            };
            histograms[0].table.rows.iter().map(range).collect()
        };
        let all = (i64::MIN.into(), i64::MAX.into());
        assert_eq!(ranges("a.buckets=10"), [(-6, -1), (-16, -7), (0, 9), all]);
        assert_eq!(ranges("a.log2"), [(i128::from(i64::MIN) + 1, -1), (3, 4), all]);
        let most = i128::from(u64::MAX);
        assert_eq!(
            ranges("b.buckets=10"),
            [
                (most - 5, most),
                (most - 15, most - 6),
                (0, 9),
                ((1 << 63) - 8, (1 << 63) + 1)
            ]
        );
    }
}
