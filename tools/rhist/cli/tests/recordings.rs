// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs `rhist report` and `rhist diff`.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use insta::assert_snapshot;
use rhist_core::names::Names;
use rhist_core::question::Cost;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::recording::Writer;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::table::Worst;
use tempfile::TempDir;

/// Generator of pseudorandom numbers from 0 to 1 (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn question() -> Question {
    Question {
        name: "runqlat".to_owned(),
        summary: "How long tasks wait for a CPU".to_owned(),
        noun: "waits".to_owned(),
        unit: Unit::Nanoseconds,
        worst: "{next_comm} behind {prev_comm}".to_owned(),
        triggers: vec!["echo 'hist:keys=pid:ts0=common_timestamp' >>trigger".to_owned()],
        notes: vec!["a wake-up of a running task is no wait".to_owned()],
        host: "lab".to_owned(),
        kernel: "7.3.4".to_owned(),
        cpus: 4,
        ..Question::default()
    }
}

fn time(seconds: u64) -> Time {
    Time {
        realtime_ns: 1_795_621_132_000_000_000 + seconds * 1_000_000_000,
        monotonic_ns: 1_000_000_000 + seconds * 1_000_000_000,
        boot_id: Some("ee0d0f94-5429-4d55-9290-40dcd13767ad".to_owned()),
    }
}

/// A recording of some seconds, in which the waits of `sed` are around `middle` nanoseconds.
fn record(folder: &Path, name: &str, seconds: u64, middle: f64) -> PathBuf {
    record_of(&question(), folder, name, seconds, middle)
}

fn record_of(question: &Question, folder: &Path, name: &str, seconds: u64, middle: f64) -> PathBuf {
    let mut random = Random(88_172_645_463_325_252 + seconds);
    let path = folder.join(name);
    let mut writer = Writer::create(&path, question).unwrap();
    let column = |name: &str, unit| Column {
        name: name.to_owned(),
        unit,
        ..Column::default()
    };
    let mut longest = 0;
    for second in 0..seconds {
        let mut row = |comm: &str, count: u64, middle: f64| {
            let mut dist = Dist::new(3);
            for _ in 0..count {
                dist.record((middle * (5.0 * (random.next() - 0.5)).exp()) as i128, 1);
            }
            let worst = dist.max.filter(|max| *max > longest);
            longest = longest.max(dist.max.unwrap_or(0));
            Row {
                keys: [Key::Text(Text::from(comm))].into(),
                hits: count,
                worst: worst.map(|value| Worst {
                    value,
                    saved: vec![
                        ("next_comm".into(), Key::Text(Text::from(comm))),
                        ("prev_comm".into(), Key::Text(Text::from("tail\u{1b}[2J"))),
                    ]
                    .into(),
                }),
                values: vec![Value::Dist(dist)],
                begin: None,
                last_ns: None,
            }
        };
        let rows = vec![row("sed", 120 + second % 7, middle), row("awk", 30, 2_000.0)];
        let interval = Interval {
            from: time(second),
            to: time(second + 1),
            delta: Table {
                keys: vec![column("next_comm", Unit::Plain)],
                values: vec![column("wait", Unit::Nanoseconds)],
                rows,
                time: time(second + 1),
                ..Table::default()
            },
            events: 400,
            rejected: Some(0),
            cost: Cost {
                event_ns: Some(62.0),
                ..Cost::default()
            },
            ..Interval::default()
        };
        writer.append(&interval, &Names::elsewhere()).unwrap();
    }
    path
}

fn rhist(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhist"));
    command.args(args).current_dir(folder).env("LC_ALL", "C.UTF-8");
    command
}

/// Output, messages, and the status if it is not 0.
fn printed(folder: &Path, args: &[&str]) -> String {
    let output = rhist(folder, args).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    match output.status.code() {
        Some(0) => out + &error,
        code => format!("{out}{error}status {code:?}\n"),
    }
}

fn recordings() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "before.jsonl", 12, 40_000.0);
    record(folder.path(), "after.jsonl", 15, 60_000.0);
    record(folder.path(), "short.jsonl", 3, 60_000.0);
    folder
}

#[test]
fn reports() {
    let folder = recordings();
    let folder = folder.path();
    assert_snapshot!("report", printed(folder, &["report", "short.jsonl"]));
    assert_snapshot!("report_intervals", printed(folder, &["report", "-qi", "short.jsonl"]));
    assert_snapshot!(
        "report_folded",
        printed(folder, &["report", "--format", "folded", "-i", "short.jsonl"])
    );
    let json = printed(folder, &["report", "--format", "json", "-i", "short.jsonl"]);
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["interval", "interval", "interval", "total"]);
    let hits = |line: &serde_json::Value| {
        line["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["hits"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(lines[..3].iter().map(hits).sum::<u64>(), hits(&lines[3]));
    // A heat map has a cell for each bucket, but no bars; the total has bars.
    let pictures = [&["-i"][..], &[]].map(|options| {
        printed(
            folder,
            &[&["report", "--format", "svg", "short.jsonl"], options].concat(),
        )
    });
    assert!(
        pictures
            .iter()
            .all(|svg| svg.starts_with("<svg ") && svg.ends_with("</svg>\n"))
    );
    assert_eq!(
        pictures.map(|svg| (svg.contains("<rect"), svg.contains(">p99<"))),
        [(false, true), (true, false)]
    );
}

#[test]
fn standard_input_is_a_recording_too() {
    let folder = recordings();
    let mut command = rhist(folder.path(), &["report", "-"]);
    command.stdin(fs::File::open(folder.path().join("short.jsonl")).unwrap());
    let output = command.output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        printed(folder.path(), &["report", "short.jsonl"])
    );
}

#[test]
fn differences() {
    let folder = recordings();
    let folder = folder.path();
    assert_snapshot!("diff", printed(folder, &["diff", "before.jsonl", "after.jsonl"]));
    assert_snapshot!(
        "diff_itself",
        printed(folder, &["diff", "-q", "before.jsonl", "before.jsonl"])
    );
    let json = printed(folder, &["diff", "--format", "json", "before.jsonl", "after.jsonl"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let p99 = json["differences"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["measure"] == "p99")
        .unwrap();
    assert_eq!(p99["keys"], serde_json::Value::Null);
    assert!(
        p99["p"].as_f64().unwrap() < 0.01 && p99["ratio"]["low"].as_f64().unwrap() > 1.2,
        "{p99}"
    );
    assert_eq!(p99["n"], serde_json::json!([12, 15]));
    let svg = printed(folder, &["diff", "--format", "svg", "before.jsonl", "after.jsonl"]);
    assert!(svg.starts_with("<svg ") && svg.contains("after.jsonl: "));
    assert_eq!(
        printed(folder, &["diff", "--format", "folded", "before.jsonl", "after.jsonl"]),
        "awk 360 450\nsed 1471 1842\n"
    );
}

/// A recording of as many seconds as are needed, with these stacks and hits in each.
fn record_stacks(folder: &Path, name: &str, stacks: &[(&str, u64)]) {
    let mut writer = Writer::create(&folder.join(name), &question()).unwrap();
    let frame = |name: &str| Frame {
        address: None,
        symbol: Some(name.to_owned()),
    };
    let rows = stacks.iter().map(|(names, hits)| Row {
        keys: [Key::Stack(names.split(';').rev().map(frame).collect())].into(),
        hits: *hits,
        ..Row::default()
    });
    let rows: Vec<Row> = rows.collect();
    for second in 0..6 {
        let interval = Interval {
            from: time(second),
            to: time(second + 1),
            delta: Table {
                keys: vec![Column {
                    name: "stack".to_owned(),
                    ..Column::default()
                }],
                rows: rows.clone(),
                time: time(second + 1),
                ..Table::default()
            },
            events: 100,
            ..Interval::default()
        };
        writer.append(&interval, &Names::elsewhere()).unwrap();
    }
}

/// The same functions are compared wherever they call from.
#[test]
fn differences_of_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let before = [
        ("main+0x9/0x40;read+0x8/0x90", 40),
        ("main+0x2f/0x40;operator+(A, B)+0x10/0x20", 10),
    ];
    record_stacks(folder, "before.jsonl", &before);
    record_stacks(
        folder,
        "after.jsonl",
        &[("main+0x11/0x50;read+0x8/0x90", 30), ("main+0x19/0x50;write", 10)],
    );
    let diff = |format| printed(folder, &["diff", "--format", format, "before.jsonl", "after.jsonl"]);
    assert_eq!(
        diff("folded"),
        "main;operator+(A, B) 60 0\nmain;read 240 180\nmain;write 0 60\n"
    );
    let svg = diff("svg");
    for title in [
        "main: A 300, 100.0 %; B 240, 100.0 %; +0.0 points",
        "write: A 0, 0.0 %; B 60, 25.0 %; +25.0 points",
        "operator+(A, B): A 60, 20.0 %, in stacks that B lacks",
    ] {
        assert!(svg.contains(&format!("<title>{title}</title>")), "{title}: {svg}");
    }
}

/// Of two recordings of the same numbers, the kernel has cut the intervals of one.
#[test]
fn a_difference_from_exact_intervals() {
    let folder = recordings();
    let folder = folder.path();
    let exact = Question {
        has_exact_intervals: true,
        ..question()
    };
    for name in ["exact.jsonl", "also_exact.jsonl"] {
        record_of(&exact, folder, name, 12, 40_000.0);
    }
    let note = "The kernel has cut the intervals of B. In A, they are differences of totals, whose columns were \
                read at slightly different moments, and may vary more for that.";
    let text = |a, b| printed(folder, &["diff", "-q", a, b]);
    let (differing, alike) = (
        text("before.jsonl", "exact.jsonl"),
        text("also_exact.jsonl", "exact.jsonl"),
    );
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&differing).ends_with(note), "{differing}");
    // The numbers are the same.
    let table = |text: &str| {
        text.lines()
            .skip_while(|line| !line.starts_with("all"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(table(&differing).starts_with(&table(&alike)), "{differing}{alike}");
    assert!(!alike.contains("The kernel has cut"), "{alike}");
    let json = printed(folder, &["diff", "--format", "json", "before.jsonl", "exact.jsonl"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["notes"], serde_json::json!([note]));
}

#[test]
fn what_is_wrong_gets_a_sentence() {
    let folder = recordings();
    let folder = folder.path();
    let whole = fs::read(folder.join("short.jsonl")).unwrap();
    let length = whole.len();
    fs::write(folder.join("cut.jsonl"), &whole[..length - 100]).unwrap();
    fs::write(folder.join("hist"), "# event histogram\n").unwrap();
    fs::write(
        folder.join("damaged.jsonl"),
        [&whole[..], b"{\"resourceMetrics\":7}\n"].concat(),
    )
    .unwrap();
    fs::write(folder.join("empty"), "").unwrap();
    let lines: [&[&str]; 8] = [
        &["report", "-q", "no\u{1b}[2Jfile"],
        &["report", "hist"],
        &["report", "empty"],
        &["report", "--format", "folded", "cut.jsonl"],
        &["report", "--format", "folded", "damaged.jsonl"],
        &["diff", "before.jsonl", "short.jsonl"],
        &["diff", "before.jsonl", "hist"],
        &["diff", "--format", "csv", "before.jsonl", "after.jsonl"],
    ];
    let said = lines.map(|line| format!("$ rhist {}\n{}", line.join(" ").escape_debug(), printed(folder, line)));
    assert_snapshot!("errors", said.join("\n"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "long.jsonl", 200, 40_000.0);
    let mut child = rhist(folder.path(), &["report", "--format", "json", "-i", "long.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
