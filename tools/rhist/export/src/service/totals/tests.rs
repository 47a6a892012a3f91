// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;
use rhist_core::table::Begin;
use rhist_core::table::Dist;
use rhist_core::table::Moment;
use rhist_core::table::Table;
use rhist_core::table::Value;

use super::*;

fn label(_: &Column, key: &Key) -> String {
    key.to_string()
}

/// An interval with these hits of each key; each key has its own value.
fn interval(hits: &[(i128, u64)]) -> Interval {
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
            begin: None,
            last_ns: None,
        }
    };
    Interval {
        delta: Table {
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
        ..Interval::default()
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
    totals.add(interval(&[(1, 5), (2, 50), (3, 7), (4, 6)]), label);
    assert_eq!(hits(&totals), owned(&[("other", 11), ("2", 50), ("3", 7)]));
    assert_eq!(totals.folded(), (11, 2));
    // A folded key stays folded, or `other` would fall.
    totals.add(interval(&[(1, 495), (5, 1)]), label);
    assert_eq!(hits(&totals), owned(&[("other", 507), ("2", 50), ("3", 7)]));
    assert_eq!(totals.folded(), (507, 3));
}

#[test]
fn triggers_that_come_anew_go_on() {
    let mut totals = Totals::new(2);
    totals.add(interval(&[(1, 5), (2, 4)]), label);
    totals.forget_keys();
    assert_eq!(hits(&totals), owned(&[("1", 5), ("2", 4)]));
    totals.add(interval(&[(2, 10), (7, 3)]), label);
    assert_eq!(hits(&totals), owned(&[("other", 3), ("1", 5), ("2", 14)]));
    assert_eq!((totals.events(), totals.losses().dropped), (22, 4));
}

/// A label set begins with its first key, and goes on with the extremes of all intervals.
#[test]
fn begins_and_extremes_of_label_sets() {
    let mut totals = Totals::new(1);
    let begins = |totals: &Totals| -> Vec<_> {
        totals
            .sets()
            .map(|set| set.row.begin.map(|begin| begin.at.realtime_ns))
            .collect()
    };
    let begun = |hits: &[(i128, u64)], begins: &[u64]| {
        let mut interval = interval(hits);
        for (row, begin) in interval.delta.rows.iter_mut().zip(begins) {
            row.begin = Some(Begin {
                at: Moment {
                    boottime_ns: *begin,
                    realtime_ns: *begin,
                },
                ..Begin::default()
            });
        }
        interval
    };
    totals.add(begun(&[(1, 5), (2, 4), (3, 3)], &[70, 60, 50]), label);
    assert_eq!(begins(&totals), [Some(50), Some(70)]);
    // The clock is corrected by a nanosecond; another key begins.
    totals.add(begun(&[(1, 5), (2, 4), (4, 3)], &[69, 59, 90]), label);
    assert_eq!(begins(&totals), [Some(50), Some(70)]);
    // Without the kernel's intervals, a maximum that did not grow is unknown.
    let mut next = interval(&[(1, 5)]);
    let Value::Dist(dist) = &mut next.delta.rows[0].values[0] else {
        panic!("{next:?}")
    };
    (dist.min, dist.max) = (None, None);
    totals.add(next, label);
    let (_, _, dist) = numbers(&totals).remove(1);
    assert_eq!((dist.count, dist.min, dist.max), (15, Some(2), Some(2)));
}

#[test]
fn what_is_fresh_is_taken_once() {
    let mut totals = Totals::new(1);
    let time = |realtime_ns| Time {
        realtime_ns,
        ..Time::default()
    };
    let at = |realtime_ns, hits: &[(i128, u64)]| Interval {
        to: time(realtime_ns),
        ..interval(hits)
    };
    let start = time(1);
    assert_eq!(totals.take_fresh(&start), None);
    totals.add(at(2, &[(1, 5)]), label);
    totals.add(at(3, &[(1, 4), (2, 9), (3, 1)]), label);
    let fresh = totals.take_fresh(&start).unwrap();
    let hits: Vec<_> = fresh
        .delta
        .rows
        .iter()
        .map(|row| (row.keys[0].to_string(), row.hits))
        .collect();
    assert_eq!(hits, owned(&[("other", 10), ("1", 9)]));
    assert_eq!((fresh.from, fresh.to, fresh.events), (time(1), time(3), 19));
    assert_eq!(totals.take_fresh(&start), None);
    // An interval without hits is one.
    totals.add(at(4, &[]), label);
    let fresh = totals.take_fresh(&start).unwrap();
    assert_eq!((fresh.from, fresh.to, fresh.delta.rows.len()), (time(3), time(4), 0));
}

#[test]
fn sums_of_what_is_below_zero_are_no_counters() {
    let mut totals = Totals::new(9);
    totals.signed = vec!["ret".to_owned()];
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
    totals.add(interval(&[(9, 5), (1, 2)]), text);
    assert_eq!(hits(&totals), owned(&[("other", 5), ("1", 2)]));
}

#[test]
fn without_keys_there_is_one_set() {
    let mut totals = Totals::new(1);
    for round in 1..4 {
        let mut one = interval(&[(0, 5)]);
        one.delta.keys.clear();
        one.delta.rows[0].keys.clear();
        totals.add(one, label);
        totals.forget_keys();
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
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8i128, 1..100u64).prop_map(|(key, hits)| Step::Hits(key, hits)),
        3 => Just(Step::Read),
        1 => Just(Step::Anew),
        1 => Just(Step::Lost),
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
        // Hits since the last reading, and all that were read.
        let mut kernel: Vec<(i128, u64)> = Vec::new();
        let mut truth = 0;
        let mut before: Vec<(String, u64, Dist)> = Vec::new();
        for step in steps {
            match step {
                Step::Hits(key, hits) => match kernel.iter_mut().find(|(other, _)| *other == key) {
                    Some((_, sum)) => *sum += hits,
                    None => kernel.push((key, hits)),
                },
                Step::Read | Step::Anew => {
                    truth += kernel.iter().map(|(_, hits)| hits).sum::<u64>();
                    totals.add(interval(&kernel), label);
                    kernel.clear();
                    if let Step::Anew = step {
                        totals.forget_keys();
                    }
                }
                Step::Lost => {
                    totals.forget_keys();
                    kernel.clear();
                }
            }
            let now = numbers(&totals);
            prop_assert!(now.len() <= limit as usize + 1);
            prop_assert_eq!(now.iter().map(|(_, hits, _)| hits).sum::<u64>(), totals.events());
            prop_assert_eq!(totals.events(), truth);
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

/// An interval that ends at this second, with keys, their begins and hits, and other hits.
fn at(second: u64, hits: &[(i128, u64, u64)], others: &[(Other, u64)]) -> Interval {
    let plain: Vec<_> = hits.iter().map(|&(key, _, hits)| (key, hits)).collect();
    let mut interval = interval(&plain);
    for (row, (_, begin, _)) in interval.delta.rows.iter_mut().zip(hits) {
        row.begin = Some(Begin {
            at: Moment {
                boottime_ns: *begin,
                realtime_ns: *begin,
            },
            ..Begin::default()
        });
    }
    for (other, hits) in others {
        let mut row = self::interval(&[(0, *hits)]).delta.rows.remove(0);
        row.keys = Keys::from_vec(vec![Key::Other(*other)]);
        interval.delta.rows.push(row);
    }
    interval.to = Time {
        realtime_ns: second * 1_000_000_000,
        monotonic_ns: second * 1_000_000_000,
        ..Time::default()
    };
    interval
}

/// The label set `other` includes hits that the kernel folds, without those it takes out.
#[test]
fn keys_without_a_row_in_the_kernel() {
    let mut totals = Totals::new(1);
    assert_eq!(totals.taken_out(), [None, None]);
    totals.add(at(1, &[(1, 0, 5), (2, 0, 4)], &[(Other::Folded, 10)]), label);
    assert_eq!(hits(&totals), owned(&[("other", 14), ("1", 5)]));
    // One key is known to be folded.
    assert_eq!(totals.folded(), (14, 1));
    totals.add(at(2, &[(1, 0, 1)], &[(Other::Expired, 2), (Other::Recycled, 3)]), label);
    assert_eq!(hits(&totals), owned(&[("other", 14), ("1", 6)]));
    assert_eq!(totals.taken_out(), [Some(2), Some(3)]);
}

#[test]
fn idle_label_sets_are_removed() {
    let mut totals = Totals::new(2);
    totals.remove_idle(Some("60s".parse().unwrap()), true);
    totals.is_pushed = true;
    let all = |totals: &Totals| {
        let sets: u64 = totals.sets().map(|set| set.row.hits).sum();
        sets + totals.taken_out().into_iter().flatten().sum::<u64>()
    };
    totals.add(at(1, &[(1, 0, 5), (2, 0, 4), (3, 0, 3)], &[]), label);
    assert_eq!(hits(&totals), owned(&[("other", 3), ("1", 5), ("2", 4)]));
    totals.take_fresh(&Time::default());
    totals.add(at(60, &[(2, 0, 1)], &[]), label);
    assert_eq!(totals.folded(), (3, 1));
    // Key 1 and the folded one are idle for a minute. Another key takes the place of the first.
    totals.add(at(61, &[(4, 61, 7)], &[]), label);
    assert_eq!(hits(&totals), owned(&[("other", 10), ("2", 5)]));
    assert_eq!((totals.folded(), totals.taken_out()), ((10, 1), [Some(5), None]));
    totals.add(at(62, &[(5, 62, 2)], &[]), label);
    assert_eq!(hits(&totals), owned(&[("other", 10), ("5", 2), ("2", 5)]));
    // The key comes again, but all label sets are taken.
    totals.add(at(63, &[(1, 63, 1)], &[]), label);
    assert_eq!(hits(&totals), owned(&[("other", 11), ("5", 2), ("2", 5)]));
    assert_eq!(all(&totals), 12 + 1 + 7 + 2 + 1);
    assert!(totals.has(&[Key::Text(Text::shown("5"))]) && !totals.has(&[Key::Text(Text::shown("1"))]));
    // Counts that were not pushed yet keep their label set.
    totals.add(at(200, &[], &[]), label);
    assert_eq!(hits(&totals).len(), 3);
    let fresh = totals.take_fresh(&Time::default()).unwrap();
    assert_eq!(fresh.delta.rows.iter().map(|row| row.hits).sum::<u64>(), 11);
    totals.add(at(201, &[], &[]), label);
    assert_eq!(hits(&totals), owned(&[("other", 11)]));
    assert_eq!(all(&totals), 23);
    totals.is_pushed = false;
    totals.add(at(300, &[(7, 300, 1)], &[]), label);
    totals.add(at(360, &[], &[]), label);
    assert_eq!(hits(&totals), owned(&[("other", 11)]));
}

/// A row that the kernel has taken out begins again, with another created timestamp.
#[test]
fn a_key_that_comes_again_begins_with_zero() {
    let first = |totals: &Totals| {
        let set = totals.sets().find(|set| set.labels == ["1"]).unwrap();
        (set.row.hits, set.row.begin.map(|begin| begin.at.boottime_ns))
    };
    for (has_begins, expected) in [(true, (2, Some(90))), (false, (7, Some(10)))] {
        let mut totals = Totals::new(2);
        totals.remove_idle(Some("60s".parse().unwrap()), has_begins);
        totals.add(at(1, &[(1, 10, 5)], &[]), label);
        totals.add(at(90, &[(1, 90, 2)], &[]), label);
        assert_eq!(first(&totals), expected);
        assert_eq!(totals.taken_out()[0], Some(7 - expected.0));
        // The same row goes on; the clock is corrected.
        let mut same = at(91, &[(1, 90, 1)], &[]);
        if let Some(begin) = &mut same.delta.rows[0].begin {
            begin.at.realtime_ns += 1;
        }
        totals.add(same, label);
        assert_eq!(first(&totals), (expected.0 + 1, expected.1));
        // Triggers that come anew go on.
        totals.forget_keys();
        totals.add(at(92, &[(1, 92, 1)], &[]), label);
        assert_eq!(first(&totals), (expected.0 + 2, expected.1));
        // So do rows of a histogram that was cleared. Later, its own may be taken out.
        let cleared = |second, begin| {
            let mut interval = at(second, &[(1, begin, 1)], &[]);
            for row in &mut interval.delta.rows {
                row.begin = row.begin.map(|begin| Begin {
                    histogram_ns: 93,
                    ..begin
                });
            }
            interval
        };
        totals.add(cleared(94, 93), label);
        assert_eq!(first(&totals), (expected.0 + 3, expected.1));
        totals.add(cleared(96, 95), label);
        let expected = if has_begins {
            (1, Some(95))
        } else {
            (expected.0 + 4, expected.1)
        };
        assert_eq!(first(&totals), expected);
    }
}

/// Its idle label set was removed while the kernel still had the row.
#[test]
fn a_label_set_that_comes_again_begins_later() {
    let mut totals = Totals::new(2);
    totals.remove_idle(Some("60s".parse().unwrap()), true);
    let first = |totals: &Totals| {
        let set = totals.sets().find(|set| set.labels == ["1"]).unwrap();
        (set.row.hits, set.row.begin.map(|begin| begin.at.realtime_ns))
    };
    let second = 1_000_000_000;
    totals.add(at(2, &[(1, second, 5)], &[]), label);
    assert_eq!(first(&totals), (5, Some(second)));
    totals.add(at(63, &[], &[]), label);
    assert_eq!(totals.sets().count(), 0);
    totals.add(at(64, &[(1, second, 2)], &[]), label);
    assert_eq!(first(&totals), (2, Some(63 * second)));
    totals.add(at(65, &[(1, second, 1)], &[]), label);
    assert_eq!(first(&totals), (3, Some(63 * second)));
    assert_eq!(totals.taken_out()[0], Some(5));
}
