// SPDX-License-Identifier: MIT OR Apache-2.0

//! Hits of which no trigger knows: the kernel has not called for them, or the module had no room for their records.
//!
//! The kernel counts them for probes of functions (`kprobe_profile`), the module for each event (`hist_stats`). That of fprobes
//! and uprobes is counted by nobody whom one could ask.

use std::fs;
use std::path::Path;

use crate::plan::Plan;
use crate::plan::Step;
use crate::plan::events_of;
use crate::question::Backend;
use crate::tracefs::Tracefs;

/// How often the kernel's files are read again, since others make and remove probes.
const ATTEMPTS: usize = 20;

/// How many there were until now of the events of a plan, or since they were made. `None` if nobody
/// has counted them, or they cannot be told from those of others now.
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
        by_module(&text(&tracefs.dir().join("hist_stats")), &events)
    });
    match (by_kernel, by_module) {
        (Some(kernel), Some(module)) => Some(kernel + module),
        (kernel, module) => kernel.or(module),
    }
}

/// Why none of the probes of a plan is called, if the machine is set so.
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

/// Whether a step makes a kprobe or kretprobe.
fn is_kprobe(step: &Step) -> bool {
    let Step::Probe { definition, .. } = step else {
        return false;
    };
    let is_of_program = definition.split(' ').nth(1).is_some_and(|place| place.starts_with('/'));
    definition.starts_with(['p', 'r']) && !is_of_program
}

/// Hits that the probes of a group have missed. `kprobe_profile` has no groups: its lines are in
/// the order of those of `kprobe_events`, as long as nobody makes or removes a probe between the
/// two readings. `None` if somebody did each time.
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

/// Sums the missed hits of a group's probes; line N of one file belongs to line N of the other.
fn of_group(probes: &str, profile: &str, group: &str) -> u64 {
    let missed = |(probe, profile): (&str, &str)| {
        let (found, _) = probe.split(' ').next()?.split_once(':')?.1.split_once('/')?;
        let number = profile.split_whitespace().next_back()?;
        (found == group).then(|| number.parse::<u64>().ok())?
    };
    probes.lines().zip(profile.lines()).filter_map(missed).sum()
}

/// Hits of these events that the module has lost, from lines `system:event  source, 3 lost`.
fn by_module(stats: &str, events: &[String]) -> u64 {
    let lost = |line: &str| {
        let (event, rest) = line.split_once(' ')?;
        let lost = rest.strip_suffix(" lost")?.rsplit(' ').next()?;
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

    /// Probes of two runs have the same names, and that of a third one goes between two readings.
    #[test]
    fn missed_by_another_run() {
        let texts = [
            // With it, and without.
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
        // Nobody waits until others have done.
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
    }
}
