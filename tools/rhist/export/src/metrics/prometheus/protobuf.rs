// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writes protocol buffers, the format with native histograms.

use prost::Message;
use rhist_core::table::Dist;

use super::buckets::Native;
use super::buckets::Spans;
use super::buckets::classic;
use super::buckets::sum;
use super::message::Bucket;
use super::message::BucketSpan;
use super::message::Counter;
use super::message::Gauge;
use super::message::Histogram;
use super::message::LabelPair;
use super::message::Metric;
use super::message::MetricFamily;
use super::message::MetricType;
use super::message::Timestamp;
use super::text::suffixed;
use crate::metrics::Family;
use crate::metrics::Kind;
use crate::metrics::Point;
use crate::metrics::Value;

/// Appends a family, preceded by its length.
pub(super) fn write(family: &Family<'_>, out: &mut Vec<u8>) {
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge | Kind::Info => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    let message = MetricFamily {
        name: Some(suffixed(family)),
        help: Some(family.help.clone()),
        kind: Some(kind.into()),
        metric: family.points.iter().map(|point| metric(family, point)).collect(),
        unit: (!family.unit.is_empty()).then(|| family.unit.to_owned()),
    };
    out.reserve(message.encoded_len() + 10);
    // Cannot fail: a vector grows as needed.
    let _ = message.encode_length_delimited(out);
}

fn metric(family: &Family<'_>, point: &Point<'_>) -> Metric {
    let label = |&(name, value): &(&str, &str)| LabelPair {
        name: Some(name.to_owned()),
        value: Some(value.to_owned()),
    };
    let mut metric = Metric {
        label: point.labels.iter().map(label).collect(),
        ..Metric::default()
    };
    let created_timestamp = point.start_ns.map(timestamp);
    let number = match point.value {
        Value::Whole(number) => number as f64,
        Value::Real(number) => number,
        Value::Dist(dist) => {
            metric.histogram = Some(Histogram {
                created_timestamp,
                ..histogram(dist, family)
            });
            return metric;
        }
    };
    let value = Some(number);
    match family.kind {
        Kind::Counter => {
            metric.counter = Some(Counter {
                value,
                created_timestamp,
            });
        }
        _ => metric.gauge = Some(Gauge { value }),
    }
    metric
}

/// Fills in native buckets, and classic ones for readers without support for native histograms.
fn histogram(dist: &Dist, family: &Family<'_>) -> Histogram {
    let native = Native::new(dist);
    let in_buckets = dist.in_buckets();
    let bucket = classic(dist, family).map(|bucket| Bucket {
        cumulative_count: Some(bucket.count),
        upper_bound: Some(bucket.bound),
    });
    let (negative_span, negative_delta) = spans(native.negative);
    let (mut positive_span, positive_delta) = spans(native.positive);
    if positive_span.is_empty() {
        // Marks the histogram as native although it is empty.
        positive_span.push(BucketSpan {
            offset: Some(0),
            length: Some(0),
        });
    }
    Histogram {
        sample_count: Some(dist.count.max(in_buckets)),
        // A count above the sum of the buckets is allowed only if the sum is NaN: readers then take
        // the rest for NaN observations.
        sample_sum: Some(sum(dist).filter(|_| dist.count <= in_buckets).unwrap_or(f64::NAN)),
        bucket: bucket.collect(),
        schema: Some(native.schema),
        zero_threshold: Some(native.threshold),
        zero_count: Some(native.zero),
        negative_span,
        negative_delta,
        positive_span,
        positive_delta,
        created_timestamp: None,
    }
}

fn spans(spans: Spans) -> (Vec<BucketSpan>, Vec<i64>) {
    let span = |(offset, length)| BucketSpan {
        offset: Some(offset),
        length: Some(length),
    };
    (spans.spans.into_iter().map(span).collect(), spans.deltas)
}

fn timestamp(ns: u64) -> Timestamp {
    Timestamp {
        seconds: (ns / 1_000_000_000) as i64,
        nanos: (ns % 1_000_000_000) as i32,
    }
}
