// SPDX-License-Identifier: MIT OR Apache-2.0

//! Decodes a line into an interval. Validates everything, since the file may come from anywhere.

use std::collections::BTreeMap;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde_json::value::RawValue;

use super::encode::EXACT;
use super::encode::INTERVALS;
use super::points::Result;
use super::points::bucket_unit;
use super::points::dist;
use super::points::number;
use super::points::numbers;
use super::points::worst;
use crate::names::Names as NumberNames;
use crate::otlp::attribute::to_key;
use crate::otlp::attribute::to_named;
use crate::otlp::attribute::to_string;
use crate::otlp::encode::SCOPE;
use crate::otlp::model::Any;
use crate::otlp::model::Attribute;
use crate::otlp::model::Digits;
use crate::otlp::model::Double;
use crate::otlp::model::Metric;
use crate::otlp::model::NumberPoint;
use crate::otlp::model::Request;
use crate::otlp::model::Resource;
use crate::otlp::model::ScopeMetrics;
use crate::otlp::names;
use crate::otlp::names::Names;
use crate::otlp::names::Word;
use crate::question::Cost;
use crate::question::Interval;
use crate::question::Question;
use crate::recipe::NameKind;
use crate::table::BucketUnit;
use crate::table::Column;
use crate::table::Keys;
use crate::table::Row;
use crate::table::Table;
use crate::table::Time;
use crate::table::Value;

/// Limit of columns, above any real table.
const MAX_COLUMNS: usize = 64;

/// Splits a line into the text of its resource, and its metrics.
pub fn parts(line: &[u8]) -> std::result::Result<(&str, ScopeMetrics), PartsError> {
    let request: Request<&RawValue> = serde_json::from_slice(line).map_err(PartsError::Json)?;
    let [resource] = <[_; 1]>::try_from(request.resource_metrics).map_err(|_| PartsError::Other)?;
    let [scope] = <[_; 1]>::try_from(resource.scope_metrics).map_err(|_| PartsError::Other)?;
    match scope.scope.name.as_str() {
        SCOPE => Ok((resource.resource.get(), scope)),
        _ => Err(PartsError::Other),
    }
}

/// Reason why a line has no such parts.
pub enum PartsError {
    /// Not valid JSON, or not of the expected form.
    Json(serde_json::Error),
    /// OTLP from another program than rhist.
    Other,
}

/// Reads the question and the `boot_id` from the text of a resource.
pub fn resource(text: &str) -> Result<(Question, Option<String>)> {
    let resource: Resource = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let members: BTreeMap<_, _> = resource
        .attributes
        .iter()
        .map(|attribute| (attribute.key.as_str(), &attribute.value))
        .collect();
    let missing = |name: &str| format!("the resource has no {name}, or one of another type");
    let text = |name: &str| {
        members
            .get(name)
            .and_then(|value| to_string(value))
            .ok_or_else(|| missing(name))
    };
    let texts = |name: &str| match members.get(name) {
        Some(Any::Array(texts)) => texts.values.iter().map(to_string).collect::<Option<_>>(),
        _ => None,
    };
    let kinds = |name: &str| match members.get(name) {
        Some(Any::Kvlist(kinds)) => kinds.values.iter().map(name_kind).collect::<Option<_>>(),
        _ => None,
    };
    let cpus = match members.get("rhist.cpus") {
        Some(Any::Int(Digits(cpus))) => u32::try_from(*cpus).ok(),
        _ => None,
    };
    let question = Question {
        name: text("rhist.name")?,
        summary: text("rhist.summary")?,
        noun: text("rhist.noun")?,
        unit: Word::parse(&text("rhist.unit")?).ok_or_else(|| missing("rhist.unit"))?,
        worst: text("rhist.worst")?,
        names: kinds("rhist.names").ok_or_else(|| missing("rhist.names"))?,
        // Only written if not empty.
        signed: texts("rhist.signed").unwrap_or_default(),
        narrow: texts("rhist.narrow").unwrap_or_default(),
        triggers: texts("rhist.triggers").ok_or_else(|| missing("rhist.triggers"))?,
        notes: texts("rhist.notes").ok_or_else(|| missing("rhist.notes"))?,
        backend: Word::parse(&text("rhist.backend")?).ok_or_else(|| missing("rhist.backend"))?,
        has_exact_intervals: text(INTERVALS).is_ok_and(|how| how == EXACT),
        host: text("host.name")?,
        kernel: text("os.version")?,
        cpus: cpus.ok_or_else(|| missing("rhist.cpus"))?,
        ..Question::default()
    };
    Ok((question, text("rhist.boot_id").ok()))
}

fn name_kind(attribute: &Attribute) -> Option<(String, NameKind)> {
    let word = to_string(&attribute.value)?;
    let deserializer: StrDeserializer<'_, serde::de::value::Error> = word.as_str().into_deserializer();
    Some((attribute.key.clone(), NameKind::deserialize(deserializer).ok()?))
}

/// Adds the names of numbers from the metrics of a line.
pub fn add_names(names: &mut NumberNames, scope: &ScopeMetrics) {
    let mut add = |attribute: &Attribute| {
        if let Some((number, name)) = to_named(&attribute.value) {
            names.add_recorded(&attribute.key, number, name);
        }
    };
    for metric in &scope.metrics {
        for point in numbers(metric) {
            let saved = point
                .exemplars
                .iter()
                .flat_map(|exemplar| &exemplar.filtered_attributes);
            point.attributes.iter().chain(saved).for_each(&mut add);
        }
        let histograms = metric
            .exponential_histogram
            .iter()
            .flat_map(|histogram| &histogram.data_points);
        let exemplars = histograms.flat_map(|point| &point.exemplars);
        exemplars
            .flat_map(|exemplar| &exemplar.filtered_attributes)
            .for_each(&mut add);
    }
}

/// Reads the interval from the metrics of a line.
pub fn interval(question: &Question, boot_id: Option<String>, scope: &ScopeMetrics) -> Result<Interval> {
    let metrics: HashMap<_, _> = scope
        .metrics
        .iter()
        .map(|metric| (metric.name.as_str(), metric))
        .collect();
    if metrics.len() != scope.metrics.len() {
        return Err("two metrics have the same name".to_owned());
    }
    let keys = columns(&scope.scope.attributes, "rhist.keys")?;
    let values = columns(&scope.scope.attributes, "rhist.values")?;
    let mut rows = Rows::new(&keys);
    let names = Names::new(&question.name, &values);
    rows.add_hits(numbers(
        metrics
            .get(names.hits.as_str())
            .ok_or_else(|| format!("missing metric {}", names.hits))?,
    ))?;
    for ((column, name), no_bucket) in values.iter().zip(&names.values).zip(&names.no_bucket) {
        let metric = metrics.get(name.as_str()).copied();
        rows.add_column(column, metric, metrics.get(no_bucket.as_str()).copied())?;
    }

    let own = |name: &str| match metrics.get(name).map(|metric| numbers(metric)) {
        None => Ok(None),
        Some([point]) => Ok(Some((point, number(point)?))),
        Some(_) => Err(format!("{name} does not have exactly one point")),
    };
    let count = |name: &str| match own(name)? {
        None => Ok(None),
        Some((_, number)) => u64::try_from(number)
            .map(Some)
            .map_err(|_| format!("{name} is out of range")),
    };
    let needed = |name: &str| count(name)?.ok_or_else(|| format!("missing metric {name}"));
    let (point, monotonic) = own(names::MONOTONIC)?.ok_or_else(|| format!("missing metric {}", names::MONOTONIC))?;
    let (_, duration) = own(names::DURATION)?.ok_or_else(|| format!("missing metric {}", names::DURATION))?;
    let nanoseconds = |number: i128| u64::try_from(number).map_err(|_| "a time is out of range".to_owned());
    let from = Time {
        realtime_ns: nanoseconds(point.start_time_unix_nano.0)?,
        monotonic_ns: nanoseconds(monotonic - duration)?,
        boot_id: boot_id.clone(),
    };
    let to = Time {
        realtime_ns: nanoseconds(point.time_unix_nano.0)?,
        monotonic_ns: nanoseconds(monotonic)?,
        boot_id,
    };
    let real = |name| match metrics.get(name).map(|metric| numbers(metric)) {
        Some([point]) => point.as_double.as_ref().map(Double::to_f64),
        _ => None,
    };
    let mut delta = Table {
        rows: rows.rows,
        time: to.clone(),
        keys,
        values,
        ..Table::default()
    };
    delta.losses.dropped = needed(names::DROPPED)?;
    // Missing in older recordings.
    delta.losses.dropped_starts = count(names::DROPPED_STARTS)?.unwrap_or(0);
    delta.losses.no_bucket = count(names::NO_BUCKET)?;
    delta.losses.unresolved = count(names::UNRESOLVED)?;
    delta.losses.missed = count(names::MISSED)?;
    delta.losses.missed_hits = count(names::MISSED_HITS)?;
    delta.losses.expired_starts = count(names::EXPIRED_STARTS)?;
    Ok(Interval {
        from,
        to,
        delta,
        events: needed(names::EVENTS)?,
        rejected: count(names::REJECTED)?,
        cost: Cost {
            event_ns: real(names::EVENT_COST),
            rejected_ns: real(names::REJECTED_COST),
        },
        ..Interval::default()
    })
}

/// Reads columns from an attribute of the scope.
fn columns(attributes: &[Attribute], name: &str) -> Result<Vec<Column>> {
    let member = |column: &Any, name: &str| match column {
        Any::Kvlist(members) => members
            .values
            .iter()
            .find(|member| member.key == name)
            .and_then(|member| to_string(&member.value)),
        _ => None,
    };
    let column = |value: &Any| {
        Some(Column {
            name: member(value, "name")?,
            unit: Word::parse(&member(value, "unit")?)?,
            fold: Word::parse(&member(value, "fold")?)?,
        })
    };
    let attribute = attributes.iter().find(|attribute| attribute.key == name);
    let columns = match attribute.map(|attribute| &attribute.value) {
        Some(Any::Array(columns)) if columns.values.len() <= MAX_COLUMNS => columns.values.iter().map(column).collect(),
        _ => None,
    };
    columns.ok_or_else(|| format!("the scope has no {name}, or one of another type"))
}

/// The rows of a table, with an index by keys.
struct Rows<'a> {
    names: Vec<String>,
    rows: Vec<Row>,
    attributes: Vec<&'a [Attribute]>,
    index: HashMap<Keys, usize>,
}

impl<'a> Rows<'a> {
    fn new(keys: &[Column]) -> Self {
        Rows {
            names: names::keys(keys).into_iter().map(|[name, _]| name).collect(),
            rows: Vec::new(),
            attributes: Vec::new(),
            index: HashMap::new(),
        }
    }

    fn add_hits(&mut self, points: &'a [NumberPoint]) -> Result<()> {
        for point in points {
            let keys = self.keys(&point.attributes)?;
            if self.index.insert(keys.clone(), self.rows.len()).is_some() {
                return Err("two entries have the same keys".to_owned());
            }
            self.attributes.push(&point.attributes);
            self.rows.push(Row {
                keys,
                hits: u64::try_from(number(point)?).map_err(|_| "a number of hits is out of range".to_owned())?,
                values: Vec::new(),
                worst: worst(&point.exemplars, BucketUnit::One)?,
                begin: None,
                last_ns: None,
            });
        }
        Ok(())
    }

    fn add_column(&mut self, column: &Column, metric: Option<&Metric>, no_bucket: Option<&Metric>) -> Result<()> {
        let mut values = vec![Value::Unknown; self.rows.len()];
        if let Some(metric) = metric {
            for (i, point) in numbers(metric).iter().enumerate() {
                let row = self.find(i, &point.attributes)?;
                values[row] = Value::Number(number(point)?);
            }
            let unit = bucket_unit(column, &metric.unit)?;
            let histograms = metric.exponential_histogram.as_ref();
            for (i, point) in histograms
                .iter()
                .flat_map(|histogram| &histogram.data_points)
                .enumerate()
            {
                let row = self.find(i, &point.attributes)?;
                values[row] = Value::Dist(dist(point, unit)?);
                if let Some(worst) = worst(&point.exemplars, unit)? {
                    self.rows[row].worst = Some(worst);
                }
            }
        }
        for (i, point) in no_bucket.map_or(&[][..], numbers).iter().enumerate() {
            let row = self.find(i, &point.attributes)?;
            if let Value::Dist(dist) = &mut values[row] {
                dist.count = number(point)?
                    .checked_add(dist.count.into())
                    .and_then(|count| count.try_into().ok())
                    .ok_or("a count is out of range")?;
            }
        }
        for (row, value) in self.rows.iter_mut().zip(values) {
            row.values.push(value);
        }
        Ok(())
    }

    /// Finds the row with these attributes, usually the one at the same index.
    fn find(&self, place: usize, attributes: &[Attribute]) -> Result<usize> {
        if self.attributes.get(place) == Some(&attributes) {
            return Ok(place);
        }
        let keys = self.keys(attributes)?;
        self.index
            .get(&keys)
            .copied()
            .ok_or_else(|| "a value belongs to no entry".to_owned())
    }

    fn keys(&self, attributes: &[Attribute]) -> Result<Keys> {
        let are_names = attributes.iter().map(|attribute| &attribute.key).eq(&self.names);
        let keys = attributes
            .iter()
            .map(|attribute| to_key(&attribute.value))
            .collect::<Option<_>>();
        keys.filter(|_| are_names)
            .ok_or_else(|| "the attributes of a point do not match the keys of an entry".to_owned())
    }
}
