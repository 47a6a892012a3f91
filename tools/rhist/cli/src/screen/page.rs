// SPDX-License-Identifier: MIT OR Apache-2.0

//! Properties of a page: width, characters, colours.

use std::io::IsTerminal;
use std::io::Stdout;

use rhist_core::table::Text;
use unicode_width::UnicodeWidthChar;

/// Width if the output does not report one.
const WIDTH: usize = 80;
/// Minimum width of the layout.
const MIN_WIDTH: usize = 20;
/// Limit of a table's rows on a terminal.
const ROWS: usize = 20;

/// A page to print on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Width in columns.
    pub width: usize,
    /// Limit of a table's rows.
    pub rows: usize,
    /// Whether it shows characters beyond ASCII.
    pub utf8: bool,
    /// Whether it shows colours.
    pub colour: bool,
}

/// Role of a text, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Title,
    Faint,
    Bar,
    Warning,
}

impl Page {
    /// Page for the standard output. Uses colours and a limit of rows only on a terminal; see
    /// `NO_COLOR` and `LC_ALL`.
    pub fn of(stdout: &Stdout) -> Self {
        let terminal = stdout.is_terminal();
        let size = rustix::termios::tcgetwinsize(stdout).ok();
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
        Page {
            width: columns.unwrap_or(WIDTH).max(MIN_WIDTH),
            rows: if terminal { ROWS } else { usize::MAX },
            utf8: is_utf8(|name| std::env::var(name).ok()),
            colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }

    /// Replaces characters that the page cannot show. The text must be escaped already: see
    /// [`plain`].
    pub(super) fn text(&self, text: &str) -> String {
        if self.utf8 || text.is_ascii() {
            return text.to_owned();
        }
        let mut result = String::new();
        for character in text.chars() {
            match character {
                'µ' | 'μ' => result.push('u'),
                '–' | '·' => result.push('-'),
                '…' => result.push('~'),
                '±' => result.push_str("+-"),
                '≤' => result.push_str("<="),
                '×' => result.push('x'),
                '\u{a0}' | '\u{202f}' => result.push(' '),
                _ if character.is_ascii() => result.push(character),
                _ => result.extend(character.escape_unicode()),
            }
        }
        result
    }

    /// Shortens a text to `width` columns. Cuts in the middle, since names differ at both ends.
    pub(super) fn cut(&self, text: &str, width: usize) -> String {
        if columns(text) <= width {
            return text.to_owned();
        }
        let left = width.saturating_sub(1).div_ceil(2);
        let right = width.saturating_sub(1) - left;
        let begin = fitting(text.chars(), left);
        let end: String = fitting(text.chars().rev(), right).chars().rev().collect();
        let dots = if width > 0 { self.text("…") } else { String::new() };
        begin + &dots + &end
    }

    /// Wraps a text between words to lines of at most `width` columns. Shortens wider words.
    pub(super) fn wrap(&self, text: &str, width: usize) -> Vec<String> {
        let mut lines = vec![String::new()];
        for word in text.split(' ') {
            let word = self.cut(word, width);
            match lines.last_mut() {
                Some(line) if line.is_empty() => *line = word,
                Some(line) if columns(line) + 1 + columns(&word) <= width => *line += &format!(" {word}"),
                _ => lines.push(word),
            }
        }
        lines
    }

    /// Colours a text.
    pub(super) fn paint(&self, style: Style, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Title => "1",
            Style::Faint => "2",
            Style::Bar => "36",
            Style::Warning => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A bar of at most `width` columns. Shows at least a trace if `part` is not zero.
    pub(super) fn bar(&self, part: f64, width: usize) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        if width == 0 {
            return String::new();
        }
        let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
        if !self.utf8 {
            let cells = if part > 0.0 { eighths.div_ceil(8).max(1) } else { 0 };
            return "#".repeat(cells.min(width));
        }
        let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
        "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
    }

    /// A character for each of `counts`, with a height relative to the largest one.
    pub(super) fn spark(&self, counts: &[u64]) -> String {
        let levels = if self.utf8 {
            " ▁▂▃▄▅▆▇█"
        } else {
            " .:-=+*%#"
        };
        let levels: Vec<char> = levels.chars().collect();
        let top = counts.iter().copied().max().unwrap_or(0).max(1);
        let level = |count: u64| (u128::from(count) * 8).div_ceil(top.into()) as usize;
        counts.iter().filter_map(|&count| levels.get(level(count))).collect()
    }
}

/// Width of a text on a terminal, in columns.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

fn width_of(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Escapes a text that comes from recipes and command lines rather than trace data: keeps
/// backslashes, escapes everything that a terminal would interpret.
pub fn plain(text: &str) -> String {
    let parts: Vec<_> = text.split('\\').map(|part| Text::from(part).to_string()).collect();
    parts.join("\\")
}

/// Like [`plain`], for several lines.
pub fn lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Takes characters up to `width` columns.
fn fitting(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += width_of(*character);
            used <= width
        })
        .collect()
}

/// Returns whether the locale uses UTF-8.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty())
        .unwrap_or_default()
        .to_ascii_lowercase();
    locale.ends_with("utf-8") || locale.ends_with("utf8") || locale.contains("utf-8@") || locale.contains("utf8@")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: Page = Page {
        width: 80,
        rows: 20,
        utf8: true,
        colour: false,
    };
    const ASCII: Page = Page { utf8: false, ..UTF8 };

    #[test]
    fn locales() {
        let locale = |all: &str, lang: &str| {
            is_utf8(|name| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            })
        };
        assert!(locale("", "de_DE.UTF-8"));
        assert!(locale("C.utf8", "C"));
        assert!(locale("", "ca_ES.UTF-8@valencia"));
        assert!(!locale("C", "de_DE.UTF-8"));
        assert!(!locale("", ""));
    }

    #[test]
    fn cuts() {
        assert_eq!(UTF8.cut("kworker/0:1", 11), "kworker/0:1");
        assert_eq!(UTF8.cut("kworker/0:1", 6), "kwo…:1");
        assert_eq!(ASCII.cut("kworker/0:1", 6), "kwo~:1");
        assert_eq!(UTF8.cut("漢字漢字漢字", 6), "漢…字");
        assert_eq!(UTF8.cut("abc", 1), "…");
        assert_eq!(UTF8.cut("abc", 0), "");
    }

    #[test]
    fn other_characters() {
        assert_eq!(ASCII.text("3 µs ± 4 % – …"), "3 us +- 4 % - ~");
        assert_eq!(ASCII.text("é"), "\\u{e9}");
        assert_eq!(UTF8.text("é"), "é");
        assert_eq!(plain("a\\b\u{1b}[2J\u{202e}"), "a\\b\\u{1b}[2J\\u{202e}");
        assert_eq!(lines("a\n\u{1b}[2J\n"), "a\n\\u{1b}[2J\n");
    }

    #[test]
    fn bars() {
        assert_eq!(UTF8.bar(1.0, 3), "███");
        assert_eq!(UTF8.bar(0.5, 3), "█▌");
        assert_eq!(UTF8.bar(0.0001, 3), "▏");
        assert_eq!(UTF8.bar(0.0, 3), "");
        assert_eq!(ASCII.bar(0.0001, 3), "#");
        assert_eq!(ASCII.bar(7.0, 3), "###");
        assert_eq!(UTF8.bar(f64::NAN, 3), "");
    }

    #[test]
    fn sparks() {
        assert_eq!(UTF8.spark(&[0, 1, 4, 8, 1000]), " ▁▁▁█");
        assert_eq!(ASCII.spark(&[u64::MAX, 0, u64::MAX / 2]), "# =");
        assert_eq!(UTF8.spark(&[]), "");
        assert_eq!(UTF8.spark(&[0]), " ");
    }

    #[test]
    fn colours() {
        let page = Page { colour: true, ..UTF8 };
        assert_eq!(page.paint(Style::Bar, "x"), "\u{1b}[36mx\u{1b}[0m");
        assert_eq!(UTF8.paint(Style::Bar, "x"), "x");
    }
}
