// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist` alone: prints the state of this machine, the runs, and first questions.

use std::fs;
use std::io;
use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;
use std::time::Instant;

use rhist_core::journal::Entries;
use rhist_core::journal::Journals;
use rhist_core::question::Cost;
use rhist_core::run;
use rhist_core::tracefs::Backend;
use rhist_core::tracefs::Tracefs;

use crate::run::tracefs;
use crate::screen;
use crate::screen::plain;

/// Time for which events of runs are counted.
const LOOK: Duration = Duration::from_millis(100);

/// Questions that people ask first, with the commands that answer them.
const QUESTIONS: [(&str, &str); 5] = [
    ("How long do tasks wait for a CPU?", "rhist runqlat"),
    ("How long do disks take?", "rhist biolatency"),
    ("Which system calls are slow, and how slow?", "rhist syscall-latency"),
    ("Where do tasks sleep?", "rhist offcputime"),
    ("What happens all the time?", "rhist top syscount"),
];

/// Prints the state, after removing objects of dead runs. With `dry_run`, removes nothing.
pub fn run(dry_run: bool) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let tracefs = tracefs(None)?;
    let journals = Journals::find();
    let (done, failed) = match dry_run {
        true => (Vec::new(), Vec::new()),
        false => run::reap(&tracefs, &journals, false),
    };
    match tracefs.backend() {
        Backend::Rhist => {
            let version = fs::read_to_string("/sys/module/rhist/version").unwrap_or_default();
            writeln!(out, "rhist {} is loaded: {}", version.trim(), tracefs.dir().display())?;
        }
        Backend::C => writeln!(
            out,
            "The module is not loaded (modprobe rhist): the kernel's own histograms are used, which cost more and can do less"
        )?,
    }
    for entries in done {
        writeln!(
            out,
            "removed the objects of a run that had died: rhist {}",
            plain(&entries.command)
        )?;
    }
    let runs = journals.list();
    if runs.is_empty() {
        writeln!(out, "Nothing is being measured by rhist.")?;
    } else {
        let before: Vec<_> = runs.iter().map(|(entries, _)| run::events(&tracefs, entries)).collect();
        let start = Instant::now();
        sleep(LOOK);
        for ((entries, is_alive), before) in runs.iter().zip(before) {
            let error = failed
                .iter()
                .find(|(failed, _)| failed.id == entries.id)
                .map(|(_, error)| error);
            let state = match (is_alive, entries.kept, error) {
                (true, ..) => String::new(),
                (false, true, _) => " (kept; rhist clean removes it)".to_owned(),
                (false, false, Some(error)) => format!(" (its process is gone, and it could not be removed: {error})"),
                (false, false, None) => " (its process is gone; the next rhist removes it)".to_owned(),
            };
            let cost = run::events(&tracefs, entries).zip(before).map_or(
                String::new(),
                |((events, rejected), (before, rejected_before))| {
                    let events = events.saturating_sub(before);
                    let rejected = rejected.map(|now| now.saturating_sub(rejected_before.unwrap_or(0)));
                    cost(events, rejected, start.elapsed().as_secs_f64(), entries.cost)
                },
            );
            writeln!(
                out,
                "  {}: rhist {}{state}{cost}",
                entries.id.instance(),
                plain(&entries.command)
            )?;
        }
    }
    let others = others(&tracefs, &runs);
    if !others.is_empty() {
        writeln!(out, "Instances of others: {}", plain(&others.join(", ")))?;
    }
    writeln!(out)?;
    let width = QUESTIONS.iter().map(|(_, command)| command.len()).max().unwrap_or(0);
    for (question, command) in QUESTIONS {
        writeln!(out, "  {command:width$}  {question}")?;
    }
    writeln!(out, "\nrhist ls recipes lists all recipes, rhist --help all commands.")?;
    Ok(ExitCode::SUCCESS)
}

/// Formats the cost: `: 12,345 events/s, 9 rejected/s, 0.1 % of a CPU`.
fn cost(events: u64, rejected: Option<u64>, seconds: f64, cost: Cost) -> String {
    let rate = |count| screen::rate(count as f64 / seconds);
    let by_filters = rejected
        .filter(|hits| *hits > events / 100)
        .map_or(String::new(), |hits| format!(", {} rejected/s", rate(hits)));
    let percent = cost.of(events, rejected).map_or(String::new(), |ns| {
        format!(", {} of a CPU", screen::percent(ns / 1e9 / seconds))
    });
    format!(": {} events/s{by_filters}{percent}", rate(events))
}

/// Instances that do not belong to a run of rhist, whatever their names.
fn others(tracefs: &Tracefs, runs: &[(Entries, bool)]) -> Vec<String> {
    let is_run = |name: &str| runs.iter().any(|(entries, _)| entries.id.instance() == name);
    // The instance in which the module keeps its triggers.
    let is_own = |name: &str| name == "rhist" && tracefs.backend() == Backend::Rhist;
    let Ok(entries) = fs::read_dir(tracefs.kernel().join("instances")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !is_run(name) && !is_own(name))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_as_in_reports() {
        let known = Cost {
            event_ns: Some(61.5),
            rejected_ns: Some(20.0),
        };
        let text = |events, rejected, cost_of| cost(events, rejected, 10.0, cost_of);
        assert_eq!(text(123_454, Some(0), known), ": 12,345 events/s, 0.08 % of a CPU");
        assert_eq!(text(4, None, known), ": 0.4 events/s, less than 0.01 % of a CPU");
        assert_eq!(text(70, None, Cost::default()), ": 7.0 events/s");
        assert_eq!(
            text(0, Some(10_000_000), known),
            ": 0 events/s, 1,000,000 rejected/s, 2.00 % of a CPU"
        );
    }
}
