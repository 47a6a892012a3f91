// SPDX-License-Identifier: MIT OR Apache-2.0

//! Decodes keys from the bytes of a terminal.
//!
//! Does not use crossterm, which needs Unix sockets (missing in a small kernel), and reads in a
//! loop from a closed terminal.

/// A key of the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Character, other than a control character.
    Char(char),
    /// Letter with Control.
    Control(char),
    /// Return.
    Enter,
    /// The Escape key itself, rather than the start of a sequence.
    Esc,
    /// Deletes a character of the filter.
    Backspace,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// One page towards the beginning.
    PageUp,
    /// One page towards the end.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
}

/// Longest sequence of bytes for one key.
const MAX_SEQUENCE: usize = 32;

/// Takes all complete keys out of `bytes`. Drops unknown keys.
pub fn take(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((key, after)) = first(rest) {
        keys.extend(key);
        rest = after;
    }
    let left = if rest.len() > MAX_SEQUENCE {
        Vec::new()
    } else {
        rest.to_vec()
    };
    *bytes = left;
    keys
}

/// Decodes the first key. Returns it, if it is a known one, and the bytes after it. `None` if it is
/// incomplete.
fn first(bytes: &[u8]) -> Option<(Option<Key>, &[u8])> {
    match bytes {
        [] | [0x1b, b'[' | b'O'] => None,
        [0x1b, b'[', b'[', rest @ ..] => {
            // F1 to F5 on the console.
            let (_, after) = rest.split_first()?;
            Some((None, after))
        }
        [0x1b, b'[' | b'O', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            let (numbers, after) = rest.split_at(end);
            let (last, after) = after.split_first()?;
            Some((sequence(numbers, *last), after))
        }
        [0x1b, after @ ..] => Some((Some(Key::Esc), after)),
        [b'\r' | b'\n', after @ ..] => Some((Some(Key::Enter), after)),
        [0x08 | 0x7f, after @ ..] => Some((Some(Key::Backspace), after)),
        [byte @ 0x01..=0x1a, after @ ..] => Some((Some(Key::Control((byte + b'a' - 1).into())), after)),
        _ => character(bytes),
    }
}

/// Decodes a sequence that begins with ESC [ or ESC O.
fn sequence(numbers: &[u8], last: u8) -> Option<Key> {
    match (last, numbers) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'H', _) | (b'~', b"1" | b"7") => Some(Key::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(Key::End),
        (b'M', b"") => Some(Key::Enter),
        (b'~', b"5") => Some(Key::PageUp),
        (b'~', b"6") => Some(Key::PageDown),
        _ => None,
    }
}

fn character(bytes: &[u8]) -> Option<(Option<Key>, &[u8])> {
    let chunk = bytes.utf8_chunks().next()?;
    if let Some(character) = chunk.valid().chars().next() {
        let key = (!character.is_control()).then_some(Key::Char(character));
        return Some((key, bytes.get(character.len_utf8()..)?));
    }
    let invalid = chunk.invalid().len();
    // The rest of a character may arrive later.
    if invalid == bytes.len() && invalid < 4 && bytes.first().is_some_and(|byte| *byte >= 0xc2) {
        return None;
    }
    Some((None, bytes.get(invalid..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(bytes: &[u8]) -> (Vec<Key>, Vec<u8>) {
        let mut bytes = bytes.to_vec();
        (take(&mut bytes), bytes)
    }

    #[test]
    fn keys_of_many_terminals() {
        use Key::*;
        assert_eq!(keys(b"q\x1b[A\x1bOB\x1b[1;5A").0, [Char('q'), Up, Down, Up]);
        assert_eq!(
            keys(b"\x1b[1~\x1b[H\x1bOH\x1b[4~\x1b[5~\x1b[6~").0,
            [Home, Home, Home, End, PageUp, PageDown]
        );
        assert_eq!(
            keys(b"\r\n\x7f\x08\x03\x1a").0,
            [Enter, Enter, Backspace, Backspace, Control('c'), Control('z')]
        );
        assert_eq!(keys("µ漢\u{9b}".as_bytes()).0, [Char('µ'), Char('漢')]);
        assert_eq!(keys(b"\x1b[[A\x1b[15~x\xff\xfey").0, [Char('x'), Char('y')]);
        assert_eq!(keys(b"\x1b").0, [Esc]);
        assert_eq!(keys(b"\x1bt").0, [Esc, Char('t')]);
    }

    #[test]
    fn what_is_not_whole_waits() {
        assert_eq!(keys(b"a\x1b["), (vec![Key::Char('a')], b"\x1b[".to_vec()));
        assert_eq!(keys(b"\xe6\xbc"), (vec![], b"\xe6\xbc".to_vec()));
        assert_eq!(keys(&[b"\x1b[".as_slice(), &[b'0'; 100]].concat()), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            let (keys, left) = keys(&bytes);
            prop_assert!(keys.len() <= bytes.len() && left.len() <= MAX_SEQUENCE);
            prop_assert!(!keys.iter().any(|key| matches!(key, Key::Char(character) if character.is_control())));
        }

        #[test]
        fn in_any_pieces(text in "[a-zµ漢]{0,10}", at in 0..20usize) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(at.min(bytes.len()));
            let mut pending = a.to_vec();
            let mut keys = take(&mut pending);
            pending.extend(b);
            keys.extend(take(&mut pending));
            let all: Vec<_> = text.chars().map(Key::Char).collect();
            prop_assert_eq!(keys, all);
        }
    }
}
