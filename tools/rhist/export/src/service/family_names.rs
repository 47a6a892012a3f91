// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of histograms and of their metric families, so that none is used twice.

use std::collections::BTreeSet;

use crate::metrics::Family;
use crate::metrics::Kind;

/// Prefix of metrics about the service itself. Histograms cannot have this name.
pub(super) const OWN: &str = "serve";

/// Names in use.
#[derive(Debug, Default)]
pub(super) struct FamilyNames(BTreeSet<String>);

impl FamilyNames {
    /// Reserves the names of a family. On a conflict, renames the family with the number 2 or
    /// higher, before the unit, which must stay at the end.
    pub fn take(&mut self, family: &mut Family<'_>) {
        let unit = format!("_{}", family.unit);
        let (stem, unit) = match family.name.strip_suffix(&unit) {
            Some(stem) => (stem.to_owned(), unit.as_str()),
            None => (family.name.clone(), ""),
        };
        let mut number = 1;
        while written(family).any(|name| self.0.contains(&name)) {
            number += 1;
            family.name = format!("{stem}_{number}{unit}");
        }
        self.0.extend(written(family));
    }
}

/// Returns whether a histogram may have this name.
pub(super) fn is_free(name: &str) -> bool {
    [OWN, "push"]
        .iter()
        .all(|own| name != *own && !name.starts_with(&format!("{own}_")))
}

/// All names that a family uses in any format, including the ones of its samples.
fn written(family: &Family<'_>) -> impl Iterator<Item = String> {
    let suffixes: &[&str] = match family.kind {
        Kind::Counter => &["", "_total", "_created"],
        Kind::Gauge => &[""],
        Kind::Histogram => &["", "_bucket", "_count", "_sum", "_created"],
        Kind::Info => &["", "_info"],
    };
    suffixes.iter().map(|suffix| format!("{}{suffix}", family.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Final names of families that are added in this order.
    fn named(families: &[(&str, &'static str, Kind)]) -> Vec<String> {
        let mut names = FamilyNames::default();
        let name = |&(name, unit, kind): &(&str, &'static str, Kind)| {
            let mut family = Family::new(name, unit, kind, "");
            names.take(&mut family);
            family.name
        };
        families.iter().map(name).collect()
    }

    #[test]
    fn samples_of_others_have_these_names() {
        let (counter, gauge, histogram) = (Kind::Counter, Kind::Gauge, Kind::Histogram);
        assert_eq!(
            named(&[("io", "", counter), ("io_total", "", gauge), ("io_total", "", counter)]),
            ["io", "io_total_2", "io_total_3"]
        );
        assert_eq!(
            named(&[("d", "", histogram), ("d_sum", "", counter), ("d_created", "", gauge)]),
            ["d", "d_sum_2", "d_created_2"]
        );
        // In the opposite order.
        assert_eq!(
            named(&[("d_count", "", counter), ("d", "", histogram), ("d_2", "", counter)]),
            ["d_count", "d_2", "d_2_2"]
        );
        // Gauges do not use the suffix `_sum`.
        assert_eq!(named(&[("d", "", gauge), ("d_sum", "", gauge)]), ["d", "d_sum"]);
    }

    #[test]
    fn a_unit_stays_last() {
        let one = ("w_seconds", "seconds", Kind::Histogram);
        assert_eq!(named(&[one, one]), ["w_seconds", "w_2_seconds"]);
        assert_eq!(
            named(&[one, ("w_seconds", "", Kind::Counter)]),
            ["w_seconds", "w_seconds_2"]
        );
    }
}
