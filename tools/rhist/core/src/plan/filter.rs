// SPDX-License-Identifier: MIT OR Apache-2.0

//! Filters of triggers: threads, names of tasks, and the condition of the command line.

use super::error::Error;
use super::group;
use super::measure::RUNNING;
use super::options::Options;
use crate::grammar::token::tokens;
use crate::recipe::Measure;

/// Bits of `common_flags` in interrupts: `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`,
/// `TRACE_FLAG_NMI`.
const IN_INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// Systems whose events never happen in interrupts, so their filters need not test `common_flags`.
const OF_TASKS: [&str; 4] = ["oom", "raw_syscalls", "syscalls", "user_events"];

/// Limit of a task's name, in bytes (`TASK_COMM_LEN` - 1).
const MOST_OF_NAME: usize = 15;

/// ` if …` with all conditions; empty without any.
pub(super) fn condition(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).collect();
    match parts[..] {
        [] => String::new(),
        [part] => format!(" if {part}"),
        _ => format!(
            " if {}",
            parts
                .iter()
                .map(|part| format!("({part})"))
                .collect::<Vec<_>>()
                .join(" && ")
        ),
    }
}

/// Filter for the threads, the name and the condition of the command line.
pub(super) fn options_filter(measure: &Measure, options: &Options, has_dist: bool) -> Result<String, Error> {
    let mut parts = Vec::new();
    let pid = measure.pid.as_deref().unwrap_or(RUNNING);
    if !options.threads.is_empty() {
        if pid.is_empty() {
            return Err(Error::Impossible(
                "-p: these events have no field for the thread they are about".to_owned(),
            ));
        }
        if options.children_of.is_empty() {
            parts.push(threads_filter(pid, &options.threads));
        }
    }
    if let Some(comm) = &options.comm {
        if measure.comm.as_deref() == Some("") {
            return Err(Error::Impossible(
                "-c: these events have no field for the task they are about".to_owned(),
            ));
        }
        if comm.contains('"') || comm.chars().any(char::is_control) {
            return Err(Error::Impossible(format!(
                "a filter cannot have a name with quotes or control characters: {comm:?}"
            )));
        }
        let field = measure.comm.as_deref().unwrap_or("COMM");
        let is_pattern = comm.contains('*');
        if comm.is_empty() || !is_pattern && comm.len() > MOST_OF_NAME {
            return Err(Error::Impossible(format!(
                "-c {comm:?}: no task has this name: the kernel keeps 1 to {MOST_OF_NAME} bytes of one. With * it is a pattern"
            )));
        }
        let operator = if is_pattern { "~" } else { "==" };
        parts.push(format!("{field} {operator} \"{comm}\""));
    }
    if let Some(path) = &options.cgroup {
        parts.push(group::filter(pid, path)?);
    }
    if let Some(filter) = &options.filter {
        if !has_dist && tests_address(filter) {
            let why = "C's filters have no addresses (.ip): load rhist, or compare a field of IPv4 to a number";
            return Err(Error::Impossible(format!("--where {filter:?}: {why}")));
        }
        parts.push(filter.clone());
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(condition(&parts).trim_start_matches(" if ").to_owned())
}

/// Returns whether a filter compares a field with `.ip`.
fn tests_address(filter: &str) -> bool {
    let tokens = tokens(filter);
    tokens
        .windows(2)
        .any(|pair| pair[0].text == "." && pair[1].text == "ip")
}

/// Filter for some threads. Consecutive numbers, as threads of a process often have, become a
/// range.
fn threads_filter(pid: &str, threads: &[i32]) -> String {
    ranges(threads, " || ", |range| match *range {
        [first, _, .., last] => format!("({pid} >= {first} && {pid} <= {last})"),
        _ => each(range, " || ", |thread| format!("{pid} == {thread}")),
    })
}

/// Filter for all threads except these.
fn other_threads_filter(pid: &str, threads: &[i32]) -> String {
    ranges(threads, " && ", |range| match *range {
        [first, _, .., last] => format!("({pid} < {first} || {pid} > {last})"),
        _ => each(range, " && ", |thread| format!("{pid} != {thread}")),
    })
}

/// Joins the filters for runs of consecutive thread numbers.
fn ranges(threads: &[i32], operator: &str, filter: impl Fn(&[i32]) -> String) -> String {
    let mut threads = threads.to_vec();
    threads.sort_unstable();
    threads.dedup();
    let ranges = threads.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    ranges.map(filter).collect::<Vec<_>>().join(operator)
}

fn each(threads: &[i32], operator: &str, filter: impl Fn(&i32) -> String) -> String {
    threads.iter().map(filter).collect::<Vec<_>>().join(operator)
}

/// Filter that rejects hits of rhist's own threads at this event. Empty if not requested, or if
/// other threads are selected anyway; `None` if the event does not identify the thread of a hit.
pub(super) fn others_filter(
    measure: &Measure,
    options: &Options,
    event: &str,
    on: Option<&[String]>,
) -> Option<String> {
    if options.own.is_empty() || !options.threads.is_empty() {
        return Some(String::new());
    }
    let pid = measure.pid.as_deref().unwrap_or(RUNNING);
    let pid = match on {
        // If the filter rejects an end, it must be the end of the thread's own start: so the thread
        // must be one of the keys.
        Some(on) => on
            .iter()
            .map(String::as_str)
            .find(|key| *key == pid || *key == "pid" || key.ends_with("_pid"))?,
        None if pid.is_empty() => return None,
        None => pid,
    };
    let others = other_threads_filter(pid, &options.own);
    // An end with the thread among its keys is about that thread. If an interrupt on top of the
    // thread passed the filter, it would find a start left by an end of the thread itself.
    let is_of_thread = measure.pid.is_some() || on.is_some();
    let is_of_task = event.split(':').next().is_some_and(|system| OF_TASKS.contains(&system));
    Some(match !is_of_thread && pid == RUNNING && !is_of_task {
        true => format!("({others}) || common_flags & {IN_INTERRUPT}"),
        false => others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_one_after_the_other_are_a_range() {
        let filter = |threads: &[i32]| threads_filter("pid", threads);
        assert_eq!(filter(&[7]), "pid == 7");
        assert_eq!(filter(&[9, 7, 8, 8]), "(pid >= 7 && pid <= 9)");
        assert_eq!(
            filter(&[1, 2, 4, 6, 7, 8, i32::MAX]),
            "pid == 1 || pid == 2 || pid == 4 || (pid >= 6 && pid <= 8) || pid == 2147483647"
        );
    }

    #[test]
    fn own_threads_are_left_out() {
        let filter = |threads: &[i32]| other_threads_filter("pid", threads);
        assert_eq!(filter(&[7]), "pid != 7");
        assert_eq!(filter(&[9, 7, 8, 20]), "(pid < 7 || pid > 9) && pid != 20");
        let others = |measure: &Measure, options: &Options, on: Option<&[&str]>| {
            let on: Option<Vec<String>> = on.map(|on| on.iter().map(|key| (*key).to_owned()).collect());
            others_filter(measure, options, "syscalls:sys_enter_x", on.as_deref())
        };
        let of = |pid: &str| Measure {
            pid: Some(pid.to_owned()),
            ..Measure::default()
        };
        let own = Options {
            own: vec![7],
            ..Options::default()
        };
        assert_eq!(others(&Measure::default(), &own, None).unwrap(), "common_pid != 7");
        assert_eq!(others(&of("next_pid"), &own, None).unwrap(), "next_pid != 7");
        assert_eq!(others(&of(""), &own, None), None);
        assert_eq!(
            others(&of("next_pid"), &own, Some(&["next_pid"])).unwrap(),
            "next_pid != 7"
        );
        assert_eq!(
            others(&Measure::default(), &own, Some(&["cpu", "pid"])).unwrap(),
            "pid != 7"
        );
        assert_eq!(others(&Measure::default(), &own, Some(&["work"])), None);
        let only = Options {
            threads: vec![8],
            ..own
        };
        assert_eq!(others(&Measure::default(), &only, None).unwrap(), "");
        assert_eq!(others(&of(""), &Options::default(), None).unwrap(), "");
        // An interrupt on top of one of these threads counts; events about the thread itself do
        // not.
        let own = Options {
            own: vec![7, 20],
            ..Options::default()
        };
        let timers = |measure: &Measure| others_filter(measure, &own, "timer:timer_start", None).unwrap();
        assert_eq!(
            timers(&Measure::default()),
            "(common_pid != 7 && common_pid != 20) || common_flags & 88"
        );
        assert_eq!(timers(&of("common_pid")), "common_pid != 7 && common_pid != 20");
        let on = ["common_pid".to_owned(), "lock_addr".to_owned()];
        let locks = others_filter(&Measure::default(), &own, "lock:contention_end", Some(&on));
        assert_eq!(locks.unwrap(), "common_pid != 7 && common_pid != 20");
        // Page faults and reclaim happen in interrupts, too.
        for event in ["vmscan:mm_vmscan_lru_isolate", "exceptions:page_fault_kernel"] {
            let others = others_filter(&Measure::default(), &own, event, None).unwrap();
            assert!(others.ends_with(" || common_flags & 88"), "{event}: {others}");
        }
    }
}
