// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;
use rhist_core::table::Dist;
use rhist_core::table::Table;
use rhist_core::table::Value;

use super::*;

fn label(_: &Column, key: &Key) -> String {
    key.to_string()
}

/// A reading with these hits of each key; each key has its own value.
fn reading(hits: &[(i128, u64)]) -> Reading {
    let column = |name: &str| Column {
        name: name.to_owned(),
        ..Column::default()
    };
    let row = |&(key, hits): &(i128, u64)| {
        let mut dist = Dist::new(3);
        dist.record(key + 1, hits);
        Row {
            keys: Keys::from_vec(vec![Key::Number(key)]),
            hits,
            values: vec![Value::Dist(dist)],
            worst: None,
        }
    };
    Reading {
        table: Table {
            keys: vec![column("key")],
            values: vec![column("value")],
            rows: hits.iter().map(row).collect(),
            losses: Losses {
                dropped: hits.len() as u64,
                ..Losses::default()
            },
            ..Table::default()
        },
        events: hits.iter().map(|(_, hits)| hits).sum(),
        ..Reading::default()
    }
}

/// Label sets with their hits.
fn hits(totals: &Totals) -> Vec<(String, u64)> {
    totals.sets().map(|set| (set.labels.join(","), set.row.hits)).collect()
}

fn owned(sets: &[(&str, u64)]) -> Vec<(String, u64)> {
    sets.iter().map(|(label, hits)| ((*label).to_owned(), *hits)).collect()
}

#[test]
fn what_counts_most_has_a_label_set() {
    let mut totals = Totals::new(2);
    totals.take(reading(&[(1, 5), (2, 50), (3, 7), (4, 6)]), label).unwrap();
    assert_eq!(hits(&totals), owned(&[("other", 11), ("2", 50), ("3", 7)]));
    assert_eq!(totals.folded(), (11, 2));
    // A folded key stays folded, or `other` would fall.
    totals
        .take(reading(&[(1, 500), (2, 50), (3, 7), (4, 6), (5, 1)]), label)
        .unwrap();
    assert_eq!(hits(&totals), owned(&[("other", 507), ("2", 50), ("3", 7)]));
    assert_eq!(totals.folded(), (507, 3));
}

#[test]
fn triggers_that_come_anew_go_on() {
    let mut totals = Totals::new(2);
    totals.take(reading(&[(1, 5), (2, 4)]), label).unwrap();
    totals.rebase();
    assert_eq!(hits(&totals), owned(&[("1", 5), ("2", 4)]));
    totals.take(reading(&[(2, 10), (7, 3)]), label).unwrap();
    assert_eq!(hits(&totals), owned(&[("other", 3), ("1", 5), ("2", 14)]));
    assert_eq!((totals.events(), totals.losses().dropped), (22, 4));
}

/// Returns whether the second reading is recognized as one of other triggers.
fn is_other(first: Reading, second: Reading) -> bool {
    let mut totals = Totals::new(9);
    totals.take(first, label).unwrap();
    let before = hits(&totals);
    let taken = totals.take(second, label);
    assert!(taken.is_ok() || hits(&totals) == before);
    taken.is_err()
}

#[test]
fn somebody_clears_them_and_more_hits_come_than_there_were() {
    let first = || reading(&[(1, 5), (2, 4)]);
    assert!(!is_other(first(), first()));
    assert!(!is_other(first(), reading(&[(1, 5), (2, 5)])));
    assert!(is_other(first(), reading(&[(1, 2)])));
    assert!(is_other(first(), reading(&[(1, 4), (2, 100)])));
    assert!(is_other(first(), reading(&[(3, 100), (2, 100)])));
    // As many hits, but of other values.
    let mut other = first();
    let mut dist = Dist::new(3);
    dist.record(100, 5);
    other.table.rows[0].values = vec![Value::Dist(dist)];
    assert!(is_other(first(), other));
    let mut other = first();
    (other.events, other.table.losses.dropped) = (1000, 1);
    assert!(is_other(first(), other));
}

#[test]
fn only_sums_of_what_is_below_zero_fall() {
    let with_sum = |sum, name: &str| {
        let mut reading = reading(&[(1, 5)]);
        reading.table.values[0].name = name.to_owned();
        reading.table.rows[0].values = vec![Value::Number(sum)];
        reading
    };
    assert!(is_other(with_sum(7, "len"), with_sum(6, "len")));
    assert!(!is_other(with_sum(7, "a-b"), with_sum(6, "a-b")));
    let mut totals = Totals::new(9);
    totals.signed = vec!["ret".to_owned()];
    totals.take(with_sum(7, "ret*8"), label).unwrap();
    totals.take(with_sum(6, "ret*8"), label).unwrap();
    let is_counter = |name: &str| {
        let name = name.to_owned();
        totals.is_counter(&Column {
            name,
            ..Column::default()
        })
    };
    assert!(is_counter("len") && is_counter("ret2") && !is_counter("ret") && !is_counter("8*(ret)"));
}

#[test]
fn a_key_called_other_is_counted_there() {
    let mut totals = Totals::new(1);
    let text = |_: &Column, key: &Key| match key {
        Key::Number(9) => OTHER.to_owned(),
        key => key.to_string(),
    };
    totals.take(reading(&[(9, 5), (1, 2)]), text).unwrap();
    assert_eq!(hits(&totals), owned(&[("other", 5), ("1", 2)]));
}

#[test]
fn without_keys_there_is_one_set() {
    let mut totals = Totals::new(1);
    for round in 1..4 {
        let mut one = reading(&[(0, 5)]);
        one.table.keys.clear();
        one.table.rows[0].keys.clear();
        totals.take(one, label).unwrap();
        totals.rebase();
        assert_eq!(hits(&totals), owned(&[("", 5 * round)]));
        assert_eq!(totals.folded(), (0, 0));
    }
}

/// An event in the life of a histogram.
#[derive(Clone, Debug)]
enum Step {
    /// Hits of a key.
    Hits(i128, u64),
    Read,
    /// The triggers are replaced: after a last reading, as a service does it, or suddenly.
    Anew,
    Lost,
    /// The triggers are cleared.
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8i128, 1..100u64).prop_map(|(key, hits)| Step::Hits(key, hits)),
        3 => Just(Step::Read),
        1 => Just(Step::Anew),
        1 => Just(Step::Lost),
        1 => Just(Step::Clear),
    ]
}

/// By label set: hits, and the count in each bucket.
fn numbers(totals: &Totals) -> Vec<(String, u64, Dist)> {
    let dist = |set: Set<'_>| match &set.row.values[0] {
        Value::Dist(dist) => dist.clone(),
        other => panic!("{other:?}"),
    };
    totals
        .sets()
        .map(|set| (set.labels.join(","), set.row.hits, dist(set)))
        .collect()
}

proptest! {
    #[test]
    fn nothing_falls_and_nothing_that_was_read_is_lost(
        limit in 1..6u32,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut totals = Totals::new(limit);
        let mut kernel: Vec<(i128, u64)> = Vec::new();
        // All hits so far; hits in the last readings of triggers that are gone; hits lost by
        // clearing.
        let (mut truth, mut base, mut cleared) = (0, 0, 0);
        let mut before: Vec<(String, u64, Dist)> = Vec::new();
        let in_kernel = |kernel: &[(i128, u64)]| kernel.iter().map(|(_, hits)| hits).sum::<u64>();
        for step in steps {
            match step {
                Step::Hits(key, hits) => {
                    truth += hits;
                    match kernel.iter_mut().find(|(other, _)| *other == key) {
                        Some((_, sum)) => *sum += hits,
                        None => kernel.push((key, hits)),
                    }
                }
                Step::Read | Step::Anew => {
                    let is_taken = totals.take(reading(&kernel), label).is_ok();
                    prop_assert!(is_taken || cleared > 0);
                    if is_taken {
                        prop_assert_eq!(totals.events(), base + in_kernel(&kernel));
                    }
                    if !is_taken || matches!(step, Step::Anew) {
                        totals.rebase();
                        kernel.clear();
                        (base, cleared) = (totals.events(), 0);
                    }
                }
                Step::Lost => {
                    totals.rebase();
                    kernel.clear();
                    (base, cleared) = (totals.events(), 0);
                }
                Step::Clear => {
                    cleared += in_kernel(&kernel);
                    kernel.clear();
                }
            }
            let now = numbers(&totals);
            prop_assert!(now.len() <= limit as usize + 1);
            prop_assert_eq!(now.iter().map(|(_, hits, _)| hits).sum::<u64>(), totals.events());
            prop_assert!(totals.events() <= truth);
            for (labels, hits, dist) in &before {
                let found = now.iter().find(|(other, ..)| other == labels);
                let Some((_, now_hits, now_dist)) = found else {
                    return Err(TestCaseError::fail(format!("{labels} is gone")));
                };
                prop_assert!(now_hits >= hits && now_dist.count >= dist.count && now_dist.sum >= dist.sum);
                for (index, count) in dist.positive.iter() {
                    prop_assert!(now_dist.positive.iter().any(|(other, now)| other == index && now >= count));
                }
            }
            before = now;
        }
    }
}
