// SPDX-License-Identifier: MIT OR Apache-2.0

use insta::assert_snapshot;
use proptest::prelude::*;
use rhist_core::tracefs::Tracefs;

use super::*;

fn tracefs() -> Tracefs {
    Tracefs::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures").into()).unwrap()
}

/// Completions of the last word.
fn candidates(words: &[&str]) -> Vec<CompletionCandidate> {
    let words: Vec<OsString> = ["rhist"].iter().chain(words).map(OsString::from).collect();
    let line = Arc::new(Line::on(&words, tracefs()));
    let mut command = command(&line);
    let index = words.len() - 1;
    clap_complete::engine::complete(&mut command, words, index, None).unwrap()
}

fn shown(words: &[&str]) -> String {
    let mut text = format!("# {}\n", words.join(" "));
    for candidate in candidates(words) {
        let help = candidate
            .get_help()
            .map(|help| format!("  -- {help}"))
            .unwrap_or_default();
        text += &format!("{}{help}\n", candidate.get_value().to_string_lossy());
    }
    text
}

#[test]
fn words() {
    let lines: [&[&str]; 26] = [
        &["count", "s"],
        &["count", "sched:sched_sw"],
        &["count", "sched_w"],
        &["count", "nothing"],
        &["between", "kpr"],
        &["count", "sched:sched_switch", "--by", ""],
        &["count", "sched:sched_switch", "--by=next_"],
        &["count", "sched_switch", "--by", "next_comm,prev_p"],
        &["count", "sched:sched_switch", "--by", "next_pid."],
        &["count", "sched:sched_switch", "--by", "prev_pid,next_prio.b"],
        &["count", "sched:sched_switch", "--by", "common_pid.e"],
        &["count", "sched:sched_switch", "--by", "prev_comm."],
        &["count", "sched:sched_switch", "--sum", ""],
        &["count", "sched:sched_switch", "--where", "prev_"],
        &["count", "sched:sched_switch", "--where", "prev_pid == 3 && next_c"],
        &["count", "sched:sched_switch", "--where", "prev_state == "],
        &["between", "sched_wakeup", "sched_switch", "--on", "p"],
        &["between", "sched_wakeup", "sched_switch", "--on", "pid=next_"],
        &["between", "sched_wakeup", "sched_switch", "--by", "pr"],
        &["show", "kmem:"],
        &["ls", "events", "sc"],
        &["ls", ""],
        &["softirqs", "--by", "v"],
        &["runql"],
        &["top", "runql"],
        &["top", "softirqs", "--wa"],
    ];
    assert_snapshot!(lines.map(shown).join("\n"));
}

#[test]
fn empty_words() {
    let systems = shown(&["count", ""]);
    assert!(systems.starts_with("# count \nftrace:\nirq:\nkmem:\n"), "{systems}");
    let commands = shown(&[""]);
    for name in ["\ncount ", "\nrunqlat ", "\ndoctor "] {
        assert!(commands.contains(name), "{commands}");
    }
    // A recipe's own options.
    assert!(shown(&["syscount", "--e"]).contains("\n--errors "));
    assert!(!shown(&["runqlat", "--e"]).contains("--errors"));
}

#[test]
fn processes() {
    let own = std::process::id().to_string();
    assert!(
        candidates(&["runqlat", "-p", &own])
            .iter()
            .any(|candidate| candidate.get_value() == own.as_str())
    );
}

proptest! {
    // Each case builds the whole command line three times.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn never_panics(word in "[ -~é,.=]{0,12}") {
        for before in [&["count", "sched_switch", "--by"][..], &["count", "sched_switch", "--where"], &["count"]] {
            candidates(&[before, &[word.as_str()]].concat());
        }
    }
}
