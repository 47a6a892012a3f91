// SPDX-License-Identifier: GPL-2.0

//! The `hist` and `trigger` files to the byte.

use rhist::hist::render;
use rhist::hist::View;

use super::events::*;

#[test]
fn hist_file_of_one() {
    let hist = hist(&sched_waking(), "keys=pid");
    for (pid, hits) in [(18249, 1), (10, 921), (1728, 2161)] {
        for _ in 0..hits {
            waking(b"", pid).hit(&hist);
        }
    }
    assert_eq!(
        hist_file(&hist),
        "# event histogram\n\
         #\n\
         # trigger info: hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 [active]\n\
         #\n\
         \n\
         { pid:      18249 } hitcount:          1\n\
         { pid:         10 } hitcount:        921\n\
         { pid:       1728 } hitcount:       2161\n\
         \n\
         Totals:\n    Hits: 3083\n    Entries: 3\n    Dropped: 0\n"
    );
}

#[test]
fn hist_file_of_two() {
    let event = sched_waking();
    let pids = hist(&event, "keys=pid:size=100");
    let comms = hist(&event, "keys=comm:sort=comm.descending");
    let record = waking(b"a-task\0", -1);
    record.hit(&comms);
    record.hit(&pids);
    let paused = View {
        paused: true,
        filter: Some(b"pid > 1 && comm == \"x\""),
        name: Some(b"name=foo"),
        ..view(&comms)
    };
    assert_eq!(
        text(|out| render::hist_file(out, [view(&pids), paused].into_iter())),
        "# event histogram\n\
         #\n\
         # trigger info: hist:keys=pid:vals=hitcount:sort=hitcount:size=128 [active]\n\
         #\n\
         \n\
         { pid: 18446744073709551615 } hitcount:          1\n\
         \n\
         Totals:\n    Hits: 1\n    Entries: 1\n    Dropped: 0\n\
         \n\
         \n\
         # event histogram\n\
         #\n\
         # trigger info: hist:name=foo:keys=comm:vals=hitcount:sort=comm.descending:size=2048 \
         if pid > 1 && comm == \"x\" [paused]\n\
         #\n\
         \n\
         { comm: a-task                                             } hitcount:          1\n\
         \n\
         Totals:\n    Hits: 1\n    Entries: 1\n    Dropped: 0\n"
    );
}

#[test]
fn hist_file_of_none() {
    assert_eq!(text(|out| render::hist_file(out, [].into_iter())), "");
}

#[test]
fn hist_file_without_entries() {
    let hist = hist(&sched_waking(), "keys=pid");
    assert!(hist_file(&hist)
        .ends_with(" [active]\n#\n\n\nTotals:\n    Hits: 0\n    Entries: 0\n    Dropped: 0\n"));
}

#[test]
fn strings_that_are_no_text() {
    let hist = hist(&sched_waking(), "keys=comm");
    waking(b"\xff\x01\n", 1).hit(&hist);
    let mut out = rhist::hist::Text::new();
    render::hist_file(&mut out, [view(&hist)].into_iter()).unwrap();
    let mut entry = b"{ comm: \xff\x01\n".to_vec();
    entry.resize(8 + 50, b' ');
    entry.extend_from_slice(b" } hitcount:          1\n");
    assert!(out
        .as_bytes()
        .windows(entry.len())
        .any(|bytes| bytes == entry));
}

#[test]
fn long_strings_are_not_cut() {
    let hist = hist(&zoo(), "keys=dyn");
    Bytes::new(ZOO_END).data_loc(67, &[b'y'; 60]).hit(&hist);
    let entry = format!("{{ dyn: {} }} hitcount:          1", "y".repeat(60));
    assert_eq!(entries(&hist), [entry]);
}

#[test]
fn trigger_file() {
    let event = sched_waking();
    assert_eq!(
        text(|out| render::trigger_file(out, [].into_iter())),
        "# Available triggers:\n# hist\n"
    );
    let (a, b) = (hist(&event, "keys=pid"), hist(&event, "keys=prio"));
    assert_eq!(
        text(|out| render::trigger_file(out, [view(&a), view(&b)].into_iter())),
        "hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 [active]\n\
         hist:keys=prio:vals=hitcount:sort=hitcount:size=2048 [active]\n"
    );
}

#[test]
fn lines() {
    for (params, expected) in [
        ("keys=pid", "keys=pid:vals=hitcount:sort=hitcount:size=2048"),
        (
            "key=pid:val=hitcount",
            "keys=pid:vals=hitcount:sort=hitcount:size=2048",
        ),
        (
            "keys=pid:size=1000",
            "keys=pid:vals=hitcount:sort=hitcount:size=1024",
        ),
        (
            "sort=pid.descending:size=0x20000:values=hitcount:keys=pid",
            "keys=pid:vals=hitcount:sort=pid.descending:size=131072",
        ),
        (
            "keys=pid:sort=hitcount.descending",
            "keys=pid:vals=hitcount:sort=hitcount.descending:size=2048",
        ),
        (
            "keys=pid:sort=pid.ascending",
            "keys=pid:vals=hitcount:sort=pid:size=2048",
        ),
        (
            "keys=pid:clock=mono",
            "keys=pid:vals=hitcount:sort=hitcount:size=2048",
        ),
        (
            "keys=x.y.pid",
            "keys=pid:vals=hitcount:sort=hitcount:size=2048",
        ),
        (
            "keys=common_pid",
            "keys=common_pid:vals=hitcount:sort=hitcount:size=2048",
        ),
        // C says common_cpucommon_cpu, which it does not understand itself.
        (
            "keys=common_cpu",
            "keys=common_cpu:vals=hitcount:sort=hitcount:size=2048",
        ),
        (
            "keys=cpu:sort=cpu",
            "keys=common_cpu:vals=hitcount:sort=common_cpu:size=2048",
        ),
        (
            "keys=CPU",
            "keys=common_cpu:vals=hitcount:sort=hitcount:size=2048",
        ),
        (
            "keys=common_comm",
            "keys=common_comm:vals=hitcount:sort=hitcount:size=2048",
        ),
        (
            "keys=COMM",
            "keys=common_comm:vals=hitcount:sort=hitcount:size=2048",
        ),
    ] {
        let hist = hist(&sched_waking(), params);
        assert_eq!(
            line(&hist),
            format!("hist:{expected} [active]\n"),
            "{params}"
        );
    }
}

/// A trigger's line, less its bracket, removes the trigger.
#[test]
fn lines_are_commands() {
    for params in [
        "keys=pid",
        "keys=comm:size=300",
        "keys=prio:sort=prio.descending",
        "keys=cpu",
        "keys=CPU:sort=CPU.descending",
        "keys=COMM:sort=COMM",
        "keys=common_comm",
        "keys=common_cpu:sort=common_cpu",
        "keys=common_type",
        "keys=hitcount",
    ] {
        let added = hist(&sched_waking(), params);
        let line = line(&added);
        let command = line.strip_prefix("hist:").unwrap();
        let command = command.strip_suffix(" [active]\n").unwrap();
        let removed = hist(&sched_waking(), command);
        assert!(
            added.matches(&removed) && removed.matches(&added),
            "{params}"
        );
    }
}
