// SPDX-License-Identifier: MIT OR Apache-2.0

//! Capabilities of the terminal: colours, and characters beyond ASCII.

use std::borrow::Cow;
use std::env;

use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;

/// Capabilities of the terminal, with the styles that follow from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether to use colours. Bold and reverse are always used.
    pub color: bool,
    /// Whether to use only ASCII.
    pub ascii: bool,
}

impl Look {
    /// Derives the capabilities from the environment: `NO_COLOR`, `TERM` and the locale.
    pub fn from_env() -> Self {
        Look::new(|name| env::var(name).unwrap_or_default())
    }

    fn new(var: impl Fn(&str) -> String) -> Self {
        let term = var("TERM");
        let plain = term.is_empty() || term == "dumb" || term.starts_with("vt");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(&var);
        let locale = locale.iter().find(|value| !value.is_empty());
        let utf8 = locale.is_some_and(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"));
        Look {
            color: var("NO_COLOR").is_empty() && !plain,
            // The fonts of the console lack most block characters.
            ascii: plain || term == "linux" || !utf8,
        }
    }

    fn style(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// Style of names, keys of the keyboard, and other important texts.
    pub fn strong(self) -> Style {
        self.style(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Style of good states.
    pub fn good(self) -> Style {
        self.style(Color::Green)
    }

    /// Style of warnings.
    pub fn bad(self) -> Style {
        self.style(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Style of unimportant texts.
    pub fn faint(self) -> Style {
        self.style(Color::DarkGray)
    }

    /// Style of the titles of columns.
    pub fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Style of the selected row.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// Style of values in a heat map, and of bars.
    pub fn shade(self) -> Style {
        self.style(Color::Blue)
    }

    /// Style of the line of the median.
    pub fn p50(self) -> Style {
        self.style(Color::Green).add_modifier(Modifier::BOLD)
    }

    /// Style of the line of the 99th percentile.
    pub fn p99(self) -> Style {
        self.style(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Shades of a heat map, from empty to full.
    pub fn shades(self) -> &'static [&'static str] {
        match self.ascii {
            true => &[" ", ".", ":", "+", "#"],
            false => &[" ", "░", "▒", "▓", "█"],
        }
    }

    /// Heights of a bar in one cell, from empty to full.
    pub fn heights(self) -> &'static [&'static str] {
        match self.ascii {
            true => &["_", ".", ":", "-", "=", "+", "*", "#"],
            false => &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        }
    }

    /// Chooses between a character and its ASCII form.
    pub fn pick(self, other: &'static str, ascii: &'static str) -> &'static str {
        match self.ascii {
            true => ascii,
            false => other,
        }
    }

    /// Replaces characters that this terminal cannot show.
    pub fn text(self, text: &str) -> Cow<'_, str> {
        if !self.ascii || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut ascii = String::with_capacity(text.len() * 2);
        for character in text.chars() {
            match character {
                'µ' => ascii.push('u'),
                '·' => ascii.push('-'),
                '±' => ascii.push_str("+-"),
                '…' => ascii.push('~'),
                _ if character.is_ascii() => ascii.push(character),
                _ => ascii.extend(character.escape_unicode()),
            }
        }
        Cow::Owned(ascii)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(vars: &[(&str, &str)]) -> Look {
        Look::new(|name| {
            let var = vars.iter().find(|(var, _)| *var == name);
            var.map_or(String::new(), |(_, value)| (*value).into())
        })
    }

    #[test]
    fn the_environment_decides() {
        let full = Look {
            color: true,
            ascii: false,
        };
        let plain = Look {
            color: false,
            ascii: true,
        };
        assert_eq!(look(&[("TERM", "xterm-256color"), ("LANG", "en_US.UTF-8")]), full);
        assert_eq!(look(&[("TERM", "screen"), ("LANG", "C"), ("LC_ALL", "C.utf8")]), full);
        assert_eq!(look(&[]), plain);
        for term in ["vt100", "vt220", "dumb"] {
            assert_eq!(look(&[("TERM", term), ("LANG", "C.UTF-8")]), plain, "{term}");
        }
        assert_eq!(
            look(&[("TERM", "linux"), ("LANG", "C.UTF-8")]),
            Look { ascii: true, ..full }
        );
        assert_eq!(
            look(&[("TERM", "xterm"), ("LANG", "C.UTF-8"), ("NO_COLOR", "1")]),
            Look { color: false, ..full }
        );
        assert!(look(&[("TERM", "xterm"), ("LANG", "C")]).ascii);
    }

    #[test]
    fn ascii_is_ascii() {
        let look = Look {
            color: false,
            ascii: true,
        };
        assert_eq!(look.text("5 µs · né…"), "5 us - n\\u{e9}~");
    }
}
