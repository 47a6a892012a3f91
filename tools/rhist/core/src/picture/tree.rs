// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions of stacks as a tree, from the outermost one.

use std::collections::BTreeMap;

use super::function;
use crate::question::Question;
use crate::table::Key;
use crate::table::Row;
use crate::table::Table;
use crate::table::Unit;
use crate::table::Value;
use crate::table::shown;

/// Limit of functions on top of each other, above any stack of a kernel's histogram.
const MAX_DEPTH: usize = 128;

/// A function, or another key, with its callees.
#[derive(Default)]
pub struct Node {
    /// Weight in each of two tables, itself and its callees.
    pub weights: [f64; 2],
    /// Part of the first weight that is of nodes without weight in the second table.
    pub lost: f64,
    /// Whether it is the reason why a stack ends early, such as `(no rules)`.
    pub is_end: bool,
    /// By name.
    pub callees: BTreeMap<String, Node>,
}

/// The weight of rows, with its unit.
pub struct Weight<'a> {
    /// Weight of a row.
    pub of: fn(&Row) -> f64,
    /// Name for people.
    pub name: &'a str,
    pub unit: Unit,
}

impl<'a> Weight<'a> {
    /// The sum of the first value for time or bytes, otherwise the hits.
    pub fn new(question: &'a Question, table: &'a Table) -> Self {
        match table.values.first() {
            Some(column) if column.unit != Unit::Plain => Weight {
                of: |row| match row.values.first() {
                    Some(Value::Number(number)) => (*number as f64).max(0.0),
                    Some(Value::Dist(dist)) => (dist.sum.unwrap_or(0) as f64).max(0.0),
                    Some(Value::Unknown) | None => 0.0,
                },
                name: &column.name,
                unit: column.unit,
            },
            _ => Weight {
                of: |row| row.hits as f64,
                name: &question.noun,
                unit: Unit::Plain,
            },
        }
    }
}

impl Node {
    /// Adds the rows of the first table (0) or the second one (1).
    pub fn add(&mut self, table: &Table, side: usize, weight: fn(&Row) -> f64) {
        for row in &table.rows {
            let weight = weight(row);
            let mut node = &mut *self;
            node.weights[side] += weight;
            for (name, is_end) in names(row).into_iter().take(MAX_DEPTH) {
                node = node.callees.entry(name).or_default();
                node.weights[side] += weight;
                node.is_end |= is_end;
            }
        }
    }

    /// Sets [`Node::lost`] here and in the callees, and returns it.
    pub fn find_lost(&mut self) -> f64 {
        let below = self.callees.values_mut().map(Node::find_lost).sum();
        self.lost = if self.weights[1] > 0.0 { below } else { self.weights[0] };
        self.lost
    }

    /// Calls `visit` for this node, and for callees in which it returns true for their caller.
    pub fn walk(&self, visit: &mut impl FnMut(&Node) -> bool) {
        if visit(self) {
            self.callees.values().for_each(|callee| callee.walk(visit));
        }
    }
}

/// Names of a row's nodes from the outermost one, and whether each is the end of a stack: first the
/// other keys, then the functions of its stacks, both in the order of the keys. So the stack of a
/// program is below the kernel's if it is the key before it.
fn names(row: &Row) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    for key in shown(&row.keys).iter().filter(|key| !matches!(key, Key::Stack(_))) {
        names.push((key.to_string(), false));
    }
    for key in &row.keys {
        if let Key::Stack(frames) = key {
            let frames = frames.iter().rev();
            names.extend(frames.map(|frame| (function(frame), frame.as_end().is_some())));
        }
    }
    names
}
