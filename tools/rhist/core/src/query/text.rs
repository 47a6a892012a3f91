// SPDX-License-Identifier: MIT OR Apache-2.0

//! Questions as texts, in the configuration of the service: words, with options as on the command
//! line. The command line itself is parsed by the program, which also has help and completion for
//! it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use super::error::Error;
use super::model::Query;
use super::model::one_line;
use super::words::Word;
use super::words::split;
use crate::problem::Problem;
use crate::recipe::Count;
use crate::recipe::Recipe;
use crate::suggest;
use crate::tracefs::Backend;

/// Message for options about output, or about a single run.
const OF_A_RUN: &str = "--pid, --children, --frequency, --duration, --interval, --format, --keep, --quiet and --dry-run do not apply to a histogram of the service";

/// Message for an option that is a key of the table. The unit is part of the metrics' names.
const OF_THE_TABLE: &str = "--unit does not apply here: set it in the table, as in unit = \"s\"";

/// An option of a question.
#[derive(Clone, Copy)]
struct QueryOption<'a> {
    /// Name after `--`.
    long: &'a str,
    /// Name after `-`, if any.
    short: Option<char>,
    /// Name of its value; empty if it has none.
    value: &'a str,
    /// Use in a text.
    usage: Use,
}

/// Use of an option in a text.
#[derive(Clone, Copy)]
enum Use {
    /// At most once.
    Once,
    /// Its values are separated by commas, and it may be repeated.
    List,
    /// Refused, with this message.
    Refused(&'static str),
}

/// Options of all questions.
const OPTIONS: [QueryOption<'static>; 22] = [
    option("backend", None, "BACKEND", Use::Once),
    option("by", None, "KEY", Use::List),
    option("cgroup", None, "PATH", Use::Once),
    option("children", None, "", Use::Refused(OF_A_RUN)),
    option("comm", Some('c'), "NAME", Use::Once),
    option("container", None, "ID", Use::Once),
    option("dry-run", None, "", Use::Refused(OF_A_RUN)),
    option("duration", Some('d'), "SECONDS", Use::Refused(OF_A_RUN)),
    option("expire", None, "DURATION", Use::Once),
    option("faster", None, "TIME", Use::Once),
    option("format", None, "FORMAT", Use::Refused(OF_A_RUN)),
    option("frequency", Some('F'), "HERTZ", Use::Refused(OF_A_RUN)),
    option(
        "help",
        Some('h'),
        "",
        Use::Refused("--help does not apply to a histogram of the service"),
    ),
    option("interval", Some('i'), "SECONDS", Use::Refused(OF_A_RUN)),
    option("keep", None, "", Use::Refused(OF_A_RUN)),
    option("pid", Some('p'), "PID", Use::Refused(OF_A_RUN)),
    option("quiet", Some('q'), "", Use::Refused(OF_A_RUN)),
    option("self", None, "", Use::Once),
    option("size", None, "SIZE", Use::Once),
    option("slower", None, "TIME", Use::Once),
    option("unit", None, "UNIT", Use::Refused(OF_THE_TABLE)),
    option("where", None, "EXPR", Use::Once),
];

/// Options of `count`.
const COUNT: [QueryOption<'static>; 3] = [
    option("dist", None, "FIELD", Use::List),
    option("stat", None, "FIELD", Use::List),
    option("sum", None, "FIELD", Use::List),
];

/// Options of `between`.
const BETWEEN: [QueryOption<'static>; 1] = [option("on", None, "KEY", Use::List)];

const fn option<'a>(long: &'a str, short: Option<char>, value: &'a str, usage: Use) -> QueryOption<'a> {
    QueryOption {
        long,
        short,
        value,
        usage,
    }
}

/// A question as a text, split into words.
#[derive(Clone, Debug)]
pub struct QueryText<'a> {
    text: &'a str,
    words: Vec<Word>,
}

/// Words of a text, by their roles.
#[derive(Debug, Default)]
struct Given {
    /// Words that belong to no option.
    args: Vec<Word>,
    /// Values of options, by their long names. A flag has an empty value.
    values: BTreeMap<String, Vec<String>>,
}

impl<'a> QueryText<'a> {
    /// Splits a text into words. Fails if a quote does not end.
    pub fn new(text: &'a str) -> Result<Self, Problem> {
        let words = split(text)?;
        Ok(Self { text, words })
    }

    /// Name of the recipe: the first word. Fails if the text is empty.
    pub fn recipe_name(&self) -> Result<&str, Problem> {
        let first = self.words.first().map(|word| word.text.as_str());
        first.ok_or_else(|| self.whole("expected a recipe: rhist ls recipes lists them"))
    }

    /// The same text without its first word.
    pub fn after_name(&self) -> Self {
        Self {
            text: self.text,
            words: self.words.iter().skip(1).cloned().collect(),
        }
    }

    /// Parses the question of a recipe, whose name is the first word.
    pub fn recipe(&self, recipe: &Recipe) -> Result<Query, Problem> {
        let name = self.recipe_name()?;
        let variants = recipe.variants.keys().map(|name| option(name, None, "", Use::Once));
        let given = self.given(1, variants)?;
        self.at_most(&given.args, recipe.args.len())?;
        let names = recipe.args.iter().map(|arg| arg.name.clone());
        let args = names.zip(given.args.iter().map(|word| word.text.clone()));
        let chosen = recipe.variants.keys().map(String::as_str);
        let chosen: Vec<&str> = chosen.filter(|name| given.values.contains_key(*name)).collect();
        let query = Query::recipe(name, recipe, &chosen, args.collect());
        self.complete(query, given)
    }

    /// Parses the question of `count`.
    pub fn count(&self) -> Result<Query, Problem> {
        let mut given = self.given(0, COUNT.into_iter())?;
        let [event] = self.args(&given, ["EVENT"])?;
        let values = Count {
            sum: given.list("sum"),
            stat: given.list("stat"),
            dist: given.list("dist"),
            ..Count::default()
        };
        self.complete(Query::count(&event, values), given)
    }

    /// Parses the question of `between`.
    pub fn between(&self) -> Result<Query, Problem> {
        let mut given = self.given(0, BETWEEN.into_iter())?;
        let [start, end] = self.args(&given, ["A", "B"])?;
        let on = given.list("on");
        self.complete(Query::between(&start, &end, &on), given)
    }

    /// Locates an error of its question.
    pub fn locate(&self, error: &Error) -> Problem {
        match error {
            Error::Text { text, problem, .. } => {
                // Marks all of it if the word contains escapes.
                let at = self.place(text);
                let at = at.map(|at| at.start + problem.at.start..at.start + problem.at.end);
                Problem {
                    at: at.filter(|at| at.end <= self.text.len()).unwrap_or(0..self.text.len()),
                    ..Problem::clone(problem)
                }
            }
            Error::Value { text, .. } => {
                let at = self.place(text).unwrap_or(0..self.text.len());
                Problem::new(at, error.to_string())
            }
            _ => self.whole(error.to_string()),
        }
    }

    /// A problem of the whole text.
    pub fn whole(&self, title: impl Into<String>) -> Problem {
        Problem::new(0..self.text.len(), title)
    }

    /// Range of `part`: a word, a value after `=`, or else a part of a word.
    fn place(&self, part: &str) -> Option<Range<usize>> {
        let value = format!("={part}");
        let is_whole = |word: &&Word| word.text == part || word.text.ends_with(&value);
        let place = |word: &Word| {
            let start = word.at.start + self.text.get(word.at.clone())?.rfind(part)?;
            Some(start..start + part.len())
        };
        let whole = self.words.iter().filter(is_whole).find_map(place);
        let found = whole.or_else(|| self.words.iter().find_map(place));
        found.filter(|_| !part.is_empty())
    }

    /// Sorts the words after the first `skip` by their roles. `own` are the options that only this
    /// question has.
    fn given<'o>(&self, skip: usize, own: impl Iterator<Item = QueryOption<'o>>) -> Result<Given, Problem> {
        let known: Vec<QueryOption<'_>> = OPTIONS.into_iter().chain(own).collect();
        let mut given = Given::default();
        let mut words = self.words.iter().skip(skip);
        while let Some(word) = words.next() {
            let (name, value, option) = match word.text.strip_prefix("--") {
                Some("") => {
                    given.args.extend(words.cloned());
                    break;
                }
                Some(rest) => {
                    let (name, value) = match rest.split_once('=') {
                        Some((name, value)) => (name, Some(value)),
                        None => (rest, None),
                    };
                    (
                        &word.text[..name.len() + 2],
                        value,
                        known.iter().find(|option| option.long == name),
                    )
                }
                None => match word.text.strip_prefix('-').and_then(|rest| rest.chars().next()) {
                    Some(short) => {
                        let (name, rest) = word.text.split_at(1 + short.len_utf8());
                        let value = (!rest.is_empty()).then(|| rest.strip_prefix('=').unwrap_or(rest));
                        (name, value, known.iter().find(|option| option.short == Some(short)))
                    }
                    None => {
                        given.args.push(word.clone());
                        continue;
                    }
                },
            };
            let Some(option) = option else {
                let long = name.strip_prefix("--").unwrap_or_default();
                let near = suggest::near(long, known.iter().map(|option| option.long));
                let near: Vec<String> = near.iter().map(|name| format!("--{name}")).collect();
                return Err(self
                    .problem(name, word, format!("unexpected argument '{name}' found"))
                    .near(&near));
            };
            if let Use::Refused(why) = option.usage {
                return Err(self.whole(why));
            }
            let value = match (option.value, value) {
                ("", None) => "",
                ("", Some(_)) => return Err(self.problem(name, word, format!("--{} takes no value", option.long))),
                (_, Some(value)) => value,
                (value_name, None) => match words
                    .next()
                    .filter(|next| !next.text.starts_with('-') || next.text == "-")
                {
                    Some(next) => &next.text,
                    None => {
                        let option = format!("--{} <{value_name}>", option.long);
                        let title = format!("a value is required for '{option}' but none was supplied");
                        return Err(self.problem(name, word, title));
                    }
                },
            };
            let values = given.values.entry(option.long.to_owned()).or_default();
            match option.usage {
                Use::List => values.extend(value.split(',').map(str::to_owned)),
                _ if values.is_empty() => values.push(value.to_owned()),
                _ => {
                    let title = format!("--{} is given twice", option.long);
                    return Err(self.problem(name, word, title));
                }
            }
        }
        Ok(given)
    }

    /// A problem of a part of a word.
    fn problem(&self, part: &str, word: &Word, title: String) -> Problem {
        let raw = self.text.get(word.at.clone()).unwrap_or_default();
        let at = raw
            .find(part)
            .map(|start| word.at.start + start..word.at.start + start + part.len());
        Problem::new(at.unwrap_or(word.at.clone()), title)
    }

    /// Fails for more than `most` arguments.
    fn at_most(&self, args: &[Word], most: usize) -> Result<(), Problem> {
        match args.get(most) {
            None => Ok(()),
            Some(word) => Err(self.problem(&word.text, word, format!("unexpected argument '{}' found", word.text))),
        }
    }

    /// Takes an argument for each of `names`.
    fn args<const N: usize>(&self, given: &Given, names: [&str; N]) -> Result<[String; N], Problem> {
        self.at_most(&given.args, N)?;
        if let Some(name) = names.get(given.args.len()) {
            return Err(self.whole(format!("{name} is missing")));
        }
        Ok(std::array::from_fn(|n| given.args[n].text.clone()))
    }

    /// Takes the value of an option, parsed.
    fn value<T: FromStr<Err: Display>>(&self, given: &mut Given, name: &str) -> Result<Option<T>, Problem> {
        let parsed = given.one(name).map(|text| {
            let at = || self.place(&text).unwrap_or(0..self.text.len());
            text.parse()
                .map_err(|error| Problem::new(at(), format!("--{name}: {error}")))
        });
        parsed.transpose()
    }

    /// Completes a question with the options of all questions.
    fn complete(&self, query: Result<Query, Error>, mut given: Given) -> Result<Query, Problem> {
        let query = query.map_err(|error| self.locate(&error))?;
        let fail = |text: &str, title: String| {
            let at = self.place(text).unwrap_or(0..self.text.len());
            Problem::new(at, title)
        };
        let backend = given.one("backend").map(|text| match text.as_str() {
            "auto" => Ok(None),
            "rhist" => Ok(Some(Backend::Rhist)),
            "c" => Ok(Some(Backend::C)),
            _ => Err(fail(&text, "--backend has to be auto, rhist or c".to_owned())),
        });
        Ok(Query {
            by: given.list("by"),
            comm: given.one("comm"),
            cgroup: given.one("cgroup"),
            container: given.one("container"),
            slower: given.one("slower"),
            faster: given.one("faster"),
            filter: given.one("where").map(|filter| one_line(&filter)),
            counts_self: given.one("self").is_some(),
            size: self.value(&mut given, "size")?,
            expire: self.value(&mut given, "expire")?,
            backend: backend.transpose()?.flatten(),
            ..query
        })
    }
}

impl Given {
    /// Takes the values of an option.
    fn list(&mut self, name: &str) -> Vec<String> {
        self.values.remove(name).unwrap_or_default()
    }

    /// Takes the value of an option.
    fn one(&mut self, name: &str) -> Option<String> {
        self.list(name).pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_their_positions() {
        let count = |text: &str| QueryText::new(text)?.count();
        let between = |text: &str| QueryText::new(text)?.between();
        let recipe = |text: &str| {
            let recipe = "summary = 's'\nabout = 'a'\nargs = [{ name = 'func', help = 'a function' }]\n";
            QueryText::new(text)?.recipe(&Recipe::parse(recipe).unwrap())
        };
        for (found, title, at) in [
            (count(""), "EVENT is missing", 0..0),
            (count("a 'b c'"), "unexpected argument 'b c' found", 3..6),
            (
                count("a --by"),
                "a value is required for '--by <KEY>' but none was supplied",
                2..6,
            ),
            (
                count("a --by --sum b"),
                "a value is required for '--by <KEY>' but none was supplied",
                2..6,
            ),
            (
                count("a --bz=b"),
                "unexpected argument '--bz' found: did you mean --by?",
                2..6,
            ),
            (count("a -xb"), "unexpected argument '-x' found", 2..4),
            (count("a --self=b"), "--self takes no value", 2..8),
            (count("a -cb -c=b"), "--comm is given twice", 6..8),
            (
                count("a --size 64"),
                "--size: expected a number from 65 to 131072, or A..B, where A is such a number, and B is above it and at most 1048576, both rounded up to powers of two",
                9..11,
            ),
            (
                count("a --expire=1d"),
                "--expire: expected a time from 1s to 8760h, with ms, s, m or h, as in 60s",
                11..13,
            ),
            (count("a --backend b"), "--backend has to be auto, rhist or c", 12..13),
            (count("a --dry-run"), OF_A_RUN, 0..11),
            (
                count("kprobe:"),
                "\"kprobe:\": the probe needs a function: kprobe:FUNCTION",
                0..7,
            ),
            (between("a"), "B is missing", 0..1),
            (between("a b 'c"), "unterminated quote", 4..5),
            (recipe("x"), "x: FUNC is missing: a function", 0..1),
            (recipe("x a b"), "unexpected argument 'b' found", 4..5),
        ] {
            let problem = found.unwrap_err();
            assert_eq!((problem.to_string().as_str(), problem.at), (title, at));
        }
    }

    #[test]
    fn a_wrong_value_is_marked() {
        let text = QueryText::new("runqlat --slower 5 --by 'x'").unwrap();
        let error = Error::Value {
            option: "--slower",
            text: "5".to_owned(),
            why: "it needs a unit".to_owned(),
        };
        let problem = text.locate(&error);
        assert_eq!(
            (problem.title.as_str(), problem.at),
            ("--slower: it needs a unit", 17..18)
        );
        let error = Error::text("--by", "x", Problem::new(0..1, "no such field"));
        assert_eq!(text.locate(&error).at, 25..26);
    }
}
