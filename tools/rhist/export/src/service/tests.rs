// SPDX-License-Identifier: MIT OR Apache-2.0

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use rhist_core::problem::InFile;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::recording::Reader;
use rhist_core::recording::Writer;
use rhist_core::table;
use rhist_core::table::Begin;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Fold;
use rhist_core::table::Key;
use rhist_core::table::Keys;
use rhist_core::table::Moment;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Time;
use rhist_core::table::Unit;

use super::*;
use crate::metrics::Value;
use crate::metrics::prometheus::Format;
use crate::push::Encoding;
use crate::push::Environment;
use crate::push::Format as PushFormat;
use crate::push::Temporality;

fn parse(text: &str) -> Result<Config, Vec<InFile>> {
    Config::parse([(PathBuf::from("/etc/rhist/a.toml"), text.to_owned())])
}

/// Problems of a text: line, column, and title with label.
fn wrong(text: &str) -> String {
    let problems = parse(text).unwrap_err();
    let problems: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
    problems.join("\n").replace("/etc/rhist/a.toml:", "")
}

#[test]
fn a_configuration() {
    let config = parse(
        "[histogram.waits]\nrecipe = \"runqlat --by comm\"\nunit = \"s\"\nlimit = 7\nbudget = \"1 %\"\nlabels = { comm = \"task\" }\n\
         [histogram.a]\nevent = \"sched:sched_switch\"\ntrigger = \"hist:keys=next_pid\"\nbefore = [{ event = \"a:b\", trigger = \"hist:keys=x\" }]\n",
    )
    .unwrap();
    let [waits, a] = config.histograms.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!((waits.name.as_str(), a.name.as_str()), ("waits", "a"));
    let text = "runqlat --by comm".to_owned();
    assert_eq!(waits.settings.what, What::Query { kind: "recipe", text });
    assert_eq!((waits.settings.limit, waits.settings.budget), (7, 0.01));
    assert_eq!(
        (a.settings.limit, a.settings.budget, a.settings.addresses),
        (100, 0.005, false)
    );
    let triggers = [("a:b", "hist:keys=x"), ("sched:sched_switch", "hist:keys=next_pid")];
    let triggers = triggers.map(|(event, text)| (event.to_owned(), text.to_owned()));
    assert_eq!(a.settings.what, What::Triggers(triggers.to_vec()));
}

#[test]
fn what_is_wrong_and_where() {
    let all = [
        ("[histogram.a]\n", "1:12: a does not say what to measure"),
        (
            "[histogram.a]\ncount = \"x\"\nbuckets = [1, 1]\n",
            "3:11: buckets have to be 1 to 100 numbers above 0 in ascending order",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nbuckets = []\n",
            "3:11: buckets have to be 1 to 100 numbers above 0 in ascending order",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nbuckets = [0, 1]\n",
            "3:11: buckets have to be 1 to 100 numbers above 0 in ascending order",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nbuckets = [1, inf]\n",
            "3:11: buckets have to be 1 to 100 numbers above 0 in ascending order",
        ),
        (
            "[histogram.A]\ncount = \"x\"\n",
            "1:12: \"A\" is not a name for a histogram",
        ),
        (
            "[histogram.serve]\ncount = \"x\"\n",
            "1:12: metrics that begin with rhist_serve are the service's own",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nrecipe = \"y\"\n",
            "2:9: use only one of recipe, count and between",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nevent = \"y\"\n",
            "3:9: event and trigger stand alone, without recipe, count or between",
        ),
        (
            "[histogram.a]\nevent = \"y\"\n",
            "2:9: event and trigger need each other",
        ),
        (
            "[histogram.a]\nevent = \"y\"\ntrigger = \"traceoff\"\n",
            "3:11: \"traceoff\" is not a trigger of a histogram",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nbefore = [{ event = \"y\", trigger = \"hist:keys=z\" }]\n",
            "3:10: before needs trigger: it lists triggers to be made before that one",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nexpire = \"1d\"\n",
            "3:10: expire: expected a time from 1s to 8760h, with ms, s, m or h, as in 60s",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nsize = 3\n",
            "3:8: size: expected a number from 65 to 131072, or A..B, where A is such a number, and B is above it and at most 1048576, both rounded up to powers of two",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nlimit = \"x\"\n",
            "3:9: invalid type: string \"x\", expected u32",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nunit = \"ns\"\n",
            "3:8: unit has to be s, ms or us",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nbudget = \"200%\"\n",
            "3:10: budget has to be a part of a CPU, at most 100%, as in \"0.5%\"",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nlabels = { x = \"le\" }\n",
            "3:16: \"le\" cannot be a label",
        ),
        (
            "[push]\nto = \"https://x\"\n",
            "2:6: https://x: rhist has no TLS: push to a collector on this machine, which can send it on encrypted",
        ),
        (
            "[push]\nto = \"http://x:99999\"\n",
            "2:6: http://x:99999: expected HOST:PORT, such as localhost:9953 or [2001:db8::7]:9953, with a port up to 65535",
        ),
        (
            "[push]\nto = \"http://:80\"\n",
            "2:6: http://:80: expected HOST:PORT, such as localhost:9953 or [2001:db8::7]:9953, with a port up to 65535",
        ),
        ("[push]\ninterval = 0\n", "2:12: interval has to be from 1 to 86400"),
        (
            "[push]\ntemporality = \"x\"\n",
            "2:15: temporality has to be delta or cumulative",
        ),
        (
            "[push]\njson = 1\n",
            "2:8: invalid type: integer `1`, expected a boolean",
        ),
        (
            "[push]\nintervall = 1\n",
            "2:1: unknown key intervall in this table: did you mean interval?",
        ),
        ("[push]\n[push]\n", "2:2: duplicate key"),
        (
            "é = 1\n",
            "1:1: invalid unquoted key, expected letters, numbers, `-`, `_`",
        ),
        (
            "[histogramm.a]\ncount = \"x\"\n",
            "1:2: unknown key histogramm in this table: did you mean histogram?",
        ),
        (
            "[histogram.a]\ncount = \"x\"\nlimt = 3\n",
            "3:1: unknown key limt in this table: did you mean limit?",
        ),
        (
            "[histogram.a]\ncount = \"x\n",
            "2:11: invalid basic string, expected `\"`",
        ),
    ];
    for (text, expected) in all {
        assert_eq!(wrong(text), expected, "{text}");
    }
}

#[test]
fn two_of_one_name() {
    let text = "[histogram.a]\ncount = \"x\"\n".to_owned();
    let files = ["a", "b"].map(|name| (PathBuf::from(name), text.clone()));
    let problems = Config::parse(files).unwrap_err();
    assert_eq!(problems[0].to_string(), "b:1:12: a second histogram a");
    assert_eq!(problems[0].problem.help, ["the other one is in a"]);
}

#[test]
fn one_receiver_at_most() {
    let files = ["a", "b"].map(|name| (PathBuf::from(name), "\n[push]\ninterval = 7\n".to_owned()));
    let problems = Config::parse(files).unwrap_err();
    assert_eq!(problems[0].to_string(), "b:2:1: a second table push");
    assert_eq!(problems[0].problem.help, ["the other one is in a"]);
}

#[test]
fn what_a_table_does_not_say_is_in_the_environment() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:1"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
        ("OTEL_SERVICE_NAME", "kernel"),
    ];
    let some = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let settings = |text: &str, get: &dyn Fn(&str) -> Option<String>| {
        let push = config(text).push.unwrap();
        let settings = push.settings(&Environment::new(get)).unwrap();
        let PushFormat {
            signal: _,
            encoding,
            temporality,
            resource,
        } = settings.format;
        let ms = settings.interval.as_millis();
        (
            settings.endpoint.url().to_owned(),
            encoding,
            temporality,
            ms,
            resource.len(),
        )
    };
    let default = (
        "http://localhost:4318/v1/metrics".to_owned(),
        Encoding::Protobuf,
        Temporality::Delta,
        60_000,
        0,
    );
    assert_eq!(settings("[push]\n", &|_| None), default);
    let url = "http://x:1/v1/metrics".to_owned();
    let said = (url, Encoding::Json, Temporality::Cumulative, 1500, 1);
    assert_eq!(settings("[push]\n", &some), said);
    let all = "[push]\nto = \"http://y\"\njson = false\ntemporality = \"delta\"\ninterval = 5\n";
    let said = (
        "http://y/v1/metrics".to_owned(),
        Encoding::Protobuf,
        Temporality::Delta,
        5000,
        1,
    );
    assert_eq!(settings(all, &some), said);
    let get = |name: &str| (name == "OTEL_EXPORTER_OTLP_PROTOCOL").then(|| "grpc".to_owned());
    let error = config("[push]\n")
        .push
        .unwrap()
        .settings(&Environment::new(&get))
        .unwrap_err();
    assert!(
        error.to_string().starts_with("OTEL_EXPORTER_OTLP_PROTOCOL: "),
        "{error}"
    );
}

#[test]
fn where_a_word_of_a_text_stands() {
    let place = |text: &str| {
        let config = parse(text).unwrap();
        let problem = rhist_core::problem::Problem::new(6..7, "no");
        let found = config.histograms[0].problem_in("count", problem);
        (found.line, found.column(), found.problem.at.len())
    };
    assert_eq!(place("[histogram.a]\ncount = \"event x\"\n"), (2, 16, 1));
    assert_eq!(place("[histogram.a]\ncount = 'event x'\n"), (2, 16, 1));
    assert_eq!(place("[histogram.a]\ncount = '''\nevent x'''\n"), (3, 7, 1));
    // With an escape, the mark covers the whole text.
    assert_eq!(place("[histogram.a]\ncount = \"even\\u0074 x\"\n"), (2, 9, 14));
}

fn config(text: &str) -> Config {
    parse(text).unwrap()
}

fn service() -> Service {
    Service::new(Id::example(), Journals::at(PathBuf::from("/nonexistent")))
}

#[test]
fn only_what_changed_begins_anew() {
    let mut service = service();
    let now = Instant::now();
    let text = "[histogram.a]\ncount = \"x\"\n[histogram.b]\ncount = \"y\"\n[histogram.c]\ncount = \"z\"\n";
    let changes = service.apply(config(text), now);
    assert_eq!(changes.added, ["a", "b", "c"]);
    for histogram in &mut service.histograms {
        histogram.starts = 1;
    }
    // Another budget, other buckets and comments, another order; c differs, b is gone, d is new.
    let text = "# x\n[histogram.d]\ncount = \"x\"\n[histogram.c]\ncount = \"x\"\n[histogram.a]\ncount = \"x\"\nbudget = \"2%\"\nbuckets = [1, 2.5]\n";
    let changes = service.apply(config(text), now);
    let expected = Changes {
        added: vec!["d".to_owned()],
        removed: vec!["b".to_owned()],
        changed: vec!["c".to_owned()],
        same: 1,
    };
    assert_eq!(changes, expected);
    let state: Vec<_> = service
        .histograms()
        .iter()
        .map(|one| (one.wanted.name.as_str(), one.starts, one.watch.budget))
        .collect();
    assert_eq!(state, [("d", 0, 0.005), ("c", 0, 0.005), ("a", 1, 0.02)]);
    assert_eq!(service.histograms()[2].wanted.settings.bounds, [1.0, 2.5]);
}

/// A histogram after one reading, with these columns of values, and rows: a key, hits and values.
fn read_once(text: &str, values: &[(&str, Unit, Fold)], rows: Vec<(Key, u64, Vec<table::Value>)>) -> Service {
    let mut service = service();
    service.apply(config(text), Instant::now());
    let histogram = &mut service.histograms[0];
    histogram.starts = 1;
    histogram.start.realtime_ns = 5_000_000_000;
    histogram.question.summary = "Waits".to_owned();
    let column = |name: &str, unit, fold| Column {
        name: name.to_owned(),
        unit,
        fold,
    };
    let interval = Interval {
        events: rows.iter().map(|(_, hits, _)| hits).sum(),
        delta: Table {
            keys: vec![column("next_comm", Unit::Plain, Fold::Sum)],
            values: values
                .iter()
                .map(|(name, unit, fold)| column(name, *unit, *fold))
                .collect(),
            rows: rows
                .into_iter()
                .map(|(key, hits, values)| Row {
                    keys: Keys::from_vec(vec![key]),
                    hits,
                    values,
                    worst: None,
                    begin: None,
                    last_ns: None,
                })
                .collect(),
            ..Table::default()
        },
        ..Interval::default()
    };
    histogram.totals.add(interval, |_, key| key.to_string());
    service
}

/// Lines of the service's metrics in OpenMetrics.
fn lines(service: &Service) -> Vec<String> {
    let names = service.label_names();
    let mut out = Vec::new();
    service.families(&names, |family| Format::OpenMetrics.write(&family, &mut out));
    let text = String::from_utf8(out).unwrap();
    let own = text
        .lines()
        .filter(|line| !line.contains("rhist_serve") && !line.contains("_bucket"));
    own.map(str::to_owned).collect()
}

/// Every kind of loss appears in the alerts and in the dashboard of the package.
#[test]
fn losses_are_in_the_rules_and_in_the_dashboard() {
    let of_histograms = families::LOSSES.map(|(name, ..)| format!("rhist_serve_{name}_total"));
    let of_pushes = [
        r#"rhist_push_batches_total{result!="accepted""#.to_owned(),
        "rhist_push_rejected_points_total".to_owned(),
    ];
    let rules = include_str!("../../../fleet/rules.yml");
    let dashboard = include_str!("../../../fleet/dashboard.json").replace(r#"\""#, "\"");
    for name in of_histograms.iter().chain(&of_pushes) {
        assert!(rules.contains(name.as_str()), "no alert has {name}");
        assert!(dashboard.contains(name.as_str()), "no panel has {name}");
    }
}

#[test]
fn a_recording_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let question = Question {
        name: "count".to_owned(),
        noun: "events".to_owned(),
        ..Question::default()
    };
    let time = |second: u64| Time {
        realtime_ns: (100 + second) * 1_000_000_000,
        monotonic_ns: second * 1_000_000_000,
        boot_id: None,
    };
    let mut writer = Writer::create(&path, &question).unwrap();
    for (second, hits) in [(1, 3), (2, 4)] {
        let row = Row {
            keys: Keys::from_vec(vec![Key::Number(5)]),
            hits,
            values: Vec::new(),
            worst: None,
            begin: None,
            last_ns: None,
        };
        let keys = vec![Column {
            name: "cpu".to_owned(),
            ..Column::default()
        }];
        let (from, to) = (time(second - 1), time(second));
        let delta = Table {
            keys,
            rows: vec![row],
            time: to.clone(),
            ..Table::default()
        };
        let interval = Interval {
            from,
            to,
            delta,
            events: hits,
            ..Interval::default()
        };
        writer.append(&interval, &Names::elsewhere()).unwrap();
    }
    let mut service = service();
    service.apply(config("[histogram.a]\ncount = \"x\"\n"), Instant::now());
    let replay = || Replay::new(Reader::open(&path).unwrap());
    assert!(service.replay("b", replay(), Names::elsewhere()).is_err());
    service.replay("a", replay(), Names::elsewhere()).unwrap();
    assert_eq!(service.histograms()[0].started(), Some(100_000_000_000));
    // It keeps the last totals after the end.
    for hits in [3, 7, 7] {
        assert!(service.read(Duration::ZERO).is_empty());
        let expected = format!("rhist_a_total{{cpu=\"5\"}} {hits}");
        assert!(lines(&service).contains(&expected), "{:?}", lines(&service));
    }
}

#[test]
fn names_and_units_of_times() {
    let mut dist = Dist::new(3);
    dist.record(1500, 2);
    let rows = |dist: &Dist| vec![(Key::Text("sh".into()), 2, vec![table::Value::Dist(dist.clone())])];
    let columns = [("value", Unit::Nanoseconds, Fold::Sum)];
    let service = read_once(
        "[histogram.waits]\nrecipe = \"x\"\nlabels = { next_comm = \"task\" }\n",
        &columns,
        rows(&dist),
    );
    assert_eq!(
        lines(&service),
        [
            "# TYPE rhist_waits_nanoseconds histogram",
            "# UNIT rhist_waits_nanoseconds nanoseconds",
            "# HELP rhist_waits_nanoseconds Waits",
            "rhist_waits_nanoseconds_sum{task=\"sh\"} 3000",
            "rhist_waits_nanoseconds_count{task=\"sh\"} 2",
            "rhist_waits_nanoseconds_created{task=\"sh\"} 5.000000000",
        ]
    );
    dist.bucket_unit = table::BucketUnit::S;
    let service = read_once(
        "[histogram.waits]\nrecipe = \"x\"\nunit = \"s\"\n",
        &columns,
        rows(&dist),
    );
    assert!(lines(&service).contains(&"rhist_waits_seconds_sum{next_comm=\"sh\"} 0.000003".to_owned()));
}

/// One row has values without a bucket: a counter reports them for this row only.
#[test]
fn rows_with_values_in_no_bucket() {
    let (mut whole, mut cut) = (Dist::new(3), Dist::new(3));
    whole.record(1500, 2);
    cut.record(1500, 2);
    cut.count += 3;
    let row = |key: &str, dist| (Key::Text(key.into()), 2, vec![table::Value::Dist(dist)]);
    let service = read_once(
        "[histogram.waits]\nrecipe = \"x\"\n",
        &[("value", Unit::Nanoseconds, Fold::Sum)],
        vec![row("sh", whole), row("sed", cut)],
    );
    let (names, mut out) = (service.label_names(), Vec::new());
    service.families(&names, |family| Format::OpenMetrics.write(&family, &mut out));
    let text = String::from_utf8(out).unwrap();
    let of_name = |name: &str| -> Vec<&str> { text.lines().filter(|line| line.starts_with(name)).collect() };
    assert_eq!(
        of_name("rhist_waits_nanoseconds_no_bucket_total"),
        ["rhist_waits_nanoseconds_no_bucket_total{next_comm=\"sed\"} 3"]
    );
    assert_eq!(of_name("rhist_waits_nanoseconds_count").len(), 2);
}

#[test]
fn bounds_of_classic_buckets() {
    let mut dist = Dist::new(3);
    dist.record(1500, 2);
    let rows = vec![(Key::Text("sh".into()), 2, vec![table::Value::Dist(dist)])];
    let text = "[histogram.waits]\nrecipe = \"x\"\nbuckets = [1000, 2048.5]\n";
    let service = read_once(text, &[("value", Unit::Nanoseconds, Fold::Sum)], rows);
    let mut bounds = Vec::new();
    service.families(&service.label_names(), |family| {
        if family.name == "rhist_waits_nanoseconds" {
            bounds = family.bounds.to_vec();
        }
    });
    assert_eq!(bounds, [1000.0, 2048.5]);
}

#[test]
fn names_of_counts_sums_and_extremes() {
    let columns = [
        ("bytes", Unit::Bytes, Fold::Sum),
        ("ret", Unit::Plain, Fold::Sum),
        ("ret", Unit::Plain, Fold::Max),
    ];
    let numbers = [70, -3, -1].map(table::Value::Number).to_vec();
    let mut service = read_once(
        "[histogram.reads]\ncount = \"x\"\n",
        &columns,
        vec![(Key::Number(7), 3, numbers)],
    );
    service.histograms[0].totals.signed = vec!["ret".to_owned()];
    let lines = lines(&service);
    for expected in [
        "rhist_reads_total{next_comm=\"7\"} 3",
        "rhist_reads_bytes_total{next_comm=\"7\"} 70",
        "# TYPE rhist_reads_ret gauge",
        "rhist_reads_ret{next_comm=\"7\"} -3",
        "# TYPE rhist_reads_ret_max gauge",
        "rhist_reads_ret_max{next_comm=\"7\"} -1",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:#?}");
    }
}

/// Counts of the last second start a second ago, whatever the clock said then.
#[test]
fn the_clock_was_set_back() {
    let mut service = read_once("[histogram.x]\ncount = \"x\"\n", &[], vec![]);
    let now = table::Time::clocks();
    let histogram = &mut service.histograms[0];
    histogram.start.realtime_ns = now.realtime_ns + 86_400_000_000_000;
    histogram.start.monotonic_ns = now.monotonic_ns - 1_000_000_000;
    let start = histogram.started().unwrap();
    let later = table::Time::clocks();
    let (before, since) = (later.realtime_ns - start, later.monotonic_ns - now.monotonic_ns);
    // Time goes on between two looks at a clock.
    assert!(
        (1_000_000_000..1_001_000_000 + 2 * since).contains(&before),
        "{before} {since}"
    );
}

#[test]
fn a_sum_that_is_called_as_the_hits_are() {
    let columns = [("total", Unit::Plain, Fold::Sum), ("total", Unit::Plain, Fold::Max)];
    let numbers = [70, 30].map(table::Value::Number).to_vec();
    let text = "[histogram.io]\ncount = \"x\"\n";
    let mut service = read_once(text, &columns, vec![(Key::Number(7), 3, numbers)]);
    let samples = |service: &Service| {
        let lines = lines(service).into_iter();
        let lines = lines.filter(|line| !line.starts_with('#') && !line.contains("_created"));
        lines.collect::<Vec<_>>()
    };
    let mut expected = [
        "rhist_io_total{next_comm=\"7\"} 3",
        "rhist_io_total_2_total{next_comm=\"7\"} 70",
        "rhist_io_total_max{next_comm=\"7\"} 30",
    ];
    assert_eq!(samples(&service), expected);
    service.histograms[0].totals.signed = vec!["total".to_owned()];
    expected[1] = "rhist_io_total_2{next_comm=\"7\"} 70";
    assert_eq!(samples(&service), expected);
}

#[test]
fn what_has_no_values_yet_has_no_kind() {
    let columns = [("value", Unit::Nanoseconds, Fold::Sum)];
    let service = read_once("[histogram.waits]\nrecipe = \"x\"\n", &columns, vec![]);
    assert!(lines(&service).is_empty(), "{:#?}", lines(&service));
}

#[test]
fn what_is_known_of_each() {
    let rows = [("a", 9), ("b", 3), ("c", 2), ("d", 1)];
    let rows = rows.map(|(key, hits)| (Key::Text(key.into()), hits, vec![])).to_vec();
    let service = read_once("[histogram.x]\ncount = \"x\"\nlimit = 2\n", &[], rows);
    let names = service.label_names();
    let mut own = std::collections::BTreeMap::new();
    service.families(&names, |family| {
        for point in &family.points {
            if let Value::Whole(number) = point.value {
                own.insert((family.name.clone(), point.labels[0].1.to_owned()), number);
            }
        }
    });
    let get = |name: &str, label: &str| own.get(&(name.to_owned(), label.to_owned())).copied();
    assert_eq!(get("rhist_x", "other"), Some(3));
    assert_eq!(get("rhist_serve_folded", "x"), Some(3));
    assert_eq!(get("rhist_serve_folded_keys", "x"), Some(2));
    assert_eq!(get("rhist_serve_events", "x"), Some(15));
    assert_eq!(get("rhist_serve_label_sets", "x"), Some(3));
    // A count that the kernel does not report is missing, not 0.
    assert_eq!(get("rhist_serve_missed", "x"), None);
}

#[test]
fn a_hit_costs_seconds() {
    let mut service = read_once("[histogram.x]\ncount = \"x\"\n", &[], Vec::new());
    service.histograms[0].watch.cost.event_ns = Some(62.5);
    let mut found = None;
    let names = service.label_names();
    service.families(&names, |family| {
        if family.name == "rhist_serve_event_cost_seconds" {
            found = Some((family.unit, family.points[0].value.clone()));
        }
    });
    assert_eq!(found, Some(("seconds", Value::Real(62.5e-9))));
}

#[test]
fn labels_of_keys() {
    let names = [
        "next_comm",
        "id.syscall",
        "(a-b).hex",
        "le",
        "common_pid.execname",
        "job",
        "7",
    ];
    let labels = names.map(config::label_name);
    assert_eq!(
        labels,
        ["next_comm", "id", "a_b", "key_le", "common_pid", "key_job", "key_7"]
    );
}

/// The kernel tells when each row began. Its label set begins then, and not with the histogram.
#[test]
fn a_label_set_begins_with_its_first_hit() {
    let mut service = read_once(
        "[histogram.a]\ncount = \"x\"\n",
        &[],
        vec![(Key::Text("sh".into()), 2, Vec::new())],
    );
    let mut add = |key: &str, begin_ns: Option<u64>| {
        let totals = &mut service.histograms[0].totals;
        let row = Row {
            keys: Keys::from_vec(vec![Key::Text(key.into())]),
            hits: 1,
            begin: begin_ns.map(|begin| Begin {
                at: Moment {
                    boottime_ns: begin,
                    realtime_ns: begin,
                },
                ..Begin::default()
            }),
            ..Row::default()
        };
        let interval = Interval {
            delta: Table {
                rows: vec![row],
                ..Table::default()
            },
            ..Interval::default()
        };
        totals.add(interval, |_, key| key.to_string());
    };
    add("ls", Some(7_000_000_000));
    add("ls", Some(7_000_000_001));
    // The clock was set back since.
    add("ps", Some(u64::MAX));
    let lines = lines(&service);
    for line in [
        "rhist_a_total{next_comm=\"ls\"} 2",
        "rhist_a_created{next_comm=\"ls\"} 7.000000000",
        "rhist_a_created{next_comm=\"sh\"} 5.000000000",
        "rhist_a_created{next_comm=\"ps\"} 5.000000000",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line}: {lines:#?}");
    }
}

/// A source that keeps a list of calls.
struct Told {
    name: &'static str,
    told: Rc<RefCell<Vec<String>>>,
    question: Question,
    total: Reading,
}

impl Told {
    fn note(&self, what: &str) {
        self.told.borrow_mut().push(format!("{what} {}", self.name));
    }
}

impl Source for Told {
    fn question(&self) -> &Question {
        &self.question
    }

    fn ask(&mut self) {
        self.note("ask");
    }

    fn release(&mut self) {
        self.note("release");
    }

    fn resume(&mut self) {
        self.note("resume");
    }

    fn interval(&mut self) -> Result<Option<Interval>, Box<dyn Error + Send + Sync>> {
        self.note("interval");
        Ok(Some(Interval::default()))
    }

    fn total(&mut self) -> &Reading {
        &self.total
    }
}

#[test]
fn files_of_intervals_are_let_go_for_a_minute() {
    let journals = tempfile::tempdir().unwrap();
    let mut service = Service::new(Id::example(), Journals::at(journals.path().to_owned()));
    let config = parse("[histogram.a]\ncount = \"x\"\n[histogram.b]\ncount = \"x\"\n").unwrap();
    service.apply(config, Instant::now());
    let told = Rc::new(RefCell::new(Vec::new()));
    for (histogram, name) in service.histograms.iter_mut().zip(["a", "b"]) {
        let source = Told {
            name,
            told: told.clone(),
            question: Question::default(),
            total: Reading::default(),
        };
        histogram.follow(Box::new(source), Names::elsewhere());
    }
    let told = || told.borrow_mut().drain(..).collect::<Vec<_>>().join(", ");
    let read = "ask a, ask b, interval a, interval b";
    service.read(Duration::ZERO);
    assert_eq!(told(), read);
    service.release();
    assert_eq!(told(), format!("{read}, release a, release b"));
    service.read(Duration::ZERO);
    assert_eq!(told(), read);
    assert!(is_released(service.released, Instant::now()));
    service.released = Instant::now().checked_sub(RELEASED);
    assert!(!is_released(service.released, Instant::now()));
    service.read(Duration::ZERO);
    assert_eq!(told(), format!("resume a, resume b, {read}"));
    service.read(Duration::ZERO);
    assert_eq!(told(), read);
    // Hits from just before the files were opened are in the last difference.
    service.read_last();
    assert_eq!(told(), format!("{read}, release a, release b, {read}"));
}
