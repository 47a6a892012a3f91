// SPDX-License-Identifier: MIT OR Apache-2.0

//! Flame graphs of the difference between two recordings.

use super::MARGIN;
use super::flame::Graph;
use super::flame::Look;
use super::flame::WIDTH;
use super::flame::draw;
use super::flame::least;
use super::quantity;
use super::side::Side;
use super::svg::GREY;
use super::svg::Svg;
use super::svg::clipped;
use super::tree::Node;
use super::tree::Weight;
use crate::quantity::things;
use crate::question::Question;

/// Upper edge of the graphs, and distance between them, in pixels.
const TOP: f64 = 96.0;
const GAP: f64 = 14.0;

/// Smallest change of the share that has the full colour: recordings that hardly differ are pale.
const LEAST_CHANGE: f64 = 0.01;

/// Red, green and blue parts.
type Colour = [f64; 3];

/// Colours of a box: no change, the largest increase, and the largest decrease. The first one is
/// visible on white.
const SAME: Colour = [236.0, 236.0, 236.0];
const MORE: Colour = [238.0, 90.0, 76.0];
const LESS: Colour = [84.0, 144.0, 232.0];

/// Draws the stacks of `b`, coloured by the change of their shares from `a`: more is red, less is
/// blue. Below is another graph in the same scale: stacks that only `a` has, blue, on the functions
/// that both have. A function counts as missing where it lacks weight on the same callers.
pub fn flame_difference(question: &Question, a: &Side<'_>, b: &Side<'_>) -> String {
    let mut root = Node::default();
    let weights = [a, b].map(|side| Weight::new(question, side.table));
    let unit = weights[1].unit;
    for (i, side) in [a, b].into_iter().enumerate() {
        root.add(side.table, i, weights[i].of);
    }
    root.find_lost();
    let wholes = root.weights.map(|weight| weight.max(f64::MIN_POSITIVE));
    let change = |node: &Node| node.weights[1] / wholes[1] - node.weights[0] / wholes[0];
    let mut largest = LEAST_CHANGE;
    root.walk(&mut |node| {
        largest = largest.max(change(node).abs());
        true
    });

    let share = |i: usize, weight: f64| format!("{}, {:.1} %", quantity(weight, unit), 100.0 * weight / wholes[i]);
    let both = Graph {
        root: &root,
        name: "all",
        width: |node| node.weights[1],
        whole: wholes[1],
        look: &|_, node| {
            let [before, after] = [0, 1].map(|i| share(i, node.weights[i]));
            let change = change(node);
            Look {
                colour: colour(change / largest),
                numbers: format!("A {before}; B {after}; {:+.1} points", 100.0 * change),
            }
        },
    };
    let lost = Graph {
        root: &root,
        name: "only in A",
        width: |node| node.lost,
        whole: wholes[0],
        look: &|_, node| Look {
            colour: colour(if node.weights[1] > 0.0 { 0.0 } else { -1.0 }),
            numbers: format!("A {}, in stacks that B lacks", share(0, node.lost)),
        },
    };
    let mut graphs = vec![&both];
    graphs.extend((root.lost > 0.0).then_some(&lost));
    let least = least(&graphs);
    let mut bottom = TOP;
    let mut placed = Vec::new();
    for graph in graphs {
        bottom += graph.height(least);
        placed.push((graph, bottom));
        bottom += GAP;
    }

    let mut svg = Svg::new(WIDTH, bottom - GAP + MARGIN, &question.summary);
    svg.heading(MARGIN, 24.0, &format!("{} ({})", question.summary, question.name));
    for (i, side) in [a, b].into_iter().enumerate() {
        let stacks = things(side.table.rows.len() as u64, "stacks");
        let sum = quantity(root.weights[i], unit);
        let name = clipped(side.name, 300.0);
        let text = format!("{}: {name}: {stacks}, {sum} of {}", ["A", "B"][i], weights[i].name);
        svg.label(MARGIN, 44.0 + 18.0 * i as f64, &text);
    }
    let points = format!("{:.1} points", 100.0 * largest);
    let legend = [
        (-1.0, format!("{points} less in B")),
        (0.0, "same share".to_owned()),
        (1.0, format!("{points} more in B")),
    ];
    for (i, (part, text)) in legend.iter().enumerate() {
        let x = MARGIN + 200.0 * i as f64;
        svg.rectangle([x, 70.0, 12.0, 12.0], &colour(*part), text);
        svg.anchored(x + 20.0, 80.0, "start", GREY, text);
    }
    draw(&mut svg, &placed, least);
    svg.finish()
}

/// Colour of a change, from -1 to 1. Dark text is readable on it.
fn colour(change: f64) -> String {
    let end = if change > 0.0 { MORE } else { LESS };
    let part = change.abs().clamp(0.0, 1.0);
    let [red, green, blue] = [0, 1, 2].map(|i| (SAME[i] + (end[i] - SAME[i]) * part).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}
