// SPDX-License-Identifier: MIT OR Apache-2.0

//! Turns a question into commands for the kernel, and the resulting histograms into an answer.
//!
//! rhist's histograms measure the time between two events with two triggers (`on(…)`, `.dist`). C's
//! need a synthetic event that carries the time, and a third trigger that counts it by powers of
//! two. rhist also uses a synthetic event if the question has a condition on the time, or counts by
//! values that a start has kept.

mod address;
mod answer;
mod clause;
mod commands;
mod count;
mod error;
mod filter;
mod group;
mod latency;
mod measure;
mod options;
mod step;
mod synthetic;

pub use answer::Answer;
pub use answer::Gone;
use answer::Shows;
#[cfg(test)]
pub(crate) use answer::tests::hist_jsonl;
pub(crate) use clause::has_room;
pub(crate) use commands::FORKS;
pub use commands::Instead;
pub(crate) use commands::NO_TASK;
pub(crate) use commands::NO_TASKS;
pub use commands::Plan;
pub use commands::Plans;
pub(crate) use commands::TASKS;
pub(crate) use commands::task_list;
pub use error::Error;
pub(crate) use group::add_names as add_task_names;
pub(crate) use group::lack_of_programs;
pub use group::task_keys;
use measure::RUNNING;
pub(crate) use measure::USTACK;
pub use measure::events_of;
use measure::fill_in;
use measure::has_program;
use measure::is_there;
use measure::names_of;
use measure::signed;
use measure::split_key;
use options::Asked;
pub use options::Options;
use options::has_dist;
pub use step::Id;
use step::MOST_ACTIVE;
pub use step::Step;
pub use step::word;

use crate::grammar::Trigger;
use crate::question::Question;
use crate::recipe::Count;
use crate::recipe::Measure;
use crate::recipe::NameKind;
use crate::recipe::UnitName;
use crate::samples;
use crate::table::BucketUnit;
use crate::table::Unit;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;
use crate::tracefs::format::FieldKind;

/// Limit of a command for the kernel, in bytes: less than the smallest page.
const MOST_BYTES: usize = 4095;

impl Plan {
    /// Plans a measurement. `question` describes the recipe and the machine; the plan completes it.
    pub fn new(
        tracefs: &Tracefs,
        id: Id,
        measure: &Measure,
        options: &Options,
        question: Question,
    ) -> Result<Self, Error> {
        let mut measure = fill_in(measure, &id, &options.args)?;
        let unit = match measure.unit {
            UnitName::Count => Unit::Plain,
            UnitName::Ns => Unit::Nanoseconds,
            UnitName::Us => Unit::Microseconds,
            UnitName::Bytes => Unit::Bytes,
        };
        if let Some(event) = events_of(&measure)
            .into_iter()
            .find(|event| !is_there(tracefs, &id, event))
        {
            return Err(Error::NoEvent {
                event: event.to_owned(),
            });
        }
        let mut question = Question {
            noun: measure.noun.clone(),
            unit,
            worst: measure.worst.clone(),
            names: names_of(&measure),
            backend: tracefs.backend(),
            ..question
        };
        if let Some(by) = &options.by {
            measure.by.clone_from(by);
        }
        if !tracefs.takes_programs() {
            let note = group::without_programs(tracefs, &mut measure, options)?;
            question.notes.extend(note);
        }
        if measure.by.iter().any(|name| name == USTACK) && !group::is_about_running(&measure) {
            let note = format!("{USTACK} is of the task that runs at the event");
            question.notes.push(note);
        }
        let mut keys = measure
            .by
            .iter()
            .map(|name| measure.keys.get(name).unwrap_or(name).clone())
            .collect::<Vec<_>>();
        address::add_modifiers(tracefs, &measure, &mut keys);
        if has_program(&keys) {
            // Saved fields need a histogram that keeps no stack once.
            measure.save.clear();
            question.worst.clear();
        }
        let groups: Vec<usize> = (0..keys.len()).filter(|&n| group::is_group(&keys[n])).collect();
        let containers = group::of_containers(&mut keys);
        if !has_dist(tracefs) && (!groups.is_empty() || options.cgroup.is_some()) {
            return Err(Error::Impossible(
                "C's histograms and filters know no control groups: load rhist".to_owned(),
            ));
        }
        if options.unit != BucketUnit::One && (unit != Unit::Nanoseconds || !has_dist(tracefs)) {
            return Err(Error::Impossible(match unit {
                Unit::Nanoseconds => "C's histograms have no buckets in another unit: load rhist".to_owned(),
                _ => "only times in nanoseconds can have buckets in another unit".to_owned(),
            }));
        }
        if !has_dist(tracefs) {
            let grows = options.size.is_some_and(|size| size.most.is_some());
            for (option, is_given) in [("--size A..B", grows), ("--expire", options.expire.is_some())] {
                if is_given {
                    return Err(Error::Impossible(format!(
                        "C's histograms do not grow, and forget nothing, so {option} needs rhist: load it"
                    )));
                }
            }
        }
        if options.comm_by_pid {
            replace(&mut keys, "common_comm", "common_pid.execname");
            replace(&mut measure.save, "common_comm", "common_pid");
        }
        let mut answer = Answer::new(measure.by.clone(), unit);
        answer.comm_by_pid = options.comm_by_pid;
        answer.containers = containers;
        let mut plan = Self {
            id,
            measure: measure.clone(),
            steps: Vec::new(),
            answer,
            idle: None,
            processes: Vec::new(),
            question,
        };
        if !options.children_of.is_empty() {
            check_children(&measure)?;
            plan.processes.clone_from(&options.children_of);
        }
        if let Some(hertz) = options.frequency {
            plan.add_frequency(tracefs, hertz)?;
        }
        plan.name_hexadecimals(&keys);
        plan.name_groups(&groups);
        for definition in &measure.probes {
            plan.add_probe(definition)?;
        }
        let asked = Asked {
            tracefs,
            measure: &measure,
            options,
            keys: &keys,
        };
        plan.idle = clause::idle_of(asked);
        if measure.count.is_empty() {
            latency::plan(&mut plan, asked)?;
        } else {
            count::plan(&mut plan, asked)?;
        }
        if let Some(step) = plan.steps.iter().find(|step| step.text().len() > MOST_BYTES) {
            return Err(Error::Impossible(too_long(step.text().len(), options)));
        }
        plan.question.signed = signed(tracefs, &measure);
        let values = &plan.answer.values;
        plan.question
            .signed
            .retain(|name| values.iter().any(|column| column.name == *name));
        plan.question.narrow = plan.narrow(tracefs);
        let id = plan.id.clone();
        plan.question.triggers = plan.steps.iter().map(|step| step.shell(&id)).collect();
        Ok(plan)
    }

    /// Plans triggers written by a person, each for its event. The histogram of the last one is the
    /// complete answer; the ones before it define variables for it.
    pub fn of_triggers(
        tracefs: &Tracefs,
        id: Id,
        triggers: &[(EventName, String)],
        question: Question,
    ) -> Result<Self, Error> {
        let mut plan = Self {
            id,
            measure: Measure::default(),
            steps: Vec::new(),
            answer: Answer::whole(),
            idle: triggers.last().and_then(|(_, command)| clause::idle_in(command)),
            processes: Vec::new(),
            question: Question {
                backend: tracefs.backend(),
                ..question
            },
        };
        for (number, (event, command)) in triggers.iter().enumerate() {
            if !tracefs.has_event(event) {
                return Err(Error::NoEvent {
                    event: event.to_string(),
                });
            }
            if command.len() > MOST_BYTES {
                return Err(Error::Impossible(too_long(command.len(), &Options::default())));
            }
            // For the names of the keys, and to measure the cost with a similar trigger.
            let is_last = number + 1 == triggers.len();
            if is_last {
                let keys = Trigger::parse(command).keys().map(|key| key.text.to_owned()).collect();
                plan.measure.by = keys;
            }
            plan.measure.count.push(Count {
                event: event.to_string(),
                dist: command
                    .contains(".dist")
                    .then(|| "hitcount".to_owned())
                    .into_iter()
                    .collect(),
                ..Count::default()
            });
            let (event, place) = plan.add_trigger(event, command.clone());
            plan.answer
                .add(event, place, if is_last { Shows::Whole } else { Shows::Nothing });
        }
        plan.name_hexadecimals(&plan.measure.by.clone());
        plan.question.signed = signed(tracefs, &plan.measure);
        plan.question.narrow = plan.narrow(tracefs);
        let id = plan.id.clone();
        plan.question.triggers = plan.steps.iter().map(|step| step.shell(&id)).collect();
        Ok(plan)
    }

    /// Shows keys with `.hex` as hexadecimal numbers, unless the recipe names them.
    fn name_hexadecimals(&mut self, keys: &[String]) {
        let columns = keys.iter().zip(self.key_names());
        let columns = columns.filter(|(key, _)| split_key(key).1 == Some("hex"));
        let columns: Vec<String> = columns.map(|(_, column)| column.to_owned()).collect();
        for column in columns {
            self.question.names.entry(column).or_insert(NameKind::Hex);
        }
    }

    /// Names the groups of containers, and the numbers of groups whose paths the kernel has not
    /// kept.
    fn name_groups(&mut self, groups: &[usize]) {
        let columns: Vec<String> = self.key_names().into_iter().map(str::to_owned).collect();
        for n in groups {
            let kind = match self.answer.containers.contains(n) {
                true => NameKind::Container,
                false => NameKind::Cgroup,
            };
            self.question.names.insert(columns[*n].clone(), kind);
        }
    }

    /// Keys and saved fields that are numbers of less than 64 bits in every event that has them.
    fn narrow(&self, tracefs: &Tracefs) -> Vec<String> {
        let events = events_of(&self.measure).into_iter().filter_map(EventName::parse);
        let formats: Vec<_> = events.filter_map(|event| tracefs.format(&event).ok()).collect();
        let is_narrow = |name: &&str| {
            let key = self.measure.keys.get(*name).map_or(*name, String::as_str);
            let fields = formats.iter().filter_map(|format| format.field(split_key(key).0));
            let sizes = fields.map(|field| if field.kind == FieldKind::Number { field.size } else { 8 });
            sizes.max().is_some_and(|size| size < 8)
        };
        let saved = self.measure.save.iter().map(String::as_str);
        let columns = self.key_names().into_iter().chain(saved);
        columns.filter(is_narrow).map(str::to_owned).collect()
    }

    /// Adds a step that changes the machine's setting.
    fn add_frequency(&mut self, tracefs: &Tracefs, hertz: u32) -> Result<(), Error> {
        if !self.takes_samples() {
            let why = match has_dist(tracefs) {
                true => {
                    "--frequency is for recipes that take samples, such as profile: these events come when they happen"
                }
                false => "--frequency is for samples of rhist: load it",
            };
            return Err(Error::Impossible(why.to_owned()));
        }
        self.steps.push(Step::Frequency {
            hertz: hertz.to_string(),
            before: samples::frequency(tracefs).unwrap_or_default(),
        });
        Ok(())
    }

    fn add_probe(&mut self, definition: &str) -> Result<(), Error> {
        let name = definition
            .split_whitespace()
            .next()
            .and_then(|word| word.split_once(':'))
            .map(|(_, name)| name.to_owned())
            .filter(|name| name.starts_with(&format!("{}/", self.id.group())))
            .ok_or_else(|| Error::Impossible(format!("probe {definition}: it must be in {{group}}")))?;
        let is_of_program = definition.split(' ').nth(1).is_some_and(|place| place.starts_with('/'));
        let definition = match definition.strip_prefix("r:") {
            Some(rest) if !is_of_program => format!("r{MOST_ACTIVE}:{rest}"),
            _ => definition.to_owned(),
        };
        self.steps.push(Step::Probe { name, definition });
        Ok(())
    }
}

/// Fails for events that are not about the running task, by which the kernel's list of tasks goes.
fn check_children(measure: &Measure) -> Result<(), Error> {
    // At a switch or a wake-up, the list has the hit if it has one of both tasks.
    let has_two = |event: &str| {
        EventName::parse(event).is_some_and(|event| {
            event.system == "sched"
                && ["sched_switch", "sched_wak"]
                    .iter()
                    .any(|name| event.event.starts_with(name))
        })
    };
    let is_of_running = measure.pid.as_deref().is_none_or(|pid| pid == RUNNING);
    let mut points = measure.start.iter().chain(&measure.end);
    let is_possible = is_of_running
        && points.all(|point| point.on.iter().any(|key| key == RUNNING))
        && !events_of(measure).into_iter().any(has_two);
    match is_possible {
        true => Ok(()),
        false => Err(Error::Impossible(
            "--children: the kernel follows the running task, and these events are about another one, or begin and end in different ones"
                .to_owned(),
        )),
    }
}

fn replace(texts: &mut [String], from: &str, to: &str) {
    for text in texts.iter_mut().filter(|text| *text == from) {
        to.clone_into(text);
    }
}

/// Message for a command that is too long.
fn too_long(bytes: usize, options: &Options) -> String {
    let threads = match options.threads.len() {
        0..=100 => String::new(),
        count => format!(" -p stands for {count} threads: with -c they are found by their name."),
    };
    format!("a trigger would have {bytes} bytes, and the kernel takes {MOST_BYTES}.{threads}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::recipe::Point;
    use crate::tracefs::fixture;

    #[test]
    fn names_of_tasks_are_found_in_front_of_a_filter() {
        let (_root, tracefs) = fixture::tracefs(false);
        let has_comm = |by: &str, filter: Option<&str>| {
            let measure = Measure {
                by: vec![by.into()],
                count: vec![Count {
                    event: "sched:sched_switch".into(),
                    ..Count::default()
                }],
                ..Measure::default()
            };
            let options = Options {
                filter: filter.map(str::to_owned),
                ..Options::default()
            };
            let plan = Plan::new(&tracefs, Id::example(), &measure, &options, Question::default());
            plan.unwrap().has_comm()
        };
        assert!(has_comm("common_comm", None));
        assert!(has_comm("common_comm", Some("next_pid > 1")));
        assert!(!has_comm("next_comm", Some("next_pid > 1")));
    }

    #[test]
    fn values_that_can_be_below_zero() {
        let (_root, tracefs) = fixture::tracefs(false);
        let count = |event: &str, sum: &[&str]| Count {
            event: event.to_owned(),
            sum: sum.iter().map(|sum| (*sum).to_owned()).collect(),
            ..Count::default()
        };
        let signed = |count: Vec<Count>| {
            let measure = Measure {
                count,
                ..Measure::default()
            };
            let options = Options::default();
            let plan = Plan::new(&tracefs, Id::example(), &measure, &options, Question::default());
            plan.unwrap().question.signed
        };
        // Values that are not columns of the answer are left out.
        assert_eq!(signed(vec![count("raw_syscalls:sys_exit", &["ret"])]), ["ret"]);
        let both = [
            count("raw_syscalls:sys_exit", &["sent=ret"]),
            count("kmem:kmalloc", &["bytes_alloc", "bytes_req"]),
        ];
        assert_eq!(signed(both[..1].to_vec()), ["sent"]);
        assert!(signed(both[1..].to_vec()).is_empty());
    }

    /// The kernel groups by control group, whatever the key is called; a filter knows the group of
    /// the running task.
    #[test]
    fn groups_and_containers() {
        let (_rhist, rhist) = fixture::tracefs(true);
        let (_c, c) = fixture::tracefs(false);
        let plan = |tracefs: &Tracefs, pid: Option<&str>, by: &str, cgroup: Option<&str>| {
            let mut measure = Measure {
                by: vec![by.to_owned()],
                pid: pid.map(str::to_owned),
                count: vec![Count {
                    event: "sched:sched_switch".to_owned(),
                    ..Count::default()
                }],
                ..Measure::default()
            };
            add_task_names(tracefs, &mut measure);
            let options = Options {
                cgroup: cgroup.map(str::to_owned),
                ..Options::default()
            };
            let plan = Plan::new(tracefs, Id::example(), &measure, &options, Question::default())?;
            let text = plan.steps[0].text().to_owned();
            Ok::<_, Error>((text, plan.has_groups(), plan.question.name_kind(by)))
        };
        let planned = |pid, by, cgroup| plan(&rhist, pid, by, cgroup).unwrap();
        let (text, has_groups, kind) = planned(Some("next_pid"), "container", None);
        assert!(text.starts_with("hist:keys=next_pid.cgroup"), "{text}");
        assert_eq!((has_groups, kind), (true, NameKind::Container));
        let (text, has_groups, kind) = planned(None, "cgroup", Some("/a"));
        assert!(text.starts_with("hist:keys=common_cgroup"), "{text}");
        assert!(text.ends_with(" if common_cgroup ~ \"/a\""), "{text}");
        assert_eq!((has_groups, kind), (true, NameKind::Cgroup));
        assert!(!planned(None, "next_comm", Some("/a")).1);
        assert!(plan(&rhist, Some("next_pid"), "next_comm", Some("/a")).is_err());
        for (by, cgroup) in [("cgroup", None), ("container", None), ("next_comm", Some("/a"))] {
            let error = plan(&c, None, by, cgroup).unwrap_err().to_string();
            assert!(error.ends_with("load rhist"), "{error}");
        }
    }

    /// Without a unit in the recipe, the unit comes from the event.
    #[test]
    fn units_of_fields() {
        let (_root, tracefs) = fixture::tracefs(false);
        let units = |unit, fields: &[&str]| {
            let measure = Measure {
                unit,
                count: vec![Count {
                    event: "kmem:kmalloc".to_owned(),
                    sum: fields.iter().map(|field| (*field).to_owned()).collect(),
                    ..Count::default()
                }],
                ..Measure::default()
            };
            let options = Options::default();
            let plan = Plan::new(&tracefs, Id::example(), &measure, &options, Question::default());
            let columns = plan.unwrap().answer.values;
            columns
                .into_iter()
                .map(|column| (column.name, column.unit))
                .collect::<Vec<_>>()
        };
        let expected = |names: [(&str, Unit); 2]| names.map(|(name, unit)| (name.to_owned(), unit));
        assert_eq!(
            units(UnitName::Count, &["all=bytes_alloc", "node"]),
            expected([("all", Unit::Bytes), ("node", Unit::Plain)])
        );
        assert_eq!(
            units(UnitName::Ns, &["bytes_req", "node"]),
            expected([("bytes_req", Unit::Nanoseconds), ("node", Unit::Nanoseconds)])
        );
    }

    #[test]
    fn buckets_in_another_unit() {
        let (_c, c) = fixture::tracefs(false);
        let (_rhist, rhist) = fixture::tracefs(true);
        let plan = |tracefs: &Tracefs, unit, measured| {
            let point = |event: &str, on: &str| Point {
                event: event.to_owned(),
                on: vec![on.to_owned()],
                ..Point::default()
            };
            let measure = Measure {
                unit: measured,
                start: vec![point("sched:sched_waking", "pid")],
                end: vec![point("sched:sched_switch", "next_pid")],
                ..Measure::default()
            };
            let options = Options {
                unit,
                only_buckets: true,
                ..Options::default()
            };
            let plan = Plan::new(tracefs, Id::example(), &measure, &options, Question::default());
            plan.map(|plan| plan.steps.last().unwrap().text().to_owned())
                .map_err(|error| error.to_string())
        };
        let none = "C's histograms have no buckets in another unit: load rhist";
        assert_eq!(plan(&c, BucketUnit::S, UnitName::Ns).unwrap_err(), none);
        assert!(plan(&c, BucketUnit::One, UnitName::Ns).is_ok());
        let trigger = plan(&rhist, BucketUnit::S, UnitName::Ns).unwrap();
        assert!(
            trigger.ends_with(":vals=(common_timestamp-$ts0).dist:unit(s):quantiles(50)"),
            "{trigger}"
        );
        let trigger = plan(&rhist, BucketUnit::One, UnitName::Ns).unwrap();
        assert!(trigger.ends_with(".dist:quantiles(50)"), "{trigger}");
        let plain = "only times in nanoseconds can have buckets in another unit";
        assert_eq!(plan(&rhist, BucketUnit::S, UnitName::Count).unwrap_err(), plain);
    }

    /// Keys with `.hex` are shown so, unless a recipe names them.
    #[test]
    fn hexadecimal_keys() {
        let (_root, tracefs) = fixture::tracefs(true);
        let names = BTreeMap::from([("node".to_owned(), NameKind::Device)]);
        let keys = [("flags", "gfp_flags.hex"), ("node", "node.hex"), ("len", "bytes_req")];
        let measure = Measure {
            names,
            keys: keys.map(|(name, key)| (name.to_owned(), key.to_owned())).into(),
            by: ["flags", "node", "len", "bytes_alloc.hex", "dev.hex"]
                .map(str::to_owned)
                .into(),
            count: vec![Count {
                event: "kmem:kmalloc".to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        };
        let options = Options::default();
        let plan = Plan::new(&tracefs, Id::example(), &measure, &options, Question::default()).unwrap();
        let kinds = |question: &Question, columns: &[&str]| {
            let kinds: Vec<_> = columns.iter().map(|column| question.name_kind(column)).collect();
            kinds
        };
        assert_eq!(
            kinds(&plan.question, &["flags", "node", "len", "bytes_alloc.hex", "dev.hex"]),
            [
                NameKind::Hex,
                NameKind::Device,
                NameKind::Format,
                NameKind::Hex,
                NameKind::Hex
            ]
        );
        let trigger = "hist:keys=gfp_flags.hex,(bytes_alloc-bytes_req).hex,node";
        let triggers = [(EventName::parse("kmem:kmalloc").unwrap(), trigger.to_owned())];
        let plan = Plan::of_triggers(&tracefs, Id::example(), &triggers, Question::default()).unwrap();
        assert_eq!(
            kinds(&plan.question, &["gfp_flags", "(bytes_alloc-bytes_req)", "node"]),
            [NameKind::Hex, NameKind::Hex, NameKind::Format]
        );
    }

    #[test]
    fn triggers_as_they_are() {
        let (_root, tracefs) = fixture::tracefs(false);
        let name = |event: &str| EventName::parse(event).unwrap();
        let triggers = [
            (
                name("sched:sched_waking"),
                "hist:keys=pid:ts0=common_timestamp".to_owned(),
            ),
            (
                name("sched:sched_switch"),
                "hist:keys=next_pid:vals=next_prio".to_owned(),
            ),
        ];
        let plan = Plan::of_triggers(&tracefs, Id::example(), &triggers, Question::default()).unwrap();
        let steps: Vec<&str> = plan.steps.iter().map(Step::text).collect();
        assert_eq!(steps, triggers.each_ref().map(|(_, text)| text.as_str()));
        assert_eq!(plan.measure.by, ["next_pid"]);
        let none = [(name("sched:none"), "hist:keys=x".to_owned())];
        let error = Plan::of_triggers(&tracefs, Id::example(), &none, Question::default()).unwrap_err();
        assert_eq!(error.to_string(), "this kernel has no event sched:none");
    }
}
