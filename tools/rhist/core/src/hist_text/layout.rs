// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the line of a trigger says of the entries below it.

use crate::table::Column;
use crate::table::Fold;
use crate::table::Histogram;
use crate::table::Table;
use crate::table::Text;
use crate::table::Unit;

/// How entries are shown.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) keys: Vec<Field>,
    /// Without the hitcount, and without expressions, which are not shown.
    pub(super) values: Vec<Field>,
    /// Actions that show what they have stored.
    pub(super) stored: Vec<Stored>,
    /// What is shown behind each of these.
    pub(super) saved: Vec<Text>,
    /// Which of these has the largest value that is of interest.
    pub(super) worst: Option<usize>,
}

/// A key or a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Its name in entries.
    pub(super) name: Text,
    /// What is behind the name in the trigger, without `=` and what follows that.
    pub(super) modifier: Option<Modifier>,
}

/// How a field is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    Hex,
    Sym,
    SymOffset,
    Execname,
    Syscall,
    /// Also `.buckets`: how each range is shown tells which it is.
    Range,
    Usecs,
    Percent,
    Graph,
    Stack,
    /// `.stacktrace` of a field.
    FieldStack,
    Min,
    Max,
    Avg,
    Dist,
}

/// What an action stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Max,
    Changed,
}

const MODIFIERS: &[(&str, Modifier)] = &[
    ("hex", Modifier::Hex),
    ("sym", Modifier::Sym),
    ("sym-offset", Modifier::SymOffset),
    ("execname", Modifier::Execname),
    ("syscall", Modifier::Syscall),
    ("log2", Modifier::Range),
    ("buckets", Modifier::Range),
    ("usecs", Modifier::Usecs),
    ("percent", Modifier::Percent),
    ("graph", Modifier::Graph),
    ("stacktrace", Modifier::FieldStack),
    ("min", Modifier::Min),
    ("max", Modifier::Max),
    ("avg", Modifier::Avg),
    ("dist", Modifier::Dist),
];

/// Reads the line of a trigger. Fails with what is wrong with it.
pub(super) fn read(line: &[u8]) -> Result<(Histogram, Layout), String> {
    let (trigger, paused) = match (line.strip_suffix(b" [active]"), line.strip_suffix(b" [paused]")) {
        (Some(trigger), _) => (trigger, false),
        (_, Some(trigger)) => (trigger, true),
        _ => return Err("the trigger is neither active nor paused".to_owned()),
    };
    let (command, filter) = match find(trigger, b" if ") {
        Some((command, filter)) => (command, Some(Text::from(filter))),
        None => (trigger, None),
    };
    let mut histogram = Histogram {
        trigger: Text::from(trigger),
        filter,
        paused,
        ..Histogram::default()
    };
    let mut layout = Layout::default();
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    let mut is_behind_sort = false;
    for token in split(command, b':') {
        let (word, rest) = find(token, b"=").unwrap_or((token, b""));
        match word {
            b"keys" if keys.is_empty() => keys = split(rest, b','),
            b"vals" if values.is_empty() => values = split(rest, b','),
            b"name" if keys.is_empty() => histogram.name = Some(Text::from(rest)),
            b"sort" if !keys.is_empty() => is_behind_sort = true,
            // Before it may be variables with these names.
            b"size" if is_behind_sort => histogram.size = Text::from(rest).to_lossy().parse().unwrap_or(0),
            b"clock" if is_behind_sort => histogram.clock = Some(Text::from(rest).to_lossy()),
            _ => layout.action(token),
        }
    }
    if values.first() != Some(&&b"hitcount"[..]) || keys.is_empty() {
        return Err("the trigger shows no keys or no hitcount, so this cannot be counted".to_owned());
    }
    layout.keys = keys.into_iter().map(Field::key).collect();
    let shown = values.into_iter().skip(1).filter(|value| !is_expression(value));
    layout.values = shown.map(Field::value).collect();
    histogram.table = Table {
        keys: layout.keys.iter().map(Field::column).collect(),
        values: layout.values.iter().map(Field::column).collect(),
        ..Table::default()
    };
    Ok((histogram, layout))
}

impl Layout {
    /// Notes what an action shows: `onmax($name).save(…)`. Others show nothing.
    fn action(&mut self, token: &[u8]) {
        let stored = match token {
            _ if token.starts_with(b"onmax(") => Stored::Max,
            _ if token.starts_with(b"onchange(") => Stored::Changed,
            _ => return,
        };
        let Some((_, action)) = find(token, b").") else {
            return;
        };
        let (name, fields) = find(action, b"(").unwrap_or((action, b""));
        let fields = fields.strip_suffix(b")").unwrap_or(fields);
        if name == b"snapshot" {
            return;
        }
        let saves = name == b"save";
        if saves {
            self.saved = split(fields, b',').into_iter().map(Text::from).collect();
        }
        if stored == Stored::Max && (saves || self.worst.is_none()) {
            self.worst = Some(self.stored.len());
        }
        self.stored.push(stored);
    }
}

impl Field {
    fn key(text: &[u8]) -> Field {
        if matches!(text, b"common_stacktrace" | b"stacktrace") {
            return Field {
                name: Text::from(text),
                modifier: Some(Modifier::Stack),
            };
        }
        Field::value(text)
    }

    fn value(text: &[u8]) -> Field {
        // A variable has no modifier: its name may have a point.
        if let Some(variable) = text.strip_prefix(b"$") {
            return Field {
                name: Text::from(variable),
                modifier: None,
            };
        }
        let text = once(text);
        let point = text.iter().rposition(|&byte| byte == b'.');
        let (name, word) = text.split_at(point.unwrap_or(text.len()));
        let word = word.split(|&byte| byte == b'=').next().unwrap_or_default();
        let word = word.strip_prefix(b".").unwrap_or_default();
        let known = MODIFIERS.iter().find(|(known, _)| known.as_bytes() == word);
        match known {
            Some(&(_, modifier)) => Field {
                name: Text::from(name),
                modifier: Some(modifier),
            },
            None => Field {
                name: Text::from(text),
                modifier: None,
            },
        }
    }

    fn column(&self) -> Column {
        Column {
            name: self.name.to_lossy(),
            unit: match self.modifier {
                Some(Modifier::Usecs) => Unit::Microseconds,
                _ => Unit::Plain,
            },
            fold: match self.modifier {
                Some(Modifier::Min) => Fold::Min,
                Some(Modifier::Max) => Fold::Max,
                _ => Fold::Sum,
            },
        }
    }
}

/// The CPU's name as it is in entries: C says it twice in triggers, `common_cpucpu`.
fn once(text: &[u8]) -> &[u8] {
    let again = text.strip_prefix(b"common_cpu").unwrap_or_default();
    match again.split(|&byte| byte == b'.').next() {
        Some(b"common_cpu" | b"cpu" | b"CPU") => again,
        _ => text,
    }
}

/// Whether a value is one that is summed up, but not shown: those of rhist in parentheses are.
fn is_expression(value: &[u8]) -> bool {
    !value.starts_with(b"(") && value.iter().any(|byte| b"+-*/".contains(byte))
}

/// What is before and behind the first `separator`.
fn find<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((text.get(..at)?, text.get(at + separator.len()..)?))
}

/// The parts of a text between separators that are not in parentheses. None of them is empty.
fn split(text: &[u8], separator: u8) -> Vec<&[u8]> {
    let mut depth = 0usize;
    let parts = text.split(|&byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        byte == separator && depth == 0
    });
    parts.filter(|part| !part.is_empty()).collect()
}
