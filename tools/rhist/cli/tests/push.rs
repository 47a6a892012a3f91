// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs `rhist push`.

mod receiver;

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use rhist_core::names::Names;
use rhist_core::question::Cost;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::recording::Writer;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Key;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use serde_json::Value as Json;

use receiver::receiver;

/// A recording of three seconds, with two waits of `sed` in each.
fn record(folder: &Path) -> PathBuf {
    let path = folder.join("waits.jsonl");
    let question = Question {
        name: "waits".to_owned(),
        noun: "waits".to_owned(),
        host: "lab".to_owned(),
        ..Question::default()
    };
    let column = |name: &str, unit| Column {
        name: name.to_owned(),
        unit,
        ..Column::default()
    };
    let mut writer = Writer::create(&path, &question).unwrap();
    for second in 1..=3u64 {
        let time = |second: u64| Time {
            realtime_ns: second * 1_000_000_000,
            monotonic_ns: second * 1_000_000_000,
            boot_id: None,
        };
        let mut dist = Dist::new(3);
        dist.record(700, 1);
        dist.record(1_000 * i128::from(second), 1);
        let row = Row {
            keys: [Key::Text(Text::from("sed"))].into(),
            hits: 2,
            values: vec![Value::Dist(dist)],
            worst: None,
            begin: None,
            last_ns: None,
        };
        let interval = Interval {
            from: time(second),
            to: time(second + 1),
            delta: Table {
                keys: vec![column("comm", Unit::Plain)],
                values: vec![column("wait", Unit::Nanoseconds)],
                rows: vec![row],
                ..Table::default()
            },
            events: 2,
            rejected: None,
            cost: Cost::default(),
            ..Interval::default()
        };
        writer.append(&interval, &Names::elsewhere()).unwrap();
    }
    path
}

/// Exit status and messages.
fn push(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhist"));
    command
        .arg("push")
        .args(args)
        .current_dir(folder)
        .env("RHIST_TRACEFS", folder)
        .env("RHIST_STATE", folder.join("state"))
        // No request is given up, however busy the machine is.
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn json(body: &[u8]) -> Json {
    serde_json::from_slice(body).unwrap()
}

/// The metric of this name.
fn metric<'a>(request: &'a Json, name: &str) -> &'a Json {
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        .as_array()
        .unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap()
}

#[test]
fn a_recording_is_pushed() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path());
    let (url, requests) = receiver("200 OK");
    let replay = ["--replay", "waits.jsonl"];
    let (code, said) = push(folder.path(), &[&["--to", &url, "--json"][..], &replay].concat(), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said,
        format!("3 intervals pushed to {url}/v1/metrics: 3 batches accepted\n")
    );
    let deltas: Vec<_> = requests.try_iter().collect();
    assert_eq!(deltas.len(), 3);
    assert!(deltas[0].0.contains("\r\ncontent-type: application/json\r\n"));
    for (_, body) in &deltas {
        let request = json(body);
        let point = &metric(&request, "waits.wait")["exponentialHistogram"]["dataPoints"][0];
        assert_eq!(point["count"], "2");
    }

    // Settings from variables.
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-scope-orgid=a"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative"),
        ("OTEL_SERVICE_NAME", "kernel"),
    ];
    let more = ["--header", "authorization=Bearer y", "--name", "cpu"];
    let (code, said) = push(folder.path(), &[&more[..], &replay].concat(), &variables);
    assert_eq!(code, Some(0), "{said}");
    let totals: Vec<_> = requests.try_iter().collect();
    assert!(
        totals[0].0.contains("\r\nx-scope-orgid: a\r\n") && totals[0].0.contains("\r\nauthorization: bearer y\r\n")
    );
    let counts: Vec<Json> = totals
        .iter()
        .map(|(_, body)| {
            let request = json(body);
            let attributes = request["resourceMetrics"][0]["resource"]["attributes"]
                .as_array()
                .unwrap()
                .clone();
            let service = attributes
                .iter()
                .find(|attribute| attribute["key"] == "service.name")
                .unwrap();
            assert_eq!(service["value"]["stringValue"], "kernel");
            let histogram = &metric(&request, "cpu.wait")["exponentialHistogram"];
            assert_eq!(histogram["aggregationTemporality"], 2);
            histogram["dataPoints"][0]["count"].clone()
        })
        .collect();
    assert_eq!(counts, ["2", "4", "6"]);
}

#[test]
fn what_is_not_accepted_is_told() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path());
    let (url, requests) = receiver("401 Unauthorized");
    let (code, said) = push(folder.path(), &["--to", &url, "--replay", "waits.jsonl"], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(requests.try_iter().count(), 3);
    let url = format!("{url}/v1/metrics");
    assert_eq!(
        said,
        format!(
            "rhist: {url} refused a batch, which is lost: 401 Unauthorized\n\
             3 intervals pushed to {url}: 0 batches accepted\n\
             rhist: lost: 3 batches; 3 refused, 0 dropped, 0 unreadable, 0 not sent\n"
        )
    );
}

#[test]
fn what_makes_no_sense() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path());
    for (line, sentence) in [
        ("--to https://x runqlat", "rhist has no TLS"),
        ("--to ftp://x runqlat", "the URL has to begin with http://"),
        ("--header x runqlat", "expected NAME=VALUE"),
        (
            "--header Content-Type=application/json runqlat",
            "the header content-type is set by rhist",
        ),
        ("--queue-size 0 runqlat", "0 is not in 1.."),
        ("-i 0 runqlat", "expected a number of seconds"),
        ("-i 5 nosuch", "nosuch"),
        ("-i 5 --replay waits.jsonl", "cannot be used with"),
        ("--replay nosuch", "No such file"),
        ("--replay waits.jsonl runqlat", "cannot be used with"),
        ("", "missing recipe, count or between"),
        ("nosuch", "nosuch"),
    ] {
        let words: Vec<_> = line.split_whitespace().collect();
        let (code, said) = push(folder.path(), &words, &[]);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains(sentence), "{line}: {said}");
    }
    let (code, said) = push(folder.path(), &["runqlat"], &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("OTEL_EXPORTER_OTLP_PROTOCOL: rhist has http/protobuf and http/json, not grpc"),
        "{said}"
    );
}
