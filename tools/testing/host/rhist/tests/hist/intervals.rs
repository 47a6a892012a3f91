// SPDX-License-Identifier: GPL-2.0

//! Intervals of a histogram in `hist_delta`, and which values of actions are in them.

use std::sync::Arc as StdArc;

use kernel::error::code::ENOMEM;
use kernel::error::Result as KernelResult;
use kernel::fault;
use kernel::prelude::KVec;
use kernel::prelude::GFP_KERNEL;
use kernel::sync::rcu;
use kernel::sync::Arc;
use rhist::hist::show::HistFile;
use rhist::hist::show::IntervalView;
use rhist::hist::Begins;
use rhist::hist::End;
use rhist::hist::Ended;
use rhist::hist::HistInterval;
use rhist::hist::Histogram;
use rhist::hist::IntervalReader;
use rhist::sync::Retired;
use rhist::worker::cut::Asked;
use rhist::worker::cut::Cut;
use rhist::worker::cut::Step;

use super::events::*;
use super::jsonl;
use super::world::*;

/// A reader from the begin of the histogram.
pub(crate) fn reader(hist: &Arc<Histogram>) -> IntervalReader {
    IntervalReader::new(hist, Begins::WithHistogram).unwrap()
}

/// Makes a cut, 5 ns later.
pub(crate) fn cut(hist: &Histogram) {
    BOOT_NS.set(BOOT_NS.get() + 5);
    drop(hist.cut(CLOCKS.now()).unwrap());
    hist.fold(|| ());
    hist.end_cut();
}

/// The end of a histogram without rejected hits.
pub(crate) fn ended_now(how: Ended) -> End {
    End {
        how,
        at: CLOCKS.now(),
        rejected: Some(0),
        lives_on: false,
    }
}

/// The `hist_delta` file of an interval.
fn file_of(
    reader: &IntervalReader,
    taken: &mut HistInterval,
    ended: Option<Ended>,
    lost: u64,
) -> KernelResult<HistFile> {
    let view = IntervalView {
        view: view(reader.histogram()),
        reader: Some(reader),
        interval: taken,
        ended,
        lost,
    };
    HistFile::intervals([view].into_iter())
}

/// The text of an interval in `hist_delta`.
pub(crate) fn text_of(
    reader: &IntervalReader,
    taken: &mut HistInterval,
    ended: Option<Ended>,
    lost: u64,
) -> String {
    text(|out| show_whole(out, file_of(reader, taken, ended, lost)?, &Functions))
}

/// Makes a cut, takes the interval, and returns the lines of its entries.
pub(crate) fn entries(reader: &IntervalReader) -> Vec<String> {
    cut(reader.histogram());
    entries_of(&text_of(
        reader,
        &mut reader.take(reader.room().unwrap(), None).unwrap(),
        None,
        0,
    ))
}

/// The lines of the entries of a file.
pub(crate) fn entries_of(file: &str) -> Vec<String> {
    let (_, rest) = file.split_once("#\n\n").unwrap();
    let (entries, _) = rest.split_once("\nTotals:\n").unwrap();
    entries
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// A histogram with clauses of C needs no worker: it has one table, with slots in C's states. If
/// nobody reads its intervals, it has one bank, and no totals.
#[test]
fn without_readers() {
    for params in [
        "keys=pid",
        "keys=pid,comm:vals=prio:sort=prio",
        "keys=pid:p=prio:onmax($p).save(comm)",
        "keys=common_stacktrace:ts=common_timestamp.usecs",
    ] {
        let hist = hist(&sched_waking(), params);
        for pid in 0..3000 {
            waking(b"", pid).hit(&hist);
        }
        text(|out| show_file(out, [view(&hist)].into_iter()));
        jsonl::check(&text(|out| {
            show_jsonl(out, [view(&hist)].into_iter(), &Functions)
        }));
        assert_eq!(
            (hist.hits() + hist.drops(), hist.intervals()),
            (3000, None),
            "{params}"
        );
        assert!(hist.tending(|| usize::MAX).unwrap().is_none(), "{params}");
        assert!(hist.map().is_plain(), "{params}");
    }
}

/// The lines of an interval: its edges, how it ended, the rows that moved, and its totals.
#[test]
fn the_text() {
    let hist = hist(&sched_waking(), "keys=pid:vals=prio:sort=pid");
    BOOT_NS.set(1000);
    let begin = hist.begin().boot_ns;
    let reader = reader(&hist);
    waking(b"", 1).hit(&hist);
    waking(b"", 2).hit(&hist);
    cut(&hist);
    let file = text_of(
        &reader,
        &mut reader.take(reader.room().unwrap(), None).unwrap(),
        None,
        0,
    );
    let edges = |[begin, end]: [u64; 2]| {
        let since_1970 = |boot_ns| boot_ns + 1_600_000_000_000_000_000;
        format!(
            "# begin: {begin} ns since boot, {} ns since 1970\n# end: {end} ns since boot, {} ns since 1970\n",
            since_1970(begin),
            since_1970(end)
        )
    };
    let head = |more: &str| {
        let title = "# event histogram\n#\n# trigger info: hist:keys=pid:vals=hitcount,prio:sort=pid:size=2048 [active]\n";
        format!("{title}{more}#\n\n")
    };
    let row =
        |pid, hits, prio| format!("{{ pid: {pid:>10} }} hitcount: {hits:>10}  prio: {prio:>10}\n");
    let totals = |[hits, entries]: [u64; 2]| {
        format!("\nTotals:\n    Hits: {hits}\n    Entries: {entries}\n    Dropped: 0\n")
    };
    let expected = [
        &head(&edges([begin, 1005])),
        &row(1, 1, 120),
        &row(2, 1, 120),
        &totals([2, 2]),
    ];
    assert_eq!(file, expected.map(String::as_str).concat());

    // Nothing has moved.
    cut(&hist);
    let file = text_of(
        &reader,
        &mut reader.take(reader.room().unwrap(), None).unwrap(),
        None,
        0,
    );
    assert_eq!(file, [head(&edges([1005, 1010])), totals([0, 0])].concat());

    // The last one is taken without a cut.
    waking(b"", 2).hit(&hist);
    BOOT_NS.set(2000);
    let mut last = reader
        .take(reader.room().unwrap(), Some(ended_now(Ended::Removed)))
        .unwrap();
    for (ended, word) in [(Ended::Cleared, "cleared"), (Ended::Removed, "removed")] {
        let lines = |lost: &str| [&edges([1010, 2000]), "# ", word, "\n", lost].concat();
        let rest = [row(2, 1, 120), totals([1, 1])].concat();
        assert_eq!(
            text_of(&reader, &mut last, Some(ended), 0),
            head(&lines("")) + &rest
        );
        let lost = lines("# lost: 7 histograms\n");
        assert_eq!(
            text_of(&reader, &mut last, Some(ended), 7),
            head(&lost) + &rest
        );
    }
}

/// A histogram whose entries save a field with the greatest priority.
fn saving() -> (StdArc<World>, Arc<Histogram>) {
    let world = World::usual();
    let trigger = "hist:keys=pid:p=prio:onmax($p).save(target_cpu):sort=pid";
    world.add("sched_waking", trigger);
    let hist = world.histogram("sched_waking", 0);
    (world, hist)
}

/// A wakeup of `pid` with `prio`.
fn wake(world: &World, pid: i32, prio: i32) {
    let record = waking(b"", pid).put(28, &prio.to_ne_bytes());
    world.hit("sched_waking", &record, NOW);
}

/// A value that `save()` has stored is in an interval if it changed in it: also for a reader that
/// came later, and for each reader by itself.
#[test]
fn saved_values_that_changed() {
    let (world, hist) = saving();
    let hit = |prio| wake(&world, 1, prio);
    let row = |hits: u64| format!("{{ pid:          1 }} hitcount: {hits:>10}");
    let max = |max: i32| format!("\tmax: {max:>10}  target_cpu:          3");
    let first = reader(&hist);
    hit(100);
    let later = IntervalReader::new(&hist, Begins::AtNextEdge).unwrap();
    assert_eq!(entries(&first), [row(1), max(100)]);
    assert_eq!(
        entries_of(&text_of(
            &later,
            &mut later.take(later.room().unwrap(), None).unwrap(),
            None,
            0
        )),
        [""; 0]
    );

    hit(99);
    assert_eq!(entries(&first), [row(1)]);
    hit(101);
    assert_eq!(entries(&first), [row(1), max(101)]);
    assert_eq!(entries(&later), [row(2), max(101)]);
    // All of them, in `hist`.
    assert_eq!(
        world.entries("sched_waking"),
        [row(3) + "\n" + &max(101) + "\n"]
    );
}

/// An interval that is put back is read again, with the values that changed in it, and without the
/// others; also if it was not shown before.
#[test]
fn put_back() {
    let (world, hist) = saving();
    let hit = |pid, prio| wake(&world, pid, prio);
    let row = |pid, hits: u64| format!("{{ pid: {pid:>10} }} hitcount: {hits:>10}");
    let max = |max: i32| format!("\tmax: {max:>10}  target_cpu:          3");
    let reader = reader(&hist);
    hit(1, 100);
    assert_eq!(entries(&reader), [row(1, 1), max(100)]);
    for is_shown in [true, false] {
        // The maximum of 1 is an old one.
        hit(1, 50);
        hit(2, 60 + i32::from(!is_shown));
        cut(&hist);
        let mut taken = reader.take(reader.room().unwrap(), None).unwrap();
        if is_shown {
            let shown = entries_of(&text_of(&reader, &mut taken, None, 0));
            assert_eq!(shown, [row(1, 1), row(2, 1), max(60)]);
        }
        reader.put_back(&taken);
        hit(2, 10);
        let again = [row(1, 1), row(2, 2), max(60 + i32::from(!is_shown))];
        assert_eq!(entries(&reader), again, "shown before: {is_shown}");
    }
    hit(1, 2);
    assert_eq!(entries(&reader), [row(1, 1)]);
}

/// A reader that lacks memory, or the file of an interval, loses nothing.
#[test]
fn without_memory() {
    let (world, hist) = saving();
    // The second bank and the totals stay.
    drop(reader(&hist));
    let (reader, allocations) = fault::each(
        || IntervalReader::new(&hist, Begins::WithHistogram),
        |failed| assert_eq!(failed.err(), Some(ENOMEM)),
    );
    assert!(allocations >= 3);
    let reader = reader.unwrap();
    for pid in 1..4 {
        wake(&world, pid, 100);
    }
    cut(&hist);
    let read = || {
        let mut taken = reader.take(reader.room()?, None)?;
        let file = file_of(&reader, &mut taken, None, 0);
        file.inspect_err(|_| reader.put_back(&taken))
    };
    let (file, allocations) = fault::each(read, |failed| assert_eq!(failed.err(), Some(ENOMEM)));
    assert!(allocations >= 10);
    let file = text(|out| show_whole(out, file.unwrap(), &Functions));
    let rows = entries_of(&file);
    assert_eq!(rows.len(), 6, "{file}");
    assert!(rows
        .iter()
        .skip(1)
        .step_by(2)
        .all(|row| row.starts_with("\tmax:")));
}

/// A cut of several histograms takes two grace periods, which they share, and no memory.
#[test]
fn two_grace_periods() {
    let hists = [
        "keys=pid",
        "keys=pid:vals=prio.dist:expire(1s)",
        "keys=pid:size=100..3000",
    ]
    .map(|params| hist(&sched_waking(), params));
    let readers = hists.each_ref().map(reader);
    let mut asked = KVec::new();
    for hist in &hists {
        waking(b"", 1).hit(hist);
        asked.push(Asked::new(hist.clone()), GFP_KERNEL).unwrap();
    }
    let before = rcu::waits();
    fault::after(0, || {
        let mut cut = Cut::default();
        cut.edge(asked, CLOCKS.now());
        // As the worker does.
        while cut.next() != Step::Edge {
            Retired::drop_after_wait(cut.closed());
            match cut.next() {
                Step::Fold => cut.fold(|| ()),
                _ => cut.end(),
            }
        }
    });
    assert_eq!(rcu::waits() - before, 2);
    for reader in &readers {
        let mut taken = reader.take(reader.room().unwrap(), None).unwrap();
        assert!(text_of(reader, &mut taken, None, 0).contains("\n    Hits: 1\n"));
    }
}
