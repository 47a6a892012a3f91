// SPDX-License-Identifier: GPL-2.0

//! The `hist` and `trigger` files to the byte.

use rhist::hist::show;
use rhist::hist::show::View;

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
        text(|out| show_file(out, [view(&pids), paused].into_iter())),
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

/// A file of many rows comes in pieces of some pages, each whenever it is asked for, and once more
/// after an error.
#[test]
fn pieces() {
    let event = sched_waking();
    let hists = [
        hist(&event, "keys=pid"),
        hist(&event, "keys=prio"),
        hist(&event, "keys=pid,comm:sort=pid.descending"),
    ];
    for pid in 0..2000 {
        hists
            .iter()
            .for_each(|hist| waking(b"a task", pid).hit(hist));
    }
    let views = || hists.iter().map(view);
    let whole = text(|out| show_file(out, views()));
    let mut file = show::HistFile::new(views()).unwrap();
    assert_eq!(file.hits(), 6000);
    // Later hits are not in it.
    waking(b"a task", 3000).hit(&hists[0]);
    for _ in 0..2 {
        assert_eq!(super::events::pieces(&mut file).concat(), whole);
        file.rewind();
    }
}

/// Sorting a snapshot stops when its check returns an error.
#[test]
fn a_snapshot_that_is_given_up() {
    use kernel::error::code::EINTR;
    use rhist::hist::show::sort::heapsort;

    let mut numbers: Vec<u32> = (0..5000).collect();
    let asked = std::cell::Cell::new(0);
    let done = heapsort(&mut numbers, |a, b| b.cmp(a), &|| {
        asked.set(asked.get() + 1);
        match asked.get() {
            4 => Err(EINTR),
            _ => Ok(()),
        }
    });
    assert_eq!((done, asked.get()), (Err(EINTR), 4));
}

/// A poll calls its check once for each 1,024 slots (the map has two for each entry of its size),
/// and the check can end it each time.
#[test]
fn counting_that_is_given_up() {
    use kernel::error::code::EINTR;

    let hist = hist(&sched_waking(), "keys=pid:size=131072");
    for pid in 0..2000 {
        waking(b"", pid).hit(&hist);
    }
    let asked = std::cell::Cell::new(0);
    let until = |last| {
        asked.set(0);
        hist.count_hits(&|| {
            asked.set(asked.get() + 1);
            match asked.get() {
                asked if asked == last => Err(EINTR),
                _ => Ok(()),
            }
        })
    };
    assert_eq!((until(0), asked.get()), (Ok(2000), 256));
    assert_eq!((until(3), asked.get()), (Err(EINTR), 3));
}

#[test]
fn hist_file_of_none() {
    assert_eq!(text(|out| show_file(out, [].into_iter())), "");
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
    let mut out = rhist::text::Text::new();
    show_file(&mut out, [view(&hist)].into_iter()).unwrap();
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
fn triggers() {
    let event = sched_waking();
    let (a, b) = (hist(&event, "keys=pid"), hist(&event, "keys=prio"));
    let other = &b"traceoff:unlimited\n"[..];
    assert_eq!(
        text(|out| show::triggers(out, b"", [other].into_iter(), [].into_iter())),
        "traceoff:unlimited\n"
    );
    assert_eq!(
        text(|out| {
            let views = [view(&a), view(&b)];
            show::triggers(out, b"a:b ", [other].into_iter(), views.into_iter())
        }),
        "a:b traceoff:unlimited\n\
         a:b hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 [active]\n\
         a:b hist:keys=prio:vals=hitcount:sort=hitcount:size=2048 [active]\n"
    );
}

#[test]
fn event_columns() {
    let column = |system: &str, event: &str| {
        text(|out| show::event_column(out, system.as_bytes(), event.as_bytes()))
    };
    assert_eq!(column("a", "b"), format!("a:b{}", " ".repeat(29)));
    let name = "b".repeat(28);
    assert_eq!(column("a", &name), format!("a:{name}  "));
    for name in ["b".repeat(29), "b".repeat(30), "b".repeat(31)] {
        assert_eq!(column("a", &name), format!("a:{name} "));
    }
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
        // C prints common_cpucommon_cpu, which it does not accept itself.
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

/// A trigger's line, without the state in brackets, removes the trigger.
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
        "keys=7,pid.hex,prio.log2:vals=pid,hitcount,prio.hex:sort=prio.descending,pid:size=4096",
        "keys=pid.buckets=5:vals=prio.percent,pid.graph:nohitcount",
        "keys=pid.hex:sort=pid.descending",
        "keys=pid.sym,prio.sym-offset:sort=prio",
        "keys=pid+prio*2-1,-(pid):vals=pid.hex/target_cpu.buckets=3:sort=hitcount",
        "keys=pid.usecs-prio.usecs,cpu+1:sort=cpu+1",
        "keys=common_pid.execname:vals=common_pid.execname:sort=common_pid",
    ] {
        let added = hist(&sched_waking(), params);
        let line = line(&added);
        let command = line.strip_prefix("hist:").unwrap();
        let command = command.strip_suffix(" [active]\n").unwrap();
        let removed = hist(&sched_waking(), command);
        assert!(
            added.spec().matches(removed.spec()) && removed.spec().matches(added.spec()),
            "{params}"
        );
    }
}

/// Counts `pids` and shows the entries.
fn shown(params: &str, pids: &[i32]) -> Vec<String> {
    let hist = hist(&sched_waking(), params);
    for &pid in pids {
        waking(b"comm", pid).hit(&hist);
    }
    entries(&hist)
}

#[test]
fn several_keys_and_values() {
    assert_eq!(
        shown("keys=pid,comm,common_cpu:vals=prio,target_cpu", &[1, 1]),
        [format!(
            "{{ pid:          1, comm: {:<50}, common_cpu:          1 }} \
             hitcount:          2  prio:        240  target_cpu:          6",
            "comm"
        )]
    );
}

#[test]
fn values_without_the_hitcount() {
    assert_eq!(
        shown("keys=pid:vals=prio,pid:nohitcount", &[7]),
        ["{ pid:          7 }  prio:        120  pid:          7"]
    );
    assert_eq!(
        shown("keys=pid:vals=hitcount,hitcount:nohitcount", &[7, 7]),
        ["{ pid:          7 }  hitcount:          2"]
    );
}

#[test]
fn values_wrap_around() {
    assert_eq!(
        shown("keys=prio:vals=pid", &[-3, 2]),
        ["{ prio:        120 } hitcount:          2  pid: 18446744073709551615"]
    );
}

#[test]
fn numbers_as_keys_and_values() {
    assert_eq!(
        shown("keys=0x10:vals=3", &[1, 2]),
        ["{ :         16 } hitcount:          2  :          6"]
    );
}

#[test]
fn expressions() {
    assert_eq!(
        shown("keys=pid-prio*2,prio/7/target_cpu,-(pid)", &[10]),
        [
            "{ pid-prio*2: 18446744073709551386, prio/7/target_cpu:          5, \
          -(pid): 18446744073709551606 } hitcount:          1"
        ]
    );
    // Divided by zero.
    assert_eq!(
        shown("keys=prio/pid", &[0]),
        ["{ prio/pid: 18446744073709551615 } hitcount:          1"]
    );
    // As values they are summed up and can be sorted by, but are not shown.
    assert_eq!(
        shown(
            "keys=pid:vals=pid*2,prio:sort=pid*2.descending",
            &[1, 2, 3, 3]
        ),
        [
            "{ pid:          3 } hitcount:          2  prio:        240",
            "{ pid:          2 } hitcount:          1  prio:        120",
            "{ pid:          1 } hitcount:          1  prio:        120",
        ]
    );
}

#[test]
fn hex() {
    assert_eq!(
        shown("keys=pid.hex:vals=prio.hex,hitcount.hex", &[-2]),
        ["{ pid: fffffffffffffffe } hitcount:          1"]
            .map(|entry| format!("{entry}  prio:         78  hitcount:          1"))
    );
    // A string as a number: its first eight bytes, in the CPU's byte order.
    let number = u64::from_ne_bytes(*b"comm\0\0\0\0");
    assert_eq!(
        shown("keys=comm.hex", &[1]),
        [format!("{{ comm: {number:x} }} hitcount:          1")]
    );
}

#[test]
fn symbols() {
    assert_eq!(
        shown("keys=pid.sym,prio.sym-offset", &[0x5001]),
        [format!(
            "{{ pid: [5001] {:<45}, prio: [78] {:<55} }} hitcount:          1",
            "function_5", "function_0+0x78/0x1000"
        )]
    );
    let hist = hist(&sched_waking(), "keys=pid.sym-offset");
    assert!(line(&hist).starts_with("hist:keys=pid.sym-offset:vals="));
}

#[test]
fn names_of_tasks() {
    let hist = hist(
        &sched_waking(),
        "keys=common_pid.execname:vals=common_pid.execname:sort=hitcount",
    );
    let hit = |pid: i32, comm| {
        let record = waking(b"", 1).put(4, &pid.to_ne_bytes());
        record.hit_in(&hist, 0, comm);
    };
    hit(7, b"first\0then this\0");
    hit(7, b"second\0\0\0\0\0\0\0\0\0\0");
    hit(0, b"swapper/0\0\0\0\0\0\0\0");
    for _ in 0..3 {
        // Like a task that renames itself to an empty name.
        hit(12345, &[0; 16]);
    }
    for _ in 0..4 {
        hit(8, b"no nul in here!!");
    }
    assert_eq!(
        entries(&hist),
        [
            "{ common_pid: <idle>          [         0] } hitcount:          1  \
             common_pid:          0",
            "{ common_pid: first           [         7] } hitcount:          2  \
             common_pid:         14",
            "{ common_pid:                 [     12345] } hitcount:          3  \
             common_pid:      37035",
            "{ common_pid: no nul in here! [         8] } hitcount:          4  \
             common_pid:         32",
        ]
    );
    assert_eq!(
        line(&hist),
        "hist:keys=common_pid.execname:vals=hitcount,common_pid.execname:sort=hitcount:size=2048 \
         [active]\n"
    );
}

#[test]
fn usecs_of_what_is_no_time() {
    assert_eq!(
        shown("keys=pid.usecs:vals=prio.usecs", &[1]),
        ["{ pid:          1 } hitcount:          1  prio:        120"]
    );
}

#[test]
fn log2() {
    assert_eq!(
        shown(
            "keys=pid.log2:sort=pid",
            &[0, 1, 2, 3, 4, 5, 1024, 1025, i32::MAX, -1]
        ),
        [
            "{ pid: ~ 2^0  } hitcount:          2",
            "{ pid: ~ 2^1  } hitcount:          1",
            "{ pid: ~ 2^2  } hitcount:          2",
            "{ pid: ~ 2^3  } hitcount:          1",
            "{ pid: ~ 2^10 } hitcount:          1",
            "{ pid: ~ 2^11 } hitcount:          1",
            "{ pid: ~ 2^31 } hitcount:          1",
            "{ pid: ~ 2^64 } hitcount:          1",
        ]
    );
}

#[test]
fn buckets() {
    assert_eq!(
        shown("keys=pid.buckets=10:sort=pid", &[0, 9, 10, 25, -1]),
        [
            "{ pid: ~ 18446744073709551610-3 } hitcount:          1",
            "{ pid: ~ 0-9 } hitcount:          2",
            "{ pid: ~ 10-19 } hitcount:          1",
            "{ pid: ~ 20-29 } hitcount:          1",
        ]
    );
    assert_eq!(
        shown("keys=hitcount.buckets=10,common_cpu.log2", &[1]),
        ["{ hitcount: ~ 1-10, common_cpu: ~ 2^0  } hitcount:          1"]
    );
}

#[test]
fn percent_and_graph() {
    let hits = [1, 2, 2, 3, 3, 3, 3];
    assert_eq!(
        shown("keys=pid:vals=hitcount.percent,hitcount.graph", &hits),
        [
            "{ pid:          1 } hitcount:          1  hitcount (%):  14.28  \
             hitcount: #####               ",
            "{ pid:          2 } hitcount:          2  hitcount (%):  28.57  \
             hitcount: ##########          ",
            "{ pid:          3 } hitcount:          4  hitcount (%):  57.14  \
             hitcount: ####################",
        ]
    );
    assert_eq!(
        shown("keys=pid:vals=pid.percent,pid.graph:nohitcount", &[0]),
        ["{ pid:          0 }  pid (%):   0.00  pid:                     "]
    );
    // The largest numbers; and a total that has wrapped around to zero.
    assert_eq!(
        shown("keys=pid:vals=pid.percent:sort=pid", &[-1]),
        ["{ pid: 18446744073709551615 } hitcount:          1  pid (%): 100.00"]
    );
    assert_eq!(
        shown("keys=pid:vals=pid.percent:sort=pid", &[1, -1]),
        [
            "{ pid:          1 } hitcount:          1  pid (%):[ERROR]",
            "{ pid: 18446744073709551615 } hitcount:          1  pid (%):[ERROR]",
        ]
    );
}

/// A total that has wrapped around to less than one of its parts: C's output if the part fits into
/// 32 bits of hundredths, and an error where C would show the low 32 bits of a larger one.
#[test]
fn percent_of_a_wrapped_total() {
    let shown = |part: u64, total: u64| {
        let hist = hist(&zoo(), "keys=u8:vals=u64.percent,u64.graph:sort=u8");
        for (key, value) in [(1, part), (2, total.wrapping_sub(part))] {
            let record = Bytes::new(ZOO_END).put(9, &[key]);
            record.put(30, &value.to_ne_bytes()).hit(&hist);
        }
        let entry = entries(&hist).swap_remove(0);
        let (_, percent) = entry.split_once("u64 (%):").unwrap();
        percent.split("  u64: ").next().unwrap().to_owned()
    };
    let most = u64::from(u32::MAX);
    assert_eq!(shown(most - 1, 10000), " 42949672.94");
    assert_eq!(shown(most, 10000), "[ERROR]");
    assert_eq!(shown(most + 1, 10000), "[ERROR]");
    // From here on, the percentage uses the total without its last four digits.
    let large = u64::MAX / 10000;
    assert_eq!(shown(large - 1, large), "  99.99");
    assert_eq!(shown(large, large), " 100.00");
    assert_eq!(shown(large, 9999), "[ERROR]");
    assert_eq!(shown(0, 5), "   0.00");
    assert_eq!(shown(0, 0), "   0.00");
}

/// Fields of a compound key are at the right places, and strings do not run into one another.
#[test]
fn compound_keys() {
    let hist = hist(&zoo(), "keys=dyn,u8,odd:vals=u16,s8");
    let record = Bytes::new(ZOO_END)
        .put(8, &[0xff, 0xff])
        .put(12, &5u16.to_ne_bytes())
        .put(38, b"ABCDEFGHIJKLM")
        .data_loc(67, &[b'z'; 400]);
    record.hit(&hist);
    record.put(9, &[1]).hit(&hist);
    let entry = |u8| {
        format!(
            "{{ dyn: {}, u8: {u8:>10}, odd: {:<50} }} hitcount:          1  \
             u16:          5  s8: {}",
            "z".repeat(255),
            "ABCDEFGHIJKLM",
            u64::MAX
        )
    };
    assert_eq!(entries(&hist), [entry(255), entry(1)]);
}

#[test]
fn stacks() {
    let event = zoo();
    let shown = |params: &str, record: &Bytes| {
        let hist = hist(&event, params);
        record.hit(&hist);
        let file = hist_file(&hist);
        let (_, entries) = file.split_once("#\n\n").unwrap();
        entries.split_once("\nTotals").unwrap().0.to_string()
    };
    let stored = |entries: &[u64], count: u64| {
        let mut bytes = count.to_ne_bytes().to_vec();
        bytes.extend(entries.iter().flat_map(|entry| entry.to_ne_bytes()));
        Bytes::new(ZOO_END).put(9, &[7]).data_loc(87, &bytes)
    };
    let none = stored(&[], 0);
    assert_eq!(
        shown("keys=common_stacktrace", &none),
        "{ common_stacktrace:\n         function_1+0x10/0x1000\n         function_2+0x20/0x1000\n\
         \x20        function_3+0x30/0x1000\n} hitcount:          1\n"
    );
    assert_eq!(
        shown("keys=u8,stacktrace,s8:vals=u8", &none),
        "{ u8:          7, common_stacktrace:\n         function_1+0x10/0x1000\n\
         \x20        function_2+0x20/0x1000\n         function_3+0x30/0x1000\n, \
         s8: 18446744073709551598} hitcount:          1  u8:          7\n"
    );
    for key in ["stack", "stack.stacktrace"] {
        assert_eq!(
            shown(&format!("keys={key}"), &stored(&[0x5005, 0x6006], 2)),
            "{ stack.stacktrace         function_5+0x5/0x1000\n         function_6+0x6/0x1000\n\
             } hitcount:          1\n"
        );
    }
    assert_eq!(
        shown("keys=stack", &none),
        "{ stack.stacktrace} hitcount:          1\n"
    );
    // More frames than a stack can keep, and counts beyond its actual length.
    let long = shown("keys=stack", &stored(&[0x1001; 40], 40));
    assert_eq!(long.matches("function_1+0x1/0x1000\n").count(), 31);
    for count in [3, 30, 1 << 40, u64::MAX] {
        let short = shown("keys=stack", &stored(&[0x1001; 2], count));
        assert_eq!(
            short.matches("function_1+0x1/0x1000\n").count(),
            2,
            "{count}"
        );
    }
    let nowhere = Bytes::new(ZOO_END).put(87, &0xffff_ffffu32.to_ne_bytes());
    assert_eq!(
        shown("keys=stack", &nowhere),
        "{ stack.stacktrace} hitcount:          1\n"
    );
    // Modifiers other than `.stacktrace` apply to its first address.
    assert_eq!(
        shown("keys=common_stacktrace.hex", &none),
        "{ common_stacktrace: 1010 } hitcount:          1\n"
    );
}

#[test]
fn system_calls() {
    let hist = hist(&zoo(), "keys=u8.syscall:sort=u8");
    for number in [1, 0, 1, 200] {
        Bytes::new(ZOO_END).put(9, &[number]).hit(&hist);
    }
    assert_eq!(
        entries(&hist),
        [
            "{ u8: sys_read                      [  0] } hitcount:          1",
            "{ u8: sys_write                     [  1] } hitcount:          2",
            "{ u8: unknown_syscall               [200] } hitcount:          1",
        ]
    );
}

#[test]
fn times() {
    for (params, shown) in [
        ("keys=common_timestamp", "{ common_timestamp:  123456789 }"),
        (
            "keys=common_timestamp.usecs",
            "{ common_timestamp:     123457 }",
        ),
        ("keys=common_timestamp.hex", "{ common_timestamp: 75bcd15 }"),
        ("keys=common_timestamp.log2", "{ common_timestamp: ~ 2^27 }"),
        (
            "keys=common_timestamp.buckets=1000",
            "{ common_timestamp: ~ 123456000-123456999 }",
        ),
        (
            "keys=common_timestamp-456789",
            "{ common_timestamp-456789:  123000000 }",
        ),
        // One time in microseconds makes all of them so, for clocks that count time.
        (
            "keys=common_timestamp,common_timestamp.usecs",
            "{ common_timestamp:     123457, common_timestamp:     123457 }",
        ),
        (
            "keys=common_timestamp.usecs:clock=counter",
            "{ common_timestamp:          5 }",
        ),
    ] {
        let hist = hist(&zoo(), params);
        Bytes::new(ZOO_END).hit(&hist);
        assert_eq!(
            entries(&hist),
            [format!("{shown} hitcount:          1")],
            "{params}"
        );
    }
    for (params, shown) in [
        ("keys=common_timestamp", ":clock=global"),
        (
            "keys=u8:vals=common_timestamp.usecs:clock=mono:nohitcount",
            ":clock=mono:nohitcount",
        ),
        ("keys=u8:clock=mono", ""),
    ] {
        let hist = hist(&zoo(), params);
        let line = text(|out| rhist::hist::show::trigger_line(out, &view(&hist)));
        let (_, rest) = line.split_once(":size=2048").unwrap();
        assert_eq!(rest, format!("{shown} [active]\n"));
    }
}
