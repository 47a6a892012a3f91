// SPDX-License-Identifier: MIT OR Apache-2.0

//! Suggests similar names for a wrong one.

/// Maximum number of suggestions.
const NAMES_MAX: usize = 3;

/// Names similar to `word`, the nearest first; at most three.
///
/// Similar names differ in few changed, missing, added or swapped characters (Damerau-Levenshtein
/// distance), ignoring case. Without any, returns names that contain `word` or are contained in it.
pub fn near<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    // One in three characters may be wrong.
    let limit = length.div_ceil(3);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let lower = name.to_lowercase();
        if lower.chars().count().abs_diff(length) <= limit {
            let distance = strsim::damerau_levenshtein(&word, &lower);
            if distance <= limit && distance < length {
                found.push((distance, name));
                continue;
            }
        }
        if length >= 3 && (lower.contains(&word) || (lower.len() >= 4 && word.contains(&lower))) {
            found.push((limit + 1 + lower.len().abs_diff(word.len()), name));
        }
    }
    found.sort_unstable();
    found.dedup();
    // Drops worse matches if a good one exists.
    if let Some(&(nearest, _)) = found.first() {
        found.retain(|&(distance, _)| nearest > limit || distance == nearest);
    }
    found.into_iter().take(NAMES_MAX).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: [&str; 7] = [
        "prev_comm",
        "prev_pid",
        "prev_prio",
        "prev_state",
        "next_comm",
        "next_pid",
        "next_prio",
    ];

    #[test]
    fn nearest_first() {
        assert_eq!(near("next_pidd", FIELDS), ["next_pid"]);
        assert_eq!(near("nxet_pid", FIELDS), ["next_pid"]);
        assert_eq!(near("NEXT_PRIO", FIELDS), ["next_prio"]);
        assert_eq!(near("pid", FIELDS), ["next_pid", "prev_pid"]);
        assert_eq!(
            near("sched_swich", ["sched_stick", "sched_switch", "sched_wakeup"]),
            ["sched_switch"]
        );
        assert_eq!(near("bytes", FIELDS), [""; 0]);
        assert_eq!(near("", FIELDS), [""; 0]);
    }

    proptest! {
        #[test]
        fn a_name_that_exists_is_the_nearest(index in 0..FIELDS.len()) {
            prop_assert_eq!(near(FIELDS[index], FIELDS)[0], FIELDS[index]);
        }

        #[test]
        fn one_wrong_character_is_found(index in 0..FIELDS.len(), at in 0usize..8, other in "[a-z0-9_é]") {
            let name = FIELDS[index];
            let wrong = format!("{}{other}{}", &name[..at], &name[at + 1..]);
            prop_assert!(near(&wrong, FIELDS).contains(&name));
        }
    }
}
