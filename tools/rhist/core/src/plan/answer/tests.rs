// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fmt::Write;
use std::fs;

use proptest::prelude::*;

use super::*;

/// `hist_jsonl` of triggers, each with its hits that found a start, dropped hits, and hits without
/// a start.
pub(crate) fn hist_jsonl(triggers: &[(u64, u64, u64)]) -> String {
    let mut text = String::new();
    for (hits, dropped, unresolved) in triggers {
        let entries = u64::from(*hits > 0);
        text += concat!(
            r#"{"type":"header","schema":1,"trigger":"hist:keys=common_cpu","system":"a","event":"b","name":null,"#,
            r#""filter":null,"paused":false,"size":2048,"clock":null,"boot_id":null,"realtime_ns":1,"monotonic_ns":1,"#,
            r#""keys":[{"name":"common_cpu","type":"int","modifier":null,"unit":null}],"#,
            r#""values":[{"name":"hitcount","type":"u64","modifier":null,"unit":null,"bucket_unit":null}],"#,
            r#""variables":[],"actions":[]}"#,
            "\n"
        );
        if entries > 0 {
            writeln!(
                text,
                r#"{{"type":"entry","keys":[0],"values":[{hits}],"variables":[],"actions":[]}}"#
            )
            .unwrap();
        }
        writeln!(text, r#"{{"type":"trailer","hits":{hits},"entries":{entries},"shown":{entries},"dropped":{dropped},"excess":0,"no_bucket":null,"unresolved":{unresolved},"missed":0,"snapshot":null,"complete":true}}"#).unwrap();
    }
    text
}

/// Reads an end with these triggers, one for each start. Returns its events, and its ends without a
/// start.
fn read(triggers: &[(u64, u64, u64)]) -> (u64, Option<u64>) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("events/a/b");
    fs::create_dir_all(&folder).unwrap();
    fs::write(root.path().join("hist_stats"), "").unwrap();
    fs::write(folder.join("hist_jsonl"), hist_jsonl(triggers)).unwrap();
    let mut answer = Answer::new(Vec::new(), Unit::Nanoseconds);
    for place in 0..triggers.len() {
        answer.add_end("a/b".to_owned(), place, Shows::Ends, 0);
    }
    let reading = answer.read(&Tracefs::at(root.path().to_owned()).unwrap()).unwrap();
    (reading.events, reading.table.losses.unresolved)
}

/// The kernel does not read hits and values at the same time.
#[test]
fn a_title_and_its_table_have_one_number() {
    let mut answer = Answer::new(Vec::new(), Unit::Nanoseconds);
    answer.add("a/b".to_owned(), 0, Shows::Rows);
    let mut dist = Dist::new(3);
    dist.record(1000, 228);
    let table = Table {
        keys: vec![Column::default()],
        values: vec![Column::default()],
        rows: vec![Row {
            keys: vec![Key::Number(0)].into(),
            hits: 229,
            values: vec![Value::Dist(dist)],
            worst: None,
            begin: None,
            last_ns: None,
        }],
        ..Table::default()
    };
    let histogram = Histogram {
        table,
        ..Histogram::default()
    };
    let mut reading = Reading::default();
    let part = answer.parts[0].clone();
    answer.add_part(&mut reading, &mut BTreeMap::new(), &part, histogram);
    assert_eq!(reading.table.rows[0].hits, 228);
}

/// A start with 7 drops in 100 hits, and an end with 2 drops in 50.
#[test]
fn starts_are_told_apart_from_results() {
    let root = tempfile::tempdir().unwrap();
    for (event, hits, dropped) in [("start", 93, 7), ("end", 48, 2)] {
        let folder = root.path().join("events/a").join(event);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("hist_jsonl"), hist_jsonl(&[(hits, dropped, 0)])).unwrap();
    }
    fs::write(root.path().join("hist_stats"), "").unwrap();
    let mut answer = Answer::new(Vec::new(), Unit::Nanoseconds);
    answer.values.clear();
    answer.add("a/start".to_owned(), 0, Shows::Nothing);
    answer.add_end("a/end".to_owned(), 0, Shows::Rows, 0);
    let reading = answer.read(&Tracefs::at(root.path().to_owned()).unwrap()).unwrap();
    let losses = reading.table.losses;
    assert_eq!((losses.dropped, losses.dropped_starts), (9, 7));
    assert!(reading.fill.is_of_starts && reading.fill.size == 2048);
}

#[test]
fn an_end_that_finds_a_start_has_looked_for_the_others() {
    // Ten ends: three find the first start, five the second (one of them is dropped), two find
    // none.
    assert_eq!(read(&[(3, 0, 7), (4, 1, 5)]), (20, Some(2)));
    assert_eq!(read(&[(8, 0, 2)]), (10, Some(2)));
}

#[test]
fn what_happens_while_triggers_are_read_is_no_loss() {
    // All find a start: a hundred before the read of the first trigger, and a hundred more before
    // the second.
    assert_eq!(read(&[(60, 0, 40), (90, 0, 110)]), (300, Some(0)));
}

#[test]
fn what_makes_starts_void_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("events/a/b");
    fs::create_dir_all(&folder).unwrap();
    fs::write(root.path().join("hist_stats"), "").unwrap();
    fs::write(folder.join("hist_jsonl"), hist_jsonl(&[(3, 2, 5), (3, 2, 5)])).unwrap();
    let losses = |shows, tells_ends| {
        let mut answer = Answer::new(Vec::new(), Unit::Nanoseconds);
        answer.tells_ends = tells_ends;
        answer.add("a/b".to_owned(), 0, shows);
        answer.add_end("a/b".to_owned(), 1, Shows::Void, 0);
        let reading = answer.read(&Tracefs::at(root.path().to_owned()).unwrap()).unwrap();
        // Dropped hits cost time as well.
        assert_eq!(reading.events, 20);
        (reading.table.losses.dropped, reading.table.losses.unresolved)
    };
    assert_eq!(losses(Shows::Nothing, true), (2, Some(5)));
    assert_eq!(losses(Shows::Void, true), (0, Some(5)));
    assert_eq!(losses(Shows::Void, false), (0, None));
}

proptest! {
    /// `hits`: the trigger in which each hit finds its start, 3 for none. `read`: the number of
    /// hits before the read of each of three triggers.
    #[test]
    fn never_more_than_the_truth(hits in prop::collection::vec(0..4usize, 0..200), read in prop::array::uniform3(0..200usize)) {
        let counted = |trigger: usize, until: usize| {
            let until = until.min(hits.len());
            let found = hits[..until].iter().filter(|at| **at == trigger).count();
            (found as u64, (until - found) as u64)
        };
        let bound = |read: [usize; 3]| {
            let end = read.into_iter().enumerate().fold(None, |end, (trigger, until)| {
                let (found, unresolved) = counted(trigger, until);
                Some(End::add(end, found, unresolved))
            });
            end.unwrap().without_start()
        };
        let truth = |until: usize| hits.iter().take(until).filter(|at| **at == 3).count() as u64;
        prop_assert!(bound(read) <= truth(read.into_iter().min().unwrap()));
        prop_assert_eq!(bound([hits.len(); 3]), truth(hits.len()));
    }
}

/// Only histograms of starts report starts that were taken out before their end.
#[test]
fn starts_that_were_forgotten() {
    let forgotten = |shows| {
        let mut answer = Answer::new(Vec::new(), Unit::Nanoseconds);
        answer.add("a/b".to_owned(), 0, shows);
        let histogram = Histogram {
            expired_set: Some(3),
            ..Histogram::default()
        };
        let reading = answer.combine([("a/b", vec![histogram])].into());
        reading.unwrap().table.losses.expired_starts
    };
    assert_eq!(forgotten(Shows::Starts), Some(3));
    for shows in [Shows::Nothing, Shows::Ends, Shows::Rows, Shows::Whole, Shows::Void] {
        assert_eq!(forgotten(shows), None);
    }
}

/// Groups below the one of a container are its own; other keys stay.
#[test]
fn groups_of_a_container_are_one() {
    let text = |path: &str| Key::Text(Text::from(path));
    let id = "5a".repeat(32);
    let whole = format!("/docker/{id}");
    let rows = [
        format!("{whole}/a"),
        whole.clone(),
        format!("{whole}/b/c"),
        "/x".to_owned(),
    ];
    let rows = rows.iter().map(|path| Row {
        keys: vec![text(path), text(path)].into(),
        hits: 1,
        ..Row::default()
    });
    let mut answer = Answer::new(vec!["container".to_owned(), "cgroup".to_owned()], Unit::Plain);
    answer.values.clear();
    answer.containers = vec![0];
    answer.add("a/b".to_owned(), 0, Shows::Rows);
    let histogram = Histogram {
        table: Table {
            keys: vec![Column::default(); 2],
            rows: rows.collect(),
            ..Table::default()
        },
        ..Histogram::default()
    };
    let combined = |answer: &Answer| {
        let rows = answer
            .combine([("a/b", vec![histogram.clone()])].into())
            .unwrap()
            .table
            .rows;
        let mut rows: Vec<_> = rows.into_iter().map(|row| (row.keys.to_vec(), row.hits)).collect();
        rows.sort();
        rows
    };
    let expected = |path: &str, below: &str| (vec![text(path), text(&format!("{path}{below}"))], 1);
    assert_eq!(
        combined(&answer),
        [
            expected(&whole, ""),
            expected(&whole, "/a"),
            expected(&whole, "/b/c"),
            expected("/x", "")
        ]
    );
    answer.containers = vec![0, 1];
    assert_eq!(
        combined(&answer),
        [(vec![text(&whole), text(&whole)], 3), expected("/x", "")]
    );
}
