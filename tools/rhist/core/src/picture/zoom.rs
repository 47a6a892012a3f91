// SPDX-License-Identifier: MIT OR Apache-2.0

//! Zoom and search in flame graphs, in browsers: one script and a few styles in the picture itself,
//! which need nothing from outside.
//!
//! A click on a box, or Enter, shows it in the whole width, with its callers faint below it. A
//! click on `reset` or on the outermost box, or Escape, shows all again. `search`, `/` or Ctrl-F
//! asks for a text or a `/regular expression/`, ignores the case, marks the boxes whose names
//! match, and shows their share of the weight, in which a match above another one is not counted
//! again. An empty text ends a search. The Tab key reaches the boxes, and arrows go from one to
//! others.
//!
//! The script takes names from titles of boxes, and writes them as text only. Roles are set by the
//! script, so without it, the picture is one image, which is all that it is then.

use super::svg::Svg;

const SCRIPT: &str = include_str!("zoom.js");

/// Labels let clicks through to their boxes.
const STYLE: &str = ".flame text{pointer-events:none}.flame[role] rect,.tool{cursor:pointer}.tool{text-decoration:underline}\
.flame .gone{display:none}.flame .faint{opacity:.5}.flame .found{fill:#c77dff}.flame :focus{outline:0;stroke:#000}";

/// Adds the script to a picture with a group `flame` of boxes. Each box has the attribute
/// `data-span`: its place in the whole width, in billionths. A box comes before those above it.
pub fn add(svg: &mut Svg) {
    svg.script(STYLE, &without_comments(SCRIPT));
}

/// Leaves out indentation, and lines that are empty or only a comment.
fn without_comments(script: &str) -> String {
    let lines = script.lines().map(str::trim);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.map(|line| line.to_owned() + "\n").collect()
}
