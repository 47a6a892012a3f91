// SPDX-License-Identifier: MIT OR Apache-2.0

//! Configuration files of the service: `/etc/rhist/*.toml` list its histograms.
//!
//! The planner interprets the texts in a table; errors are mapped back to the position in the file
//! here.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rhist_core::problem::InFile;
use rhist_core::problem::Problem;
use rhist_core::room::Idle;
use rhist_core::room::Size;
use rhist_core::suggest;
use rhist_core::table::BucketUnit;
use serde::Deserialize;
use toml::Spanned;

use super::destination::Destination;
use super::destination::Table as PushTable;
use super::destination::number;
use super::family_names::is_free;

/// Default limit of label sets of a histogram.
const LIMIT: u32 = 100;

/// Default budget of a histogram, as a share of one CPU.
const BUDGET: f64 = 0.005;

/// Limit of classic buckets; each is a series.
const BOUNDS: usize = 100;

/// Limit of a file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Labels that Prometheus adds itself, or uses in histograms.
const RESERVED: [&str; 4] = ["instance", "job", "le", "quantile"];

/// Complete configuration, in the order of files and tables.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The histograms; all have different names.
    pub histograms: Vec<HistogramConfig>,
    /// Receiver to push to, if any.
    pub push: Option<Destination>,
}

/// Configuration of a histogram.
#[derive(Clone, Debug)]
pub struct HistogramConfig {
    /// Name, with which its metrics begin: lower-case letters, digits and `_`.
    pub name: String,
    /// Settings independent of the file.
    pub settings: Settings,
    /// File with the table.
    file: Arc<File>,
    /// Range of the name in the file.
    at: Range<usize>,
    /// Range of each text in the file, by keyword: `recipe`, `trigger`.
    places: BTreeMap<&'static str, Range<usize>>,
    /// Ranges of the keys with a label.
    label_places: BTreeMap<String, Range<usize>>,
}

/// Settings of a histogram, independent of their position in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The measurement.
    pub what: What,
    /// Number of entries in the kernel.
    pub size: Option<Size>,
    /// Time after which an idle series is removed.
    pub expire: Option<Idle>,
    /// Limit of label sets, besides `other`.
    pub limit: u32,
    /// Unit of the buckets of times.
    pub unit: BucketUnit,
    /// Allowed cost, as a share of one CPU: 0.005 is half a per cent.
    pub budget: f64,
    /// Labels by the names of keys.
    pub labels: BTreeMap<String, String>,
    /// Whether labels may contain kernel addresses.
    pub addresses: bool,
    /// Whether labels may contain the paths of control groups.
    pub containers: bool,
    /// Bounds of classic buckets, in the unit of the metrics. Empty for the defaults of the unit.
    pub bounds: Vec<f64>,
}

/// Measurement of a histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A question, as [`rhist_core::query::QueryText`] reads it.
    Query {
        /// `recipe`, `count`, or `between`.
        kind: &'static str,
        /// Text of the keyword.
        text: String,
    },
    /// Triggers written out: events and commands. The histogram of the last one is exported.
    Triggers(Vec<(String, String)>),
}

/// A file with its contents.
#[derive(Debug)]
struct File {
    path: PathBuf,
    text: String,
}

/// Top level of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default)]
    histogram: BTreeMap<Spanned<String>, Table>,
    push: Option<Spanned<PushTable>>,
}

/// Table of a histogram.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    recipe: Option<Spanned<String>>,
    count: Option<Spanned<String>>,
    between: Option<Spanned<String>>,
    event: Option<Spanned<String>>,
    trigger: Option<Spanned<String>>,
    before: Option<Spanned<Vec<Before>>>,
    size: Option<Spanned<Size>>,
    expire: Option<Spanned<Idle>>,
    limit: Option<Spanned<u32>>,
    unit: Option<Spanned<String>>,
    budget: Option<Spanned<String>>,
    #[serde(default)]
    labels: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    addresses: bool,
    #[serde(default)]
    containers: bool,
    buckets: Option<Spanned<Vec<f64>>>,
}

/// Trigger that is created before the table's own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    event: String,
    trigger: String,
}

/// Error of a configuration.
#[derive(Debug)]
pub enum ConfigError {
    /// A file or the folder cannot be read.
    Io(PathBuf, io::Error),
    /// Faults in files, at least one.
    Problems(Vec<InFile>),
}

impl Config {
    /// Reads the files `*.toml` of a folder, in the order of their names. A missing folder counts
    /// as empty.
    pub fn read_folder(folder: &Path) -> Result<Self, ConfigError> {
        let fail = |error| ConfigError::Io(folder.to_owned(), error);
        let mut paths = Vec::new();
        match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
            Ok(entries) => {
                for entry in entries {
                    let path = entry.map_err(fail)?.path();
                    // Skips temporary files of editors: `.#rhist.toml`.
                    let is_hidden = path
                        .file_name()
                        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
                    if path.extension().is_some_and(|extension| extension == "toml") && !is_hidden {
                        paths.push(path);
                    }
                }
            }
        }
        paths.sort();
        Self::read(&paths)
    }

    /// Reads these files.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut texts = Vec::new();
        for path in paths {
            let read = || {
                let file = fs::metadata(path)?;
                if !file.is_file() || file.len() > MAX_BYTES {
                    let what = "not a regular file, or larger than 1 MiB";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                fs::read_to_string(path)
            };
            texts.push((
                path.clone(),
                read().map_err(|error| ConfigError::Io(path.clone(), error))?,
            ));
        }
        Self::parse(texts).map_err(ConfigError::Problems)
    }

    /// Parses texts, given with the paths of their files.
    pub fn parse(texts: impl IntoIterator<Item = (PathBuf, String)>) -> Result<Self, Vec<InFile>> {
        let mut config = Self::default();
        let mut problems = Vec::new();
        let mut pushes: Option<Arc<File>> = None;
        for (path, text) in texts {
            let file = Arc::new(File { path, text });
            match toml::from_str::<Tables>(&file.text) {
                Err(error) => problems.push(file.problem(syntax(&file.text, &error))),
                Ok(tables) => {
                    if let Some(table) = tables.push {
                        let at = table.span();
                        match (&pushes, Destination::new(table.into_inner())) {
                            (Some(other), _) => {
                                let help = format!("the other one is in {}", other.path.display());
                                let problem = Problem::new(at, "a second table push").help(help);
                                problems.push(file.problem(problem));
                            }
                            (None, Ok(push)) => config.push = Some(push),
                            (None, Err(problem)) => problems.push(file.problem(problem)),
                        }
                        pushes.get_or_insert_with(|| file.clone());
                    }
                    // In the order of the file.
                    let mut tables: Vec<_> = tables.histogram.into_iter().collect();
                    tables.sort_by_key(|(name, _)| name.span().start);
                    for (name, table) in tables {
                        match HistogramConfig::new(&file, name, table) {
                            Ok(wanted) => config.add(wanted, &mut problems),
                            Err(problem) => problems.push(file.problem(problem)),
                        }
                    }
                }
            }
        }
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn add(&mut self, wanted: HistogramConfig, problems: &mut Vec<InFile>) {
        match self.histograms.iter().find(|other| other.name == wanted.name) {
            None => self.histograms.push(wanted),
            Some(other) => {
                let title = format!("a second histogram {}", wanted.name);
                let help = format!("the other one is in {}", other.file.path.display());
                problems.push(wanted.problem_of_name(title).with_help(help));
            }
        }
    }
}

impl HistogramConfig {
    fn new(file: &Arc<File>, name: Spanned<String>, table: Table) -> Result<Self, Problem> {
        let at = name.span();
        let name = name.into_inner();
        let is_word = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        };
        if !is_word(&name) {
            let title = format!("{name:?} is not a name for a histogram");
            return Err(
                Problem::new(at, title).help("names of metrics begin with it: use lower-case letters, digits and _")
            );
        }
        if !is_free(&name) {
            return Err(Problem::new(
                at,
                format!("metrics that begin with rhist_{name} are the service's own"),
            ));
        }
        let mut places = BTreeMap::new();
        let mut queries = Vec::new();
        for (kind, text) in [
            ("recipe", table.recipe),
            ("count", table.count),
            ("between", table.between),
        ] {
            if let Some(text) = text {
                places.insert(kind, text.span());
                let text = text.into_inner();
                queries.push(What::Query { kind, text });
            }
        }
        if let (Some(before), None) = (&table.before, &table.trigger) {
            let title = "before needs trigger: it lists triggers to be made before that one";
            return Err(Problem::new(before.span(), title));
        }
        let what = match (queries.pop(), queries.is_empty(), table.event, table.trigger) {
            (Some(_), true, Some(other), _) | (Some(_), true, _, Some(other)) => {
                let title = "event and trigger stand alone, without recipe, count or between";
                return Err(Problem::new(other.span(), title));
            }
            (Some(what), true, None, None) => what,
            (Some(What::Query { kind, .. }), false, ..) => {
                let at = places.get(kind).cloned().unwrap_or(at);
                return Err(Problem::new(at, "use only one of recipe, count and between"));
            }
            (_, _, Some(event), Some(trigger)) => {
                places.insert("event", event.span());
                places.insert("trigger", trigger.span());
                let before = table.before.map(Spanned::into_inner).unwrap_or_default();
                let mut triggers: Vec<_> = before.into_iter().map(|one| (one.event, one.trigger)).collect();
                triggers.push((event.into_inner(), trigger.into_inner()));
                if let Some((_, other)) = triggers.iter().find(|(_, text)| !text.starts_with("hist:")) {
                    let title = format!("{other:?} is not a trigger of a histogram");
                    let at = places.get("trigger").cloned().unwrap_or(at);
                    return Err(Problem::new(at, title).help("it has to begin with hist:keys="));
                }
                What::Triggers(triggers)
            }
            (None, _, Some(alone), None) | (None, _, None, Some(alone)) => {
                return Err(Problem::new(alone.span(), "event and trigger need each other"));
            }
            _ => {
                let title = format!("{name} does not say what to measure");
                let help = "it needs recipe, count, between, or event and trigger";
                return Err(Problem::new(at, title).help(help));
            }
        };
        let label_places = table.labels.keys().map(|key| (key.get_ref().clone(), key.span()));
        let label_places = label_places.collect();
        let settings = Settings {
            size: table.size.map(Spanned::into_inner),
            expire: table.expire.map(Spanned::into_inner),
            limit: number("limit", table.limit, 1..=10_000)?.unwrap_or(LIMIT),
            unit: table.unit.map(unit).transpose()?.unwrap_or_default(),
            budget: table.budget.map(budget).transpose()?.unwrap_or(BUDGET),
            labels: labels(table.labels)?,
            addresses: table.addresses,
            containers: table.containers,
            bounds: table.buckets.map(bounds).transpose()?.unwrap_or_default(),
            what,
        };
        let is_text = matches!(settings.what, What::Triggers(_));
        let is_set = settings.size.is_some() || settings.expire.is_some() || settings.unit != BucketUnit::One;
        if is_text && is_set {
            let title = "write size, expire and unit into the text of the trigger: size=…, expire(…), unit(…)";
            return Err(Problem::new(places.get("trigger").cloned().unwrap_or(at), title));
        }
        Ok(Self {
            name,
            settings,
            file: file.clone(),
            at,
            places,
            label_places,
        })
    }

    /// Locates a problem with the histogram as a whole.
    pub fn problem_of_name(&self, title: impl Into<String>) -> InFile {
        self.file.problem(Problem::new(self.at.clone(), title))
    }

    /// Locates a problem with the label of a key.
    pub fn problem_of_label(&self, key: &str, title: impl Into<String>) -> InFile {
        let at = self.label_places.get(key).unwrap_or(&self.at);
        self.file.problem(Problem::new(at.clone(), title))
    }

    /// Locates a problem in one of its texts: `recipe`, `count`, `between`, `event` or `trigger`.
    /// If the text contains escapes, as in `"\u0041"`, marks all of it.
    pub fn problem_in(&self, word: &str, problem: Problem) -> InFile {
        let Some(span) = self.places.get(word) else {
            return self.file.problem(Problem {
                at: self.at.clone(),
                ..problem
            });
        };
        let written = self.file.text.get(span.clone()).unwrap_or_default();
        let quotes = if written.starts_with("\"\"\"") || written.starts_with("'''") {
            3
        } else {
            1
        };
        let is_as_it_stands = written.starts_with('\'') || !written.contains('\\');
        // TOML drops a newline right after three quotes.
        let starts = quotes + usize::from(quotes == 3 && written[3..].starts_with('\n'));
        let start = span.start + starts;
        let at = start + problem.at.start..start + problem.at.end;
        let at = if is_as_it_stands && at.end <= span.end {
            at
        } else {
            span.clone()
        };
        self.file.problem(Problem { at, ..problem })
    }
}

impl File {
    fn problem(&self, problem: Problem) -> InFile {
        InFile::new(&self.path, &self.text, problem)
    }
}

/// Message of the parser, with a suggestion for an unknown word.
fn syntax(text: &str, error: &toml::de::Error) -> Problem {
    let at = error.span().unwrap_or(text.len()..text.len());
    let message = error.message().lines().next().unwrap_or_default();
    let unknown = message
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.split_once('`'));
    let Some((word, expected)) = unknown else {
        return Problem::new(at, message.trim_end_matches('.'));
    };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let near = suggest::near(word, known.iter().copied());
    let problem = Problem::new(at, format!("unknown key {word} in this table"));
    match near.is_empty() {
        true => problem.help(format!("possible keys: {}", known.join(", "))),
        false => problem.near(&near),
    }
}

fn unit(text: Spanned<String>) -> Result<BucketUnit, Problem> {
    let known = [BucketUnit::Us, BucketUnit::Ms, BucketUnit::S];
    let found = known.into_iter().find(|unit| unit.word() == text.get_ref());
    let problem =
        || Problem::new(text.span(), "unit has to be s, ms or us").help("without it, times are in nanoseconds");
    found.ok_or_else(problem)
}

/// Parses a share: `"0.5%"`.
fn budget(text: Spanned<String>) -> Result<f64, Problem> {
    let number = text.get_ref().strip_suffix('%').map(str::trim_end);
    let percent = number.and_then(|number| number.parse::<f64>().ok());
    let share = percent
        .map(|percent| percent / 100.0)
        .filter(|share| *share > 0.0 && *share <= 1.0);
    let problem = || {
        Problem::new(
            text.span(),
            "budget has to be a part of a CPU, at most 100%, as in \"0.5%\"",
        )
    };
    share.ok_or_else(problem)
}

fn bounds(bounds: Spanned<Vec<f64>>) -> Result<Vec<f64>, Problem> {
    let numbers = bounds.get_ref();
    let is_ascending = numbers.is_sorted_by(|a, b| a < b);
    let are_bounds = numbers.iter().all(|bound| *bound > 0.0 && bound.is_finite());
    match is_ascending && are_bounds && (1..=BOUNDS).contains(&numbers.len()) {
        true => Ok(bounds.into_inner()),
        false => {
            let title = format!("buckets have to be 1 to {BOUNDS} numbers above 0 in ascending order");
            Err(Problem::new(bounds.span(), title).help("0 and +Inf are implied"))
        }
    }
}

fn labels(labels: BTreeMap<Spanned<String>, Spanned<String>>) -> Result<BTreeMap<String, String>, Problem> {
    for label in labels.values() {
        let name = label.get_ref();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || RESERVED.contains(&name.as_str()) {
            let title = format!("{name:?} cannot be a label");
            let help = format!(
                "labels have letters, digits and _; {} are Prometheus' own",
                RESERVED.join(", ")
            );
            return Err(Problem::new(label.span(), title).help(help));
        }
    }
    let pairs = labels
        .into_iter()
        .map(|(key, label)| (key.into_inner(), label.into_inner()));
    Ok(pairs.collect())
}

/// Default label of a key: its name without modifiers, with characters that labels forbid replaced.
pub(super) fn label_name(key: &str) -> String {
    let field = match key.rfind('.') {
        Some(dot) if !key[dot..].contains(')') => &key[..dot],
        _ => key,
    };
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = field.chars().map(word).collect();
    let name = name.trim_matches('_');
    match name {
        _ if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || RESERVED.contains(&name) => {
            format!("key_{name}")
        }
        _ => name.to_owned(),
    }
}
