// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stacks of programs: places in files, as the kernel counts them, and the names of the functions
//! there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Frame;
use super::Key;
use super::Table;
use super::Text;
use super::Worst;

/// A place in a file that programs have mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the file, or of other memory with code, in `user_objects/list`.
    pub object: u32,
    /// Offset in it, in bytes.
    pub offset: u64,
    /// Whether the instruction at it runs next: otherwise, it follows a call.
    pub is_exact: bool,
}

/// A stack of a program, the innermost function first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramStack {
    /// `None` for a place without an object.
    pub places: Vec<Option<Place>>,
    /// How it ended, in the module's words: `whole`, or why it may lack functions.
    pub end: Text,
}

/// Source of names for the functions of programs.
pub trait ProgramNames: fmt::Debug + Send {
    /// Name of the function at a place, or else of its file with an offset. It may have any
    /// characters.
    fn name(&self, place: Place) -> String;

    /// Waits for names that are being read, at most so long.
    fn settle(&self, _most: Duration) {}
}

/// Numbers of objects instead of names: `12+0x1a2b3`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbered;

impl ProgramNames for Numbered {
    fn name(&self, place: Place) -> String {
        format!("{}+{:#x}", place.object, place.offset)
    }
}

/// Ends of stacks that lack nothing: with the outermost function, and of threads of the kernel,
/// which run without a program.
const COMPLETE: [&[u8]; 2] = [b"whole", b"no program"];

impl ProgramStack {
    /// Its functions, the innermost first. If some are missing, the reason follows in parentheses.
    pub fn frames(&self, names: &dyn ProgramNames) -> Vec<Frame> {
        let places = self.places.iter().map(|place| match place {
            Some(place) => names.name(*place),
            None => "?".to_owned(),
        });
        let end = (!COMPLETE.contains(&&*self.end)).then(|| format!("({})", self.end));
        let symbols = places.chain(end);
        symbols.map(Frame::of_program).collect()
    }
}

impl Frame {
    /// The reason why a stack of a program ends early, which stands for functions that it lacks:
    /// without parentheses. `None` for a function.
    pub fn as_end(&self) -> Option<&str> {
        let symbol = self.symbol.as_deref().filter(|_| self.address.is_none())?;
        let reason = symbol.strip_prefix('(')?.strip_suffix(')')?;
        // Not `(anonymous namespace)::f()`.
        (!reason.contains(['(', ')', ':'])).then_some(reason)
    }

    /// A function of a program, by its name.
    fn of_program(symbol: String) -> Self {
        Self {
            address: None,
            symbol: Some(symbol),
        }
    }
}

impl Key {
    /// The key with names, if it is a stack of a program.
    fn with_names(&self, names: &dyn ProgramNames) -> Option<Self> {
        match self {
            Self::Program(stack) => Some(Self::Stack(stack.frames(names))),
            _ => None,
        }
    }
}

impl Worst {
    fn with_names(&self, names: &dyn ProgramNames) -> Option<Self> {
        let is_program = |(_, key): &(Arc<str>, Key)| matches!(key, Key::Program(_));
        self.saved.iter().any(is_program).then(|| {
            let saved = self.saved.iter();
            let saved =
                saved.map(|(name, key)| (Arc::clone(name), key.with_names(names).unwrap_or_else(|| key.clone())));
            Self {
                value: self.value,
                saved: saved.collect(),
            }
        })
    }
}

impl Table {
    /// Names the functions of programs in its keys and saved fields. Merges rows whose functions
    /// have the same names.
    pub fn name_programs(&mut self, names: &dyn ProgramNames) {
        let mut is_changed = false;
        for row in &mut self.rows {
            for key in &mut row.keys {
                if let Some(named) = key.with_names(names) {
                    *key = named;
                    is_changed = true;
                }
            }
            if let Some(named) = row.worst.as_ref().and_then(|worst| worst.with_names(names)) {
                row.worst = Some(named);
            }
        }
        if is_changed {
            // Leaves out no key, but merges rows with equal keys.
            *self = self.without_key(self.keys.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;
    use crate::table::Row;
    use crate::table::Value;

    /// Names the objects 1 and 2.
    #[derive(Debug)]
    struct Known;

    impl ProgramNames for Known {
        fn name(&self, place: Place) -> String {
            match place.object {
                1 => "main".to_owned(),
                2 if place.is_exact => "exact".to_owned(),
                2 => "return".to_owned(),
                _ => Numbered.name(place),
            }
        }
    }

    fn stack(places: &[Option<(u32, u64, bool)>], end: &str) -> Key {
        let place = |&(object, offset, is_exact)| Place {
            object,
            offset,
            is_exact,
        };
        Key::Program(Box::new(ProgramStack {
            places: places.iter().map(|found| found.as_ref().map(place)).collect(),
            end: end.into(),
        }))
    }

    fn row(keys: &[Key], hits: u64, saved: Option<Key>) -> Row {
        Row {
            keys: keys.iter().cloned().collect(),
            hits,
            values: vec![Value::Number(hits.into())],
            worst: saved.map(|key| Worst {
                value: hits.into(),
                saved: [("s".into(), key)].into(),
            }),
            ..Row::default()
        }
    }

    #[test]
    fn functions_have_names() {
        let deep = stack(
            &[Some((2, 16, true)), Some((2, 32, false)), None, Some((3, 255, false))],
            "no rules",
        );
        assert_eq!(deep.to_string(), "(no rules);3+0xff;?;2+0x20;2+0x10");
        assert_eq!(
            deep.with_names(&Known).unwrap().to_string(),
            "(no rules);3+0xff;?;return;exact"
        );
        let whole = stack(&[Some((1, 0, true))], "whole");
        assert_eq!(whole.to_string(), "1+0x0");
        assert_eq!(whole.with_names(&Known).unwrap().to_string(), "main");
        assert_eq!(stack(&[], "no program").to_string(), "");
        assert!(!whole.has_address());
        assert_eq!(Key::Number(1).with_names(&Known), None);
    }

    #[test]
    fn ends_are_no_functions() {
        let end = |symbol: &str| Frame::of_program(symbol.to_owned()).as_end().map(str::to_owned);
        assert_eq!(end("(no rules)").as_deref(), Some("no rules"));
        for function in ["main", "(anonymous namespace)::f()", "(f)(g)", "()::", "(", ")"] {
            assert_eq!(end(function), None, "{function}");
        }
        let kernel = Frame {
            address: Some(1),
            symbol: Some("(depth)".to_owned()),
        };
        assert_eq!(kernel.as_end(), None);
    }

    #[test]
    fn rows_whose_functions_are_the_same_are_one() {
        let comm = |name: &str| Key::Text(name.into());
        let first = stack(&[Some((1, 1, true))], "whole");
        let second = stack(&[Some((1, 2, true))], "whole");
        let mut table = Table {
            keys: vec![Column::default(), Column::default()],
            values: vec![Column::default()],
            rows: vec![
                row(&[comm("a"), first.clone()], 3, Some(second.clone())),
                row(&[comm("a"), second.clone()], 4, None),
                row(&[comm("b"), first.clone()], 5, Some(comm("c"))),
            ],
            ..Table::default()
        };
        let main = Key::Stack(vec![Frame::of_program("main".to_owned())]);
        table.name_programs(&Known);
        let rows: Vec<_> = table.rows.iter().map(|row| (row.keys.to_vec(), row.hits)).collect();
        assert_eq!(
            rows,
            [(vec![comm("a"), main.clone()], 7), (vec![comm("b"), main.clone()], 5)]
        );
        let saved = |row: &Row| row.worst.as_ref().map(|worst| worst.saved[0].1.clone());
        assert_eq!(saved(&table.rows[1]), Some(comm("c")));
        // Without such keys, but with a saved one.
        let mut saved_only = Table {
            keys: vec![Column::default()],
            values: vec![Column::default()],
            rows: vec![row(&[comm("a")], 1, Some(second))],
            ..Table::default()
        };
        saved_only.name_programs(&Known);
        assert_eq!(saved(&saved_only.rows[0]), Some(main));
    }
}
