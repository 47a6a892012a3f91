// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use proptest::collection::btree_map;
use proptest::collection::hash_set;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::Reader;
use super::Replay;
use super::Writer;
use super::encode;
use crate::names::Names;
use crate::question::Cost;
use crate::question::Interval;
use crate::question::Question;
use crate::question::Source;
use crate::recipe::NameKind;
use crate::table::BucketUnit;
use crate::table::Column;
use crate::table::Counts;
use crate::table::Dist;
use crate::table::Fold;
use crate::table::Frame;
use crate::table::Key;
use crate::table::Losses;
use crate::table::Other;
use crate::table::Row;
use crate::table::Table;
use crate::table::Text;
use crate::table::Time;
use crate::table::Unit;
use crate::table::Value;
use crate::table::Worst;
use crate::tracefs::Backend;
use crate::tracefs::Symbols;

fn question() -> Question {
    Question {
        name: "runqlat".to_owned(),
        summary: "How long tasks wait for a CPU".to_owned(),
        noun: "waits".to_owned(),
        unit: Unit::Nanoseconds,
        worst: "{next_comm} behind {prev_comm}".to_owned(),
        names: BTreeMap::from([("dev".to_owned(), NameKind::Device)]),
        signed: vec!["wait".to_owned()],
        narrow: vec!["next_prio".to_owned()],
        triggers: vec!["echo 'hist:keys=pid' >events/sched/sched_wakeup/trigger".to_owned()],
        notes: vec!["A wake-up of a running task is no wait.".to_owned()],
        backend: Backend::C,
        host: "lab".to_owned(),
        kernel: "7.3.4".to_owned(),
        has_exact_intervals: false,
        cpus: 4,
        clock_step_ns: None,
    }
}

fn time(seconds: u64) -> Time {
    Time {
        realtime_ns: 1_795_621_132_000_000_000 + seconds * 1_000_000_000,
        monotonic_ns: 1_000_000_000 + seconds * 1_000_000_000,
        boot_id: Some("ee0d0f94-5429-4d55-9290-40dcd13767ad".to_owned()),
    }
}

/// One second from `seconds` with waits of one command: values, each with its count.
fn interval(seconds: u64, comm: &str, values: &[(i128, u64)]) -> Interval {
    let mut dist = Dist::new(3);
    for &(value, count) in values {
        dist.record(value, count);
    }
    let row = Row {
        keys: [Key::Text(Text::from(comm))].into(),
        hits: dist.count,
        worst: dist.max.map(|value| Worst {
            value,
            saved: [("prev_comm".into(), Key::Text(Text::from("sed")))].into(),
        }),
        values: vec![Value::Dist(dist)],
        begin: None,
        last_ns: None,
    };
    let column = |name: &str, unit| Column {
        name: name.to_owned(),
        unit,
        fold: Fold::Sum,
    };
    Interval {
        from: time(seconds),
        to: time(seconds + 1),
        delta: Table {
            keys: vec![column("comm", Unit::Plain)],
            values: vec![column("wait", Unit::Nanoseconds)],
            rows: vec![row],
            losses: Losses {
                dropped: 2,
                unresolved: Some(1),
                ..Losses::default()
            },
            time: time(seconds + 1),
        },
        events: 1234,
        rejected: Some(9876),
        cost: Cost {
            event_ns: Some(61.5),
            rejected_ns: Some(20.25),
        },
        ..Interval::default()
    }
}

fn line(question: &Question, interval: &Interval) -> String {
    serde_json::to_string(&encode::request(question, &Names::elsewhere(), interval)).unwrap() + "\n"
}

fn open(bytes: impl Into<Vec<u8>>) -> Result<Reader, super::Error> {
    Reader::new(Box::new(Cursor::new(bytes.into())), "waits.jsonl")
}

/// The error for a file with these bytes.
fn error(bytes: impl Into<Vec<u8>>) -> String {
    let error = match open(bytes) {
        Err(error) => error,
        Ok(reader) => reader.filter_map(Result::err).last().expect("an error"),
    };
    error.to_string()
}

#[test]
fn two_do_not_record_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let first = Writer::create(&path, &question()).unwrap();
    let error = Writer::create(&path, &question()).err().unwrap().to_string();
    assert_eq!(error, format!("{}: another process records to it", path.display()));
    // The first one may have ended without an interval.
    drop(first);
    let mut second = Writer::create(&path, &question()).unwrap();
    second
        .append(&interval(0, "sh", &[(1, 1)]), &Names::elsewhere())
        .unwrap();
    assert!(Writer::create(&path, &question()).is_err());
    assert_eq!(Reader::open(&path).unwrap().count(), 1);
    // Files other than regular ones are not locked.
    let [_one, _other] = [(); 2].map(|()| Writer::create(Path::new("/dev/null"), &question()).unwrap());
}

#[test]
fn a_line_is_otlp() {
    let request = encode::request(
        &question(),
        &Names::elsewhere(),
        &interval(0, "sed", &[(0, 1), (700, 3), (1_000, 2)]),
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&request).unwrap());
}

#[test]
fn what_is_no_recording_gets_a_sentence() {
    let good = line(&question(), &interval(0, "sed", &[(700, 3)]));
    let mut other = question();
    other.name = "offcputime".to_owned();
    let files = [
        String::new(),
        "# event histogram\n".to_owned(),
        "{}\n".to_owned(),
        "[".repeat(100_000) + "\n",
        "{\"resourceSpans\":[]}\n".to_owned(),
        "{\"resourceMetrics\":[]}\n".to_owned(),
        good.replace("\"name\":\"rhist\"", "\"name\":\"otelcol\""),
        good[..good.len() / 2].to_owned(),
        format!("{}\n{good}", &good[..good.len() / 2]),
        format!("{good}\u{1b}[2J\n"),
        good.clone() + &line(&other, &interval(1, "sed", &[(700, 3)])),
        good.replace("\"scale\":3", "\"scale\":21"),
        good.replace("\"offset\":", "\"offset\":99999"),
        good.replace("\"bucketCounts\":[\"3\"]", "\"bucketCounts\":[\"4\"]"),
        good.replace("runqlat.hits", "hits"),
        good.replace("\"key\":\"comm\"", "\"key\":\"c\\u001bomm\""),
        good.replace("\"stringValue\":\"ns\"", "\"stringValue\":\"fortnights\""),
        good.replace("\"asInt\":\"1234\"", "\"asInt\":\"-1\""),
        good.replace("\"asInt\":\"1234\"", "\"asDouble\":0.5"),
    ];
    let errors: Vec<_> = files.into_iter().map(error).collect();
    insta::assert_snapshot!(errors.join("\n"));
}

/// Reads only the beginning of a file that may be endless.
#[test]
fn what_is_no_recording_is_not_kept() {
    let error = Reader::new(Box::new(BufReader::new(std::io::repeat(0))), "/dev/zero").err();
    assert_eq!(error.unwrap().to_string(), "/dev/zero, line 1: not a recording");
}

#[test]
fn a_last_line_that_is_cut_off_is_left_out() {
    let intervals = [interval(0, "sed", &[(700, 3)]), interval(1, "sed", &[(800, 1)])];
    let [first, second] = intervals.each_ref().map(|interval| line(&question(), interval));
    for cut in 1..second.len() - 1 {
        let mut reader = open(first.clone() + &second[..cut]).unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), intervals[0]);
        assert!(reader.next().is_none());
        assert_eq!(reader.note(), Some("line 2 of waits.jsonl is cut off, and left out"));
    }
    // Only the newline is missing.
    let mut reader = open(first + second.trim_end()).unwrap();
    assert_eq!(reader.by_ref().count(), 2);
    assert_eq!(reader.note(), None);
}

#[test]
fn a_file_is_written_line_by_line_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waits.jsonl");
    let intervals = [interval(0, "sed", &[(700, 3)]), interval(1, "awk", &[])];
    let mut writer = Writer::create(&path, &question()).unwrap();
    for (i, interval) in intervals.iter().enumerate() {
        writer.append(interval, &Names::elsewhere()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), i + 1);
    }
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.question(), &question());
    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), intervals);
    drop(writer);
    let error = Writer::create(&path, &question()).err().unwrap().to_string();
    assert_eq!(
        error,
        format!("{} exists: remove it, or record to another file", path.display())
    );
}

/// Numbers whose names only the recorded machine knew.
#[test]
fn numbers_keep_their_names() {
    let proc = tempfile::tempdir().unwrap();
    let partitions = "major minor  #blocks  name\n\n   8        0  268435456 sda\n";
    fs::write(proc.path().join("partitions"), partitions).unwrap();
    let mut interval = interval(0, "sed", &[(700, 3)]);
    interval.delta.keys[0].name = "dev".to_owned();
    interval.delta.rows[0].keys = [Key::Number(8 << 20)].into();
    let saved = ["dev", "sector"].map(|name| (name.into(), Key::Number(9 << 20)));
    interval.delta.rows[0].worst.as_mut().unwrap().saved = saved.into();
    let request = encode::request(&question(), &Names::with_proc(proc.path()), &interval);
    let mut reader = open(serde_json::to_string(&request).unwrap()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), interval);
    let name = |number| reader.names().name(NameKind::Device, "dev", number);
    assert_eq!([8 << 20, 9 << 20].map(name), [Some("sda".to_owned()), None]);
}

/// Also for columns without a kind of names in the question, as with `count`.
#[test]
fn numbers_keep_the_names_of_their_event() {
    let format = include_str!("../../tests/fixtures/events/irq/softirq_entry/format");
    let mut names = Names::new();
    names.add_symbols("vec", Symbols::parse(format, "vec").unwrap());
    let question = Question {
        names: BTreeMap::new(),
        ..question()
    };
    let mut interval = interval(0, "sed", &[(700, 3)]);
    interval.delta.keys[0].name = "vec".to_owned();
    interval.delta.rows[0].keys = [Key::Number(3)].into();
    let saved = ["vec", "pid"].map(|name| (name.into(), Key::Number(2)));
    interval.delta.rows[0].worst.as_mut().unwrap().saved = saved.into();
    let request = encode::request(&question, &names, &interval);
    let mut reader = open(serde_json::to_string(&request).unwrap()).unwrap();
    assert_eq!(reader.question(), &question);
    assert_eq!(reader.next().unwrap().unwrap(), interval);
    let name = |column, number| reader.names().name(NameKind::Format, column, number);
    let named = [name("vec", 3), name("vec", 2), name("pid", 2)];
    assert_eq!(named, [Some("NET_RX".to_owned()), Some("NET_TX".to_owned()), None]);
}

#[test]
fn a_full_disk_is_told() {
    let mut writer = Writer::create(Path::new("/dev/full"), &question()).unwrap();
    let error = writer
        .append(&interval(0, "sed", &[]), &Names::elsewhere())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "/dev/full: the interval is not recorded: No space left on device (os error 28)"
    );
}

/// Earlier versions of rhist do not know the attribute, and have not written it.
#[test]
fn recordings_tell_how_the_kernel_was_read() {
    let read = |question: &Question| {
        let line = line(question, &interval(0, "sed", &[(700, 3)]));
        let has_it = line.contains(r#"{"key":"rhist.intervals","value":{"stringValue":"exact"}}"#);
        (has_it, open(line).unwrap().question().clone())
    };
    assert_eq!(read(&question()), (false, question()));
    let exact = Question {
        has_exact_intervals: true,
        ..question()
    };
    assert_eq!(read(&exact), (true, exact));
}

#[test]
fn a_replay_has_the_totals() {
    let mut second = interval(1, "sed", &[(800, 1)]);
    // As a difference of totals: 800 was not a new maximum.
    if let Value::Dist(dist) = &mut second.delta.rows[0].values[0] {
        (dist.min, dist.max) = (None, None);
    }
    second.delta.rows[0].worst = None;
    let intervals = [
        interval(0, "sed", &[(700, 3), (1_000, 1)]),
        second,
        interval(2, "awk", &[(5, 2)]),
    ];
    let lines: String = intervals.iter().map(|interval| line(&question(), interval)).collect();
    let mut replay = Replay::new(open(lines).unwrap());
    assert_eq!(replay.total().table.time, intervals[0].from);
    assert_eq!(replay.total().table.values, intervals[0].delta.values);
    let mut readings = vec![replay.total().clone()];
    let mut replayed = Vec::new();
    while let Some(interval) = replay.interval().unwrap() {
        replayed.push(interval);
        readings.push(replay.total().clone());
    }
    assert_eq!(replayed, intervals);
    let hits: Vec<_> = readings.iter().map(|reading| reading.table.total().hits).collect();
    assert_eq!(hits, [0, 4, 5, 7]);
    for (pair, interval) in readings.windows(2).zip(&intervals) {
        assert_eq!(pair[1].events - pair[0].events, interval.events);
        assert_eq!(
            (&pair[0].table.time, &pair[1].table.time),
            (&interval.from, &interval.to)
        );
    }
    let sed = &readings[3].table.rows[0];
    let Value::Dist(dist) = &sed.values[0] else {
        panic!("{sed:?}")
    };
    assert_eq!((dist.min, dist.max, dist.sum), (Some(700), Some(1_000), Some(3_900)));
    assert_eq!(sed.worst.as_ref().map(|worst| worst.value), Some(1_000));
}

fn any_text() -> impl Strategy<Value = Text> {
    prop_oneof![
        vec(any::<u8>(), 0..20).prop_map(|bytes| Text::from(&*bytes)),
        any::<String>().prop_map(|text| Text::from(text.as_str()))
    ]
}

fn number() -> impl Strategy<Value = i128> {
    prop_oneof![
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from),
        any::<i128>(),
        -3..3i128
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    (option::of(any::<u64>()), option::of(any::<String>())).prop_map(|(address, symbol)| Frame { address, symbol })
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        number().prop_map(Key::Number),
        any_text().prop_map(Key::Text),
        (any::<i64>(), any_text()).prop_map(|(pid, comm)| Key::Task { pid, comm }),
        (any::<i64>(), option::of(any::<String>())).prop_map(|(number, name)| Key::Syscall { number, name }),
        frame().prop_map(Key::Address),
        vec(frame(), 0..4).prop_map(Key::Stack),
        (number(), number()).prop_map(|(first, last)| Key::Range { first, last }),
        select(&Other::ALL[..]).prop_map(Key::Other),
    ]
}

/// Distributions within the range of a kernel's, so that none needs a coarser scale.
fn dist(unit: BucketUnit) -> impl Strategy<Value = Dist> {
    let buckets = || btree_map(-1..2048i32, 1..u64::MAX / 64, 0..12);
    let ends = (option::of(number()), option::of(number()), option::of(number()));
    // Leaves digits for the decimals made from these.
    let ends = ends.prop_map(|(sum, min, max)| [sum, min, max].map(|end| end.map(|end| end >> 32)));
    (
        0..=5u8,
        any::<u64>(),
        ends,
        0..u64::MAX / 64,
        any::<bool>(),
        buckets(),
        buckets(),
    )
        .prop_map(
            move |(scale, count, [sum, min, max], zero, one_has_zero, positive, negative)| Dist {
                scale,
                bucket_unit: unit,
                count,
                sum,
                min,
                max,
                zero: if one_has_zero { 0 } else { zero },
                one_has_zero,
                positive: positive.into_iter().filter(|(index, _)| *index < 64 << scale).collect(),
                negative: negative.into_iter().filter(|(index, _)| *index < 64 << scale).collect(),
            },
        )
}

fn column() -> impl Strategy<Value = Column> {
    let units = prop_oneof![Just(Unit::Plain), Just(Unit::Nanoseconds), Just(Unit::Bytes)];
    let folds = prop_oneof![Just(Fold::Sum), Just(Fold::Min), Just(Fold::Max)];
    ("[a-c]|hits|\\PC*", units, folds).prop_map(|(name, unit, fold)| Column { name, unit, fold })
}

/// Values of a column with this number of rows.
fn values(rows: usize) -> impl Strategy<Value = Vec<Value>> {
    let units = prop_oneof![
        Just(BucketUnit::One),
        Just(BucketUnit::Us),
        Just(BucketUnit::Ms),
        Just(BucketUnit::S)
    ];
    let numbers = prop_oneof![number().prop_map(Value::Number), Just(Value::Unknown)];
    let dists = move |unit| {
        vec(
            prop_oneof![dist(unit).prop_map(Value::Dist), Just(Value::Unknown)],
            rows,
        )
    };
    prop_oneof![vec(numbers, rows), units.prop_flat_map(dists)]
}

fn table() -> impl Strategy<Value = Table> {
    let worst = (number(), vec((any::<String>(), key()), 0..3));
    let worst = worst
        .prop_map(|(value, saved)| Worst {
            value: value >> 32,
            saved: saved
                .into_iter()
                .map(|(name, key): (String, Key)| (name.into(), key))
                .collect(),
        })
        .boxed();
    (0..3usize, 0..3usize)
        .prop_flat_map(move |(keys, values)| {
            let rows = hash_set(vec(key(), keys), 0..if keys == 0 { 2 } else { 6 });
            (vec(column(), keys), vec(column(), values), rows)
        })
        .prop_flat_map(move |(keys, columns, rows)| {
            let count = rows.len();
            let cells = vec(values(count), columns.len());
            let rest = vec((any::<u64>(), option::of(worst.clone())), count);
            (Just(keys), Just(columns), Just(rows), cells, rest)
        })
        .prop_map(|(keys, columns, rows, cells, rest)| Table {
            keys,
            values: columns,
            rows: rows
                .into_iter()
                .zip(rest)
                .enumerate()
                .map(|(i, (keys, (hits, worst)))| Row {
                    keys: keys.into(),
                    hits,
                    values: cells.iter().map(|column| column[i].clone()).collect(),
                    worst,
                    begin: None,
                    last_ns: None,
                })
                .collect(),
            ..Table::default()
        })
}

fn any_interval() -> impl Strategy<Value = Interval> {
    let losses = (
        any::<u64>(),
        any::<u64>(),
        option::of(any::<u64>()),
        option::of(any::<u64>()),
        option::of(any::<u64>()),
        option::of(any::<u64>()),
        option::of(any::<u64>()),
    );
    let losses = losses.prop_map(
        |(dropped, dropped_starts, no_bucket, unresolved, missed, missed_hits, expired_starts)| Losses {
            dropped,
            dropped_starts,
            no_bucket,
            unresolved,
            missed,
            missed_hits,
            expired_starts,
        },
    );
    let times = (any::<[u64; 4]>(), option::of(any::<String>()));
    let ns = || option::of(any::<f64>().prop_filter("finite", |cost| cost.is_finite()));
    let hits = (any::<u64>(), option::of(any::<u64>()), ns(), ns());
    (table(), losses, times, hits).prop_map(
        |(mut delta, losses, ([a, b, c, d], boot_id), (events, rejected, event_ns, rejected_ns))| {
            let time = |realtime_ns, monotonic_ns| Time {
                realtime_ns,
                monotonic_ns,
                boot_id: boot_id.clone(),
            };
            delta.losses = losses;
            delta.time = time(c, d);
            Interval {
                from: time(a, b),
                to: time(c, d),
                delta,
                events,
                rejected,
                cost: Cost { event_ns, rejected_ns },
                ..Interval::default()
            }
        },
    )
}

/// Members, numbers and signs to substitute for others.
const PIECES: [&str; 16] = [
    "0",
    "-1",
    "18446744073709551616",
    "1e999",
    "\"",
    "null",
    "{}",
    "[]",
    ",",
    "\\ud800",
    "\0",
    "\n",
    "true",
    "1.5",
    "\"asInt\"",
    "}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_interval_comes_back(interval in any_interval()) {
        let mut reader = open(line(&question(), &interval)).unwrap();
        let question = question();
        prop_assert_eq!(reader.question(), &question);
        prop_assert_eq!(reader.next().unwrap().unwrap(), interval);
        prop_assert!(reader.next().is_none());
    }

    #[test]
    fn buckets_of_any_distance_take_little(first in i32::MIN..0, last in 0..i32::MAX, scale in 0..=20u8) {
        let dist = Dist { scale, count: 3, positive: Counts::from([(first, 1), (last, 2)]), ..Dist::default() };
        let mut interval = interval(0, "sed", &[]);
        interval.delta.rows[0].values = vec![Value::Dist(dist)];
        let line = line(&question(), &interval);
        prop_assert!(line.len() < 32_768);
        // No value is lost, with or without a bucket.
        if let Ok(mut reader) = open(line) {
            let interval = reader.next().unwrap().unwrap();
            prop_assert!(matches!(&interval.delta.rows[0].values[0], Value::Dist(dist) if dist.count == 3));
        }
    }

    #[test]
    fn a_changed_recording_is_no_panic(interval in any_interval(), changes in vec((any::<prop::sample::Index>(), 0..40usize, 0..PIECES.len()), 1..4)) {
        let mut bytes = line(&question(), &interval).repeat(2).into_bytes();
        for (place, length, piece) in changes {
            let place = place.index(bytes.len());
            bytes.splice(place..(place + length).min(bytes.len()), PIECES[piece].bytes());
        }
        match open(bytes) {
            Err(error) => prop_assert!(error.to_string().starts_with("waits.jsonl")),
            Ok(reader) => reader.for_each(|interval| if let Err(error) = interval {
                assert!(error.to_string().starts_with("waits.jsonl, line "));
            }),
        }
    }
}

/// A limit on file sizes for the process simulates a full disk.
#[test]
fn half_a_line_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waits.jsonl");
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$0\" --exact recording::tests::write_until_full --ignored";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env("RHIST_TEST_FILE", &path);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut reader = Reader::open(&path).unwrap();
    let intervals = reader.by_ref().map(Result::unwrap).count();
    assert!(intervals > 2, "{intervals}");
    assert_eq!(reader.note(), None);
    assert!(fs::read(&path).unwrap().ends_with(b"\n"));
}

/// Run by the test above in a process with the limit.
#[test]
#[ignore = "part of another test"]
fn write_until_full() {
    let Some(path) = std::env::var_os("RHIST_TEST_FILE") else {
        return;
    };
    let mut writer = Writer::create(Path::new(&path), &question()).unwrap();
    let error = (0..100)
        .find_map(|i| {
            writer
                .append(&interval(i, "sed", &[(700, 3)]), &Names::elsewhere())
                .err()
        })
        .unwrap();
    assert!(
        error
            .to_string()
            .ends_with("the interval is not recorded: File too large (os error 27)"),
        "{error}"
    );
}
