// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::measure::cpu_ms;
use crate::table::Begin;
use crate::table::Counts;
use crate::table::Moment;
use crate::table::Text;
use crate::table::Worst;

fn column(name: &str, fold: Fold) -> Column {
    Column {
        name: name.to_owned(),
        fold,
        ..Column::default()
    }
}

/// Two keys, and a value of each kind.
fn table(rows: Vec<Row>) -> Table {
    Table {
        keys: vec![column("pid", Fold::Sum), column("range", Fold::Sum)],
        values: vec![
            column("sum", Fold::Sum),
            column("min", Fold::Min),
            column("max", Fold::Max),
            column("dist", Fold::Sum),
        ],
        rows,
        ..Table::default()
    }
}

/// Rows and losses, independent of the order.
type Contents = (BTreeMap<Vec<Key>, (u64, Vec<Value>, Option<Worst>)>, Losses);

fn contents(table: &Table) -> Contents {
    let row = |row: &Row| (row.keys.to_vec(), (row.hits, row.values.clone(), row.worst.clone()));
    let rows: BTreeMap<_, _> = table.rows.iter().map(row).collect();
    assert_eq!(rows.len(), table.rows.len(), "two rows have the same keys");
    (rows, table.losses.clone())
}

fn any_row() -> impl Strategy<Value = Row> {
    let values = prop::collection::vec(-100..1_000_000i128, 1..5);
    let saved = prop::option::of(0..3i128);
    (0..4i128, 0..3u32, values, saved).prop_map(|(pid, power, values, saved)| {
        let mut dist = Dist::new(3);
        values.iter().for_each(|&value| dist.record(value, 1));
        let (min, max) = (dist.min.unwrap_or(0), dist.max.unwrap_or(0));
        let first = (1 << power >> 1) + i128::from(power > 0);
        Row {
            keys: vec![
                Key::Number(pid),
                Key::Range {
                    first,
                    last: 1 << power,
                },
            ]
            .into(),
            hits: dist.count,
            values: vec![
                Value::Number(dist.sum.unwrap_or(0)),
                Value::Number(min),
                Value::Number(max),
                Value::Dist(dist),
            ],
            worst: saved.map(|saved| Worst {
                value: max,
                saved: [("next_pid".into(), Key::Number(saved))].into(),
            }),
            begin: None,
            last_ns: None,
        }
    })
}

fn any_table() -> impl Strategy<Value = Table> {
    let losses = (0..9u64, prop::option::of(0..9u64));
    (prop::collection::vec(any_row(), 0..20), losses).prop_map(|(rows, (dropped, missed))| {
        let mut sum = table(Vec::new());
        for row in rows {
            sum.merge(table(vec![row]));
        }
        sum.losses = Losses {
            dropped,
            missed,
            ..Losses::default()
        };
        sum
    })
}

fn merged(a: &Table, b: &Table) -> Table {
    let mut sum = a.clone();
    sum.merge(b.clone());
    sum
}

/// Hits, sum, and counts of buckets.
fn counts(row: &Row) -> (u64, Option<Value>, Vec<super::super::Bucket>) {
    let buckets = match row.values.get(3) {
        Some(Value::Dist(dist)) => dist.buckets().collect(),
        _ => Vec::new(),
    };
    (row.hits, row.values.first().cloned(), buckets)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merge_is_commutative(a in any_table(), b in any_table()) {
        prop_assert_eq!(contents(&merged(&a, &b)), contents(&merged(&b, &a)));
    }

    #[test]
    fn merge_is_associative(a in any_table(), b in any_table(), c in any_table()) {
        prop_assert_eq!(contents(&merged(&merged(&a, &b), &c)), contents(&merged(&a, &merged(&b, &c))));
    }

    #[test]
    fn since_takes_a_merge_back(a in any_table(), b in any_table()) {
        let delta = merged(&a, &b).since(a);
        let rows = |table: &Table| -> BTreeMap<_, _> {
            table.rows.iter().map(|row| (row.keys.clone(), format!("{:?}", counts(row)))).collect()
        };
        prop_assert_eq!(rows(&delta), rows(&b));
        prop_assert_eq!(delta.losses.dropped, b.losses.dropped);
        // Extremes that are given must be true.
        let truth: BTreeMap<_, _> = b.rows.iter().map(|row| (&row.keys, row)).collect();
        for row in &delta.rows {
            for n in [1, 2] {
                prop_assert!(row.values[n] == Value::Unknown || row.values[n] == truth[&row.keys].values[n]);
            }
            prop_assert!(row.worst.is_none() || row.worst == truth[&row.keys].worst);
        }
    }

    /// In an interval, rows lack what `onmax()` has stored before it, and perhaps their maximum.
    #[test]
    fn what_was_stored_is_the_largest_value(
        rows in prop::collection::vec((any_row(), any::<bool>(), any::<bool>()), 1..9),
    ) {
        let (mut sum, mut truth) = (table(Vec::new()), table(Vec::new()));
        for (mut row, is_new, is_known) in rows {
            truth.merge(table(vec![row.clone()]));
            row.worst.take_if(|_| !is_new);
            if let (Some(Value::Dist(dist)), false) = (row.values.get_mut(3), is_known) {
                dist.max = None;
            }
            sum.merge(table(vec![row]));
        }
        for (sum, truth) in [(&sum, &truth), (&sum.without_key(0), &truth.without_key(0))] {
            let most: BTreeMap<_, _> = truth.rows.iter().map(|row| (&row.keys, row.first_dist().unwrap().1.max)).collect();
            for row in &sum.rows {
                prop_assert!(row.worst.as_ref().is_none_or(|worst| Some(worst.value) == most[&row.keys]));
            }
            let most = truth.total().first_dist().unwrap().1.max;
            prop_assert!(sum.total().worst.is_none_or(|worst| Some(worst.value) == most));
        }
    }

    #[test]
    fn total_of_a_sum_is_the_sum_of_totals(a in any_table(), b in any_table()) {
        let (mut total, other) = (a.total(), b.total());
        match (a.rows.is_empty(), b.rows.is_empty()) {
            (_, true) => (),
            (true, false) => total = other,
            (false, false) => total.merge(&other, &a.values),
        }
        prop_assert_eq!(merged(&a, &b).total(), total);
    }

    #[test]
    fn total_needs_no_keys(a in any_table(), key in 0..3usize) {
        let fewer = a.without_key(key);
        contents(&fewer);
        prop_assert_eq!(fewer.total(), a.total());
    }

    #[test]
    fn a_folded_range_has_all_hits(a in any_table()) {
        let folded = a.fold_range(1, column("lat", Fold::Sum), Some(0), |_| ());
        contents(&folded);
        prop_assert_eq!(folded.total().hits, a.total().hits);
        prop_assert_eq!(folded.values.len(), 4);
        if let Some(Value::Dist(dist)) = folded.total().values.get(3) {
            prop_assert_eq!((dist.count, dist.in_buckets()), (a.total().hits, a.total().hits));
            prop_assert_eq!(dist.sum.map(Value::Number), a.total().values.first().cloned());
        }
    }
}

#[test]
fn values_that_follow_their_hit() {
    let row = |values: &[i128]| {
        let mut dist = Dist::new(3);
        values.iter().for_each(|&value| dist.record(value, 1));
        let sum = Value::Number(dist.sum.unwrap_or(0));
        Row {
            keys: vec![Key::Number(1), Key::Number(2)].into(),
            hits: 2,
            values: vec![sum, Value::Unknown, Value::Unknown, Value::Dist(dist)],
            worst: None,
            begin: None,
            last_ns: None,
        }
    };
    // The first reading happens during the second hit.
    let (begun, done) = (table(vec![row(&[5])]), table(vec![row(&[5, 9])]));
    let delta = done.since(begun.clone());
    let [added] = delta.rows.as_slice() else {
        panic!("{delta:?}")
    };
    assert_eq!((added.hits, &added.values[0]), (0, &Value::Number(9)));
    let total = merged(&begun, &delta);
    assert_eq!(counts(&total.rows[0]), counts(&done.rows[0]));
    assert!(done.since(done.clone()).rows.is_empty());
}

#[test]
fn sums_wait_for_their_values() {
    let row = |hits, count: u64, sum| {
        let mut dist = Dist::new(3);
        dist.record(5, count);
        dist.sum = Some(sum);
        let values = vec![Value::Number(0), Value::Unknown, Value::Unknown, Value::Dist(dist)];
        Row {
            keys: vec![Key::Number(1), Key::Number(2)].into(),
            hits,
            values,
            worst: None,
            begin: None,
            last_ns: None,
        }
    };
    let dist = |table: &Table| match &table.rows[0].values[3] {
        Value::Dist(dist) => (dist.count, dist.sum),
        other => panic!("{other:?}"),
    };
    // The second reading happens during the second hit.
    let readings = [row(1, 1, 5), row(2, 1, 10), row(2, 2, 10)].map(|row| table(vec![row]));
    let [first, mut second, mut third] = readings;
    let mut delta = second.since(first);
    second.hold_back(&mut delta);
    assert_eq!((dist(&delta), dist(&second)), ((0, Some(0)), (1, Some(5))));
    let mut delta = third.since(second);
    third.hold_back(&mut delta);
    assert_eq!((dist(&delta), dist(&third)), ((1, Some(5)), (2, Some(10))));
}

#[test]
fn ranges_of_log2() {
    let dist = |first, last| ranged(&Key::Range { first, last }, 5);
    assert_eq!(dist(65, 128).positive, Counts::from([(6, 5)]));
    assert_eq!(dist((1 << 63) + 1, u64::MAX.into()).positive, Counts::from([(63, 5)]));
    let zero = dist(0, 1);
    assert_eq!(
        (&zero.positive, zero.zero, zero.one_has_zero),
        (&Counts::from([(-1, 5)]), 0, true)
    );
    assert_eq!((zero.sum, zero.min, zero.max), (None, None, None));
    // Range of .buckets=100.
    let linear = dist(100, 199);
    assert_eq!((linear.count, linear.in_buckets()), (5, 0));
}

#[test]
fn tables_of_other_columns_do_no_harm() {
    let mut table = table(Vec::new());
    let strange = Row {
        keys: [Key::Text(Text::from("x"))].into(),
        hits: 3,
        values: vec![Value::Dist(Dist::new(1))],
        worst: None,
        begin: None,
        last_ns: None,
    };
    let other = Table {
        rows: vec![strange.clone(), strange],
        ..Table::default()
    };
    table.merge(other.clone());
    table.merge(other.clone());
    table.since(other.clone());
    other.since(table.clone());
    table.without_key(7);
    assert_eq!(
        table
            .fold_range(0, column("x", Fold::Sum), Some(9), |_| ())
            .total()
            .hits,
        12
    );
}

/// Prints milliseconds of CPU time. Run with `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed_of_many_rows() {
    let row = |n: u32| {
        let mut dist = Dist::new(3);
        (0..8).for_each(|k| dist.record(i128::from(n % 97 + 1) << k, 1));
        Row {
            keys: vec![
                Key::Number(n.into()),
                Key::Text(Text::from(format!("task-{n}").as_str())),
            ]
            .into(),
            hits: 8,
            values: vec![Value::Dist(dist)],
            worst: None,
            begin: None,
            last_ns: None,
        }
    };
    let a = Table {
        keys: vec![column("pid", Fold::Sum), column("comm", Fold::Sum)],
        values: vec![column("lat", Fold::Sum)],
        rows: (0..131_072).map(row).collect(),
        ..Table::default()
    };
    let reversed = Table {
        rows: a.rows.iter().rev().cloned().collect(),
        ..a.clone()
    };
    let mut sum = a.clone();
    let timed = |what: &str, work: &mut dyn FnMut() -> Table| {
        let start = cpu_ms();
        let table = work();
        println!("{what}: {:.1} ms, {} rows", cpu_ms() - start, table.rows.len());
    };
    sum.merge(a.clone());
    let mut before = Some(a.clone());
    timed("since, all rows have new hits", &mut || {
        sum.since(before.take().unwrap_or_default())
    });
    before = Some(a.clone());
    timed("since, none has", &mut || a.since(before.take().unwrap_or_default()));
    let mut before = Some(reversed);
    timed("since, in another order", &mut || {
        a.since(before.take().unwrap_or_default())
    });
    let mut other = Some(a);
    timed("without_key", &mut || sum.without_key(0));
    timed("merge", &mut || {
        sum.merge(other.take().unwrap_or_default());
        Table::default()
    });
}

/// A table with these hits of each key; each key has its own value.
fn hits(hits: &[(i128, u64)]) -> Table {
    let row = |&(key, hits): &(i128, u64)| {
        let mut dist = Dist::new(3);
        dist.record(key + 1, hits);
        Row {
            keys: vec![Key::Number(key)].into(),
            hits,
            values: vec![Value::Dist(dist)],
            ..Row::default()
        }
    };
    Table {
        keys: vec![column("key", Fold::Sum)],
        values: vec![column("value", Fold::Sum)],
        rows: hits.iter().map(row).collect(),
        losses: Losses {
            dropped: hits.len() as u64,
            ..Losses::default()
        },
        ..Table::default()
    }
}

#[test]
fn somebody_clears_them_and_more_hits_come_than_there_were() {
    let is_other = |first: Table, second: Table| first.exceeds(&second, |column| column.name == "a-b");
    let first = || hits(&[(1, 5), (2, 4)]);
    assert!(!is_other(first(), first()));
    assert!(!is_other(first(), hits(&[(1, 5), (2, 5)])));
    assert!(is_other(first(), hits(&[(1, 2)])));
    assert!(is_other(first(), hits(&[(1, 4), (2, 100)])));
    assert!(is_other(first(), hits(&[(3, 100), (2, 100)])));
    // As many hits, but of other values.
    let mut other = first();
    let mut dist = Dist::new(3);
    dist.record(100, 5);
    other.rows[0].values = vec![Value::Dist(dist)];
    assert!(is_other(first(), other));
    let mut other = first();
    other.losses.dropped = 1;
    assert!(is_other(first(), other));
    // Only sums of values below zero fall.
    let with_sum = |sum, name: &str| {
        let mut table = hits(&[(1, 5)]);
        table.values[0].name = name.to_owned();
        table.rows[0].values = vec![Value::Number(sum)];
        table
    };
    assert!(is_other(with_sum(7, "len"), with_sum(6, "len")));
    assert!(!is_other(with_sum(7, "a-b"), with_sum(6, "a-b")));
}

#[test]
fn wrapped_sums_are_equal() {
    let with_sum = |sum: i128| {
        let mut table = hits(&[(1, 5)]);
        let Value::Dist(dist) = &mut table.rows[0].values[0] else {
            panic!("{table:?}")
        };
        dist.sum = Some(sum);
        table
    };
    assert_eq!(with_sum(7 + (1 << 64)).difference(&with_sum(7)), None);
    assert!(with_sum(8).difference(&with_sum(7)).is_some());
    let mut other = with_sum(7);
    if let Value::Dist(dist) = &mut other.rows[0].values[0] {
        dist.max = Some(3);
    }
    assert!(with_sum(7).difference(&other).is_some());
}

/// A table of one key and a sum. Rows have a key, the time of their begin, and hits; their sums are
/// ten times the hits.
fn forgetful(rows: &[(i128, u64, u64)], expired: u64) -> Table {
    let row = |keys: Key, hits: u64, begin: Option<u64>| Row {
        keys: Keys::from_vec(vec![keys]),
        hits,
        values: vec![Value::Number(i128::from(hits) * 10)],
        begin: begin.map(|boottime_ns| Begin {
            at: Moment {
                boottime_ns,
                ..Moment::default()
            },
            histogram_ns: 10,
        }),
        ..Row::default()
    };
    let own = rows
        .iter()
        .map(|(key, begin, hits)| row(Key::Number(*key), *hits, Some(*begin)));
    let expired = (expired > 0).then(|| row(Key::Other(Other::Expired), expired, None));
    Table {
        keys: vec![column("pid", Fold::Sum)],
        values: vec![column("sum", Fold::Sum)],
        rows: own.chain(expired).collect(),
        ..Table::default()
    }
}

/// Rows by what their key shows, with their hits; checks their sums.
fn shown(table: &Table) -> Vec<(String, u64)> {
    let shown = |row: &Row| {
        assert_eq!(row.values[0], Value::Number(i128::from(row.hits) * 10));
        (row.keys[0].to_string(), row.hits)
    };
    table.rows.iter().map(shown).collect()
}

fn owned(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(key, hits)| ((*key).to_owned(), *hits)).collect()
}

/// Hits before the earlier reading do not count again when their row is taken out.
#[test]
fn rows_that_were_taken_out_in_between() {
    let before = forgetful(&[(1, 100, 5), (2, 100, 7), (3, 100, 4)], 11);
    // Key 1 had two hits more, and was taken out; so was key 2, which came again; key 3 has a hit.
    let after = forgetful(&[(2, 200, 1), (3, 100, 5)], 11 + 7 + 7);
    let delta = after.since(before.clone());
    assert_eq!(shown(&delta), owned(&[("2", 1), ("3", 1), ("expired", 2)]));
    assert!(!before.exceeds(&after, |_| false));
    // Nothing more.
    let same = forgetful(&[(3, 100, 4)], 11 + 5 + 7);
    assert_eq!(shown(&same.since(before.clone())), owned(&[]));
    // A key that came again has more hits than before.
    let more = forgetful(&[(1, 300, 9), (2, 100, 7), (3, 100, 4)], 11 + 5);
    assert_eq!(shown(&more.since(before.clone())), owned(&[("1", 9)]));
    // Somebody cleared the histogram: it has fewer hits in all.
    assert!(before.exceeds(&forgetful(&[(2, 200, 1)], 3), |_| false));
    assert!(before.exceeds(&forgetful(&[(2, 200, 1)], 0), |_| false));
}

#[test]
fn sums_of_intervals_have_what_was_taken_out() {
    let mut sum = forgetful(&[(1, 100, 5), (2, 100, 7)], 0);
    for next in [forgetful(&[(2, 100, 1)], 2), forgetful(&[(1, 300, 4)], 0)] {
        sum.take_out_reborn(&next);
        sum.append(next);
    }
    let mut rows = shown(&sum);
    rows.sort();
    assert_eq!(rows, owned(&[("1", 4), ("2", 8), ("expired", 7)]));
    // In which row the kernel has them is not known.
    assert_eq!(sum.difference(&forgetful(&[(1, 300, 4)], 15)), None);
    let difference = sum.difference(&forgetful(&[(1, 300, 4)], 16)).unwrap();
    assert!(difference.contains("19 hits, the histogram has 20"), "{difference}");
}

/// For a moment, the kernel shows a row that it takes out beside the one that its key has begun.
#[test]
fn rows_that_are_shown_beside_their_successors() {
    for rows in [
        [(1, 300, 2), (1, 100, 5), (2, 100, 1)],
        [(2, 100, 1), (1, 100, 5), (1, 300, 2)],
    ] {
        let mut table = forgetful(&rows, 4);
        table.take_out_former();
        let mut rows = shown(&table);
        rows.sort();
        assert_eq!(rows, owned(&[("1", 2), ("2", 1), ("expired", 9)]));
        let begins = table.rows.iter().find(|row| row.hits == 2).and_then(|row| row.begin);
        assert_eq!(begins.map(|begin| begin.at.boottime_ns), Some(300));
    }
}

/// Hits before a clear stay in their rows.
#[test]
fn rows_of_a_cleared_histogram_are_not_taken_out() {
    let mut sum = forgetful(&[(1, 100, 5)], 0);
    let mut next = forgetful(&[(1, 300, 4)], 0);
    for row in &mut next.rows {
        row.begin = row.begin.map(|begin| Begin {
            histogram_ns: 200,
            ..begin
        });
    }
    sum.take_out_reborn(&next);
    sum.append(next);
    assert_eq!(shown(&sum), owned(&[("1", 9)]));
}

#[test]
fn people_see_one_row_of_others() {
    let mut table = forgetful(&[(1, 100, 5)], 0);
    assert!(matches!(table.with_one_other(), Cow::Borrowed(_)));
    table.merge(forgetful(&[], 3));
    let mut folded = forgetful(&[], 4);
    folded.rows[0].keys[0] = Key::Other(Other::Folded);
    table.merge(folded);
    assert_eq!(shown(&table.with_one_other()), owned(&[("1", 5), ("other", 7)]));
    assert_eq!((table.entries(), table.hits()), (1, 12));
}

/// A reader that adds up intervals forgets, too, or it would need more and more memory.
#[test]
fn rows_that_the_kernel_does_not_have_any_more() {
    let rows = |forgets, now_ns| {
        let mut table = forgetful(&[(1, 100, 5), (2, 100, 7), (3, 100, 1), (4, 100, 2)], 1);
        for (row, last_ns) in table.rows.iter_mut().zip([900, 500, 700, 800]) {
            row.last_ns = Some(last_ns);
        }
        table.take_out_old(forgets, now_ns, 1);
        assert_eq!(table.hits(), 16);
        let mut rows = shown(&table);
        rows.sort();
        rows
    };
    let idle = |idle_ns| Forgets {
        idle_ns: Some(idle_ns),
        taken: false,
    };
    let all = [("1", 5), ("2", 7), ("3", 1), ("4", 2), ("expired", 1)];
    assert_eq!(rows(idle(250), 1000), owned(&all));
    assert_eq!(
        rows(idle(249), 1000),
        owned(&[("1", 5), ("3", 1), ("4", 2), ("expired", 8)])
    );
    assert_eq!(rows(idle(1), 1000), owned(&[("expired", 16)]));
    // Without a time: the half that was idle longest, once rows are more than twice the size.
    assert_eq!(
        rows(Forgets::default(), 1000),
        owned(&[("1", 5), ("4", 2), ("expired", 9)])
    );
    let taken = Forgets {
        idle_ns: Some(3600),
        taken: true,
    };
    assert_eq!(rows(taken, 1000), owned(&[("expired", 16)]));
}
