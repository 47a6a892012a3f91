// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writer for SVG.

use std::fmt::Write;

/// An unfinished picture. Coordinates are pixels from the upper left corner.
pub struct Svg {
    text: String,
}

/// Colour of texts and lines, halfway between white and black.
pub const GREY: &str = "#767676";

/// Width of a character of labels, in pixels.
pub const CHARACTER: f64 = 7.2;

/// Limit of a label, longer than any needs.
const MAX_CHARACTERS: usize = 160;

impl Svg {
    /// Begins a picture of this size. Screen readers use the title.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Svg { text: String::new() };
        let font = "ui-monospace, Menlo, 'DejaVu Sans Mono', monospace";
        svg.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" font-family=\"{font}\" font-size=\"12\" fill=\"{GREY}\">\n<title>{}</title>\n",
            escaped(title),
        ));
        svg
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }

    /// Adds a text in large letters.
    pub fn heading(&mut self, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"15\" font-weight=\"bold\">{text}</text>\n"
        ));
    }

    /// Adds a text that begins at this point.
    pub fn label(&mut self, x: f64, y: f64, text: &str) {
        self.anchored(x, y, "start", GREY, text);
    }

    /// Adds a coloured text. `anchor` says which part of it is at this point: `start`, `middle`, or
    /// `end`.
    pub fn anchored(&mut self, x: f64, y: f64, anchor: &str, colour: &str, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>\n"
        ));
    }

    /// Adds a text stretched to a width, whatever the font: x, y and width.
    pub fn fitted(&mut self, [x, y, width]: [f64; 3], colour: &str, is_bold: bool, text: &str) {
        let weight = if is_bold { " font-weight=\"bold\"" } else { "" };
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{colour}\"{weight}>{text}</text>\n"
        ));
    }

    /// Fills the whole picture, with rounded corners.
    pub fn background(&mut self, colour: &str) {
        self.add(format_args!(
            "<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{colour}\"/>\n"
        ));
    }

    /// Adds a filled rectangle that shows `title` under the pointer.
    pub fn rectangle(&mut self, [x, y, width, height]: [f64; 4], colour: &str, title: &str) {
        let title = escaped(title);
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{title}</title></rect>\n"
        ));
    }

    /// Adds such a rectangle with the attribute `data-span`: the first number, and the difference
    /// to the last one.
    pub fn spanned(&mut self, [x, y, width, height]: [f64; 4], colour: &str, [from, size]: [u64; 2], title: &str) {
        let title = escaped(title);
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\" \
             data-span=\"{from} {size}\"><title>{title}</title></rect>\n"
        ));
    }

    /// Begins a group of elements with this class.
    pub fn begin_group(&mut self, class: &str) {
        self.add(format_args!("<g class=\"{class}\">\n"));
    }

    /// Ends the group that was begun last.
    pub fn end_group(&mut self) {
        self.add(format_args!("</g>\n"));
    }

    /// Adds a style sheet and a script, which are text of our own.
    pub fn script(&mut self, style: &str, script: &str) {
        let script = script.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.add(format_args!("<style>{style}</style>\n<script>\n{script}</script>\n"));
    }

    /// Adds rectangles of one colour, without titles.
    pub fn rectangles(&mut self, rectangles: &[[f64; 4]], colour: &str, opacity: f64) {
        if rectangles.is_empty() {
            return;
        }
        self.add(format_args!(
            "<path fill=\"{colour}\" fill-opacity=\"{opacity:.2}\" d=\""
        ));
        for [x, y, width, height] in rectangles {
            self.add(format_args!("M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z"));
        }
        self.add(format_args!("\"/>\n"));
    }

    /// Adds a line between two points.
    pub fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], colour: &str, opacity: f64) {
        self.add(format_args!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-opacity=\"{opacity:.2}\"/>\n"
        ));
    }

    /// Adds a line through these points. A `None` interrupts it.
    pub fn curve(&mut self, points: impl IntoIterator<Item = Option<[f64; 2]>>, colour: &str) {
        self.add(format_args!(
            "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" d=\""
        ));
        let mut command = 'M';
        for point in points {
            match point {
                None => command = 'M',
                Some([x, y]) => {
                    self.add(format_args!("{command}{x:.1} {y:.1}"));
                    command = 'L';
                }
            }
        }
        self.add(format_args!("\"/>\n"));
    }

    /// Completes the file.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// Truncates a text to this width.
pub fn clipped(text: &str, width: f64) -> String {
    shortened(text, ((width / CHARACTER) as usize).min(MAX_CHARACTERS))
}

/// Truncates a text to this number of characters.
pub fn shortened(text: &str, count: usize) -> String {
    match text.char_indices().nth(count) {
        None => text.to_owned(),
        Some(_) => text.chars().take(count.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Escapes a text for XML. Replaces characters that XML forbids.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars().take(MAX_CHARACTERS * 4) {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            // Also replaces controls of the text direction, like `Text` does for terminals.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push(char::REPLACEMENT_CHARACTER);
            }
            _ if character.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            _ => escaped.push(character),
        }
    }
    escaped
}
