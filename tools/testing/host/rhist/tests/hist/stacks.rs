// SPDX-License-Identifier: GPL-2.0

//! Stacks as keys beside others, which are interned. With a variable the key has their words: both
//! histograms show the same.

use kernel::sync::Arc;
use proptest::prelude::*;
use rhist::hist::Histogram;
use serde_json::Value;

use super::events::*;
use super::intervals;
use super::jsonl;
use super::others::Worker;

/// Stacks, some of which differ little.
const STACKS: [&[u64]; 9] = [
    &[],
    &[1],
    &[1, 2],
    &[2, 1],
    &[1, 0, 2],
    &[256],
    &[7; 30],
    &[7; 31],
    &[1 << 63, 3],
];

/// Keys with a stack beside others: of the record, and of the hit.
const KEYS: [&str; 7] = [
    "stack,u64",
    "u64,stack",
    "stack.stacktrace,even,u64",
    "common_stacktrace,u64",
    "common_stacktrace,dyn",
    "stack.stacktrace,common_stacktrace",
    "u64,stack.stacktrace,common_stacktrace",
];

const SORTS: [&str; 3] = ["", ":sort=u64.descending", ":sort=hitcount.descending"];

/// Counts a hit with this stack and number.
fn hit(hist: &Histogram, stack: &[u64], number: u64, cpu: usize) {
    // The count of the field includes itself.
    let len = stack.len() as u64 + 1;
    let words = [len].into_iter().chain(stack.iter().copied());
    let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
    let text = format!("text {}\0", number % 3);
    Bytes::new(ZOO_END)
        .put(51, &[b'0' + number as u8 % 4; 16])
        .put(30, &number.to_ne_bytes())
        .data_loc(87, &bytes)
        .data_loc(67, text.as_bytes())
        .hit_in(hist, cpu, b"task\0\0\0\0\0\0\0\0\0\0\0\0");
}

/// A histogram of `params` whose stacks are interned, and one whose keys have their words.
fn both(params: &str, clauses: &str) -> [Arc<Histogram>; 2] {
    let [interned, plain] =
        ["", ":v=1"].map(|variable| hist(&zoo(), &format!("keys={params}{variable}{clauses}")));
    assert!(interned.interned().is_some(), "{params}");
    assert!(plain.interned().is_none(), "{params}");
    [interned, plain]
}

/// The entries and totals in `hist`.
fn shown(hist: &Arc<Histogram>) -> String {
    let file = hist_file(hist);
    file.split_once("\n\n").unwrap().1.to_owned()
}

/// The keys, hits and trailer in `hist_jsonl`.
fn said(hist: &Arc<Histogram>) -> (Vec<[Value; 2]>, Value) {
    let file = text(|out| show_jsonl(out, [view(hist)].into_iter(), &Functions));
    let said = jsonl::read(&file).swap_remove(0);
    let entries = said.entries.iter();
    let entries = entries.map(|entry| [entry["keys"].clone(), entry["values"][0].clone()]);
    (entries.collect(), said.trailer["dropped"].clone())
}

proptest! {
    /// Same entries in the same order.
    #[test]
    fn the_same_as_their_words(
        hits in prop::collection::vec((0..STACKS.len(), 0u64..5, 0..CPUS), 0..200),
        keys in 0..KEYS.len(),
        sort in 0..SORTS.len(),
    ) {
        let (keys, sort) = (KEYS[keys], SORTS[sort]);
        prop_assume!(!sort.contains("u64") || keys.contains("u64"));
        let [interned, plain] = both(keys, sort);
        for &(stack, number, cpu) in &hits {
            hit(&interned, STACKS[stack], number, cpu);
            hit(&plain, STACKS[stack], number, cpu);
        }
        prop_assert_eq!(shown(&interned), shown(&plain));
        prop_assert_eq!(said(&interned), said(&plain));
        prop_assert_eq!(interned.drops(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// More keys than fit, with as many stacks: the same ones get in, and hits of the others are
    /// drops, or count in `other`.
    #[test]
    fn full(
        hits in prop::collection::vec((0u64..300, 0u64..3), 0..700),
        keys in 0..KEYS.len(),
        other: bool,
    ) {
        let clauses = if other { ":size=128:full(other)" } else { ":size=128" };
        let [interned, plain] = both(KEYS[keys], clauses);
        for &(stack, number) in &hits {
            // The last one differs from others in its last word.
            let stack = numbered(stack);
            hit(&interned, &stack, number, 0);
            hit(&plain, &stack, number, 0);
        }
        prop_assert_eq!(shown(&interned), shown(&plain));
        prop_assert_eq!(said(&interned), said(&plain));
        let (_, without) = interned.interned().unwrap();
        prop_assert!(without <= interned.drops() || other);
    }

    /// Both maps of a histogram that grows do so: no key and no stack is dropped, although most
    /// hits bring a new one.
    #[test]
    fn growing(
        hits in prop::collection::vec((0u64..5000, 0u64..2), 0..1000),
        keys in 0..KEYS.len(),
        burst in 1usize..300,
    ) {
        let [interned, plain] = both(KEYS[keys], ":size=128..16384");
        let mut workers = [&interned, &plain].map(Worker::new);
        for burst in hits.chunks(burst) {
            for &(stack, number) in burst {
                let stack = numbered(stack);
                hit(&interned, &stack, number, 0);
                hit(&plain, &stack, number, 0);
            }
            workers.iter_mut().for_each(|worker| worker.work(100));
        }
        prop_assert_eq!(shown(&interned), shown(&plain));
        prop_assert_eq!(said(&interned), said(&plain));
        prop_assert_eq!((interned.drops(), interned.interned().unwrap().1), (0, 0));
    }

    /// Entries are taken out, and stacks with their last entry. Keys that are left, or come later,
    /// have their own stacks.
    #[test]
    fn forgetting(
        rounds in prop::collection::vec(
            (prop::collection::vec((0u64..60, 0u64..3), 0..50), 100u64..900),
            0..20,
        ),
        keys in 0..KEYS.len(),
        clauses in 0..FORGETTING.len(),
    ) {
        let [interned, plain] = both(KEYS[keys], FORGETTING[clauses]);
        let mut workers = [&interned, &plain].map(Worker::new);
        for (round, (hits, ms)) in (0..).zip(rounds) {
            for (stack, number) in hits {
                // Stacks that come again, and stacks of this time.
                let stack = stack % 20 + round * 20 * (stack / 20);
                let stack = numbered(stack);
                hit(&interned, &stack, number, 0);
                hit(&plain, &stack, number, 0);
            }
            let [a, b] = [&interned, &plain].map(shown);
            prop_assert_eq!(a, b);
            prop_assert_eq!(said(&interned), said(&plain));
            let now = BOOT_NS.get();
            for worker in &mut workers {
                BOOT_NS.set(now);
                worker.work(ms);
            }
        }
        prop_assert_eq!(interned.interned().unwrap().1, 0);
        // All entries expire.
        for _ in 0..20 {
            workers[0].work(250);
        }
        prop_assert_eq!(interned.interned().unwrap().0, 0);
    }

    /// Each key of a full map, whose oldest entries are taken out, has its own stack. A number in
    /// the key tells which. Hits and readers come between all steps of the worker.
    #[test]
    fn recycled(
        hits in prop::collection::vec(0u64..400, 0..400),
        burst in 10usize..60,
        clauses in 0..RECYCLING.len(),
    ) {
        let hist = hist(&zoo(), &format!("keys=stack.stacktrace,u64:{}", RECYCLING[clauses]));
        let mut worker = Worker::new(&hist);
        let mut hits = hits.into_iter();
        let mut right = Ok(());
        while hits.len() > 0 && right.is_ok() {
            for number in hits.by_ref().take(burst) {
                hit(&hist, &numbered(number), number, 0);
            }
            worker.work_beside(300, || {
                if let Some(number) = hits.next() {
                    hit(&hist, &numbered(number), number, 0);
                }
                right = std::mem::replace(&mut right, Ok(())).and_then(|()| numbered_rightly(&hist));
            });
        }
        right?;
    }
}

/// The stack of a key with this number.
fn numbered(number: u64) -> Vec<u64> {
    (1..=number % 7).chain([number + 1]).collect()
}

/// Returns whether each key has the stack of its number.
fn numbered_rightly(hist: &Arc<Histogram>) -> Result<(), TestCaseError> {
    for [keys, _] in said(hist).0 {
        let stack = keys[0]["stack"].as_array().unwrap();
        let number = keys[1].as_u64().unwrap();
        let last = format!("{:x}", number + 1);
        prop_assert_eq!(stack.len(), numbered(number).len());
        prop_assert!(
            stack.last().unwrap().to_string().contains(&last),
            "{:?}: {}",
            stack,
            last
        );
    }
    Ok(())
}

/// Clauses by which the oldest entries are taken out.
const RECYCLING: [&str; 3] = [
    "size=128:full(recycle)",
    "size=128..512:expire(1s):full(recycle)",
    "size=256:expire(1s)",
];

/// Clauses by which entries expire.
const FORGETTING: [&str; 2] = [":size=256:expire(1s)", ":size=128..1024:expire(1s)"];

/// Equal stacks are stored once; two in a key, twice as many as entries.
#[test]
fn stored_once() {
    let event = zoo();
    let one = hist(&event, "keys=u64,stack:size=128");
    let two = hist(&event, "keys=stack.stacktrace,common_stacktrace:size=128");
    for number in 0..100 {
        hit(&one, STACKS[number as usize % 5], number, 0);
        hit(&two, &[number], 0, 0);
    }
    assert_eq!(one.interned(), Some((5, 0)));
    assert_eq!(two.interned(), Some((101, 0)));
    for number in 100..300 {
        hit(&two, &[number], 0, 0);
    }
    // The stack of all hits takes one of 256 places.
    assert_eq!(two.interned(), Some((256, 45)));
    assert_eq!((two.hits(), two.drops()), (128, 172));
}

/// A lone stack, and keys of a trigger with variables or actions, have words.
#[test]
fn words() {
    for params in [
        "keys=common_stacktrace",
        "keys=stack",
        "keys=stack,u64:x=u64",
        "keys=u64,dyn",
    ] {
        assert_eq!(hist(&zoo(), params).interned(), None, "{params}");
    }
}

/// An interval has the stacks of its hits.
#[test]
fn interval() {
    let [interned, plain] = both("u64,stack", "");
    let readers = [&interned, &plain].map(intervals::reader);
    for round in 0..3 {
        for number in 0..20 {
            hit(&interned, STACKS[(number % 5 + round) as usize], number, 0);
            hit(&plain, STACKS[(number % 5 + round) as usize], number, 0);
        }
        let [a, b] = readers.each_ref().map(|reader| {
            intervals::cut(reader.histogram());
            intervals::entries(reader)
        });
        assert_eq!(a, b, "{round}");
        let rows = a.iter().filter(|line| line.contains("hitcount:"));
        assert_eq!(rows.count(), 20);
    }
}

/// A stack takes one word of a key, so keys fit that are too long for C. With their words they do
/// not.
#[test]
fn short_keys() {
    let keys = "keys=stack.stacktrace,common_stacktrace,dyn,u64,stack";
    let refused = build(&zoo(), &format!("{keys}:v=1")).map(drop);
    assert!(refused.is_err());
    assert!(build(&zoo(), &format!("{keys}:size=128..256:expire(60s)")).is_ok());
    let hist = hist(&zoo(), keys);
    for number in [1, 2, 1] {
        hit(&hist, &[5, number], number, 0);
    }
    let (entries, _) = said(&hist);
    assert_eq!(entries.len(), 2);
    for ([key, hits], number) in entries.iter().zip([2, 1]) {
        let [one, hit, text, own, two] = &key.as_array().unwrap()[..] else {
            panic!("{key}")
        };
        assert_eq!(one, two);
        assert_eq!(hit["stack"].as_array().unwrap().len(), STACK.len());
        assert_eq!(one["stack"].as_array().unwrap().len(), 2);
        assert_eq!(
            (text, own),
            (&format!("text {number}").into(), &number.into())
        );
        assert_eq!(*hits, 3 - number);
    }
    let refused = build(&zoo(), "keys=stack,dyn,rel").map(drop);
    assert!(refused.is_err());
}
