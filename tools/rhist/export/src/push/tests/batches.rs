// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests the contents of batches.

use std::collections::BTreeMap;
use std::collections::HashSet;

use prost::Message;
use rhist_core::names::Names;
use rhist_core::question::Cost;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::table::Begin;
use rhist_core::table::BucketUnit;
use rhist_core::table::Column;
use rhist_core::table::Dist;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Moment;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Text;
use rhist_core::table::Time;
use rhist_core::table::Unit;
use rhist_core::table::Value;
use rhist_core::table::Worst;

use crate::otlp::protobuf::Data;
use crate::otlp::protobuf::ExponentialHistogramDataPoint;
use crate::otlp::protobuf::ExportMetricsServiceRequest;
use crate::otlp::protobuf::KeyValue;
use crate::otlp::protobuf::Metric;
use crate::otlp::protobuf::Number;
use crate::otlp::protobuf::Value as AnyValue;
use crate::push::Batch;
use crate::push::Encoding;
use crate::push::Exporter;
use crate::push::Format;
use crate::push::Signal;
use crate::push::Temporality;

fn question() -> Question {
    Question {
        name: "runqlat".to_owned(),
        summary: "How long tasks wait for a CPU".to_owned(),
        noun: "waits".to_owned(),
        unit: Unit::Nanoseconds,
        host: "lab".to_owned(),
        kernel: "7.3.4".to_owned(),
        cpus: 4,
        ..Question::default()
    }
}

fn time(seconds: u64) -> Time {
    Time {
        realtime_ns: 1_795_621_132_000_000_000 + seconds * 1_000_000_000,
        monotonic_ns: (1 + seconds) * 1_000_000_000,
        boot_id: Some("ee0d0f94-5429-4d55-9290-40dcd13767ad".to_owned()),
    }
}

/// A row with waits of these lengths.
pub fn row(key: Key, waits: &[i128]) -> Row {
    let mut dist = Dist::new(3);
    waits.iter().for_each(|wait| dist.record(*wait, 1));
    Row {
        keys: [key].into(),
        hits: dist.count,
        worst: dist.max.map(|value| Worst {
            value,
            saved: [(
                "prev_pid".into(),
                Key::Task {
                    pid: 7,
                    comm: Text::from("sed"),
                },
            )]
            .into(),
        }),
        values: vec![Value::Dist(dist)],
        begin: None,
        last_ns: None,
    }
}

/// An interval of one second from `seconds`.
pub fn interval(seconds: u64, rows: Vec<Row>) -> Interval {
    let column = |name: &str, unit| Column {
        name: name.to_owned(),
        unit,
        ..Column::default()
    };
    Interval {
        from: time(seconds),
        to: time(seconds + 1),
        delta: Table {
            keys: vec![column("next_comm", Unit::Plain)],
            values: vec![column("wait", Unit::Nanoseconds)],
            rows,
            time: time(seconds + 1),
            ..Table::default()
        },
        events: 10,
        rejected: Some(90),
        cost: Cost {
            event_ns: Some(61.5),
            ..Cost::default()
        },
        ..Interval::default()
    }
}

pub fn exporter(encoding: Encoding, temporality: Temporality) -> Exporter {
    Exporter::new(Format {
        signal: Signal::Metrics,
        encoding,
        temporality,
        resource: vec![("service.name".to_owned(), "kernel".to_owned())],
    })
}

pub fn export(exporter: &mut Exporter, interval: &Interval) -> Vec<Batch> {
    let mut batches = Vec::new();
    exporter.export(&question(), &Names::elsewhere(), interval, |batch| batches.push(batch));
    batches
}

fn decode(batch: &Batch) -> ExportMetricsServiceRequest {
    ExportMetricsServiceRequest::decode(batch.body.as_slice()).unwrap()
}

/// Metrics of all batches.
fn metrics(batches: &[Batch]) -> Vec<Metric> {
    let requests = batches.iter().map(decode);
    let resources = requests.flat_map(|request| request.resource_metrics);
    resources
        .flat_map(|resource| resource.scope_metrics)
        .flat_map(|scope| scope.metrics)
        .collect()
}

/// Points of the distribution.
fn waits(metrics: &[Metric]) -> Vec<&ExponentialHistogramDataPoint> {
    let waits = metrics.iter().filter(|metric| metric.name == "runqlat.wait");
    waits
        .flat_map(|metric| match &metric.data {
            Some(Data::ExponentialHistogram(histogram)) => histogram.data_points.iter(),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// The single number of a metric.
fn number(metrics: &[Metric], name: &str) -> i64 {
    let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
    let points = match &metric.data {
        Some(Data::Sum(sum)) => &sum.data_points,
        Some(Data::Gauge(gauge)) => &gauge.data_points,
        other => panic!("{other:?}"),
    };
    match points.as_slice() {
        [point] => match point.value {
            Some(Number::AsInt(number)) => number,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let value = |attribute: &KeyValue| match attribute.value.clone().and_then(|value| value.value) {
        Some(AnyValue::String(text)) => text,
        Some(AnyValue::Int(number)) => number.to_string(),
        other => panic!("{other:?}"),
    };
    attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), value(attribute)))
        .collect()
}

#[test]
fn a_batch_in_json() {
    let interval = interval(0, vec![row(Key::Text(Text::from("sed")), &[0, 700, 700, 1_000])]);
    let batches = export(&mut exporter(Encoding::Json, Temporality::Delta), &interval);
    let [batch] = batches.as_slice() else { panic!() };
    let json: serde_json::Value = serde_json::from_slice(&batch.body).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn protobuf_has_the_same_buckets() {
    let dist = Dist {
        scale: 5,
        count: u64::MAX,
        sum: Some(u64::MAX.into()),
        min: Some(-3),
        max: Some(i64::MAX.into()),
        zero: 9,
        positive: [(-1, 1), (0, u64::MAX - 20), (77, 3)].into(),
        negative: [(50, 7)].into(),
        ..Dist::default()
    };
    let mut with_dist = row(Key::Number(1), &[5]);
    with_dist.values = vec![Value::Dist(dist)];
    let batches = export(
        &mut exporter(Encoding::Protobuf, Temporality::Delta),
        &interval(0, vec![with_dist]),
    );
    let metrics = metrics(&batches);
    let [point] = waits(&metrics)[..] else { panic!() };
    let (positive, negative) = (point.positive.as_ref().unwrap(), point.negative.as_ref().unwrap());
    assert_eq!(
        (point.scale, point.count, point.zero_count, point.zero_threshold),
        (5, u64::MAX, 9, 0.0)
    );
    assert_eq!(
        (point.sum, point.min, point.max),
        // No sum, which could fall because of the values below zero.
        (None, Some(-3.0), Some(i64::MAX as f64))
    );
    assert_eq!((positive.offset, positive.bucket_counts.len()), (-1, 79));
    assert_eq!(
        (positive.bucket_counts[1], positive.bucket_counts[78]),
        (u64::MAX - 20, 3)
    );
    assert_eq!((negative.offset, negative.bucket_counts.as_slice()), (50, &[7][..]));
    let [exemplar] = point.exemplars.as_slice() else {
        panic!()
    };
    assert_eq!(
        attributes(&exemplar.filtered_attributes),
        BTreeMap::from([("prev_pid", "7"), ("prev_pid.name", "sed")].map(|(a, b)| (a.to_owned(), b.to_owned())))
    );
}

/// `unit(us)`: buckets and all other numbers are in microseconds.
#[test]
fn other_units() {
    let mut with_unit = row(Key::Number(1), &[5_000, 1_234]);
    if let Value::Dist(dist) = &mut with_unit.values[0] {
        dist.bucket_unit = BucketUnit::Us;
    }
    let batches = export(
        &mut exporter(Encoding::Protobuf, Temporality::Delta),
        &interval(0, vec![with_unit]),
    );
    let metrics = metrics(&batches);
    assert!(
        metrics
            .iter()
            .any(|metric| metric.name == "runqlat.wait" && metric.unit == "us")
    );
    let [point] = waits(&metrics)[..] else { panic!() };
    assert_eq!((point.sum, point.min, point.max), (Some(6.234), Some(1.234), Some(5.0)));
}

/// Cumulative points are the sums of the deltas.
#[test]
fn cumulative_points_have_all_since_the_start() {
    let sed = || Key::Text(Text::from("sed"));
    let intervals = [
        interval(0, vec![row(sed(), &[700, 1_000])]),
        interval(1, vec![row(Key::Text(Text::from("awk")), &[5])]),
        interval(2, vec![row(sed(), &[800])]),
    ];
    let mut exporter = exporter(Encoding::Protobuf, Temporality::Cumulative);
    let pushed: Vec<_> = intervals
        .iter()
        .map(|interval| metrics(&export(&mut exporter, interval)))
        .collect();
    let counts: Vec<Vec<u64>> = pushed
        .iter()
        .map(|metrics| waits(metrics).iter().map(|point| point.count).collect())
        .collect();
    assert_eq!(counts, [vec![2], vec![2, 1], vec![3, 1]]);
    // Each largest value is sent once.
    let exemplars: Vec<usize> = pushed
        .iter()
        .map(|metrics| waits(metrics).iter().map(|point| point.exemplars.len()).sum())
        .collect();
    assert_eq!(exemplars, [1, 1, 1]);
    let last = pushed.last().unwrap();
    for point in waits(last) {
        assert_eq!(point.start_time_unix_nano, time(0).realtime_ns);
        assert_eq!(point.time_unix_nano, time(3).realtime_ns);
    }
    assert_eq!((waits(last)[0].sum, waits(last)[0].max), (Some(2_500.0), Some(1_000.0)));
    assert_eq!(number(last, "rhist.events"), 30);
    for metric in last {
        let temporality = match &metric.data {
            Some(Data::Sum(sum)) => sum.aggregation_temporality,
            Some(Data::ExponentialHistogram(histogram)) => histogram.aggregation_temporality,
            _ => 2,
        };
        assert_eq!(temporality, 2, "{metric:?}");
    }
}

/// The clock is set back by a day before the second push, and forward by three days before the
/// fourth. No start is after its end, and the start of a sum moves as little as possible.
#[test]
fn the_clock_is_set() {
    const DAY: i64 = 86_400;
    let times = |temporality| {
        let mut exporter = exporter(Encoding::Protobuf, temporality);
        let mut now = time(0);
        let times = [0, -DAY, 0, 3 * DAY, 0].into_iter().enumerate().map(|(n, seconds)| {
            let mut second = interval(n as u64, vec![row(Key::Number(1), &[5])]);
            second.from = now.clone();
            now.monotonic_ns += 1_000_000_000;
            now.realtime_ns = now
                .realtime_ns
                .checked_add_signed((1 + seconds) * 1_000_000_000)
                .unwrap();
            second.to = now.clone();
            let metrics = metrics(&export(&mut exporter, &second));
            let point = waits(&metrics)[0];
            let since = |ns: u64| ns.cast_signed() / 1_000_000_000 - time(0).realtime_ns.cast_signed() / 1_000_000_000;
            (since(point.start_time_unix_nano), since(point.time_unix_nano))
        });
        times.collect::<Vec<_>>()
    };
    let ends = [1, 2 - DAY, 3 - DAY, 4 + 2 * DAY, 5 + 2 * DAY];
    let starts = |starts: [i64; 5]| starts.into_iter().zip(ends).collect::<Vec<_>>();
    assert_eq!(
        times(Temporality::Delta),
        starts([0, 1 - DAY, 2 - DAY, 3 - DAY, 4 + 2 * DAY])
    );
    assert_eq!(times(Temporality::Cumulative), starts([0, -DAY, -DAY, -DAY, -DAY]));
}

/// A sum begins when its row does, if the kernel tells that, and never moves.
#[test]
fn rows_begin_with_their_first_hit() {
    let starts = |temporality| {
        let mut exporter = exporter(Encoding::Protobuf, temporality);
        let times = [(0, Some(7)), (1, Some(8)), (2, None)].map(|(second, later)| {
            let mut row = row(Key::Number(1), &[5]);
            row.begin = later.map(|later| Begin {
                at: Moment {
                    boottime_ns: later,
                    realtime_ns: time(0).realtime_ns + later,
                },
                ..Begin::default()
            });
            let metrics = metrics(&export(&mut exporter, &interval(second, vec![row])));
            waits(&metrics)[0].start_time_unix_nano - time(0).realtime_ns
        });
        times.to_vec()
    };
    assert_eq!(starts(Temporality::Cumulative), [7, 7, 7]);
    assert_eq!(starts(Temporality::Delta), [0, 1_000_000_000, 2_000_000_000]);
}

/// The kind of a sum does not depend on the signs of its numbers.
#[test]
fn sums_of_signed_fields_can_fall() {
    let sums = |number| {
        let mut sums = interval(0, vec![row(Key::Number(1), &[5])]);
        let column = |name: &str| Column {
            name: name.to_owned(),
            ..Column::default()
        };
        sums.delta.values = vec![column("ret"), column("bytes")];
        sums.delta.rows[0].values = vec![Value::Number(number), Value::Number(7)];
        sums
    };
    let question = Question {
        signed: vec!["ret".to_owned()],
        ..question()
    };
    for temporality in [Temporality::Delta, Temporality::Cumulative] {
        let mut exporter = exporter(Encoding::Protobuf, temporality);
        for number in [20_000, -549, 1] {
            let mut batches = Vec::new();
            exporter.export(&question, &Names::elsewhere(), &sums(number), |batch| {
                batches.push(batch)
            });
            let metrics = metrics(&batches);
            let monotonic = metrics.iter().filter_map(|metric| match &metric.data {
                Some(Data::Sum(sum)) => Some((metric.name.as_str(), sum.is_monotonic)),
                _ => None,
            });
            let monotonic: BTreeMap<_, _> = monotonic.collect();
            let expected = [
                ("rhist.dropped", true),
                ("rhist.dropped_starts", true),
                ("rhist.events", true),
                ("rhist.rejected", true),
                ("runqlat.bytes", true),
                ("runqlat.hits", true),
                ("runqlat.ret", false),
            ];
            assert_eq!(monotonic, BTreeMap::from(expected));
        }
    }
}

/// A sum that can fall is left out.
#[test]
fn distributions_below_zero_have_no_sum() {
    let mut exporter = exporter(Encoding::Protobuf, Temporality::Cumulative);
    let sums = [&[20][..], &[-11, -11], &[30]].map(|values| {
        let metrics = metrics(&export(&mut exporter, &interval(0, vec![row(Key::Number(1), values)])));
        waits(&metrics)[0].sum
    });
    assert_eq!(sums, [Some(20.0), None, None]);
}

/// The count of a point excludes values without a bucket, so the sum is left out.
#[test]
fn values_in_no_bucket() {
    let mut cut = row(Key::Number(1), &[5, 7]);
    if let Value::Dist(dist) = &mut cut.values[0] {
        (dist.count, dist.sum) = (3, Some(1_012));
    }
    let batches = export(
        &mut exporter(Encoding::Protobuf, Temporality::Delta),
        &interval(0, vec![cut]),
    );
    let metrics = metrics(&batches);
    let [point] = waits(&metrics)[..] else { panic!() };
    assert_eq!((point.count, point.sum), (2, None));
    assert_eq!(number(&metrics, "runqlat.wait.no_bucket"), 1);
}

#[test]
fn many_rows_are_many_batches() {
    let rows = |count: i128| (0..count).map(|key| row(Key::Number(key), &[key])).collect();
    for (count, expected) in [(0, 1), (1, 1), (512, 1), (513, 2), (2_000, 4)] {
        let batches = export(
            &mut exporter(Encoding::Protobuf, Temporality::Delta),
            &interval(0, rows(count)),
        );
        assert_eq!(batches.len(), expected);
        let metrics = metrics(&batches);
        assert_eq!(waits(&metrics).len() as i128, count);
        // One number for the whole interval.
        assert_eq!(number(&metrics, "rhist.events"), 10);
        for batch in &batches {
            let resource = decode(batch).resource_metrics.remove(0).resource.unwrap();
            let attributes = attributes(&resource.attributes);
            let expected = [
                ("service.name", "kernel"),
                ("host.name", "lab"),
                ("service.instance.id", "lab"),
            ];
            assert!(
                expected.iter().all(|(name, value)| attributes[*name] == **value),
                "{attributes:?}"
            );
        }
    }
}

#[test]
fn no_address_leaves_the_machine() {
    let frame = |address, symbol: Option<&str>| Frame {
        address: Some(address),
        symbol: symbol.map(str::to_owned),
    };
    let mut saved = row(Key::Address(frame(0xffff_8000_0000_1234, Some("vfs_read"))), &[9]);
    saved.worst.as_mut().unwrap().saved =
        [("caller".into(), Key::Address(frame(0xffff_8000_0000_5678, Some("f"))))].into();
    let rows = vec![
        saved,
        row(Key::Address(frame(0xffff_8000_0000_1238, Some("vfs_read"))), &[5]),
        row(Key::Address(frame(0xffff_8000_0000_9999, None)), &[5]),
        row(Key::Number(0xffff_8000_0000_aaaa), &[5]),
        row(Key::Number(-0x7fff_ffff_5556), &[5]),
        row(
            Key::Stack(vec![frame(0xffff_8000_0000_1111, Some("a")), frame(2, None)]),
            &[5],
        ),
    ];
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let batches = export(&mut exporter(encoding, Temporality::Delta), &interval(0, rows.clone()));
        let text = String::from_utf8_lossy(&batches[0].body).into_owned();
        assert!(!text.contains("ffff8"), "{text}");
        // The same addresses as signed decimal numbers.
        assert!(!text.contains("18446603") && !text.contains("-14073748"), "{text}");
    }
    let batches = export(
        &mut exporter(Encoding::Protobuf, Temporality::Delta),
        &interval(0, rows),
    );
    let metrics = metrics(&batches);
    let points: Vec<_> = waits(&metrics)
        .iter()
        .map(|point| (attributes(&point.attributes)["next_comm"].clone(), point.count))
        .collect();
    let expected = [("vfs_read", 2), ("?", 3), ("?;a", 1)].map(|(key, count)| (key.to_owned(), count));
    assert_eq!(points, expected);
}

#[test]
fn containers_have_their_identifiers() {
    let id = "0123456789abcdef".repeat(4);
    let mut interval = interval(
        0,
        vec![
            row(
                Key::Text(Text::from(format!("/system.slice/docker-{id}.scope").as_str())),
                &[1],
            ),
            row(
                Key::Text(Text::from(format!("/kubepods/pod{}/{id}/x", &id[..32]).as_str())),
                &[1],
            ),
            row(Key::Text(Text::from("/system.slice/ssh.service")), &[1]),
        ],
    );
    interval.delta.keys[0].name = "dst_path".to_owned();
    let batches = export(&mut exporter(Encoding::Protobuf, Temporality::Delta), &interval);
    let metrics = metrics(&batches);
    let of = |name: &str| {
        let points = waits(&metrics);
        let ids = points.iter().map(|point| attributes(&point.attributes).remove(name));
        ids.collect::<Vec<_>>()
    };
    assert_eq!(of("container.id"), [Some(id.clone()), Some(id.clone()), None]);
    assert_eq!(of("k8s.pod.uid"), [None, Some(id[..32].to_owned()), None]);

    // Also if the key is the number of a group.
    let root = tempfile::tempdir().unwrap();
    let group = root.path().join(format!("sys/fs/cgroup/docker/{id}"));
    std::fs::create_dir_all(&group).unwrap();
    let number = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&group).unwrap());
    interval.delta.keys[0].name = "cgroup_ino".to_owned();
    interval.delta.rows = vec![row(Key::Number(number.into()), &[1])];
    let names = Names::with_proc(root.path().join("proc"));
    let mut batches = Vec::new();
    exporter(Encoding::Protobuf, Temporality::Delta)
        .export(&question(), &names, &interval, |batch| batches.push(batch));
    let metrics = super::batches::metrics(&batches);
    let [point] = waits(&metrics)[..] else { panic!() };
    let expected = [
        ("cgroup_ino", number.to_string()),
        ("cgroup_ino.name", format!("/docker/{id}")),
        ("container.id", id),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(attributes(&point.attributes), BTreeMap::from(expected));
}

/// For any keys, all points of a metric have different attributes.
#[test]
fn points_have_attributes_of_their_own() {
    let text = |bytes: &[u8]| Key::Text(Text::from(bytes));
    let columns = ["a", "a", "a.name"].map(|name| Column {
        name: name.to_owned(),
        ..Column::default()
    });
    let task = |pid, comm: &str| Key::Task {
        pid,
        comm: Text::from(comm),
    };
    let syscall = |number, name: Option<&str>| Key::Syscall {
        number,
        name: name.map(str::to_owned),
    };
    let keys = [
        [task(1, "sed"), task(1, "awk"), text(b"x")],
        [task(1, "awk"), task(1, "sed"), text(b"x")],
        [task(1, "awk"), task(1, "sed"), text(b"\xff")],
        [task(1, "awk"), task(1, "sed"), text(b"\\xff")],
        [syscall(0, Some("read")), syscall(1, None), text(b"x")],
        [syscall(0, None), syscall(1, Some("read")), text(b"x")],
        [
            Key::Number(u64::MAX.into()),
            Key::Range { first: 0, last: 1 },
            text(b"x"),
        ],
    ];
    let rows = keys.map(|keys| Row {
        keys: keys.into_iter().collect(),
        hits: 1,
        ..Row::default()
    });
    let mut interval = interval(0, rows.into());
    interval.delta.keys = columns.into();
    interval.delta.values = Vec::new();
    let batches = export(&mut exporter(Encoding::Protobuf, Temporality::Delta), &interval);
    let metrics = metrics(&batches);
    let Some(Data::Sum(hits)) = &metrics
        .iter()
        .find(|metric| metric.name == "runqlat.hits")
        .unwrap()
        .data
    else {
        panic!()
    };
    let all: Vec<_> = hits.data_points.iter().map(|point| &point.attributes).collect();
    for attributes in &all {
        let names: HashSet<_> = attributes.iter().map(|attribute| &attribute.key).collect();
        assert_eq!(names.len(), attributes.len(), "{attributes:?}");
    }
    let different: HashSet<_> = all.iter().map(|attributes| format!("{attributes:?}")).collect();
    assert_eq!(different.len(), 7);
}
