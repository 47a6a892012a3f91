// SPDX-License-Identifier: MIT OR Apache-2.0

//! Layout of the entries, derived from the trigger line above them.

use crate::table::Column;
use crate::table::Fold;
use crate::table::Histogram;
use crate::table::Table;
use crate::table::Text;
use crate::table::Unit;

/// Columns of the entries, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) keys: Vec<Field>,
    /// Without the hitcount, and without expressions, which are not printed.
    pub(super) values: Vec<Field>,
    /// Actions that print stored values.
    pub(super) stored: Vec<Stored>,
    /// Names of the fields printed after each of `stored`.
    pub(super) saved: Vec<Text>,
    /// Index in `stored` of the action that gives [`crate::table::Worst`].
    pub(super) worst: Option<usize>,
}

/// Key or value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Name as printed in entries.
    pub(super) name: Text,
    /// Modifier in the trigger, without `=` and the number.
    pub(super) modifier: Option<Modifier>,
}

/// Format of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    Hex,
    Sym,
    SymOffset,
    Execname,
    Syscall,
    /// `.log2` and `.buckets`. The text of each range shows which of the two it is.
    Range,
    Usecs,
    Percent,
    Graph,
    Stack,
    /// `.stacktrace` of a field of the record.
    FieldStack,
    Min,
    Max,
    Avg,
    Dist,
}

/// Handler of an action that stores values.
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

/// Parses the trigger line. The error describes the fault.
pub(super) fn read(line: &[u8]) -> Result<(Histogram, Layout), String> {
    let (trigger, paused) = match (line.strip_suffix(b" [active]"), line.strip_suffix(b" [paused]")) {
        (Some(trigger), _) => (trigger, false),
        (_, Some(trigger)) => (trigger, true),
        _ => return Err("expected [active] or [paused]".to_owned()),
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
            // Before the sort parameter, variables may have these names.
            b"size" if is_behind_sort => {
                // A size that grows is shown as `A..B`.
                let size = Text::from(rest).to_lossy();
                histogram.size = size.rsplit('.').next().and_then(|most| most.parse().ok()).unwrap_or(0);
            }
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
    /// Adds the columns that an action prints: `onmax($name).save(…)`. Other actions print nothing.
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
        // The dot is part of a variable's name: variables take no modifier.
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

/// Name of the CPU as entries print it. C repeats it in triggers: `common_cpucpu`.
fn once(text: &[u8]) -> &[u8] {
    let again = text.strip_prefix(b"common_cpu").unwrap_or_default();
    match again.split(|&byte| byte == b'.').next() {
        Some(b"common_cpu" | b"cpu" | b"CPU") => again,
        _ => text,
    }
}

/// Returns whether a value is an expression, which C sums without printing it. rhist writes
/// expressions in parentheses, and prints them.
fn is_expression(value: &[u8]) -> bool {
    !value.starts_with(b"(") && value.iter().any(|byte| b"+-*/".contains(byte))
}

/// Splits a text at the first `separator`.
fn find<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((text.get(..at)?, text.get(at + separator.len()..)?))
}

/// Splits a text at the separators outside parentheses. Drops empty parts.
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
