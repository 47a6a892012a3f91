// SPDX-License-Identifier: MIT OR Apache-2.0

//! Metrics for receivers of any kind.

use rhist_core::names::container;
use rhist_core::otlp::attribute::attributes;
use rhist_core::otlp::attribute::string;
use rhist_core::otlp::encode::Field;
use rhist_core::otlp::encode::Form;
use rhist_core::otlp::model::Attribute;
use rhist_core::otlp::model::Temporality;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::recipe::NameKind;
use rhist_core::table::Key;
use rhist_core::table::Row;

use super::flat;

/// Export with this temporality: keys are numbers and strings.
pub struct Export(pub Temporality);

impl Form for Export {
    fn start_ns(&self, interval: &Interval) -> u64 {
        interval.from.realtime_before(&interval.to)
    }

    /// A sum of all intervals begins when the row does.
    fn row_start_ns(&self, interval: &Interval, row: &Row) -> u64 {
        let start = self.start_ns(interval);
        let begin = row
            .begin
            .map(|begin| begin.at.realtime_ns)
            .filter(|_| self.0 == Temporality::Cumulative);
        begin.map_or(start, |begin| begin.clamp(start, interval.to.realtime_ns.max(start)))
    }

    fn temporality(&self) -> Temporality {
        self.0
    }

    fn has_all_sums(&self) -> bool {
        false
    }

    /// The question's name, since several questions share one resource.
    fn about(&self, question: &Question) -> Vec<Attribute> {
        attributes([("rhist.name", string(&question.name))])
    }

    fn add(&self, attributes: &mut Vec<Attribute>, field: Field<'_>) {
        let Field { column, kind, key, .. } = field;
        let [value_name, name_name] = field.attributes;
        let (value, name) = flat::from_key(key, field.name);
        let is_cgroup = matches!(kind, NameKind::Cgroup | NameKind::Container);
        let group = match (key, &name) {
            (Key::Text(path), _) if container::is_path(column) || is_cgroup => str::from_utf8(path).ok(),
            (_, Some(path)) if is_cgroup => Some(path.as_str()),
            _ => None,
        };
        let mut add = |name: &str, value| {
            attributes.push(Attribute {
                key: name.to_owned(),
                value,
            });
        };
        add(value_name, value);
        if let Some(name) = &name {
            add(name_name, string(name));
        }
        let Some(group) = group else { return };
        let of_group = [
            (container::ID, container::id(group).map(str::to_owned)),
            (container::POD, container::pod(group)),
        ];
        for (name, id) in of_group {
            if let Some(id) = id
                && attributes.iter().all(|attribute| attribute.key != name)
            {
                attributes.push(Attribute {
                    key: name.to_owned(),
                    value: string(&id),
                });
            }
        }
    }
}
