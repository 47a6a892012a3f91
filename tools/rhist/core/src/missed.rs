// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counts missed hits: the kernel did not call the probe, or the module had no buffer for the
//! record. No trigger sees them.
//!
//! The kernel counts them for kprobes (`kprobe_profile`), the module for each event (`hist_stats`).
//! For fprobes and uprobes no readable counter exists.

use std::fs;
use std::path::Path;

use crate::plan::Plan;
use crate::plan::Step;
use crate::plan::events_of;
use crate::tracefs::Backend;
use crate::tracefs::Tracefs;

/// Attempts to read a consistent state of the kernel's files while other processes create and
/// remove probes.
const ATTEMPTS: usize = 20;

/// Reads the number of hits that the events of a plan have missed so far, for probes since their
/// creation. `None` if nothing counts them, or the counts cannot be attributed to the plan right
/// now.
pub fn read(tracefs: &Tracefs, plan: &Plan) -> Option<u64> {
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let kernel = |file: &str| text(&tracefs.kernel().join(file));
    let has_kprobes = plan.steps.iter().any(is_kprobe);
    let by_kernel = match has_kprobes {
        true => Some(by_kernel(kernel, &plan.id.group())?),
        false => None,
    };
    let by_module = (tracefs.backend() == Backend::Rhist).then(|| {
        let events: Vec<String> = events_of(&plan.measure)
            .iter()
            .map(|event| event.replace('/', ":"))
            .collect();
        by_module(&tracefs.hist_stats(), &events)
    });
    match (by_kernel, by_module) {
        (Some(kernel), Some(module)) => Some(kernel + module),
        (kernel, module) => kernel.or(module),
    }
}

/// Explains why none of the probes of a plan is called, if the machine's settings disable them.
pub fn disabled(plan: &Plan) -> Option<&'static str> {
    let is_off = |path: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == "0");
    let is_fprobe = |step: &Step| matches!(step, Step::Probe { definition, .. } if definition.starts_with('f'));
    if plan.steps.iter().any(is_fprobe) && is_off("/proc/sys/kernel/ftrace_enabled") {
        return Some("fprobes are not called, since kernel.ftrace_enabled is 0");
    }
    if plan.steps.iter().any(is_kprobe) && is_off("/sys/kernel/debug/kprobes/enabled") {
        return Some("kprobes are not called, since /sys/kernel/debug/kprobes/enabled is 0");
    }
    None
}

/// Returns whether a step creates a kprobe or kretprobe.
fn is_kprobe(step: &Step) -> bool {
    let Step::Probe { definition, .. } = step else {
        return false;
    };
    let is_of_program = definition.split(' ').nth(1).is_some_and(|place| place.starts_with('/'));
    definition.starts_with(['p', 'r']) && !is_of_program
}

/// Sums the hits that the probes of a group have missed. `kprobe_profile` does not show groups: its
/// lines are in the order of `kprobe_events`, provided that no probe was created or removed between
/// the two reads. `None` if that happened at each attempt.
fn by_kernel(read: impl Fn(&str) -> String, group: &str) -> Option<u64> {
    let mut probes = read("kprobe_events");
    for _ in 0..ATTEMPTS {
        let profile = read("kprobe_profile");
        let before = std::mem::replace(&mut probes, read("kprobe_events"));
        if before == probes {
            return Some(of_group(&probes, &profile, group));
        }
    }
    None
}

/// Sums the missed hits of a group. Line N of one file belongs to line N of the other.
fn of_group(probes: &str, profile: &str, group: &str) -> u64 {
    let missed = |(probe, profile): (&str, &str)| {
        let (found, _) = probe.split(' ').next()?.split_once(':')?.1.split_once('/')?;
        let number = profile.split_whitespace().next_back()?;
        (found == group).then(|| number.parse::<u64>().ok())?
    };
    probes.lines().zip(profile.lines()).filter_map(missed).sum()
}

/// Sums the hits of these events that the module has lost, from lines `system:event  source, 3
/// lost`.
fn by_module(stats: &str, events: &[String]) -> u64 {
    let lost = |line: &str| {
        let (event, rest) = line.split_once(' ')?;
        // Histograms of samples have lines that end so, too.
        let lost = rest
            .trim_start()
            .strip_suffix(" lost")
            .filter(|rest| !rest.starts_with("hist "))?;
        let lost = lost.rsplit(' ').next()?;
        events
            .iter()
            .any(|known| known == event)
            .then(|| lost.parse::<u64>().ok())?
    };
    stats.lines().filter_map(lost).sum()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PROBES: &str =
        "p:other/probe0 vfs_read\nr4096:rhist_1_2/probe0 do_nanosleep\np:rhist_1_2/probe1 vfs_read a=$arg1\n";
    const PROFILE: &str = "  probe0      7     1\n  probe0    200  1912\n  probe1     10    30\n";

    #[test]
    fn missed_by_the_kernel() {
        let read = |file: &str| match file {
            "kprobe_events" => PROBES.to_owned(),
            _ => PROFILE.to_owned(),
        };
        assert_eq!(by_kernel(read, "rhist_1_2"), Some(1942));
        assert_eq!(by_kernel(read, "other"), Some(1));
        assert_eq!(by_kernel(|_| String::new(), "rhist_1_2"), Some(0));
    }

    /// Probes of two runs have the same names, and a third run's probe disappears between two
    /// reads.
    #[test]
    fn missed_by_another_run() {
        let texts = [
            // The files with the third run's probe, and without it.
            (
                "p:x/probe0 a\np:rhist_1_2/probe0 b\np:rhist_3_4/probe0 c\n",
                " probe0 9 5\n probe0 9 7\n probe0 9 700\n",
            ),
            (
                "p:rhist_1_2/probe0 b\np:rhist_3_4/probe0 c\n",
                " probe0 9 7\n probe0 9 700\n",
            ),
        ];
        for goes_after in 0..8 {
            let reads = Cell::new(0);
            let read = |file: &str| {
                let (probes, profile) = texts[usize::from(reads.get() > goes_after)];
                reads.set(reads.get() + 1);
                if file == "kprobe_events" {
                    probes.to_owned()
                } else {
                    profile.to_owned()
                }
            };
            assert_eq!(by_kernel(read, "rhist_1_2"), Some(7), "{goes_after}");
        }
        // Gives up instead of waiting for the other processes.
        let reads = Cell::new(0);
        let read = |_: &str| {
            reads.set(reads.get() + 1);
            format!("p:x/probe{} a\n", reads.get())
        };
        assert_eq!(by_kernel(read, "x"), None);
    }

    #[test]
    fn lost_by_the_module() {
        let stats = "commands: 3\nreads: 1\nsched:sched_switch              probe, 5 lost\n\
                     sched:sched_waking              probe, 2 lost\nsched:sched_switch              hist 1: 7 unresolved, 4 missed\n";
        assert_eq!(by_module(stats, &["sched:sched_switch".to_owned()]), 5);
        assert_eq!(by_module(stats, &["sched:other".to_owned()]), 0);
        let stats = "rhist:sample                    clock, 2 lost\n\
                     rhist:sample                    hist 1: 954 samples, 0 filtered, 7 lost\n";
        assert_eq!(by_module(stats, &["rhist:sample".to_owned()]), 2);
    }
}
