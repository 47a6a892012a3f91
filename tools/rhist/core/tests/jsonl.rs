// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads `hist_jsonl` files of a kernel, and modified ones.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use rhist_core::jsonl;
use rhist_core::table::ReadError;
use rhist_core::table::Value;

/// All fixtures: names and contents.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    assert!(!paths.is_empty());
    let contents = |path: &PathBuf| (path.display().to_string(), fs::read(path).unwrap());
    paths.iter().map(contents).collect()
}

#[test]
fn hits_are_those_of_the_totals() {
    for (name, file) in fixtures() {
        let histograms = jsonl::read(&file[..]).unwrap();
        assert!(!histograms.is_empty(), "{name}");
        for histogram in histograms
            .iter()
            .filter(|histogram| histogram.entries == histogram.table.rows.len() as u64)
        {
            assert_eq!(histogram.table.total().hits, histogram.hits, "{name}");
        }
    }
}

#[test]
fn quantiles_are_those_of_the_kernel() {
    let mut compared = 0;
    for (name, file) in fixtures() {
        let histograms = jsonl::read(&file[..]).unwrap();
        let mut rows = histograms.iter().flat_map(|histogram| &histogram.table.rows);
        for line in file
            .split(|&byte| byte == b'\n')
            .filter(|line| line.starts_with(b"{\"type\":\"entry\""))
        {
            let row = rows.next().unwrap();
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            let values = line["values"].as_array().unwrap().iter().skip(1);
            for (theirs, ours) in values.zip(&row.values) {
                let (Some(theirs), Value::Dist(ours)) = (theirs["quantiles"].as_object(), ours) else {
                    continue;
                };
                for (percent, value) in theirs {
                    let quantile = ours.quantile(percent.parse::<f64>().unwrap() / 100.0);
                    let estimate = quantile.map(|quantile| quantile.value);
                    assert_eq!(estimate, value.as_f64(), "{name}: p{percent} of {ours:?}");
                    compared += 1;
                }
            }
        }
        assert!(rows.next().is_none());
    }
    assert!(compared > 50, "{compared}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_do_no_harm(bytes: Vec<u8>) {
        let _ = jsonl::read(&bytes[..]);
    }

    #[test]
    fn a_part_of_a_file_is_not_whole(file in any::<prop::sample::Index>(), end in any::<prop::sample::Index>()) {
        let fixtures = fixtures();
        let (_, file) = file.get(&fixtures);
        let part = &file[..end.index(file.len())];
        // Accepted only if all histograms are whole; the last newline may be missing.
        let trailers = part.split(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\"complete\":true}")).count();
        match jsonl::read(part) {
            Ok(histograms) => prop_assert_eq!(histograms.len(), trailers),
            // A truncated header is invalid JSON, and does not show whether more was to follow.
            Err(ReadError::Format { .. }) => {
                const HEADER: &[u8] = b"{\"type\":\"header\",";
                let last = part.rsplit(|&byte| byte == b'\n').next().unwrap();
                prop_assert!(last.starts_with(HEADER.get(..last.len()).unwrap_or(HEADER)));
            }
            Err(error) => prop_assert!(matches!(error, ReadError::Incomplete { .. }), "{}", error),
        }
    }

    #[test]
    fn changed_files_do_no_harm(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), mutation()), 1..6),
    ) {
        let fixtures = fixtures();
        let mut file = file.get(&fixtures).1.clone();
        for (at, change) in changes {
            let at = at.index(file.len());
            file.splice(at..(at + change.0).min(file.len()), change.1);
        }
        if let Ok(histograms) = jsonl::read(&file[..]) {
            for table in histograms.into_iter().map(|histogram| histogram.table) {
                let row = table.total();
                for value in &row.values {
                    if let Value::Dist(dist) = value {
                        let _ = (dist.quantile(0.5), dist.mean(), dist.since(dist.clone()));
                    }
                }
                let _ = (table.since(table.clone()), table.without_key(0));
            }
        }
    }
}

/// Number of bytes to replace, and the replacement.
fn mutation() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let texts = [
        "",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        "null",
        "-",
        "\n",
        "9",
        "99999999999999999999",
        "1e9",
        "\\u0000",
    ];
    let text = prop::sample::select(texts.to_vec()).prop_map(|text| text.as_bytes().to_vec());
    (0..4usize, prop_oneof![text, prop::collection::vec(any::<u8>(), 1..4)])
}
