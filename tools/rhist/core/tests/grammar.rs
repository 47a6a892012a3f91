// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys, values and filters: what is taken, and that a problem is always within the text. What is said about those that
//! are not taken is in the snapshots of the command.

use proptest::prelude::*;
use rhist_core::grammar::check_filter;
use rhist_core::grammar::check_key;
use rhist_core::grammar::check_keys;
use rhist_core::grammar::check_value;
use rhist_core::problem::Problem;
use rhist_core::tracefs::format::Format;

fn switch() -> Format {
    Format::parse(include_str!("fixtures/events/sched/sched_switch/format")).unwrap()
}

fn kmalloc() -> Format {
    Format::parse(include_str!("fixtures/events/kmem/kmalloc/format")).unwrap()
}

#[test]
fn good_keys() {
    for text in [
        "next_pid",
        "next_pid.hex,prev_comm",
        "common_pid.execname,common_comm,common_cpu",
        "common_timestamp.usecs-$ts0",
        "(common_timestamp-$ts0).log2=3",
        "next_prio.buckets=10",
        "next_pid.log2",
        "-(next_pid)",
        "next_pid*2+prev_pid/0x10",
        "common_stacktrace",
        "cpu,comm",
    ] {
        assert_eq!(check_keys(&switch(), text), Ok(()), "{text}");
    }
    assert_eq!(check_keys(&kmalloc(), "call_site.sym-offset,ptr.sym"), Ok(()));
}

#[test]
fn good_values() {
    for text in [
        "next_prio",
        "(next_prio-prev_prio).dist=5",
        "$lat",
        "prev_state.max",
        "hitcount.percent",
    ] {
        assert_eq!(check_value(&switch(), text), Ok(()), "{text}");
    }
}

#[test]
fn good_filters() {
    for text in [
        "prev_pid == 1",
        "prev_state == 0 || prev_state == 256",
        "!(prev_comm ~ \"cat*\" && next_prio<-1) || common_cpu & CPUS{0-3,8}",
        "COMM != 'x y' && CPU == 0x1f",
        "next_comm == \"a || b\"",
    ] {
        assert_eq!(check_filter(&switch(), text), Ok(()), "{text}");
    }
    assert_eq!(check_filter(&kmalloc(), "call_site.function == vfs_read"), Ok(()));
}

fn lies_in(text: &str, problem: &Problem) -> bool {
    text.get(problem.at.clone()).is_some() && !problem.title.is_empty()
}

/// Texts made of the words of the language.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "next_pid|prev_comm|common_stacktrace|hex|sym-offset|log2|buckets|dist|foo|é|[$]x|CPUS",
        "[-+*/().,=<>&|!~{} ]|==|&&|[|][|]",
        "[0-9]{1,3}|0x1f|10ms|'a b'|\"",
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn problems_lie_in_the_text(text in words()) {
        for check in [check_key, check_keys, check_value, check_filter] {
            if let Err(problem) = check(&switch(), &text) {
                prop_assert!(lies_in(&text, &problem), "{:?}", problem);
            }
        }
    }

    #[test]
    fn deep_parentheses_are_no_matter(depth in 1usize..10_000) {
        let text = format!("{}prev_pid == 1{}", "(".repeat(depth), ")".repeat(depth));
        prop_assert_eq!(check_filter(&switch(), &text), Ok(()));
        prop_assert!(check_filter(&switch(), &text[1..]).is_err());
        prop_assert_eq!(check_key(&switch(), &"(".repeat(depth)).is_err(), true);
    }
}
