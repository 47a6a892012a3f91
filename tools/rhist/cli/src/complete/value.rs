// SPDX-License-Identifier: MIT OR Apache-2.0

//! Completions for the values of arguments.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;

use clap_complete::engine::CompletionCandidate;
use rhist_core::grammar::FILTER_NAMES;
use rhist_core::grammar::KEY_NAMES;
use rhist_core::grammar::modifier::MODIFIERS;
use rhist_core::grammar::modifier::Modifier;
use rhist_core::grammar::modifier::NumberRule;
use rhist_core::grammar::token::TokenKind;
use rhist_core::grammar::token::tokens;
use rhist_core::plan::task_keys;
use rhist_core::tracefs::format::Field;
use rhist_core::tracefs::format::FieldKind;
use rhist_core::tracefs::format::Format;

use super::line::Line;

/// Kinds of probes, which may replace events. A function follows.
const PROBES: [&str; 7] = [
    "kprobe:",
    "kretprobe:",
    "fprobe:",
    "fexit:",
    "tprobe:",
    "uprobe:",
    "uretprobe:",
];

/// Events; only their systems as long as the word is empty.
pub(super) fn events(line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let events = line
        .tracefs
        .as_ref()
        .and_then(|tracefs| tracefs.events().ok())
        .unwrap_or_default();
    // Probes do not exist before a run, so `show` cannot use them.
    let takes_probes = !line.has_word("show");
    let probes = PROBES
        .iter()
        .filter(|kind| takes_probes && kind.starts_with(word))
        .map(|kind| (*kind).to_owned());
    if word.is_empty() {
        let systems: BTreeSet<String> = events.into_iter().map(|name| name.system + ":").collect();
        let probes = PROBES.map(str::to_owned);
        return systems
            .into_iter()
            .chain(probes)
            .map(CompletionCandidate::new)
            .collect();
    }
    let full = events
        .iter()
        .map(ToString::to_string)
        .filter(|name| name.starts_with(word));
    let mut names: Vec<String> = full.collect();
    names.extend(probes);
    if names.is_empty() {
        let fits = events.iter().filter(|name| name.event.starts_with(word));
        names = fits.map(ToString::to_string).collect();
    }
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Systems of events.
pub(super) fn systems(line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let events = line
        .tracefs
        .as_ref()
        .and_then(|tracefs| tracefs.events().ok())
        .unwrap_or_default();
    let systems: BTreeSet<String> = events.into_iter().map(|name| name.system).collect();
    systems
        .into_iter()
        .filter(|system| system.starts_with(word))
        .map(CompletionCandidate::new)
        .collect()
}

/// Keys in a list: fields with modifiers, and names of the recipe.
pub(super) fn keys(line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let (before, last) = split_list(word);
    let mut formats = line.formats();
    if line.is_between() {
        // Counted at the end event.
        formats = formats.pop().into_iter().collect();
    }
    if let Some((name, modifier)) = last.split_once('.') {
        let before = format!("{before}{name}.");
        return modifiers(&formats, name, modifier)
            .map(|found| found.add_prefix(before.as_str()))
            .collect();
    }
    let measure = line.measure().unwrap_or_default();
    let groups = task_keys(&measure).map(|(name, key)| (name.to_owned(), key));
    let own = measure.keys.into_iter().chain(groups);
    let fields = fields(&formats, Field::is_key);
    let common = KEY_NAMES
        .iter()
        .map(|(name, _, about)| ((*name).to_owned(), (*about).to_owned()));
    candidates(own.chain(fields).chain(common), before, last)
}

/// Keys that link two events: `FIELD`, or `FIELD=FIELD`.
pub(super) fn common_keys(line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let (before, last) = split_list(word);
    let formats = line.formats();
    let (before, last, index) = match last.split_once('=') {
        Some((first, second)) => (format!("{before}{first}="), second, 1),
        None => (before.to_owned(), last, 0),
    };
    let fields = fields(formats.get(index..=index).unwrap_or_default(), Field::is_key);
    let common = [("common_pid", "the thread"), ("common_cpu", "the CPU")];
    let common = common.map(|(name, about)| (name.to_owned(), about.to_owned()));
    candidates(fields.chain(common), &before, last)
}

/// Numeric fields in a list.
pub(super) fn numbers(line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let (before, last) = split_list(word);
    candidates(
        fields(&line.formats(), |field| field.kind == FieldKind::Number),
        before,
        last,
    )
}

/// Filters: a field, or after a comparison the name of a value.
pub(super) fn filter(line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let start = word
        .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map_or(0, |at| at + 1);
    // The character may take more than one byte.
    let start = (start..=word.len())
        .find(|&at| word.is_char_boundary(at))
        .unwrap_or(word.len());
    let (before, last) = word.split_at(start);
    let formats = line.formats();
    if let [.., subject, operator] = tokens(before).as_slice()
        && subject.kind == TokenKind::Word
        && matches!(operator.text, "==" | "!=" | "&" | "<" | ">" | "<=" | ">=")
    {
        let symbols = formats.iter().find_map(|format| format.symbols(subject.text));
        let names = symbols.iter().flat_map(|symbols| symbols.names());
        return candidates(
            names.map(|(value, name)| (value.to_string(), name.clone())),
            before,
            last,
        );
    }
    let common = FILTER_NAMES
        .iter()
        .map(|(name, _, about)| ((*name).to_owned(), (*about).to_owned()));
    candidates(fields(&formats, Field::is_filtered).chain(common), before, last)
}

/// Processes, by number.
pub(super) fn processes(_line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let (before, last) = split_list(word);
    candidates(
        running().into_iter().map(|(pid, comm)| (pid.to_string(), comm)),
        before,
        last,
    )
}

/// Names of processes.
pub(super) fn comms(_line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let names: BTreeSet<String> = running().into_values().collect();
    let safe = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:@+".contains(c));
    candidates(
        names.into_iter().filter(safe).map(|name| (name, String::new())),
        "",
        word,
    )
}

/// Instances of the tracing directory.
pub(super) fn instances(line: &Line, word: &str) -> Vec<CompletionCandidate> {
    let folder = line
        .tracefs
        .as_ref()
        .and_then(|tracefs| fs::read_dir(tracefs.dir().join("instances")).ok());
    let names = folder
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    candidates(names.map(|name| (name, String::new())), "", word)
}

/// Splits a list before its last part.
fn split_list(word: &str) -> (&str, &str) {
    word.split_at(word.rfind(',').map_or(0, |at| at + 1))
}

/// Candidates from `names` (name, description) that begin with `last`. Puts `before` in front of
/// each.
fn candidates(names: impl IntoIterator<Item = (String, String)>, before: &str, last: &str) -> Vec<CompletionCandidate> {
    let mut seen = BTreeSet::new();
    let fits = names
        .into_iter()
        .filter(|(name, _)| name.starts_with(last) && seen.insert(name.clone()));
    fits.map(|(name, about)| {
        let about = (!about.is_empty()).then(|| about.into());
        CompletionCandidate::new(format!("{before}{name}")).help(about)
    })
    .collect()
}

/// Fields common to all these events, with their types.
fn fields(formats: &[Format], select: impl Fn(&Field) -> bool) -> impl Iterator<Item = (String, String)> {
    let in_all = |field: &&Field| formats.iter().all(|format| format.field(&field.name).is_some());
    let first = formats.first();
    let fields = first
        .into_iter()
        .flat_map(Format::own_fields)
        .filter(in_all)
        .filter(|field| select(field));
    fields
        .map(|field| (field.name.clone(), field.ty.clone()))
        .collect::<Vec<_>>()
        .into_iter()
}

/// Modifiers of the field `name` as a key.
fn modifiers(formats: &[Format], name: &str, typed: &str) -> impl Iterator<Item = CompletionCandidate> {
    let known = KEY_NAMES
        .iter()
        .find(|(known, _, _)| *known == name)
        .map(|(_, kind, _)| *kind);
    let kind = known.or_else(|| {
        formats
            .iter()
            .find_map(|format| Some((format.field(name)?.kind, format.text_behind(name).is_some())))
            .map(|(kind, is_elsewhere)| if is_elsewhere { FieldKind::Number } else { kind })
    });
    let fits = |modifier: &&Modifier| {
        modifier.key && modifier.name.starts_with(typed) && kind.is_some_and(|kind| modifier.fits(Some(name), kind))
    };
    MODIFIERS
        .iter()
        .filter(fits)
        .map(|modifier| {
            let sign = if modifier.number == NumberRule::Width { "=" } else { "" };
            CompletionCandidate::new(format!("{}{sign}", modifier.name)).help(Some(modifier.about.into()))
        })
        .collect::<Vec<_>>()
        .into_iter()
}

/// Processes with their names.
fn running() -> BTreeMap<u32, String> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(number);
    let comm = |pid: u32| {
        fs::read_to_string(format!("/proc/{pid}/comm"))
            .ok()
            .map(|comm| (pid, comm.trim().to_owned()))
    };
    all.filter_map(comm).collect()
}
