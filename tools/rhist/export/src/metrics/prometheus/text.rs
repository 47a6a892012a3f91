// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writes the text formats of Prometheus and OpenMetrics, which differ little.

use std::io::Write;

use rhist_core::table::Dist;

use super::buckets::classic;
use super::buckets::sum;
use crate::metrics::Family;
use crate::metrics::Kind;
use crate::metrics::Value;

/// Name with the suffix that Prometheus expects.
pub(super) fn suffixed(family: &Family<'_>) -> String {
    let suffix = match family.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    family.name.clone() + suffix
}

/// Appends a family. Results of `write!` are ignored, since writing to a vector cannot fail.
pub(super) fn write(family: &Family<'_>, is_open: bool, out: &mut Vec<u8>) {
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
        Kind::Info if is_open => "info",
        Kind::Info => "gauge",
    };
    let full = suffixed(family);
    // OpenMetrics names the family without the suffix of its samples.
    let name = if is_open { &family.name } else { &full };
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if is_open && !family.unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {}", family.unit);
    }
    let _ = write!(out, "# HELP {name} ");
    escape(&family.help, is_open, out);
    out.push(b'\n');
    let mut labels = Vec::new();
    for point in &family.points {
        labels.clear();
        for (n, (name, value)) in point.labels.iter().enumerate() {
            let _ = write!(labels, "{}{name}=\"", if n > 0 { "," } else { "" });
            escape(value, true, &mut labels);
            labels.push(b'"');
        }
        let mut sample = Sample {
            name: &family.name,
            labels: &labels,
            out,
        };
        match point.value {
            Value::Whole(number) => {
                sample.begin(&full[family.name.len()..], None);
                let _ = writeln!(sample.out, "{number}");
            }
            Value::Real(number) => {
                sample.begin(&full[family.name.len()..], None);
                float(number, sample.out);
                sample.out.push(b'\n');
            }
            Value::Dist(dist) => sample.histogram(dist, family, is_open),
        }
        if let (true, Some(ns)) = (is_open, point.start_ns) {
            sample.begin("_created", None);
            let _ = writeln!(sample.out, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        }
    }
}

/// Writer for the samples of a point.
struct Sample<'a> {
    name: &'a str,
    /// Formatted labels without braces.
    labels: &'a [u8],
    out: &'a mut Vec<u8>,
}

impl Sample<'_> {
    /// Writes a sample up to its value.
    fn begin(&mut self, suffix: &str, le: Option<&str>) {
        self.out.extend_from_slice(self.name.as_bytes());
        self.out.extend_from_slice(suffix.as_bytes());
        if le.is_some() || !self.labels.is_empty() {
            self.out.push(b'{');
            self.out.extend_from_slice(self.labels);
            if let Some(le) = le {
                let comma = if self.labels.is_empty() { "" } else { "," };
                let _ = write!(self.out, "{comma}le=\"{le}\"");
            }
            self.out.push(b'}');
        }
        self.out.push(b' ');
    }

    fn histogram(&mut self, dist: &Dist, family: &Family<'_>, is_open: bool) {
        // Values without a bucket count only in +Inf, because the sum includes them.
        let count = dist.count.max(dist.in_buckets());
        for bucket in classic(dist, family) {
            self.begin("_bucket", Some(&le(bucket.bound, is_open)));
            let _ = writeln!(self.out, "{}", bucket.count);
        }
        self.begin("_bucket", Some("+Inf"));
        let _ = writeln!(self.out, "{count}");
        // OpenMetrics forbids a sum if values may be negative, since it could fall.
        if let Some(sum) = sum(dist).filter(|_| !is_open || dist.negative.is_empty()) {
            self.begin("_sum", None);
            float(sum, self.out);
            self.out.push(b'\n');
        }
        self.begin("_count", None);
        let _ = writeln!(self.out, "{count}");
    }
}

/// Formats a bound like the shortest form of Go's `strconv`, so that the label is the same
/// whichever program wrote it: with an exponent of two digits from a million on, and below a
/// ten-thousandth. OpenMetrics requires a point in whole numbers.
fn le(bound: f64, is_open: bool) -> String {
    if bound == 0.0 || (1e-4..1e6).contains(&bound) {
        let point = if is_open && bound.fract() == 0.0 { ".0" } else { "" };
        return format!("{bound}{point}");
    }
    let text = format!("{bound:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, ""));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

fn float(number: f64, out: &mut Vec<u8>) {
    let _ = match number {
        f64::INFINITY => write!(out, "+Inf"),
        f64::NEG_INFINITY => write!(out, "-Inf"),
        // Prints NaN as `NaN`.
        _ => write!(out, "{number}"),
    };
}

/// Escapes a text. The help of Prometheus' own format leaves quotes as they are.
fn escape(text: &str, with_quotes: bool, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'"' if with_quotes => out.extend_from_slice(b"\\\""),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_as_go_writes_them() {
        let both = |power: i32| [false, true].map(|is_open| le(f64::from(power).exp2(), is_open));
        assert_eq!(both(-20), ["9.5367431640625e-07"; 2]);
        assert_eq!(both(-14), ["6.103515625e-05"; 2]);
        assert_eq!(both(-12), ["0.000244140625"; 2]);
        assert_eq!(both(0), ["1", "1.0"]);
        assert_eq!(both(18), ["262144", "262144.0"]);
        assert_eq!(both(20), ["1.048576e+06"; 2]);
        assert_eq!(both(36), ["6.8719476736e+10"; 2]);
        assert_eq!([le(0.0, false), le(0.0, true)], ["0", "0.0"]);
    }
}
