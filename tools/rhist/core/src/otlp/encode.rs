// SPDX-License-Identifier: MIT OR Apache-2.0

//! Encodes an interval as metrics.

use std::collections::BTreeMap;

use super::attribute::string;
use super::model::Any;
use super::model::Attribute;
use super::model::Buckets;
use super::model::Digits;
use super::model::Double;
use super::model::Exemplar;
use super::model::ExponentialHistogram;
use super::model::Gauge;
use super::model::HistogramPoint;
use super::model::Metric;
use super::model::NumberPoint;
use super::model::Scope;
use super::model::Sum;
use super::model::Temporality;
use super::names;
use super::names::Names;
use super::names::Word;
use crate::names::Names as NumberNames;
use crate::question::Cost;
use crate::question::Interval;
use crate::question::Question;
use crate::recipe::NameKind;
use crate::table::BucketUnit;
use crate::table::Counts;
use crate::table::Dist;
use crate::table::Fold;
use crate::table::Key;
use crate::table::Row;
use crate::table::Value;

/// Limit of the span of buckets. Distributions of a kernel span at most 2049, at scale 5; a larger
/// span gets a coarser scale.
const MAX_SPAN: i64 = 4096;

/// Name of the scope that marks metrics as written by rhist.
pub const SCOPE: &str = "rhist";

/// Differences between metrics that are read back and metrics for others.
pub trait Form {
    /// Start of an interval, in nanoseconds of `CLOCK_REALTIME`.
    fn start_ns(&self, interval: &Interval) -> u64;

    /// Start of the counts of a row.
    fn row_start_ns(&self, interval: &Interval, _: &Row) -> u64 {
        self.start_ns(interval)
    }

    /// Meaning of the numbers.
    fn temporality(&self) -> Temporality;

    /// Whether to write sums that OTLP forbids: of values below zero, or without a bucket.
    fn has_all_sums(&self) -> bool;

    /// Attributes of metrics about the interval.
    fn about(&self, question: &Question) -> Vec<Attribute>;

    /// Adds the attributes of a key or a saved field.
    fn add(&self, attributes: &mut Vec<Attribute>, field: Field<'_>);
}

/// A key or a saved field.
pub struct Field<'a> {
    /// Its name in the histogram.
    pub column: &'a str,
    /// Kind of its numbers.
    pub kind: NameKind,
    /// Its value.
    pub key: &'a Key,
    /// Name of the number, which other machines may not know.
    pub name: Option<String>,
    /// Names of its attributes: for the value, and for the name of the value.
    pub attributes: [&'a str; 2],
}

/// Attributes of the machine, and of rhist on it.
pub fn machine(question: &Question) -> [(&'static str, Any); 6] {
    [
        ("service.name", string("rhist")),
        ("host.name", string(&question.host)),
        ("os.type", string("linux")),
        ("os.version", string(&question.kernel)),
        ("rhist.cpus", Any::Int(Digits(question.cpus.into()))),
        ("rhist.backend", string(question.backend.word())),
    ]
}

/// Scope of all metrics.
pub fn scope(attributes: Vec<Attribute>) -> Scope {
    Scope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        attributes,
    }
}

/// Encodes the metrics of an interval.
pub struct Encoder<'a> {
    question: &'a Question,
    names: &'a NumberNames,
    interval: &'a Interval,
    form: &'a dyn Form,
    keys: Vec<[String; 2]>,
    metrics: Names,
    start: Digits,
    end: Digits,
}

impl<'a> Encoder<'a> {
    /// Encoder for an interval of a question. `names` resolves its numbers.
    pub fn new(question: &'a Question, names: &'a NumberNames, interval: &'a Interval, form: &'a dyn Form) -> Self {
        Encoder {
            question,
            names,
            interval,
            form,
            keys: names::keys(&interval.delta.keys),
            metrics: Names::new(&question.name, &interval.delta.values),
            start: Digits(form.start_ns(interval).into()),
            end: Digits(interval.to.realtime_ns.into()),
        }
    }

    /// Metrics of some rows of the interval's table.
    pub fn rows(&self, rows: &[Row]) -> Vec<Metric> {
        let names = &self.metrics;
        let mut metrics = Vec::new();
        let hits = rows.iter().map(|row| NumberPoint {
            // Attached to the hits only if the row has no distribution.
            exemplars: match row.first_dist() {
                None => self.exemplars(row, BucketUnit::One),
                Some(_) => Vec::new(),
            },
            ..self.row_point(row, row.hits.into())
        });
        metrics.push(self.sum(
            names.hits.clone(),
            format!("{{{}}}", self.question.noun),
            hits.collect(),
            true,
        ));
        for (i, column) in self.interval.delta.values.iter().enumerate() {
            let mut numbers = Vec::new();
            let mut dists = Vec::new();
            let mut no_bucket = Vec::new();
            let mut unit = None;
            for row in rows {
                match row.values.get(i) {
                    Some(Value::Number(number)) => numbers.push(self.row_point(row, *number)),
                    Some(Value::Dist(dist)) => {
                        let unit = *unit.get_or_insert(dist.bucket_unit);
                        let (mut point, in_buckets) = self.histogram(dist, unit);
                        point.attributes = self.attributes(row);
                        point.start_time_unix_nano = self.row_start(row);
                        if row.first_dist().is_some_and(|(first, _)| first == i) {
                            point.exemplars = self.exemplars(row, unit);
                        }
                        dists.push(point);
                        if i128::from(dist.count) != in_buckets {
                            no_bucket.push(self.row_point(row, i128::from(dist.count) - in_buckets));
                        }
                    }
                    Some(Value::Unknown) | None => (),
                }
            }
            // All values of a column are of one kind.
            if dists.is_empty() && !numbers.is_empty() {
                let (name, unit) = (names.values[i].clone(), column.unit.word().to_owned());
                metrics.push(match column.fold {
                    // Monotonic or not by the type of the column, so that the kind of a series does
                    // not change with the numbers of one batch.
                    Fold::Sum => self.sum(name, unit, numbers, !self.question.is_signed(&column.name)),
                    Fold::Min | Fold::Max => gauge(name, unit, numbers),
                });
            }
            if !dists.is_empty() {
                metrics.push(Metric {
                    name: names.values[i].clone(),
                    description: self.question.summary.clone(),
                    unit: match unit.unwrap_or_default() {
                        BucketUnit::One => column.unit.word().to_owned(),
                        unit => unit.word().to_owned(),
                    },
                    exponential_histogram: Some(ExponentialHistogram {
                        data_points: dists,
                        aggregation_temporality: self.form.temporality() as u32,
                    }),
                    ..Metric::default()
                });
            }
            if !no_bucket.is_empty() {
                metrics.push(self.sum(names.no_bucket[i].clone(), "1".to_owned(), no_bucket, true));
            }
        }
        metrics
    }

    /// Metrics about the interval itself: times, losses, own cost.
    pub fn own(&self) -> Vec<Metric> {
        let Interval { from, to, .. } = self.interval;
        let about = self.form.about(self.question);
        let point = |number| vec![self.point(about.clone(), number)];
        let duration = i128::from(to.monotonic_ns) - i128::from(from.monotonic_ns);
        let mut metrics = vec![
            gauge(
                names::MONOTONIC.to_owned(),
                "ns".to_owned(),
                point(to.monotonic_ns.into()),
            ),
            gauge(names::DURATION.to_owned(), "ns".to_owned(), point(duration)),
        ];
        for (name, number) in self.counts() {
            if let Some(number) = number {
                metrics.push(self.sum(name.to_owned(), "1".to_owned(), point(number.into()), true));
            }
        }
        let Cost { event_ns, rejected_ns } = self.interval.cost;
        for (name, ns) in [(names::EVENT_COST, event_ns), (names::REJECTED_COST, rejected_ns)] {
            if let Some(ns) = ns.and_then(Double::from_f64) {
                let cost = NumberPoint {
                    as_int: None,
                    as_double: Some(ns),
                    ..self.point(about.clone(), 0)
                };
                metrics.push(gauge(name.to_owned(), "ns".to_owned(), vec![cost]));
            }
        }
        metrics
    }

    fn attributes(&self, row: &Row) -> Vec<Attribute> {
        self.some_attributes(row, |_| true)
    }

    /// Attributes of the keys of a row other than stacks.
    pub fn attributes_beside_stacks(&self, row: &Row) -> Vec<Attribute> {
        self.some_attributes(row, |key| !matches!(key, Key::Stack(_) | Key::Program(_)))
    }

    /// Attributes of the keys that `takes` returns true for.
    fn some_attributes(&self, row: &Row, takes: impl Fn(&Key) -> bool) -> Vec<Attribute> {
        let mut attributes = Vec::with_capacity(row.keys.len());
        let columns = self.keys.iter().zip(&self.interval.delta.keys);
        for ((names, column), key) in columns.zip(&row.keys).filter(|(_, key)| takes(key)) {
            self.add(&mut attributes, names.each_ref().map(String::as_str), &column.name, key);
        }
        attributes
    }

    /// Attributes of metrics about the interval.
    pub fn about(&self) -> Vec<Attribute> {
        self.form.about(self.question)
    }

    /// Events and losses of the interval, as attributes with the names of their metrics.
    pub fn own_attributes(&self) -> Vec<Attribute> {
        let known = self.counts().into_iter().filter_map(|(name, number)| {
            Some(Attribute {
                key: name.to_owned(),
                value: Any::Int(Digits(number?.into())),
            })
        });
        known.collect()
    }

    /// Events and losses of the interval, if they are known.
    fn counts(&self) -> [(&'static str, Option<u64>); 9] {
        let losses = &self.interval.delta.losses;
        [
            (names::EVENTS, Some(self.interval.events)),
            (names::REJECTED, self.interval.rejected),
            (names::DROPPED, Some(losses.dropped)),
            (names::DROPPED_STARTS, Some(losses.dropped_starts)),
            (names::NO_BUCKET, losses.no_bucket),
            (names::UNRESOLVED, losses.unresolved),
            (names::MISSED, losses.missed),
            (names::MISSED_HITS, losses.missed_hits),
            (names::EXPIRED_STARTS, losses.expired_starts),
        ]
    }

    /// Adds the attributes of a key or a saved field.
    fn add(&self, attributes: &mut Vec<Attribute>, names: [&str; 2], column: &str, key: &Key) {
        let kind = self.question.name_kind(column);
        let name = match key {
            Key::Number(number) => self.names.name(kind, column, *number),
            _ => None,
        };
        let field = Field {
            column,
            kind,
            key,
            name,
            attributes: names,
        };
        self.form.add(attributes, field);
    }

    fn point(&self, attributes: Vec<Attribute>, number: i128) -> NumberPoint {
        let (as_int, as_double) = int_or_double(number, BucketUnit::One);
        NumberPoint {
            attributes,
            start_time_unix_nano: self.start,
            time_unix_nano: self.end,
            as_int,
            as_double,
            exemplars: Vec::new(),
        }
    }

    /// A number of a row, with its attributes and its start.
    fn row_point(&self, row: &Row, number: i128) -> NumberPoint {
        NumberPoint {
            start_time_unix_nano: self.row_start(row),
            ..self.point(self.attributes(row), number)
        }
    }

    fn row_start(&self, row: &Row) -> Digits {
        Digits(self.form.row_start_ns(self.interval, row).into())
    }

    fn sum(&self, name: String, unit: String, data_points: Vec<NumberPoint>, is_monotonic: bool) -> Metric {
        Metric {
            name,
            unit,
            sum: Some(Sum {
                is_monotonic,
                data_points,
                aggregation_temporality: self.form.temporality() as u32,
            }),
            ..Metric::default()
        }
    }

    /// Exemplar with the largest value of a row. Its time is unknown within the run.
    fn exemplars(&self, row: &Row, unit: BucketUnit) -> Vec<Exemplar> {
        let exemplar = row.worst.as_ref().map(|worst| {
            let (as_int, as_double) = int_or_double(worst.value, unit);
            let mut saved = Vec::with_capacity(worst.saved.len());
            for (name, key) in &*worst.saved {
                self.add(&mut saved, [name, &names::second(name)], name, key);
            }
            Exemplar {
                filtered_attributes: saved,
                time_unix_nano: self.end,
                as_int,
                as_double,
            }
        });
        exemplar.into_iter().collect()
    }

    /// Point of a distribution without its attributes, and the number of values in its buckets.
    /// Leaves out buckets whose unit differs from the metric's.
    fn histogram(&self, dist: &Dist, unit: BucketUnit) -> (HistogramPoint, i128) {
        if dist.bucket_unit != unit {
            let bare = Dist {
                bucket_unit: unit,
                zero: 0,
                positive: Counts::default(),
                negative: Counts::default(),
                ..dist.clone()
            };
            return self.histogram(&bare, unit);
        }
        let double = |number| Double::new(number, names::decimals(unit));
        let shift = coarser(dist);
        let mut positive = at_scale(&dist.positive, shift);
        let negative = at_scale(&dist.negative, shift);
        let mut zero = i128::from(dist.zero);
        if dist.one_has_zero {
            // The bucket for all values up to 1 becomes the zero bucket, with a zero threshold of
            // 1.
            zero += positive.remove(&-1).unwrap_or(0);
        }
        let count = zero + positive.values().sum::<i128>() + negative.values().sum::<i128>();
        // OTLP forbids a sum if values are below zero, since it could fall. Values without a bucket
        // are not in the count, so they must not be in a sum either.
        let is_below_zero = |number: Option<i128>| number.is_some_and(|number| number < 0);
        let can_fall = !negative.is_empty() || is_below_zero(dist.min) || is_below_zero(dist.sum);
        let is_of_all = i128::from(dist.count) == count;
        let has_sum = self.form.has_all_sums() || is_of_all && !can_fall;
        let point = HistogramPoint {
            start_time_unix_nano: self.start,
            time_unix_nano: self.end,
            count: Digits(count),
            sum: dist.sum.filter(|_| has_sum).map(double),
            scale: i32::from(dist.scale.saturating_sub(shift)),
            zero_count: Digits(zero),
            positive: dense(&positive),
            negative: dense(&negative),
            min: dist.min.map(double),
            max: dist.max.map(double),
            zero_threshold: dist.one_has_zero.then(|| Double::new(1, 0)),
            ..HistogramPoint::default()
        };
        (point, count)
    }
}

fn gauge(name: String, unit: String, data_points: Vec<NumberPoint>) -> Metric {
    Metric {
        name,
        unit,
        gauge: Some(Gauge { data_points }),
        ..Metric::default()
    }
}

/// An integer, or a double if the unit differs or the number has more than 63 bits.
fn int_or_double(number: i128, unit: BucketUnit) -> (Option<Digits>, Option<Double>) {
    match (i64::try_from(number), unit) {
        (Ok(_), BucketUnit::One) => (Some(Digits(number)), None),
        _ => (None, Some(Double::new(number, names::decimals(unit)))),
    }
}

/// Number of levels to lower the scale, so that the buckets including gaps are not too many.
fn coarser(dist: &Dist) -> u8 {
    let span = |counts: &Counts, shift: u8| {
        let ends = counts.ends();
        ends.map_or(0, |(first, last)| i64::from(last >> shift) - i64::from(first >> shift))
    };
    (0..dist.scale)
        .find(|&shift| span(&dist.positive, shift).max(span(&dist.negative, shift)) < MAX_SPAN)
        .unwrap_or(dist.scale)
}

/// Buckets of a coarser scale. A bucket still too far above the first one is beyond all numbers of
/// 64 bits: drop it.
fn at_scale(counts: &Counts, shift: u8) -> BTreeMap<i32, i128> {
    let mut coarse = BTreeMap::new();
    let first = counts.ends().map_or(0, |(first, _)| i64::from(first >> shift));
    for (index, count) in counts.iter() {
        let index = index >> shift;
        if i64::from(index) - first < MAX_SPAN {
            *coarse.entry(index).or_insert(0) += i128::from(count);
        }
    }
    coarse
}

/// Buckets with their gaps filled in.
fn dense(buckets: &BTreeMap<i32, i128>) -> Option<Buckets> {
    let (&offset, _) = buckets.first_key_value()?;
    let mut bucket_counts = Vec::new();
    for (&index, &count) in buckets {
        let place = usize::try_from(index - offset).ok()?;
        bucket_counts.resize(place, Digits(0));
        bucket_counts.push(Digits(count));
    }
    Some(Buckets { offset, bucket_counts })
}
