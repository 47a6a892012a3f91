// SPDX-License-Identifier: MIT OR Apache-2.0

//! Model of a question.

use std::collections::BTreeMap;

use super::error::Error;
use super::error::Written;
use super::probe::Probes;
use crate::recipe::Count;
use crate::recipe::Measure;
use crate::recipe::Point;
use crate::recipe::Recipe;
use crate::recipe::UnitName;
use crate::room::Idle;
use crate::room::Size;
use crate::table::BucketUnit;
use crate::tracefs::Backend;

/// A question, before it is planned for a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Name of the recipe, or `count`, `between`.
    pub name: String,
    /// One line that describes the measurement.
    pub summary: String,
    /// Events to count, or between which time passes.
    pub measure: Measure,
    /// Values of the recipe's arguments.
    pub args: BTreeMap<String, String>,
    /// Whether `--on` is missing, so that a default key links the two events.
    pub has_default_key: bool,
    /// Keys; empty for the recipe's.
    pub by: Vec<String>,
    /// Processes to measure; empty for all.
    pub pids: Vec<i32>,
    /// Measures tasks that these processes start later, too.
    pub children: bool,
    /// Samples per second on each CPU, for `rhist:sample`; `None` for the machine's setting.
    pub frequency: Option<u32>,
    /// Measures only tasks with this name; a pattern if it contains `*`.
    pub comm: Option<String>,
    /// Measures only tasks of this control group, and of the ones below it.
    pub cgroup: Option<String>,
    /// Measures only tasks of the container whose identifier begins so.
    pub container: Option<String>,
    /// Lower limit of times.
    pub slower: Option<String>,
    /// Upper limit of times, exclusive.
    pub faster: Option<String>,
    /// Filter for hits.
    pub filter: Option<String>,
    /// Whether the activity of rhist itself counts.
    pub counts_self: bool,
    /// Number of entries for results, and the minimum for starts.
    pub size: Option<Size>,
    /// Time after which an entry of the results without hits is taken out.
    pub expire: Option<Idle>,
    /// Default of [`Self::expire`] for results by keys whose values come and go.
    pub expire_passing: Option<Idle>,
    /// Unit of the buckets of times.
    pub unit: BucketUnit,
    /// Whether only the buckets of distributions are read.
    pub only_buckets: bool,
    /// Implementation of the histograms; `None` for rhist's, if the module is loaded.
    pub backend: Option<Backend>,
    /// Whether the plan is only printed: another process will carry it out.
    pub is_dry_run: bool,
}

impl Query {
    /// A recipe's question. `variants` are the options for variants, and `args` the arguments that
    /// were given.
    pub fn recipe(
        name: &str,
        recipe: &Recipe,
        variants: &[&str],
        mut args: BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        if let [one, other, ..] = variants {
            return Err(Error::other(format!(
                "--{one} and --{other} exclude each other: use one of them"
            )));
        }
        for arg in &recipe.args {
            if !args.contains_key(&arg.name) {
                let Some(default) = &arg.default else {
                    let missing = arg.name.to_uppercase();
                    return Err(Error::other(format!("{name}: {missing} is missing: {}", arg.help)));
                };
                args.insert(arg.name.clone(), default.clone());
            }
        }
        let variant = variants.first().and_then(|name| recipe.variants.get(*name));
        let (summary, measure) = match variant {
            Some(variant) => (&variant.summary, &variant.measure),
            None => (&recipe.summary, &recipe.measure),
        };
        Ok(Self {
            name: name.to_owned(),
            summary: summary.clone(),
            measure: measure.clone(),
            args,
            ..Self::default()
        })
    }

    /// Question of `count`. `values` has the values of the count, without its event.
    pub fn count(event: &str, values: Count) -> Result<Self, Error> {
        let mut probes = Probes::default();
        let count = Count {
            event: probes.event(event)?,
            ..values
        };
        let measure = Measure {
            noun: "events".to_owned(),
            count: vec![count],
            ..Measure::default()
        };
        Ok(Self {
            name: "count".to_owned(),
            summary: format!("{event} counted"),
            measure: probes.complete(measure),
            ..Self::default()
        })
    }

    /// Question of `between`. `on` has the keys that link both events: `FIELD`, or
    /// `FIELD_OF_START=FIELD_OF_END`.
    pub fn between(start: &str, end: &str, on: &[String]) -> Result<Self, Error> {
        let default = ["common_pid".to_owned()];
        let (on_start, on_end): (Vec<_>, Vec<_>) = if on.is_empty() { &default } else { on }
            .iter()
            .map(|key| key.split_once('=').unwrap_or((key, key)))
            .map(|(start, end)| (start.to_owned(), end.to_owned()))
            .unzip();
        let mut probes = Probes::default();
        let mut point = |event: &str, on| {
            Ok::<_, Error>(Point {
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
            ..Measure::default()
        };
        Ok(Self {
            name: "between".to_owned(),
            summary: format!("time from {start} to {end}"),
            measure: probes.complete(measure),
            has_default_key: on.is_empty(),
            ..Self::default()
        })
    }

    /// Names of the keys that the result is shown by.
    pub fn keys(&self) -> &[String] {
        if self.by.is_empty() { &self.measure.by } else { &self.by }
    }

    /// Texts of the user that become part of a trigger, to locate errors found by the kernel.
    pub fn written(&self) -> Vec<Written<'_>> {
        let by = self.by.iter().map(|text| Written { origin: "--by", text });
        let filter = self.filter.iter().map(|text| Written {
            origin: "--where",
            text,
        });
        let args = self.args.values().map(|text| Written {
            origin: "argument",
            text,
        });
        filter.chain(by).chain(args).collect()
    }
}

/// Joins the lines of a filter, since a trigger must be a single line.
pub fn one_line(filter: &str) -> String {
    filter.replace(char::is_control, " ")
}
