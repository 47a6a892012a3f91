// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a hit of a run's triggers costs on this machine.
//!
//! A second run of the same kind measures an event that this thread makes happen: its own renaming, to the name that it has.
//! The difference to renaming without triggers is their cost.

use std::error::Error;
use std::ffi::CString;
use std::time::Duration;
use std::time::Instant;

use crate::journal::Journals;
use crate::plan::Id;
use crate::plan::Options;
use crate::plan::Plan;
use crate::question::Question;
use crate::recipe::Count;
use crate::recipe::Measure;
use crate::recipe::Point;
use crate::run::Run;
use crate::tracefs::Tracefs;

const EVENT: &str = "task:task_rename";
/// Whoever traces renames sees these, so they are few.
const ROUNDS: u32 = 8;
const RENAMES: u32 = 32;

/// Measures what a hit costs on average, in nanoseconds of a CPU, when `keys` are counted. Takes less than a millisecond of
/// a CPU, and some time until the kernel has removed the triggers.
///
/// # Errors
///
/// Those of a run: such as that the kernel has no event for renames; or `of` measures renames itself.
pub fn measure(
    tracefs: &Tracefs,
    journals: &Journals,
    id: &Id,
    of: &Measure,
    keys: &[String],
) -> Result<f64, Box<dyn Error + Send + Sync>> {
    let counts = of.count.iter().map(|count| &count.event);
    let points = of.start.iter().chain(&of.end).map(|point| &point.event);
    if counts.chain(points).any(|event| event == EVENT) {
        return Err("renames are what is measured, so none may be added".into());
    }
    let name = std::fs::read("/proc/thread-self/comm")?;
    let name = CString::new(name.strip_suffix(b"\n").unwrap_or(&name))?;
    let plan = Plan::new(tracefs, id.second(), &alike(of), &options(keys), Question::default())?;
    let without = renames(&name)?;
    let mut run = Run::start(tracefs.clone(), journals, plan, "(cost of a hit)")?;
    let with = renames(&name)?;
    let events = run.reading()?.events;
    run.stop()?;
    if events == 0 {
        return Err("renames were not counted".into());
    }
    let each = f64::from(ROUNDS * RENAMES) / events as f64 / f64::from(RENAMES);
    Ok(with.saturating_sub(without).as_nanos() as f64 * each)
}

/// As many keys as those, of the same kinds.
fn options(keys: &[String]) -> Options {
    let mut by: Vec<String> = keys
        .iter()
        .map(|key| match key {
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
        ..Options::default()
    }
}

/// As many starts, ends and values, of renames.
fn alike(of: &Measure) -> Measure {
    let point = |point: &Point| Point {
        event: EVENT.to_owned(),
        on: vec!["pid".to_owned()],
        of: point.of,
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

/// The shortest of some rounds of renaming.
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
    use super::*;

    #[test]
    fn adds_no_renames_to_those_that_are_counted() {
        let tracefs = Tracefs::at(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures").into()).unwrap();
        let journals = Journals::at("/nonexistent".into());
        let of = Measure {
            count: vec![Count {
                event: EVENT.to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        };
        let error = measure(&tracefs, &journals, &Id::example(), &of, &[]).unwrap_err();
        assert!(error.to_string().starts_with("renames are what is measured"), "{error}");
    }
}
