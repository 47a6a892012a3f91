// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures the cost of a scrape, from the text of the kernel's files to the answer. Meaningful
//! only in an optimized build: run with `./test scrapes`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rhist_core::journal::Journals;
use rhist_core::jsonl;
use rhist_core::plan::Id;
use rhist_core::question::Interval;

use super::Config;
use super::Service;
use crate::measure::cpu_ms;
use crate::metrics::prometheus::Format;

/// Number of histograms.
const HISTOGRAMS: u64 = 20;

/// Number of keys of each.
const KEYS: u64 = 1000;

/// Limit of a scrape of 20,000 series, in milliseconds of CPU time.
const MOST_MS: f64 = 100.0;

/// Limit of a scrape every 15 seconds for half a per cent of a CPU, without the kernel's part, in
/// milliseconds.
const SHARE_MS: f64 = 75.0;

/// Limit of memory with the default number of label sets, in KiB.
const MOST_MEMORY: u64 = 20 << 10;

/// Limit with ten times as many label sets, when the answer has 8 MB.
const MORE_MEMORY: u64 = 48 << 10;

fn text(second: u64) -> String {
    let mut text = concat!(
        r#"{"type":"header","schema":1,"trigger":"hist:keys=next_comm:vals=x.dist:unit(s)","system":"sched","event":"sched_switch","name":null,"filter":null,"paused":false,"size":2048,"clock":"global","boot_id":null,"realtime_ns":1795621132746544322,"monotonic_ns":6282976384,"keys":[{"name":"next_comm","type":"char[16]","modifier":null,"unit":null}],"values":[{"name":"hitcount","type":"u64","modifier":null,"unit":null,"bucket_unit":null},{"name":"value","type":"u64","modifier":"dist","unit":"ns","bucket_unit":"s"}],"variables":[],"actions":[]}"#,
        "\n"
    )
    .to_owned();
    let mut total = 0;
    for key in 0..KEYS {
        let each = second * (1 + key % 5);
        let first = -150 + (key % 30) as i64;
        write!(text, r#"{{"type":"entry","keys":["worker-{key}"],"values":[{},{{"count":{},"sum":{},"min":900,"max":90000000,"zero_count":0,"scale":3,"positive":{{"#, each * 16, each * 16, each * 123_456).unwrap();
        for bucket in 0..16 {
            let comma = if bucket > 0 { "," } else { "" };
            write!(text, r#"{comma}"{}":{each}"#, first + bucket * 2).unwrap();
        }
        text += "},\"negative\":{},\"quantiles\":{}}],\"variables\":[],\"actions\":[]}\n";
        total += each * 16;
    }
    writeln!(text, r#"{{"type":"trailer","hits":{total},"entries":{KEYS},"shown":{KEYS},"dropped":0,"excess":0,"no_bucket":0,"unresolved":0,"missed":0,"snapshot":null,"complete":true}}"#).unwrap();
    text
}

fn service(limit: u32) -> Service {
    let mut config = String::new();
    for n in 0..HISTOGRAMS {
        writeln!(
            config,
            "[histogram.waits{n}]\nrecipe = \"runqlat\"\nunit = \"s\"\nlimit = {limit}"
        )
        .unwrap();
    }
    let config = Config::parse([(PathBuf::from("a.toml"), config)]).unwrap();
    let mut service = Service::new(Id::example(), Journals::at(PathBuf::from("/nonexistent")));
    service.apply(config, Instant::now());
    for histogram in &mut service.histograms {
        histogram.starts = 1;
    }
    service
}

/// Reads all histograms, and writes them. Returns the number of samples, and the size of the
/// answer.
fn scrape(service: &mut Service, text: &str, format: Format) -> (usize, usize) {
    for histogram in &mut service.histograms {
        let one = jsonl::read(text.as_bytes()).unwrap().pop().unwrap();
        let interval = Interval {
            events: one.hits,
            delta: one.table,
            ..Interval::default()
        };
        histogram.totals.add(interval, |_, key| key.to_string());
    }
    let names = service.label_names();
    let mut body = Vec::new();
    service.families(&names, |family| format.write(&family, &mut body));
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#"));
    (lines.count(), body.len())
}

/// Peak memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

fn measure(limit: u32, format: Format, most_ms: f64, most_memory: u64) {
    let mut service = service(limit);
    let mut best = f64::MAX;
    let mut found = (0, 0);
    for second in 1..=10 {
        let text = text(second);
        let begin = cpu_ms();
        found = scrape(&mut service, &text, format);
        best = best.min(cpu_ms() - begin);
    }
    let (samples, bytes) = found;
    let memory = peak_kib();
    println!(
        "{format:?}, {limit} label sets of {KEYS} keys: {samples} samples, {bytes} bytes, {best:.1} ms, {memory} KiB"
    );
    assert!(best <= most_ms, "{best} ms");
    assert!(memory <= most_memory, "{memory} KiB");
    assert!(format == Format::Protobuf || samples >= 20_000, "{samples}");
}

#[test]
#[ignore = "./test scrapes runs it"]
fn a_scrape_of_text() {
    measure(100, Format::Text, MOST_MS, MOST_MEMORY);
}

#[test]
#[ignore = "./test scrapes runs it"]
fn a_scrape_of_native_histograms() {
    measure(100, Format::Protobuf, SHARE_MS, MOST_MEMORY);
}

#[test]
#[ignore = "./test scrapes runs it"]
fn a_scrape_with_a_label_set_for_each_key() {
    measure(1000, Format::Protobuf, MOST_MS, MORE_MEMORY);
}
