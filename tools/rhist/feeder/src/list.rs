// SPDX-License-Identifier: MIT OR Apache-2.0

//! `user_objects/list`: the objects that words of stacks name.

use std::fmt;

/// The columns of a list without a line that names them.
const COLUMNS: &str = "number kind device inode generation size changed process state";

/// Columns that, besides the number, change only if the number has been given to another object.
const IDENTITY: [&str; 8] = [
    "kind",
    "device",
    "inode",
    "generation",
    "size",
    "changed",
    "process",
    "begin",
];

/// A line of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Name of its folder.
    pub number: u32,
    /// `file`, `vdso`, or another kind.
    pub kind: String,
    /// Device of its file system, `MAJOR:MINOR`; `-` if it has none.
    pub device: String,
    /// Number of its inode; `-` if it has none.
    pub inode: String,
    /// All columns that say which object it is.
    pub identity: String,
    /// The process of code without a file.
    pub process: Option<u32>,
    /// Where that code is in the process; `None` without the right to see it.
    pub begin: Option<u64>,
    /// Whether its file can be opened now.
    pub is_readable: bool,
    /// Whether it has rules.
    pub has_rules: bool,
}

impl Object {
    /// Whether it is the code that the kernel maps into each program (vDSO).
    pub fn is_vdso(&self) -> bool {
        self.kind == "vdso"
    }

    /// Whether it is code without a file, and where it is in its process is known.
    pub fn is_found_memory(&self) -> bool {
        self.process.is_some() && self.begin.is_some()
    }

    /// Whether rules can be made for it.
    pub fn has_code(&self) -> bool {
        self.is_vdso() || self.kind == "file"
    }
}

/// `object 7 (device 8:1, inode 123)`, as neither list nor module know a path.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.number)?;
        match self.process {
            _ if self.is_vdso() => f.write_str(" (vDSO)"),
            Some(process) => write!(f, " (memory of {process})"),
            None => write!(f, " (device {}, inode {})", self.device, self.inode),
        }
    }
}

/// Reads the list. Columns are found by their names in the first line, so there may be more of
/// them, in any order, but the state comes last. A line that lacks a number is left out.
pub fn parse(text: &str) -> Vec<Object> {
    let mut columns: Vec<&str> = COLUMNS.split(' ').collect();
    let mut objects = Vec::new();
    for line in text.lines() {
        match line.strip_prefix('#') {
            Some(names) => columns = names.split_whitespace().collect(),
            None => objects.extend(object(&columns, line)),
        }
    }
    objects
}

fn object(columns: &[&str], line: &str) -> Option<Object> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let column = |name: &str| Some(*words.get(columns.iter().position(|column| *column == name)?)?);
    let text = |name: &str| column(name).unwrap_or("-").to_owned();
    let state = columns.iter().position(|column| *column == "state")?;
    // Such as `rules,readable`, and numbers behind it.
    let states = words.get(state..)?.iter().flat_map(|word| word.split(','));
    let identity: Vec<&str> = IDENTITY.iter().filter_map(|name| column(name)).collect();
    Some(Object {
        number: column("number")?.parse().ok()?,
        kind: text("kind"),
        device: text("device"),
        inode: text("inode"),
        identity: identity.join(" "),
        process: column("process").and_then(|process| process.parse().ok()),
        begin: column("begin").and_then(|begin| u64::from_str_radix(begin, 16).ok()),
        is_readable: states.clone().any(|state| state == "readable"),
        has_rules: states.clone().any(|state| state == "rules"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# number kind device inode generation size changed process begin state
0 vdso - - - - - - - rules
3 file 8:1 123 7 4567 1700000000000000000 - - readable
4 file 0:24 9 0 10 5 - - rules,readable
5 memory - - - - - 77 7f0000001000 released
6 memory - - - - - 77 - released
";

    #[test]
    fn objects_of_each_kind_and_state() {
        let list = parse(LIST);
        let known: Vec<_> = list
            .iter()
            .map(|object| {
                (
                    object.number,
                    object.has_code(),
                    object.is_readable,
                    object.has_rules,
                    object.to_string(),
                )
            })
            .collect();
        let text = str::to_owned;
        assert_eq!(
            known,
            [
                (0, true, false, true, text("object 0 (vDSO)")),
                (3, true, true, false, text("object 3 (device 8:1, inode 123)")),
                (4, true, true, true, text("object 4 (device 0:24, inode 9)")),
                (5, false, false, false, text("object 5 (memory of 77)")),
                (6, false, false, false, text("object 6 (memory of 77)")),
            ]
        );
        assert_eq!((list[1].process, list[3].process), (None, Some(77)));
        assert_eq!((list[3].begin, list[4].begin), (Some(0x7f00_0000_1000), None));
        let found: Vec<bool> = list.iter().map(Object::is_found_memory).collect();
        assert_eq!(found, [false, false, false, true, false]);
        assert_eq!(list[1].identity, "file 8:1 123 7 4567 1700000000000000000 - -");
    }

    #[test]
    fn columns_may_move_and_be_more() {
        let moved = "# hits number inode device kind build state\n9 3 123 8:1 file abc rules rows 5 bytes 60\n";
        let [object] = &parse(moved)[..] else { panic!() };
        assert_eq!((object.number, object.has_rules, object.is_readable), (3, true, false));
        // Hits are not part of it.
        assert_eq!(object.identity, "file 8:1 123");
        let [object] = &parse("3 file 8:1 123 7 4567 5 - released\n")[..] else {
            panic!()
        };
        assert_eq!((object.number, object.is_readable), (3, false));
    }

    #[test]
    fn lines_that_are_cut_off_or_strange_are_left_out() {
        for len in 0..LIST.len() {
            assert!(parse(&LIST[..len]).len() <= 5);
        }
        assert_eq!(
            parse("# number\n3\n\nx file\n# number state\n-1 rules\n4294967296 rules\n"),
            []
        );
    }
}
