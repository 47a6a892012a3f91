// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares two recordings of the same question.
//!
//! The samples are the rates and quantiles of each interval. The significance of a difference thus
//! depends on how much the intervals of one recording vary anyway, not on the number of events.

use std::collections::HashMap;

use crate::question::Interval;
use crate::question::Question;
use crate::stats;
use crate::stats::Ratio;
use crate::table::Column;
use crate::table::Fold;
use crate::table::Key;
use crate::table::Row;
use crate::table::Table;
use crate::table::Unit;
use crate::table::Value;

/// Minimum of intervals per recording. With fewer, not even completely separate series would be
/// significant.
pub const MIN_INTERVALS: usize = 5;

/// Maximum of keys whose intervals are kept. Keys seen later count only in the totals.
const MAX_KEYS: usize = 1000;

/// Number of keys compared: the ones with most hits.
const COMPARED_KEYS: usize = 20;

/// Quantiles that are compared, and the number of values that an interval needs for each.
const QUANTILES: [(&str, f64, u64); 3] = [("p50", 0.5, 10), ("p90", 0.9, 20), ("p99", 0.99, 100)];

/// Autocorrelation from which the number of intervals misleads, because each is too similar to the
/// one before.
const HIGH_AUTOCORRELATION: f64 = 0.4;

/// A recording, reduced to the series that are compared.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Sum of all intervals.
    pub total: Table,
    /// Length of each interval, in seconds.
    pub seconds: Vec<f64>,
    whole: Measures,
    keys: HashMap<Vec<Key>, Measures>,
    /// Whether keys beyond [`MAX_KEYS`] were left out.
    has_more_keys: bool,
}

/// Hits and values of one key, or of all keys, for each interval that has any.
#[derive(Clone, Debug, Default)]
struct Measures {
    hits: u64,
    /// Number of the interval, then the numbers of the hits and of each column.
    intervals: Vec<(u32, Vec<Numbers>)>,
}

/// A rate in the first element, or one number for each of [`QUANTILES`].
type Numbers = [Option<f64>; QUANTILES.len()];

/// Index of the column (0: hits), and index in [`Numbers`].
type Place = (usize, usize);

/// Result of comparing one measure in both recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The keys; `None` for the total.
    pub keys: Option<Vec<Key>>,
    /// The measure: `p99 wait`, or for a rate the name of the quantity.
    pub measure: Measure,
    /// Median over the intervals of A, and of B.
    pub medians: [f64; 2],
    /// Number of intervals in A and in B with enough values for this measure.
    pub intervals: [usize; 2],
    /// Factor from A to B: see [`stats::ratio()`].
    pub ratio: Option<Ratio>,
    /// Cliff's delta: see [`stats::MannWhitney::delta`].
    pub delta: f64,
    /// See [`stats::MannWhitney::p`]. Corrected for the number of comparisons, separately for the
    /// totals and for the keys.
    pub p: f64,
    /// The higher autocorrelation of the two series: see [`stats::autocorrelation`].
    pub autocorrelation: Option<f64>,
}

/// A rate or a quantile of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// A quantile; `None` for a rate.
    pub quantile: Option<&'static str>,
    /// The column; `None` for hits.
    pub column: Option<String>,
    /// Unit of the medians; for a rate, the unit of the quantity per second.
    pub unit: Unit,
}

impl Sample {
    /// Adds the next interval.
    pub fn add(&mut self, interval: Interval) {
        let number = self.seconds.len() as u32;
        let seconds = interval.seconds();
        let delta = interval.delta.with_one_other().into_owned();
        self.whole.add(number, seconds, &delta.total(), &delta.values);
        if !delta.keys.is_empty() {
            for row in &delta.rows {
                if self.keys.len() < MAX_KEYS || self.keys.contains_key(&row.keys[..]) {
                    let measures = self.keys.entry(row.keys.to_vec()).or_default();
                    measures.add(number, seconds, row, &delta.values);
                } else {
                    self.has_more_keys = true;
                }
            }
        }
        self.seconds.push(seconds);
        self.total.append(delta);
    }

    /// Total length of its intervals, in seconds.
    pub fn duration(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// For each interval, whether it is compared. Excludes intervals shorter than half the median,
    /// such as the last one before Ctrl-C.
    fn is_whole(&self) -> Vec<bool> {
        let median = stats::median(&self.seconds).unwrap_or(0.0);
        self.seconds
            .iter()
            .map(|&seconds| seconds > 0.0 && seconds >= median / 2.0)
            .collect()
    }
}

impl Measures {
    fn add(&mut self, number: u32, seconds: f64, row: &Row, columns: &[Column]) {
        self.hits = self.hits.saturating_add(row.hits);
        let rate = |number: f64| [Some(number / seconds), None, None];
        let numbers = row.values.iter().zip(columns).map(|(value, column)| match value {
            Value::Dist(dist) => QUANTILES.map(|(_, q, least)| {
                let quantile = dist.quantile(q).filter(|_| dist.count >= least);
                quantile.map(|quantile| quantile.value)
            }),
            Value::Number(number) if column.fold == Fold::Sum => rate(*number as f64),
            _ => [None; 3],
        });
        let hits = std::iter::once(rate(row.hits as f64));
        self.intervals.push((number, hits.chain(numbers).collect()));
    }

    /// Values of a measure over the whole intervals. An interval without the key counts as rate 0,
    /// and is skipped for a quantile.
    fn series(&self, (column, place): Place, is_rate: bool, is_whole: &[bool]) -> Vec<f64> {
        let mut found = vec![is_rate.then_some(0.0); is_whole.len()];
        for (number, numbers) in &self.intervals {
            if let (Some(found), Some(numbers)) = (found.get_mut(*number as usize), numbers.get(column)) {
                *found = numbers[place];
            }
        }
        let of_whole = found.into_iter().zip(is_whole);
        of_whole
            .filter_map(|(number, is_whole)| number.filter(|_| *is_whole))
            .collect()
    }
}

/// Checks that two recordings can be compared. The error is a sentence without a full stop.
pub fn check(a: (&Question, &Sample), b: (&Question, &Sample)) -> Result<(), String> {
    let names = |columns: &[Column]| {
        columns
            .iter()
            .map(|column| (column.name.clone(), column.unit))
            .collect::<Vec<_>>()
    };
    if a.0.name != b.0.name {
        return Err(format!("one is of {}, the other of {}", a.0.name, b.0.name));
    }
    if a.0.unit != b.0.unit || names(&a.1.total.values) != names(&b.1.total.values) {
        return Err("they have different values or units".to_owned());
    }
    if names(&a.1.total.keys) != names(&b.1.total.keys) {
        return Err("they have different keys".to_owned());
    }
    for (which, (_, sample)) in [("first", a), ("second", b)] {
        let whole = sample.is_whole().into_iter().filter(|is_whole| *is_whole).count();
        if whole < MIN_INTERVALS {
            let what = format!("the {which} has {whole} whole intervals");
            return Err(format!(
                "{what}: at least {MIN_INTERVALS} of each are needed to tell a difference from chance"
            ));
        }
    }
    Ok(())
}

/// Compares recordings that [`check`] has accepted: first the totals, then the keys with most hits.
pub fn compare(a: &Sample, b: &Sample) -> Vec<Difference> {
    let is_whole = [a.is_whole(), b.is_whole()];
    let measures = measures(&a.total);
    let of = |keys: Option<&Vec<Key>>, pair: [&Measures; 2]| {
        let of_measure = |(place, measure): &(Place, Measure)| {
            let is_rate = measure.quantile.is_none();
            let series = [0, 1].map(|i| pair[i].series(*place, is_rate, &is_whole[i]));
            difference(keys.cloned(), measure, &series)
        };
        measures.iter().filter_map(of_measure).collect::<Vec<_>>()
    };
    let mut whole = of(None, [&a.whole, &b.whole]);
    let none = Measures::default();
    let mut keys: Vec<_> = a
        .keys
        .keys()
        .chain(b.keys.keys().filter(|keys| !a.keys.contains_key(*keys)))
        .collect();
    let pair = |keys: &Vec<Key>| [a, b].map(|sample| sample.keys.get(keys).unwrap_or(&none));
    let hits = |keys: &Vec<Key>| pair(keys).map(|measures| measures.hits).iter().sum::<u64>();
    // Keys without a row come last: comparing many with one tells nothing.
    let is_other = |keys: &Vec<Key>| matches!(keys.first(), Some(Key::Other(_)));
    keys.sort_by(|x, y| {
        let by_hits = is_other(x).cmp(&is_other(y)).then_with(|| hits(y).cmp(&hits(x)));
        by_hits.then_with(|| x.cmp(y))
    });
    keys.truncate(COMPARED_KEYS);
    let mut by_key: Vec<_> = keys.into_iter().flat_map(|keys| of(Some(keys), pair(keys))).collect();
    correct(&mut whole);
    correct(&mut by_key);
    whole.append(&mut by_key);
    whole
}

/// Warnings about a comparison, as sentences.
pub fn notes(a: (&Question, &Sample), b: (&Question, &Sample), differences: &[Difference]) -> Vec<String> {
    let mut notes = Vec::new();
    let exact = [a, b].map(|(question, _)| question.has_exact_intervals);
    if exact[0] != exact[1] {
        let [cut, read] = if exact[0] { ["A", "B"] } else { ["B", "A"] };
        notes.push(format!(
            "The kernel has cut the intervals of {cut}. In {read}, they are differences of totals, whose columns were \
             read at slightly different moments, and may vary more for that."
        ));
    }
    let (a, b) = (a.1, b.1);
    let medians = [a, b].map(|sample| stats::median(&sample.seconds).unwrap_or(0.0));
    if medians[0] > medians[1] * 1.5 || medians[1] > medians[0] * 1.5 {
        notes.push(format!(
            "Intervals of one last {:.3} s, of the other {:.3} s: longer ones differ less among themselves.",
            medians[0], medians[1]
        ));
    }
    for (which, sample) in [("A", a), ("B", b)] {
        match sample.is_whole().into_iter().filter(|is_whole| !is_whole).count() {
            0 => (),
            1 => notes.push(format!(
                "An interval of {which} is much shorter than the others, and left out."
            )),
            short => notes.push(format!(
                "{short} intervals of {which} are much shorter than the others, and left out."
            )),
        }
    }
    let high = differences.iter().filter_map(|difference| difference.autocorrelation);
    let highest = high.fold(0.0, f64::max);
    if highest >= HIGH_AUTOCORRELATION {
        notes.push(format!(
            "Intervals are like the ones before them (autocorrelation up to {highest:.2}): they hold less \
             information than as many independent ones, and p is too small. Longer intervals are more independent."
        ));
    }
    if a.has_more_keys || b.has_more_keys {
        notes.push(format!(
            "More than {MAX_KEYS} keys: later ones are only part of the total."
        ));
    }
    notes
}

/// The measures of a table, each with its place in [`Measures`].
fn measures(table: &Table) -> Vec<(Place, Measure)> {
    let hits = Measure {
        quantile: None,
        column: None,
        unit: Unit::Plain,
    };
    let mut measures = vec![((0, 0), hits)];
    for (i, (column, value)) in table.values.iter().zip(table.total().values).enumerate() {
        let measure = |quantile| Measure {
            quantile,
            column: Some(column.name.clone()),
            unit: column.unit,
        };
        match value {
            Value::Dist(_) => {
                let quantiles = QUANTILES.iter().enumerate();
                measures.extend(quantiles.map(|(place, (name, ..))| ((i + 1, place), measure(Some(*name)))));
            }
            Value::Number(_) if column.fold == Fold::Sum => measures.push(((i + 1, 0), measure(None))),
            _ => (),
        }
    }
    measures
}

/// Compares two series. `None` if one is too short, or all numbers are 0.
fn difference(keys: Option<Vec<Key>>, measure: &Measure, [a, b]: &[Vec<f64>; 2]) -> Option<Difference> {
    if a.len() < MIN_INTERVALS || b.len() < MIN_INTERVALS || a.iter().chain(b).all(|number| *number == 0.0) {
        return None;
    }
    let test = stats::mann_whitney(a, b)?;
    let correlations = [a, b].map(|series| stats::autocorrelation(series));
    Some(Difference {
        keys,
        measure: measure.clone(),
        medians: [stats::median(a)?, stats::median(b)?],
        intervals: [a.len(), b.len()],
        ratio: stats::ratio(a, b),
        delta: test.delta,
        p: test.p,
        autocorrelation: correlations.into_iter().flatten().reduce(f64::max),
    })
}

fn correct(differences: &mut [Difference]) {
    let mut probabilities: Vec<_> = differences.iter().map(|difference| difference.p).collect();
    stats::holm(&mut probabilities);
    for (difference, p) in differences.iter_mut().zip(probabilities) {
        difference.p = p;
    }
}

#[cfg(test)]
mod tests;
