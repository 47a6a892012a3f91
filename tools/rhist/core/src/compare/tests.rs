// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::table::Dist;
use crate::table::Text;
use crate::table::Time;

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

fn column(name: &str, unit: Unit) -> Column {
    Column {
        name: name.to_owned(),
        unit,
        fold: Fold::Sum,
    }
}

/// One second from `start` with waits and bytes of each command: name, number of events, typical
/// wait in nanoseconds.
fn interval(random: &mut Random, start: u64, comms: &[(&str, u64, f64)]) -> Interval {
    let time = |seconds| Time {
        monotonic_ns: seconds * 1_000_000_000,
        ..Time::default()
    };
    let rows = comms.iter().map(|&(comm, count, middle)| {
        let mut dist = Dist::new(5);
        for _ in 0..count {
            dist.record((middle * (4.0 * (random.next() - 0.5)).exp()) as i128, 1);
        }
        Row {
            keys: [Key::Text(Text::from(comm))].into(),
            hits: count,
            values: vec![Value::Dist(dist), Value::Number(i128::from(count) * 4096)],
            worst: None,
            begin: None,
            last_ns: None,
        }
    });
    Interval {
        from: time(start),
        to: time(start + 1),
        delta: Table {
            keys: vec![column("comm", Unit::Plain)],
            values: vec![column("wait", Unit::Nanoseconds), column("bytes", Unit::Bytes)],
            rows: rows.collect(),
            ..Table::default()
        },
        ..Interval::default()
    }
}

/// Recording of `seconds` intervals: the waits of `sed` are around `middle`, the ones of `awk` stay
/// the same.
fn sample(random: &mut Random, seconds: u64, middle: f64) -> Sample {
    let mut sample = Sample::default();
    for start in 0..seconds {
        let count = 150 + (random.next() * 50.0) as u64;
        sample.add(interval(random, start, &[("sed", count, middle), ("awk", 25, 2_000.0)]));
    }
    sample
}

fn question() -> Question {
    Question {
        name: "runqlat".to_owned(),
        unit: Unit::Nanoseconds,
        ..Question::default()
    }
}

#[test]
fn what_differs_is_found() {
    let mut random = Random(88_172_645_463_325_252);
    let samples = [sample(&mut random, 20, 50_000.0), sample(&mut random, 30, 75_000.0)];
    let differences = compare(&samples[0], &samples[1]);
    let name = |difference: &Difference| {
        let key = difference
            .keys
            .as_ref()
            .map_or("all".to_owned(), |keys| keys[0].to_string());
        let column = difference.measure.column.as_deref().unwrap_or("hits");
        format!("{key} {} {column}", difference.measure.quantile.unwrap_or("rate"))
    };
    let names: Vec<_> = differences.iter().map(name).collect();
    // 25 values are too few for p99.
    let all = ["rate hits", "p50 wait", "p90 wait", "p99 wait", "rate bytes"];
    let expected = all
        .map(|name| format!("all {name}"))
        .into_iter()
        .chain(all.map(|name| format!("sed {name}")));
    let awk = ["rate hits", "p50 wait", "p90 wait", "rate bytes"].map(|name| format!("awk {name}"));
    assert_eq!(names, expected.chain(awk).collect::<Vec<_>>());
    for difference in &differences {
        let name = name(difference);
        let changed = name.contains("wait") && !name.starts_with("awk");
        assert_eq!(difference.p < 0.001, changed, "{name} {difference:?}");
        assert_eq!(difference.intervals, [20, 30]);
        let ratio = difference.ratio.unwrap();
        if changed {
            assert!(
                ratio.low < 1.5 && 1.4 < ratio.high && ratio.low > 1.1,
                "{name} {ratio:?}"
            );
            assert!(difference.delta > 0.7);
        }
    }
}

/// At most one in twenty pairs of recordings of the same load shows any difference.
#[test]
fn what_does_not_differ_is_rarely_found() {
    let mut random = Random(42);
    let mut found = 0;
    for _ in 0..40 {
        let samples = [sample(&mut random, 8, 50_000.0), sample(&mut random, 8, 50_000.0)];
        let differences = compare(&samples[0], &samples[1]);
        let of_keys = differences.iter().filter(|difference| difference.keys.is_some());
        found += u32::from(of_keys.map(|difference| difference.p).fold(1.0, f64::min) < 0.05);
    }
    assert!(found <= 4, "{found}");
}

#[test]
fn what_cannot_be_compared_is_told() {
    let mut random = Random(1);
    let good = sample(&mut random, 6, 50_000.0);
    let short = sample(&mut random, 4, 50_000.0);
    let mut others = [good.clone(), good.clone()];
    others[0].total.values[0].unit = Unit::Microseconds;
    others[1].total.keys[0].name = "cpu".to_owned();
    let offcputime = Question {
        name: "offcputime".to_owned(),
        ..question()
    };
    assert_eq!(check((&question(), &good), (&question(), &good)), Ok(()));
    let errors = [
        check((&question(), &good), (&offcputime, &good)),
        check((&question(), &good), (&question(), &short)),
        check((&question(), &good), (&question(), &others[0])),
        check((&question(), &good), (&question(), &others[1])),
    ];
    let errors: Vec<_> = errors.into_iter().map(Result::unwrap_err).collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn what_misleads_is_told() {
    let mut random = Random(1);
    let mut slow = Sample::default();
    for start in 0..40 {
        slow.add(interval(
            &mut random,
            start,
            &[("sed", 200, 50_000.0 * 1.1f64.powi(start as i32))],
        ));
    }
    // Short last interval, as after Ctrl-C.
    let mut last = interval(&mut random, 40, &[("sed", 1, 50_000.0)]);
    last.to.monotonic_ns -= 900_000_000;
    slow.add(last);
    let mut long = Sample::default();
    for start in 0..10 {
        let mut interval = interval(&mut random, start * 5, &[("sed", 200, 50_000.0)]);
        interval.to.monotonic_ns += 4_000_000_000;
        long.add(interval);
    }
    let differences = compare(&slow, &long);
    assert_eq!(differences[0].intervals, [40, 10]);
    let question = Question::default();
    let notes = |a, b, differences: &[Difference]| super::notes((&question, a), (&question, b), differences);
    insta::assert_snapshot!(notes(&slow, &long, &differences).join("\n"));
    assert_eq!(notes(&long, &long, &compare(&long, &long)), Vec::<String>::new());
}

#[test]
fn only_one_has_exact_intervals() {
    let questions = [true, false].map(|has_exact_intervals| Question {
        has_exact_intervals,
        ..Question::default()
    });
    let sample = Sample::default();
    let notes = |a: usize, b: usize| notes((&questions[a], &sample), (&questions[b], &sample), &[]);
    assert!(notes(0, 0).is_empty() && notes(1, 1).is_empty());
    assert!(notes(0, 1)[0].starts_with("The kernel has cut the intervals of A. In B, they are differences"));
    assert!(notes(1, 0)[0].starts_with("The kernel has cut the intervals of B. In A, they are differences"));
}
