// SPDX-License-Identifier: MIT OR Apache-2.0

//! Commands of a plan.

use std::collections::BTreeSet;

use super::answer::Answer;
use super::group::has_group;
use super::measure::USTACK;
use super::measure::events_of;
use super::measure::split_key;
use super::step::Id;
use super::step::Step;
use super::step::word;
use crate::grammar::Trigger;
use crate::names::Names;
use crate::names::container;
use crate::question::Question;
use crate::recipe::Measure;
use crate::recipe::NameKind;
use crate::room::Idle;
use crate::threads;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;

/// File of an instance with the tasks whose events count. A task that does not exist keeps all
/// events out, so triggers are created while nothing counts, and clearing the file, or writing the
/// tasks that are to count, starts all of them at once. Pausing triggers is no substitute: the
/// kernel cannot continue a trigger with a variable.
pub(crate) const TASKS: &str = "set_event_pid";

/// A pid that no task can have, since pids end at 2^22 (`PID_MAX_LIMIT`). Also the largest that the
/// file accepts.
pub(crate) const NO_TASK: &str = "1073741823";

/// File of an instance with tasks whose events do not count.
pub(crate) const NO_TASKS: &str = "set_event_notrace_pid";

/// File of an instance: whether a task that a listed one starts is listed, too.
pub(crate) const FORKS: &str = "options/event-fork";

/// Event that samples each CPU at regular times.
pub(super) const SAMPLE: &str = "rhist:sample";

/// Commands for the kernel, and the way to read their results.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Names of the objects that it creates.
    pub id: Id,
    /// The measure, with complete names of events, values of arguments, and the requested keys.
    pub measure: Measure,
    /// Commands in their order, after the instance was created.
    pub steps: Vec<Step>,
    /// Meaning of the triggers' histograms.
    pub answer: Answer,
    /// Time after which an entry of the results without hits is taken out.
    pub idle: Option<Idle>,
    /// Processes whose threads count, with all tasks that they start, by the instance's list of
    /// tasks and not by filters. Empty for all tasks.
    pub processes: Vec<i32>,
    /// The question, as recordings and pages describe it.
    pub question: Question,
}

/// Plans for one question on one machine.
#[derive(Debug)]
pub struct Plans {
    /// The first choice.
    pub best: Plan,
    /// Fallbacks for a kernel that refuses it, the better ones first.
    pub others: Vec<(Instead, Plan)>,
}

/// Reason to use a plan instead of a better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Less exact, or meant for another kernel: allowed only if the kernel lacks a feature that the
    /// better plan needs.
    LessExact,
    /// Equivalent, except that no histogram grows, and no entry is taken out.
    Fixed,
    /// Equivalent, except that tasks are counted by ID, where C lacks their names.
    ById,
}

impl Plans {
    /// All plans, the best first.
    pub fn iter(&self) -> impl Iterator<Item = &Plan> {
        std::iter::once(&self.best).chain(self.others.iter().map(|(_, plan)| plan))
    }
}

impl Plan {
    /// Filters of its triggers.
    pub fn filters(&self) -> impl Iterator<Item = &str> {
        let triggers = self.steps.iter().map(|step| Trigger::parse(step.text()));
        triggers.filter_map(|trigger| Some(trigger.filter?.text))
    }

    /// Returns whether a command uses `common_comm`, which C lacks on some kernels.
    pub fn has_comm(&self) -> bool {
        self.steps.iter().any(|step| step.has_word("common_comm"))
    }

    /// Names of its key columns in the results. For triggers written by a person, without
    /// modifiers.
    pub fn key_names(&self) -> Vec<&str> {
        let keys = self.measure.by.iter().map(String::as_str);
        match self.answer.is_whole() {
            true => keys.map(|key| split_key(key).0).collect(),
            false => keys.collect(),
        }
    }

    /// Returns whether its histograms have stacks of programs.
    pub fn has_programs(&self) -> bool {
        self.steps.iter().any(|step| step.has_word(USTACK))
    }

    /// Returns whether its keys or saved fields contain paths of control groups.
    pub fn has_groups(&self) -> bool {
        let is_group = |name: &str| matches!(self.question.name_kind(name), NameKind::Cgroup | NameKind::Container);
        let has_paths = |step: &Step| {
            let Step::Trigger { event, command } = step else {
                return false;
            };
            let trigger = Trigger::parse(command);
            let is_path = |key: &str| event.starts_with("cgroup/") && container::is_path(key);
            trigger.keys().any(|key| is_path(key.text)) || trigger.clauses.iter().any(|clause| has_group(clause.text))
        };
        self.key_names().into_iter().any(is_group) || self.steps.iter().any(has_paths)
    }

    /// Names of the numbers in its keys and saved fields, including names from the formats of its
    /// events. Call it while the run exists: events of its own probes have formats only then.
    pub fn names(&self, tracefs: &Tracefs) -> Names {
        let columns = self.measure.by.iter().chain(&self.measure.save);
        Names::of_events(tracefs, &self.measure, columns.chain(self.question.names.keys()))
    }

    /// All commands in the syntax of a shell.
    pub fn shell(&self, tracefs: &Tracefs) -> Vec<String> {
        let mut lines = vec![
            cd(tracefs),
            format!("mkdir instances/{}", self.id.instance()),
            format!("echo {NO_TASK} > instances/{}/{TASKS}", self.id.instance()),
        ];
        lines.extend(self.steps.iter().map(|step| step.shell(&self.id)));
        let instance = format!("instances/{}", self.id.instance());
        if self.processes.is_empty() {
            lines.push(format!(": > {instance}/{TASKS}"));
        } else {
            lines.push(format!("echo 1 > {instance}/{FORKS}"));
            let tasks = task_list(&self.threads());
            lines.push(format!("echo {tasks} >> {instance}/{TASKS}"));
        }
        lines
    }

    /// The commands of a shell that undo [`Self::shell()`].
    pub fn shell_undo(&self, tracefs: &Tracefs) -> Vec<String> {
        let mut lines = vec![cd(tracefs)];
        let (triggers, others): (Vec<_>, Vec<_>) = self
            .steps
            .iter()
            .rev()
            .partition(|step| matches!(step, Step::Trigger { .. }));
        lines.extend(triggers.into_iter().map(|step| step.shell_undo(&self.id)));
        lines.push(format!("rmdir instances/{}", self.id.instance()));
        lines.extend(others.into_iter().map(|step| step.shell_undo(&self.id)));
        lines
    }

    /// Present threads of [`Self::processes`].
    pub(crate) fn threads(&self) -> BTreeSet<i32> {
        let processes = self.processes.iter();
        processes
            .filter_map(|process| threads::of(*process).ok())
            .flatten()
            .collect()
    }

    /// Returns whether one of its events is `rhist:sample`.
    pub(crate) fn takes_samples(&self) -> bool {
        let sample = EventName::parse(SAMPLE);
        events_of(&self.measure)
            .into_iter()
            .any(|event| EventName::parse(event) == sample)
    }

    /// Adds a note that rhist's own activity is counted too.
    pub(super) fn note_self(&mut self) {
        let note = "rhist's own activity is counted, too: these events do not say which task they belong to";
        if !self.question.notes.iter().any(|other| other == note) {
            self.question.notes.push(note.to_owned());
        }
    }

    /// Adds a trigger. Returns its event, and the index of its histogram there.
    pub(super) fn add_trigger(&mut self, event: &EventName, command: String) -> (String, usize) {
        let event = format!("{}/{}", event.system, event.event);
        let place = self
            .steps
            .iter()
            .filter(|step| matches!(step, Step::Trigger { event: other, .. } if *other == event))
            .count();
        self.steps.push(Step::Trigger {
            event: event.clone(),
            command,
        });
        (event, place)
    }
}

/// Tasks as a list of an instance takes them.
pub(crate) fn task_list<'a>(tasks: impl IntoIterator<Item = &'a i32>) -> String {
    tasks.into_iter().map(i32::to_string).collect::<Vec<_>>().join(" ")
}

/// Shell command that changes to a tracing directory.
fn cd(tracefs: &Tracefs) -> String {
    format!("cd {}", word(&tracefs.dir().display().to_string()))
}
