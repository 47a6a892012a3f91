// SPDX-License-Identifier: MIT OR Apache-2.0

//! Flame graphs of stacks.

use std::collections::BTreeMap;

use super::MARGIN;
use super::begin;
use super::quantity;
use super::svg::CHARACTER;
use super::svg::Svg;
use super::svg::clipped;
use crate::quantity::things;
use crate::question::Question;
use crate::table::Key;
use crate::table::Row;
use crate::table::Table;
use crate::table::Unit;
use crate::table::Value;
use crate::table::shown;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;

/// Limit of depth, above any stack of a kernel's histogram.
const MAX_DEPTH: usize = 128;

/// Minimum width of a box in pixels: narrower ones would be invisible.
const MIN_WIDTH: f64 = 0.3;

/// Limit of boxes; draws the widest ones.
const MAX_BOXES: usize = 20_000;

/// A function with its callees.
#[derive(Default)]
struct Node {
    weight: f64,
    callees: BTreeMap<String, Node>,
}

/// Draws stacks with the outermost function at the bottom. The width is the weight of a row; other
/// keys stand below their stacks.
pub fn flame(question: &Question, table: &Table) -> String {
    let (weight, what, unit) = weight(question, table);
    let mut root = Node::default();
    for row in &table.rows {
        let weight = weight(row);
        root.weight += weight;
        let mut node = &mut root;
        for name in frames(row).into_iter().take(MAX_DEPTH) {
            node = node.callees.entry(name).or_default();
            node.weight += weight;
        }
    }
    let total = root.weight.max(f64::MIN_POSITIVE);
    let least = least(&root, total);
    let depth = depth(&root, least);
    let height = 60.0 + ROW * depth as f64 + MARGIN;
    let stacks = things(table.rows.len() as u64, "stacks");
    let facts = format!("{stacks}, {} of {what}", quantity(root.weight, unit));
    let mut svg = begin(question, WIDTH, height, &facts);
    let flame = Flame {
        total,
        least,
        unit,
        bottom: height - MARGIN,
    };
    flame.draw(&mut svg, "all", &root, 0, 0.0);
    svg.finish()
}

/// Weight of a row: the sum of its first value for time or bytes, otherwise its hits. Also returns
/// name and unit of the weight.
fn weight<'a>(question: &'a Question, table: &'a Table) -> (fn(&Row) -> f64, &'a str, Unit) {
    match table.values.first() {
        Some(column) if column.unit != Unit::Plain => (
            |row| match row.values.first() {
                Some(Value::Number(number)) => (*number as f64).max(0.0),
                Some(Value::Dist(dist)) => (dist.sum.unwrap_or(0) as f64).max(0.0),
                Some(Value::Unknown) | None => 0.0,
            },
            &column.name,
            column.unit,
        ),
        _ => (|row| row.hits as f64, &question.noun, Unit::Plain),
    }
}

/// Names of a row's boxes from the bottom up: other keys first, then the functions of its stacks.
fn frames(row: &Row) -> Vec<String> {
    let mut names = Vec::new();
    for key in shown(&row.keys).iter().filter(|key| !matches!(key, Key::Stack(_))) {
        names.push(key.to_string());
    }
    for key in &row.keys {
        if let Key::Stack(frames) = key {
            names.extend(frames.iter().rev().map(ToString::to_string));
        }
    }
    names
}

/// Minimum weight that is drawn.
fn least(root: &Node, total: f64) -> f64 {
    let least = MIN_WIDTH / (WIDTH - 2.0 * MARGIN) * total;
    let mut weights = Vec::new();
    root.add_weights(least, &mut weights);
    if weights.len() <= MAX_BOXES {
        return least;
    }
    let (_, least, _) = weights.select_nth_unstable_by(MAX_BOXES, |a, b| b.total_cmp(a));
    least.next_up()
}

impl Node {
    fn add_weights(&self, least: f64, weights: &mut Vec<f64>) {
        if self.weight >= least {
            weights.push(self.weight);
            self.callees
                .values()
                .for_each(|callee| callee.add_weights(least, weights));
        }
    }
}

/// Number of drawn boxes on top of each other.
fn depth(node: &Node, least: f64) -> usize {
    let callees = node.callees.values().filter(|callee| callee.weight >= least);
    1 + callees.map(|callee| depth(callee, least)).max().unwrap_or(0)
}

struct Flame {
    total: f64,
    least: f64,
    unit: Unit,
    bottom: f64,
}

impl Flame {
    /// Draws a box that begins at `from`, a part of the width, and the boxes above it.
    fn draw(&self, svg: &mut Svg, name: &str, node: &Node, depth: usize, from: f64) {
        let room = WIDTH - 2.0 * MARGIN;
        let width = node.weight / self.total * room;
        if node.weight < self.least {
            return;
        }
        let (x, y) = (MARGIN + from * room, self.bottom - ROW * (depth + 1) as f64);
        let percent = 100.0 * node.weight / self.total;
        let title = format!("{name}: {}, {percent:.1} %", quantity(node.weight, self.unit));
        svg.rectangle([x, y, (width - 0.5).max(0.2), ROW - 1.0], &colour(name), &title);
        if width > 3.0 * CHARACTER {
            svg.anchored(x + 4.0, y + 13.0, "start", "#1a1a1a", &clipped(name, width - 8.0));
        }
        let mut from = from;
        for (name, callee) in &node.callees {
            self.draw(svg, name, callee, depth + 1, from);
            from += callee.weight / self.total;
        }
    }
}

/// Warm colour derived from the name. Dark text is readable on it.
fn colour(name: &str) -> String {
    // FNV-1a.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = hash ^ hash >> 29;
    format!(
        "#{:02x}{:02x}{:02x}",
        222 + hash % 30,
        128 + (hash >> 8) % 80,
        60 + (hash >> 16) % 40
    )
}
