// SPDX-License-Identifier: MIT OR Apache-2.0

//! Metrics of OTLP: the part of `opentelemetry/proto/metrics/v1/metrics.proto` that rhist uses, in
//! the JSON mapping of OTLP. The mapping writes integers of 64 bits as strings of digits; the
//! parser also accepts numbers. Unknown members are ignored.

#![expect(
    missing_docs,
    reason = "messages and fields have their names and meaning in metrics.proto"
)]

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de;
use serde::ser;
use serde_json::value::RawValue;

use super::base64;

/// `ExportMetricsServiceRequest`. `R` is [`Resource`], or its text if it is not parsed yet.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<R> {
    pub resource_metrics: Vec<ResourceMetrics<R>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetrics<R> {
    pub resource: R,
    pub scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Serialize, Deserialize)]
pub struct Resource {
    #[serde(default)]
    pub attributes: Vec<Attribute>,
}

#[derive(Serialize, Deserialize)]
pub struct ScopeMetrics {
    pub scope: Scope,
    #[serde(default)]
    pub metrics: Vec<Metric>,
}

#[derive(Serialize, Deserialize)]
pub struct Scope {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub attributes: Vec<Attribute>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default)]
    pub unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<Gauge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Sum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponential_histogram: Option<ExponentialHistogram>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gauge {
    #[serde(default)]
    pub data_points: Vec<NumberPoint>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    #[serde(default)]
    pub data_points: Vec<NumberPoint>,
    pub aggregation_temporality: u32,
    #[serde(default)]
    pub is_monotonic: bool,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExponentialHistogram {
    #[serde(default)]
    pub data_points: Vec<HistogramPoint>,
    pub aggregation_temporality: u32,
}

/// Meaning of a point's numbers, as in `AggregationTemporality`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporality {
    /// Increase since the previous point.
    Delta = 1,
    /// Total since the start.
    Cumulative = 2,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NumberPoint {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    #[serde(default)]
    pub start_time_unix_nano: Digits,
    #[serde(default)]
    pub time_unix_nano: Digits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_int: Option<Digits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_double: Option<Double>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exemplars: Vec<Exemplar>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistogramPoint {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    #[serde(default)]
    pub start_time_unix_nano: Digits,
    #[serde(default)]
    pub time_unix_nano: Digits,
    #[serde(default)]
    pub count: Digits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Double>,
    #[serde(default)]
    pub scale: i32,
    #[serde(default)]
    pub zero_count: Digits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<Buckets>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative: Option<Buckets>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exemplars: Vec<Exemplar>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Double>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Double>,
    /// Values up to this count as zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_threshold: Option<Double>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Buckets {
    #[serde(default)]
    pub offset: i32,
    #[serde(default)]
    pub bucket_counts: Vec<Digits>,
}

/// Example of a counted value, with more detail.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exemplar {
    #[serde(default)]
    pub filtered_attributes: Vec<Attribute>,
    #[serde(default)]
    pub time_unix_nano: Digits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_int: Option<Digits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_double: Option<Double>,
}

/// `KeyValue`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    pub key: String,
    pub value: Any,
}

/// `AnyValue`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Any {
    #[serde(rename = "stringValue")]
    String(String),
    #[serde(rename = "boolValue")]
    Bool(bool),
    #[serde(rename = "intValue")]
    Int(Digits),
    #[serde(rename = "doubleValue")]
    Double(f64),
    #[serde(rename = "arrayValue")]
    Array(Values<Any>),
    #[serde(rename = "kvlistValue")]
    Kvlist(Values<Attribute>),
    #[serde(rename = "bytesValue")]
    Bytes(Bytes),
}

/// `ArrayValue` and `KeyValueList`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Values<T> {
    #[serde(default = "Vec::new")]
    pub values: Vec<T>,
}

impl<T> From<Vec<T>> for Values<T> {
    fn from(values: Vec<T>) -> Self {
        Self { values }
    }
}

/// Bytes, as base64 in JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = base64::decode(&text).map(Bytes);
        bytes.ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&text), &"bytes in base64"))
    }
}

/// An integer of 64 bits, signed or unsigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digits(pub i128);

impl Serialize for Digits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Digits;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of 64 bits")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Digits, E> {
                Ok(Digits(number.into()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Digits, E> {
                Ok(Digits(number.into()))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Digits, E> {
                text.parse()
                    .ok()
                    .filter(|number| (i64::MIN.into()..=u64::MAX.into()).contains(number))
                    .map(Digits)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Decimal number as in JSON. Keeps all digits, although OTLP defines the field as a double, so
/// only other readers round it.
#[derive(Clone, Debug, PartialEq)]
pub struct Double(String);

impl Double {
    /// `number` with the decimal point before its last `decimals` digits.
    pub fn new(number: i128, decimals: usize) -> Self {
        let sign = if number < 0 { "-" } else { "" };
        let digits = format!("{:0width$}", number.unsigned_abs(), width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let point = if fraction.is_empty() { "" } else { "." };
        Double(format!("{sign}{whole}{point}{fraction}"))
    }

    /// Conversion from a double. `None` if it is not finite.
    pub fn from_f64(number: f64) -> Option<Self> {
        number.is_finite().then(|| Double(format!("{number:?}")))
    }

    /// The number times ten to the power of `decimals`, rounded if it is still not an integer.
    /// `None` if `decimals` is 0 and the number has a fraction, or beyond the range of 127 bits.
    pub fn whole(&self, decimals: usize) -> Option<i128> {
        let (whole, fraction) = self.0.split_once('.').unwrap_or((&self.0, ""));
        let zeros = decimals.checked_sub(fraction.len());
        let exact = zeros.and_then(|zeros| format!("{whole}{fraction}{}", "0".repeat(zeros)).parse().ok());
        // A program that parses doubles and writes them again changes digits and notation.
        exact.or_else(|| {
            let rounded = self.to_f64() * 10f64.powi(i32::try_from(decimals).ok()?);
            let is_whole = decimals > 0 || rounded.fract() == 0.0;
            (is_whole && rounded.abs() < 1e38).then_some(rounded.round() as i128)
        })
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }
}

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.clone())
            .map_err(ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Double(text.to_owned())),
            _ => Err(de::Error::custom("not a finite number")),
        }
    }
}
