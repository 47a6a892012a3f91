// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pushes the readings of a service, independently of scrapes: the same totals, with the same
//! labels.

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use rhist_core::question::Question;
use rhist_core::table::Time;

use super::Service;
use super::destination::PushSettings;
use super::families::LabelNames;
use super::watched::Watched;
use crate::metrics::Family;
use crate::metrics::Kind;
use crate::metrics::Value;
use crate::push::Endpoint;
use crate::push::Exporter;
use crate::push::Format;
use crate::push::Pusher;
use crate::push::Totals;

/// Creates the pusher for a receiver.
pub type Start = dyn Fn(Endpoint) -> Pusher;

/// Pushes a service's totals to the configured receiver, if any.
pub struct Pushing {
    start: Box<Start>,
    active: Option<Active>,
    /// Totals of pushers that have ended.
    past: Totals,
    began: Time,
}

struct Active {
    url: String,
    pusher: Pusher,
    format: Format,
    interval: Duration,
    due: Instant,
    /// By the names of histograms.
    series: BTreeMap<String, Series>,
}

/// State of pushing a histogram.
struct Series {
    /// Start of the histogram. Another histogram of the same name has another start.
    start: Time,
    exporter: Exporter,
}

impl Pushing {
    /// Creates an instance without a receiver.
    pub fn new(start: impl Fn(Endpoint) -> Pusher + 'static) -> Self {
        Self {
            start: Box::new(start),
            active: None,
            past: Totals::default(),
            began: Time::clocks(),
        }
    }

    /// Applies other settings; `None` ends pushing. A pusher continues if the receiver stays the
    /// same. Otherwise it is ended, which waits for its receiver no longer than `patience`, and its
    /// queue stays. A new receiver gets only counts from now on.
    pub fn apply(&mut self, settings: Option<PushSettings>, service: &mut Service, patience: Duration) {
        service.is_pushed = settings.is_some();
        let mut old = self.active.take();
        let is_other = |active: &Active, settings: &PushSettings| active.url != settings.endpoint.url();
        if settings
            .as_ref()
            .is_none_or(|settings| old.as_ref().is_some_and(|active| is_other(active, settings)))
            && let Some(active) = old.take()
        {
            self.past = self.past.and(active.pusher.finish(patience));
        }
        let Some(settings) = settings else { return };
        let due = Instant::now() + settings.interval;
        self.active = Some(match old {
            Some(active) if active.format == settings.format => Active {
                due: due.min(active.due),
                interval: settings.interval,
                ..active
            },
            old => Active {
                url: settings.endpoint.url().to_owned(),
                pusher: match old {
                    Some(active) => active.pusher,
                    None => (self.start)(settings.endpoint),
                },
                series: from_now(service, &settings.format),
                format: settings.format,
                interval: settings.interval,
                due,
            },
        });
    }

    /// Time at which [`Self::push()`] is due.
    pub fn due(&self) -> Option<Instant> {
        self.active.as_ref().map(|active| active.due)
    }

    /// Pushes the counts since the last push. Does not wait for the receiver.
    pub fn push(&mut self, service: &mut Service) {
        let Some(active) = &mut self.active else { return };
        let now = Instant::now();
        active.due += active.interval;
        if active.due <= now {
            active.due = now + active.interval;
        }
        let names = service.label_names();
        let all = &mut service.histograms;
        active.series.retain(|name, series| {
            all.iter()
                .any(|one| one.wanted.name == *name && one.start == series.start)
        });
        for (histogram, labels) in all.iter_mut().zip(&names) {
            if histogram.started().is_none() {
                continue;
            }
            let name = histogram.wanted.name.clone();
            let new = || Series::new(histogram, &active.format);
            let series = active.series.entry(name).or_insert_with(new);
            series.push(histogram, labels, &active.pusher);
        }
    }

    /// Ends pushing. Sends the remaining batches as long as the receiver accepts them at once, at
    /// most for `patience`. Returns the counts of all batches.
    pub fn finish(self, patience: Duration) -> Totals {
        match self.active {
            Some(active) => self.past.and(active.pusher.finish(patience)),
            None => self.past,
        }
    }

    /// Metrics about pushing, if it is or was configured.
    pub fn families(&self) -> Vec<Family<'static>> {
        let active = self.active.as_ref().map(|active| active.pusher.totals());
        if active.is_none() && self.past == Totals::default() {
            return Vec::new();
        }
        let totals = self.past.and(active.unwrap_or_default());
        let start = Some(self.began.realtime_before(&Time::clocks()));
        let whole = |number: u64| Value::Whole(number.into());
        let help = "Batches by result; only accepted ones have arrived";
        let mut batches = Family::new("rhist_push_batches", "", Kind::Counter, help);
        for (result, number) in [
            ("accepted", totals.accepted),
            ("refused", totals.refused),
            ("dropped", totals.dropped),
            ("unreadable", totals.unreadable),
        ] {
            batches.push(vec![("result", result)], whole(number), start);
        }
        let one = |name: &str, unit, help: &str, number, start: Option<u64>| {
            let kind = start.map_or(Kind::Gauge, |_| Kind::Counter);
            let mut family = Family::new(name, unit, kind, help);
            family.push(vec![], whole(number), start);
            family
        };
        let rejected = "Data points of accepted batches that the receiver rejected";
        let retries = "Requests that had to be repeated";
        vec![
            batches,
            one(
                "rhist_push_rejected_points",
                "",
                rejected,
                totals.rejected_points,
                start,
            ),
            one("rhist_push_retries", "", retries, totals.retries, start),
            one(
                "rhist_push_queue_batches",
                "",
                "Batches in the queue",
                totals.waiting,
                None,
            ),
            one(
                "rhist_push_queue_bytes",
                "bytes",
                "Bytes of the batches in the queue",
                totals.bytes,
                None,
            ),
        ]
    }
}

impl Series {
    fn new(histogram: &Watched, format: &Format) -> Self {
        Self {
            start: histogram.start.clone(),
            exporter: Exporter::new(format.clone()),
        }
    }

    fn push(&mut self, histogram: &mut Watched, LabelNames(labels): &LabelNames, pusher: &Pusher) {
        // Skips a histogram that was not read: it is paused, or the module is not loaded.
        let Some(mut interval) = histogram.totals.take_fresh(&histogram.start) else {
            return;
        };
        interval.cost = histogram.watch.cost;
        self.exporter.retain(|labels| histogram.totals.has(labels));
        let mut question = Question {
            name: histogram.wanted.name.clone(),
            ..histogram.question.clone()
        };
        for (column, label) in interval.delta.keys.iter_mut().zip(labels) {
            let kind = question.name_kind(&column.name);
            question.names.entry(label.clone()).or_insert(kind);
            column.name.clone_from(label);
        }
        self.exporter
            .export(&question, &histogram.names, &interval, |batch| pusher.push(batch));
    }
}

/// Series that begin now: treats all counts up to now as pushed.
fn from_now(service: &mut Service, format: &Format) -> BTreeMap<String, Series> {
    let started = service.histograms.iter_mut().filter(|one| one.started().is_some());
    let series = started.map(|histogram| {
        histogram.totals.take_fresh(&histogram.start);
        (histogram.wanted.name.clone(), Series::new(histogram, format))
    });
    series.collect()
}

#[cfg(test)]
mod tests;
