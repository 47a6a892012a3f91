// SPDX-License-Identifier: MIT OR Apache-2.0

//! Completion as bash requests it, on a tracing directory with as many events as a distribution's
//! kernel.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Output;
use std::sync::Mutex;

const RHIST: &str = env!("CARGO_BIN_EXE_rhist");

/// Approximate number of events in Debian's kernel.
const EVENTS: usize = 2000;

/// Limit of the CPU time of a completion, as a multiple of a start of the program on the same
/// machine. It takes about six times as long.
const MOST: f64 = 12.0;

/// Serializes the tests, since both measure the time of their children.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A tracing directory with [`EVENTS`] events, of which only `sched:sched_switch` has fields.
fn tracefs() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let mut names: Vec<String> = (1..EVENTS).map(|i| format!("system{}:event_{i}", i % 60)).collect();
    names.push("sched:sched_switch".to_owned());
    fs::write(root.path().join("available_events"), names.join("\n")).unwrap();
    let folder = root.path().join("events/sched/sched_switch");
    fs::create_dir_all(&folder).unwrap();
    let format = include_str!("../../core/tests/fixtures/events/sched/sched_switch/format");
    fs::write(folder.join("format"), format).unwrap();
    root
}

fn complete(root: &Path, words: &[&str]) -> Output {
    let output = Command::new(RHIST)
        .arg("--")
        .arg("rhist")
        .args(words)
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("RHIST_TRACEFS", root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn start() {
    assert!(Command::new(RHIST).arg("--version").output().unwrap().status.success());
}

/// CPU time that the children of `run` take, in ticks of 10 ms.
fn ticks_of(run: impl FnOnce()) -> f64 {
    // cutime and cstime of all children that have ended.
    let ticks = || -> f64 {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        (13..=14).map(|i| fields[i].parse::<f64>().unwrap()).sum()
    };
    let before = ticks();
    run();
    ticks() - before
}

#[test]
fn it_takes_no_time() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let root = tracefs();
    let lines: [&[&str]; 5] = [
        &[""],
        &["count", "s"],
        &["count", "sched_switch", "--by", ""],
        &["count", "sched:sched_switch", "--where", "prev_state == "],
        &["runqlat", "--by", ""],
    ];
    for line in lines {
        assert!(!complete(root.path(), line).stdout.is_empty(), "{line:?}");
        // The lowest of three, since other programs run on this machine.
        let cost = (0..3).map(|_| {
            let completions = ticks_of(|| (0..10).for_each(|_| drop(complete(root.path(), line))));
            let starts = ticks_of(|| (0..40).for_each(|_| start()));
            completions / 10.0 / (starts / 40.0)
        });
        let cost = cost.fold(f64::INFINITY, f64::min);
        assert!(cost <= MOST, "{line:?}: {cost} times a start");
    }
}

#[test]
fn bash_gets_words_with_colons() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let root = tracefs();
    // Imitates readline: splits words at : and =, and passes the part after the last of these signs
    // as $2.
    let script = r#"
        rhist() { "$RHIST" "$@"; }
        source <(COMPLETE=bash "$RHIST")
        compopt() { :; }
        try() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            local typed=${COMP_WORDS[COMP_CWORD]}
            [[ $typed != [:=] ]] || typed=
            _rhist rhist "$typed" ""
            echo "${COMPREPLY[*]}"
        }
        try rhist count sched : sched_sw
        try rhist count sched :
        try rhist count sched_sw
        try rhist count sche
        try rhist count sched : sched_switch --by = next_
        try rhist count sched_switch --by next_pid.buc
        try rhist count sched : sched_switch --by next_comm,next_pid.h
        try rhist runql
        try rhist nothing
    "#;
    let output = Command::new("bash")
        .args(["--norc", "-c", script])
        .env("RHIST", RHIST)
        .env("RHIST_TRACEFS", root.path())
        .output()
        .unwrap();
    let expected = [
        "sched_switch",
        "sched_switch",
        "sched:sched_switch",
        "sched:sched_switch",
        "next_comm next_pid next_prio",
        "next_pid.buckets=",
        "next_comm,next_pid.hex",
        "runqlat",
        "",
    ];
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected.join("\n") + "\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
