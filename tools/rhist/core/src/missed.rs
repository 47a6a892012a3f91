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

/// How many there were until now of the events of a plan, or since they were made. `None` if nobody has counted them.
pub fn read(tracefs: &Tracefs, plan: &Plan) -> Option<u64> {
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let kernel = |file: &str| text(&tracefs.kernel().join(file));
    let has_kprobes = plan.steps.iter().any(is_kprobe);
    let by_kernel = has_kprobes.then(|| {
        let (probes, profile) = (kernel("kprobe_events"), kernel("kprobe_profile"));
        by_kernel(&probes, &profile, &plan.id.group())
    });
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

/// What the probes of a group have missed. `kprobe_profile` has no groups; its lines are in the order of those of `kprobe_events`.
fn by_kernel(probes: &str, profile: &str, group: &str) -> u64 {
    let missed = |(probe, profile): (&str, &str)| {
        let (found, event) = probe.split(' ').next()?.split_once(':')?.1.split_once('/')?;
        let words: Vec<&str> = profile.split_whitespace().collect();
        match words[..] {
            // A probe of somebody else may have come in between.
            [name, _, missed] if name == event && found == group => missed.parse::<u64>().ok(),
            _ => None,
        }
    };
    probes.lines().zip(profile.lines()).filter_map(missed).sum()
}

/// What the module has lost of these events: of lines `system:event  source, 3 lost`.
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
    use super::*;

    #[test]
    fn missed_by_the_kernel() {
        let probes =
            "p:other/probe0 vfs_read\nr4096:rhist_1_2/probe0 do_nanosleep\np:rhist_1_2/probe1 vfs_read a=$arg1\n";
        let profile = "  probe0      7     1\n  probe0    200  1912\n  probe1     10    30\n";
        assert_eq!(by_kernel(probes, profile, "rhist_1_2"), 1942);
        assert_eq!(by_kernel(probes, profile, "other"), 1);
        assert_eq!(by_kernel(probes, "", "rhist_1_2"), 0);
    }

    #[test]
    fn lost_by_the_module() {
        let stats = "commands: 3\nreads: 1\nsched:sched_switch              probe, 5 lost\n\
                     sched:sched_waking              probe, 2 lost\nsched:sched_switch              hist 1: 7 unresolved, 4 missed\n";
        assert_eq!(by_module(stats, &["sched:sched_switch".to_owned()]), 5);
        assert_eq!(by_module(stats, &["sched:other".to_owned()]), 0);
    }
}
