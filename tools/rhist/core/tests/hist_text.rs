// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads `hist` files of a kernel, and modified ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use rhist_core::hist_text;
use rhist_core::jsonl;
use rhist_core::table::Frame;
use rhist_core::table::Histogram;
use rhist_core::table::Key;
use rhist_core::table::ReadError;
use rhist_core::table::Text;
use rhist_core::table::Value;

fn path(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

/// Fixtures with a text of C. Rhist's text is recorded only where it differs.
const BOTH: [&str; 6] = ["plain", "names", "modifiers", "actions", "log2", "full"];
const DIFFERENT: [&str; 1] = ["modifiers"];
const RHIST: [&str; 3] = ["dist", "dist_units", "log2_fine"];

fn text(name: &str) -> Vec<Histogram> {
    hist_text::read(&fixture(name)[..]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Rhist's text, or C's if both are the same.
fn text_of_rhist(name: &str) -> Vec<Histogram> {
    let own = format!("{name}.rhist.txt");
    text(&if path(&own).exists() {
        own
    } else {
        format!("{name}.c.txt")
    })
}

/// Entries by their keys.
type Entries = BTreeMap<Vec<Key>, (u64, Vec<Value>, Vec<(String, Key)>)>;

/// Entries of a table reduced to the content of the text, to compare both readers.
fn entries(histogram: &Histogram) -> Entries {
    let unsigned = |number: i128| if number < 0 { number + (1 << 64) } else { number };
    let key = |key: &Key| match key {
        Key::Number(number) => Key::Number(unsigned(*number)),
        Key::Text(text) => Key::Text(Text::from(text.trim_ascii_end())),
        Key::Stack(frames) => Key::Stack(frames.iter().map(shown).collect()),
        Key::Address(frame) => Key::Address(Frame {
            address: frame.address,
            ..shown(frame)
        }),
        key => key.clone(),
    };
    let has_part = |n: usize| histogram.trigger.to_string().contains([".percent", ".graph"][n % 2]);
    let value = |(n, value): (usize, &Value)| match value {
        _ if has_part(n) => Value::Unknown,
        Value::Number(number) => Value::Number(unsigned(*number)),
        Value::Dist(dist) => Value::Dist(rhist_core::table::Dist {
            count: dist.count,
            min: dist.min,
            max: dist.max,
            ..Default::default()
        }),
        Value::Unknown => Value::Unknown,
    };
    let saved = |(name, value): &(Arc<str>, Key)| (name.to_string(), key(value));
    // The text omits these for an action snapshot().
    let worst = |row: &rhist_core::table::Row| match &row.worst {
        Some(worst) if !histogram.trigger.to_string().contains(".snapshot(") => {
            let value = ("value".to_owned(), Key::Number(worst.value));
            [value].into_iter().chain(worst.saved.iter().map(saved)).collect()
        }
        _ => Vec::new(),
    };
    let rows = histogram.table.rows.iter().map(|row| {
        let mut values: Vec<Value> = row.values.iter().enumerate().map(value).collect();
        // The text shows .min and .max with a sign.
        for (column, (value, own)) in histogram.table.values.iter().zip(values.iter_mut().zip(&row.values)) {
            if column.fold != rhist_core::table::Fold::Sum {
                *value = own.clone();
            }
        }
        (row.keys.iter().map(key).collect(), (row.hits, values, worst(row)))
    });
    rows.collect()
}

/// A function as in the text: an address only if it has no symbol.
fn shown(frame: &Frame) -> Frame {
    Frame {
        address: frame.address.filter(|_| frame.symbol.is_none()),
        symbol: frame.symbol.clone(),
    }
}

/// Excludes stacks and times, which differ between C and rhist.
fn comparable(histogram: &&Histogram) -> bool {
    let trigger = histogram.trigger.to_string();
    !trigger.contains("common_stacktrace")
        && !trigger.contains("common_timestamp")
        && histogram.table.losses.dropped == 0
}

#[test]
fn text_and_json_of_rhist_are_the_same() {
    for name in BOTH.into_iter().chain(RHIST) {
        let from_text = text_of_rhist(name);
        let from_json = jsonl::read(&fixture(&format!("{name}.jsonl"))[..]).unwrap();
        assert_eq!(from_text.len(), from_json.len(), "{name}");
        for (text, json) in from_text.iter().zip(&from_json) {
            let trigger = &json.trigger;
            assert_eq!(entries(text), entries(json), "{name}: {trigger}");
            assert_eq!(text.trigger, json.trigger);
            assert_eq!(
                (&text.name, &text.filter, text.paused),
                (&json.name, &json.filter, json.paused)
            );
            assert_eq!((text.size, &text.clock, text.hits), (json.size, &json.clock, json.hits));
            assert_eq!(text.entries, json.entries);
            assert_eq!(text.table.keys, json.table.keys, "{trigger}");
            assert_eq!(text.table.losses.dropped, json.table.losses.dropped);
            assert_eq!(text.table.losses.no_bucket, json.table.losses.no_bucket);
        }
    }
}

#[test]
fn texts_of_c_and_rhist_are_the_same() {
    let mut compared = 0;
    for name in DIFFERENT {
        let (c, rhist) = (text(&format!("{name}.c.txt")), text_of_rhist(name));
        assert_eq!(c.len(), rhist.len());
        for (c, rhist) in c.iter().zip(&rhist).filter(|(c, _)| comparable(c)) {
            assert_eq!(entries(c), entries(rhist), "{name}: {}", c.trigger);
            compared += 1;
        }
    }
    assert!(compared > 6, "{compared}");
}

#[test]
fn hits_are_those_of_the_totals() {
    for name in BOTH {
        for histogram in text(&format!("{name}.c.txt")) {
            assert_eq!(
                histogram.table.total().hits,
                histogram.hits,
                "{name}: {}",
                histogram.trigger
            );
        }
    }
}

#[test]
fn quantiles_of_log2_hold_those_of_distributions() {
    // The same events: by powers of two from C, as a distribution from rhist.
    let log2 = text("log2.c.txt").remove(0).table;
    let folded = log2.fold_range(1, Default::default(), Some(0), |_| ());
    let dist = jsonl::read(&fixture("dist.jsonl")[..]).unwrap().remove(0).table;
    assert_eq!(folded.rows.len(), 4);
    for row in &folded.rows {
        let fine = dist.rows.iter().find(|other| other.keys == row.keys).unwrap();
        let (Value::Dist(coarse), Value::Dist(fine)) = (&row.values[0], &fine.values[0]) else {
            panic!("{row:?}");
        };
        assert_eq!(
            (coarse.count, coarse.sum, coarse.one_has_zero),
            (fine.count, fine.sum, true)
        );
        for percent in [1, 25, 50, 75, 90, 99, 100] {
            let quantile = |dist: &rhist_core::table::Dist| dist.quantile(f64::from(percent) / 100.0).unwrap();
            let (coarse, fine) = (quantile(coarse), quantile(fine));
            assert!(
                coarse.low <= fine.low && fine.high <= coarse.high,
                "{coarse:?} {fine:?}"
            );
        }
    }
}

#[test]
fn a_cut_text_is_not_whole() {
    let whole = fixture("actions.c.txt");
    for end in 0..whole.len() {
        let whole_ones = whole[..end].windows(9).filter(|window| window == b"Dropped: ").count();
        match hist_text::read(&whole[..end]) {
            // Accepted only if all histograms are whole, including the line of the last total.
            Ok(histograms) => {
                assert_eq!(histograms.len(), whole_ones, "{end}");
                assert!(whole[..end].ends_with(b"\n") || end == 0);
            }
            Err(error) => assert!(matches!(error, ReadError::Incomplete { .. }), "{end}: {error}"),
        }
    }
}

fn all() -> Vec<Vec<u8>> {
    let c = BOTH.iter().map(|name| fixture(&format!("{name}.c.txt")));
    let rhist = RHIST.iter().map(|name| fixture(&format!("{name}.rhist.txt")));
    c.chain(rhist).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_do_no_harm(bytes: Vec<u8>) {
        let _ = hist_text::read(&bytes[..]);
    }

    #[test]
    fn changed_files_do_no_harm(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), mutation()), 1..6),
    ) {
        let files = all();
        let mut file = file.get(&files).clone();
        for (at, change) in changes {
            let at = at.index(file.len());
            file.splice(at..(at + change.0).min(file.len()), change.1);
        }
        if let Ok(histograms) = hist_text::read(&file[..]) {
            for table in histograms.into_iter().map(|histogram| histogram.table) {
                let folded = table.fold_range(0, Default::default(), Some(0), |_| ());
                let _ = (folded.total(), table.since(table.clone()), table.without_key(0));
            }
        }
    }
}

/// Number of bytes to replace, and the replacement.
fn mutation() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let texts = [
        " ",
        "{ ",
        " }",
        "[",
        "]",
        ",",
        ":",
        "\n",
        "9",
        "99999999999999999999",
        "~ 2^99",
        "hitcount:",
        "\nTotals:\n",
    ];
    let text = prop::sample::select(texts.to_vec()).prop_map(|text| text.as_bytes().to_vec());
    (0..4usize, prop_oneof![text, prop::collection::vec(any::<u8>(), 1..4)])
}
