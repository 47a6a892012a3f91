// SPDX-License-Identifier: MIT OR Apache-2.0

//! Modifiers of fields, such as `.log2`. One table serves checks, completion and help.

use crate::tracefs::format::Field;
use crate::tracefs::format::FieldKind;
use crate::tracefs::format::Format;

/// A modifier, written after a field and a dot.
#[derive(Debug)]
pub struct Modifier {
    /// Name without the dot.
    pub name: &'static str,
    /// Rule for the number after `=`.
    pub number: NumberRule,
    /// Kind of field that it applies to.
    pub fits: Fits,
    /// Whether keys accept it.
    pub key: bool,
    /// Whether values accept it.
    pub value: bool,
    /// Short description for completion and help.
    pub about: &'static str,
}

/// Rule for the number after `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberRule {
    /// Not allowed.
    Never,
    /// Optional scale from 0 to 5. Only rhist supports a scale, C does not.
    Scale,
    /// Required width, at least 1.
    Width,
}

/// Kind of field that a modifier applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fits {
    /// Numbers, also addresses of strings.
    Number,
    /// Stack traces.
    Stack,
    /// Byte arrays that hold an address of the internet protocol.
    Address,
    /// Pointers to strings.
    TextPointer,
    /// Fields with the number of a thread.
    Task,
    /// The field with this name only.
    Field(&'static str),
}

const fn key(name: &'static str, number: NumberRule, fits: Fits, about: &'static str) -> Modifier {
    Modifier {
        name,
        number,
        fits,
        key: true,
        value: false,
        about,
    }
}

const fn value(name: &'static str, number: NumberRule, about: &'static str) -> Modifier {
    Modifier {
        name,
        number,
        fits: Fits::Number,
        key: false,
        value: true,
        about,
    }
}

/// All modifiers. Modifiers of keys come first.
pub const MODIFIERS: [Modifier; 19] = [
    Modifier {
        value: true,
        ..key("hex", NumberRule::Never, Fits::Number, "as a hexadecimal number")
    },
    key(
        "sym",
        NumberRule::Never,
        Fits::Number,
        "an address as the name of the function",
    ),
    key(
        "sym-offset",
        NumberRule::Never,
        Fits::Number,
        "an address as function and offset",
    ),
    key(
        "execname",
        NumberRule::Never,
        Fits::Field("common_pid"),
        "with the name of the task",
    ),
    key(
        "syscall",
        NumberRule::Never,
        Fits::Number,
        "the number of a system call as its name",
    ),
    key(
        "log2",
        NumberRule::Scale,
        Fits::Number,
        "by powers of two, or finer: .log2=3",
    ),
    key(
        "buckets",
        NumberRule::Width,
        Fits::Number,
        "in ranges of a width: .buckets=10",
    ),
    key(
        "stacktrace",
        NumberRule::Never,
        Fits::Stack,
        "a field that holds a stack",
    ),
    key(
        "usecs",
        NumberRule::Never,
        Fits::Field("common_timestamp"),
        "in microseconds",
    ),
    key(
        "ip",
        NumberRule::Never,
        Fits::Address,
        "an address of the internet protocol",
    ),
    key(
        "string",
        NumberRule::Never,
        Fits::TextPointer,
        "the string that is at this address",
    ),
    key(
        "comm",
        NumberRule::Never,
        Fits::Task,
        "a thread as the name that it has at this moment",
    ),
    key("cgroup", NumberRule::Never, Fits::Task, "a thread as its control group"),
    value("percent", NumberRule::Never, "as its part of all, in per cent"),
    value("graph", NumberRule::Never, "as its part of all, as a bar"),
    value("min", NumberRule::Never, "the smallest"),
    value("max", NumberRule::Never, "the largest"),
    value("avg", NumberRule::Never, "the average"),
    value("dist", NumberRule::Scale, "the distribution, or a finer one: .dist=5"),
];

impl Modifier {
    /// Looks up a modifier by name.
    pub fn find(name: &str) -> Option<&'static Self> {
        MODIFIERS.iter().find(|modifier| modifier.name == name)
    }

    /// Returns whether it applies to the field `name` of this kind. Expressions have `None` as
    /// name.
    pub fn fits(&self, name: Option<&str>, kind: FieldKind) -> bool {
        match self.fits {
            Fits::Number => matches!(kind, FieldKind::Number | FieldKind::TextPointer),
            Fits::Stack => kind == FieldKind::Stack,
            Fits::Address => kind == FieldKind::Bytes,
            Fits::TextPointer => kind == FieldKind::TextPointer,
            // Other names of any event are in no field.
            Fits::Task => {
                let is_field = |name: &str| name == "common_pid" || !name.starts_with("common_");
                kind == FieldKind::Number && name.is_some_and(is_field)
            }
            Fits::Field(field) => name == Some(field),
        }
    }

    /// How to write it: with the dot, and a number if it needs one.
    pub fn example(&self) -> String {
        match self.number {
            NumberRule::Width => format!(".{}=10", self.name),
            _ => format!(".{}", self.name),
        }
    }
}

/// Modifiers that make sense for a field of `event` as a key, the most useful first. The kernel
/// accepts others too, such as `.sym` for a length.
pub fn of_key(event: &Format, field: &Field) -> Vec<&'static Modifier> {
    find_all(match meaning(event, field) {
        Meaning::Syscall => &["syscall"],
        Meaning::Address => &["sym", "sym-offset", "hex"],
        Meaning::Stack => &["stacktrace"],
        Meaning::Internet => &["ip"],
        Meaning::Text => &["string"],
        Meaning::Task => &["comm", "cgroup", "hex"],
        Meaning::Identity => &["hex"],
        Meaning::Quantity => &["log2", "buckets", "hex"],
        Meaning::Nothing => &[],
    })
}

/// Modifiers that make sense for a field of `event` as a value.
pub fn of_value(event: &Format, field: &Field) -> Vec<&'static Modifier> {
    find_all(match meaning(event, field) {
        Meaning::Quantity => &["dist", "min", "max", "avg"],
        _ => &[],
    })
}

fn find_all(names: &[&str]) -> Vec<&'static Modifier> {
    names.iter().filter_map(|name| Modifier::find(name)).collect()
}

/// Meaning of a number, guessed from the type and name of the field.
enum Meaning {
    Syscall,
    Address,
    Stack,
    Internet,
    /// Pointer to a string.
    Text,
    /// Number of a thread.
    Task,
    /// Identifier, for which sums and ranges make no sense.
    Identity,
    Quantity,
    Nothing,
}

fn meaning(event: &Format, field: &Field) -> Meaning {
    let Field { name, ty, size, .. } = field;
    let word = |words: &[&str]| name.split('_').any(|word| words.contains(&word));
    match field.kind {
        FieldKind::Stack => Meaning::Stack,
        FieldKind::Bytes if field.is_address() => Meaning::Internet,
        FieldKind::Text | FieldKind::CpuMask | FieldKind::Bytes | FieldKind::Other => Meaning::Nothing,
        // Pointer to user memory, which a key cannot read.
        FieldKind::TextPointer if event.text_behind(name).is_some() => Meaning::Identity,
        FieldKind::TextPointer => Meaning::Text,
        FieldKind::Number if name == "__syscall_nr" || (name == "id" && event.name.starts_with("sys_e")) => {
            Meaning::Syscall
        }
        FieldKind::Number if *size == 8 && (word(&["site", "ip", "caller", "function", "func", "location"])) => {
            Meaning::Address
        }
        FieldKind::Number if ty.contains('*') => Meaning::Identity,
        FieldKind::Number if *size == 4 && (ty == "pid_t" || word(&["pid"])) => Meaning::Task,
        FieldKind::Number
            if ty == "bool"
                || ty.starts_with("enum ")
                || word(&[
                    "tgid", "cpu", "node", "dev", "ino", "flags", "state", "type", "mode", "vec", "irq",
                ])
                || word(&["reason", "sig", "id", "nr", "fd"]) =>
        {
            Meaning::Identity
        }
        FieldKind::Number => Meaning::Quantity,
    }
}
