// SPDX-License-Identifier: MIT OR Apache-2.0

//! Encodes an interval as a line.

use crate::names::Names;
use crate::otlp::attribute;
use crate::otlp::attribute::attributes;
use crate::otlp::attribute::list;
use crate::otlp::attribute::string;
use crate::otlp::encode::Encoder;
use crate::otlp::encode::Field;
use crate::otlp::encode::Form;
use crate::otlp::encode::machine;
use crate::otlp::encode::scope;
use crate::otlp::model::Any;
use crate::otlp::model::Attribute;
use crate::otlp::model::Request;
use crate::otlp::model::Resource;
use crate::otlp::model::ResourceMetrics;
use crate::otlp::model::ScopeMetrics;
use crate::otlp::model::Temporality;
use crate::otlp::names::Word;
use crate::question::Interval;
use crate::question::Question;
use crate::table::Column;
use crate::table::Key;

/// Attribute that tells how the kernel was read: [`EXACT`] if it has cut the intervals. Without it,
/// they are differences of totals.
pub const INTERVALS: &str = "rhist.intervals";

/// See [`INTERVALS`].
pub const EXACT: &str = "exact";

/// Metrics that are read back: numbers of the interval, with complete keys.
struct Recording;

impl Form for Recording {
    fn start_ns(&self, interval: &Interval) -> u64 {
        interval.from.realtime_ns
    }

    fn temporality(&self) -> Temporality {
        Temporality::Delta
    }

    fn has_all_sums(&self) -> bool {
        true
    }

    /// The question is in the resource.
    fn about(&self, _: &Question) -> Vec<Attribute> {
        Vec::new()
    }

    fn add(&self, attributes: &mut Vec<Attribute>, field: Field<'_>) {
        let value = match (field.key, field.name) {
            (Key::Number(number), Some(name)) => attribute::from_named(*number, &name),
            (key, _) => attribute::from_key(key),
        };
        attributes.push(Attribute {
            key: field.attributes[0].to_owned(),
            value,
        });
    }
}

/// The request that forms a line.
pub fn request(question: &Question, names: &Names, interval: &Interval) -> Request<Resource> {
    let encoder = Encoder::new(question, names, interval, &Recording);
    let mut metrics = encoder.own();
    metrics.extend(encoder.rows(&interval.delta.rows));
    let columns = attributes([
        ("rhist.keys", columns(&interval.delta.keys)),
        ("rhist.values", columns(&interval.delta.values)),
    ]);
    Request {
        resource_metrics: vec![ResourceMetrics {
            resource: resource(question, interval.to.boot_id.as_deref()),
            scope_metrics: vec![ScopeMetrics {
                scope: scope(columns),
                metrics,
            }],
        }],
    }
}

/// The question, as attributes of the resource.
fn resource(question: &Question, boot_id: Option<&str>) -> Resource {
    let strings = |texts: &[String]| Any::Array(texts.iter().map(|text| string(text)).collect::<Vec<_>>().into());
    let names = question.names.iter().map(|(field, kind)| {
        let word = serde_json::to_value(kind).ok();
        (
            field.as_str(),
            string(word.as_ref().and_then(|word| word.as_str()).unwrap_or_default()),
        )
    });
    let members = [
        ("rhist.name", string(&question.name)),
        ("rhist.summary", string(&question.summary)),
        ("rhist.noun", string(&question.noun)),
        ("rhist.unit", string(question.unit.word())),
        ("rhist.worst", string(&question.worst)),
        ("rhist.names", list(names)),
        ("rhist.triggers", strings(&question.triggers)),
        ("rhist.notes", strings(&question.notes)),
    ];
    let lists = [("rhist.signed", &question.signed), ("rhist.narrow", &question.narrow)];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let lists = lists.map(|(key, names)| (key, strings(names)));
    let boot_id = boot_id.map(|id| ("rhist.boot_id", string(id)));
    let exact = question.has_exact_intervals.then(|| (INTERVALS, string(EXACT)));
    let members = machine(question).into_iter().chain(members);
    Resource {
        attributes: attributes(members.chain(lists).chain(exact).chain(boot_id)),
    }
}

fn columns(columns: &[Column]) -> Any {
    let column = |column: &Column| {
        list([
            ("name", string(&column.name)),
            ("unit", string(column.unit.word())),
            ("fold", string(column.fold.word())),
        ])
    };
    Any::Array(columns.iter().map(column).collect::<Vec<_>>().into())
}
