// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans triggers that measure the time between starts and ends.

use super::address;
use super::answer::Shows;
use super::clause::dist_clauses;
use super::clause::growing;
use super::clause::keys_or_cpu;
use super::clause::number_of;
use super::clause::room;
use super::clause::since;
use super::clause::size_of;
use super::commands::Plan;
use super::error::Error;
use super::filter::condition;
use super::filter::options_filter;
use super::filter::others_filter;
use super::measure::event_of;
use super::measure::filters_starts;
use super::measure::has_program;
use super::measure::split_key;
use super::options::Asked;
use super::options::Options;
use super::options::has_dist;
use super::synthetic;
use super::synthetic::Carried;
use crate::recipe::Measure;
use crate::recipe::Point;

/// Adds the triggers to the plan.
pub(super) fn plan(plan: &mut Plan, asked: Asked<'_>) -> Result<(), Error> {
    let Asked {
        tracefs,
        measure,
        options,
        keys,
    } = asked;
    if measure.start.is_empty() || measure.end.is_empty() {
        return Err(Error::Impossible(
            "expected an event to count, or a start and an end".to_owned(),
        ));
    }
    let filter = options_filter(measure, options, has_dist(asked.tracefs))?;
    let keeps: Vec<&str> = measure.start[0].keep.keys().map(String::as_str).collect();
    let kept: Vec<&str> = keeps
        .iter()
        .copied()
        .filter(|name| is_used(name, keys) || is_used(name, &measure.save))
        .collect();
    let is_direct =
        has_dist(tracefs) && options.slower.or(options.faster).is_none() && kept.is_empty() && !has_program(keys);
    let numbers;
    let asked = match is_direct {
        true => asked,
        false => {
            numbers = address::as_numbers(plan, asked)?;
            numbers.asked(asked)
        }
    };

    plan.answer.has_times = true;
    let leaves_out_starts = filters_starts(measure) && !filter.is_empty();
    plan.answer.tells_ends = !leaves_out_starts && !measure.end.iter().any(|end| end.alone);
    let mut left_out = Vec::new();
    for (i, start) in measure.start.iter().enumerate() {
        let value = match start.value {
            Some(_) => since(start, start.of.unwrap_or(i)),
            None => "common_timestamp".to_owned(),
        };
        let free = match start.first {
            true => free(plan, asked, i)?,
            false => String::new(),
        };
        let mut command = format!("hist:keys={}:{free}ts{i}={value}", start.on.join(","));
        for (k, name) in kept.iter().enumerate() {
            let field = start.keep.get(*name).ok_or_else(|| {
                Error::Impossible(format!(
                    "start {} does not keep {name}, which another start does",
                    start.event
                ))
            })?;
            command += &format!(",kept{i}_{k}={field}");
        }
        command += &room(asked, i);
        let (filter, others) = match filters_starts(measure) {
            true => (filter.as_str(), others_filter(measure, options, &start.event, None)),
            false => ("", Some(String::new())),
        };
        if others.is_none() {
            plan.note_self();
        }
        let others = others.unwrap_or_default();
        command += &condition(&[&start.filter, filter, &others]);
        let (event, place) = plan.add_trigger(&event_of(&start.event)?, command);
        plan.answer.add(event, place, Shows::Starts);
        if !others.is_empty() && plan.answer.tells_ends && has_dist(tracefs) {
            leave_out(plan, asked, i, &others)?;
            left_out.push(i);
        }
    }
    for (f, forget) in measure.forget.iter().enumerate() {
        for i in starts_of(forget, measure) {
            void(plan, asked, forget, &format!("gone{f}_{i}"), "ts", i)?;
            if left_out.contains(&i) {
                void(plan, asked, forget, &format!("went{f}_{i}"), "own", i)?;
            }
        }
    }
    // rhist's own threads are never the idle task.
    let is_idle = format!("{} == 0", measure.pid.as_deref().unwrap_or("common_pid"));
    for (e, end) in measure.end.iter().enumerate() {
        let (filter, others) = match filters_starts(measure) {
            true => ("", Some(String::new())),
            false if end.filter == is_idle => (filter.as_str(), Some(String::new())),
            false => (
                filter.as_str(),
                others_filter(measure, options, &end.event, Some(&end.on)),
            ),
        };
        if others.is_none() {
            plan.note_self();
        }
        let filter = condition(&[&end.filter, filter, &others.unwrap_or_default()]);
        for i in starts_of(end, measure) {
            if is_direct {
                direct(plan, asked, end, (e, i), &filter)?;
            } else {
                let carried = Carried {
                    kept: &kept,
                    start: &measure.start[i],
                    end,
                };
                synthetic::plan(plan, asked, &carried, (e, i), &filter)?;
            }
        }
    }
    // An end that the filter rejects must also void its starts, or a later end would find them.
    if !filter.is_empty() && !filters_starts(measure) {
        for (e, end) in measure.end.iter().enumerate() {
            if measure.start.len() == 1 && passes_all_of_key(measure, options, end) {
                continue;
            }
            for i in starts_of(end, measure) {
                void(plan, asked, end, &format!("over{e}_{i}"), "ts", i)?;
            }
        }
    }
    Ok(())
}

/// Returns whether the filter treats all ends that look up the same start alike.
fn passes_all_of_key(measure: &Measure, options: &Options, end: &Point) -> bool {
    let pid = measure.pid.as_deref().unwrap_or("common_pid");
    // A task may go to another control group between start and end.
    let is_of_task = options.filter.is_none() && options.cgroup.is_none();
    is_of_task && end.on.iter().any(|key| key == pid)
}

/// Adds triggers for starts by rhist's own threads, which are not measured. Their ends find these
/// starts, and so do not count as ends without a start.
fn leave_out(plan: &mut Plan, asked: Asked<'_>, i: usize, others: &str) -> Result<(), Error> {
    let measure = asked.measure;
    let start = &measure.start[i];
    let command = format!(
        "hist:keys={}:own{i}=common_timestamp{}{}",
        start.on.join(","),
        room(asked, i),
        condition(&[&start.filter, &format!("!({others})")])
    );
    let (event, place) = plan.add_trigger(&event_of(&start.event)?, command);
    plan.answer.add(event, place, Shows::Nothing);
    for (e, end) in measure.end.iter().enumerate() {
        if !starts_of(end, measure).contains(&i) {
            continue;
        }
        let command = format!(
            "hist:keys=common_cpu:on({}):left{e}_{i}=common_timestamp-$own{i}{}",
            end.on.join(","),
            condition(&[&end.filter])
        );
        let (event, place) = plan.add_trigger(&event_of(&end.event)?, command);
        plan.answer.add_end(event, place, Shows::Ends, number_of(end, measure));
    }
    Ok(())
}

/// Adds a trigger that sets a variable at the end. Returns a variable for the start to use up
/// first: if it is unset, the previous start has not ended, and the start does nothing.
fn free(plan: &mut Plan, asked: Asked<'_>, i: usize) -> Result<String, Error> {
    let measure = asked.measure;
    let end = measure.end.iter().find(|end| starts_of(end, measure).contains(&i));
    let end = end.ok_or_else(|| Error::Impossible(format!("start {i} has no end")))?;
    let command = format!(
        "hist:keys={}:free{i}=common_timestamp{}{}",
        end.on.join(","),
        // Without an entry, the next start would not count.
        growing(asked, i),
        condition(&[&end.filter])
    );
    let (event, place) = plan.add_trigger(&event_of(&end.event)?, command);
    // A dropped entry here loses a start, so its drops are reported.
    plan.answer.add(event, place, Shows::Nothing);
    Ok(format!("was{i}=common_timestamp-$free{i},"))
}

/// Adds a trigger that uses up this variable of a start.
fn void(plan: &mut Plan, asked: Asked<'_>, point: &Point, name: &str, variable: &str, i: usize) -> Result<(), Error> {
    // A variable that is the whole expression is not used up.
    let given = point
        .given
        .map_or(String::new(), |start| format!("given=${variable}{start},"));
    let on = point.on.join(",");
    // Nobody reads this histogram. C looks up the variable only by the keys of the trigger.
    let keys = match has_dist(asked.tracefs) {
        true => format!("keys=common_cpu:on({on})"),
        false => format!("keys={on}{}", room(asked, i)),
    };
    let command = format!(
        "hist:{keys}:{given}{name}=common_timestamp-${variable}{i}{}",
        condition(&[&point.filter])
    );
    let (event, place) = plan.add_trigger(&event_of(&point.event)?, command);
    plan.answer.add(event, place, Shows::Void);
    Ok(())
}

/// Adds rhist's trigger, which computes the distribution in the end's own histogram.
fn direct(plan: &mut Plan, asked: Asked<'_>, end: &Point, (e, i): (usize, usize), filter: &str) -> Result<(), Error> {
    let Asked {
        measure, options, keys, ..
    } = asked;
    let since = since(end, i);
    let mut command = format!("hist:keys={}", keys_or_cpu(keys));
    // Without on(), the keys are used for the lookup.
    if end.on[..] != *keys {
        command += &format!(":on({})", end.on.join(","));
    }
    if measure.save.is_empty() {
        command += &format!(":vals=({since}).dist");
    } else {
        // For onmax() only: values cannot refer to variables of their own trigger.
        command += &format!(
            ":lat{e}_{i}={since}:vals=({since}).dist:onmax($lat{e}_{i}).save({})",
            measure.save.join(",")
        );
    }
    command += &dist_clauses(options);
    command += &size_of(asked);
    command += filter;
    let (event, place) = plan.add_trigger(&event_of(&end.event)?, command);
    plan.answer.add_end(event, place, Shows::Rows, number_of(end, measure));
    Ok(())
}

/// Numbers of the starts that a point refers to.
fn starts_of(point: &Point, measure: &Measure) -> Vec<usize> {
    match point.of {
        Some(i) if i < measure.start.len() => vec![i],
        Some(_) => Vec::new(),
        None => (0..measure.start.len()).collect(),
    }
}

fn is_used(name: &str, keys: &[String]) -> bool {
    keys.iter().any(|key| split_key(key).0.strip_prefix('$') == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Id;
    use crate::plan::Step;
    use crate::question::Question;
    use crate::recipe::FilterAt;
    use crate::tracefs::fixture;

    fn point(event: &str, on: &str, filter: &str) -> Point {
        Point {
            event: event.to_owned(),
            on: vec![on.to_owned()],
            filter: filter.to_owned(),
            ..Point::default()
        }
    }

    fn measure() -> Measure {
        Measure {
            start: vec![point("sched:sched_waking", "pid", "pid != 0")],
            end: vec![point("sched:sched_switch", "next_pid", "")],
            forget: vec![point("sched:sched_switch", "prev_pid", "prev_state & 48")],
            ..Measure::default()
        }
    }

    fn plan(is_rhist: bool, measure: &Measure, options: &Options) -> Plan {
        let (_root, tracefs) = fixture::tracefs(is_rhist);
        Plan::new(&tracefs, Id::example(), measure, options, Question::default()).unwrap()
    }

    fn texts(plan: &Plan) -> Vec<&str> {
        plan.steps.iter().map(Step::text).collect()
    }

    /// By the stack of a program, times are counted by an event that carries them: only a histogram
    /// that just counts has room for such keys.
    #[test]
    fn stacks_of_programs_are_only_counted() {
        let (root, tracefs) = fixture::tracefs(true);
        std::fs::create_dir(root.path().join("user_objects")).unwrap();
        let counted = |by: &str| {
            let measure = Measure {
                by: vec![by.to_owned()],
                save: vec!["prev_pid".to_owned()],
                ..measure()
            };
            let plan = Plan::new(
                &tracefs,
                Id::example(),
                &measure,
                &Options::default(),
                Question::default(),
            )
            .unwrap();
            let counts = |text: &&str| text.starts_with(&format!("hist:keys={by}"));
            let texts = texts(&plan);
            texts.into_iter().find(counts).map(str::to_owned).unwrap()
        };
        let program = counted("common_ustack");
        assert_eq!(
            program,
            "hist:keys=common_ustack:vals=lat.dist:ustack(127):size=2048..131072:full(other)"
        );
        let kernel = counted("common_stacktrace");
        assert!(
            kernel.contains(".dist:onmax($lat0_0).save(prev_pid)") && !kernel.contains("ustack("),
            "{kernel}"
        );
    }

    #[test]
    fn what_makes_starts_void() {
        let rhist_start = "hist:keys=pid:ts0=common_timestamp:size=4096..262144:expire(taken,1h) if pid != 0";
        let c_start = "hist:keys=pid:ts0=common_timestamp:size=16384 if pid != 0";
        let rhist = "hist:keys=common_cpu:on(prev_pid):gone0_0=common_timestamp-$ts0 if prev_state & 48";
        let c = "hist:keys=prev_pid:size=16384:gone0_0=common_timestamp-$ts0 if prev_state & 48";
        for (is_rhist, start, forget) in [(true, rhist_start, rhist), (false, c_start, c)] {
            let plan = plan(is_rhist, &measure(), &Options::default());
            let texts: Vec<&str> = texts(&plan)
                .into_iter()
                .filter(|text| text.starts_with("hist:"))
                .collect();
            let place = |text: &str| texts.iter().position(|other| *other == text);
            assert!(place(start).is_some() && place(start) < place(forget), "{texts:?}");
        }
    }

    #[test]
    fn the_first_of_several_starts() {
        for (is_rhist, free, room) in [
            (true, "4096..262144", "4096..262144:expire(taken,1h)"),
            (false, "16384", "16384"),
        ] {
            let mut measure = measure();
            measure.forget.clear();
            measure.start[0].first = true;
            let plan = plan(is_rhist, &measure, &Options::default());
            assert_eq!(
                texts(&plan)[..2],
                [
                    format!("hist:keys=next_pid:free0=common_timestamp:size={free}"),
                    format!("hist:keys=pid:was0=common_timestamp-$free0,ts0=common_timestamp:size={room} if pid != 0"),
                ]
            );
            assert!(plan.answer.tells_drops_of("sched/sched_switch", 0));
        }
    }

    #[test]
    fn what_the_idle_task_does_is_not_that_of_who_measures() {
        let own = Options {
            own: vec![7],
            ..Options::default()
        };
        let notes = |filter: &str| {
            let measure = Measure {
                start: vec![point("sched:sched_waking", "common_cpu", filter)],
                end: vec![point("sched:sched_switch", "common_cpu", filter)],
                ..Measure::default()
            };
            plan(true, &measure, &own).question.notes
        };
        assert_eq!(notes("").len(), 1);
        assert_eq!(notes("common_pid == 0"), [""; 0]);
    }

    #[test]
    fn when_an_end_without_a_start_is_told() {
        let by_name = Options {
            comm: Some("x".to_owned()),
            ..Options::default()
        };
        let tells = |measure: &Measure, options: &Options| plan(true, measure, options).answer.tells_ends;
        assert!(tells(&measure(), &Options::default()));
        assert!(tells(&measure(), &by_name));
        // The filter leaves out starts of others, but not their ends.
        let at_start = Measure {
            filter_at: FilterAt::Start,
            ..measure()
        };
        assert!(tells(&at_start, &Options::default()));
        assert!(!tells(&at_start, &by_name));
        let mut alone = measure();
        alone.end[0].alone = true;
        assert!(!tells(&alone, &Options::default()));
    }

    /// Ends of starts that were left out count as found.
    #[test]
    fn starts_that_are_left_out_have_ends() {
        let own = Options {
            own: vec![7],
            ..Options::default()
        };
        let of_own = |is_rhist, measure: &Measure, options: &Options| {
            let plan = plan(is_rhist, measure, options);
            let texts = texts(&plan).into_iter().filter(|text| text.contains("own0"));
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut at_start = Measure {
            filter_at: FilterAt::Start,
            ..measure()
        };
        let others = "(common_pid != 7) || common_flags & 88";
        assert_eq!(
            of_own(true, &at_start, &own),
            [
                format!(
                    "hist:keys=pid:own0=common_timestamp:size=4096..262144:expire(taken,1h) if (pid != 0) && (!({others}))"
                ),
                "hist:keys=common_cpu:on(next_pid):left0_0=common_timestamp-$own0".to_owned(),
                "hist:keys=common_cpu:on(prev_pid):went0_0=common_timestamp-$own0 if prev_state & 48".to_owned(),
            ]
        );
        // No such triggers if no start is left out, or if ends without a start are not counted, as
        // in C.
        assert_eq!(of_own(true, &measure(), &own), [""; 0]);
        assert_eq!(of_own(true, &at_start, &Options::default()), [""; 0]);
        assert_eq!(of_own(false, &at_start, &own), [""; 0]);
        at_start.end[0].alone = true;
        assert_eq!(of_own(true, &at_start, &own), [""; 0]);
    }
}
