// SPDX-License-Identifier: MIT OR Apache-2.0

//! Metrics of OTLP as protobuf: the fields in use of
//! `opentelemetry/proto/collector/metrics/v1/metrics_service.proto` and its imports. Converted from
//! the [`model`], whose numbers are digits of JSON; numbers here have 64 bits.

use prost::Message;
use prost::Oneof;
use rhist_core::otlp::model;
use rhist_core::otlp::model::Bytes;
use rhist_core::otlp::model::Digits;
use rhist_core::otlp::model::Double;

#[derive(Clone, PartialEq, Message)]
pub struct ExportMetricsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// Answer of a receiver.
#[derive(Clone, PartialEq, Message)]
pub struct ExportMetricsServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_data_points: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// `google.rpc.Status`: answer of a receiver that rejects a request.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, tag = "3")]
    pub unit: String,
    #[prost(oneof = "Data", tags = "5, 7, 10")]
    pub data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "10")]
    ExponentialHistogram(ExponentialHistogram),
}

#[derive(Clone, PartialEq, Message)]
pub struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    #[prost(uint32, tag = "2")]
    pub aggregation_temporality: u32,
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ExponentialHistogram {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<ExponentialHistogramDataPoint>,
    #[prost(uint32, tag = "2")]
    pub aggregation_temporality: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct NumberDataPoint {
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4, 6")]
    pub value: Option<Number>,
    #[prost(message, repeated, tag = "5")]
    pub exemplars: Vec<Exemplar>,
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum Number {
    #[prost(double, tag = "4")]
    AsDouble(f64),
    #[prost(sfixed64, tag = "6")]
    AsInt(i64),
}

#[derive(Clone, PartialEq, Message)]
pub struct ExponentialHistogramDataPoint {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    #[prost(sint32, tag = "6")]
    pub scale: i32,
    #[prost(fixed64, tag = "7")]
    pub zero_count: u64,
    #[prost(message, optional, tag = "8")]
    pub positive: Option<Buckets>,
    #[prost(message, optional, tag = "9")]
    pub negative: Option<Buckets>,
    #[prost(message, repeated, tag = "11")]
    pub exemplars: Vec<Exemplar>,
    #[prost(double, optional, tag = "12")]
    pub min: Option<f64>,
    #[prost(double, optional, tag = "13")]
    pub max: Option<f64>,
    #[prost(double, tag = "14")]
    pub zero_threshold: f64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Buckets {
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    #[prost(uint64, repeated, tag = "2")]
    pub bucket_counts: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Exemplar {
    #[prost(fixed64, tag = "2")]
    pub time_unix_nano: u64,
    #[prost(oneof = "ExemplarNumber", tags = "3, 6")]
    pub value: Option<ExemplarNumber>,
    #[prost(message, repeated, tag = "7")]
    pub filtered_attributes: Vec<KeyValue>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum ExemplarNumber {
    #[prost(double, tag = "3")]
    AsDouble(f64),
    #[prost(sfixed64, tag = "6")]
    AsInt(i64),
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    #[prost(string, tag = "1")]
    String(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
    #[prost(message, tag = "6")]
    Kvlist(KeyValueList),
    #[prost(bytes = "vec", tag = "7")]
    Bytes(Vec<u8>),
}

#[derive(Clone, PartialEq, Message)]
pub struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KeyValue>,
}

/// Converts all elements.
pub fn all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

impl From<model::Request<model::Resource>> for ExportMetricsServiceRequest {
    fn from(request: model::Request<model::Resource>) -> Self {
        Self {
            resource_metrics: all(request.resource_metrics),
        }
    }
}

impl From<model::ResourceMetrics<model::Resource>> for ResourceMetrics {
    fn from(metrics: model::ResourceMetrics<model::Resource>) -> Self {
        Self {
            resource: Some(Resource {
                attributes: all(metrics.resource.attributes),
            }),
            scope_metrics: all(metrics.scope_metrics),
        }
    }
}

impl From<model::ScopeMetrics> for ScopeMetrics {
    fn from(metrics: model::ScopeMetrics) -> Self {
        let scope = metrics.scope;
        Self {
            scope: Some(InstrumentationScope {
                name: scope.name,
                version: scope.version,
                attributes: all(scope.attributes),
            }),
            metrics: all(metrics.metrics),
        }
    }
}

impl From<model::Metric> for Metric {
    fn from(metric: model::Metric) -> Self {
        let gauge = metric.gauge.map(|gauge| {
            Data::Gauge(Gauge {
                data_points: all(gauge.data_points),
            })
        });
        let sum = metric.sum.map(|sum| {
            Data::Sum(Sum {
                data_points: all(sum.data_points),
                aggregation_temporality: sum.aggregation_temporality,
                is_monotonic: sum.is_monotonic,
            })
        });
        let histogram = metric.exponential_histogram.map(|histogram| {
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points: all(histogram.data_points),
                aggregation_temporality: histogram.aggregation_temporality,
            })
        });
        Self {
            name: metric.name,
            description: metric.description,
            unit: metric.unit,
            data: gauge.or(sum).or(histogram),
        }
    }
}

impl From<model::NumberPoint> for NumberDataPoint {
    fn from(point: model::NumberPoint) -> Self {
        Self {
            start_time_unix_nano: unsigned(point.start_time_unix_nano),
            time_unix_nano: unsigned(point.time_unix_nano),
            value: either(point.as_int, point.as_double, Number::AsInt, Number::AsDouble),
            exemplars: all(point.exemplars),
            attributes: all(point.attributes),
        }
    }
}

impl From<model::HistogramPoint> for ExponentialHistogramDataPoint {
    fn from(point: model::HistogramPoint) -> Self {
        let double = |number: Option<Double>| number.map(|number| number.to_f64());
        Self {
            attributes: all(point.attributes),
            start_time_unix_nano: unsigned(point.start_time_unix_nano),
            time_unix_nano: unsigned(point.time_unix_nano),
            count: unsigned(point.count),
            sum: double(point.sum),
            scale: point.scale,
            zero_count: unsigned(point.zero_count),
            positive: point.positive.map(Buckets::from),
            negative: point.negative.map(Buckets::from),
            exemplars: all(point.exemplars),
            min: double(point.min),
            max: double(point.max),
            zero_threshold: double(point.zero_threshold).unwrap_or(0.0),
        }
    }
}

impl From<model::Buckets> for Buckets {
    fn from(buckets: model::Buckets) -> Self {
        Self {
            offset: buckets.offset,
            bucket_counts: buckets.bucket_counts.into_iter().map(unsigned).collect(),
        }
    }
}

impl From<model::Exemplar> for Exemplar {
    fn from(exemplar: model::Exemplar) -> Self {
        let (int, double) = (ExemplarNumber::AsInt, ExemplarNumber::AsDouble);
        Self {
            time_unix_nano: unsigned(exemplar.time_unix_nano),
            value: either(exemplar.as_int, exemplar.as_double, int, double),
            filtered_attributes: all(exemplar.filtered_attributes),
        }
    }
}

impl From<model::Attribute> for KeyValue {
    fn from(attribute: model::Attribute) -> Self {
        Self {
            key: attribute.key,
            value: Some(attribute.value.into()),
        }
    }
}

impl From<model::Any> for AnyValue {
    fn from(value: model::Any) -> Self {
        let value = match value {
            model::Any::String(text) => Value::String(text),
            model::Any::Bool(is) => Value::Bool(is),
            model::Any::Int(number) => Value::Int(signed(number)),
            model::Any::Double(number) => Value::Double(number),
            model::Any::Array(values) => Value::Array(ArrayValue {
                values: all(values.values),
            }),
            model::Any::Kvlist(values) => Value::Kvlist(KeyValueList {
                values: all(values.values),
            }),
            model::Any::Bytes(Bytes(bytes)) => Value::Bytes(bytes),
        };
        Self { value: Some(value) }
    }
}

/// Number of a point: the integer if it exists, else the double.
fn either<N>(as_int: Option<Digits>, as_double: Option<Double>, int: fn(i64) -> N, double: fn(f64) -> N) -> Option<N> {
    match (as_int, as_double) {
        (Some(number), _) => Some(int(signed(number))),
        (None, number) => number.map(|number| double(number.to_f64())),
    }
}

/// Clamps to 64 bits.
fn unsigned(Digits(number): Digits) -> u64 {
    u64::try_from(number).unwrap_or(if number < 0 { 0 } else { u64::MAX })
}

/// Clamps to 64 bits.
fn signed(Digits(number): Digits) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}
