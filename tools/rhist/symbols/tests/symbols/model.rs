// SPDX-License-Identifier: MIT OR Apache-2.0

//! A simple model of the lookup: looks at all symbols for each place.

use crate::file::*;
use std::cmp::Reverse;

/// The symbols that may name a place relative to the code; of these the best one.
pub fn find(symbols: &[Symbol], place: u64) -> Option<(String, u64)> {
    let start = |symbol: &Symbol| symbol.value - CODE_ADDRESS;
    let is_label = |symbol: &Symbol| symbol.kind == NOTYPE;
    let in_function = |at: u64| {
        let is_at = |other: &&Symbol| {
            !is_label(other) && (start(other) == at || (start(other)..start(other) + other.size).contains(&at))
        };
        symbols.iter().any(|other| is_at(&other))
    };
    let kept: Vec<&Symbol> = symbols
        .iter()
        .filter(|symbol| start(symbol) < CODE_SIZE && !(is_label(symbol) && in_function(start(symbol))))
        .collect();
    let end = |symbol: &Symbol| {
        let begin = start(symbol);
        if symbol.size > 0 {
            return (begin + symbol.size).min(CODE_SIZE);
        }
        let next = kept.iter().map(|other| start(other)).filter(|&other| other > begin);
        let around = kept.iter().map(|other| (start(other), start(other) + other.size));
        let around = around
            .filter(|other| other.0 <= begin && begin < other.1)
            .map(|other| other.1)
            .max();
        next.chain(around).chain([CODE_SIZE]).min().unwrap()
    };
    let rank = |symbol: &&&Symbol| {
        let binding = [LOCAL, WEAK, GLOBAL].iter().position(|&bind| bind == symbol.bind);
        let underscores = symbol.name.iter().take_while(|&&byte| byte == b'_').count();
        (
            start(symbol),
            binding,
            symbol.size > 0,
            Reverse(end(symbol)),
            Reverse(underscores),
            Reverse(symbol.name.clone()),
        )
    };
    let best = kept
        .iter()
        .filter(|symbol| (start(symbol)..end(symbol)).contains(&place))
        .max_by_key(rank)?;
    Some((String::from_utf8(best.name.clone()).unwrap(), place - start(best)))
}
