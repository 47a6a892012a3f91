// SPDX-License-Identifier: MIT OR Apache-2.0

//! Text that is safe to show, made of text that a hostile file may contain.

use crate::limits::MOST_SHOWN;
use std::fmt;
use std::fmt::Write;
use std::ops::Deref;

/// A name that is safe in a table, on a terminal, and as a frame of a folded stack:
///
/// * characters that a terminal interprets, that change the direction of a text, or that lack a
///   width are escaped, as `\u{1b}`; a backslash is `\\`; bytes that are not UTF-8 are as `\xff`;
/// * `;`, which separates frames, is `:`, as in all folded stacks of rhist;
/// * the only blank is a single space between other characters, as in `operator new(unsigned
///   long)`: a folded stack is split at its last space. All others are escaped, as `\u{20}`;
/// * it is not empty, and has [`MOST_SHOWN`] bytes at most, then `…` for the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shown(String);

impl Shown {
    /// A text that is not the name of a function, such as the name of a file.
    pub fn of_text(text: &[u8]) -> Self {
        let mut escaper = Escaper::default();
        // An error means that it is full, and finish() says so.
        let _ = escaper.bytes(text);
        escaper.finish("")
    }
}

impl Deref for Shown {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Makes a text safe while it is written. Fails when it is full, so that a demangler stops.
#[derive(Default)]
pub(crate) struct Escaper {
    text: String,
    /// A space that stays one if another character follows.
    has_space: bool,
    pub(crate) is_full: bool,
}

impl Escaper {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        for chunk in bytes.utf8_chunks() {
            self.write_str(chunk.valid())?;
            for byte in chunk.invalid() {
                self.part(&format!("\\x{byte:02x}"))?;
            }
        }
        Ok(())
    }

    /// Appends a suffix of our own, also to a text that is full.
    pub(crate) fn finish(mut self, suffix: &str) -> Shown {
        if self.has_space && !self.is_full {
            let _ = self.append("\\u{20}");
        }
        if self.is_full {
            self.text.push('…');
        }
        self.text.push_str(suffix);
        if self.text.is_empty() {
            self.text.push('?');
        }
        Shown(self.text)
    }

    /// Appends something visible, behind the space that may come before it.
    fn part(&mut self, part: &str) -> fmt::Result {
        if self.has_space {
            self.has_space = false;
            self.append(" ")?;
        }
        self.append(part)
    }

    fn space(&mut self) -> fmt::Result {
        if self.has_space || self.text.is_empty() {
            self.append("\\u{20}")
        } else {
            self.has_space = true;
            Ok(())
        }
    }

    fn append(&mut self, part: &str) -> fmt::Result {
        if self.is_full || self.text.len() + part.len() > MOST_SHOWN {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

impl Write for Escaper {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                ' ' => self.space()?,
                ';' => self.part(":")?,
                '\\' => self.part("\\\\")?,
                _ if is_unsafe(character) => self.part(&character.escape_unicode().to_string())?,
                _ => self.part(character.encode_utf8(&mut [0; 4]))?,
            }
        }
        Ok(())
    }
}

/// Whether a character would change the way a terminal shows the rest, or looks like none or a
/// blank.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || character.is_whitespace()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
