// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stacks of intervals as profiles.

use prost::Message;
use rhist_core::question::Interval;
use rhist_core::table::Column;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Losses;
use rhist_core::table::Row;
use rhist_core::table::Text;

use super::batches::export;
use super::batches::interval;
use super::batches::row;
use crate::otlp::profiles::ExportProfilesServiceRequest;
use crate::otlp::profiles::Profile;
use crate::otlp::profiles::ProfilesDictionary;
use crate::otlp::protobuf::Value;
use crate::push::Encoding;
use crate::push::Exporter;
use crate::push::Format;
use crate::push::Signal;
use crate::push::Temporality;

/// A row by comm, the program's stack and the kernel's.
fn stacks(comm: &str, program: &[&str], kernel: &[&str], waits: &[i128]) -> Row {
    let stack = |symbols: &[&str], address| {
        let frames = symbols.iter().map(|symbol| Frame {
            address,
            symbol: Some((*symbol).to_owned()),
        });
        Key::Stack(frames.collect())
    };
    Row {
        keys: [
            Key::Text(Text::from(comm)),
            stack(program, None),
            stack(kernel, Some(0xffff_8000_0000_1111)),
        ]
        .into_iter()
        .collect(),
        ..row(Key::Number(0), waits)
    }
}

/// An interval with these rows, and two drops.
fn interval_of(rows: Vec<Row>) -> Interval {
    let mut interval = interval(5, rows);
    interval.delta.keys = ["comm", "ustack", "stack"]
        .map(|name| Column {
            name: name.to_owned(),
            ..Column::default()
        })
        .into();
    interval.delta.losses = Losses {
        dropped: 2,
        ..Losses::default()
    };
    interval
}

/// Requests of an interval.
fn requests(interval: &Interval) -> Vec<ExportProfilesServiceRequest> {
    let mut exporter = Exporter::new(Format {
        signal: Signal::Profiles,
        encoding: Encoding::Protobuf,
        temporality: Temporality::Delta,
        resource: Vec::new(),
    });
    let batches = export(&mut exporter, interval);
    let decode = |body: &[u8]| ExportProfilesServiceRequest::decode(body).unwrap();
    batches.iter().map(|batch| decode(&batch.body)).collect()
}

fn profiles(request: &ExportProfilesServiceRequest) -> &[Profile] {
    &request.resource_profiles[0].scope_profiles[0].profiles
}

fn attribute(dictionary: &ProfilesDictionary, index: i32) -> (String, Value) {
    let attribute = &dictionary.attribute_table[index as usize];
    let key = dictionary.string_table[attribute.key_strindex as usize].clone();
    (key, attribute.value.clone().unwrap().value.unwrap())
}

/// Name and unit of a profile, and for each sample its attributes, its functions with their kinds,
/// and its value.
fn shown(request: &ExportProfilesServiceRequest, profile: &Profile) -> Vec<String> {
    let dictionary = request.dictionary.as_ref().unwrap();
    let text = |index: i32| dictionary.string_table[index as usize].as_str();
    let of_type = profile.sample_type.as_ref().unwrap();
    let mut lines = vec![format!(
        "{} {}",
        text(of_type.type_strindex),
        text(of_type.unit_strindex)
    )];
    for sample in &profile.samples {
        let attributes: Vec<_> = sample
            .attribute_indices
            .iter()
            .map(|index| attribute(dictionary, *index))
            .collect();
        let stack = &dictionary.stack_table[sample.stack_index as usize];
        let functions: Vec<String> = stack
            .location_indices
            .iter()
            .map(|index| {
                let location = &dictionary.location_table[*index as usize];
                let function = &dictionary.function_table[location.lines[0].function_index as usize];
                let (_, Value::String(kind)) = attribute(dictionary, location.attribute_indices[0]) else {
                    panic!("a kind is a string");
                };
                format!("{}:{kind}", text(function.name_strindex))
            })
            .collect();
        lines.push(format!("{attributes:?} {} {:?}", functions.join(" "), sample.values));
    }
    lines
}

#[test]
fn stacks_are_samples() {
    let interval = interval_of(vec![
        stacks("git", &["read", "main", "_start"], &["schedule+0x2a/0x90"], &[3, 4]),
        stacks("git", &["main", "_start"], &[], &[10]),
        stacks("kworker", &[], &["schedule", "worker"], &[5]),
    ]);
    let requests = requests(&interval);
    let [request] = requests.as_slice() else {
        panic!("one request");
    };
    let [hits, waits] = profiles(request) else {
        panic!("a profile for each number");
    };
    let comm = |name: &str| format!("[(\"comm\", String(\"{name}\"))]");
    let lines = |head: &str, numbers: [i64; 3]| {
        let [a, b, c] = numbers;
        vec![
            head.to_owned(),
            format!(
                "{} schedule:kernel read:native main:native _start:native [{a}]",
                comm("git")
            ),
            format!("{} main:native _start:native [{b}]", comm("git")),
            format!("{} schedule:kernel worker:kernel [{c}]", comm("kworker")),
        ]
    };
    assert_eq!(shown(request, hits), lines("runqlat.hits count", [2, 1, 1]));
    assert_eq!(shown(request, waits), lines("runqlat.wait nanoseconds", [7, 10, 5]));
    assert_eq!(hits.time_unix_nano, interval.from.realtime_ns);
    assert_eq!(hits.duration_nano, 1_000_000_000);
    let dictionary = request.dictionary.as_ref().unwrap();
    let about: Vec<_> = hits
        .attribute_indices
        .iter()
        .map(|index| attribute(dictionary, *index))
        .collect();
    assert!(
        about.contains(&("rhist.dropped".to_owned(), Value::Int(2))),
        "{about:?}"
    );
    assert!(
        about.contains(&("rhist.events".to_owned(), Value::Int(10))),
        "{about:?}"
    );
    // Each function, location and stack once, behind one that means none.
    assert_eq!(dictionary.function_table.len(), 1 + 5);
    assert_eq!(dictionary.location_table.len(), 1 + 5);
    assert_eq!(dictionary.stack_table.len(), 1 + 3);
    assert_eq!(dictionary.string_table[0], "");
    assert_eq!(dictionary.attribute_table[0], Default::default());
    assert_eq!((dictionary.mapping_table.len(), dictionary.link_table.len()), (1, 1));
}

#[test]
fn many_rows_are_several_requests() {
    let name = |n: usize| format!("f{n}");
    let rows = (0..1300).map(|n| stacks("git", &[&name(n)], &[], &[1]));
    let requests = requests(&interval_of(rows.collect()));
    let samples: Vec<_> = requests
        .iter()
        .map(|request| profiles(request)[0].samples.len())
        .collect();
    assert_eq!(samples, [512, 512, 276]);
    // Each profile has the name of the question, and one of them the losses.
    let counts = |profile: &Profile| profile.attribute_indices.len();
    let about: Vec<usize> = requests.iter().flat_map(profiles).map(counts).collect();
    let [first, rest @ ..] = about.as_slice() else {
        panic!("profiles");
    };
    assert!(*first > 1 && rest.iter().all(|count| *count == 1), "{about:?}");
}

#[test]
fn an_interval_without_rows_has_its_losses() {
    let requests = requests(&interval_of(Vec::new()));
    let [request] = requests.as_slice() else {
        panic!("one request");
    };
    assert!(profiles(request)[0].samples.is_empty() && !profiles(request)[0].attribute_indices.is_empty());
}
