// SPDX-License-Identifier: GPL-2.0

//! Histograms of random records against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rhist::hist::show::sort::heapsort;

use super::events::*;

/// The bytes of a string key of `len` bytes that holds `string`.
fn padded(string: &[u8], len: usize) -> Vec<u8> {
    let mut key = string[..string.len().min(len - 1)].to_vec();
    key.resize(len, 0);
    key
}

/// Lines that `keys=…` with the given printed name shows after keys were counted: a map from the
/// key's bytes to the hitcount gives the order, `shown` the text.
fn expected(
    hits: &BTreeMap<Vec<u8>, u64>,
    descending: bool,
    shown: impl Fn(&[u8]) -> String,
) -> Vec<String> {
    let mut entries: Vec<_> = hits.iter().collect();
    let compare = |a: &(&Vec<u8>, &u64), b: &(&Vec<u8>, &u64)| match descending {
        true => b.1.cmp(a.1),
        false => a.1.cmp(b.1),
    };
    heapsort(&mut entries, compare, &|| Ok(())).unwrap();
    let entry =
        |(key, hits): (&Vec<u8>, &u64)| format!("{{ {} }} hitcount: {hits:>10}", shown(key));
    entries.into_iter().map(entry).collect()
}

proptest! {
    #[test]
    fn numbers(pids in prop::collection::vec(-40i32..40, 0..300), descending: bool) {
        let order = if descending { "descending" } else { "ascending" };
        let hist = hist(&sched_waking(), &format!("keys=pid:sort=hitcount.{order}"));
        let mut model = BTreeMap::new();
        for (n, &pid) in pids.iter().enumerate() {
            waking(b"", pid).hit_in(&hist, n % CPUS, &[0; 16]);
            *model.entry(i64::from(pid).to_ne_bytes().to_vec()).or_insert(0) += 1;
        }
        let shown = |key: &[u8]| {
            format!("pid: {:>10}", u64::from_ne_bytes(key.try_into().unwrap()))
        };
        prop_assert_eq!(entries(&hist), expected(&model, descending, shown));
        prop_assert_eq!(hist.hits(), pids.len() as u64);
    }

    #[test]
    fn strings(strings in prop::collection::vec("[ab]{0,3}", 0..100), cut in 0usize..400) {
        let hist = hist(&zoo(), "keys=dyn");
        let mut model = BTreeMap::new();
        for string in &strings {
            let mut bytes = string.repeat(100).into_bytes();
            bytes.truncate(cut);
            Bytes::new(ZOO_END).data_loc(67, &bytes).hit(&hist);
            *model.entry(padded(&bytes, 256)).or_insert(0) += 1;
        }
        let shown = |key: &[u8]| {
            let end = key.iter().position(|&b| b == 0).unwrap();
            format!("dyn: {:<50}", std::str::from_utf8(&key[..end]).unwrap())
        };
        prop_assert_eq!(entries(&hist), expected(&model, false, shown));
    }

    /// More keys than fit: which ones get in depends on their order.
    #[test]
    fn full(keys in prop::collection::vec(0u64..400, 0..600)) {
        let hist = hist(&zoo(), "keys=u64:size=128");
        let mut model = BTreeMap::new();
        let mut drops = 0;
        for key in &keys {
            Bytes::new(ZOO_END).put(30, &key.to_ne_bytes()).hit(&hist);
            let bytes = key.to_ne_bytes().to_vec();
            if model.len() < 128 || model.contains_key(&bytes) {
                *model.entry(bytes).or_insert(0) += 1;
            } else {
                drops += 1;
            }
        }
        let shown = |key: &[u8]| {
            format!("u64: {:>10}", u64::from_ne_bytes(key.try_into().unwrap()))
        };
        prop_assert_eq!(entries(&hist), expected(&model, false, shown));
        prop_assert_eq!((hist.hits(), hist.drops()), (keys.len() as u64 - drops, drops));
    }

    /// Sums of products, from left to right, against the same computation with 128 bits.
    #[test]
    fn expressions(
        operands in prop::collection::vec((0usize..4, 0u8..4), 1..=4),
        numbers: [u32; 4],
        negate: bool,
    ) {
        let names = ["u32", "s32", "u64", "5"];
        let [u32, s32, a, b] = numbers;
        let u64 = u64::from(a) << 32 | u64::from(b);
        let values = [u64::from(u32), s32 as i32 as u64, u64, 5];
        let mut text = String::new();
        let mut terms: Vec<(bool, u64)> = Vec::new();
        for (n, &(operand, operator)) in operands.iter().enumerate() {
            let value = values[operand];
            if n > 0 {
                text.push(['+', '-', '*', '/'][operator as usize]);
            }
            match (n, operator) {
                (0, _) | (_, 0) => terms.push((false, value)),
                (_, 1) => terms.push((true, value)),
                (_, 2) => {
                    let last = &mut terms.last_mut().unwrap().1;
                    *last = last.wrapping_mul(value);
                }
                _ => {
                    let last = &mut terms.last_mut().unwrap().1;
                    *last = last.checked_div(value).unwrap_or(u64::MAX);
                }
            }
            text += names[operand];
        }
        let mut result = 0i128;
        for (minus, value) in terms {
            result += i128::from(value) * if minus { -1 } else { 1 };
        }
        // Three operators at most, and only constants are folded.
        if negate && operands.len() < 4 {
            text = format!("-({text})");
            result = -result;
        }
        // A minus inside the parentheses would become the root of the expression.
        prop_assume!(!text.starts_with("-(") || text.matches('-').count() == 1);
        let hist = hist(&zoo(), &format!("keys={text}"));
        Bytes::new(ZOO_END)
            .put(18, &u32.to_ne_bytes())
            .put(14, &s32.to_ne_bytes())
            .put(30, &u64.to_ne_bytes())
            .hit(&hist);
        let entries = entries(&hist);
        let key = entries[0].split(" } ").next().unwrap().rsplit(' ').next().unwrap();
        prop_assert_eq!(key, (result as u64).to_string());
    }
}
