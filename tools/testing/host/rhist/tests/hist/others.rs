// SPDX-License-Identifier: GPL-2.0

//! Hits without an entry: the row `other`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc as StdArc;
use std::thread;

use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;
use rhist::event::EventDesc;
use rhist::hist::show::HistFile;
use rhist::hist::show::IntervalView;
use rhist::hist::Ended;
use rhist::hist::HistInterval;
use rhist::hist::Histogram;
use rhist::hist::IntervalReader;
use rhist::hist::Tending;
use rhist::map::Beat;
use rhist::map::RoomCounts;
use serde_json::json;
use serde_json::Value;

use super::events::*;
use super::intervals;
use super::jsonl;
use super::world::switch;
use super::world::Moment;
use super::world::World;
use super::world::NOW;

/// Number of entries of the histograms here.
const SIZE: i32 = 128;

/// A histogram of `params` for 128 entries, with `clauses`, which makes room for no further ones.
fn small(event: &EventDesc, params: &str, clauses: &str) -> Arc<Histogram> {
    hist(event, &format!("{params}:size={SIZE}{clauses}"))
}

/// A histogram of wakeups with an action, in a directory.
fn saving(params: &str) -> (StdArc<World>, Arc<Histogram>) {
    let world = World::usual();
    world.add("sched_waking", &format!("hist:{params}"));
    let hist = world.histogram("sched_waking", 0);
    (world, hist)
}

/// Counts a wakeup in the histograms of `world`, in a task `comm`, which is the process, too.
fn wake(world: &World, pid: i32, prio: i32, comm: &[u8; 16]) {
    let record = waking(comm, pid).put(4, &pid.to_ne_bytes());
    let record = record.put(28, &prio.to_ne_bytes());
    world.hit("sched_waking", &record, Moment { comm: *comm, ..NOW });
}

/// A switch to `pid` at this time.
fn switch_to(world: &World, pid: i32, time: u64) {
    let record = switch((b"before", 1), (b"after", pid));
    world.hit("sched_switch", &record, Moment { time, ..NOW });
}

/// A comm.
const TASK: &[u8; 16] = b"task\0\0\0\0\0\0\0\0\0\0\0\0";

/// Counts a hit of `sched_waking`.
fn hit(hist: &Histogram, pid: i32, prio: i32) {
    waking(b"task", pid).put(28, &prio.to_ne_bytes()).hit(hist);
}

/// Fills a histogram: an entry of each process has a hit with its number as the priority.
fn fill(hist: &Histogram) {
    (1..=SIZE).for_each(|pid| hit(hist, pid, pid));
}

/// The lines behind the entries.
fn totals(hist: &Arc<Histogram>) -> Vec<String> {
    let file = hist_file(hist);
    let (_, totals) = file.rsplit_once("\nTotals:\n").unwrap();
    totals.lines().map(|line| line.trim().to_owned()).collect()
}

/// The `hist_jsonl` file.
fn jsonl(hist: &Arc<Histogram>) -> jsonl::Said {
    let file = text(|out| show_jsonl(out, [view(hist)].into_iter(), &Functions));
    jsonl::read(&file).swap_remove(0)
}

/// The trailer of the `hist_jsonl` file.
fn trailer(hist: &Arc<Histogram>) -> Value {
    jsonl(hist).trailer
}

/// Checks the line of hits in `hist_stats`: it has the numbers of the trailer.
fn check_counts(hist: &Arc<Histogram>) {
    let said = jsonl(hist);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let [folded, expired, recycled] = ["folded", "expired", "recycled"]
        .map(|kind| number(&said.trailer["other"][kind]["hitcount"]));
    let [hits, dropped, unresolved] =
        ["hits", "dropped", "unresolved"].map(|name| number(&said.trailer[name]));
    let entries: u64 = said.column("values", 0).iter().map(number).sum();
    assert_eq!(
        hist.hit_counts(&|| Ok(())).unwrap().to_string(),
        format!(
            "{hits} hits, {entries} of entries, {folded} folded, {expired} expired, {recycled} recycled, \
             {dropped} dropped, {unresolved} unresolved"
        )
    );
}

/// The `hist_delta_jsonl` file of an interval.
fn delta(reader: &IntervalReader, interval: &mut HistInterval) -> jsonl::Said {
    let view = IntervalView {
        view: view(reader.histogram()),
        reader: Some(reader),
        interval,
        ended: None,
        lost: 0,
    };
    let file = text(|out| {
        let views = [view].into_iter();
        show_whole(out, HistFile::intervals_jsonl(views, &ORIGIN)?, &Functions)
    });
    jsonl::read(&file).swap_remove(0)
}

/// The row comes last in any order, is not limited, and has all values of the others.
#[test]
fn folded() {
    let event = sched_waking();
    let hist = small(
        &event,
        "keys=pid:vals=hitcount,prio,prio.min,prio.max,prio.avg:sort=prio.descending:limit(1)",
        ":full(other)",
    );
    fill(&hist);
    // The row comes with the first hit.
    assert_eq!(entries(&hist).len(), 1);
    for pid in 1000..1010 {
        hit(&hist, pid, pid);
    }
    let values = |hits: i32, sum: i32, min: i32, max: i32, avg: i32| {
        format!(
            "hitcount: {hits:>10}  prio: {sum:>10}  prio.min: {min:>10}  prio.max: {max:>10}  prio.avg: {avg:>10}"
        )
    };
    assert_eq!(
        entries(&hist),
        [
            format!("{{ pid:        128 }} {}", values(1, 128, 128, 128, 128)),
            format!("{{ other }} {}", values(10, 10045, 1000, 1009, 1004)),
        ]
    );
    assert_eq!(
        totals(&hist),
        [
            "Hits: 138",
            "Entries: 128",
            "Dropped: 0",
            "Folded: 10",
            "Not shown: 127"
        ]
    );
    assert_eq!(hist.hits(), 138, "what poll(2) compares with");

    let trailer = trailer(&hist);
    assert_eq!(trailer["hits"], 138);
    assert_eq!([&trailer["entries"], &trailer["shown"]], [128, 1]);
    assert_eq!(
        trailer["other"],
        json!({
            "folded": {"hitcount": 10, "values": [10, 10045, 1000, 1009, 1004]},
            "expired": null,
            "recycled": null,
        })
    );
    let gone = ["expired_entries", "expired_set", "recycled_entries"];
    assert_eq!(gone.map(|name| trailer[name].as_u64()), [Some(0); 3]);
}

/// The row comes with the first hit. In `hist_jsonl`, minimum, maximum, average and distribution
/// are null before.
#[test]
fn without_hits() {
    let event = sched_waking();
    let params = "keys=pid:vals=prio,prio.min,prio.max,prio.avg,prio.dist";
    let hist = small(&event, params, ":full(other)");
    assert_eq!(entries(&hist), [""; 0]);
    hit(&hist, 1, 2);
    assert_eq!(entries(&hist).len(), 1);
    assert_eq!(
        trailer(&hist)["other"]["folded"],
        json!({"hitcount": 0, "values": [0, 0, null, null, null, null]})
    );
}

/// A histogram without a clause has the text of C, and drops.
#[test]
fn without_a_clause() {
    let hist = small(&sched_waking(), "keys=pid", "");
    fill(&hist);
    hit(&hist, 1000, 1);
    assert_eq!(totals(&hist), ["Hits: 128", "Entries: 128", "Dropped: 1"]);
    let trailer = trailer(&hist);
    for name in [
        "other",
        "expired_entries",
        "expired_set",
        "recycled_entries",
    ] {
        assert_eq!(trailer.get(name), None);
    }
}

/// Percentages are of all hits; an entry has the longest bar, if one is left.
#[test]
fn percent_and_graph() {
    let event = sched_waking();
    let hist = small(
        &event,
        "keys=pid:vals=hitcount.percent,prio.graph:sort=pid",
        ":full(other)",
    );
    fill(&hist);
    for _ in 0..SIZE * 3 {
        hit(&hist, 1000, 1);
    }
    let rows = entries(&hist);
    let (other, rows) = rows.split_last().unwrap();
    assert_eq!(
        *other,
        format!(
            "{{ other }} hitcount:        384  hitcount (%):  75.00  prio: {}",
            "#".repeat(20)
        )
    );
    assert!(rows[0].ends_with(&format!("hitcount (%):   0.19  prio: {}", " ".repeat(20))));
    let last = rows.last().unwrap();
    assert!(
        last.ends_with(&format!("hitcount (%):   0.19  prio: {}", "#".repeat(20))),
        "{last}"
    );

    let hist = small(&event, "keys=pid:vals=prio.graph", ":expire(1s)");
    hit(&hist, 1, 1);
    Worker::new(&hist).expire(&[]);
    let other = format!("{{ other }} hitcount:          1  prio: {:20}", "");
    assert_eq!(entries(&hist), [other]);
}

/// It has a distribution of its own; also if the numbers of elements are not their indices, as in a
/// histogram with wide keys.
#[test]
fn distribution() {
    for keys in ["pid", "pid,common_stacktrace"] {
        let params = format!("keys={keys}:vals=prio.dist:sort=pid");
        let hist = small(&sched_waking(), &params, ":full(other)");
        fill(&hist);
        for prio in [7, 7, 40] {
            hit(&hist, 1000 + prio, prio);
        }
        let said = jsonl(&hist);
        for (prio, entry) in (1..).zip(&said.entries) {
            let values = &entry["values"][1];
            assert_eq!([&values["count"], &values["min"]], [1, prio], "{keys}");
            assert_eq!(counts(&values["positive"]), [1], "{keys}");
        }
        let row = entries(&hist).pop().unwrap();
        assert!(
            row.starts_with(
                "{ other } hitcount:          3  prio.dist:  count:          3  min:          7"
            ),
            "{row}"
        );
        let values = &said.trailer["other"]["folded"]["values"][1];
        assert_eq!(
            [&values["count"], &values["min"], &values["max"]],
            [3, 7, 40]
        );
        assert_eq!(counts(&values["positive"]), [2, 1]);
        assert_eq!(said.trailer["no_bucket"], 0);
    }
}

/// The counts of the buckets of a distribution, in their order.
fn counts(buckets: &Value) -> Vec<u64> {
    let buckets = buckets.as_object().unwrap().iter();
    let mut buckets: Vec<(i32, u64)> = buckets
        .map(|(index, count)| (index.parse().unwrap(), count.as_u64().unwrap()))
        .collect();
    buckets.sort();
    buckets.into_iter().map(|(_, count)| count).collect()
}

/// Variables and values of actions do not work in it, and are not shown.
#[test]
fn without_variables() {
    let hist = small(
        &sched_waking(),
        "keys=pid:p=prio:onmax($p).save(comm)",
        ":full(other)",
    );
    fill(&hist);
    hit(&hist, 1000, 1000);
    let rows = entries(&hist);
    assert_eq!(rows.last().unwrap(), "{ other } hitcount:          1");
    assert_eq!(
        rows.iter().filter(|row| row.starts_with("\tmax:")).count(),
        128
    );
    assert!(hist.missed() > 0);
}

/// A hit in it makes a synthetic event happen like any other, with its own variable and a
/// reference.
#[test]
fn onmatch() {
    for fast in [true, false] {
        let world = World::usual();
        world.fast.store(fast, SeqCst);
        let waking = "hist:keys=pid:ts0=common_timestamp:size=128..512";
        world.add("sched_waking", waking);
        world.add(
            "sched_switch",
            "hist:keys=next_pid:lat=common_timestamp-$ts0:\
             onmatch(sched.sched_waking).latency($lat,next_pid):size=128:full(other)",
        );
        for pid in 1..=SIZE + 2 {
            wake(&world, pid, 1, TASK);
            switch_to(&world, pid, NOW.time + 10 * pid as u64);
        }
        let latency = |pid: i32| [(10 * pid as u64).into(), (pid as u64).into()];
        let latencies: Vec<_> = (1..=SIZE + 2).map(latency).collect();
        assert_eq!(world.given("latency"), latencies);
        assert_eq!(world.fast_hits.load(SeqCst) > 0, fast);
        let hist = world.histogram("sched_switch", 0);
        let row = entries(&hist).pop().unwrap();
        assert_eq!(row, "{ other } hitcount:          2");
        assert_eq!((hist.missed(), hist.unresolved()), (2, 0));
    }
}

/// Actions that keep a value do nothing in it, and are missed. An entry that comes again after it
/// was taken out keeps values anew; the last snapshot outlives it.
#[test]
fn actions_that_keep_values() {
    for (handler, clauses, places) in [
        ("onmax", ":full(other)", SIZE),
        ("onchange", ":full(other)", SIZE),
        ("onmax", ":expire(1s):full(other)", SIZE / 4 * 5),
        ("onchange", ":expire(1s):full(other)", SIZE / 4 * 5),
    ] {
        let actions = format!("{handler}($p).small($p):{handler}($p).snapshot()");
        let (world, hist) = saving(&format!("keys=pid:p=prio:{actions}:size={SIZE}{clauses}"));
        let seen = || {
            let file = world.hist_file("sched_waking");
            let (_, snapshot) = file.split_once("\nSnapshot taken").expect("a snapshot");
            let (snapshot, _) = snapshot.split_once("\nTotals:\n").unwrap();
            let taken = world.snapshot.taken.load(SeqCst);
            (world.given("small").len(), taken, snapshot.to_owned())
        };
        (1..=places).for_each(|pid| wake(&world, pid, pid, TASK));
        let (given, taken, snapshot) = seen();
        assert_eq!([given, taken], [places as usize; 2]);
        assert!(snapshot.ends_with(&format!("key: {{ pid: {places:>10} }}\n")));
        assert_eq!(hist.missed(), 0);
        for prio in [1000, 2000, 2000] {
            wake(&world, 3000, prio, TASK);
        }
        assert_eq!(seen(), (0, taken, snapshot.clone()));
        let row = "{ other } hitcount:          3".to_owned();
        assert!(entries(&hist).contains(&row));
        // The variable and both actions, of each hit.
        assert_eq!(hist.missed(), 3 * 3);

        if clauses.contains("expire") {
            Worker::new(&hist).expire(&[]);
            assert_eq!(seen(), (0, taken, snapshot));
            wake(&world, 3000, 1000, TASK);
            let (given, now, snapshot) = seen();
            assert_eq!([given, now], [1, taken + 1]);
            assert!(snapshot.ends_with("key: { pid:       3000 }\n"));
            assert_eq!(hist.missed(), 3 * 3);
        }
    }
}

/// A reference to a key that was folded, or whose entry was taken out, finds nothing.
#[test]
fn references() {
    for fast in [true, false] {
        let world = World::usual();
        world.fast.store(fast, SeqCst);
        let waking = "hist:keys=pid:ts0=common_timestamp:size=128:expire(1s):full(other)";
        world.add("sched_waking", waking);
        world.add(
            "sched_switch",
            "hist:keys=next_pid:vals=common_timestamp-$ts0:size=128",
        );
        let waking = world.histogram("sched_waking", 0);
        let switching = world.histogram("sched_switch", 0);
        let counts = || (switching.hits(), switching.unresolved());
        let mut worker = Worker::new(&waking);
        // A quarter more than it was made for find places.
        (1..=SIZE / 4 * 5).for_each(|pid| wake(&world, pid, 1, TASK));
        wake(&world, 3000, 1, TASK);
        assert_eq!((waking.missed(), waking.drops()), (1, 0));
        switch_to(&world, 3000, 2 * NOW.time);
        assert_eq!(counts(), (0, 1));
        switch_to(&world, 1, 2 * NOW.time);
        assert_eq!(counts(), (1, 1));

        worker.expire(&[]);
        switch_to(&world, 2, 2 * NOW.time);
        assert_eq!(counts(), (1, 2));
        for pid in [2, 3000] {
            wake(&world, pid, 1, TASK);
            switch_to(&world, pid, 2 * NOW.time);
        }
        assert_eq!(counts(), (3, 2));
        assert_eq!(world.fast_hits.load(SeqCst) > 0, fast);
    }
}

/// The interval of a reader has the hits in it; an interval that is put back comes again.
#[test]
fn interval() {
    let event = sched_waking();
    let hist = small(&event, "keys=pid:vals=prio.max", ":full(other)");
    let reader = intervals::reader(&hist);
    fill(&hist);
    for (round, prio) in [(0, 9), (1, 5)] {
        hit(&hist, 1000 + round, prio);
        hit(&hist, 1, 1);
        intervals::cut(&hist);
        let mut interval = reader.take(reader.room().unwrap(), None).unwrap();
        let text = intervals::text_of(&reader, &mut interval, None, 0);
        let rows = intervals::entries_of(&text);
        assert_eq!(
            rows.last().unwrap(),
            &format!("{{ other }} hitcount:          1  prio.max: {prio:>10}")
        );
        assert!(text.contains("\n    Folded: 1\n"), "{text}");
        reader.put_back(&interval);
        let mut again = reader.take(reader.room().unwrap(), None).unwrap();
        let said = delta(&reader, &mut again);
        let entries = if round == 0 { 128 } else { 1 };
        assert_eq!(said.entries.len(), entries);
        assert_eq!(
            said.trailer["hits"],
            entries + if round == 0 { 2 } else { 1 }
        );
        assert_eq!(
            said.trailer["other"]["folded"],
            json!({"hitcount": 1, "values": [1, prio]})
        );
    }
}

/// The worker of a histogram.
pub(crate) struct Worker {
    hist: Arc<Histogram>,
    tending: Tending,
}

impl Worker {
    pub(crate) fn new(hist: &Arc<Histogram>) -> Self {
        hist.active().store(1, Relaxed);
        let tending = hist.tending(|| usize::MAX).unwrap();
        Self {
            hist: hist.clone(),
            tending: tending.expect("a clause"),
        }
    }

    /// Takes a turn, `ms` later.
    pub(crate) fn work(&mut self, ms: u64) {
        self.work_beside(ms, || ());
    }

    /// Takes a turn, `ms` later, and calls `between` after each beat, when others may hit and read.
    pub(crate) fn work_beside(&mut self, ms: u64, mut between: impl FnMut()) {
        BOOT_NS.set(BOOT_NS.get() + ms * 1_000_000);
        loop {
            let beat = self.hist.beat(&mut self.tending, BOOT_NS.get(), || ());
            between();
            match beat {
                Beat::At(_) => return,
                Beat::Again => (),
                Beat::GracePeriod(retired) => drop(retired),
            }
        }
    }

    /// Takes out the entries that are idle by `expire(1s)`; `busy` are hit all the time.
    pub(crate) fn expire(&mut self, busy: &[i32]) {
        for _ in 0..8 {
            busy.iter().for_each(|&pid| hit(&self.hist, pid, 1));
            self.work(250);
        }
    }
}

/// Hits of an entry that is taken out go on in `other`, with minimum, maximum and buckets.
#[test]
fn expired() {
    let params = "keys=pid:vals=hitcount,prio,prio.min,prio.max,prio.dist";
    let hist = small(&sched_waking(), params, ":expire(1s):full(other)");
    let mut worker = Worker::new(&hist);
    for prio in [7, 7, 40] {
        hit(&hist, 1000, prio);
    }
    worker.expire(&[1]);
    let said = jsonl(&hist);
    assert_eq!(said.column("keys", 0), [1]);
    let [folded, expired] = ["folded", "expired"].map(|kind| &said.trailer["other"][kind]);
    assert_eq!(folded["hitcount"], 0);
    assert_eq!(expired["hitcount"], 3);
    assert_eq!(expired["values"].as_array().unwrap()[..4], [3, 54, 7, 40]);
    assert_eq!(counts(&expired["values"][4]["positive"]), [2, 1]);
    assert_eq!(said.trailer["expired_entries"], 1);
    assert_eq!(said.trailer["hits"], hist.hits());
    check_counts(&hist);

    // Hits of new keys while it is full are added to these.
    (1..=SIZE * 2).for_each(|pid| hit(&hist, pid, 7));
    let said = jsonl(&hist);
    let other = &said.trailer["other"];
    let folded = other["folded"]["hitcount"].as_u64().unwrap();
    assert!(folded > 0);
    assert_eq!(other["expired"]["hitcount"], 3);
    let row = entries(&hist).pop().unwrap();
    let values = |hits, sum| {
        format!("{{ other }} hitcount: {hits:>10}  prio: {sum:>10}  prio.min:          7  prio.max:         40")
    };
    assert!(
        row.starts_with(&values(folded + 3, folded * 7 + 54)),
        "{row}"
    );
    // The bucket of 7 has most of them.
    assert!(row.contains("  p50:          7  "), "{row}");
    assert!(!row.contains("without bucket"), "{row}");
    let lines = totals(&hist);
    assert_eq!(
        lines[3..5],
        [format!("Folded: {folded}"), "Expired: 3".into()]
    );
    assert_eq!(said.trailer["hits"], hist.hits());
    check_counts(&hist);
}

/// Entries that give way to others are a kind of their own.
#[test]
fn recycled() {
    let hist = small(&sched_waking(), "keys=pid", ":full(recycle)");
    let mut worker = Worker::new(&hist);
    for round in 0..20 {
        (0..20).for_each(|n| hit(&hist, 100 * round + n, 1));
        worker.work(1000);
    }
    let said = jsonl(&hist);
    let [expired, recycled] = ["expired", "recycled"].map(|kind| &said.trailer["other"][kind]);
    assert_eq!(expired, &Value::Null);
    assert_eq!(recycled["hitcount"], said.trailer["recycled_entries"]);
    assert_eq!(said.trailer["hits"], 400);
    let hits = recycled["hitcount"].as_u64().unwrap();
    assert_eq!(hits + said.entries.len() as u64, 400);
    assert!(hits > 200);
    assert_eq!(totals(&hist).last().unwrap(), &format!("Recycled: {hits}"));
    check_counts(&hist);
}

/// A reader gets in `other` the hits that it has not read of an entry that is taken out: also if it
/// has taken the interval before, and then shows it or puts it back, or both.
#[test]
fn intervals_of_expired_entries() {
    for (shows, put_back) in [(false, false), (false, true), (true, true)] {
        let params = "keys=pid:vals=prio.max,prio.dist";
        let hist = small(&sched_waking(), params, ":expire(1s)");
        let mut worker = Worker::new(&hist);
        let reader = intervals::reader(&hist);
        let take = || reader.take(reader.room().unwrap(), None).unwrap();
        let entry = |said: &jsonl::Said| {
            let hits =
                |entry: &Value| (entry["keys"][0] == 1000).then(|| entry["values"][0].clone());
            said.entries.iter().find_map(hits)
        };
        let expired = |said: &jsonl::Said| {
            let expired = &said.trailer["other"]["expired"];
            assert_eq!(expired["values"][0], expired["hitcount"]);
            let all = said
                .column("values", 0)
                .iter()
                .map(|hits| hits.as_u64().unwrap())
                .sum::<u64>();
            assert_eq!(
                said.trailer["hits"],
                all + expired["hitcount"].as_u64().unwrap()
            );
            (
                expired["hitcount"].clone(),
                expired["values"][1].clone(),
                said.trailer["expired_entries"].clone(),
            )
        };
        hit(&hist, 1000, 30);
        intervals::cut(&hist);
        let said = delta(&reader, &mut take());
        assert_eq!(entry(&said), Some(json!(1)));
        assert_eq!(expired(&said), (json!(0), Value::Null, json!(0)));

        hit(&hist, 1000, 20);
        hit(&hist, 1000, 10);
        intervals::cut(&hist);
        let mut interval = take();
        worker.expire(&[1]);
        // Another key has its number.
        hit(&hist, 2000, 5);
        if shows {
            delta(&reader, &mut interval);
        }
        if put_back {
            reader.put_back(&interval);
            intervals::cut(&hist);
            interval = take();
        }
        let said = delta(&reader, &mut interval);
        assert_eq!(entry(&said), None);
        // The entry was taken out later than the interval was taken at first.
        assert_eq!(
            expired(&said),
            (json!(2), json!(20), json!(u8::from(put_back)))
        );
        let buckets = &said.trailer["other"]["expired"]["values"][2]["positive"];
        assert_eq!(counts(buckets), [1, 1]);
        intervals::cut(&hist);
        let said = delta(&reader, &mut take());
        assert_eq!(
            expired(&said),
            (json!(0), Value::Null, json!(u8::from(!put_back)))
        );
        let of_2000 = said.entries.iter().find(|entry| entry["keys"][0] == 2000);
        assert_eq!(
            of_2000.map(|entry| entry["values"][0] == 1),
            (!put_back).then_some(true)
        );
        assert_eq!(trailer(&hist)["other"]["expired"]["hitcount"], 3);
    }
}

/// A file that is being read shows the entries of its snapshot, while another key has the number of
/// one of them: with its key and its comm, and without the variables and saved values of the other.
#[test]
fn used_number() {
    let params =
        "keys=common_pid.execname,pid:p=prio,c=comm:onmax($p).save(comm):size=128:expire(1s)";
    let (world, hist) = saving(params);
    let mut worker = Worker::new(&hist);
    wake(&world, 1000, 77, b"first\0\0\0\0\0\0\0\0\0\0\0");
    let show = |file: HistFile| text(|out| show_whole(out, file, &Functions));
    let views = || [view(&hist)].into_iter();
    let files = || {
        let jsonl = HistFile::jsonl(views(), &ORIGIN).unwrap();
        (HistFile::new(views()).unwrap(), jsonl)
    };
    let (before, before_jsonl) = files();
    let entry = |jsonl: HistFile| {
        jsonl::read(&show(jsonl))
            .swap_remove(0)
            .entries
            .swap_remove(0)
    };
    let alive = entry(files().1);
    assert_eq!(alive["variables"], json!([77, "first"]));
    assert_eq!(alive["actions"][0]["value"], 77);

    worker.expire(&[]);
    wake(&world, 2000, 88, b"second\0\0\0\0\0\0\0\0\0\0");
    let now = entry(files().1);
    assert_eq!(
        now["keys"],
        json!([{"value": 2000, "comm": "second"}, 2000])
    );

    let text = show(before);
    let rows = intervals::entries_of(&text);
    assert_eq!(
        rows,
        ["{ common_pid: first           [      1000], pid:       1000 } hitcount:          1"]
    );
    let gone = entry(before_jsonl);
    assert_eq!(
        gone["keys"],
        json!([{"value": 1000, "comm": "first"}, 1000])
    );
    assert_eq!(gone["values"], json!([1]));
    assert_eq!(gone["begin_boottime_ns"], alive["begin_boottime_ns"]);
    assert_eq!(gone["variables"], json!([null, null]));
    assert_eq!(gone["actions"], json!([null]));
    assert!(now["begin_boottime_ns"].as_u64() > gone["begin_boottime_ns"].as_u64());
}

/// A reader shows values that actions store in an entry, also if the entry has the number of one
/// that was taken out, and of which the reader has seen a value.
#[test]
fn values_in_used_numbers() {
    let (world, hist) = saving("keys=pid:p=prio:onmax($p).save(comm):size=128:expire(1s)");
    let mut worker = Worker::new(&hist);
    let reader = intervals::reader(&hist);
    let next = || {
        intervals::cut(&hist);
        let mut taken = reader.take(reader.room().unwrap(), None).unwrap();
        let text = intervals::text_of(&reader, &mut taken, None, 0);
        let rows = intervals::entries_of(&text).into_iter();
        rows.filter(|row| !row.starts_with("{ other }"))
            .collect::<Vec<_>>()
    };
    let row = |pid: i32| format!("{{ pid: {pid:>10} }} hitcount:          1");
    let max = |prio: i32| format!("\tmax: {prio:>10}  comm: task");
    wake(&world, 1000, 77, TASK);
    assert_eq!(next(), [row(1000), max(77)]);
    worker.expire(&[]);
    // It stores nothing.
    wake(&world, 2000, 0, TASK);
    assert_eq!(next(), [row(2000)]);
    wake(&world, 2000, 77, TASK);
    assert_eq!(next(), [row(2000), max(77)]);
}

/// A reader shows the values that actions store in entries for which the map has grown since.
#[test]
fn values_after_growth() {
    let (world, hist) = saving("keys=pid:p=prio:onmax($p).save(comm):size=128..4096");
    let mut worker = Worker::new(&hist);
    let reader = intervals::reader(&hist);
    for pid in 0..3000 {
        wake(&world, pid, 1, TASK);
        if pid % 50 == 0 {
            worker.work(1);
        }
    }
    assert_eq!(hist.drops(), 0);
    intervals::cut(&hist);
    let mut taken = reader.take(reader.room().unwrap(), None).unwrap();
    let rows = intervals::entries_of(&intervals::text_of(&reader, &mut taken, None, 0));
    assert_eq!(rows.len(), 6000);
    assert_eq!(
        rows.iter().filter(|row| row.starts_with("\tmax:")).count(),
        3000
    );
    // A trigger that only grows has no `other`.
    let trailer = trailer(&hist);
    assert_eq!(
        (&trailer["hits"], trailer.get("other")),
        (&json!(3000), None)
    );
}

/// The line of hits in `hist_stats`, of triggers with any clause that makes room.
#[test]
fn hit_counts() {
    let params = "hist:keys=next_prio:on(next_pid):x=$p:size=128";
    let counts = |clauses: &str| {
        let world = World::usual();
        world.add("sched_waking", "hist:keys=pid:p=prio");
        world.add("sched_switch", &format!("{params}{clauses}"));
        wake(&world, 5, 1, TASK);
        for n in 1..=300i32 {
            // The variable of process 6 is not set.
            let pid = if n <= 200 { 5 } else { 6 };
            let record = switch((b"before", 1), (b"after", pid));
            world.hit("sched_switch", &record.put(60, &n.to_ne_bytes()), NOW);
        }
        let hist = world.histogram("sched_switch", 0);
        let counts = hist.hit_counts(&|| Ok(())).unwrap();
        hist.has_room().then(|| counts.to_string())
    };
    let expected = |entries: u64, folded: u64, dropped: u64| {
        Some(format!(
            "{} hits, {entries} of entries, {folded} folded, 0 expired, 0 recycled, {dropped} dropped, 100 unresolved",
            entries + folded
        ))
    };
    assert_eq!(counts(""), None);
    assert_eq!(counts(":full(other)"), expected(128, 72, 0));
    assert_eq!(counts(":expire(1h)"), expected(160, 0, 40));
    assert_eq!(counts("..512"), expected(200, 0, 0));
}

/// The line of its room in `hist_stats`.
#[test]
fn room() {
    let hist = small(&sched_waking(), "keys=pid:p=prio:c=comm", ":expire(1s)");
    let mut worker = Worker::new(&hist);
    hit(&hist, 1, 1);
    worker.expire(&[2]);
    let room = hist.room().unwrap();
    let bytes = room.bytes;
    assert_eq!([room.places, room.capacity], [1, 160]);
    assert_eq!(
        [room.expired, room.expired_set, room.set_vars],
        [1, 1, 2],
        "a number and a string"
    );
    let counts = RoomCounts {
        step_ns: 38_999_999,
        path: 2,
        recycled: 5,
        ..room
    };
    assert_eq!(
        counts.to_string(),
        format!(
            "1 of 160 places, 159 ahead, last step 38 ms, path full 2, no memory 0, \
             expired 1, recycled 5, 2 variables set, {bytes} bytes"
        )
    );
    assert!(bytes > 128 * 8);
    assert_eq!(small(&sched_waking(), "keys=pid", "").room(), None);
}

/// Checks a file of hits whose process is their priority, and the end of their comm: no row has
/// anything of another entry. Returns the number of hits.
fn check_rows(said: &jsonl::Said) -> u64 {
    let mut hits = said.trailer["other"]["expired"]["hitcount"]
        .as_u64()
        .unwrap();
    for entry in &said.entries {
        let pid = &entry["keys"][0];
        let comm = format!("task{pid}");
        assert_eq!(
            [&entry["values"][1], &entry["values"][2]],
            [pid; 2],
            "{entry}"
        );
        let distribution = &entry["values"][3];
        assert_eq!(
            [&distribution["min"], &distribution["max"]],
            [pid; 2],
            "{entry}"
        );
        let set = [
            json!([pid, comm]),
            json!([null, null]),
            json!([pid, null]),
            json!([null, comm]),
        ];
        assert!(set.contains(&entry["variables"]), "{entry}");
        let saved = [json!([null]), json!([{"value": pid, "saved": [comm]}])];
        assert!(saved.contains(&entry["actions"]), "{entry}");
        hits += entry["values"][0].as_u64().unwrap();
    }
    assert_eq!(said.trailer["hits"], hits);
    hits
}

/// Files and intervals are read while hits come on two CPUs, and the worker takes entries out all
/// the time.
#[test]
fn files_beside_the_worker() {
    const TURNS: u64 = 200;
    let params = "keys=pid:vals=prio.min,prio.max,prio.dist:p=prio,c=comm:onmax($p).save(comm)";
    let (world, hist) = saving(&format!("{params}:size=128:expire(1s)"));
    let (turn, fired, begin) = (AtomicU64::new(0), AtomicU64::new(0), BOOT_NS.get());
    let (world, hist, turn, fired) = (&*world, &hist, &turn, &fired);
    let hit = move |cpu, n| {
        // Each turn brings other processes, and leaves some.
        let turn = turn.load(SeqCst);
        BOOT_NS.set(begin + turn * 100_000_000);
        let pid = (turn * 3 + n % 20) as i32 + 1;
        let mut comm = [0; 16];
        let text = format!("task{pid}");
        comm[..text.len()].copy_from_slice(text.as_bytes());
        let record = waking(&comm, pid).put(28, &pid.to_ne_bytes());
        world.hit("sched_waking", &record, Moment { cpu, ..NOW });
    };
    let is_done = || turn.load(SeqCst) >= TURNS;
    let reader = intervals::reader(hist);
    let intervals = thread::scope(|scope| {
        for cpu in 0..2 {
            scope.spawn(move || {
                let mut last = u64::MAX;
                while !is_done() {
                    let now = turn.load(SeqCst);
                    if now == last {
                        thread::yield_now();
                        continue;
                    }
                    (0u64..40).for_each(|n| hit(cpu, n));
                    fired.fetch_add(40, SeqCst);
                    last = now;
                }
            });
        }
        scope.spawn(move || {
            BOOT_NS.set(begin);
            let mut worker = Worker::new(hist);
            while !is_done() {
                // At least one CPU has had hits in this turn.
                while fired.load(SeqCst) <= turn.load(SeqCst) * 40 {
                    thread::yield_now();
                }
                worker.work(100);
                if turn.fetch_add(1, SeqCst) % 3 == 0 {
                    intervals::cut(hist);
                }
            }
        });
        let reading = scope.spawn(move || {
            let mut hits = 0;
            while !is_done() {
                let now = check_rows(&jsonl(hist));
                assert!(now >= hits);
                hits = now;
            }
        });
        let mut intervals = 0;
        while !is_done() {
            if let Ok(mut interval) = reader.take(reader.room().unwrap(), None) {
                intervals += check_rows(&delta(&reader, &mut interval));
            }
        }
        reading.join().unwrap();
        intervals
    });
    let said = jsonl(hist);
    let hits = check_rows(&said);
    assert_eq!(
        hits + said.trailer["dropped"].as_u64().unwrap(),
        fired.load(SeqCst)
    );
    let expired = said.trailer["expired_entries"].as_u64().unwrap();
    assert!(expired > TURNS, "{}", said.trailer);
    let ended = intervals::ended_now(Ended::Removed);
    let mut last = reader.take(reader.room().unwrap(), Some(ended)).unwrap();
    assert_eq!(intervals + check_rows(&delta(&reader, &mut last)), hits);
}
