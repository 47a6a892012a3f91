// SPDX-License-Identifier: GPL-2.0

//! The error log.

use kernel::fault;
use kernel::prelude::KVVec;
use kernel::prelude::ENOMEM;
use proptest::collection::vec;
use proptest::prelude::*;
use rhist::trigger::error_log::has_entry_since;
use rhist::trigger::ErrorLog;
use rhist::trigger::ErrorText;
use rhist::trigger::Trigger;

fn render(log: &ErrorLog) -> String {
    merge(log, "")
}

/// Merges the log with one of the kernel.
fn merge(log: &ErrorLog, kernel: &str) -> String {
    let mut out = KVVec::new();
    log.render(kernel.as_bytes(), &mut out).unwrap();
    String::from_utf8(out.to_vec()).unwrap()
}

/// An entry as it is shown, made `time` microseconds after the beginning.
fn entry(time: u64, command: &str) -> String {
    let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
    format!("[{seconds:5}.{rest:06}] x: error: T\n  Command: {command}\n            ^\n")
}

#[test]
fn with_the_kernels() {
    let kernel = |times: &[u64]| -> String { times.iter().map(|&t| entry(t, "kernel")).collect() };
    let mut log = ErrorLog::new();
    assert_eq!(merge(&log, &kernel(&[5, 7])), kernel(&[5, 7]));
    for time in [6_999, 7_999, 2_000_000_000] {
        log.push(time, b"x", b"ours", b"T", 1).unwrap();
    }
    let ours = |time| entry(time, "ours");
    assert_eq!(
        merge(&log, &kernel(&[5, 7, 3_000_000])),
        kernel(&[5])
            + &ours(6)
            + &kernel(&[7])
            + &ours(7)
            + &ours(2_000_000)
            + &kernel(&[3_000_000])
    );
    // the latest eight
    let times = [1, 2, 3, 8, 9, 10, 11, 12];
    assert_eq!(
        merge(&log, &kernel(&times)),
        ours(6) + &ours(7) + &kernel(&times[3..]) + &ours(2_000_000)
    );
    for time in 0..8 {
        log.push(4_000_000_000 + time * 1000, b"x", b"ours", b"T", 1)
            .unwrap();
    }
    assert_eq!(merge(&log, &kernel(&times)), render(&log));

    // Commands of several lines, some of which look like entries.
    let mut log = ErrorLog::new();
    log.push(2_000, b"x", b"ours", b"T", 1).unwrap();
    let odd = entry(1, "two\n           ^\nlines\n[    9.000000] no end");
    let odd = odd + &entry(3, "[    4.000000] x\n\n");
    let (first, last) = odd.split_at(odd.find("[    0.000003]").unwrap());
    assert_eq!(merge(&log, &odd), first.to_owned() + &ours(2) + last);
    // A text that is not an entry is not shown
    for bad in [
        "x",
        "[",
        "[]",
        "[1]",
        "[x.y] z",
        "[99999999999999999999.1] x\n",
    ] {
        assert_eq!(merge(&log, bad), ours(2));
    }
    assert_eq!(
        merge(&log, "[    0.000001] cut"),
        "[    0.000001] cut".to_owned() + &ours(2)
    );
}

#[test]
fn entries_since() {
    let log = entry(5, "one") + &entry(7, "two");
    let has = |time, command: &str| has_entry_since(log.as_bytes(), time, command.as_bytes());
    assert!(has(7_999, "two"));
    assert!(!has(8_000, "two"));
    assert!(has(0, "if one"));
    assert!(!has(6_000, "if one"));
    // of somebody else
    assert!(!has(7_000, "if three"));
    assert!(!has_entry_since(b"", 0, b"two"));
    let log = entry(7, "a\n b");
    assert!(has_entry_since(log.as_bytes(), 0, b"if a\n b"));
    assert!(!has_entry_since(log.as_bytes(), 0, b"if a"));
}

#[test]
fn a_text_is_one_line() {
    let mut log = ErrorLog::new();
    log.push(0, b"x", b"y", b"a\nb\tc\x7f", 0).unwrap();
    log.push(0, b"x", b"y", &[b'z'; 1000], 0).unwrap();
    let lines = render(&log);
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].ends_with("error: a b c "));
    assert!(lines[3].ends_with(&format!(" {}", "z".repeat(511))));
}

#[test]
fn format() {
    let mut log = ErrorLog::new();
    assert_eq!(render(&log), "");
    let params = b"keys=common_pid:vals=bytes_req:sort=common_pid,";
    let trigger = Trigger::parse(params).unwrap();
    let error = trigger.sort.error().unwrap();
    let text = error.text.unwrap().as_str();
    let place = b"hist:kmem:kmalloc";
    log.push(
        1_002_003_999,
        place,
        trigger.command(),
        text.as_bytes(),
        error.caret,
    )
    .unwrap();
    let text = ErrorText::FieldNotFound.as_str();
    log.push(
        123_456 * 1_000_000_000,
        b"x",
        b"two\nlines",
        text.as_bytes(),
        0,
    )
    .unwrap();
    log.push(12_345_678_900_000_000_000, b"", b"", b"", 3)
        .unwrap();
    assert_eq!(
        render(&log),
        "\
[    1.002003] hist:kmem:kmalloc: error: Empty sort field
  Command: hist:keys=common_pid:vals=bytes_req:sort=common_pid,
                                               ^
[123456.000000] x: error: Couldn't find field
  Command: two
lines
           ^
[12345678900.000000] : error: 
  Command: 
              ^
"
    );
    log.clear();
    assert_eq!(render(&log), "");
}

#[test]
fn location_is_cut() {
    let mut log = ErrorLog::new();
    for length in [117, 118, 119, 126, 127, 300] {
        let place = vec![b'x'; length];
        log.push(0, &place, b"", b"T", 0).unwrap();
        let kept = "x".repeat(length) + ": error: ";
        let kept = &kept[..kept.len().min(127)];
        let expected = format!("[    0.000000] {kept}T\n  Command: \n           ^\n");
        assert_eq!(render(&log), expected);
        log.clear();
    }
}

#[test]
fn eight_entries() {
    let mut log = ErrorLog::default();
    for count in 1..=20u64 {
        log.push(
            count * 1_000_000_000,
            b"x",
            count.to_string().as_bytes(),
            b"T",
            1,
        )
        .unwrap();
        let first = count.saturating_sub(7).max(1);
        let expected: String = (first..=count)
            .map(|i| format!("[{i:5}.000000] x: error: T\n  Command: {i}\n            ^\n"))
            .collect();
        assert_eq!(render(&log), expected);
    }
}

proptest! {
    /// For any pushes and clears: the log shows the last eight entries, each as if it were alone.
    #[test]
    fn ring(pushed in vec(prop::option::weighted(0.9, (any::<u64>(), "[a-z:]{0,130}", "[ -~]{0,20}")), 0..40)) {
        let mut log = ErrorLog::new();
        let mut model: Vec<String> = Vec::new();
        for entry in pushed {
            match entry {
                Some((time, place, command)) => {
                    let mut alone = ErrorLog::new();
                    for log in [&mut log, &mut alone] {
                        log.push(time, place.as_bytes(), command.as_bytes(), b"T", command.len()).unwrap();
                    }
                    model.push(render(&alone));
                }
                None => {
                    log.clear();
                    model.clear();
                }
            }
            let last = model.len().saturating_sub(8);
            prop_assert_eq!(render(&log), model[last..].concat());
        }
    }
}

#[test]
fn no_memory() {
    let mut log = ErrorLog::new();
    for _ in 0..8 {
        log.push(0, b"x", b"old", b"T", 0).unwrap();
    }
    let before = render(&log);
    let live = fault::live();
    // The last run succeeds; the failed runs before leave the log alone.
    let mut failures = 0;
    for allocations in 0.. {
        let result = fault::after(allocations, || log.push(0, b"x", b"new", b"T", 0));
        if result.is_ok() {
            break;
        }
        assert_eq!(result, Err(ENOMEM));
        assert_eq!(render(&log), before);
        assert_eq!(fault::live(), live);
        failures += 1;
    }
    assert!(failures >= 2);
    assert_ne!(render(&log), before);

    let (length, _) = fault::each(
        || {
            let mut out = KVVec::new();
            log.render(b"", &mut out).map(|()| out.len())
        },
        |result| assert_eq!(result, Err(ENOMEM)),
    );
    assert_eq!(length, Ok(before.len()));
}
