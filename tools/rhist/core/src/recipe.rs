// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recipes: questions about a kernel, as data. A recipe is a TOML file, and has the name of the
//! file.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;

use crate::room::Size;

/// Content of a recipe's file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// One line that describes the measurement, without a full stop.
    pub summary: String,
    /// Paragraphs for the manual: which events count exactly, which do not, and how to read the
    /// result.
    pub about: String,
    /// Command line to try, without `rhist`.
    #[serde(default)]
    pub example: String,
    /// Areas, such as `sched` or `block`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Arguments after the name on the command line, in this order. Texts of this file refer to
    /// them as `{name}`.
    #[serde(default)]
    pub args: Vec<Arg>,
    /// For a recipe that measures times: the fate of starts without a matching end.
    #[serde(default)]
    pub starts: Option<Starts>,
    /// Tools of bcc that answer the same question, with their differences; for the manual.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// The measurement.
    #[serde(flatten)]
    pub measure: Measure,
    /// Other measurements, by the name of the option that selects them: `--errors` takes
    /// `variants.errors`.
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
}

/// Fate of a start, one sentence for the manual for each way in which the next end may not belong
/// to it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Starts {
    /// The end never comes.
    pub unended: String,
    /// The key (`on`) is reused: the number of a thread that has died, a freed address.
    pub reused: String,
    /// The same thing begins again before it ends.
    pub again: String,
    /// It began before the measurement.
    pub before: String,
}

impl Starts {
    /// The sentences, each after its situation.
    pub fn each(&self) -> [(&'static str, &str); 4] {
        [
            ("No end", &self.unended),
            ("Key reused", &self.reused),
            ("Second start", &self.again),
            ("Start before the measurement", &self.before),
        ]
    }
}

/// A tool of bcc's libbpf-tools that answers the same question.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Name of the tool.
    pub tool: String,
    /// Differences in its answers, and their reasons.
    pub about: String,
}

/// An argument of a recipe.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Arg {
    /// Name, as in `{name}`.
    pub name: String,
    /// Description for the help.
    pub help: String,
    /// Value if the argument is missing. Without a default, the argument is required.
    #[serde(default)]
    pub default: Option<String>,
}

/// Another way to measure, selected by an option.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// One line, without a full stop.
    pub summary: String,
    /// The measurement that replaces the recipe's.
    #[serde(flatten)]
    pub measure: Measure,
}

/// A measurement: either counts of events, or times between starts and ends.
///
/// `serde(flatten)` and `deny_unknown_fields` exclude each other, so the containing type rejects
/// unknown names.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Measure {
    /// Unit of the distribution, and of sums.
    #[serde(default)]
    pub unit: UnitName,
    /// Noun for the counted things, in the plural: `waits`, `requests`.
    #[serde(default)]
    pub noun: String,
    /// Default keys, which `--by` replaces. Names from `keys`, or fields with modifiers.
    #[serde(default)]
    pub by: Vec<String>,
    /// Short names of keys for `--by`: `comm = "next_comm"`. All counted events have these fields.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// Fields that `-p` and `-c` compare: the thread, and its name. The defaults `common_pid` and
    /// `comm` are the task in whose context the event happens. Empty if unknown; then the option is
    /// an error.
    #[serde(default)]
    pub pid: Option<String>,
    /// See `pid`.
    #[serde(default)]
    pub comm: Option<String>,
    /// Point at which the filters of `-p`, `-c` and `--where` apply: ends by default, or starts.
    #[serde(default)]
    pub filter_at: FilterAt,
    /// Fields shown beside the largest value: of the end, of the counted event, or kept by a start.
    #[serde(default)]
    pub save: Vec<String>,
    /// Sentence about these: `{next_comm} behind {prev_comm} ({prev_pid})`.
    #[serde(default)]
    pub worst: String,
    /// Kinds of names for numbers in fields: `dev = "device"`, `id = "syscall"`.
    #[serde(default)]
    pub names: BTreeMap<String, NameKind>,
    /// Number of entries for results, by default 2048. Also a minimum for starts.
    #[serde(default)]
    pub size: Option<Size>,
    /// Only for histograms that can have stacks of programs; the first alternative is for others.
    #[serde(default)]
    pub programs: bool,
    /// Probes to create first. `{group}` in definitions, events and filters stands for the group of
    /// the run.
    #[serde(default)]
    pub probes: Vec<String>,
    /// Events to count. Empty for a time between events.
    #[serde(default)]
    pub count: Vec<Count>,
    /// Events that start a time.
    #[serde(default)]
    pub start: Vec<Point>,
    /// Events that end a time.
    #[serde(default)]
    pub end: Vec<Point>,
    /// Events that void a start, so that no end finds it.
    #[serde(default)]
    pub forget: Vec<Point>,
    /// Replacements, of which the first possible one is used if this kernel lacks a required event
    /// or function. They inherit nothing from this measurement.
    #[serde(default, deserialize_with = "alternatives")]
    pub alternatives: Vec<Measure>,
}

/// Reads alternatives, and rejects unknown names in them too.
fn alternatives<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Measure>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Alternative {
        #[serde(flatten)]
        measure: Measure,
    }
    let found = Vec::<Alternative>::deserialize(deserializer)?;
    Ok(found.into_iter().map(|alternative| alternative.measure).collect())
}

/// An event to count.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// `system:event`.
    pub event: String,
    /// Filter for hits.
    #[serde(default, rename = "if")]
    pub filter: String,
    /// Fields or expressions to sum up; `sent=ret` sums `ret` under the name `sent`.
    #[serde(default)]
    pub sum: Vec<String>,
    /// Fields whose minimum, maximum and average are shown.
    #[serde(default)]
    pub stat: Vec<String>,
    /// Fields whose distributions are shown.
    #[serde(default)]
    pub dist: Vec<String>,
}

/// A start, an end, or an event that voids starts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// `system:event`.
    pub event: String,
    /// Filter for hits.
    #[serde(default, rename = "if")]
    pub filter: String,
    /// Fields or expressions that link starts and ends, in the same order on both sides.
    pub on: Vec<String>,
    /// Value: for a start the value to keep, for an end the value to count, in which `{start}`
    /// stands for the kept one. Defaults to the time, and to the difference of times. In a start,
    /// `{start}` refers to another start, see `of`: an expression with it uses that start up, so
    /// this one takes its place.
    #[serde(default)]
    pub value: Option<String>,
    /// For a start: fields to keep, which ends can count by or save. Their names differ from all
    /// fields of the end: `stack = "common_stacktrace"`. All starts of a recipe have the same
    /// names.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// For a start: minimum number of entries, by default 16384. Entries stay after the end, so
    /// `on` should have few distinct values.
    #[serde(default)]
    pub size: Option<u32>,
    /// For a start: if a thing begins again before it ends, the first begin counts. Until the first
    /// end for a value of `on`, it is unknown whether the thing had already begun, so that end has
    /// no start.
    #[serde(default)]
    pub first: bool,
    /// For an end: the event also occurs without anything ending, so an end without a start is not
    /// a lost time.
    #[serde(default)]
    pub alone: bool,
    /// For an end, or an event that voids starts: number of the only start it applies to, from 0;
    /// by default all. For a start: number of the start that its value refers to.
    #[serde(default)]
    pub of: Option<usize>,
    /// For an event that voids starts: applies only if the start with this number is pending.
    #[serde(default)]
    pub given: Option<usize>,
}

/// Point at which the filters of the command line apply.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FilterAt {
    /// At each start.
    Start,
    /// At each end, and at counted events.
    #[default]
    End,
}

/// Unit in a recipe.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum UnitName {
    /// Plain number.
    #[default]
    Count,
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Bytes, printed with binary prefixes.
    Bytes,
}

/// Kind of names for numbers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum NameKind {
    /// The kernel's `dev_t`: `sda`.
    Device,
    /// Number of a system call.
    Syscall,
    /// Number of an error, positive or negative: `ENOENT`.
    Errno,
    /// State of a task: `D`.
    State,
    /// Number of a signal: `SIGTERM`.
    Signal,
    /// Number of a softirq: `NET_RX`.
    Softirq,
    /// State of a TCP connection: `ESTABLISHED`.
    Tcpstate,
    /// Operation of a request to a block device (`enum req_op`): `write`.
    Blockop,
    /// Number of an interrupt: `virtio0-input`.
    Irq,
    /// IPv4 address in network byte order.
    Ipv4,
    /// Any number, in hexadecimal digits: `0x1f`.
    Hex,
    /// Number of a control group: `/system.slice/ssh.service`.
    Cgroup,
    /// Number or path of the control group of a container: see [`crate::names::container`].
    Container,
    /// Names in the event's own print format: `__print_symbolic` or `__print_flags`.
    Format,
}

/// Fault in a recipe's text.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Recipe {
    /// Parses a recipe. The error contains the line and a description.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let recipe: Self = toml::from_str(text).map_err(|error| Error(error.to_string()))?;
        recipe.check_names()?;
        Ok(recipe)
    }

    /// Names for the command line: arguments, and options for variants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let args = self.args.iter().map(|arg| arg.name.as_str());
        args.chain(self.variants.keys().map(String::as_str))
    }

    /// Checks that all of these names are valid and distinct.
    fn check_names(&self) -> Result<(), Error> {
        let mut known = BTreeSet::new();
        for name in self.names() {
            let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
                && name
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
            if !is_name {
                return Err(Error(format!(
                    "{name:?} is not a valid name of an argument or variant: use lower-case letters, digits and -"
                )));
            }
            if !known.insert(name) {
                return Err(Error(format!("two arguments or variants are called {name}")));
            }
        }
        let may_lack = self.args.iter().skip_while(|arg| arg.default.is_none());
        if let Some(arg) = may_lack.into_iter().find(|arg| arg.default.is_none()) {
            return Err(Error(format!(
                "argument {} is required, so it cannot follow one that has a default",
                arg.name
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let text = format!("summary = \"s\"\nabout = \"a\"\n{text}");
        Recipe::parse(&text).map_or_else(|error| error.to_string(), |_| "none".to_owned())
    }

    fn arg(name: &str) -> String {
        format!("[[args]]\nname = {name:?}\nhelp = \"h\"\n")
    }

    #[test]
    fn names_can_be_given() {
        assert_eq!(error(&arg("func")), "none");
        for name in ["", "-x", "a b", "a=b", "{group}", "Func", "1", "é"] {
            assert!(
                error(&arg(name)).contains("is not a valid name of an argument"),
                "{name}"
            );
            let variant = format!("[variants.{name:?}]\nsummary = \"v\"\n");
            assert!(error(&variant).contains("is not a valid name of an argument"), "{name}");
        }
        let same = "two arguments or variants are called x";
        assert_eq!(error(&(arg("x") + &arg("x"))), same);
        assert_eq!(error(&(arg("x") + "[variants.x]\nsummary = \"v\"\n")), same);
    }

    #[test]
    fn what_has_to_be_given_comes_first() {
        let default = "default = \"1\"\n";
        assert_eq!(error(&(arg("x") + &arg("y") + default)), "none");
        assert!(error(&(arg("x") + default + &arg("y"))).starts_with("argument y is required"));
    }

    #[test]
    fn sizes_are_numbers_or_ranges() {
        let size = |size: &str| {
            let text = format!("summary = \"s\"\nabout = \"a\"\nsize = {size}\n");
            Recipe::parse(&text).map(|recipe| recipe.measure.size.map(|size| size.to_string()))
        };
        assert_eq!(size("8192").unwrap().as_deref(), Some("8192"));
        assert_eq!(size("\"2048..131072\"").unwrap().as_deref(), Some("2048..131072"));
        for wrong in ["64", "-65", "\"2048..\"", "\"2048..100\"", "2048.5", "true"] {
            let error = size(wrong).unwrap_err().to_string();
            assert!(error.contains("size"), "{wrong}: {error}");
        }
    }

    #[test]
    fn unknown_names_are_told() {
        for text in [
            "nonsense = 3",
            "[variants.z]\nsummary = \"v\"\nnonsense = 3",
            "[[alternatives]]\nnonsense = 3",
        ] {
            assert!(error(text).contains("unknown field `nonsense`"), "{text}");
        }
    }
}
