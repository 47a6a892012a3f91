// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writes texts into cells within given limits, adapted to the terminal.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use rhist_core::table::Text;

use super::look::Look;

/// Writer for a buffer of cells.
pub struct Paint<'a> {
    buffer: &'a mut Buffer,
    /// Capabilities of the terminal.
    pub look: Look,
}

impl<'a> Paint<'a> {
    /// Creates a writer for this buffer.
    pub fn new(buffer: &'a mut Buffer, look: Look) -> Self {
        Paint { buffer, look }
    }

    /// Area of the whole screen.
    pub fn area(&self) -> Rect {
        self.buffer.area
    }

    /// Writes a text into at most `width` cells, and cuts off the rest. The text must be escaped
    /// already. Returns the column after it.
    pub fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        let width = width.min(area.right().saturating_sub(x));
        if width == 0 || y >= area.bottom() {
            return x;
        }
        let text = self.look.text(text);
        if self::width(&text) <= width {
            return self.buffer.set_stringn(x, y, &text, width.into(), style).0;
        }
        let (end, _) = self.buffer.set_stringn(x, y, &text, usize::from(width) - 1, style);
        let more = self.look.pick("…", "~");
        self.buffer.set_stringn(end, y, more, 1, style).0
    }

    /// Like [`Self::text`], aligned to the right end of these cells.
    pub fn right(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) {
        let free = width.saturating_sub(self::width(&self.look.text(text)));
        self.text(x + free, y, width - free, text, style);
    }

    /// Writes texts one after the other into at most `width` cells. Returns the column after them.
    pub fn texts(&mut self, x: u16, y: u16, width: u16, texts: &[(String, Style)]) -> u16 {
        let end = x.saturating_add(width);
        texts.iter().fold(x, |x, (text, style)| {
            self.text(x, y, end.saturating_sub(x), text, *style)
        })
    }

    /// Applies a style to cells of a line.
    pub fn style(&mut self, x: u16, y: u16, width: u16, style: Style) {
        self.buffer.set_style(Rect::new(x, y, width, 1), style);
    }
}

/// Width of a text, in cells.
pub fn width(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}

/// Escapes everything in a text that a terminal would interpret.
pub fn safe(text: &str) -> String {
    Text::from(text).to_string()
}

/// Wraps a text to lines of at most `width` cells, at spaces if possible.
pub fn wrap(text: &str, width: u16) -> Vec<String> {
    let width = usize::from(width.max(2));
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let length = Span::raw(word.trim_end()).width();
        if used > 0 && used + length > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for character in word.chars() {
            let length = Span::raw(character.encode_utf8(&mut [0; 4]) as &str).width();
            if used + length > width {
                if character == ' ' {
                    continue;
                }
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(character);
            used += length;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrap("keys=a:vals=b if c", 6), ["keys=a", ":vals=", "b if c"]);
        assert_eq!(wrap("", 6), [""]);
        assert_eq!(wrap("漢字漢字", 3), ["漢", "字", "漢", "字"]);
    }

    #[test]
    fn nothing_is_written_beyond_the_cells() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        let mut paint = Paint::new(&mut buffer, Look::default());
        assert_eq!(paint.text(0, 0, 4, "abcdef", Style::new()), 4);
        assert_eq!(paint.text(5, 0, 9, "xyz", Style::new()), 6);
        assert_eq!(paint.text(9, 9, 9, "xyz", Style::new()), 9);
        assert_eq!(buffer, Buffer::with_lines(["abc… …"]));
    }
}
