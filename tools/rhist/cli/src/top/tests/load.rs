// SPDX-License-Identifier: MIT OR Apache-2.0

//! What many keys cost, from the text of the kernel's files to the screen. Only tells something of an optimized build: run
//! with `./test size`.

use std::fmt::Write;
use std::fs;

use rhist_core::names::Names;
use rhist_core::plan::Id;
use rhist_core::plan::Options;
use rhist_core::plan::Plan;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::recipe::Count;
use rhist_core::recipe::Measure;
use rhist_core::recipe::Point;
use rhist_core::tracefs::Tracefs;
use rustix::time::ClockId;
use rustix::time::clock_gettime;
use tempfile::TempDir;

use super::sample;
use crate::args::Format;
use crate::screen::Page;
use crate::screen::Screen;
use crate::screen::View;
use crate::top::look::Look;
use crate::top::state::State;

/// Most milliseconds of a CPU that a refresh may take with as many keys as a histogram can have.
const MOST_MS: f64 = 150.0;

/// Most milliseconds for as many keys with a distribution and a largest value each. Alone on a machine a refresh takes less than
/// 150, but there is not much room, and other tests run at the same time.
const WAITS_MS: f64 = 200.0;

/// Most that `rhist top` may take of a CPU with 2,000 keys at one interval a second, in milliseconds a refresh: 1 %.
const TOP_MS: f64 = 10.0;

/// Most memory that it may take, in KiB.
const TOP_MEMORY: u64 = 16 << 10;

/// A tracing directory whose files are written here instead of by a kernel.
struct Kernel {
    root: TempDir,
    plan: Plan,
    keys: u64,
    has_dist: bool,
}

impl Kernel {
    /// Where hits of `keys` tasks are counted.
    fn counting(keys: u64) -> Self {
        let measure = Measure {
            by: vec!["next_pid".into()],
            count: vec![Count {
                event: "sched:sched_switch".into(),
                ..Count::default()
            }],
            ..Measure::default()
        };
        Self::new(measure, keys, false)
    }

    /// Where waits of `keys` tasks are measured, with the largest one.
    fn timing(keys: u64) -> Self {
        let point = |event: &str, on: &str| Point {
            event: event.into(),
            on: vec![on.into()],
            ..Point::default()
        };
        let measure = Measure {
            by: vec!["next_pid".into()],
            save: vec!["next_comm".into(), "prev_pid".into()],
            start: vec![point("sched:sched_wakeup", "pid")],
            end: vec![point("sched:sched_switch", "next_pid")],
            ..Measure::default()
        };
        Self::new(measure, keys, true)
    }

    fn new(measure: Measure, keys: u64, has_dist: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures/events/sched");
        for event in ["sched_switch", "sched_wakeup"] {
            let folder = root.path().join("events/sched").join(event);
            fs::create_dir_all(&folder).unwrap();
            fs::copy(format!("{fixtures}/{event}/format"), folder.join("format")).unwrap();
        }
        fs::write(root.path().join("hist_stats"), "").unwrap();
        let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
        let question = Question::default();
        let plan = Plan::new(&tracefs, Id::example(), &measure, &Options::default(), question).unwrap();
        Kernel {
            root,
            plan,
            keys,
            has_dist,
        }
    }

    /// Writes what the kernel would tell after so many seconds. All keys have hits in each.
    fn run_until(&self, second: u64) {
        let write = |event: &str, text: String| {
            fs::write(
                self.root.path().join("events/sched").join(event).join("hist_jsonl"),
                text,
            )
            .unwrap();
        };
        let mut text = header("sched_switch", second, self.has_dist);
        for key in 0..self.keys {
            // Not in their order, as in a hash table.
            let pid = key.wrapping_mul(0x9e37_79b1) % (1 << 22);
            let hits = second * (8 + key % 5);
            write!(text, r#"{{"type":"entry","keys":[{pid}],"values":[{hits}"#).unwrap();
            if self.has_dist {
                let first = 80 + key % 40;
                let max = 1500 << (key % 8);
                write!(
                    text,
                    r#",{{"count":{hits},"sum":{},"min":1025,"max":{max},"zero_count":0,"scale":3,"positive":{{"#,
                    hits * 1300
                )
                .unwrap();
                for bucket in 0..6 {
                    let count = if bucket == 0 { hits - 5 * second } else { second };
                    let comma = if bucket == 0 { "" } else { "," };
                    write!(text, r#"{comma}"{}":{count}"#, first + 3 * bucket).unwrap();
                }
                text += r#"},"negative":{},"quantiles":{"50":1176.5,"90":1398.7,"99":1495.4,"99.9":1499.5}}"#;
                let _ = write!(
                    text,
                    r#"],"variables":[1300],"actions":[{{"value":{max},"saved":["task-{pid}",{key}]}}]}}"#
                );
            } else {
                text += r#"],"variables":[],"actions":[]}"#;
            }
            text += "\n";
        }
        text += &trailer(self.keys);
        write("sched_switch", text);
        if self.has_dist {
            write("sched_wakeup", header("sched_wakeup", second, false) + &trailer(0));
        }
    }

    fn read(&self) -> Reading {
        let tracefs = Tracefs::at(self.root.path().to_owned()).unwrap();
        self.plan.answer.read(&tracefs).unwrap()
    }

    fn state(&self) -> State {
        State::new(self.plan.question.clone(), Names::elsewhere())
    }
}

fn header(event: &str, second: u64, has_dist: bool) -> String {
    let value = r#",{"name":"wait","type":"u64","modifier":"dist=3","unit":null,"bucket_unit":null}"#;
    let action = r#"{"handler":"onmax","action":"save","saved":["next_comm","prev_pid"]}"#;
    let (value, action) = if has_dist { (value, action) } else { ("", "") };
    format!(
        r#"{{"type":"header","schema":1,"trigger":"hist:keys=next_pid","system":"sched","event":"{event}","name":null,"filter":null,"paused":false,"size":131072,"clock":null,"boot_id":null,"realtime_ns":{second}000000000,"monotonic_ns":{second}000000000,"keys":[{{"name":"next_pid","type":"pid_t","modifier":null,"unit":null}}],"values":[{{"name":"hitcount","type":"u64","modifier":null,"unit":null,"bucket_unit":null}}{value}],"variables":[],"actions":[{action}]}}
"#
    )
}

fn trailer(keys: u64) -> String {
    format!(
        r#"{{"type":"trailer","hits":1,"entries":{keys},"shown":{keys},"dropped":0,"excess":0,"no_bucket":null,"unresolved":0,"missed":0,"snapshot":null,"complete":true}}
"#
    )
}

/// Milliseconds of a CPU that this process has used.
fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Milliseconds that the quickest of some refreshes takes: others are at work on this machine.
fn best_ms(kernel: &Kernel, seconds: u64, mut refresh: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for second in 1..=seconds {
        kernel.run_until(second);
        let begin = cpu_ms();
        refresh();
        best = best.min(cpu_ms() - begin);
    }
    best
}

fn print_131072(kernel: &Kernel, most_ms: f64) {
    let screen = Screen {
        question: &kernel.plan.question,
        names: &Names::elsewhere(),
        page: Page {
            width: 80,
            rows: 20,
            ..Page::of(&std::io::stdout())
        },
        format: Format::Text,
        by: true,
        quiet: true,
    };
    let mut last = Reading::default();
    let ms = best_ms(kernel, 4, || {
        let reading = kernel.read();
        let mut text = Vec::new();
        screen
            .print(&mut text, &View::interval(&reading.since(std::mem::take(&mut last))))
            .unwrap();
        assert!(text.len() > 1000);
        last = reading;
    });
    println!("printed: {ms:.0} ms");
    assert_eq!(last.table.rows.len(), 131_072);
    assert!(ms <= most_ms);
}

fn top_131072(kernel: &Kernel, most_ms: f64) {
    let mut state = kernel.state();
    let ms = best_ms(kernel, 4, || {
        state.read(kernel.read());
        sample::draw(&mut state, Look::default(), 80, 24);
    });
    println!("top: {ms:.0} ms");
    assert_eq!(state.shown().lines.len(), 131_072);
    assert!(ms <= most_ms);
}

#[test]
#[ignore = "only of use in a release build"]
fn a_count_of_131072_keys_is_printed() {
    print_131072(&Kernel::counting(131_072), MOST_MS);
}

#[test]
#[ignore = "only of use in a release build"]
fn waits_of_131072_keys_are_printed() {
    print_131072(&Kernel::timing(131_072), WAITS_MS);
}

#[test]
#[ignore = "only of use in a release build"]
fn top_has_a_count_of_131072_keys() {
    top_131072(&Kernel::counting(131_072), MOST_MS);
}

#[test]
#[ignore = "only of use in a release build"]
fn top_has_waits_of_131072_keys() {
    top_131072(&Kernel::timing(131_072), WAITS_MS);
}

/// In a process of its own, as its memory is measured.
#[test]
#[ignore = "only of use in a release build"]
fn top_has_2000_keys() {
    const SECONDS: u64 = 60;
    let kernel = Kernel::timing(2000);
    let mut state = kernel.state();
    let mut used = 0.0;
    for second in 1..=SECONDS {
        kernel.run_until(second);
        let begin = cpu_ms();
        state.read(kernel.read());
        sample::draw(&mut state, Look::default(), 80, 24);
        used += cpu_ms() - begin;
    }
    let ms = used / SECONDS as f64;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.split_whitespace().next().unwrap().parse().unwrap();
    println!("top of 2000 keys: {ms:.1} ms a refresh, {most} KiB");
    assert_eq!(state.shown().lines.len(), 2000);
    assert!(ms <= TOP_MS);
    assert!(most <= TOP_MEMORY);
}
