// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of metrics, of which no two families may write the same.

use std::collections::BTreeSet;

use crate::metrics::Family;
use crate::metrics::Kind;

/// Names that families have taken.
#[derive(Debug, Default)]
pub(super) struct FamilyNames(BTreeSet<String>);

impl FamilyNames {
    /// Takes the names of a family. If it writes one that another family has, it gets the number 2 or a higher one, before
    /// its unit, which has to be last.
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

/// Names that a family has, or has for its samples, in one format or another.
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

    /// Names of families that come one after the other.
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
        // The other way round.
        assert_eq!(
            named(&[("d_count", "", counter), ("d", "", histogram), ("d_2", "", counter)]),
            ["d_count", "d_2", "d_2_2"]
        );
        // A gauge has no sum.
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
