// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io;

use insta::assert_snapshot;
use rhist_core::grammar::check_filter;
use rhist_core::grammar::check_keys;
use rhist_core::grammar::check_plain_value;
use rhist_core::tracefs::format::Format;

use super::*;

macro_rules! format_of {
    ($event:literal) => {
        Format::parse(include_str!(concat!(
            "../../../core/tests/fixtures/events/",
            $event,
            "/format"
        )))
        .unwrap()
    };
}

/// Messages for each text.
fn said(origin: &str, texts: &[&str], check: impl Fn(&str) -> Result<(), Problem>) -> String {
    let show = |text: &&str| match check(text) {
        Ok(()) => panic!("{text} is taken"),
        Err(problem) => Diagnostic::new(origin, *text, problem).render(false),
    };
    texts.iter().map(show).collect::<Vec<_>>().join("\n")
}

#[test]
fn keys() {
    let switch = format_of!("sched/sched_switch");
    let texts = [
        "next_pidd.hex",
        "prev_comm,pid",
        "bytes",
        "next_pid.hexx",
        "next_pid.foo",
        "common_stacktrace.foo",
        "next_pid.execname",
        "common_tgid.comm",
        "prev_comm.cgroup",
        "prev_comm.hex",
        "next_pid.dist",
        "next_pid.buckets",
        "next_pid.buckets=0",
        "next_pid.log2=9",
        "next_pid.hex=2",
        "next_pid.stacktrace",
        "next_pid.",
        "-next_pid",
        "next_pid+",
        "next_pid+prev_comm",
        "prev_comm - 1",
        "(next_pid",
        "next_pid)",
        "next_pid,,prev_pid",
        "next_pid prev_pid",
        "next_pid=3",
        "10ms",
        "\"next_pid\"",
        "%next_pid",
        "((((((((((((((((((next_pid",
        "1,2,3,4,5,6,7,8,9",
        "",
    ];
    assert_snapshot!(said("--by", &texts, |text| check_keys(&switch, text)));
    let enter = format_of!("raw_syscalls/sys_enter");
    assert_snapshot!(
        "keys_of_another_event",
        said("--by", &["args"], |text| check_keys(&enter, text))
    );
}

#[test]
fn values() {
    let switch = format_of!("sched/sched_switch");
    let texts = [
        "prev_comm",
        "next_prio.log2",
        "next_prio.averge",
        "common_stacktrace",
        "next_prio.max",
        " (next_prio-prev_prio).hex ",
    ];
    assert_snapshot!(said("--sum", &texts, |text| check_plain_value(&switch, text)));
}

#[test]
fn filters() {
    let switch = format_of!("sched/sched_switch");
    let texts = [
        "prev_pidd == 3",
        "common_comm == \"sh\"",
        "common_timestamp > 3",
        "prev_pid = 3",
        "prev_pid =< 3",
        "prev_pid",
        "prev_pid ==",
        "prev_pid + 1 == 3",
        "prev_pid == abc",
        "prev_pid == next_pid",
        "prev_state == D",
        "prev_comm == bash",
        "prev_comm == 3",
        "prev_comm > \"a\"",
        "prev_comm == \"abc",
        "prev_pid == \"abc\"",
        "prev_pid ~ 3",
        "prev_pid == 3 and next_pid == 3",
        "prev_pid == 3 | next_pid == 3",
        "prev_pid == 3 next_pid == 3",
        "prev_pid == 3 &&",
        "(prev_pid == 3",
        "prev_pid == 3)",
        "not prev_pid == 3",
        "3 == prev_pid",
        "prev_pid.hex == 3",
        "prev_pid. == 3",
        "prev_pid == 10ms",
        "prev_pid == 08",
        "prev_pid == 99999999999999999999",
        "prev_pid == -",
        "prev_pid == $x",
        "$x == 3",
        "prev_pid & CPUS",
        "common_cpu & CPUS{}",
        "common_cpu & CPUS{a}",
        "common_cpu & CPUS{0",
        "stacktrace == 3",
        "prev_pid == %",
        "",
    ];
    assert_snapshot!(said("--where", &texts, |text| check_filter(&switch, text)));
    let kmalloc = format_of!("kmem/kmalloc");
    let texts = [
        "call_site == vfs_read",
        "call_site.function > vfs_read",
        "gfp_flags & GFP_KERNEL",
        "bytes_req == 4k",
    ];
    assert_snapshot!(
        "filters_of_addresses",
        said("--where", &texts, |text| check_filter(&kmalloc, text))
    );
}

/// A folder with the events of the fixtures.
fn tracefs() -> Tracefs {
    Tracefs::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures").into()).unwrap()
}

#[test]
fn events() {
    let tracefs = tracefs();
    let texts = [
        "sched:sched_swich",
        "shced:sched_switch",
        "foo:sched_switch",
        "sched_swich",
        "foo:bar",
        "nothing",
        "sched:nothing",
        "sched",
        "../../etc",
        "",
    ];
    let show = |text: &&str| {
        let error = resolve(&tracefs, "EVENT", text).unwrap_err();
        error.downcast_ref::<Diagnostic>().unwrap().render(false)
    };
    assert_snapshot!(texts.iter().map(show).collect::<Vec<_>>().join("\n"));
}

#[test]
fn other_names() {
    let recipes = ["runqlat", "biolatency", "softirqs"];
    let unknown = |name: &str, what, names: &[&'static str]| {
        let error = query::Error::unknown("RECIPE", name, what, names.iter().copied());
        Diagnostic::of(&error.into()).unwrap().render(false)
    };
    let near = unknown("runqlta", "recipe", &recipes);
    let far = unknown("x", "recipe", &recipes);
    let none = unknown("", "recipe", &recipes);
    let long = unknown(&"ä".repeat(5000), "run", &[]);
    assert_snapshot!([near, far, none, long].join("\n"));
}

fn write_error(text: &str, log: &str) -> WriteError {
    WriteError {
        path: "/sys/kernel/tracing/events/sched/sched_switch/trigger".into(),
        text: text.to_owned(),
        error: io::Error::from_raw_os_error(22),
        log: LogEntry::last(log),
    }
}

#[test]
fn of_a_kernel_without_such_probes() {
    let log = "[    1.1] event: error: No matching dynamic event type\n  Command: p:g/x vfs_read\n           ^\n";
    let error = WriteError {
        path: "/sys/kernel/tracing/dynamic_events".into(),
        ..write_error("p:g/x vfs_read", log)
    };
    let said = refused(&error, &[]).render(false);
    assert!(said.contains("see rhist doctor"), "{said}");
}

#[test]
fn of_the_kernel() {
    let key = "[    1.1] hist:sched:sched_switch: error: Couldn't find field\n  Command: hist:keys=gone\n                     ^\n";
    let filter =
        "[    1.2] event filter parse error: error: Field not found\n  Command: gone == 3\n                ^\n";
    let by = Written {
        origin: "--by",
        text: "gone",
    };
    let filter_text = Written {
        origin: "--where",
        text: "gone == 3",
    };
    let shown = [
        refused(&write_error("hist:keys=gone", key), &[filter_text, by]),
        refused(&write_error("hist:keys=gone", key), &[]),
        refused(&write_error("hist:keys=pid if gone == 3", filter), &[filter_text]),
        refused(&write_error("hist:keys=pid\n", ""), &[by]),
    ];
    assert_snapshot!(shown.map(|diagnostic| diagnostic.render(false)).join("\n"));
}

#[test]
fn nothing_is_interpreted_by_the_terminal() {
    let switch = format_of!("sched/sched_switch");
    let text = "a\x1b[31m\u{202e}\n\\,next_pid";
    let shown = said("--by", &[text], |text| check_keys(&switch, text));
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
    assert_snapshot!(shown);
}

#[test]
fn colours() {
    let problem = Problem::new(0..1, "x").label("y");
    assert!(
        Diagnostic::new("a", "b", problem.clone())
            .render(true)
            .contains("\x1b[")
    );
    assert!(!Diagnostic::new("a", "b", problem).render(false).contains('\x1b'));
}

#[test]
fn functions_that_the_kernel_has_not() {
    let error = |file: &str, text: &str| WriteError {
        path: format!("/sys/kernel/tracing/{file}").into(),
        text: text.to_owned(),
        error: io::Error::from_raw_os_error(2),
        log: None,
    };
    let symbols = || "ffffffff81201234 T vfs_read\n".to_owned();
    let said = |file, text| no_function(&error(file, text), symbols).map(|diagnostic| diagnostic.render(false));
    assert_snapshot!(said("dynamic_events", "p:rhist_1_2/probe0 vfs_raed\n").unwrap(), @r"
    error: the kernel has no function vfs_raed
    --> /sys/kernel/tracing/dynamic_events:1:20
     |
     | p:rhist_1_2/probe0 vfs_raed
     |                    ^^^^^^^^ did you mean vfs_read?
    ");
    // For other files, the kernel's own message says more.
    assert_eq!(said("dynamic_events", "p:rhist_1_2/probe0 vfs_read x=%nosuch"), None);
    assert_eq!(said("synthetic_events", "p:rhist_1_2/probe0 vfs_raed"), None);
}
