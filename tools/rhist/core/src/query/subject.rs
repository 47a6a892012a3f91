// SPDX-License-Identifier: MIT OR Apache-2.0

//! The subject of an event: the task or object that it is about, and the keys that link two events
//! about the same one.

use crate::tracefs::format::Format;

/// Fields that identify the subject of an event, if that is not the running task. All fields of a
/// row are needed.
const SUBJECTS: [&[&str]; 13] = [
    // Several CPUs can run the same interrupt, over the same idle task.
    &["common_cpu", "vec"],
    &["common_cpu", "irq"],
    &["common_cpu", "vector"],
    &["tasklet"],
    &["dev", "sector"],
    &["hrtimer"],
    &["timer"],
    &["work"],
    &["skbaddr"],
    &["skaddr"],
    &["ptr"],
    &["next_pid"],
    &["pid"],
];

/// Events whose field `pid` is not the running task.
const OF_OTHER_TASKS: [&str; 13] = [
    "cgroup_attach_task",
    "mark_victim",
    "sched_kthread_stop",
    "sched_migrate_task",
    "sched_pi_setprio",
    "sched_stat_blocked",
    "sched_stat_iowait",
    "sched_stat_sleep",
    "sched_stat_wait",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "signal_generate",
];

/// Events of work that one task runs from beginning to end, and never the idle task, whose pid is 0
/// on all CPUs. Here the running task is a valid key.
const OF_WHAT_RUNS: [&str; 2] = ["workqueue_execute_end", "workqueue_execute_start"];

/// Fields that identify the subject of an event; `None` if it is the running task.
fn subject(event: &Format) -> Option<&'static [&'static str]> {
    let has = |names: &[&str]| {
        names
            .iter()
            .all(|name| *name == "common_cpu" || event.own_fields().any(|field| field.name == *name))
    };
    let subject = SUBJECTS.into_iter().find(|names| has(names))?;
    let is_other = *subject != ["pid"] || OF_OTHER_TASKS.contains(&event.name.as_str());
    is_other.then_some(subject)
}

/// Suggests keys for `--on` that link two events; `None` if the running task links them.
pub(super) fn common(a: &Format, b: &Format) -> Option<String> {
    if [a, b].iter().all(|event| OF_WHAT_RUNS.contains(&event.name.as_str())) {
        return None;
    }
    match (subject(a), subject(b)) {
        (Some(a), Some(b)) if a == b => Some(a.join(",")),
        (Some([a @ ("pid" | "next_pid")]), Some([b @ ("pid" | "next_pid")])) => Some(format!("{a}={b}")),
        (Some([a @ ("pid" | "next_pid")]), None) => Some(format!("{a}=common_pid")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields that identify one of several concurrent things.
    #[test]
    fn what_times_belong_to() {
        let event = |name: &str, fields: &[&str]| {
            let fields = fields
                .iter()
                .map(|name| format!("\tfield:u64 {name};\toffset:8;\tsize:8;\tsigned:0;\n"));
            Format::parse(&format!("name: {name}\nformat:\n{}", fields.collect::<String>())).unwrap()
        };
        for (a, b, fields, on) in [
            (
                "hrtimer_expire_entry",
                "hrtimer_expire_exit",
                &["hrtimer", "function"][..],
                Some("hrtimer"),
            ),
            ("timer_expire_entry", "timer_expire_exit", &["timer"], Some("timer")),
            (
                "irq_handler_entry",
                "irq_handler_exit",
                &["irq", "name"],
                Some("common_cpu,irq"),
            ),
            ("softirq_raise", "softirq_exit", &["vec"], Some("common_cpu,vec")),
            (
                "local_timer_entry",
                "local_timer_exit",
                &["vector"],
                Some("common_cpu,vector"),
            ),
            ("tasklet_entry", "tasklet_exit", &["tasklet", "func"], Some("tasklet")),
            (
                "workqueue_execute_start",
                "workqueue_execute_end",
                &["work", "function"],
                None,
            ),
        ] {
            assert_eq!(common(&event(a, fields), &event(b, fields)).as_deref(), on, "{a} {b}");
        }
    }
}
