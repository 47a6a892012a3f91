// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;
use prost::Message;
use rhist_core::table::BucketUnit;
use rhist_core::table::Dist;

use super::buckets::Native;
use super::buckets::Spans;
use super::buckets::classic;
use super::message::BucketSpan;
use super::message::Histogram;
use super::message::MetricFamily;
use super::*;
use crate::metrics::Kind;
use crate::metrics::Value;

fn text(format: Format, families: &[Family<'_>]) -> String {
    let mut out = Vec::new();
    families.iter().for_each(|family| format.write(family, &mut out));
    format.end(&mut out);
    String::from_utf8(out).unwrap()
}

fn families(dist: &Dist) -> Vec<Family<'_>> {
    let start = Some(1_795_679_837_279_051_981);
    let mut hits = Family::new("rhist_execs", "", Kind::Counter, "Which \"programs\" are \\ started");
    hits.push(
        vec![("file", "/bin/\"a\\b\"\nc"), ("cpu", "0")],
        Value::Whole(u64::MAX.into()),
        start,
    );
    let mut share = Family::new("rhist_serve_cost_ratio", "ratio", Kind::Gauge, "Cost");
    share.push(vec![], Value::Real(0.00125), None);
    share.push(vec![("histogram", "a")], Value::Real(f64::NAN), None);
    let mut build = Family::new("rhist_serve_build", "", Kind::Info, "Version");
    build.push(vec![("version", "1")], Value::Whole(1), None);
    let mut waits = Family::new("rhist_waits_seconds", "seconds", Kind::Histogram, "Waits");
    waits.push(vec![("comm", "sh")], Value::Dist(dist), start);
    vec![hits, share, build, waits]
}

fn dist(unit: BucketUnit, values: &[i128]) -> Dist {
    let mut dist = Dist {
        bucket_unit: unit,
        ..Dist::new(3)
    };
    values.iter().for_each(|value| dist.record(*value, 1));
    dist
}

#[test]
fn as_text() {
    let dist = dist(BucketUnit::S, &[0, 900, 1_000_000, 1_000_000_000, 100_000_000_000]);
    insta::assert_snapshot!("text", text(Format::Text, &families(&dist)));
    insta::assert_snapshot!("open_metrics", text(Format::OpenMetrics, &families(&dist)));
}

/// Values without a bucket count if the sum includes them.
#[test]
fn values_in_no_bucket() {
    let mut dist = dist(BucketUnit::One, &[1, 5, 5]);
    (dist.count, dist.sum) = (5, Some(2_011));
    let mut family = Family::new("rhist_a_bytes", "bytes", Kind::Histogram, "");
    family.push(vec![], Value::Dist(&dist), None);
    for format in [Format::Text, Format::OpenMetrics] {
        let text = text(format, std::slice::from_ref(&family));
        for line in ["_bucket{le=\"+Inf\"} 5", "_sum 2011", "_count 5"] {
            assert!(text.contains(&format!("\nrhist_a_bytes{line}\n")), "{text}");
        }
        assert!(text.contains("_bucket{le=\"1.073741824e+09\"} 3\n"), "{text}");
    }
    let mut out = Vec::new();
    Format::Protobuf.write(&family, &mut out);
    let histogram = messages(&out)[0].metric[0].histogram.clone().unwrap();
    // Prometheus rejects a count that differs from the buckets, unless the sum is NaN.
    assert_eq!(histogram.sample_count, Some(5));
    assert!(histogram.sample_sum.unwrap().is_nan());
}

/// A bound counts up to the nearest end of a bucket. At scale 3 the error is at most a sixteenth of
/// an octave.
#[test]
fn other_bounds() {
    let mut dist = Dist::new(3);
    [0, 90, 98, 105, 300, 5_000]
        .iter()
        .for_each(|value| dist.record(*value, 1));
    let mut family = Family::new("rhist_a_bytes", "bytes", Kind::Histogram, "");
    family.bounds = &[0.5, 100.0, 256.0, 1e4];
    family.push(vec![], Value::Dist(&dist), None);
    let text = text(Format::Text, std::slice::from_ref(&family));
    let buckets: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("rhist_a_bytes_bucket"))
        .collect();
    let expected = [
        "{le=\"0\"} 1",
        "{le=\"0.5\"} 1",
        "{le=\"100\"} 3",
        "{le=\"256\"} 4",
        "{le=\"10000\"} 6",
        "{le=\"+Inf\"} 6",
    ];
    assert_eq!(buckets, expected);
    let mut out = Vec::new();
    Format::Protobuf.write(&family, &mut out);
    let histogram = messages(&out)[0].metric[0].histogram.clone().unwrap();
    let bounds: Vec<_> = histogram
        .bucket
        .iter()
        .map(|bucket| bucket.upper_bound.unwrap())
        .collect();
    assert_eq!(bounds, [0.0, 0.5, 100.0, 256.0, 1e4]);
}

/// Decodes a sequence of messages with lengths.
fn messages(mut bytes: &[u8]) -> Vec<MetricFamily> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        messages.push(MetricFamily::decode_length_delimited(&mut bytes).unwrap());
    }
    messages
}

#[test]
fn as_messages() {
    let dist = dist(BucketUnit::S, &[0, 1_000_000_000, 1_000_000_001, 3_000_000_000]);
    let mut out = Vec::new();
    for family in families(&dist) {
        Format::Protobuf.write(&family, &mut out);
    }
    let messages = messages(&out);
    let names: Vec<&str> = messages.iter().map(|family| family.name.as_deref().unwrap()).collect();
    let expected = [
        "rhist_execs_total",
        "rhist_serve_cost_ratio",
        "rhist_serve_build_info",
        "rhist_waits_seconds",
    ];
    assert_eq!(names, expected);
    let counter = messages[0].metric[0].counter.unwrap();
    assert_eq!(counter.created_timestamp.unwrap().seconds, 1_795_679_837);
    assert_eq!(
        messages[0].metric[0].label[0].value.as_deref(),
        Some("/bin/\"a\\b\"\nc")
    );
    let histogram = messages[3].metric[0].histogram.as_ref().unwrap();
    assert_eq!(
        (histogram.sample_count, histogram.zero_count, histogram.schema),
        (Some(4), Some(1), Some(3))
    );
    assert_eq!(histogram.sample_sum, Some(5.000000001));
    // One second is the last value of bucket 0; 3 seconds are 2^1.585, in bucket 13 of eighths.
    assert_eq!(
        buckets(&histogram.positive_span, &histogram.positive_delta),
        [(0, 1), (1, 1), (13, 1)]
    );
}

#[test]
fn a_histogram_without_values_is_a_native_one() {
    let dist = dist(BucketUnit::One, &[]);
    let mut family = Family::new("rhist_a_nanoseconds", "nanoseconds", Kind::Histogram, "");
    family.push(vec![], Value::Dist(&dist), None);
    let mut out = Vec::new();
    Format::Protobuf.write(&family, &mut out);
    let histogram: Histogram = messages(&out)[0].metric[0].histogram.clone().unwrap();
    let no_op = BucketSpan {
        offset: Some(0),
        length: Some(0),
    };
    assert_eq!(histogram.positive_span, [no_op]);
    assert!(histogram.positive_delta.is_empty());
}

/// Index and count of each bucket.
fn buckets(spans: &[BucketSpan], deltas: &[i64]) -> Vec<(i32, u64)> {
    let spans: Vec<(i32, u32)> = spans
        .iter()
        .map(|span| (span.offset.unwrap(), span.length.unwrap()))
        .collect();
    counts(&spans, deltas)
}

fn counts(spans: &[(i32, u32)], deltas: &[i64]) -> Vec<(i32, u64)> {
    let (mut index, mut count) = (0, 0);
    let mut deltas = deltas.iter();
    let mut buckets = Vec::new();
    for (offset, length) in spans {
        index += offset;
        for _ in 0..*length {
            count += deltas.next().unwrap();
            buckets.push((index, count as u64));
            index += 1;
        }
    }
    assert!(deltas.next().is_none());
    buckets
}

#[test]
fn zeros_among_ones() {
    let mut dist = Dist::new(0);
    dist.record(1, 5);
    dist.record(2, 3);
    dist.one_has_zero = true;
    let native = Native::new(&dist);
    // All values up to 1 count as zero.
    assert_eq!((native.threshold, native.zero), (1.0, 5));
    let Spans { spans, deltas } = native.positive;
    assert_eq!(counts(&spans, &deltas), [(1, 3)]);
}

#[test]
fn who_accepts_what() {
    let prometheus = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
                      application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    assert_eq!(Format::accepted(prometheus), Format::Protobuf);
    let (_, without) = prometheus.split_once(',').unwrap();
    assert_eq!(Format::accepted(without), Format::OpenMetrics);
    for accept in [
        "",
        "*/*",
        "text/plain",
        "text/html,application/xml;q=0.9,*/*;q=0.8",
        "image/png",
        ";;,=,q=x",
    ] {
        assert_eq!(Format::accepted(accept), Format::Text, "{accept}");
    }
    for accept in [
        "application/vnd.google.protobuf",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
        "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;q=0",
    ] {
        assert_eq!(Format::accepted(accept), Format::Text, "{accept}");
    }
}

#[test]
fn parameters_in_quotes() {
    let quoted = "application/openmetrics-text; version=\"1.0.0\"";
    assert_eq!(Format::accepted(quoted), Format::OpenMetrics);
    let with_separators = "application/openmetrics-text;x=\"a,\\\",text/plain;q=1,\";q=0.5,text/plain;q=\"0.3\"";
    assert_eq!(Format::accepted(with_separators), Format::OpenMetrics);
}

fn values() -> impl Strategy<Value = Vec<i128>> {
    let value = prop_oneof![-1000..1000i128, 0..1i128 << 40, Just(u64::MAX.into())];
    prop::collection::vec(value, 0..50)
}

proptest! {
    #[test]
    fn native_buckets_are_those_of_the_distribution(values in values(), scale in 0..=20u8) {
        let mut dist = Dist::new(scale);
        values.iter().for_each(|value| dist.record(*value, 1));
        let native = Native::new(&dist);
        dist.coarsen(8);
        prop_assert_eq!(native.schema, i32::from(dist.scale));
        for (counted, spans) in [(&dist.positive, native.positive), (&dist.negative, native.negative)] {
            let expected: Vec<(i32, u64)> = counted.iter().map(|(index, count)| (index + 1, count)).collect();
            prop_assert_eq!(counts(&spans.spans, &spans.deltas), expected);
            // Adjacent buckets must share one span.
            prop_assert!(spans.spans.iter().skip(1).all(|(offset, _)| *offset > 0));
        }
    }

    #[test]
    fn classic_buckets_count_what_is_not_above_their_bound(values in values(), scale in 0..=8u8) {
        for unit in ["nanoseconds", "", "bytes"] {
            let mut dist = Dist::new(scale);
            values.iter().for_each(|value| dist.record(*value, 1));
            let family = Family::new("rhist_a", unit, Kind::Histogram, "");
            for bucket in classic(&dist, &family) {
                let bound = bucket.bound as i128;
                let count = values.iter().filter(|value| **value <= bound).count();
                prop_assert_eq!(bucket.count, count as u64, "{}", bound);
            }
        }
    }

    #[test]
    fn any_accept_has_an_answer(accept in any::<String>()) {
        Format::accepted(&accept);
    }

    #[test]
    fn any_label_is_one_line(label in any::<String>()) {
        let mut family = Family::new("rhist_a", "", Kind::Gauge, &label);
        family.push(vec![("a", &label)], Value::Whole(1), None);
        for format in [Format::Text, Format::OpenMetrics] {
            let text = text(format, std::slice::from_ref(&family));
            let lines = if format == Format::Text { 3 } else { 4 };
            prop_assert_eq!(text.matches('\n').count(), lines, "{}", text);
        }
    }
}
