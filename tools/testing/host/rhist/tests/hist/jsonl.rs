// SPDX-License-Identifier: GPL-2.0

//! The `hist_jsonl` file: every line matches its schema, and has the same contents as `hist`.

use std::collections::BTreeSet;

use boon::Compiler;
use boon::SchemaIndex;
use boon::Schemas;
use kernel::error::Result as KernelResult;
use kernel::sync::Arc;
use proptest::prelude::*;
use rhist::hist::show;
use rhist::hist::show::IntervalView;
use rhist::hist::show::Names;
use rhist::hist::show::Origin;
use rhist::hist::show::View;
use rhist::hist::Begins;
use rhist::hist::Ended;
use rhist::hist::Histogram;
use rhist::hist::IntervalReader;
use rhist::text::Text;
use serde_json::json;
use serde_json::Value;

use super::events::*;
use super::intervals::ended_now;
use super::world::*;

const SCHEMA: &str = include_str!("../../../../../../Documentation/hist_jsonl.schema.json");

/// The schema, changed to allow no other members in objects than the named ones.
struct Schema {
    all: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn new() -> Self {
        fn close(value: &mut Value) {
            match value {
                Value::Array(items) => items.iter_mut().for_each(close),
                Value::Object(members) => {
                    members.values_mut().for_each(close);
                    let is_object = members.get("type") == Some(&json!("object"));
                    if is_object && members.contains_key("properties") {
                        members.insert("additionalProperties".into(), json!(false));
                    }
                }
                _ => (),
            }
        }
        let mut schema = serde_json::from_str(SCHEMA).unwrap();
        close(&mut schema);
        let mut compiler = Compiler::new();
        compiler.add_resource("urn:hist_jsonl", schema).unwrap();
        let mut all = Schemas::new();
        let index = compiler.compile("urn:hist_jsonl", &mut all).unwrap();
        Self { all, index }
    }

    fn allows(&self, line: &Value) -> bool {
        self.all.validate(line, self.index).is_ok()
    }

    #[track_caller]
    fn check(&self, line: &Value) {
        if let Err(error) = self.all.validate(line, self.index) {
            panic!("{line}: {error}");
        }
    }
}

std::thread_local! {
    static SCHEMA_OF_THREAD: Schema = Schema::new();
}

/// One histogram of the file.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    header: Value,
    pub(crate) entries: Vec<Value>,
    pub(crate) trailer: Value,
}

impl Said {
    /// A column of all entries.
    pub(crate) fn column(&self, name: &str, n: usize) -> Vec<Value> {
        let cells = self.entries.iter().map(|entry| entry[name][n].clone());
        cells.collect()
    }
}

/// Reads a file: lines that the schema allows, and of each histogram a header, entries with as many
/// columns as the header has, and a trailer with the number of entries.
#[track_caller]
pub(crate) fn read(file: &str) -> Vec<Said> {
    let mut all = Vec::new();
    assert!(file.is_empty() || file.ends_with('\n'));
    let mut lines = file
        .lines()
        .map(|line| match serde_json::from_str::<Value>(line) {
            Ok(value) => {
                SCHEMA_OF_THREAD.with(|schema| schema.check(&value));
                value
            }
            Err(error) => panic!("{line}: {error}"),
        });
    while let Some(header) = lines.next() {
        assert_eq!(header["type"], "header");
        let mut entries = Vec::new();
        let trailer = loop {
            let line = lines.next().expect("no trailer");
            match line["type"].as_str() {
                Some("entry") => entries.push(line),
                _ => break line,
            }
        };
        assert_eq!(trailer["type"], "trailer");
        assert_eq!(trailer["shown"], entries.len());
        for entry in &entries {
            for columns in ["keys", "values", "variables", "actions"] {
                let len = |line: &Value| line[columns].as_array().unwrap().len();
                assert_eq!(len(entry), len(&header), "{columns} of {entry}");
            }
        }
        all.push(Said {
            header,
            entries,
            trailer,
        });
    }
    all
}

/// Reads a file to check that it can be parsed.
pub(crate) fn check(file: &str) {
    read(file);
}

fn jsonl_file(view: View<'_>) -> String {
    text(|out| show_jsonl(out, [view].into_iter(), &Functions))
}

#[track_caller]
fn said(hist: &Arc<Histogram>) -> Said {
    read(&jsonl_file(view(hist))).swap_remove(0)
}

/// Returns the only histogram of an event.
#[track_caller]
fn said_of(world: &World, event: &str) -> Said {
    let [said] = &read(&world.hist_jsonl(event))[..] else {
        panic!("more than one histogram");
    };
    said.clone()
}

/// Returns the bytes of a string.
fn bytes_of(string: &Value) -> Vec<u8> {
    if let Some(text) = string.as_str() {
        return text.as_bytes().to_vec();
    }
    let digits = string["bytes"].as_str().unwrap();
    let bytes: Vec<_> = (0..digits.len() / 2)
        .map(|n| u8::from_str_radix(&digits[2 * n..][..2], 16).unwrap())
        .collect();
    assert!(std::str::from_utf8(&bytes).is_err(), "{string}");
    assert_eq!(string["text"], *String::from_utf8_lossy(&bytes));
    bytes
}

#[test]
fn a_file() {
    let event = sched_waking();
    let (pids, comms) = (
        hist(&event, "keys=pid:vals=prio.hex:sort=pid"),
        hist(&event, "keys=comm:vals=prio:size=128:nohitcount"),
    );
    for pid in [-1, 7, 7] {
        waking(b"a\"task\\\n\x1b\x7f", pid).hit(&pids);
    }
    waking("t\u{e4}sk".as_bytes(), 1).hit(&comms);
    let views = [
        view(&pids),
        View {
            paused: true,
            filter: Some(b"comm == \"x\""),
            name: Some(b"name=foo"),
            ..view(&comms)
        },
    ];
    assert_eq!(
        text(|out| show_jsonl(out, views.into_iter(), &Functions)),
        concat!(
            r#"{"type":"header","schema":1,"trigger":"hist:keys=pid:vals=hitcount,prio.hex:sort=pid:size=2048","#,
            r#""system":"test","event":"zoo","name":null,"filter":null,"paused":false,"size":2048,"clock":null,"#,
            r#""boot_id":"01234567-89ab-cdef-0123-456789abcdef","realtime_ns":1700000000123456789,"#,
            r#""monotonic_ns":987654321,"begin":{"boottime_ns":1000000007,"realtime_ns":1600000001000000007},"#,
            r#""keys":[{"name":"pid","type":"pid_t","modifier":null,"unit":null}],"#,
            r#""values":[{"name":"hitcount","type":"u64","modifier":null,"unit":null,"bucket_unit":null},"#,
            r#"{"name":"prio","type":"int","modifier":"hex","unit":null,"bucket_unit":null}],"variables":[],"#,
            r#""actions":[]}"#,
            "\n",
            r#"{"type":"entry","begin_boottime_ns":1000000007,"keys":[-1],"values":[1,120],"variables":[],"actions":[]}"#,
            "\n",
            r#"{"type":"entry","begin_boottime_ns":1000000007,"keys":[7],"values":[2,240],"variables":[],"actions":[]}"#,
            "\n",
            r#"{"type":"trailer","hits":3,"entries":2,"shown":2,"dropped":0,"excess":0,"no_bucket":null,"#,
            r#""unresolved":0,"missed":0,"rejected":0,"snapshot":null,"complete":true}"#,
            "\n",
            r#"{"type":"header","schema":1,"trigger":"#,
            r#""hist:name=foo:keys=comm:vals=prio:sort=hitcount:size=128:nohitcount if comm == \"x\"","#,
            r#""system":"test","event":"zoo","name":"foo","filter":"comm == \"x\"","paused":true,"size":128,"#,
            r#""clock":null,"boot_id":"01234567-89ab-cdef-0123-456789abcdef","realtime_ns":1700000000123456789,"#,
            r#""monotonic_ns":987654321,"begin":{"boottime_ns":1000000007,"realtime_ns":1600000001000000007},"#,
            r#""keys":[{"name":"comm","type":"char[16]","modifier":null,"unit":null}],"#,
            r#""values":[{"name":"hitcount","type":"u64","modifier":null,"unit":null,"bucket_unit":null},"#,
            r#"{"name":"prio","type":"int","modifier":null,"unit":null,"bucket_unit":null}],"#,
            r#""variables":[],"actions":[]}"#,
            "\n",
            r#"{"type":"entry","begin_boottime_ns":1000000007,"keys":["täsk"],"values":[1,120],"variables":[],"actions":[]}"#,
            "\n",
            r#"{"type":"trailer","hits":1,"entries":1,"shown":1,"dropped":0,"excess":0,"no_bucket":null,"#,
            r#""unresolved":0,"missed":0,"rejected":0,"snapshot":null,"complete":true}"#,
            "\n",
        )
    );
    assert_eq!(text(|out| show_jsonl(out, [].into_iter(), &Functions)), "");
    let unknown = Origin {
        boot_id: None,
        ..ORIGIN
    };
    let mut file = show::HistFile::jsonl([view(&pids)].into_iter(), &unknown).unwrap();
    let piece = file.next_piece(&Functions).unwrap().unwrap();
    let header = &read(std::str::from_utf8(piece.as_bytes()).unwrap())[0].header;
    assert_eq!(header["boot_id"], Value::Null);
}

/// A histogram begins when it is created, and again when it is cleared; other commands do not
/// change that.
#[test]
fn begin_of_the_histogram() {
    let world = World::usual();
    let command = "hist:keys=pid";
    let begin = |boot_ns: u64| json!({"boottime_ns": boot_ns, "realtime_ns": boot_ns + 1_600_000_000_000_000_000});
    BOOT_NS.set(10);
    world.add("sched_waking", command);
    for (boot_ns, attribute, expected) in [
        (20, "pause", 10),
        (30, "cont", 10),
        (40, "clear", 40),
        (50, "pause", 40),
        (60, "clear", 60),
    ] {
        BOOT_NS.set(boot_ns);
        world.add("sched_waking", &format!("{command}:{attribute}"));
        assert_eq!(
            said_of(&world, "sched_waking").header["begin"],
            begin(expected),
            "{attribute}"
        );
    }
}

/// An entry begins with the first hit of its key since the histogram began.
#[test]
fn begins_of_entries() {
    let world = World::usual();
    let command = "hist:keys=pid:vals=prio.dist:sort=pid";
    let hit = |boot_ns: u64, pid: i32| {
        BOOT_NS.set(boot_ns);
        world.hit("sched_waking", &waking(b"", pid), NOW);
    };
    let begins = || {
        let entries = said_of(&world, "sched_waking").entries;
        let begins = entries
            .iter()
            .map(|entry| (entry["keys"][0].clone(), entry["begin_boottime_ns"].clone()));
        begins.collect::<Vec<_>>()
    };
    BOOT_NS.set(10);
    world.add("sched_waking", command);
    hit(20, 5);
    hit(30, 4);
    hit(40, 5);
    assert_eq!(begins(), [(json!(4), json!(30)), (json!(5), json!(20))]);
    BOOT_NS.set(50);
    world.add("sched_waking", &format!("{command}:clear"));
    assert_eq!(begins(), []);
    hit(60, 5);
    assert_eq!(begins(), [(json!(5), json!(60))]);
}

/// The keys of a histogram that has counted a record of [`zoo`].
#[track_caller]
fn keys(params: &str, record: &Bytes) -> (Value, Value) {
    let hist = hist(&zoo(), params);
    record.hit(&hist);
    let said = said(&hist);
    assert_eq!(said.entries.len(), 1);
    (said.header["keys"].clone(), said.entries[0]["keys"].clone())
}

#[test]
fn keys_of_every_kind() {
    let stack: Vec<u8> = [2u64, 0x5005, 0x6006]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let record = Bytes::new(ZOO_END)
        .put(4, &77i32.to_ne_bytes())
        .put(8, &[0xff, 200])
        .put(12, &5u16.to_ne_bytes())
        .put(22, &i64::MIN.to_ne_bytes())
        .put(30, &u64::MAX.to_ne_bytes())
        .data_loc(67, b"dynamic\0")
        .data_loc(87, &stack);
    let symbol =
        |address: u64, name: &str| json!({"address": format!("{address:#x}"), "symbol": name});
    let frames = [0x1010, 0x2020, 0x3030].map(|at: u64| {
        let name = format!("function_{}+{:#x}/0x1000", at >> 12, at & 0xfff);
        symbol(at, &name)
    });
    for (key, type_, modifier, expected) in [
        ("s8", "s8", "", json!(-1)),
        ("u8", "u8", "", json!(200)),
        ("u16.hex", "u16", "hex", json!(5)),
        ("s64", "s64", "", json!(i64::MIN)),
        ("s64.hex", "s64", "hex", json!(i64::MIN)),
        ("u64", "u64", "", json!(u64::MAX)),
        ("common_cpu", "unsigned int", "", json!(1)),
        ("dyn", "__data_loc char[]", "", json!("dynamic")),
        ("common_comm", "char[]", "", json!("task")),
        (
            "common_pid.execname",
            "int",
            "execname",
            json!({"value": 77, "comm": "task"}),
        ),
        ("u16.sym", "u16", "sym", symbol(5, "function_0")),
        (
            "u16.sym-offset",
            "u16",
            "sym-offset",
            symbol(5, "function_0+0x5/0x1000"),
        ),
        (
            "u16.syscall",
            "u16",
            "syscall",
            json!({"value": 5, "syscall": null}),
        ),
        ("u16.log2", "u16", "log2", json!({"first": 5, "last": 8})),
        (
            "s8.log2",
            "s8",
            "log2",
            json!({"first": i64::MIN + 1, "last": -1}),
        ),
        (
            "s8.buckets=10",
            "s8",
            "buckets=10",
            json!({"first": -6, "last": -1}),
        ),
        // 2^63 is a multiple of 8, and not of 10.
        (
            "s64.buckets=8",
            "s64",
            "buckets=8",
            json!({"first": i64::MIN, "last": i64::MIN + 7}),
        ),
        (
            "s64.buckets=10",
            "s64",
            "buckets=10",
            json!({"first": i64::MIN, "last": i64::MAX}),
        ),
        (
            "u8.buckets=30",
            "u8",
            "buckets=30",
            json!({"first": 180, "last": 209}),
        ),
        (
            "u64.buckets=10",
            "u64",
            "buckets=10",
            json!({"first": u64::MAX - 5, "last": u64::MAX}),
        ),
        (
            "u8.log2=3",
            "u8",
            "log2=3",
            json!({"first": 198, "last": 215}),
        ),
        (
            "s8.log2=3",
            "s8",
            "log2=3",
            json!({"first": -1, "last": -1}),
        ),
        (
            "common_stacktrace",
            "unsigned long[]",
            "",
            json!({"stack": frames}),
        ),
        (
            "stack",
            "unsigned long[]",
            "stacktrace",
            json!({"stack": [symbol(0x5005, "function_5+0x5/0x1000"), symbol(0x6006, "function_6+0x6/0x1000")]}),
        ),
        ("7", "u64", "", json!(7)),
        ("s8-u8", "s8", "", json!(-201)),
        ("u8-u16*100", "u8", "", json!(-300)),
        ("u8+s8", "u8", "", json!(199)),
        ("-(u8)", "u8", "", json!(-200)),
        ("s8/u16", "s8", "", json!(u64::MAX / 5)),
    ] {
        let (header, entry) = keys(&format!("keys={key}"), &record);
        let modifier = (!modifier.is_empty()).then_some(modifier);
        assert_eq!(header[0]["type"], type_, "{key}");
        assert_eq!(header[0]["modifier"], json!(modifier), "{key}");
        assert_eq!(entry, json!([expected]), "{key}");
    }
    let (header, entry) = keys(
        "keys=u8.syscall,common_timestamp.usecs",
        &record.put(9, &[1]),
    );
    assert_eq!(entry, json!([{"value": 1, "syscall": "sys_write"}, 123457]));
    assert_eq!(
        (&header[0]["unit"], &header[1]["unit"]),
        (&Value::Null, &json!("us"))
    );
}

#[test]
fn powers_of_two() {
    let hist = hist(&zoo(), "keys=u64.log2:sort=u64");
    let values = [0, 1, 2, 3, 1 << 62, (1 << 62) + 1, 1 << 63, u64::MAX];
    for value in values {
        Bytes::new(ZOO_END)
            .put(30, &u64::to_ne_bytes(value))
            .hit(&hist);
    }
    let range = |first: u64, last: u64| json!({"first": first, "last": last});
    assert_eq!(
        said(&hist).column("keys", 0),
        [
            range(0, 1),
            range(2, 2),
            range(3, 4),
            range((1 << 61) + 1, 1 << 62),
            range((1 << 62) + 1, 1 << 63),
            range((1 << 63) + 1, u64::MAX),
        ]
    );
}

/// Values that `hist` formats in any way, or does not show.
#[test]
fn values_of_every_kind() {
    let hist = hist(
        &zoo(),
        "keys=u8:vals=s8.hex,u16.percent,u16.graph,u16*2,(u16*2),s8.min,s16.max,u16.avg:nohitcount",
    );
    for (s8, s16, u16) in [(-3i8, -5i16, 3u16), (2, -7, 4)] {
        Bytes::new(ZOO_END)
            .put(8, &s8.to_ne_bytes())
            .put(10, &s16.to_ne_bytes())
            .put(12, &u16.to_ne_bytes())
            .hit(&hist);
    }
    let said = said(&hist);
    assert_eq!(
        said.entries[0]["values"],
        json!([2, -1, 7, 7, 14, 14, -3, -5, 3])
    );
    let columns = said.header["values"].as_array().unwrap();
    let columns: Vec<_> = columns
        .iter()
        .map(|column| {
            let modifier = column["modifier"].as_str().unwrap_or("");
            (column["name"].as_str().unwrap(), modifier)
        })
        .collect();
    assert_eq!(
        columns,
        [
            ("hitcount", ""),
            ("s8", "hex"),
            ("u16", "percent"),
            ("u16", "graph"),
            ("u16*2", ""),
            ("(u16*2)", ""),
            ("s8", "min"),
            ("s16", "max"),
            ("u16", "avg"),
        ]
    );
}

#[test]
fn distributions() {
    let hist = hist(
        &zoo(),
        "keys=u8:vals=s64.dist,u64.dist=0:quantiles(50,99.9):unit(us)",
    );
    for value in [-5000i64, 0, 0, 1000, 1001, 3000] {
        Bytes::new(ZOO_END)
            .put(22, &value.to_ne_bytes())
            .put(30, &value.unsigned_abs().to_ne_bytes())
            .hit(&hist);
    }
    let said = said(&hist);
    let column = &said.header["values"][1];
    assert_eq!(column["modifier"], "dist");
    assert_eq!(
        (&column["unit"], &column["bucket_unit"]),
        (&json!("ns"), &json!("us"))
    );
    assert_eq!(said.header["values"][2]["modifier"], "dist=0");
    assert_eq!(said.header["values"][0]["bucket_unit"], Value::Null);
    let [_, signed, unsigned] = &said.entries[0]["values"].as_array().unwrap()[..] else {
        panic!();
    };
    // 1 µs is the end of bucket -1; 3 µs is in the bucket from 2^(12/8), 5 µs in the one from
    // 2^(18/8).
    assert_eq!(signed["positive"], json!({"-1": 1, "0": 1, "12": 1}));
    assert_eq!(signed["negative"], json!({"18": 1}));
    assert_eq!(
        (&signed["scale"], &signed["zero_count"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(
        (&signed["min"], &signed["max"]),
        (&json!(-5000), &json!(3000))
    );
    assert_eq!((&signed["count"], &signed["sum"]), (&json!(6), &json!(1)));
    assert_eq!(signed["quantiles"]["50"], 0);
    assert_eq!(
        unsigned["positive"],
        json!({"-1": 1, "0": 1, "1": 1, "2": 1})
    );
    assert_eq!(
        (&unsigned["scale"], &unsigned["sum"]),
        (&json!(0), &json!(10001))
    );
    let quantiles = unsigned["quantiles"].as_object().unwrap();
    assert_eq!(quantiles.keys().collect::<Vec<_>>(), ["50", "99.9"]);
    assert_eq!(said.trailer["no_bucket"], 0);
}

#[test]
fn a_limit() {
    let hist = hist(&sched_waking(), "keys=pid:vals=prio.dist:sort=pid:limit(2)");
    for pid in 0..5 {
        waking(b"", pid).hit(&hist);
    }
    let said = said(&hist);
    assert_eq!(said.column("keys", 0), [0, 1]);
    let trailer = &said.trailer;
    assert_eq!(
        (&trailer["hits"], &trailer["entries"], &trailer["shown"]),
        (&json!(5), &json!(5), &json!(2))
    );
}

/// The clauses that make room have members in the header, which others lack.
#[test]
fn room() {
    let names = ["size_max", "expire_ns", "expire_taken", "full"];
    for (clauses, members) in [
        ("", [None, None, None, None]),
        ("size=128..1000", [Some(json!(1024)), None, None, None]),
        (
            "expire(1500ms)",
            [None, Some(json!(1_500_000_000)), None, None],
        ),
        ("expire(taken)", [None, None, Some(json!(true)), None]),
        ("full(other)", [None, None, None, Some(json!(["other"]))]),
        (
            "full(other,recycle):expire(8760h,taken):size=128..1048576",
            [
                Some(json!(1 << 20)),
                Some(json!(31_536_000_000_000_000u64)),
                Some(json!(true)),
                Some(json!(["recycle", "other"])),
            ],
        ),
    ] {
        let params = format!("keys=pid:v=prio:size=128:{clauses}");
        let said = said(&hist(&sched_waking(), params.trim_end_matches(':')));
        assert_eq!(said.header["size"], 128);
        let found = names.map(|name| said.header.get(name).cloned());
        assert_eq!(found, members, "{clauses}");
    }
}

#[test]
fn what_is_lost() {
    let hist = hist(&zoo(), "keys=u16:vals=u64.dist=5:buckets(1):size=128");
    for key in 0..200u16 {
        for round in 0..5 {
            let record = Bytes::new(ZOO_END).put(12, &key.to_ne_bytes());
            record.put(30, &(1u64 << round).to_ne_bytes()).hit(&hist);
        }
    }
    let said = said(&hist);
    let sum = |name: &str| said.trailer[name].as_u64().unwrap();
    assert_eq!(sum("hits") + sum("dropped"), 1000);
    assert!(sum("dropped") > 0);
    let buckets = said.column("values", 1);
    let in_buckets = buckets.iter().map(|distribution| {
        let counts = distribution["positive"].as_object().unwrap();
        counts
            .values()
            .map(|count| count.as_u64().unwrap())
            .sum::<u64>()
    });
    assert_eq!(in_buckets.sum::<u64>() + sum("no_bucket"), sum("hits"));
    assert!(sum("no_bucket") > 0);
    // Each entry has the number of its own buckets.
    let of_entries = buckets.iter().map(|distribution| {
        let counts = distribution["positive"].as_object().unwrap();
        let counts = counts.values().map(|count| count.as_u64().unwrap());
        let lost = distribution["no_bucket"].as_u64().unwrap();
        assert_eq!(
            counts.sum::<u64>() + lost,
            distribution["count"].as_u64().unwrap()
        );
        lost
    });
    assert_eq!(of_entries.sum::<u64>(), sum("no_bucket"));
    for (line, distribution) in entries(&hist).iter().zip(&buckets) {
        let lost = match distribution["no_bucket"].as_u64().unwrap() {
            0 => None,
            lost => Some(format!("{lost:>10}")),
        };
        let shown = line
            .split_once("  without bucket: ")
            .map(|(_, shown)| shown.to_owned());
        assert_eq!(shown, lost, "{line}");
    }
}

#[test]
fn variables() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:ts=common_timestamp.usecs,p=prio,c=comm,s=common_stacktrace,k=5",
    );
    world.add(
        "sched_switch",
        "hist:keys=next_pid:lat=common_timestamp.usecs-$ts",
    );
    let record = waking(b"\xffwoken", 5).put(28, &(-4i32).to_ne_bytes());
    world.hit("sched_waking", &record, NOW);
    let before = said_of(&world, "sched_waking");
    assert_eq!(
        before.header["variables"],
        json!(["ts", "p", "c", "s", "k"])
    );
    assert_eq!(before.header["clock"], "global");
    let comm = json!({"text": "\u{fffd}woken", "bytes": "ff776f6b656e"});
    let frames = STACK.map(|at| {
        let name = format!("function_{}+{:#x}/0x1000", at >> 12, at & 0xfff);
        json!({"address": format!("{at:#x}"), "symbol": name})
    });
    assert_eq!(
        before.entries[0]["variables"],
        json!([1000, -4, comm, {"stack": frames}, 5])
    );
    // A read-once variable is unset by a hit; showing it does not unset it.
    let record = switch((b"before", 1), (b"woken", 5));
    world.hit(
        "sched_switch",
        &record,
        Moment {
            time: 3_000_000,
            ..NOW
        },
    );
    assert_eq!(
        said_of(&world, "sched_waking").entries[0]["variables"][0],
        Value::Null
    );
    let after = said_of(&world, "sched_switch");
    assert_eq!(after.entries[0]["variables"], json!([2000]));
    world.hit("sched_switch", &record, NOW);
    let after = said_of(&world, "sched_switch");
    assert_eq!(
        (&after.trailer["hits"], &after.trailer["unresolved"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn actions() {
    let world = World::usual();
    world.add(
        "sched_waking",
        "hist:keys=pid:p=prio:onmax($p).save(comm,target_cpu):onchange($p).snapshot():onmatch(sched.sched_waking).small(prio)",
    );
    let header = json!([
        {"handler": "onmax", "action": "save", "saved": ["comm", "target_cpu"]},
        {"handler": "onchange", "action": "snapshot", "saved": []},
        {"handler": "onmatch", "action": "trace", "saved": []},
    ]);
    let wake = |prio: i32, comm: &[u8]| {
        let record = waking(comm, 9).put(28, &prio.to_ne_bytes());
        world.hit("sched_waking", &record, NOW);
        said_of(&world, "sched_waking")
    };
    // 0 is not a new maximum, and not a change.
    let said = wake(0, b"zero");
    assert_eq!(said.header["actions"], header);
    assert_eq!(said.entries[0]["actions"], json!([null, null, null]));
    assert_eq!(said.trailer["snapshot"], Value::Null);
    let said = wake(120, b"first");
    assert_eq!(
        said.entries[0]["actions"],
        json!([{"value": 120, "saved": ["first", 3]}, {"value": 120, "saved": []}, null])
    );
    assert_eq!(said.trailer["snapshot"], json!({"value": 120, "keys": [9]}));
    let said = wake(100, b"\xfe");
    assert_eq!(
        said.entries[0]["actions"],
        json!([{"value": 120, "saved": ["first", 3]}, {"value": 100, "saved": []}, null])
    );
}

/// A reader that stops early knows that more would follow.
#[test]
fn a_part_of_a_file() {
    let hist = hist(&sched_waking(), "keys=pid,comm");
    for pid in 0..40 {
        waking(b"a \"task\"\n", pid).hit(&hist);
    }
    let file = jsonl_file(view(&hist));
    assert_eq!(read(&file).len(), 1);
    let complete = |part: &str| {
        part.lines().any(|line| {
            let line: Result<Value, _> = serde_json::from_str(line);
            line.is_ok_and(|line| line["complete"] == true)
        })
    };
    for end in 0..file.len() - 1 {
        assert!(!complete(&file[..end]), "{end}");
    }
    assert!(complete(&file));
}

/// Large files come in pieces, which end with a line. Each is made on demand, and once more after
/// an error.
#[test]
fn pieces() {
    let event = sched_waking();
    let hists = [
        hist(&event, "keys=pid,comm,common_stacktrace"),
        hist(&event, "keys=prio"),
    ];
    for pid in 0..2000 {
        hists
            .iter()
            .for_each(|hist| waking(b"a task", pid).hit(hist));
    }
    let views = || hists.iter().map(view);
    let whole = text(|out| show_jsonl(out, views(), &Functions));
    assert_eq!(read(&whole).len(), 2);
    let mut file = show::HistFile::jsonl(views(), &ORIGIN).unwrap();
    // Later hits are not in it.
    waking(b"a task", 3000).hit(&hists[0]);
    for _ in 0..2 {
        let pieces = super::events::pieces(&mut file);
        assert_eq!(pieces.concat(), whole);
        assert!(pieces.iter().all(|piece| piece.ends_with('\n')));
        file.rewind();
    }
}

/// An address without a symbol, which the kernel prints as the address.
#[test]
fn addresses_of_nothing() {
    struct Unknown;

    impl Names for Unknown {
        fn symbol(&self, out: &mut Text, address: u64, _: bool) -> KernelResult {
            out.format(format_args!("{address:#x}"))
        }

        fn syscall(&self, _: u64) -> Option<&[u8]> {
            None
        }

        fn address(&self, _: &mut Text, _: &Histogram) -> KernelResult {
            Ok(())
        }

        fn check_signal(&self) -> KernelResult {
            Ok(())
        }
    }

    let hist = hist(&sched_waking(), "keys=pid.sym");
    waking(b"", 0x1234).hit(&hist);
    let file = text(|out| show_jsonl(out, [view(&hist)].into_iter(), &Unknown));
    assert_eq!(
        read(&file)[0].entries[0]["keys"],
        json!([{"address": "0x1234", "symbol": null}])
    );
}

/// The lines of an interval match the schema, also after the end of the histogram.
#[test]
fn intervals() {
    let hist = hist(&sched_waking(), "keys=pid:vals=prio.max,prio.dist");
    let reader = IntervalReader::new(&hist, Begins::WithHistogram).unwrap();
    let said = |ended: Option<Ended>| {
        let mut interval = reader
            .take(reader.room().unwrap(), ended.map(ended_now))
            .unwrap();
        let view = IntervalView {
            view: view(&hist),
            reader: Some(&reader),
            interval: &mut interval,
            ended,
            lost: 3,
        };
        let file = text(|out| {
            let views = [view].into_iter();
            show_whole(
                out,
                show::HistFile::intervals_jsonl(views, &ORIGIN)?,
                &Functions,
            )
        });
        let said = read(&file).swap_remove(0);
        let edge = |name: &str| {
            said.header["interval"][name]["boottime_ns"]
                .as_u64()
                .unwrap()
        };
        assert!(edge("begin") < edge("end"));
        let interval = &said.header["interval"];
        assert_eq!(interval["lost_histograms"], 3);
        let hits = said.trailer["hits"].as_u64().unwrap();
        (
            hits,
            interval["ended"].clone(),
            interval["begin"].clone(),
            interval["end"].clone(),
        )
    };
    let wait = || BOOT_NS.set(BOOT_NS.get() + 5);
    waking(b"", 1).hit(&hist);
    wait();
    drop(hist.cut(CLOCKS.now()).unwrap());
    hist.fold(|| ());
    hist.end_cut();
    let (hits, ended, _, end) = said(None);
    assert_eq!((hits, ended), (1, Value::Null));
    waking(b"", 1).hit(&hist);
    waking(b"", 2).hit(&hist);
    wait();
    let (hits, ended, begin, _) = said(Some(Ended::Removed));
    assert_eq!((hits, ended, begin), (2, json!("removed"), end));
}

/// The examples of the documentation: a file, a distribution, a string.
#[test]
fn the_documentation() {
    let page = include_str!("../../../../../../Documentation/hist_jsonl.rst");
    let blocks = page.split("::\n\n").skip(1).map(|rest| {
        let lines = rest
            .lines()
            .take_while(|line| line.is_empty() || line.starts_with("    "));
        lines.collect::<String>()
    });
    let values: Vec<Vec<Value>> = blocks
        .filter(|block| block.starts_with("    {"))
        .map(|block| {
            let values = serde_json::Deserializer::from_str(&block).into_iter();
            values.collect::<Result<_, _>>().unwrap()
        })
        .collect();
    let [file, distribution, string] = &values[..] else {
        panic!("{values:?}");
    };
    let lines: Vec<_> = file.iter().map(|line| format!("{line}\n")).collect();
    let said = read(&lines.concat()).swap_remove(0);
    assert_eq!(said.entries.len(), 2);
    let mut line = said.entries[0].clone();
    line["values"][1] = distribution[0].clone();
    line["keys"][1] = string[0].clone();
    SCHEMA_OF_THREAD.with(|schema| schema.check(&line));
    assert_eq!(bytes_of(&string[0]), b"caf\xe9");
}

/// The schema refuses wrong lines: so it means something that it allows all others.
#[test]
fn the_schema_refuses() {
    let hist = hist(&sched_waking(), "keys=pid:vals=prio.dist:x=pid");
    waking(b"", 1).hit(&hist);
    let said = said(&hist);
    let schema = Schema::new();
    let lines = [&said.header, &said.entries[0], &said.trailer];
    for line in lines {
        assert!(schema.allows(line));
        for name in line.as_object().unwrap().keys() {
            let mut other = line.clone();
            other.as_object_mut().unwrap().remove(name);
            assert!(!schema.allows(&other), "without {name}: {line}");
            let mut other = line.clone();
            other[name] = json!({"nothing": 1});
            assert!(!schema.allows(&other), "another {name}: {line}");
        }
        let mut other = line.clone();
        other["more"] = json!(1);
        assert!(!schema.allows(&other), "{line}");
    }
}

proptest! {
    /// Any bytes in a string, and in parts of a trigger.
    #[test]
    fn strings(
        comm in prop::collection::vec(any::<u8>(), 0..16),
        filter in prop::collection::vec(any::<u8>(), 0..40),
        name in ".{0,20}",
    ) {
        let hist = hist(&sched_waking(), "keys=comm:c=comm");
        waking(&comm, 1).hit(&hist);
        let token = [b"name=", name.as_bytes()].concat();
        let view = View { name: Some(&token), filter: Some(&filter), ..view(&hist) };
        let said = read(&jsonl_file(view)).swap_remove(0);
        let until_nul = comm.split(|&byte| byte == 0).next().unwrap();
        prop_assert_eq!(bytes_of(&said.entries[0]["keys"][0]), until_nul);
        prop_assert_eq!(bytes_of(&said.entries[0]["variables"][0]), until_nul);
        prop_assert_eq!(bytes_of(&said.header["filter"]), &filter[..]);
        prop_assert_eq!(bytes_of(&said.header["name"]), name.as_bytes());
        let trigger = bytes_of(&said.header["trigger"]);
        prop_assert!(trigger.ends_with(&[b" if ", &filter[..]].concat()));
    }

    /// The numbers equal `hist`'s, which shows negative ones as unsigned.
    #[test]
    fn numbers(hits in prop::collection::vec((-9i32..9, any::<i32>()), 1..100)) {
        let hist = hist(&sched_waking(), "keys=pid:vals=prio,prio.min,prio.max,prio.avg:sort=pid");
        for (n, &(pid, prio)) in hits.iter().enumerate() {
            waking(b"", pid).put(28, &prio.to_ne_bytes()).hit_in(&hist, n % CPUS, &[0; 16]);
        }
        let said = said(&hist);
        let number = |value: &Value| match value.as_i64() {
            Some(number) => number,
            None => value.as_u64().unwrap() as i64,
        };
        let lines: Vec<_> = said
            .entries
            .iter()
            .map(|entry| {
                let values: Vec<_> = entry["values"].as_array().unwrap().iter().map(number).collect();
                format!(
                    "{{ pid: {:>10} }} hitcount: {:>10}  prio: {:>10}  prio.min: {:>10}  prio.max: {:>10}  \
                     prio.avg: {:>10}",
                    number(&entry["keys"][0]) as u64, values[0], values[1] as u64, values[2], values[3], values[4]
                )
            })
            .collect();
        prop_assert_eq!(lines, entries(&hist));
        let pids: BTreeSet<_> = hits.iter().map(|&(pid, _)| pid).collect();
        prop_assert_eq!(said.trailer["entries"].as_u64(), Some(pids.len() as u64));
        prop_assert_eq!(said.trailer["hits"].as_u64(), Some(hits.len() as u64));
    }

    /// The numbers of a distribution equal `hist`'s, and each value is in the bucket of its index.
    #[test]
    fn numbers_of_distributions(
        values in prop::collection::vec(prop_oneof![-20i64..20, any::<i64>(), any::<i32>().prop_map(i64::from)], 1..60),
        scale in 0u32..6,
    ) {
        let hist = hist(&zoo(), &format!("keys=u8:vals=s64.dist={scale}:buckets(64):size=128"));
        for value in &values {
            Bytes::new(ZOO_END).put(22, &value.to_ne_bytes()).hit(&hist);
        }
        let entry = said(&hist).entries.swap_remove(0);
        let dist = &entry["values"][1];
        let show = |value: &Value| format!("{:>10}", value.to_string());
        let quantiles: String = ["50", "90", "99", "99.9"]
            .iter()
            .map(|name| format!("p{name}: {}  ", show(&dist["quantiles"][name])))
            .collect();
        let shown = format!(
            "s64.dist:  count: {}  min: {}  {quantiles}max: {}  avg: ",
            show(&dist["count"]), show(&dist["min"]), show(&dist["max"])
        );
        let line = entries(&hist).swap_remove(0);
        prop_assert!(line.contains(&shown), "{}: {}", line, shown);
        let sum = values.iter().fold(0i64, |sum, &value| sum.wrapping_add(value));
        prop_assert_eq!(dist["sum"].as_i64(), Some(sum));
        let mut counted = dist["zero_count"].as_u64().unwrap();
        prop_assert_eq!(counted, values.iter().filter(|&&value| value == 0).count() as u64);
        for (side, sign) in [("positive", 1), ("negative", -1)] {
            for (index, count) in dist[side].as_object().unwrap() {
                let index: i32 = index.parse().unwrap();
                let width = 2f64.powi(-(scale as i32));
                let (low, high) = ((f64::from(index) * width).exp2(), (f64::from(index + 1) * width).exp2());
                let within = values.iter().filter(|&&value| {
                    let value = value as f64 * f64::from(sign);
                    // Within the precision of floating point.
                    value > low * (1.0 - 1e-12) && value <= high * (1.0 + 1e-12)
                });
                let count = count.as_u64().unwrap();
                prop_assert!(count > 0 && within.count() as u64 >= count, "{index}: {dist}");
                counted += count;
            }
        }
        prop_assert_eq!(counted, values.len() as u64);
    }

    /// A range of `.log2` and `.buckets` has each number that is counted in it, and no other
    /// entry's.
    #[test]
    fn ranges(
        values in prop::collection::vec(prop_oneof![-20i64..20, any::<i64>(), any::<i32>().prop_map(i64::from)], 1..30),
        scaled in prop::sample::select(&["log2", "buckets=10", "buckets=1000000000000", "log2=2"][..]),
        signed: bool,
    ) {
        let (field, offset) = if signed { ("s64", 22) } else { ("u64", 30) };
        let hist = hist(&zoo(), &format!("keys={field}.{scaled}:size=128"));
        for value in &values {
            Bytes::new(ZOO_END).put(offset, &value.to_ne_bytes()).hit(&hist);
        }
        let end = |value: &Value| match (value.as_i64(), value.as_u64()) {
            (Some(number), _) => i128::from(number),
            (None, number) => i128::from(number.unwrap()),
        };
        let mut found = 0;
        for entry in said(&hist).entries {
            let (first, last) = (end(&entry["keys"][0]["first"]), end(&entry["keys"][0]["last"]));
            // One bucket holds both the largest and the smallest number.
            let all = signed && first == i64::MIN.into() && last == i64::MAX.into();
            let within = values.iter().filter(|&&value| {
                let number = if signed { i128::from(value) } else { i128::from(value as u64) };
                let near = |edge: i64| value.wrapping_sub(edge).unsigned_abs() < 1 << 62;
                (first..=last).contains(&number) && (!all || near(i64::MIN))
            });
            let (hits, within) = (entry["values"][0].as_u64().unwrap(), within.count() as u64);
            prop_assert!(hits == within || all && hits < within, "{entry}");
            found += hits;
        }
        prop_assert_eq!(found, values.len() as u64);
    }
}
