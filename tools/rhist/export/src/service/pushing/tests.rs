// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests the batches that arrive while histograms and the configuration change.

use std::path::Path;
use std::path::PathBuf;

use rhist_core::journal::Journals;
use rhist_core::plan::Id;
use rhist_core::question::Interval;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Key;
use rhist_core::table::Keys;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Value as Cell;
use serde_json::Value as Json;

use super::*;
use crate::push::Environment;
use crate::push::Limits;
use crate::push::Pace;
use crate::push::Queue;
use crate::push::tests::receiver::PATIENCE;
use crate::push::tests::receiver::Receiver;
use crate::push::tests::receiver::accept;
use crate::push::tests::receiver::hang;
use crate::push::tests::receiver::wait_until;
use crate::service::Config;

const TWO: &str =
    "[histogram.a]\ncount = \"x\"\nlabels = { next_comm = \"task\" }\n[histogram.b]\ncount = \"y\"\nlimit = 1\n";

fn config(histograms: &str, push: &str) -> Config {
    Config::parse([(
        PathBuf::from("a.toml"),
        format!("{histograms}[push]\njson = true\n{push}"),
    )])
    .unwrap()
}

fn settings(config: &Config) -> Option<PushSettings> {
    let push = config.push.as_ref().unwrap();
    let mut settings = push.settings(&Environment::new(&|_| None)).unwrap();
    // More than any test takes.
    settings.endpoint.timeout = PATIENCE * 10;
    Some(settings)
}

fn to(receiver: &Receiver) -> String {
    format!("to = \"{}\"\n", receiver.endpoint().url())
}

fn pushing(state: &Path) -> Pushing {
    let state = state.to_owned();
    Pushing::new(move |endpoint| {
        let queue = Queue::open(&state, endpoint.url(), Limits::default()).unwrap();
        Pusher::start(endpoint, queue, Pace::default(), |_| ())
    })
}

fn service(config: Config) -> Service {
    let mut service = Service::new(Id::example(), Journals::at(PathBuf::from("/nonexistent")));
    apply(&mut service, config, 1);
    service
}

/// Applies a configuration. New histograms start at this time.
fn apply(service: &mut Service, config: Config, second: u64) {
    service.apply(config, Instant::now());
    for histogram in service.histograms.iter_mut().filter(|histogram| histogram.starts == 0) {
        histogram.starts = 1;
        histogram.start.realtime_ns = second;
        histogram.question.name = "count".to_owned();
    }
}

/// Feeds an interval to a histogram: these hits of keys, all with the value 9.
fn read(service: &mut Service, histogram: usize, second: u64, hits: &[(&str, u64)]) {
    let row = |&(key, hits): &(&str, u64)| {
        let mut dist = Dist::new(3);
        dist.record(9, hits);
        Row {
            keys: Keys::from_vec(vec![Key::Text(key.into())]),
            hits,
            values: vec![Cell::Dist(dist)],
            worst: None,
            begin: None,
            last_ns: None,
        }
    };
    let column = |name: &str| Column {
        name: name.to_owned(),
        ..Column::default()
    };
    let mut table = Table {
        keys: vec![column("next_comm")],
        values: vec![column("value")],
        rows: hits.iter().map(row).collect(),
        ..Table::default()
    };
    table.time.realtime_ns = second;
    let interval = Interval {
        to: table.time.clone(),
        delta: table,
        events: hits.iter().map(|(_, hits)| hits).sum(),
        ..Interval::default()
    };
    service.histograms[histogram]
        .totals
        .add(interval, |_, key| key.to_string());
}

/// Waits for this number of requests. Returns for each its hits and its counts in buckets: metric,
/// labels, number.
fn arrived(receiver: &Receiver, requests: usize) -> Vec<Vec<String>> {
    wait_until(|| receiver.requests().len() >= requests);
    receiver.bodies().iter().map(|body| points(body)).collect()
}

fn points(body: &str) -> Vec<String> {
    let request: Json = serde_json::from_str(body).unwrap();
    let mut found = Vec::new();
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone();
    for metric in metrics.as_array().unwrap() {
        let name = metric["name"].as_str().unwrap();
        for kind in ["sum", "exponentialHistogram"] {
            for point in metric[kind]["dataPoints"].as_array().into_iter().flatten() {
                let attribute = &point["attributes"][0];
                let (key, value) = (&attribute["key"], &attribute["value"]["stringValue"]);
                let number = [&point["asInt"], &point["count"]].map(|number| number.as_str().unwrap_or_default());
                if !name.starts_with("rhist.") || name == "rhist.events" {
                    let key = format!("{}={}", key.as_str().unwrap(), value.as_str().unwrap());
                    found.push(format!("{name} {key} {}", number.concat()));
                }
            }
        }
    }
    found
}

#[test]
fn only_what_was_added_arrives() {
    let (state, receiver) = (
        tempfile::tempdir().unwrap(),
        Receiver::start(|_, stream| accept(stream)),
    );
    let config = config(TWO, &to(&receiver));
    let (mut pushing, settings) = (pushing(state.path()), settings(&config));
    let mut service = service(config);
    pushing.apply(settings.clone(), &mut service, PATIENCE);
    // No reading yet.
    pushing.push(&mut service);
    read(&mut service, 0, 2, &[("s\\h", 3)]);
    read(&mut service, 1, 2, &[("sh", 5), ("ls", 2), ("ps", 1)]);
    pushing.push(&mut service);
    // Both recipes have the same columns, with other names.
    assert_eq!(
        arrived(&receiver, 2),
        [
            vec![
                "rhist.events rhist.name=a 3",
                "a.hits task=s\\\\h 3",
                "a.value task=s\\\\h 3"
            ],
            vec![
                "rhist.events rhist.name=b 8",
                "b.hits next_comm=other 3",
                "b.hits next_comm=sh 5",
                "b.value next_comm=other 3",
                "b.value next_comm=sh 5"
            ]
        ]
    );
    // The first histogram pauses after a reading; the module is reloaded, and the second one starts
    // at 0. The same configuration is read again.
    read(&mut service, 0, 3, &[("s\\h", 1)]);
    service.histograms[0].totals.forget_keys();
    service.histograms[1].totals.forget_keys();
    read(&mut service, 1, 3, &[("sh", 1)]);
    pushing.apply(settings, &mut service, PATIENCE);
    pushing.push(&mut service);
    pushing.push(&mut service);
    read(&mut service, 0, 4, &[("s\\h", 2)]);
    pushing.push(&mut service);
    let totals = pushing.finish(PATIENCE);
    assert_eq!((totals.accepted, totals.waiting, totals.lost()), (5, 0, 0));
    assert_eq!(
        arrived(&receiver, 5)[2..],
        [
            vec![
                "rhist.events rhist.name=a 1",
                "a.hits task=s\\\\h 1",
                "a.value task=s\\\\h 1"
            ],
            vec![
                "rhist.events rhist.name=b 1",
                "b.hits next_comm=sh 1",
                "b.value next_comm=sh 1"
            ],
            vec![
                "rhist.events rhist.name=a 2",
                "a.hits task=s\\\\h 2",
                "a.value task=s\\\\h 2"
            ],
        ]
    );
}

#[test]
fn containers_are_found_by_the_names_of_their_groups() {
    let (state, receiver) = (
        tempfile::tempdir().unwrap(),
        Receiver::start(|_, stream| accept(stream)),
    );
    let config = config(
        "[histogram.a]\ncount = \"x\"\nlabels = { next_comm = \"group\" }\n",
        &to(&receiver),
    );
    let (mut pushing, settings) = (pushing(state.path()), settings(&config));
    let mut service = service(config);
    pushing.apply(settings, &mut service, PATIENCE);
    let names = &mut service.histograms[0].question.names;
    names.insert("next_comm".to_owned(), rhist_core::recipe::NameKind::Cgroup);
    let id = "7".repeat(64);
    read(&mut service, 0, 2, &[(&format!("/docker/{id}"), 3)]);
    pushing.push(&mut service);
    arrived(&receiver, 1);
    let attribute = format!(r#"{{"key":"container.id","value":{{"stringValue":"{id}"}}}}"#);
    assert!(receiver.bodies()[0].contains(&attribute), "{:?}", receiver.bodies());
}

#[test]
fn totals_do_not_fall() {
    let (state, receiver) = (
        tempfile::tempdir().unwrap(),
        Receiver::start(|_, stream| accept(stream)),
    );
    let one = "[histogram.a]\ncount = \"x\"\n";
    let config = config(one, &(to(&receiver) + "temporality = \"cumulative\"\n"));
    let (mut pushing, settings) = (pushing(state.path()), settings(&config));
    let mut service = service(config);
    pushing.apply(settings, &mut service, PATIENCE);
    read(&mut service, 0, 2, &[("sh", 3)]);
    pushing.push(&mut service);
    service.histograms[0].totals.forget_keys();
    read(&mut service, 0, 3, &[("sh", 2)]);
    pushing.push(&mut service);
    let hits: Vec<_> = arrived(&receiver, 2)
        .into_iter()
        .map(|points| points[1].clone())
        .collect();
    assert_eq!(hits, ["a.hits next_comm=sh 3", "a.hits next_comm=sh 5"]);
}

#[test]
fn another_configuration() {
    let state = tempfile::tempdir().unwrap();
    let [first, second] = [(); 2].map(|()| Receiver::start(|_, stream| accept(stream)));
    let hits = |receiver: &Receiver, requests| -> Vec<String> {
        let all = arrived(receiver, requests).into_iter().map(|points| points[1].clone());
        all.collect()
    };
    let one = "[histogram.a]\ncount = \"x\"\n";
    let begin = config(one, &to(&first));
    let mut pushing = pushing(state.path());
    let mut service = service(begin.clone());
    pushing.apply(settings(&begin), &mut service, PATIENCE);
    read(&mut service, 0, 2, &[("sh", 3)]);
    pushing.push(&mut service);
    // Another interval changes nothing else.
    let next = config(one, &(to(&first) + "interval = 7\n"));
    pushing.apply(settings(&next), &mut service, PATIENCE);
    assert!(pushing.due().unwrap() <= Instant::now() + Duration::from_secs(7));
    read(&mut service, 0, 3, &[("sh", 1)]);
    pushing.push(&mut service);
    assert_eq!(hits(&first, 2), ["a.hits next_comm=sh 3", "a.hits next_comm=sh 1"]);
    // Cumulative points to the same receiver start now, since earlier counts have arrived.
    let next = config(one, &(to(&first) + "temporality = \"cumulative\"\n"));
    pushing.apply(settings(&next), &mut service, PATIENCE);
    read(&mut service, 0, 4, &[("sh", 2)]);
    pushing.push(&mut service);
    assert_eq!(hits(&first, 3)[2], "a.hits next_comm=sh 2");
    // Another receiver. Metrics cover both.
    let next = config(one, &to(&second));
    pushing.apply(settings(&next), &mut service, PATIENCE);
    read(&mut service, 0, 5, &[("sh", 1)]);
    pushing.push(&mut service);
    assert_eq!(hits(&second, 1), ["a.hits next_comm=sh 1"]);
    // A different histogram of the same name starts over.
    let next = config("[histogram.a]\ncount = \"z\"\n", &to(&second));
    let changed = settings(&next);
    apply(&mut service, next, 6);
    pushing.apply(changed, &mut service, PATIENCE);
    read(&mut service, 0, 7, &[("sh", 2)]);
    pushing.push(&mut service);
    assert_eq!(hits(&second, 2)[1], "a.hits next_comm=sh 2");
    // No receiver.
    pushing.apply(None, &mut service, PATIENCE);
    assert_eq!(pushing.due(), None);
    read(&mut service, 0, 8, &[("sh", 3)]);
    pushing.push(&mut service);
    let batches = pushing.families().remove(0);
    assert_eq!(batches.points[0].value, Value::Whole(5));
    assert_eq!(pushing.finish(PATIENCE).accepted, 5);
    assert_eq!((first.requests().len(), second.requests().len()), (3, 2));
}

#[test]
fn a_receiver_that_is_not_there_keeps_nobody_waiting() {
    let state = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(|_, _| hang());
    let one = "[histogram.a]\ncount = \"x\"\n";
    let config = config(one, &to(&receiver));
    let mut service = service(config.clone());
    let mut before = pushing(state.path());
    before.apply(settings(&config), &mut service, PATIENCE);
    read(&mut service, 0, 2, &[("sh", 3)]);
    let begin = Instant::now();
    before.push(&mut service);
    let queued = |pushing: &Pushing| pushing.families()[3].points[0].value.clone();
    assert_eq!(queued(&before), Value::Whole(1));
    // It is not waited for as long as for an answer.
    let totals = before.finish(Duration::from_millis(300));
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    assert_eq!((totals.waiting, totals.volatile), (1, 0));
    let folder = state.path().join("push");
    let files = |folder: &Path| -> usize {
        let batches = std::fs::read_dir(folder)
            .unwrap()
            .flatten()
            .flat_map(|one| std::fs::read_dir(one.path()).unwrap());
        batches
            .flatten()
            .map(|one| std::fs::read_dir(one.path()).unwrap().count())
            .sum()
    };
    assert_eq!(files(&folder), 1);
}
