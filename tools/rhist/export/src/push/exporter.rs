// SPDX-License-Identifier: MIT OR Apache-2.0

//! Makes batches of intervals.

use std::borrow::Cow;

use prost::Message;
use rhist_core::names::Names;
use rhist_core::otlp::attribute::attributes;
use rhist_core::otlp::attribute::string;
use rhist_core::otlp::encode::Encoder;
use rhist_core::otlp::encode::machine;
use rhist_core::otlp::encode::scope;
use rhist_core::otlp::model::Attribute;
use rhist_core::otlp::model::Metric;
use rhist_core::otlp::model::Request;
use rhist_core::otlp::model::Resource;
use rhist_core::otlp::model::ResourceMetrics;
use rhist_core::otlp::model::ScopeMetrics;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::table::Key;

use super::Batch;
use super::Encoding;
use super::Signal;
use super::Temporality;
use crate::otlp::form::Export;
use crate::otlp::profiles;
use crate::otlp::protobuf::ExportMetricsServiceRequest;

/// Rows per batch. Keeps memory use small, and requests below the limits of receivers, which are
/// some megabytes.
const ROWS: usize = 512;

/// Format of batches.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    /// Kind of data. Profiles are protobuf, and deltas.
    pub signal: Signal,
    /// Encoding of the body.
    pub encoding: Encoding,
    /// Temporality of points.
    pub temporality: Temporality,
    /// Attributes to add to the resource; they replace its attributes of the same name.
    pub resource: Vec<(String, String)>,
}

/// Makes batches of the intervals of one question. No batch contains addresses: keys that are
/// addresses or stacks are sent as symbols.
pub struct Exporter {
    format: Format,
    /// Sum of all intervals so far, if points are cumulative.
    total: Option<Interval>,
}

impl Exporter {
    /// Creates an exporter for a question that starts now.
    pub fn new(format: Format) -> Self {
        Exporter { format, total: None }
    }

    /// Forgets the sums of other rows than these: they begin with 0 if they come again.
    pub fn retain(&mut self, stays: impl Fn(&[Key]) -> bool) {
        if let Some(total) = &mut self.total {
            total.delta.rows.retain(|row| stays(&row.keys));
        }
    }

    /// Makes batches of the next interval, and calls `push` for each. `names` resolves its numbers.
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
        let form = Export(self.format.temporality);
        let encoder = Encoder::new(question, names, interval, &form);
        if self.format.signal == Signal::Profiles {
            let mut own = encoder.own_attributes();
            let mut chunks = interval.delta.rows.chunks(ROWS);
            // Also without rows, so that the receiver learns of losses.
            let mut rows = Some(chunks.next().unwrap_or_default());
            while let Some(some) = rows {
                // The numbers of the interval are in its first profile.
                let own = std::mem::take(&mut own);
                let request = profiles::request(question, interval, &encoder, some, &resource, own);
                push(Batch {
                    encoding: Encoding::Protobuf,
                    body: request.encode_to_vec(),
                });
                rows = chunks.next();
            }
            return;
        }
        let mut metrics = encoder.own();
        // Runs once even without rows, so that the receiver learns of an idle interval.
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

/// Resource of the metrics: this machine, or the machine of a recording.
fn resource(question: &Question, boot_id: Option<&str>, more: &[(String, String)]) -> Vec<Attribute> {
    let boot_id = boot_id.map(|id| ("rhist.boot_id", string(id)));
    // Distinguishes machines at receivers that keep no other attribute of a resource.
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
        // Cannot fail: the request has no map with keys other than strings.
        Encoding::Json => serde_json::to_vec(&request).unwrap_or_default(),
    };
    Batch { encoding, body }
}

/// Adds an interval to the sum. Keeps only this interval's largest values.
fn add<'a>(total: &'a mut Option<Interval>, interval: &Interval) -> &'a Interval {
    let total = match total {
        None => total.insert(interval.clone()),
        Some(total) => {
            let from = std::mem::take(&mut total.from);
            let mut sum = std::mem::take(total).into_reading();
            for row in &mut sum.table.rows {
                row.worst = None;
            }
            sum.append(interval.clone());
            *total = sum.into_interval(from);
            total
        }
    };
    // If the clock was set back before this interval, moves the start once and keeps it: to
    // receivers, a new start means a new sum.
    total.from.realtime_ns = total.from.realtime_before(&total.to);
    total
}
