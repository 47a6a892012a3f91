// SPDX-License-Identifier: MIT OR Apache-2.0

//! Screens of a terminal, drawn as cells with characters.
//!
//! They have their own background, so they look the same on every page. Block characters, of which
//! bars and heat maps consist, are drawn as rectangles, since many fonts leave gaps between them.

use std::collections::BTreeMap;

use super::svg::CHARACTER;
use super::svg::Svg;

/// Height of a cell in pixels, and distance of the baseline from its lower edge.
const HEIGHT: f64 = 16.0;
const DESCENT: f64 = 4.0;

/// Margin around the screen, in pixels.
const MARGIN: f64 = 12.0;

const BACKGROUND: &str = "#16191d";

/// A character with the cells that it covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The character with its combining characters.
    pub symbol: String,
    /// Number of cells: 1, or 2 for a wide character.
    pub width: u16,
    /// Colour and weight.
    pub style: Style,
}

/// Appearance of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colour of the character.
    pub ink: Ink,
    /// Whether the character is bold.
    pub is_bold: bool,
    /// Whether the colours of character and background are swapped.
    pub is_reversed: bool,
}

/// Colour of a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Ink {
    #[default]
    Plain,
    Faint,
    Blue,
    Cyan,
    Green,
    Red,
}

impl Ink {
    fn colour(self) -> &'static str {
        match self {
            Ink::Plain => "#d3d7de",
            Ink::Faint => "#8b939e",
            Ink::Blue => "#4f97e0",
            Ink::Cyan => "#4fc3d9",
            Ink::Green => "#57c06a",
            Ink::Red => "#f2777a",
        }
    }
}

/// Rectangles by colour, and opacity in per cent.
type Blocks = BTreeMap<(Ink, u8), Vec<[f64; 4]>>;

/// Draws lines of cells. Screen readers use the title.
pub fn screen(title: &str, columns: u16, lines: &[Vec<Cell>]) -> String {
    let (width, height) = (f64::from(columns) * CHARACTER, lines.len() as f64 * HEIGHT);
    let mut svg = Svg::new(width + 2.0 * MARGIN, height + 2.0 * MARGIN, title);
    svg.background(BACKGROUND);
    let mut blocks = Blocks::new();
    for (y, line) in lines.iter().enumerate() {
        draw_line(&mut svg, &mut blocks, line, MARGIN + y as f64 * HEIGHT);
    }
    for ((ink, opacity), rectangles) in blocks {
        svg.rectangles(&rectangles, ink.colour(), f64::from(opacity) / 100.0);
    }
    svg.finish()
}

/// Draws a line with its upper edge at `y`.
fn draw_line(svg: &mut Svg, blocks: &mut Blocks, line: &[Cell], y: f64) {
    let mut x = MARGIN;
    for cells in line.chunk_by(|a, b| a.style == b.style) {
        let style = cells.first().map_or(Style::default(), |cell| cell.style);
        let (front, back) = match style.is_reversed {
            true => (BACKGROUND, Some(style.ink.colour())),
            false => (style.ink.colour(), None),
        };
        let width = width_of(cells);
        if let Some(back) = back {
            svg.rectangles(&[[x, y, width, HEIGHT]], back, 1.0);
        }
        // One text element per word, so that the start of each word is exact in every font.
        for word in cells.chunk_by(|a, b| kind(a) == kind(b)) {
            let width = width_of(word);
            match word.first().map(kind) {
                Some(Kind::Text) => {
                    let text: String = word.iter().map(|cell| cell.symbol.as_str()).collect();
                    svg.fitted([x, y + HEIGHT - DESCENT, width], front, style.is_bold, &text);
                }
                Some(Kind::Block(eighths, opacity)) => {
                    let height = HEIGHT * f64::from(eighths) / 8.0;
                    let rectangle = [x, y + HEIGHT - height, width, height];
                    match style.is_reversed {
                        // Drawn at once, to lie above the background of its own cell.
                        true => svg.rectangles(&[rectangle], front, f64::from(opacity) / 100.0),
                        false => blocks.entry((style.ink, opacity)).or_default().push(rectangle),
                    }
                }
                Some(Kind::Blank) | None => {}
            }
            x += width;
        }
    }
}

fn width_of(cells: &[Cell]) -> f64 {
    cells.iter().map(|cell| f64::from(cell.width)).sum::<f64>() * CHARACTER
}

/// Way to draw a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Blank,
    Text,
    /// Rectangle at the lower edge: its height in eighths of a cell, and its opacity in per cent.
    Block(u8, u8),
}

fn kind(cell: &Cell) -> Kind {
    match cell.symbol.as_str() {
        "" | " " => Kind::Blank,
        "▁" => Kind::Block(1, 100),
        "▂" => Kind::Block(2, 100),
        "▃" => Kind::Block(3, 100),
        "▄" => Kind::Block(4, 100),
        "▅" => Kind::Block(5, 100),
        "▆" => Kind::Block(6, 100),
        "▇" => Kind::Block(7, 100),
        "█" => Kind::Block(8, 100),
        "░" => Kind::Block(8, 25),
        "▒" => Kind::Block(8, 50),
        "▓" => Kind::Block(8, 75),
        _ => Kind::Text,
    }
}
