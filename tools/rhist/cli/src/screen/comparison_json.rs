// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints the differences between two recordings for programs, as one line of JSON.
//!
//! ```json
//! {"schema":1,"type":"difference","name":"runqlat","summary":"How long tasks wait for a CPU",
//!  "noun":"waits","a":{"file":"before.jsonl","intervals":60,"seconds":60.0,"hits":12345,
//!  "host":"db1","kernel":"6.12.48","cpus":8,"backend":"rhist"},"b":{…},"keys":["comm"],
//!  "differences":[{"keys":["sed"],"value":"wait","measure":"p99","unit":"ns","a":52100.0,
//!  "b":61000.0,"n":[60,58],"ratio":{"value":1.17,"low":1.09,"high":1.25},"delta":0.41,
//!  "p":0.0002,"autocorrelation":0.12}],"notes":[]}
//! ```
//!
//! `keys` of a difference is null for the total over all keys. `measure` is a quantile of the
//! value, or `rate`: its sum per second, or the hits per second if `value` is null. `a` and `b` are
//! the medians of `n` intervals. `ratio` is null if it cannot be computed, for example because an
//! interval has a rate of 0.

use std::io;
use std::io::Write;

use rhist_core::compare::Difference;
use serde::Serialize;

use super::Screen;
use super::comparison::Comparison;
use super::json;
use super::json::KeyJson;

#[derive(Serialize)]
struct ComparisonJson<'a> {
    schema: u32,
    r#type: &'static str,
    name: &'a str,
    summary: &'a str,
    noun: String,
    a: SideJson<'a>,
    b: SideJson<'a>,
    keys: Vec<&'a str>,
    differences: Vec<DifferenceJson<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct SideJson<'a> {
    file: &'a str,
    intervals: usize,
    seconds: f64,
    hits: u64,
    host: &'a str,
    kernel: &'a str,
    cpus: u32,
    backend: &'static str,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    keys: Option<Vec<KeyJson<'a>>>,
    value: Option<&'a str>,
    measure: &'static str,
    unit: Option<&'static str>,
    a: f64,
    b: f64,
    n: [usize; 2],
    ratio: Option<RatioJson>,
    delta: f64,
    p: f64,
    autocorrelation: Option<f64>,
}

#[derive(Serialize)]
struct RatioJson {
    value: f64,
    low: f64,
    high: f64,
}

/// Prints the line.
pub(super) fn print(screen: &Screen<'_>, out: &mut dyn Write, comparison: &Comparison<'_>) -> io::Result<()> {
    let columns = &comparison.samples[1].total.keys;
    let line = ComparisonJson {
        schema: json::SCHEMA,
        r#type: "difference",
        name: &screen.question.name,
        summary: &screen.question.summary,
        noun: screen.noun(),
        a: side(comparison, 0),
        b: side(comparison, 1),
        keys: columns.iter().map(|column| column.name.as_str()).collect(),
        differences: comparison
            .differences
            .iter()
            .map(|difference| line(screen, comparison, difference))
            .collect(),
        notes: comparison.notes,
    };
    json::write(out, &line)
}

fn side<'a>(comparison: &Comparison<'a>, i: usize) -> SideJson<'a> {
    let (sample, question) = (comparison.samples[i], comparison.questions[i]);
    SideJson {
        file: comparison.names[i],
        intervals: sample.seconds.len(),
        seconds: sample.duration(),
        hits: sample.total.total().hits,
        host: &question.host,
        kernel: &question.kernel,
        cpus: question.cpus,
        backend: json::backend(question.backend),
    }
}

fn line<'a>(screen: &Screen<'_>, comparison: &Comparison<'_>, difference: &'a Difference) -> DifferenceJson<'a> {
    let labels = screen.labels();
    let columns = &comparison.samples[1].total.keys;
    let keys = difference.keys.as_ref().map(|keys| {
        let named = columns.iter().zip(keys);
        named
            .map(|(column, key)| json::key(&labels, &column.name, key))
            .collect()
    });
    let measure = &difference.measure;
    DifferenceJson {
        keys,
        value: measure.column.as_deref(),
        measure: measure.quantile.unwrap_or("rate"),
        unit: json::unit(measure.unit),
        a: difference.medians[0],
        b: difference.medians[1],
        n: difference.intervals,
        ratio: difference.ratio.map(|ratio| RatioJson {
            value: ratio.value,
            low: ratio.low,
            high: ratio.high,
        }),
        delta: difference.delta,
        p: difference.p,
        autocorrelation: difference.autocorrelation,
    }
}
