// SPDX-License-Identifier: MIT OR Apache-2.0

//! Draws differences between two recordings.

use std::collections::HashMap;

use super::BLUE;
use super::GREEN;
use super::MARGIN;
use super::ORANGE;
use super::axis::Axis;
use super::axis::Segment;
use super::bars::name;
use super::facts;
use super::first_dist;
use super::flame_difference::flame_difference;
use super::has_stacks;
use super::side::Side;
use super::svg::GREY;
use super::svg::Svg;
use super::svg::clipped;
use crate::question::Question;
use crate::table::Dist;

const WIDTH: f64 = 960.0;

/// Limit of keys shown.
const MAX_KEYS: usize = 30;

/// Draws the change from `a` to `b`: a flame graph of stacks, otherwise shares of the
/// distributions, or rates of keys without a distribution.
pub fn difference(question: &Question, a: &Side<'_>, b: &Side<'_>) -> String {
    let totals = [a, b].map(|side| side.table.total());
    match totals.each_ref().map(first_dist) {
        _ if has_stacks(a.table) || has_stacks(b.table) => flame_difference(question, a, b),
        [Some(dist_a), Some(dist_b)] => dists(question, [(a, dist_a), (b, dist_b)]),
        _ => rates(question, [a, b]),
    }
}

fn begin(question: &Question, height: f64, sides: [(&str, &str); 2]) -> Svg {
    let mut svg = Svg::new(WIDTH, height, &question.summary);
    svg.heading(MARGIN, 24.0, &format!("{} ({})", question.summary, question.name));
    for (i, ((name, facts), colour)) in sides.into_iter().zip([GREY, BLUE]).enumerate() {
        let y = 44.0 + 18.0 * i as f64;
        svg.rectangle([MARGIN, y - 10.0, 12.0, 12.0], colour, name);
        svg.label(MARGIN + 20.0, y, &format!("{}: {facts}", clipped(name, 300.0)));
    }
    svg
}

/// Draws both distributions overlaid, as shares of all values, and below the surplus of each side.
fn dists(question: &Question, sides: [(&Side<'_>, &Dist); 2]) -> String {
    let height = 480.0;
    let facts = sides.map(|(_, dist)| facts(question, dist));
    let mut svg = begin(
        question,
        height,
        [(sides[0].0.name, &facts[0]), (sides[1].0.name, &facts[1])],
    );
    let axis = Axis::new(sides.map(|(_, dist)| dist), 80.0);
    let (left, right, top, bottom) = (MARGIN + 64.0, WIDTH - MARGIN, 112.0, 310.0);
    let x = |place: f64| left + place * (right - left);
    let parts = sides.map(|(_, dist)| {
        let all = dist.in_buckets().max(1) as f64;
        let segments = axis.segments(dist);
        segments
            .into_iter()
            .map(|segment| (segment.count as f64 / all, segment))
            .collect::<Vec<_>>()
    });
    let most = parts
        .iter()
        .flatten()
        .map(|(part, _)| *part)
        .fold(0.0, f64::max)
        .max(1e-9);
    for (parts, colour) in parts.iter().zip([GREY, BLUE]) {
        let bar = |(part, segment): &(f64, Segment)| {
            let height = part / most * (bottom - top);
            [
                x(segment.from),
                bottom - height,
                x(segment.to) - x(segment.from),
                height,
            ]
        };
        svg.rectangles(&parts.iter().map(bar).collect::<Vec<_>>(), colour, 0.5);
    }
    svg.anchored(left - 8.0, top + 8.0, "end", GREY, &format!("{:.1} %", 100.0 * most));
    svg.line([left, bottom], [right, bottom], GREY, 1.0);
    for (place, name) in axis.ticks(12.0, question.unit) {
        svg.line([x(place), bottom], [x(place), bottom + 5.0], GREY, 1.0);
        svg.anchored(x(place), bottom + 20.0, "middle", GREY, &name);
    }
    for (q, y, text) in [(0.5, 96.0, "p50"), (0.99, 108.0, "p99")] {
        let places = sides.map(|(_, dist)| dist.quantile(q).map(|quantile| axis.place(quantile.value)));
        // The smaller quantile has its label on the left.
        let anchors = if places[0] < places[1] {
            ["end", "start"]
        } else {
            ["start", "end"]
        };
        for ((place, anchor), colour) in places.into_iter().zip(anchors).zip([GREY, BLUE]) {
            if let Some(at) = place.map(x) {
                svg.line([at, y - 10.0], [at, bottom], colour, 1.0);
                svg.anchored(at + if anchor == "end" { -3.0 } else { 3.0 }, y, anchor, colour, text);
            }
        }
    }

    // Keyed by position: both sides use the same axis.
    let mut changes: HashMap<u64, (f64, &Segment)> = HashMap::new();
    for (parts, sign) in parts.iter().zip([-1.0, 1.0]) {
        for (part, segment) in parts {
            changes.entry(segment.from.to_bits()).or_insert((0.0, segment)).0 += sign * part;
        }
    }
    let largest = changes.values().map(|(change, _)| change.abs()).fold(1e-9, f64::max);
    let (middle, room) = (408.0, 60.0);
    svg.line([left, middle], [right, middle], GREY, 1.0);
    svg.anchored(
        left - 8.0,
        middle - room + 8.0,
        "end",
        GREY,
        &format!("{:+.1} %", 100.0 * largest),
    );
    svg.anchored(
        left - 8.0,
        middle + room,
        "end",
        GREY,
        &format!("{:+.1} %", -100.0 * largest),
    );
    let mut changes: Vec<_> = changes.into_values().collect();
    changes.sort_by(|(_, a), (_, b)| a.from.total_cmp(&b.from));
    for (change, segment) in changes {
        let height = change.abs() / largest * room;
        let y = if change > 0.0 { middle - height } else { middle };
        let title = format!("{}: {:+.2} %", axis.name(segment, question.unit), 100.0 * change);
        let colour = if change > 0.0 { ORANGE } else { GREEN };
        svg.rectangle(
            [x(segment.from), y, x(segment.to) - x(segment.from) - 0.5, height],
            colour,
            &title,
        );
    }
    svg.finish()
}

/// Draws the keys whose rates differ most.
fn rates(question: &Question, sides: [&Side<'_>; 2]) -> String {
    let mut keys: HashMap<_, [f64; 2]> = HashMap::new();
    for (i, side) in sides.into_iter().enumerate() {
        for row in &side.table.rows {
            keys.entry(&row.keys).or_insert([0.0; 2])[i] += row.hits as f64 / side.seconds.max(1e-9);
        }
    }
    let mut rows: Vec<_> = keys.into_iter().collect();
    let change = |[a, b]: &[f64; 2]| (a - b).abs();
    rows.sort_by(|(keys, a), (others, b)| change(b).total_cmp(&change(a)).then_with(|| keys.cmp(others)));
    rows.truncate(MAX_KEYS);
    let most = rows.iter().flat_map(|(_, rates)| *rates).fold(1e-9, f64::max);
    let height = 84.0 + 30.0 * rows.len() as f64 + MARGIN;
    let facts = sides.map(|side| {
        let rate = side.table.total().hits as f64 / side.seconds.max(1e-9);
        format!("{} {}/s", digits(rate), question.noun)
    });
    let mut svg = begin(
        question,
        height,
        [(sides[0].name, &facts[0]), (sides[1].name, &facts[1])],
    );
    let (left, room) = (360.0, WIDTH - MARGIN - 360.0 - 110.0);
    for (i, (keys, rates)) in rows.into_iter().enumerate() {
        let name = name(keys);
        let y = 80.0 + 30.0 * i as f64;
        svg.anchored(left - 8.0, y + 15.0, "end", GREY, &clipped(&name, left - 24.0));
        for (rate, (colour, y)) in rates.into_iter().zip([(GREY, y), (BLUE, y + 12.0)]) {
            let width = rate / most * room;
            let text = format!("{}/s", digits(rate));
            svg.rectangle([left, y, width.max(0.5), 11.0], colour, &format!("{name}: {text}"));
            svg.anchored(left + width + 6.0, y + 10.0, "start", colour, &text);
        }
    }
    svg.finish()
}

fn digits(rate: f64) -> String {
    if rate < 10.0 {
        format!("{rate:.2}")
    } else {
        format!("{rate:.0}")
    }
}
