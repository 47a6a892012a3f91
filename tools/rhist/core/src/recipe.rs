// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recipes: questions about a kernel, as data. A recipe is a TOML file; its name is the file's.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;

/// What a file of a recipe has.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// One line, without a full stop: what is measured.
    pub summary: String,
    /// Paragraphs for the manual: what is counted exactly, what is not, how to read it.
    pub about: String,
    /// A command line to try, without `rhist`.
    #[serde(default)]
    pub example: String,
    /// Areas, such as `sched` or `block`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What is to be given on the command line behind the name, in this order; used as `{name}` in texts of this file.
    #[serde(default)]
    pub args: Vec<Arg>,
    /// Of a recipe that measures times: what becomes of starts that are not followed by their end.
    #[serde(default)]
    pub starts: Option<Starts>,
    /// Tools of bcc that answer the same question, and how their answers differ; for the manual.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// What is measured.
    #[serde(flatten)]
    pub measure: Measure,
    /// Other ways to measure, by the name of the option that selects them: `--errors` takes `variants.errors`.
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
}

/// What becomes of a start in each of the ways in which the next end may not be its own: a sentence for the manual on each.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Starts {
    /// Its end never comes.
    pub unended: String,
    /// Its key (`on`) comes to be that of something else: the number of a thread that has died, a freed address.
    pub reused: String,
    /// It begins again before it ends.
    pub again: String,
    /// It began before the measurement.
    pub before: String,
}

impl Starts {
    /// Each of them, behind what it is about.
    pub fn each(&self) -> [(&'static str, &str); 4] {
        [
            ("Its end never comes", &self.unended),
            ("Its key is used again", &self.reused),
            ("It begins twice", &self.again),
            ("It was there before", &self.before),
        ]
    }
}

/// A tool of bcc's libbpf-tools that answers the same question.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name.
    pub tool: String,
    /// How its answers differ, and why.
    pub about: String,
}

/// An argument of a recipe.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Arg {
    /// Its name.
    pub name: String,
    /// What it is, for the help.
    pub help: String,
    /// If it is not given. Without this it has to be.
    #[serde(default)]
    pub default: Option<String>,
}

/// Another way to measure.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// One line, without a full stop.
    pub summary: String,
    /// What is measured instead.
    #[serde(flatten)]
    pub measure: Measure,
}

/// What is measured: either counts, or the time between starts and ends.
///
/// `serde(flatten)` and `deny_unknown_fields` do not go together, so unknown names in it are found by what has it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Measure {
    /// Unit of the distribution, and of sums.
    #[serde(default)]
    pub unit: UnitName,
    /// What to call what is counted, in the plural: `waits`, `requests`.
    #[serde(default)]
    pub noun: String,
    /// Keys for which each row is shown, if `--by` does not say others. Names of `keys`, or fields with modifiers.
    #[serde(default)]
    pub by: Vec<String>,
    /// Short names of keys for `--by`: `comm = "next_comm"`. All events that are counted have these fields.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// The field with the thread that `-p` means, and the one with the name that `-c` means. By default `common_pid` and `comm`,
    /// the task that the event happens in. Empty: that is not known, and the option is refused.
    #[serde(default)]
    pub pid: Option<String>,
    /// See `pid`.
    #[serde(default)]
    pub comm: Option<String>,
    /// Where filters of `-p`, `-c` and `--where` apply: to ends, by default, or to starts.
    #[serde(default)]
    pub filter_at: FilterAt,
    /// Fields of the end, of the event counted, or what a start keeps, that are shown beside the largest value.
    #[serde(default)]
    pub save: Vec<String>,
    /// The sentence for these: `{next_comm} behind {prev_comm} ({prev_pid})`.
    #[serde(default)]
    pub worst: String,
    /// How numbers of fields are named: `dev = "device"`, `id = "syscall"`.
    #[serde(default)]
    pub names: BTreeMap<String, NameKind>,
    /// How many entries results have room for: 65 to 131072, by default 2048. Starts have room for at least as many.
    #[serde(default)]
    pub size: Option<u32>,
    /// Probes that are made first. `{group}` in definitions, events and filters is the group of the run.
    #[serde(default)]
    pub probes: Vec<String>,
    /// Counted: each of these events. Empty for a time between events.
    #[serde(default)]
    pub count: Vec<Count>,
    /// A time begins with each of these.
    #[serde(default)]
    pub start: Vec<Point>,
    /// A time ends with each of these.
    #[serde(default)]
    pub end: Vec<Point>,
    /// Events that make a start void, so that no end finds it.
    #[serde(default)]
    pub forget: Vec<Point>,
    /// The first of these is measured instead where this kernel lacks an event or a function that is needed here. It takes
    /// nothing over from here.
    #[serde(default, deserialize_with = "alternatives")]
    pub alternatives: Vec<Measure>,
}

/// Other ways to measure, of which no name may be unknown either.
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

/// An event that is counted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// `system:event`.
    pub event: String,
    /// Only hits that this filter passes.
    #[serde(default, rename = "if")]
    pub filter: String,
    /// Fields or expressions whose sums are shown; `sent=ret` shows that of `ret` as `sent`.
    #[serde(default)]
    pub sum: Vec<String>,
    /// Fields whose minimum, maximum and average are shown.
    #[serde(default)]
    pub stat: Vec<String>,
    /// Fields whose distributions are shown.
    #[serde(default)]
    pub dist: Vec<String>,
}

/// A start, an end, or an event that makes a start void.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// `system:event`.
    pub event: String,
    /// Only hits that this filter passes.
    #[serde(default, rename = "if")]
    pub filter: String,
    /// What start and end have in common, in the same order: fields, expressions.
    pub on: Vec<String>,
    /// The value: of a start what is kept, of an end what is counted, with `{start}` for what the
    /// start has kept. By default the time, and the time since then. In a start, `{start}` is that
    /// of another one, see `of`: an expression of it uses that one up, so this one takes its place.
    #[serde(default)]
    pub value: Option<String>,
    /// Of a start: fields that an end can be counted by and that can be saved, by a name that no field of the end has:
    /// `stack = "common_stacktrace"`. All starts of a recipe have the same names.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// Of a start: how many entries there is room for at least, by default 16384. Entries stay when an end was found, so `on` should
    /// have few different values.
    #[serde(default)]
    pub size: Option<u32>,
    /// Of a start: what begins again before it ends began with the first one. So the first end of each value of `on` has no
    /// start: from then on it is known that nothing has begun.
    #[serde(default)]
    pub first: bool,
    /// Of an end: the event is also one where nothing ends, so that one without a start does not mean that a time was lost.
    #[serde(default)]
    pub alone: bool,
    /// Of an end, and of what makes a start void: only the start with this number, from 0; by
    /// default each of them. Of a start: the number of the one that its value refers to.
    #[serde(default)]
    pub of: Option<usize>,
    /// Of what makes a start void: only if the start with this number is there.
    #[serde(default)]
    pub given: Option<usize>,
}

/// Where the filters of the command line apply.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FilterAt {
    /// To each start.
    Start,
    /// To each end, and to events that are counted.
    #[default]
    End,
}

/// Unit in a recipe.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum UnitName {
    /// A number of things.
    #[default]
    Count,
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Bytes.
    Bytes,
}

/// How a number is named.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum NameKind {
    /// `dev_t` of the kernel: `sda`.
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
    /// What a request asks of a block device (`enum req_op`): `write`.
    Blockop,
    /// Number of an interrupt: `virtio0-input`.
    Irq,
    /// An IPv4 address.
    Ipv4,
    /// Number of a control group: `/system.slice/ssh.service`.
    Cgroup,
    /// What the event's own print format says of the field, by `__print_symbolic` or `__print_flags`.
    Format,
}

/// Why a text is no recipe.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Recipe {
    /// Reads a recipe. The error has the line and what is wrong there.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let recipe: Self = toml::from_str(text).map_err(|error| Error(error.to_string()))?;
        recipe.check_names()?;
        Ok(recipe)
    }

    /// What is given on the command line: arguments, and options for variants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let args = self.args.iter().map(|arg| arg.name.as_str());
        args.chain(self.variants.keys().map(String::as_str))
    }

    /// Whether all of these can be given, and told apart.
    fn check_names(&self) -> Result<(), Error> {
        let mut known = BTreeSet::new();
        for name in self.names() {
            let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
                && name
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
            if !is_name {
                return Err(Error(format!(
                    "{name:?} is no name of an argument or variant: these have lower-case letters, digits and -"
                )));
            }
            if !known.insert(name) {
                return Err(Error(format!("two arguments or variants are called {name}")));
            }
        }
        let may_lack = self.args.iter().skip_while(|arg| arg.default.is_none());
        if let Some(arg) = may_lack.into_iter().find(|arg| arg.default.is_none()) {
            return Err(Error(format!(
                "argument {} has to be given, so it cannot follow one that has a default",
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
            assert!(error(&arg(name)).contains("is no name of an argument"), "{name}");
            let variant = format!("[variants.{name:?}]\nsummary = \"v\"\n");
            assert!(error(&variant).contains("is no name of an argument"), "{name}");
        }
        let same = "two arguments or variants are called x";
        assert_eq!(error(&(arg("x") + &arg("x"))), same);
        assert_eq!(error(&(arg("x") + "[variants.x]\nsummary = \"v\"\n")), same);
    }

    #[test]
    fn what_has_to_be_given_comes_first() {
        let default = "default = \"1\"\n";
        assert_eq!(error(&(arg("x") + &arg("y") + default)), "none");
        assert!(error(&(arg("x") + default + &arg("y"))).starts_with("argument y has to be given"));
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
