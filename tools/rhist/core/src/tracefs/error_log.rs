// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads `error_log`, in which the kernel explains why it rejected a command.

use std::ops::Range;

/// An entry of `error_log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Message: `Couldn't find field`.
    pub sentence: String,
    /// The rejected command, or only its filter if the fault is there.
    pub command: String,
    /// Position of the fault in `command`, in bytes. May be its end.
    pub position: usize,
}

/// Prefix of the line with the command.
const COMMAND: &str = "  Command: ";

impl LogEntry {
    /// Parses the last entry in the contents of `error_log`.
    pub fn last(log: &str) -> Option<Self> {
        let start = log
            .rfind(COMMAND)
            .filter(|&at| at == 0 || log.as_bytes().get(at - 1) == Some(&b'\n'))?;
        let head = log[..start].trim_end_matches('\n');
        let head = head.rsplit('\n').next().unwrap_or_default();
        let sentence = head.split_once("error: ").map_or(head, |(_, sentence)| sentence);
        // Entries about filters repeat the word: "event filter parse error: error: Field not
        // found".
        let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence);

        let rest = &log[start + COMMAND.len()..];
        let rest = rest.strip_suffix('\n').unwrap_or(rest);
        let (command, caret) = match rest.rsplit_once('\n') {
            Some((command, line)) if line.trim_start_matches([' ', '\t']) == "^" => (command, line.len() - 1),
            _ => (rest, 0),
        };
        let mut position = caret.saturating_sub(COMMAND.len()).min(command.len());
        while !command.is_char_boundary(position) {
            position -= 1;
        }
        Some(Self {
            sentence: sentence.to_owned(),
            command: command.to_owned(),
            position,
        })
    }

    /// Position of the fault in `text`, a part of the command that a person wrote. The kernel may
    /// point behind a filter in parentheses. `None` if the fault is elsewhere in the command, or
    /// the command contains the text more than once.
    pub fn position_in(&self, text: &str) -> Option<usize> {
        let mut places = self.command.match_indices(text).map(|(at, _)| at);
        let at = places.next().filter(|_| !text.is_empty())?;
        let offset = self.position.checked_sub(at)?;
        let behind = self.command.get(at + text.len()..self.position).unwrap_or_default();
        (places.next().is_none() && behind.chars().all(|c| matches!(c, ' ' | ')'))).then_some(offset.min(text.len()))
    }

    /// The word at a position in a text, or the one that ends before it: the kernel points behind a
    /// word of a filter, or one further.
    pub fn word_at(text: &str, position: usize) -> Range<usize> {
        let is_word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let mut position = position.min(text.len());
        while !text.is_char_boundary(position) {
            position -= 1;
        }
        let (before, after) = text.split_at(position);
        let length = |found: usize| after.chars().take_while(is_word).map(char::len_utf8).sum::<usize>() + found;
        let back = |text: &str| {
            text.chars()
                .rev()
                .take_while(is_word)
                .map(char::len_utf8)
                .sum::<usize>()
        };
        if after.starts_with(|c| is_word(&c)) {
            return position - back(before)..position + length(0);
        }
        let trimmed = before.trim_end();
        let word = back(trimmed);
        match before.len() - trimmed.len() {
            0 | 1 if word > 0 => trimmed.len() - word..trimmed.len(),
            _ => position..position + after.chars().next().map_or(0, char::len_utf8),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOG: &str = "\
[    0.690000] hist:sched:sched_switch: error: Couldn't find field
  Command: hist:keys=next_pidd
                     ^
[    0.720000] event filter parse error: error: Field not found
  Command: prev_pidd == 3
                     ^
";

    #[test]
    fn last_entry() {
        let entry = LogEntry::last(LOG).unwrap();
        assert_eq!(entry.sentence, "Field not found");
        assert_eq!(entry.command, "prev_pidd == 3");
        assert_eq!(entry.position, 10);
        let first = LogEntry::last(&LOG[..LOG.find("[    0.72").unwrap()]).unwrap();
        assert_eq!(first.sentence, "Couldn't find field");
        assert_eq!(&first.command[first.position..], "next_pidd");
    }

    #[test]
    fn position_in_a_part() {
        let entry = LogEntry::last(&LOG[..LOG.find("[    0.72").unwrap()]).unwrap();
        assert_eq!(entry.position_in("next_pidd"), Some(0));
        assert_eq!(entry.position_in("hist"), None);
        assert_eq!(entry.position_in("e"), None);
        assert_eq!(entry.position_in(""), None);
    }

    #[test]
    fn position_behind_a_part() {
        let command = "(function == none) && (pid != 1)".to_owned();
        let at = |position| LogEntry {
            command: command.clone(),
            sentence: String::new(),
            position,
        };
        assert_eq!(at(19).position_in("function == none"), Some(16));
        assert_eq!(at(24).position_in("function == none"), None);
        assert_eq!(at(24).position_in("pid != 1"), Some(1));
    }

    #[test]
    fn words() {
        assert_eq!(LogEntry::word_at("prev_pidd == 3", 10), 0..9);
        assert_eq!(LogEntry::word_at("prev_pid == abc", 13), 12..15);
        assert_eq!(LogEntry::word_at("(a == 3", 0), 0..1);
        assert_eq!(LogEntry::word_at("", 7), 0..0);
    }

    proptest! {
        #[test]
        fn never_panics(log in "[ -~é\n]{0,30}(\n  Command: [a-zé .\n]{0,9}\n {0,30}\\^?\n?){0,3}", text in "[a-zé]{0,3}", at in 0usize..50) {
            if let Some(entry) = LogEntry::last(&log) {
                prop_assert!(entry.command.is_char_boundary(entry.position));
                let _ = entry.position_in(&text);
                let word = LogEntry::word_at(&entry.command, at);
                prop_assert!(entry.command.get(word).is_some());
            }
        }
    }
}
