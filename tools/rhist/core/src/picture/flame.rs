// SPDX-License-Identifier: MIT OR Apache-2.0

//! Flame graphs of stacks.
//!
//! Limits: 20,000 boxes, the widest ones, each at least 0.3 pixels wide; 128 of them on top of each
//! other; and 480 characters of a name. So a picture of usual names has at most about 5 MB, and one
//! of names that consist of characters to escape at most 90 MB. A search finds nothing in boxes, or
//! in ends of names, that are left out.

use super::MARGIN;
use super::begin;
use super::quantity;
use super::svg::CHARACTER;
use super::svg::Svg;
use super::svg::clipped;
use super::svg::shortened;
use super::tree::Node;
use super::tree::Weight;
use super::zoom;
use crate::quantity::things;
use crate::question::Question;
use crate::table::Table;

pub const WIDTH: f64 = 1200.0;
pub const ROW: f64 = 18.0;

/// Minimum width of a box in pixels: narrower ones would be invisible.
const MIN_WIDTH: f64 = 0.3;

/// Limit of boxes; draws the widest ones.
const MAX_BOXES: usize = 20_000;

/// Limit of a name in a title, which leaves room for the numbers behind it.
const MAX_NAME: usize = 480;

/// Draws stacks with the outermost function at the bottom. The width is the weight of a row; other
/// keys stand below their stacks. Ends of stacks, such as `(no rules)`, are grey.
pub fn flame(question: &Question, table: &Table) -> String {
    let weight = Weight::new(question, table);
    let mut root = Node::default();
    root.add(table, 0, weight.of);
    let whole = root.weights[0];
    let graph = Graph {
        root: &root,
        name: "all",
        width: |node| node.weights[0],
        whole,
        look: &|name, node| {
            let percent = 100.0 * node.weights[0] / whole;
            Look {
                colour: if node.is_end { END.to_owned() } else { warm(name) },
                numbers: format!("{}, {percent:.1} %", quantity(node.weights[0], weight.unit)),
            }
        },
    };
    let least = least(&[&graph]);
    let height = 60.0 + graph.height(least) + MARGIN;
    let stacks = things(table.rows.len() as u64, "stacks");
    let facts = format!("{stacks}, {} of {}", quantity(whole, weight.unit), weight.name);
    let mut svg = begin(question, WIDTH, height, &facts);
    draw(&mut svg, &[(&graph, height - MARGIN)], least);
    svg.finish()
}

/// Boxes of a tree.
pub struct Graph<'a> {
    pub root: &'a Node,
    /// Name of the root.
    pub name: &'a str,
    /// Weight that is the width of a node's box.
    pub width: fn(&Node) -> f64,
    /// Weight of a box that is as wide as the picture.
    pub whole: f64,
    /// Appearance of a node with this name.
    pub look: &'a dyn Fn(&str, &Node) -> Look,
}

/// Appearance of a box.
pub struct Look {
    /// Dark text is readable on it.
    pub colour: String,
    /// Text behind the name in the title. The last `: ` of a title ends the name, so this has none.
    pub numbers: String,
}

/// Minimum share of the whole that is drawn of these graphs.
pub fn least(graphs: &[&Graph<'_>]) -> f64 {
    let least = MIN_WIDTH / (WIDTH - 2.0 * MARGIN);
    let mut shares = Vec::new();
    for graph in graphs {
        graph.root.walk(&mut |node| {
            let share = graph.share(node);
            shares.extend((share >= least).then_some(share));
            share >= least
        });
    }
    if shares.len() <= MAX_BOXES {
        return least;
    }
    let (_, least, _) = shares.select_nth_unstable_by(MAX_BOXES, |a, b| b.total_cmp(a));
    least.next_up()
}

/// Draws graphs, each with its lower edge, and the script if any box is drawn.
pub fn draw(svg: &mut Svg, graphs: &[(&Graph<'_>, f64)], least: f64) {
    if graphs.iter().all(|(graph, _)| graph.share(graph.root) < least) {
        return;
    }
    svg.begin_group("flame");
    for (graph, bottom) in graphs {
        graph.draw(svg, graph.name, graph.root, least, [0.0, bottom - ROW]);
    }
    svg.end_group();
    zoom::add(svg);
}

impl Graph<'_> {
    fn share(&self, node: &Node) -> f64 {
        (self.width)(node) / self.whole.max(f64::MIN_POSITIVE)
    }

    /// Height of the boxes that are drawn, in pixels.
    pub fn height(&self, least: f64) -> f64 {
        ROW * self.depth(self.root, least).max(1) as f64
    }

    /// Number of drawn boxes on top of each other.
    fn depth(&self, node: &Node, least: f64) -> usize {
        if self.share(node) < least {
            return 0;
        }
        let callees = node.callees.values().map(|callee| self.depth(callee, least));
        1 + callees.max().unwrap_or(0)
    }

    /// Draws a box that begins at `from`, a part of the width, and the boxes above it.
    fn draw(&self, svg: &mut Svg, name: &str, node: &Node, least: f64, [from, y]: [f64; 2]) {
        let share = self.share(node);
        if share < least {
            return;
        }
        let room = WIDTH - 2.0 * MARGIN;
        let (x, width) = (MARGIN + from * room, share * room);
        let Look { colour, numbers } = (self.look)(name, node);
        let title = format!("{}: {numbers}", shortened(name, MAX_NAME));
        let span = [from, share].map(|part| (part * 1e9).round() as u64);
        svg.spanned([x, y, (width - 0.5).max(0.2), ROW - 1.0], &colour, span, &title);
        if width > 3.0 * CHARACTER {
            svg.anchored(x + 4.0, y + 13.0, "start", "#1a1a1a", &clipped(name, width - 8.0));
        }
        let mut from = from;
        for (name, callee) in &node.callees {
            self.draw(svg, name, callee, least, [from, y - ROW]);
            from += self.share(callee);
        }
    }
}

/// Colour of the ends of stacks.
const END: &str = "#b8b8b8";

/// Warm colour derived from the name. Dark text is readable on it.
fn warm(name: &str) -> String {
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
