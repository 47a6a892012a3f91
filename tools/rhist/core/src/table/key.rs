// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys of rows, and the texts in them.

use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

use super::Numbered;
use super::ProgramStack;

/// A text from the kernel, of any bytes. Up to 16 bytes, such as names of tasks, need no
/// allocation. [`fmt::Display`] escapes everything that a terminal would interpret.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(SmallVec<[u8; 16]>);

/// A key of a row, or a saved field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Number. Covers any `u64` and any `i64`.
    Number(i128),
    /// String of any bytes.
    Text(Text),
    /// Task (`.execname`).
    Task {
        /// Thread ID.
        pid: i64,
        /// Name at the first hit.
        comm: Text,
    },
    /// System call (`.syscall`).
    Syscall {
        /// Number on this architecture.
        number: i64,
        /// Name without `sys_`. `None` for an invalid number.
        name: Option<String>,
    },
    /// Address (`.sym`, `.sym-offset`).
    Address(Frame),
    /// Stack, the innermost function first.
    Stack(Vec<Frame>),
    /// Stack of a program whose functions have not been named yet.
    Program(Box<ProgramStack>),
    /// Range of numbers, both ends included (`.log2`, `.buckets=`).
    Range {
        /// First number.
        first: i128,
        /// Last number.
        last: i128,
    },
    /// Stands for keys without a row: all keys of such a row are this one.
    Other(Other),
}

/// Reason why keys lack a row of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Other {
    /// Their hits came while the histogram was full (`full(other)`).
    Folded,
    /// They were idle (`expire()`).
    Expired,
    /// Their places were needed (`full(recycle)`).
    Recycled,
}

impl Other {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Folded, Self::Expired, Self::Recycled];

    /// Name in files of rhist.
    pub fn word(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Expired => "expired",
            Self::Recycled => "recycled",
        }
    }

    /// Parses the name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|other| other.word() == word)
    }
}

/// An address with its symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// `None` if the kernel has printed only the symbol.
    pub address: Option<u64>,
    /// Symbol with offset, as the kernel has printed it. `None` if the address has no symbol.
    pub symbol: Option<String>,
}

impl Key {
    /// Key that the kernel does not know. Prints as `?`.
    pub const UNKNOWN: Key = Key::Address(Frame {
        address: None,
        symbol: None,
    });

    /// Returns whether it contains kernel addresses, even as numbers.
    pub fn has_address(&self) -> bool {
        match self {
            Key::Number(number) => is_kernel_address(*number),
            Key::Range { first, last } => is_kernel_address(*first) || is_kernel_address(*last),
            Key::Address(frame) => frame.address.is_some(),
            Key::Stack(frames) => frames.iter().any(|frame| frame.address.is_some()),
            _ => false,
        }
    }

    /// Removes addresses. A key without a symbol becomes unknown.
    pub fn remove_address(&mut self) {
        match self {
            Key::Number(_) | Key::Range { .. } if self.has_address() => *self = Key::UNKNOWN,
            Key::Address(frame) => frame.address = None,
            Key::Stack(frames) => frames.iter_mut().for_each(|frame| frame.address = None),
            _ => (),
        }
    }
}

/// Keys of a row to show: only one if it stands for keys without a row, since all are the same.
pub fn shown(keys: &[Key]) -> &[Key] {
    match keys {
        [other @ Key::Other(_), ..] => std::slice::from_ref(other),
        _ => keys,
    }
}

/// Returns whether a number of 64 bits can be a kernel address, on any architecture. In a signed
/// field, addresses are negative.
///
/// Excludes the last 10 MB, which contain only fixed mappings (on x86 after the modules, and on
/// arm64), at addresses that are not secret. Thus errors, and most negative differences, do not
/// count as addresses.
pub fn is_kernel_address(number: i128) -> bool {
    const FIRST: i128 = 0xffff_0000_0000_0000;
    const END: i128 = 0xffff_ffff_ff60_0000;
    let unsigned = if number < 0 { number + (1 << 64) } else { number };
    (FIRST..END).contains(&unsigned)
}

impl Text {
    /// Parses the form that [`fmt::Display`] prints.
    pub fn shown(shown: &str) -> Self {
        let mut bytes = SmallVec::new();
        let mut rest = shown;
        while let Some((plain, escape)) = rest.split_once('\\') {
            bytes.extend_from_slice(plain.as_bytes());
            let (character, after) = escaped(escape).unwrap_or_else(|| (b"\\".to_vec(), escape));
            bytes.extend_from_slice(&character);
            rest = after;
        }
        bytes.extend_from_slice(rest.as_bytes());
        Text(bytes)
    }

    /// Converts to a string, with U+FFFD for invalid UTF-8.
    pub fn to_lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Text(SmallVec::from_slice(bytes))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\\' => f.write_str("\\\\")?,
                    // Includes characters that change the direction of a text, or have no width.
                    _ if is_unsafe(character) => write!(f, "{}", character.escape_unicode())?,
                    _ => write!(f, "{character}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Decodes the escape after a backslash. Returns its bytes, and the rest of the text.
fn escaped(escape: &str) -> Option<(Vec<u8>, &str)> {
    if let Some(after) = escape.strip_prefix('\\') {
        return Some((b"\\".to_vec(), after));
    }
    if let Some((hex, after)) = escape.strip_prefix("u{").and_then(|rest| rest.split_once('}')) {
        let character = char::from_u32(u32::from_str_radix(hex, 16).ok()?)?;
        return Some((character.to_string().into_bytes(), after));
    }
    let (hex, after) = escape.strip_prefix('x')?.split_at_checked(2)?;
    Some((vec![u8::from_str_radix(hex, 16).ok()?], after))
}

/// Returns whether a character would change the way a terminal prints the rest.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.symbol, self.address) {
            (Some(symbol), _) => write!(f, "{}", Text::from(symbol.as_str())),
            (None, Some(address)) => write!(f, "{address:#x}"),
            (None, None) => f.write_str("?"),
        }
    }
}

/// A stack prints with the outermost function first, separated by `;`, as in folded stacks.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(number) => write!(f, "{number}"),
            Key::Text(text) => write!(f, "{text}"),
            Key::Task { pid, comm } => write!(f, "{comm} ({pid})"),
            Key::Syscall { name: Some(name), .. } => write!(f, "{}", Text::from(name.as_str())),
            Key::Syscall { number, name: None } => write!(f, "syscall {number}"),
            Key::Address(frame) => write!(f, "{frame}"),
            Key::Stack(frames) => {
                for (i, frame) in frames.iter().rev().enumerate() {
                    write!(f, "{}{frame}", if i > 0 { ";" } else { "" })?;
                }
                Ok(())
            }
            Key::Program(stack) => Key::Stack(stack.frames(&Numbered)).fmt(f),
            Key::Range {
                first: first @ ..0,
                last,
            } => write!(f, "{first} - {last}"),
            Key::Range { first, last } => write!(f, "{first}-{last}"),
            Key::Other(Other::Folded) => f.write_str("other"),
            Key::Other(other) => f.write_str(other.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_shown() {
        let shown = |first, last| Key::Range { first, last }.to_string();
        assert_eq!(shown(8, 15), "8-15");
        assert_eq!(shown(-6, -1), "-6 - -1");
        assert_eq!(shown(-6, 3), "-6 - 3");
    }

    proptest! {
        #[test]
        fn what_is_shown_tells_the_text(bytes: Vec<u8>, text: String, ends in "[\\\\ux{}0-9a]{0,12}") {
            for bytes in [bytes, text.into_bytes(), ends.into_bytes()] {
                let text = Text::from(&bytes[..]);
                prop_assert_eq!(Text::shown(&text.to_string()), text);
            }
        }

        #[test]
        fn whatever_is_shown_is_taken(shown in "[\\\\ux{}0-9a]{0,12}") {
            Text::shown(&shown);
        }
    }
}
