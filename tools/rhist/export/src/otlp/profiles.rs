// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stacks of an interval as profiles of OTLP, in protobuf: the used fields of
//! `opentelemetry/proto/collector/profiles/v1development/profiles_service.proto` and its imports.
//!
//! A row is a sample, whose keys other than stacks are its attributes. The stacks of a row are one
//! stack: functions of the kernel above functions of the program. Each number of a row has a
//! profile of its own: how many hits, and the sum of each value.
//!
//! The format is in development, and may change without notice. Functions have names only: no
//! addresses, mappings or lines.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;
use prost::Message;
use rhist_core::otlp::attribute::string;
use rhist_core::otlp::encode::Encoder;
use rhist_core::otlp::encode::scope;
use rhist_core::otlp::model::Attribute;
use rhist_core::otlp::names::Names;
use rhist_core::picture;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::table::Column;
use rhist_core::table::Fold;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::table::Row;
use rhist_core::table::Unit;
use rhist_core::table::Value;

use super::protobuf::AnyValue;
use super::protobuf::InstrumentationScope;
use super::protobuf::KeyValue;
use super::protobuf::Resource;
use super::protobuf::all;

/// Attribute of a function, and its values for code of the kernel and of programs.
const FRAME_TYPE: (&str, [&str; 2]) = ("profile.frame.type", ["kernel", "native"]);

#[derive(Clone, PartialEq, Message)]
pub struct ExportProfilesServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<ProfilesDictionary>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub duration_nano: u64,
    #[prost(int32, repeated, tag = "11")]
    pub attribute_indices: Vec<i32>,
}

/// Name and unit of the numbers of a profile.
#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub unit_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    pub values: Vec<i64>,
}

/// Tables whose elements profiles refer to by numbers. The first element of each is empty, and
/// means none.
#[derive(Clone, PartialEq, Message)]
pub struct ProfilesDictionary {
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: Vec<Nothing>,
    #[prost(message, repeated, tag = "2")]
    pub location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub function_table: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub link_table: Vec<Nothing>,
    #[prost(string, repeated, tag = "5")]
    pub string_table: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub attribute_table: Vec<KeyValueAndUnit>,
    #[prost(message, repeated, tag = "7")]
    pub stack_table: Vec<Stack>,
}

/// An element without fields.
#[derive(Clone, PartialEq, Message)]
pub struct Nothing {}

/// The innermost location first.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Location {
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Line {
    #[prost(int32, tag = "1")]
    pub function_index: i32,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Function {
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyValueAndUnit {
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// Different elements of a table, and their numbers. The first one is the default.
struct Table<T> {
    elements: Vec<T>,
    numbers: HashMap<T, i32, RandomState>,
}

impl<T: Clone + Default + Eq + Hash> Table<T> {
    fn new() -> Self {
        let mut table = Self {
            elements: Vec::new(),
            numbers: HashMap::default(),
        };
        table.number(T::default());
        table
    }

    /// Number of an element, which is appended if it is new.
    fn number(&mut self, element: T) -> i32 {
        // A request has at most some ten thousand elements.
        let next = i32::try_from(self.elements.len()).unwrap_or(0);
        *self.numbers.entry(element).or_insert_with_key(|element| {
            self.elements.push(element.clone());
            next
        })
    }
}

/// A dictionary that is being made.
struct Dictionary {
    strings: Table<String>,
    functions: Table<Function>,
    locations: Table<Location>,
    stacks: Table<Stack>,
    /// By name and value, which is protobuf: some values cannot be hashed.
    attributes: Table<(i32, Vec<u8>)>,
}

impl Dictionary {
    fn new() -> Self {
        Self {
            strings: Table::new(),
            functions: Table::new(),
            locations: Table::new(),
            stacks: Table::new(),
            attributes: Table::new(),
        }
    }

    fn attribute(&mut self, attribute: Attribute) -> i32 {
        let KeyValue { key, value } = attribute.into();
        let value = value.unwrap_or_default().encode_to_vec();
        let key = self.strings.number(key);
        self.attributes.number((key, value))
    }

    fn attributes(&mut self, attributes: Vec<Attribute>) -> Vec<i32> {
        attributes.into_iter().map(|one| self.attribute(one)).collect()
    }

    fn location(&mut self, frame: &Frame, kind: &str) -> i32 {
        let name_strindex = self.strings.number(picture::function(frame));
        let function_index = self.functions.number(Function { name_strindex });
        let (name, _) = FRAME_TYPE;
        let kind = self.attribute(Attribute {
            key: name.to_owned(),
            value: string(kind),
        });
        self.locations.number(Location {
            lines: vec![Line { function_index }],
            attribute_indices: vec![kind],
        })
    }

    /// The stacks of a row as one.
    fn stack(&mut self, columns: &[Column], row: &Row) -> i32 {
        let (_, [of_kernel, of_program]) = FRAME_TYPE;
        let mut location_indices = Vec::new();
        for kind in [of_kernel, of_program] {
            for (column, key) in columns.iter().zip(&row.keys) {
                let of_column = match column.name.contains("ustack") {
                    true => of_program,
                    false => of_kernel,
                };
                if let Key::Stack(frames) = key
                    && kind == of_column
                {
                    location_indices.extend(frames.iter().map(|frame| self.location(frame, kind)));
                }
            }
        }
        self.stacks.number(Stack { location_indices })
    }

    fn finish(self) -> ProfilesDictionary {
        let attributes = self.attributes.elements.into_iter();
        let attributes = attributes.map(|(key_strindex, value)| KeyValueAndUnit {
            key_strindex,
            // The first one has none. An encoded value can be decoded.
            value: AnyValue::decode(value.as_slice()).ok().filter(|_| key_strindex != 0),
        });
        ProfilesDictionary {
            mapping_table: vec![Nothing {}],
            location_table: self.locations.elements,
            function_table: self.functions.elements,
            link_table: vec![Nothing {}],
            string_table: self.strings.elements,
            attribute_table: attributes.collect(),
            stack_table: self.stacks.elements,
        }
    }
}

/// A request with profiles of some rows of an interval. `own` are attributes of the first one.
pub fn request(
    question: &Question,
    interval: &Interval,
    encoder: &Encoder<'_>,
    rows: &[Row],
    resource: &[Attribute],
    own: Vec<Attribute>,
) -> ExportProfilesServiceRequest {
    let columns = &interval.delta.values;
    let names = Names::new(&question.name, columns);
    let mut dictionary = Dictionary::new();
    let about = dictionary.attributes(encoder.about());
    let own = dictionary.attributes(own);
    let places: Vec<(i32, Vec<i32>)> = rows
        .iter()
        .map(|row| {
            let stack = dictionary.stack(&interval.delta.keys, row);
            (stack, dictionary.attributes(encoder.attributes_beside_stacks(row)))
        })
        .collect();
    let from = interval.from.realtime_before(&interval.to);
    let mut profile = |name: &str, unit: &str, number: &dyn Fn(&Row) -> Option<i128>| {
        let samples = rows.iter().zip(&places).filter_map(|(row, (stack, attributes))| {
            let number = number(row).filter(|number| *number != 0)?;
            Some(Sample {
                stack_index: *stack,
                attribute_indices: attributes.clone(),
                values: vec![i64::try_from(number).unwrap_or(i64::MAX)],
            })
        });
        Profile {
            sample_type: Some(ValueType {
                type_strindex: dictionary.strings.number(name.to_owned()),
                unit_strindex: dictionary.strings.number(unit.to_owned()),
            }),
            samples: samples.collect(),
            time_unix_nano: from,
            duration_nano: interval.to.realtime_ns.saturating_sub(from),
            attribute_indices: about.clone(),
        }
    };
    let mut profiles = vec![profile(&names.hits, "count", &|row| Some(row.hits.into()))];
    profiles[0].attribute_indices.extend(own);
    for (n, (column, name)) in columns.iter().zip(&names.values).enumerate() {
        if column.fold == Fold::Sum {
            let sum = |row: &Row| match row.values.get(n)? {
                Value::Number(number) => Some(*number),
                Value::Dist(dist) => dist.sum,
                Value::Unknown => None,
            };
            profiles.push(profile(name, unit(column.unit), &sum));
        }
    }
    let scope = scope(Vec::new());
    ExportProfilesServiceRequest {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: all(resource.to_vec()),
            }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(InstrumentationScope {
                    name: scope.name,
                    version: scope.version,
                    attributes: Vec::new(),
                }),
                profiles,
            }],
        }],
        dictionary: Some(dictionary.finish()),
    }
}

/// Units of profiles are words, in plural.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Plain => "count",
        Unit::Nanoseconds => "nanoseconds",
        Unit::Microseconds => "microseconds",
        Unit::Bytes => "bytes",
    }
}
