// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads intervals from a named pipe, which behaves like the kernel's file: a read fails with
//! EAGAIN until somebody has written, and returns 0 at the end of each round.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::mknodat;

use super::*;
use crate::table::Value;

/// Nanoseconds since 1970 when the machine was booted.
const BOOT: u64 = 1_764_360_000_000_000_000;

/// A second of boot time, from which histograms count.
const BEGIN: u64 = 100;

/// A histogram of bytes by pid in the seconds from `begin` to `end`: rows of a pid, the second of
/// its first hit, hits, sum, and maximum. Hits of other pids were dropped.
pub(crate) struct Part<'a> {
    pub trigger: &'a str,
    pub begin: u64,
    pub end: u64,
    pub ended: &'a str,
    pub lost: u64,
    pub dropped: u64,
    pub rows: &'a [(u32, u64, u64, u64, u64)],
}

impl Default for Part<'_> {
    fn default() -> Self {
        Part {
            trigger: "hist:keys=pid:vals=hitcount,bytes,bytes.max:sort=hitcount:size=2048",
            begin: BEGIN,
            end: BEGIN + 1,
            ended: "null",
            lost: 0,
            dropped: 0,
            rows: &[],
        }
    }
}

/// Text of both clocks at a second of boot time.
fn moment(second: u64) -> String {
    let ns = second * 1_000_000_000;
    format!(r#"{{"boottime_ns":{ns},"realtime_ns":{}}}"#, BOOT + ns)
}

impl Part<'_> {
    /// Its text in `hist_delta_jsonl`, or else in `hist_jsonl`.
    pub(crate) fn text(&self, is_delta: bool) -> String {
        let interval = match is_delta {
            true => format!(
                r#""interval":{{"begin":{},"end":{},"ended":{},"lost_histograms":{}}},"#,
                moment(self.begin),
                moment(self.end),
                self.ended,
                self.lost
            ),
            false => String::new(),
        };
        // The line is written three milliseconds after the cut. Boot time has 7 s of sleep.
        let later = self.end * 1_000_000_000 + 3_000_000;
        let mut text = format!(
            concat!(
                r#"{{"type":"header","schema":1,"trigger":"{}","system":"a","event":"b","name":null,"filter":null,"#,
                r#""paused":false,"size":2048,"clock":null,"boot_id":"x","realtime_ns":{},"monotonic_ns":{},"#,
                r#""begin":{},{}"keys":[{{"name":"pid","type":"pid_t","modifier":null,"unit":null}}],"#,
                r#""values":[{{"name":"hitcount","type":"u64","modifier":null,"unit":null,"bucket_unit":null}},"#,
                r#"{{"name":"bytes","type":"u64","modifier":null,"unit":null,"bucket_unit":null}},"#,
                r#"{{"name":"bytes","type":"u64","modifier":"max","unit":null,"bucket_unit":null}}],"#,
                r#""variables":[],"actions":[]}}"#,
                "\n"
            ),
            self.trigger,
            BOOT + later,
            later - 7_000_000_000,
            moment(BEGIN),
            interval
        );
        for (pid, begin, hits, sum, max) in self.rows {
            let begin = begin * 1_000_000_000;
            writeln!(
                text,
                concat!(
                    r#"{{"type":"entry","begin_boottime_ns":{},"keys":[{}],"values":[{},{},{}],"#,
                    r#""variables":[],"actions":[]}}"#
                ),
                begin, pid, hits, sum, max
            )
            .unwrap();
        }
        let hits: u64 = self.rows.iter().map(|row| row.2).sum();
        let entries = self.rows.len();
        writeln!(
            text,
            concat!(
                r#"{{"type":"trailer","hits":{},"entries":{},"shown":{},"dropped":{},"excess":0,"no_bucket":null,"#,
                r#""unresolved":0,"missed":0,"rejected":0,"snapshot":null,"complete":true}}"#
            ),
            hits, entries, entries, self.dropped
        )
        .unwrap();
        text
    }
}

/// A tracing directory with `hist_delta_jsonl` of the event a/b as a pipe.
pub(crate) struct Kernel {
    root: tempfile::TempDir,
}

impl Kernel {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("events/a/b")).unwrap();
        fs::write(root.path().join("hist_stats"), "").unwrap();
        // An instance has the same event.
        fs::create_dir(root.path().join("instances")).unwrap();
        symlink(root.path(), root.path().join("instances/rhist-1")).unwrap();
        let this = Self { root };
        mknodat(
            CWD,
            this.file("hist_delta_jsonl"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        this
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.path().join("events/a/b").join(name)
    }

    pub(crate) fn tracefs(&self) -> Tracefs {
        Tracefs::at(self.root.path().to_owned()).unwrap()
    }

    pub(crate) fn intervals(&self) -> Intervals {
        let end = Moment {
            boottime_ns: BEGIN * 1_000_000_000,
            realtime_ns: BOOT + BEGIN * 1_000_000_000,
        };
        let mut intervals = Intervals {
            end,
            ..Intervals::default()
        };
        assert!(intervals.open(&self.tracefs(), "a/b").unwrap());
        intervals
    }

    /// Writes a round, and calls `read`, which has to read it.
    pub(crate) fn round<T>(&self, parts: &[Part<'_>], read: impl FnOnce() -> T) -> T {
        let text: String = parts.iter().map(|part| part.text(true)).collect();
        self.round_of_text(&text, read)
    }

    pub(crate) fn round_of_text<T>(&self, text: &str, read: impl FnOnce() -> T) -> T {
        let mut pipe = fs::OpenOptions::new()
            .write(true)
            .open(self.file("hist_delta_jsonl"))
            .unwrap();
        thread::scope(|scope| {
            // As if the kernel had to wait for a grace period, in the middle of the text, too.
            let (first, second) = text.split_at(text.len() / 2);
            scope.spawn(move || {
                for half in [first, second] {
                    thread::sleep(Duration::from_millis(20));
                    pipe.write_all(half.as_bytes()).unwrap();
                }
            });
            read()
        })
    }

    /// Takes the file of intervals away.
    pub(crate) fn remove(&self) {
        fs::remove_file(self.file("hist_delta_jsonl")).unwrap();
    }

    /// Writes the totals.
    pub(crate) fn totals(&self, parts: &[Part<'_>]) {
        let text: String = parts.iter().map(|part| part.text(false)).collect();
        fs::write(self.file("hist_jsonl"), text).unwrap();
    }
}

/// Keys, hits, sum and maximum of each row.
fn numbers(histogram: &Histogram) -> Vec<(String, u64, i128, i128)> {
    let number = |value: &Value| match value {
        Value::Number(number) => *number,
        other => panic!("{other:?}"),
    };
    let rows = histogram.table.rows.iter();
    rows.map(|row| {
        (
            row.keys[0].to_string(),
            row.hits,
            number(&row.values[0]),
            number(&row.values[1]),
        )
    })
    .collect()
}

#[test]
fn rounds_add_up() {
    let kernel = Kernel::new();
    let mut intervals = kernel.intervals();
    let first = Part {
        rows: &[(7, 100, 2, 30, 20), (8, 100, 1, 5, 5)],
        dropped: 4,
        ..Part::default()
    };
    let cut = kernel.round(&[first], || intervals.read().unwrap());
    assert!(cut.notes.is_empty());
    assert_eq!(numbers(&cut.histograms["a/b"][0])[0], ("7".to_owned(), 2, 30, 20));
    // The time of the cut, not of the line. A sleeping machine is slow, too.
    assert_eq!(cut.from.realtime_ns, BOOT + 100_000_000_000);
    assert_eq!(cut.to.realtime_ns, BOOT + 101_000_000_000);
    assert_eq!(cut.to.monotonic_ns, 94_000_000_000);
    assert_eq!(cut.from.monotonic_ns, 93_000_000_000);
    // The row began in the histogram's life, by the clock at the cut.
    let begins: Vec<_> = cut.histograms["a/b"][0]
        .table
        .rows
        .iter()
        .map(|row| row.begin.map(|begin| begin.at.realtime_ns))
        .collect();
    assert_eq!(begins, [Some(BOOT + 100_000_000_000); 2]);
    let second = Part {
        begin: 101,
        end: 104,
        rows: &[(9, 102, 1, 1, 1), (7, 100, 3, 9, 4)],
        ..Part::default()
    };
    let cut = kernel.round(&[second], || intervals.read().unwrap());
    assert_eq!(cut.from.realtime_ns, BOOT + 101_000_000_000);
    assert_eq!(cut.to.monotonic_ns - cut.from.monotonic_ns, 3_000_000_000);
    assert_eq!(
        cut.histograms["a/b"][0].table.rows[0]
            .begin
            .map(|begin| begin.at.realtime_ns),
        Some(BOOT + 102_000_000_000)
    );
    let sums = intervals.sums();
    let sum = &sums["a/b"][0];
    assert_eq!(
        numbers(sum),
        [
            ("7".to_owned(), 5, 39, 20),
            ("8".to_owned(), 1, 5, 5),
            ("9".to_owned(), 1, 1, 1)
        ]
    );
    assert_eq!((sum.hits, sum.entries, sum.table.losses.dropped), (7, 3, 4));
    let bare = intervals.sums_without_rows();
    let bare = &bare["a/b"][0];
    assert_eq!((bare.hits, bare.entries, bare.table.rows.len()), (7, 3, 0));
}

#[test]
fn sums_are_compared_with_the_totals() {
    let kernel = Kernel::new();
    let mut intervals = kernel.intervals();
    let part = || Part {
        rows: &[(7, 100, 2, 30, 20), (8, 100, 1, 5, 5)],
        ..Part::default()
    };
    kernel.round(&[part()], || intervals.read().unwrap());
    let compared = |total: Part<'_>| {
        kernel.totals(&[total]);
        intervals.compare(&kernel.tracefs()).unwrap()
    };
    assert_eq!(compared(part()), None);
    for (rows, expected) in [
        (
            &[(7, 100, 3, 30, 20), (8, 100, 1, 5, 5)][..],
            "a/b: hits: the intervals add up to 3, the histogram has 4",
        ),
        (
            &[(7, 100, 1, 30, 20), (8, 100, 2, 5, 5)],
            "a/b: 7: the intervals add up to 2 hits, the histogram has 1",
        ),
        (
            &[(7, 100, 2, 30, 20), (9, 100, 1, 5, 5)],
            "a/b: 8: the intervals add up to 1 hits, the histogram has 0",
        ),
        (
            &[(7, 100, 2, 30, 20), (8, 100, 1, 5, 6)],
            "a/b: 8: the intervals add up to other values, with the same 1 hits",
        ),
        (
            &[(7, 100, 2, 31, 20), (8, 100, 1, 5, 5)],
            "a/b: 7: the intervals add up to other values, with the same 2 hits",
        ),
    ] {
        let total = Part { rows, ..part() };
        assert_eq!(compared(total).as_deref(), Some(expected));
    }
    let dropped = Part { dropped: 1, ..part() };
    assert_eq!(
        compared(dropped).as_deref(),
        Some("a/b: dropped hits: the intervals add up to 0, the histogram has 1")
    );
}

#[test]
fn totals_are_followed_if_no_hit_came_since() {
    let kernel = Kernel::new();
    let part = |hits| Part {
        rows: if hits == 2 {
            &[(7, 100, 2, 30, 20)]
        } else {
            &[(7, 100, 3, 31, 20)]
        },
        ..Part::default()
    };
    let follow = |now| {
        kernel.totals(&[part(2)]);
        let totals = hist_file::read(&kernel.tracefs(), "a/b").unwrap();
        kernel.totals(&[part(now)]);
        let totals = BTreeMap::from([("a/b".to_owned(), totals)]);
        kernel.intervals().follow(&kernel.tracefs(), totals)
    };
    assert!(follow(2) && !follow(3));
}

#[test]
fn a_cleared_histogram_goes_on() {
    let kernel = Kernel::new();
    let mut intervals = kernel.intervals();
    let begin = Part {
        rows: &[(7, 100, 2, 30, 20)],
        ..Part::default()
    };
    let other = || Part {
        trigger: "hist:keys=pid:vals=hitcount,bytes,bytes.max:sort=hitcount:size=1024",
        ..Part::default()
    };
    kernel.round(&[begin, other()], || intervals.read().unwrap());
    let old = Part {
        ended: "\"cleared\"",
        rows: &[(7, 100, 1, 10, 10)],
        ..Part::default()
    };
    let new = Part {
        rows: &[(7, 101, 4, 4, 1), (5, 101, 1, 2, 2)],
        ..Part::default()
    };
    let cut = kernel.round(&[old, new, other()], || intervals.read().unwrap());
    let histograms = &cut.histograms["a/b"];
    assert_eq!(histograms.len(), 2);
    assert_eq!(
        numbers(&histograms[0]),
        [("7".to_owned(), 5, 14, 10), ("5".to_owned(), 1, 2, 2)]
    );
    assert_eq!(numbers(&intervals.sums()["a/b"][0])[0], ("7".to_owned(), 7, 44, 20));
    assert!(
        cut.notes[0].contains("another program cleared a trigger"),
        "{:?}",
        cut.notes
    );
    // Its totals lack the hits before.
    let compared = |rows| {
        let part = Part {
            rows,
            ..Part::default()
        };
        kernel.totals(&[part, other()]);
        intervals.compare(&kernel.tracefs()).unwrap()
    };
    assert_eq!(compared(&[(7, 101, 4, 4, 1), (5, 101, 1, 2, 2)]), None);
    assert_eq!(
        compared(&[(7, 101, 5, 5, 1), (5, 101, 1, 2, 2)]).as_deref(),
        Some("a/b: hits: the intervals add up to 5, the histogram has 6")
    );
}

#[test]
fn a_removed_histogram_ends_after_its_last_interval() {
    let kernel = Kernel::new();
    let mut intervals = kernel.intervals();
    kernel.round(&[Part::default()], || intervals.read().unwrap());
    let last = Part {
        ended: "\"removed\"",
        lost: 2,
        rows: &[(7, 100, 1, 10, 10)],
        ..Part::default()
    };
    let cut = kernel.round(&[last], || intervals.read().unwrap());
    assert_eq!(cut.histograms["a/b"][0].hits, 1);
    assert!(
        cut.notes[0].contains("another program removed a trigger"),
        "{:?}",
        cut.notes
    );
    assert!(
        cut.notes[1].contains("cleared or removed 2 histograms"),
        "{:?}",
        cut.notes
    );
    // Two more have hits that no interval has.
    kernel.totals(&[Part::default()]);
    assert_eq!(intervals.compare(&kernel.tracefs()).unwrap(), None);
    let error = kernel.round(&[], || intervals.read().unwrap_err());
    assert_eq!(error.to_string(), "a/b: a trigger of this run was removed");
}

#[test]
fn a_failed_read_loses_nothing() {
    let kernel = Kernel::new();
    let mut intervals = kernel.intervals();
    // A second event whose file cannot be read.
    let other = kernel.root.path().join("events/a/a");
    fs::create_dir_all(other.join("hist_delta_jsonl")).unwrap();
    assert!(intervals.open(&kernel.tracefs(), "a/a").unwrap());
    let part = || Part {
        rows: &[(7, 100, 2, 30, 20)],
        ..Part::default()
    };
    let error = kernel.round(&[part()], || {
        // Wait for the whole text.
        while !intervals.files.get_mut("a/b").unwrap().ask().unwrap() {
            thread::sleep(Duration::from_millis(5));
        }
        intervals.read().unwrap_err()
    });
    let error: &hist_file::Error = error.downcast_ref().unwrap();
    assert!(error.is_passing() && error.to_string().contains("a/a"), "{error}");
    // Now the file can be read.
    intervals.files.remove("a/a");
    let cut = intervals.read().unwrap();
    assert_eq!(numbers(&cut.histograms["a/b"][0]), [("7".to_owned(), 2, 30, 20)]);
}

#[test]
fn a_kernel_without_intervals() {
    let kernel = Kernel::new();
    kernel.remove();
    assert!(!Intervals::default().open(&kernel.tracefs(), "a/b").unwrap());
    let c = kernel.tracefs().with_c();
    fs::write(kernel.file("hist_delta_jsonl"), "").unwrap();
    assert!(!Intervals::default().open(&c, "a/b").unwrap());
}
