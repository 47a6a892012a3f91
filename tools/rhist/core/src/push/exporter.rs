// SPDX-License-Identifier: MIT OR Apache-2.0

//! Makes batches of intervals.

use std::borrow::Cow;

use prost::Message;

use super::Batch;
use super::Encoding;
use super::Temporality;
use crate::names::Names;
use crate::otlp::attribute::attributes;
use crate::otlp::attribute::string;
use crate::otlp::encode::Encoder;
use crate::otlp::encode::Form;
use crate::otlp::encode::machine;
use crate::otlp::encode::scope;
use crate::otlp::model::Attribute;
use crate::otlp::model::Metric;
use crate::otlp::model::Request;
use crate::otlp::model::Resource;
use crate::otlp::model::ResourceMetrics;
use crate::otlp::model::ScopeMetrics;
use crate::otlp::protobuf::ExportMetricsServiceRequest;
use crate::question::Interval;
use crate::question::Question;
use crate::recording::append;
use crate::table::Key;
use crate::table::fold;

/// Rows in a batch: what is in memory at once stays small, and receivers limit requests to some megabytes.
const ROWS: usize = 512;

/// What batches are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// How they are encoded.
    pub encoding: Encoding,
    /// What the numbers of points say.
    pub temporality: Temporality,
    /// Attributes of the resource, beside those that tell the machine, or in their place.
    pub resource: Vec<(String, String)>,
}

/// Makes batches of the intervals of one question. Addresses are in none of them: of keys that are addresses or stacks, there
/// are the symbols.
pub struct Exporter {
    format: Format,
    /// All intervals until now, if points are cumulative.
    total: Option<Interval>,
}

impl Exporter {
    /// For a question that is asked from now on.
    pub fn new(format: Format) -> Self {
        Exporter { format, total: None }
    }

    /// Makes batches of the interval that follows, one after the other. `names` has those of its numbers.
    pub fn export(&mut self, question: &Question, names: &Names, interval: &Interval, mut push: impl FnMut(Batch)) {
        let mut interval = Cow::Borrowed(interval);
        let has_address = |column: &str, key: &Key| question.has_address(column, key);
        if interval.delta.has_addresses(has_address) {
            let delta = interval.delta.without_addresses(has_address);
            interval = Cow::Owned(Interval {
                delta,
                ..interval.into_owned()
            });
        }
        let resource = resource(question, interval.to.boot_id.as_deref(), &self.format.resource);
        let encoding = self.format.encoding;
        let interval = match self.format.temporality {
            Temporality::Delta => &*interval,
            Temporality::Cumulative => add(&mut self.total, &interval),
        };
        let encoder = Encoder::new(question, names, interval, Form::Export(self.format.temporality));
        let mut metrics = encoder.own();
        // Also without rows, so that it is known that nothing happened.
        let mut chunks = interval.delta.rows.chunks(ROWS);
        loop {
            let chunk = chunks.next();
            metrics.extend(chunk.map(|rows| encoder.rows(rows)).unwrap_or_default());
            if !metrics.is_empty() {
                push(batch(encoding, &resource, std::mem::take(&mut metrics)));
            }
            if chunk.is_none() {
                return;
            }
        }
    }
}

/// What is measured: this machine, or that of a recording.
fn resource(question: &Question, boot_id: Option<&str>, more: &[(String, String)]) -> Vec<Attribute> {
    let boot_id = boot_id.map(|id| ("rhist.boot_id", string(id)));
    // What tells the series of one machine from those of another, where nothing else of a resource is kept.
    let instance = ("service.instance.id", string(&question.host));
    let mut resource = attributes(machine(question).into_iter().chain([instance]).chain(boot_id));
    for (name, value) in more {
        let value = string(value);
        match resource.iter_mut().find(|attribute| attribute.key == *name) {
            Some(attribute) => attribute.value = value,
            None => resource.push(Attribute {
                key: name.clone(),
                value,
            }),
        }
    }
    resource
}

fn batch(encoding: Encoding, resource: &[Attribute], metrics: Vec<Metric>) -> Batch {
    let request = Request {
        resource_metrics: vec![ResourceMetrics {
            resource: Resource {
                attributes: resource.to_vec(),
            },
            scope_metrics: vec![ScopeMetrics {
                scope: scope(Vec::new()),
                metrics,
            }],
        }],
    };
    let body = match encoding {
        Encoding::Protobuf => ExportMetricsServiceRequest::from(request).encode_to_vec(),
        // It has no map whose keys are no strings: nothing in it can fail.
        Encoding::Json => serde_json::to_vec(&request).unwrap_or_default(),
    };
    Batch { encoding, body }
}

/// Adds an interval to those before. Of largest values, only those of this interval are there.
fn add<'a>(total: &'a mut Option<Interval>, interval: &Interval) -> &'a Interval {
    let total = match total {
        None => total.insert(interval.clone()),
        Some(total) => {
            for row in &mut total.delta.rows {
                row.worst = None;
            }
            append(&mut total.delta, interval.delta.clone());
            total.to.clone_from(&interval.to);
            total.events = total.events.saturating_add(interval.events);
            total.rejected = fold::sum(total.rejected, interval.rejected);
            total.cost = interval.cost;
            total
        }
    };
    // If the clock was set back before it, the start moves once, and stays there: for receivers, another start is another sum.
    total.from.realtime_ns = total.from.realtime_before(&total.to);
    total
}
