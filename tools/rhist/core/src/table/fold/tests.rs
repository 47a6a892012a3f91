// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::measure::cpu_ms;
use crate::table::Counts;
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
