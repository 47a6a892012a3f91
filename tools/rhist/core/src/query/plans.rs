// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans a question for a machine.

use std::io;
use std::path::Path;

use super::error::Error;
use super::model::Query;
use crate::names::cgroup;
use crate::plan;
use crate::plan::Id;
use crate::plan::Instead;
use crate::plan::Options;
use crate::plan::Plan;
use crate::plan::Plans;
use crate::quantity;
use crate::question::Question;
use crate::recipe::Measure;
use crate::recipe::UnitName;
use crate::run;
use crate::table::Unit;
use crate::threads;
use crate::tracefs::Backend;
use crate::tracefs::Tracefs;

impl Query {
    /// Plans the question for this machine, with this ID in the names of the run's objects.
    /// Considers each alternative whose events exist, the best first.
    pub fn plans(&self, tracefs: &Tracefs, id: &Id) -> Result<Plans, Error> {
        let mut notes = Vec::new();
        let measure = self.with_events(tracefs)?;
        if self.measure.programs && !measure.programs {
            notes.push(plan::lack_of_programs(tracefs).note);
        }
        let threads = self.threads()?;
        if self.children && threads.is_empty() {
            return Err(Error::other("--children belong to a process: add -p PID"));
        }
        if !threads.is_empty() && !self.children {
            notes.push("threads that a process starts later are not counted".to_owned());
        }
        let own = self.own_threads();
        if own.is_empty() && !self.counts_self && !self.is_dry_run && threads.is_empty() {
            let note = "rhist's own activity is counted, too: rhist cannot see the global IDs of its threads from its PID namespace";
            notes.push(note.to_owned());
        }
        let slower = self.bound("--slower", self.slower.as_deref())?;
        let faster = self.bound("--faster", self.faster.as_deref())?;
        if let (Some(below), Some(text)) = (faster, &self.faster)
            && below <= slower.unwrap_or(0)
        {
            let least = self
                .slower
                .as_ref()
                .map(|text| format!("at least {text} (--slower) and "));
            let least = least.unwrap_or_default();
            return Err(Error::other(format!("no time is {least}less than {text} (--faster)")));
        }
        let options = Options {
            by: (!self.by.is_empty()).then(|| self.by.clone()),
            threads,
            children_of: if self.children { self.pids.clone() } else { Vec::new() },
            frequency: self.frequency,
            own,
            comm: self.comm.clone(),
            cgroup: self.cgroup()?,
            slower,
            faster,
            filter: self.filter.clone(),
            size: self.size,
            expire: self.expire,
            expire_passing: self.expire_passing,
            is_fixed: false,
            unit: self.unit,
            only_buckets: self.only_buckets,
            args: self.args.clone(),
            comm_by_pid: false,
        };
        let question = Question {
            name: self.name.clone(),
            summary: self.summary.clone(),
            notes,
            ..Question::of_this_machine()
        };
        let ways = |measure: &Measure| {
            let plan = |options: &Options| Plan::new(tracefs, id.clone(), measure, options, question.clone());
            let best = plan(&options)?;
            let fixed = plan(&Options {
                is_fixed: true,
                ..options.clone()
            })?;
            let fixed = Some((Instead::Fixed, fixed)).filter(|(_, fixed)| fixed.steps != best.steps);
            let by_id = match tracefs.backend() == Backend::C && best.has_comm() {
                true => plan(&Options {
                    comm_by_pid: true,
                    ..options.clone()
                })
                .ok(),
                false => None,
            };
            let by_id = by_id.map(|plan| (Instead::ById, plan));
            let others = fixed.into_iter().chain(by_id).collect();
            Ok::<_, plan::Error>(Plans { best, others })
        };
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

    /// Threads of the processes to measure.
    fn threads(&self) -> Result<Vec<i32>, Error> {
        let mut all = Vec::new();
        for pid in &self.pids {
            all.extend(threads::of(*pid).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::other(format!("process {pid} does not exist")),
                _ => Error::Io(threads::folder(*pid), error),
            })?);
        }
        Ok(all)
    }

    /// Threads of rhist itself, which the measurement leaves out.
    fn own_threads(&self) -> Vec<i32> {
        match self.counts_self || self.is_dry_run {
            true => Vec::new(),
            false => threads::own(),
        }
    }

    /// The control group to measure.
    fn cgroup(&self) -> Result<Option<String>, Error> {
        match (&self.cgroup, &self.container) {
            (Some(_), Some(_)) => Err(Error::other(
                "--cgroup and --container exclude each other: use one of them",
            )),
            (None, Some(id)) => cgroup::of_container(&Path::new("/").join(cgroup::FOLDER), id)
                .map(Some)
                .map_err(|why| Error::Value {
                    option: "--container",
                    text: id.clone(),
                    why,
                }),
            (cgroup, None) => Ok(cgroup.clone()),
        }
    }

    /// Parses the value of an option as a limit for times, in nanoseconds. Fails if the question
    /// does not count times.
    fn bound(&self, option: &'static str, text: Option<&str>) -> Result<Option<u64>, Error> {
        let Some(text) = text else { return Ok(None) };
        if self.measure.unit != UnitName::Ns {
            return Err(Error::other(format!(
                "{option} {text}: {} does not measure times",
                self.name
            )));
        }
        let fail = |why: String| Error::Value {
            option,
            text: text.to_owned(),
            why,
        };
        let time = quantity::parse(text, Unit::Nanoseconds).map_err(|error| fail(error.to_string()))?;
        let time = u64::try_from(time).map_err(|_| fail(format!("{text:?} is not a time")))?;
        Ok(Some(time))
    }
}
