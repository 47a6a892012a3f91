// SPDX-License-Identifier: MIT OR Apache-2.0

//! A question before it is planned for a machine: a recipe, `count`, or `between`.

mod subject;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use anyhow::bail;
use rhist_core::grammar::check_filter;
use rhist_core::grammar::check_key;
use rhist_core::grammar::check_plain_value;
use rhist_core::plan;
use rhist_core::plan::Id;
use rhist_core::plan::Instead;
use rhist_core::plan::Options;
use rhist_core::plan::Plan;
use rhist_core::plan::Plans;
use rhist_core::problem::Problem;
use rhist_core::quantity;
use rhist_core::question::Question;
use rhist_core::recipe::Count;
use rhist_core::recipe::FilterAt;
use rhist_core::recipe::Measure;
use rhist_core::recipe::Point;
use rhist_core::recipe::UnitName;
use rhist_core::run;
use rhist_core::suggest;
use rhist_core::table::BucketUnit;
use rhist_core::table::Unit;
use rhist_core::tracefs::Backend;
use rhist_core::tracefs::Tracefs;
use rhist_core::tracefs::events::EventName;
use rhist_core::tracefs::format::Format;
use rustix::time::ClockId;
use rustix::time::clock_getres;
use subject::common;

use crate::diagnostic;
use crate::diagnostic::Written;
use crate::options::Common;
use crate::options::RunArgs;
use crate::probe;

/// A question to measure, before it is planned for a machine.
#[derive(Debug)]
pub struct Query {
    /// Name of the recipe, or of the command.
    pub name: String,
    summary: String,
    measure: Measure,
    /// Values of the recipe's arguments.
    values: BTreeMap<String, String>,
    /// Whether `--on` is missing, so that a default key links the two events.
    has_default_key: bool,
    /// Unit of the buckets of times.
    pub unit: BucketUnit,
    /// Whether only the buckets of distributions are read.
    pub only_buckets: bool,
    /// Options of the run.
    pub run: RunArgs,
    /// Options common to all commands.
    pub common: Common,
}

impl Query {
    /// A recipe's question. `values` has its arguments.
    pub fn recipe(
        name: &str,
        summary: &str,
        measure: &Measure,
        values: BTreeMap<String, String>,
        run: RunArgs,
        common: Common,
    ) -> Self {
        Self {
            values,
            ..Self::new(name, summary.to_owned(), measure.clone(), run, common)
        }
    }

    /// Question of `rhist count`. `count` has its values, without the event.
    pub fn count(event: &str, count: Count, run: RunArgs, common: Common) -> anyhow::Result<Self> {
        let mut probes = probe::Probes::default();
        let measure = Measure {
            noun: "events".to_owned(),
            count: vec![Count {
                event: probes.event(event)?,
                ..count
            }],
            probes: probes.definitions.clone(),
            ..Measure::default()
        };
        let measure = Measure {
            alternatives: probes.alternatives(&measure),
            ..measure
        };
        Ok(Self::new("count", format!("{event} counted"), measure, run, common))
    }

    /// Question of `rhist between`. `on` has the keys of both, as written.
    pub fn between(start: &str, end: &str, on: &[String], run: RunArgs, common: Common) -> anyhow::Result<Self> {
        let mut probes = probe::Probes::default();
        let default = ["common_pid".to_owned()];
        let (on_start, on_end): (Vec<_>, Vec<_>) = if on.is_empty() { &default } else { on }
            .iter()
            .map(|key| key.split_once('=').unwrap_or((key, key)))
            .map(|(start, end)| (start.to_owned(), end.to_owned()))
            .unzip();
        let mut point = |event: &str, on| {
            Ok::<_, anyhow::Error>(Point {
                event: probes.event(event)?,
                on,
                ..Point::default()
            })
        };
        let measure = Measure {
            unit: UnitName::Ns,
            noun: "times".to_owned(),
            start: vec![point(start, on_start)?],
            end: vec![point(end, on_end)?],
            probes: probes.definitions.clone(),
            ..Measure::default()
        };
        let measure = Measure {
            alternatives: probes.alternatives(&measure),
            ..measure
        };
        let summary = format!("time from {start} to {end}");
        Ok(Self {
            has_default_key: on.is_empty(),
            ..Self::new("between", summary, measure, run, common)
        })
    }

    fn new(name: &str, summary: String, measure: Measure, run: RunArgs, common: Common) -> Self {
        Self {
            name: name.to_owned(),
            summary,
            measure,
            values: BTreeMap::new(),
            has_default_key: false,
            unit: run.unit.map(BucketUnit::from).unwrap_or_default(),
            only_buckets: false,
            run,
            common,
        }
    }

    /// Names of the keys that the result is shown by.
    pub fn by(&self) -> &[String] {
        if self.run.by.is_empty() {
            &self.measure.by
        } else {
            &self.run.by
        }
    }

    /// Plans the question for this machine. Considers each alternative whose events exist, the best
    /// first.
    pub fn plans(&self, tracefs: &Tracefs) -> anyhow::Result<Plans> {
        let id = if self.common.dry_run {
            Id::example()
        } else {
            Id::of_this_process().context("/proc")?
        };
        self.plans_as(tracefs, &id)
    }

    /// Plans the question with this ID in the names of its objects.
    pub fn plans_as(&self, tracefs: &Tracefs, id: &Id) -> anyhow::Result<Plans> {
        let mut notes = Vec::new();
        let mut threads = Vec::new();
        for pid in &self.run.pid {
            threads.extend(threads_of(*pid)?);
        }
        if !threads.is_empty() {
            notes.push("threads that a process starts later are not counted".to_owned());
        }
        let own = self.own_threads();
        if own.is_empty() && !self.run.itself && !self.common.dry_run && threads.is_empty() {
            let note = "rhist's own activity is counted, too: rhist cannot see the global IDs of its threads from its PID namespace";
            notes.push(note.to_owned());
        }
        let slower = self.bound("--slower", self.run.slower.as_deref())?;
        let faster = self.bound("--faster", self.run.faster.as_deref())?;
        if faster.is_some_and(|below| below <= slower.unwrap_or(0)) {
            let text = |bound: &Option<String>| bound.clone().unwrap_or_else(|| "0".to_owned());
            bail!(
                "no time is at least {} (--slower) and less than {} (--faster)",
                text(&self.run.slower),
                text(&self.run.faster)
            )
        }
        let options = Options {
            by: (!self.run.by.is_empty()).then(|| self.run.by.clone()),
            threads,
            own,
            comm: self.run.comm.clone(),
            slower,
            faster,
            filter: self.run.filter.clone(),
            size: self.run.size,
            unit: self.unit,
            only_buckets: self.only_buckets,
            args: self.values.clone(),
            comm_by_pid: false,
        };
        let question = Question {
            name: self.name.clone(),
            summary: self.summary.clone(),
            notes,
            ..machine()
        };
        let ways = |measure: &Measure| {
            let plan = |options: &Options| Plan::new(tracefs, id.clone(), measure, options, question.clone());
            let best = plan(&options)?;
            let others = match tracefs.backend() == Backend::C && best.has_comm() {
                true => plan(&Options {
                    comm_by_pid: true,
                    ..options.clone()
                })
                .into_iter()
                .map(|plan| (Instead::ById, plan))
                .collect(),
                false => Vec::new(),
            };
            Ok::<_, plan::Error>(Plans { best, others })
        };
        let measure = self.with_events(tracefs)?;
        self.check(tracefs, &measure)?;
        let mut plans = ways(&measure);
        for alternative in &measure.alternatives {
            let fits = self.check(tracefs, alternative);
            match &mut plans {
                Ok(plans) => {
                    if let (Ok(()), Ok(more)) = (fits, ways(alternative)) {
                        plans.others.push((Instead::LessExact, more.best));
                        plans.others.extend(more.others);
                    }
                }
                // The alternative is less exact, so use it only if the kernel lacks an event, not
                // if the better plan cannot answer the question.
                Err(lack @ plan::Error::NoEvent { .. }) => {
                    fits?;
                    // If both plans are impossible, reports the error of the first.
                    if let Ok(mut first) = ways(alternative) {
                        let note = run::otherwise(&lack.to_string(), &self.name);
                        first.best.question.notes.push(note.clone());
                        for (_, other) in &mut first.others {
                            other.question.notes.push(note.clone());
                        }
                        plans = Ok(first);
                    }
                }
                Err(_) => break,
            }
        }
        Ok(plans?)
    }

    /// Parses the value of an option as a limit for times, in nanoseconds. Fails if the question
    /// does not count times.
    fn bound(&self, option: &str, text: Option<&str>) -> anyhow::Result<Option<u64>> {
        match text {
            Some(text) if self.measure.unit == UnitName::Ns => {
                let time = nanoseconds(text).with_context(|| option.to_owned())?;
                Ok(Some(time))
            }
            Some(text) => bail!("{option} {text}: {} does not measure times", self.name),
            None => Ok(None),
        }
    }

    /// Threads of rhist itself, which the measurement leaves out.
    fn own_threads(&self) -> Vec<i32> {
        // With --dry-run, the commands will be executed by another process.
        match self.run.itself || self.common.dry_run {
            true => Vec::new(),
            false => own_threads(),
        }
    }

    /// Resolves the names of events from the command line.
    fn with_events(&self, tracefs: &Tracefs) -> anyhow::Result<Measure> {
        let mut measure = self.measure.clone();
        if !matches!(self.name.as_str(), "count" | "between") {
            return Ok(measure);
        }
        let mut alternatives = std::mem::take(&mut measure.alternatives);
        for measure in alternatives.iter_mut().chain([&mut measure]) {
            let counts = measure.count.iter_mut().map(|count| ("EVENT", &mut count.event));
            let starts = measure.start.iter_mut().map(|point| ("A", &mut point.event));
            let ends = measure.end.iter_mut().map(|point| ("B", &mut point.event));
            for (origin, event) in counts.chain(starts).chain(ends) {
                if !event.starts_with("{group}") {
                    *event = diagnostic::resolve(tracefs, origin, event)?.to_string();
                }
            }
            if let Some(address) = address(tracefs, measure) {
                measure.keys.insert(ADDRESS.to_owned(), address);
            }
        }
        measure.alternatives = alternatives;
        Ok(measure)
    }

    /// Finds faults in the command line that the kernel would reject, as far as the events exist
    /// already.
    fn check(&self, tracefs: &Tracefs, measure: &Measure) -> anyhow::Result<()> {
        let format = |event: &str| tracefs.format(&EventName::parse(event)?).ok();
        let keys: Vec<&String> = self
            .run
            .by
            .iter()
            .filter(|key| !measure.keys.contains_key(*key))
            .collect();
        for count in &measure.count {
            let Some(format) = format(&count.event) else { continue };
            for (origin, values) in [("--sum", &count.sum), ("--stat", &count.stat), ("--dist", &count.dist)] {
                for value in values {
                    let field = value.rsplit('=').next().unwrap_or_default();
                    diagnostic::checked(origin, field, check_plain_value(&format, field))?;
                }
            }
        }
        let points = match measure.filter_at {
            FilterAt::Start => &measure.start,
            FilterAt::End => &measure.end,
        };
        let filtered = measure
            .count
            .iter()
            .map(|count| &count.event)
            .chain(points.iter().map(|point| &point.event));
        for format in filtered.filter_map(|event| format(event)) {
            if let Some(filter) = &self.run.filter {
                diagnostic::checked("--where", filter, check_filter(&format, filter))?;
            }
        }
        let counted = measure
            .count
            .iter()
            .map(|count| &count.event)
            .chain(measure.end.iter().map(|point| &point.event));
        for format in counted.filter_map(|event| format(event)) {
            for key in &keys {
                diagnostic::checked("--by", key, self.check_key(&format, key, measure))?;
            }
        }
        if self.name == "between" {
            let same = |start: &Point, end: &Point| (&start.event, &start.on) == (&end.event, &end.on);
            if measure
                .start
                .iter()
                .any(|start| measure.end.iter().any(|end| same(start, end)))
            {
                bail!("A and B are the same event with the same keys: each hit would end the time that it begins")
            }
            if self.has_default_key {
                for (start, end) in measure.start.iter().zip(&measure.end) {
                    if let (Some(a), Some(b)) = (format(&start.event), format(&end.event))
                        && let Some(on) = common(&a, &b)
                    {
                        bail!(
                            "without --on, times belong to the running task, but not both of A and B are about it: \
                             add --on {on}, or --on common_pid if that is what you mean"
                        );
                    }
                }
            }
            for point in measure.start.iter().chain(&measure.end) {
                let Some(format) = format(&point.event) else { continue };
                for key in &point.on {
                    diagnostic::checked("--on", key, check_key(&format, key))?;
                }
            }
        }
        Ok(())
    }

    /// Checks a key, and suggests short names of the recipe if it is not a field.
    fn check_key(&self, format: &Format, key: &str, measure: &Measure) -> Result<(), Problem> {
        check_key(format, key).map_err(|problem| {
            if let Some((name, _)) = key.split_once('.')
                && let Some(field) = measure.keys.get(name).filter(|_| format.field(name).is_none())
            {
                let problem = Problem::new(
                    name.len()..key.len(),
                    format!("{name} is a short name and takes no modifier"),
                );
                return problem.help(format!("it stands for {field}"));
            }
            let near = suggest::near(key, measure.keys.keys().map(String::as_str));
            if near.is_empty() { problem } else { problem.near(&near) }
        })
    }

    /// Texts of the user that become part of a trigger, to locate errors found by the kernel.
    pub fn written(&self) -> Vec<Written<'_>> {
        let by = self.run.by.iter().map(|text| Written { origin: "--by", text });
        let filter = self.run.filter.iter().map(|text| Written {
            origin: "--where",
            text,
        });
        let values = self.values.values().map(|text| Written {
            origin: "argument",
            text,
        });
        filter.chain(by).chain(values).collect()
    }
}

/// Name in `--by` for the remote address of an event.
const ADDRESS: &str = "address";

/// Key for [`ADDRESS`]. `None` unless all counted events have the same address field and no field
/// is named `address`.
fn address(tracefs: &Tracefs, measure: &Measure) -> Option<String> {
    let counts = measure.count.iter().map(|count| &count.event);
    let ends = measure.end.iter().map(|point| &point.event);
    let mut found = None;
    for event in counts.chain(ends) {
        let format = tracefs.format(&EventName::parse(event)?).ok()?;
        let address = format.address().filter(|_| format.field(ADDRESS).is_none())?;
        let name = found.get_or_insert_with(|| address.name.clone());
        format.field(name).filter(|field| field.is_address())?;
    }
    found.map(|name| format!("{name}.ip"))
}

/// Initial PID namespace, whose numbers appear in events, as `/proc` names it (`PID_NS_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Fills in the properties of this machine.
pub fn machine() -> Question {
    Question {
        host: read_proc("sys/kernel/hostname"),
        kernel: read_proc("sys/kernel/osrelease"),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        clock_step_ns: clock_step(),
        ..Question::default()
    }
}

/// Resolution of the clock of trace events, if it is the timer tick, as in user-mode Linux. `None`
/// with other clock sources, where the scheduler's clock uses the processor's counter between two
/// ticks.
fn clock_step() -> Option<u64> {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource").ok()?;
    let is_coarse = matches!(source.trim(), "timer" | "jiffies" | "refined-jiffies");
    let tick = clock_getres(ClockId::MonotonicCoarse);
    is_coarse.then_some(tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64)
}

/// Threads of this process, by the numbers that events use. Empty in another PID namespace, such as
/// a container, where these numbers would match other tasks.
pub fn own_threads() -> Vec<i32> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
    match namespace.is_none_or(|namespace| namespace == Path::new(FIRST_PID_NAMESPACE)) {
        // Without /proc a run is impossible anyway.
        true => threads_of(std::process::id() as i32).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// All threads of a process.
fn threads_of(pid: i32) -> anyhow::Result<Vec<i32>> {
    let folder = format!("/proc/{pid}/task");
    if !Path::new(&folder).exists() {
        bail!("no process {pid}");
    }
    let threads: Vec<i32> = std::fs::read_dir(&folder)
        .with_context(|| folder.clone())?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    Ok(threads)
}

/// Reads a one-line file of `/proc`; empty if it cannot be read.
fn read_proc(file: &str) -> String {
    std::fs::read_to_string(Path::new("/proc").join(file))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Parses a time, in nanoseconds.
fn nanoseconds(text: &str) -> anyhow::Result<u64> {
    let time = quantity::parse(text, Unit::Nanoseconds)?;
    u64::try_from(time).with_context(|| format!("{text:?} is not a time"))
}
