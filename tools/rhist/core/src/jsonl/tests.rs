// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::measure::cpu_ms;
use crate::table::Dist;
use crate::table::Forgets;
use crate::table::Key;

const HEADER: &str = r#"{"type":"header","schema":1,"trigger":"hist:keys=a","system":"s","event":"e","name":null,"filter":null,"paused":false,"size":2048,"clock":null,"boot_id":null,"realtime_ns":1,"monotonic_ns":2,"keys":[{"name":"a","type":"int","modifier":null,"unit":null}],"values":[{"name":"hitcount","type":"u64","modifier":null,"unit":null,"bucket_unit":null},{"name":"lat","type":"u64","modifier":null,"unit":"us","bucket_unit":null}],"variables":["x"],"actions":[{"handler":"onmatch","action":"trace","saved":[]},{"handler":"onmax","action":"trace","saved":[]},{"handler":"onmax","action":"save","saved":["comm"]}]}"#;
const TRAILER: &str = r#"{"type":"trailer","hits":5,"entries":1,"shown":1,"dropped":7,"excess":3,"no_bucket":null,"unresolved":4,"missed":2,"snapshot":null,"complete":true}"#;

/// An entry with this key and this value.
fn entry(key: &str, value: &str) -> String {
    let actions = r#"[null,{"value":9,"saved":[]},{"value":-4,"saved":["sh"]}]"#;
    format!(r#"{{"type":"entry","keys":[{key}],"values":[5,{value}],"variables":[null],"actions":{actions}}}"#)
}

fn file(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn key(key: &str) -> Result<Key, String> {
    let read = read(file(&[HEADER, &entry(key, "0"), TRAILER]).as_bytes());
    let mut histograms = read.map_err(|error| error.to_string())?;
    let mut rows = histograms.remove(0).table.rows;
    Ok(rows.remove(0).keys.remove(0))
}

#[test]
fn keys_of_all_kinds() {
    let frame = |address, symbol: Option<&str>| crate::table::Frame {
        address: Some(address),
        symbol: symbol.map(str::to_owned),
    };
    let text = |bytes: &[u8]| Ok(Key::Text(crate::table::Text::from(bytes)));
    assert_eq!(key("-3"), Ok(Key::Number(-3)));
    assert_eq!(key("18446744073709551615"), Ok(Key::Number(u64::MAX.into())));
    assert_eq!(key(r#""a\n\u0001\"""#), text(b"a\n\x01\""));
    assert_eq!(key(r#"{"text":"caf\ufffd","bytes":"636166e9"}"#), text(b"caf\xe9"));
    assert_eq!(
        key(r#"{"value":17,"comm":{"text":"?","bytes":"ff"}}"#),
        Ok(Key::Task {
            pid: 17,
            comm: crate::table::Text::from(&[0xff][..])
        })
    );
    let syscall = |number, name: Option<&str>| Key::Syscall {
        number,
        name: name.map(str::to_owned),
    };
    assert_eq!(key(r#"{"value":0,"syscall":"sys_read"}"#), Ok(syscall(0, Some("read"))));
    assert_eq!(key(r#"{"value":-1,"syscall":null}"#), Ok(syscall(-1, None)));
    let text = |path: &str| Key::Text(path.into());
    assert_eq!(key(r#"{"value":26,"cgroup":"/a/b"}"#), Ok(text("/a/b")));
    assert_eq!(key(r#"{"value":null,"cgroup":"<gone>"}"#), Ok(text("<gone>")));
    assert_eq!(key(r#"{"value":26,"cgroup":null}"#), Ok(Key::Number(26)));
    assert_eq!(
        key(r#"{"address":"0xffffffff810c2fd0","symbol":"do_idle+0x12/0x30"}"#),
        Ok(Key::Address(frame(0xffffffff810c2fd0, Some("do_idle+0x12/0x30"))))
    );
    assert_eq!(
        key(r#"{"stack":[{"address":"0x1","symbol":"f"},{"address":"0x2","symbol":null}]}"#),
        Ok(Key::Stack(vec![frame(1, Some("f")), frame(2, None)]))
    );
    let place = |object, offset, is_exact| crate::table::Place {
        object,
        offset,
        is_exact,
    };
    assert_eq!(
        key(
            r#"{"ustack":[{"object":3,"offset":18446744073709551615,"exact":true},{"object":null,"offset":null,"exact":false},{"object":0,"offset":7,"exact":false}],"end":"no rules"}"#
        ),
        Ok(Key::Program(Box::new(crate::table::ProgramStack {
            places: vec![Some(place(3, u64::MAX, true)), None, Some(place(0, 7, false))],
            end: "no rules".into(),
        })))
    );
    assert_eq!(
        key(r#"{"ustack":[],"end":"whole"}"#),
        Ok(Key::Program(Box::new(crate::table::ProgramStack {
            places: Vec::new(),
            end: "whole".into(),
        })))
    );
    assert_eq!(
        key(r#"{"first":8,"last":15,"more":[{}]}"#),
        Ok(Key::Range { first: 8, last: 15 })
    );
    assert_eq!(key("null").map(|key| key.to_string()), Ok("?".to_owned()));
}

#[test]
fn a_whole_file() {
    let histograms = read(file(&[HEADER, &entry("1", "3"), TRAILER]).as_bytes()).unwrap();
    insta::assert_debug_snapshot!(histograms);
}

#[test]
fn nothing_is_no_histogram() {
    assert_eq!(read(&b""[..]).unwrap(), []);
    assert_eq!(read(&b"\n \n"[..]).unwrap(), []);
}

#[test]
fn several_histograms() {
    let lines = [HEADER, &entry("1", "3"), TRAILER];
    let histograms = read(file(&[lines, lines].concat()).as_bytes()).unwrap();
    assert_eq!(histograms.len(), 2);
    assert_eq!(histograms[0], histograms[1]);
}

#[test]
fn says_what_is_wrong() {
    let good = entry("1", "3");
    let version = HEADER.replace("\"schema\":1", "\"schema\":2");
    let without_size = HEADER.replace("\"size\":2048,", "");
    let long = format!("{HEADER}{}", " ".repeat(1 << 20));
    let dist =
        r#"{"count":1,"sum":1,"min":1,"max":1,"zero_count":0,"scale":21,"positive":{},"negative":{},"quantiles":{}}"#;
    let wrong: &[&[&str]] = &[
        &[HEADER, &good],
        &[HEADER, HEADER],
        &[&version],
        &[&without_size],
        &["{\"type\":\"header\"}"],
        &["# event histogram"],
        &[&good],
        &[TRAILER],
        &[HEADER, TRAILER],
        &[HEADER, &good[..40]],
        &[&HEADER[..40]],
        &[HEADER, &entry("1,2", "3")],
        &[HEADER, &entry("1", "\"3\"")],
        &[HEADER, &entry("1", "1.5")],
        &[HEADER, &entry("1", "18446744073709551616")],
        &[HEADER, &entry("[]", "3")],
        &[HEADER, &entry("{}", "3")],
        &[HEADER, &entry("{\"text\":\"?\",\"bytes\":\"f\"}", "3")],
        &[HEADER, &entry("{\"address\":\"1\",\"symbol\":null}", "3")],
        &[HEADER, &entry("1", dist)],
        &[&long],
    ];
    let said = wrong.iter().map(|lines| match read(file(lines).as_bytes()) {
        Ok(histograms) => format!("{histograms:?}"),
        Err(error) => error.to_string(),
    });
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"));
}

#[test]
fn bytes_that_are_no_utf8() {
    let mut bytes = file(&[HEADER]).into_bytes();
    bytes.extend(b"{\"type\":\"entry\",\"keys\":[\"\xff\"]}\n");
    assert!(matches!(read(&bytes[..]), Err(ReadError::Format { line: 2, .. })));
}

/// Prints milliseconds of CPU time. Run with `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed_of_many_entries() {
    let dist = r#"{"count":8,"sum":1,"min":-5000,"max":3000,"zero_count":2,"scale":3,"positive":{"-1":1,"0":1,"12":1,"40":1,"41":1,"42":1},"negative":{},"quantiles":{"50":0,"90":1,"99":3,"99.9":2953.7}}"#;
    for (name, value) in [("numbers", "123456"), ("distributions", dist)] {
        let mut text = file(&[HEADER]);
        for n in 0..131_072 {
            text += &entry(&n.to_string(), value);
            text.push('\n');
        }
        text += &TRAILER.replace("\"shown\":1", "\"shown\":131072");
        let start = cpu_ms();
        let histograms = read(text.as_bytes()).unwrap();
        let ms = cpu_ms() - start;
        assert_eq!(histograms[0].table.rows.len(), 131_072);
        println!("{name}: {ms:.1} ms for {} bytes a line", text.len() / 131_072);
    }
}

#[test]
fn a_distribution_keeps_its_buckets() {
    let value = r#"{"count":9,"sum":-5,"min":-3,"max":7,"zero_count":2,"scale":3,"positive":{"22":1,"-1":0},"negative":{"12":1},"quantiles":{"50":null}}"#;
    let histograms = read(file(&[HEADER, &entry("1", value), TRAILER]).as_bytes()).unwrap();
    let expected = Dist {
        scale: 3,
        count: 9,
        sum: Some(-5),
        min: Some(-3),
        max: Some(7),
        zero: 2,
        positive: [(22, 1)].into(),
        negative: [(12, 1)].into(),
        ..Dist::default()
    };
    assert_eq!(histograms[0].table.rows[0].values, [Value::Dist(expected)]);
}

#[test]
fn what_was_counted_while_it_was_read() {
    let dist = r#"{"count":5,"sum":9,"min":1,"max":3,"zero_count":1,"scale":3,"positive":{"1":3},"negative":{},"quantiles":{}}"#;
    let count = |no_bucket: &str| {
        let trailer = TRAILER.replace("\"no_bucket\":null", &format!("\"no_bucket\":{no_bucket}"));
        let histograms = read(file(&[HEADER, &entry("1", dist), &trailer]).as_bytes()).unwrap();
        match &histograms[0].table.rows[0].values[..] {
            [Value::Dist(dist)] => dist.count,
            values => panic!("{values:?}"),
        }
    };
    assert_eq!(count("0"), 4);
    // The difference may be values without a bucket.
    assert_eq!(count("1"), 5);
    assert_eq!(count("null"), 5);
}

/// Rows of a key are as the kernel shows them for a moment, while it takes out the first one.
#[test]
fn a_key_that_has_begun_again() {
    let rows = |header: &str| {
        let entry =
            |begin, hits| entry("1", hits).replacen(r#""keys""#, &format!(r#""begin_boottime_ns":{begin},"keys""#), 1);
        let header = header.replacen(
            r#""paused""#,
            r#""begin":{"boottime_ns":5,"realtime_ns":9},"paused""#,
            1,
        );
        let trailer = TRAILER.replacen(r#""entries":1,"shown":1"#, r#""entries":2,"shown":2"#, 1);
        let text = file(&[&header, &entry(10, "3"), &entry(20, "4"), &trailer]);
        let table = read(text.as_bytes()).unwrap().remove(0).table;
        table.rows.iter().map(|row| row.keys[0].to_string()).collect::<Vec<_>>()
    };
    let forgets = HEADER.replacen(r#""size":2048"#, r#""size":2048,"expire_ns":60000000000"#, 1);
    assert_eq!(rows(&forgets), ["1", "expired"]);
    assert_eq!(rows(HEADER), ["1", "1"]);
}

/// Counts of keys without a row are rows with a key of their own.
#[test]
fn keys_without_a_row() {
    let other = |folded: &str| {
        let other =
            format!(r#""other":{{"folded":{folded},"expired":{{"hitcount":3,"values":[3,9]}},"recycled":null}}"#);
        let more = format!(r#","rejected":0,{other},"expired_entries":2,"recycled_entries":0,"expired_set":1}}"#);
        let header = HEADER.replacen(
            r#""size":2048"#,
            r#""size":2048,"size_max":4096,"expire_ns":60000000000,"expire_taken":true,"full":["recycle","other"]"#,
            1,
        );
        let trailer = TRAILER.replacen(r#""hits":5"#, r#""hits":12"#, 1).replace('}', &more);
        read(file(&[&header, &entry("1", "3"), &trailer]).as_bytes())
    };
    let histogram = other(r#"{"hitcount":4,"values":[4,7]}"#).unwrap().remove(0);
    let rows: Vec<_> = histogram
        .table
        .rows
        .iter()
        .map(|row| (&row.keys[0], row.hits, &row.values[0]))
        .collect();
    let number = Value::Number;
    assert_eq!(
        rows,
        [
            (&Key::Number(1), 5, &number(3)),
            (&Key::Other(Other::Expired), 3, &number(9)),
            (&Key::Other(Other::Folded), 4, &number(7)),
        ]
    );
    assert_eq!(
        (histogram.hits, histogram.entries, histogram.table.entries()),
        (12, 1, 1)
    );
    let forgets = Some(Forgets {
        idle_ns: Some(60_000_000_000),
        taken: true,
    });
    assert_eq!(
        (histogram.size, histogram.forgets, histogram.expired_set),
        (4096, forgets, Some(1))
    );
    assert_eq!(other("null").unwrap()[0].table.rows.len(), 2);
    assert_eq!(
        other(r#"{"hitcount":0,"values":[0,null]}"#).unwrap()[0]
            .table
            .rows
            .len(),
        2
    );
    for folded in [
        r#"{"hitcount":4,"values":[]}"#,
        r#"{"hitcount":4,"values":[4]}"#,
        r#"{"hitcount":4}"#,
        "4",
    ] {
        assert!(
            matches!(other(folded), Err(ReadError::Format { line: 3, .. })),
            "{folded}"
        );
    }
}
