// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures the cost of a hit of a run's triggers on this machine.
//!
//! A second run with similar triggers measures an event that this thread causes: it renames itself
//! to its current name. The cost is the difference to renames without triggers.

use std::error::Error;
use std::ffi::CString;
use std::time::Duration;
use std::time::Instant;

use crate::journal::Journals;
use crate::plan;
use crate::plan::Options;
use crate::plan::Plan;
use crate::question::Cost;
use crate::question::Question;
use crate::recipe::Count;
use crate::recipe::Measure;
use crate::recipe::Point;
use crate::room::LEAST;
use crate::run::Run;
use crate::run::Wanted;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;

const EVENT: &str = "task:task_rename";
/// Few rounds, because other tracers of the rename event see them too.
const ROUNDS: u32 = 8;
const RENAMES: u32 = 32;

/// Measures the average cost of a hit of such a run and, if the run has filters, of a rejected hit.
/// Takes less than a millisecond of CPU time, and waits until the kernel has removed the triggers.
///
/// # Errors
///
/// A run cannot start (for example, the kernel lacks the event for renames), or `of` measures
/// renames itself.
pub fn measure(tracefs: &Tracefs, journals: &Journals, of: &Plan) -> Result<Cost, Box<dyn Error + Send + Sync>> {
    let mut events = plan::events_of(&of.measure).into_iter().map(EventName::parse);
    if events.any(|event| event == EventName::parse(EVENT)) {
        return Err("renames are what is measured, so none may be added".into());
    }
    let name = std::fs::read("/proc/thread-self/comm")?;
    let name = CString::new(name.strip_suffix(b"\n").unwrap_or(&name))?;
    let alike = alike(&of.measure);
    let without = renames(&name)?;
    // Extra time of a rename with these triggers, in nanoseconds, and the totals that the triggers
    // counted.
    let with = |measure: &Measure, filter: Option<&str>| -> Result<_, Box<dyn Error + Send + Sync>> {
        let options = options(of, filter);
        let plan = Plan::new(tracefs, of.id.second(), measure, &options, Question::default())?;
        let mut run = Run::start(tracefs.clone(), journals, plan, "(cost of a hit)", Wanted::Totals)?;
        run.begin()?;
        let with = renames(&name)?;
        let reading = run.reading()?;
        run.stop()?;
        let ns = with.saturating_sub(without).as_nanos() as f64 / f64::from(RENAMES);
        Ok((ns, reading))
    };
    let renames = f64::from(ROUNDS * RENAMES);
    let filters = filters(of);
    let (ns, counted) = with(&alike, filters.map(|[passes, _]| passes))?;
    if counted.events == 0 {
        return Err("renames were not counted".into());
    }
    let mut cost = Cost {
        event_ns: Some(ns * renames / counted.events as f64),
        rejected_ns: None,
    };
    // Useful only if the kernel counts rejected hits.
    if let (Some([_, rejects]), Some(_)) = (filters, counted.rejected) {
        let one = Measure {
            count: vec![Count {
                event: EVENT.to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        };
        let (ns, rejected) = with(&one, Some(rejects))?;
        let hits = rejected.rejected.filter(|hits| *hits > 0);
        cost.rejected_ns = hits.map(|hits| ns * renames / hits as f64);
    }
    Ok(cost)
}

/// Two filters of the run's kind: the first passes all hits, the second rejects all. `None` if the
/// run does not filter.
fn filters(of: &Plan) -> Option<[&'static str; 2]> {
    let has_text = |filter: &str| filter.contains('"');
    match of.filters().map(has_text).max()? {
        true => Some(["COMM != \"-\"", "COMM == \"-\""]),
        false => Some(["common_pid != 0", "common_pid == 0"]),
    }
}

/// Options with the same number and kinds of keys, with room that grows only if the run has such,
/// and with this filter.
fn options(of: &Plan, filter: Option<&str>) -> Options {
    let has_room = of.steps.iter().any(|step| plan::has_room(step.text()));
    let keys = of.measure.by.iter();
    let mut by: Vec<String> = keys
        .map(|key| match key {
            _ if key.contains("ustack") => plan::USTACK,
            _ if key.contains("stack") => "common_stacktrace",
            _ if key.contains("comm") || key.contains("name") => "newcomm",
            _ => "pid",
        })
        .map(str::to_owned)
        .collect();
    by.sort();
    by.dedup();
    Options {
        by: Some(by),
        is_fixed: !has_room,
        filter: filter.map(str::to_owned),
        ..Options::default()
    }
}

/// A measure of renames with the same number of starts, ends and values, and with little room: one
/// task renames itself, and C allocates all entries before the first hit.
fn alike(of: &Measure) -> Measure {
    let point = |point: &Point| Point {
        event: EVENT.to_owned(),
        on: vec!["pid".to_owned()],
        of: point.of,
        size: Some(LEAST),
        ..Point::default()
    };
    let values = |values: &[String]| values.iter().take(1).map(|_| "pid".to_owned()).collect();
    Measure {
        start: of.start.iter().map(point).collect(),
        end: of.end.iter().map(point).collect(),
        save: of.save.iter().take(1).map(|_| "newcomm".to_owned()).collect(),
        count: of
            .count
            .iter()
            .take(1)
            .map(|count| Count {
                event: EVENT.to_owned(),
                sum: values(&count.sum),
                stat: values(&count.stat),
                dist: values(&count.dist),
                ..Count::default()
            })
            .collect(),
        ..Measure::default()
    }
}

/// Shortest round of renames.
fn renames(name: &CString) -> Result<Duration, rustix::io::Errno> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..RENAMES {
            rustix::thread::set_name(name)?;
        }
        best = best.min(start.elapsed());
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::plan::Id;
    use crate::tracefs::fixture;

    #[test]
    fn adds_no_renames_to_those_that_are_counted() {
        let root = tempfile::tempdir().unwrap();
        for event in ["task/task_rename", "sched/sched_switch"] {
            let folder = root.path().join("events").join(event);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("format"), "").unwrap();
        }
        let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
        let journals = Journals::at(root.path().join("none/run"));
        let count = |event: &str| Measure {
            count: vec![Count {
                event: event.to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        };
        let first = Measure {
            alternatives: vec![count("task/task_rename")],
            ..count("sched:sched_switch")
        };
        let cost = |of: &Measure| {
            let plan = Plan::new(&tracefs, Id::example(), of, &Options::default(), Question::default()).unwrap();
            measure(&tracefs, &journals, &plan).unwrap_err().to_string()
        };
        let refused = "renames are what is measured, so none may be added";
        // The first way does not trace renames; its alternative does.
        assert_ne!(cost(&first), refused);
        assert_eq!(cost(&first.alternatives[0]), refused);
        assert_eq!(cost(&count(EVENT)), refused);
    }

    #[test]
    fn needs_little_room() {
        let (_root, tracefs) = fixture::tracefs(false);
        let point = |event: &str, on: &str| Point {
            event: event.to_owned(),
            on: vec![on.to_owned()],
            ..Point::default()
        };
        let measure = Measure {
            start: vec![point("sched:sched_waking", "pid")],
            end: vec![point("sched:sched_switch", "next_pid")],
            ..Measure::default()
        };
        let plan = Plan::new(
            &tracefs,
            Id::example(),
            &alike(&measure),
            &Options::default(),
            Question::default(),
        );
        let plan = plan.unwrap();
        let texts: Vec<&str> = plan.steps.iter().map(|step| step.text()).collect();
        assert!(texts[0].ends_with(":size=65"), "{texts:?}");
        assert!(!texts.iter().any(|text| text.contains("16384")), "{texts:?}");
    }

    /// A module that refuses to let the run's histograms grow would refuse others, too.
    #[test]
    fn room_is_like_that_of_the_run() {
        let (_root, tracefs) = fixture::tracefs(true);
        let measure = Measure {
            by: vec!["next_pid".to_owned()],
            count: vec![Count {
                event: "sched:sched_switch".to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        };
        for is_fixed in [false, true] {
            let of_run = Options {
                is_fixed,
                ..Options::default()
            };
            let plan = Plan::new(&tracefs, Id::example(), &measure, &of_run, Question::default()).unwrap();
            assert_eq!(options(&plan, None).is_fixed, is_fixed);
        }
    }
}
