// SPDX-License-Identifier: MIT OR Apache-2.0

//! Messages for command lines that refer to missing things. The grammar of keys and filters has its
//! own snapshots.

use std::ffi::OsString;

use insta::assert_snapshot;
use rhist::commands::words;
use rhist::diagnostic::Diagnostic;
use rhist::options::Common;
use rhist_core::tracefs::Tracefs;

/// Tracing directory with the events of the fixtures.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures");

fn said(line: &[&str]) -> String {
    let tracefs = Tracefs::at(FIXTURES.into()).unwrap();
    let words: Vec<OsString> = line.iter().map(OsString::from).collect();
    let common = Common {
        dry_run: true,
        ..Common::default()
    };
    let result = words::measurement(&words, &common).and_then(|measurement| measurement.plans(&tracefs));
    match result {
        Ok(plans) => plans
            .iter()
            .flat_map(|plan| plan.shell(&tracefs))
            .map(|line| line.replace(FIXTURES, "/sys/kernel/tracing") + "\n")
            .collect(),
        Err(error) => match Diagnostic::of(&error) {
            Some(diagnostic) => diagnostic.render(false),
            None => format!("{error}\n"),
        },
    }
}

#[test]
fn command_lines() {
    let lines: [&[&str]; 21] = [
        &["count", "sched:sched_swich"],
        &["count", "sched_swich"],
        &["count", "sched_switch", "--by", "next_comm,nxet_pid"],
        &["count", "sched_switch", "--sum", "next_comm"],
        &["count", "sched_switch", "--stat", "next_pirio"],
        &["count", "sched_switch", "--dist", "foo"],
        &["count", "sys_enter_openat", "--by", "comm,filename"],
        &["count", "sched_switch", "--where", "next_pid = 3"],
        &["between", "sched_wakeup", "sched:foo", "--on", "pid=next_pid"],
        &["between", "sched_wakep", "sched_switch", "--on", "pid=next_pid"],
        &["between", "sched_wakeup", "sched_switch", "--on", "pid"],
        &[
            "between",
            "sched_wakeup",
            "sched_switch",
            "--on",
            "pid=next_pid",
            "--by",
            "pid",
        ],
        &[
            "between",
            "sched_wakeup",
            "sched_switch",
            "--on",
            "pid=next_pid",
            "--where",
            "pid == 3",
        ],
        &["softirqs", "--by", "vecc"],
        &["softirqs", "--by", "target_cpu"],
        &["softirqs", "--by", "softirq.hex"],
        &["count", "sys_enter_openat", "--by", "filename.string"],
        &["count", "sys_enter_openat", "--where", "filename ~ \"/etc/*\""],
        &["softirqs", "--where", "vec == NET_RX"],
        &["softirq"],
        &["lockwait"],
    ];
    let shown: Vec<String> = lines
        .iter()
        .map(|line| format!("# {}\n{}", line.join(" "), said(line)))
        .collect();
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn an_event_needs_no_system() {
    let triggers = said(&["count", "sched_switch", "--by", "next_comm"]);
    assert!(triggers.contains("events/sched/sched_switch/trigger"), "{triggers}");
    assert_eq!(triggers, said(&["count", "sched:sched_switch", "--by", "next_comm"]));
}

#[test]
fn what_the_kernel_would_refuse_or_never_find() {
    let long = format!("prev_pid == 1{}", " || prev_pid == 1".repeat(300));
    let lines: [&[&str]; 9] = [
        &["count", "sched_switch", "-c", ""],
        &["count", "sched_switch", "-c", "chrome_crashpad_handler"],
        &["count", "sched_switch", "-c", "chrome_crashpad_h*"],
        &["count", "sched_switch", "--by", "prev_pid,next_pid,prev_prio,next_prio"],
        &[
            "count",
            "sched_switch",
            "--by",
            "prev_pid,next_pid,prev_prio",
            "--dist",
            "next_prio",
        ],
        &["between", "sched_switch", "sched:sched_switch", "--on", "next_pid"],
        &["between", "kprobe:f x=%di", "kprobe:f x=%di", "--on", "x"],
        &["count", "uprobe:/dev/zero:main"],
        &["count", "sched_switch", "--where", &long],
    ];
    let shown: Vec<String> = lines
        .iter()
        .map(|line| format!("# {}\n{}", line.join(" ").replace(&long, "…"), said(line)))
        .collect();
    assert_snapshot!(shown.join("\n"));
}

/// Without --on, times belong to the running task, which is an arbitrary one for some events.
#[test]
fn a_key_that_cannot_be_right() {
    let on = |line: &[&str]| {
        let said = said(&[&["between"], line].concat());
        said.split_once("add --on ")
            .map(|(_, rest)| rest.split(", or ").next().unwrap_or_default().to_owned())
    };
    assert_eq!(on(&["sched_waking", "sched_switch"]).as_deref(), Some("pid=next_pid"));
    assert_eq!(on(&["sched_wakeup", "sched_waking"]).as_deref(), Some("pid"));
    assert_eq!(on(&["sched_waking", "sched_switch", "--on", "common_pid"]), None);
    assert_eq!(on(&["sched_waking", "sched_switch", "--on", "pid=next_pid"]), None);
    assert_eq!(
        on(&["hrtimer_start", "hrtimer_expire_entry"]).as_deref(),
        Some("hrtimer")
    );
    assert_eq!(
        on(&["workqueue_queue_work", "workqueue_execute_start"]).as_deref(),
        Some("work")
    );
    // A signal is sent by one task and delivered to another, whose number is in another field
    // there.
    let delivered = on(&["signal_generate", "signal_deliver"]);
    assert_eq!(delivered.as_deref(), Some("pid=common_pid"));
    // The idle task runs on all CPUs at once, and softirqs on top of it do too.
    assert_eq!(
        on(&["softirq_entry", "softirq_exit"]).as_deref(),
        Some("common_cpu,vec")
    );
    // The second event does not concern the task that leaves the CPU.
    let delivered = on(&["sched_switch", "signal_deliver"]);
    assert_eq!(delivered.as_deref(), Some("next_pid=common_pid"));
    for line in [
        ["sys_enter", "sys_exit"],
        // A worker runs both, and nothing else in between.
        ["workqueue_execute_start", "workqueue_execute_end"],
        ["signal_deliver", "signal_generate"],
    ] {
        assert_eq!(on(&line), None, "{line:?}");
    }
}

#[test]
fn bounds_of_times() {
    let between = ["between", "sched_waking", "sched_switch", "--on", "pid=next_pid"];
    let with = |more: &[&'static str]| said(&[&between[..], more].concat());
    let filter = |more: &[&'static str]| {
        let triggers = with(more);
        let line = triggers.lines().find(|line| line.contains("keys=lat.log2"));
        let filter = line.and_then(|line| line.split(" if ").nth(1)?.split('\'').next());
        filter.unwrap_or_default().to_owned()
    };
    assert_eq!(filter(&["--slower", "5ms"]), "lat >= 5000000");
    assert_eq!(filter(&["--faster", "10ms"]), "lat < 10000000");
    let both = filter(&["--slower", "5ms", "--faster", "10ms"]);
    assert_eq!(both, "(lat >= 5000000) && (lat < 10000000)");
    let none = "no time is at least 5ms (--slower) and less than 5ms (--faster)\n";
    assert_eq!(with(&["--slower", "5ms", "--faster", "5ms"]), none);
    assert_eq!(with(&["--faster", "0ns"]), "no time is less than 0ns (--faster)\n");
    for option in ["--slower", "--faster"] {
        let count = said(&["count", "sched_switch", option, "5ms"]);
        assert_eq!(count, format!("{option} 5ms: count does not measure times\n"));
        assert!(with(&[option, "soon"]).starts_with(option));
    }
}

#[test]
fn a_filter_in_two_lines() {
    let triggers = said(&["count", "sched_switch", "--where", "prev_pid == 1\n|| prev_pid == 2"]);
    assert!(triggers.contains(" if prev_pid == 1 || prev_pid == 2'"), "{triggers}");
}

#[test]
fn an_end_that_is_passed_over_ends_its_time() {
    let voids = |line: &[&str]| said(line).matches("over0_0=").count();
    let between = ["between", "sched_waking", "sched_switch", "--on", "pid=next_pid"];
    let with = |more: &[&'static str]| [&between[..], more].concat();
    // Number of triggers that void the start.
    assert_eq!(voids(&with(&[])), 0);
    assert_eq!(voids(&with(&["--where", "prev_prio < 100"])), 1);
    assert_eq!(voids(&with(&["-c", "bash"])), 1);
    assert_eq!(voids(&["between", "sys_enter", "sys_exit", "-c", "bash"]), 0);
}
