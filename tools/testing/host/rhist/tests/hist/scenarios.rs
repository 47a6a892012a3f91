// SPDX-License-Identifier: GPL-2.0

//! Random triggers with variables and actions, which refer to each other often enough.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::jsonl;
use super::scenario::exercise;

/// The letters of events, and fields that each has.
const EVENTS: [(char, &[&str]); 5] = [
    ('A', &["comm", "pid", "prio", "target_cpu"]),
    ('B', &["comm", "pid", "prio", "target_cpu"]),
    (
        'C',
        &[
            "next_comm",
            "next_pid",
            "next_prio",
            "prev_comm",
            "prev_pid",
            "prev_state",
        ],
    ),
    (
        'D',
        &["u8", "s16", "u64", "dyn", "rel", "odd", "stack", "args"],
    ),
    ('F', &["lat", "pid"]),
];

const COMMON: [&str; 7] = [
    "common_timestamp",
    "common_timestamp.usecs",
    "common_pid.execname",
    "common_stacktrace",
    "common_cpu",
    "hitcount",
    "7",
];

/// Clauses for the size.
const ROOMS: [&str; 7] = [
    "",
    "",
    "",
    ":full(other)",
    ":size=128..512",
    ":expire(taken,1s)",
    ":full(recycle,other)",
];

/// Few, so that they are reused.
const VARIABLES: [&str; 4] = ["a", "b", "ts", "__max"];

fn reference() -> impl Strategy<Value = String> {
    let event = select(vec![
        "",
        "",
        "",
        "sched.sched_waking.",
        "sched.sched_switch.",
        "synthetic.latency.",
    ]);
    (event, select(&VARIABLES[..])).prop_map(|(event, name)| format!("{event}${name}"))
}

fn atom(fields: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(fields).prop_map(String::from),
        2 => select(&COMMON[..]).prop_map(String::from),
        4 => reference(),
    ]
}

fn expression(fields: &'static [&'static str]) -> impl Strategy<Value = String> {
    let operator = select(vec!["+", "-", "*", "/"]);
    prop_oneof![
        3 => atom(fields),
        2 => (atom(fields), operator, atom(fields)).prop_map(|(a, operator, b)| format!("{a}{operator}{b}")),
        1 => atom(fields).prop_map(|a| format!("-({a})")),
    ]
}

fn action(fields: &'static [&'static str]) -> impl Strategy<Value = String> {
    let param = || {
        let other = select(vec!["target_cpu", "next_prio", "lat"]).prop_map(String::from);
        prop_oneof![2 => atom(fields), 1 => other]
    };
    let on_change = || {
        let handler = select(vec!["onmax", "onchange"]);
        let variable = prop_oneof![3 => Just("a"), 1 => select(&VARIABLES[..])];
        (handler, variable).prop_map(|(handler, variable)| format!("{handler}(${variable})"))
    };
    let on_match = select(vec![
        "sched.sched_waking",
        "sched.sched_switch",
        "synthetic.latency",
        "ftrace.print",
    ])
    .prop_map(|event| format!("onmatch({event})"));
    let one = select(vec![
        "number(",
        "signed(",
        "small(",
        "text(",
        "after(",
        "trace(number,",
    ]);
    let two = select(vec!["latency(", "task(", "stacked("]);
    let trace = prop_oneof![
        2 => (one, param()).prop_map(|(name, param)| format!("{name}{param})")),
        1 => (two, param(), param()).prop_map(|(name, a, b)| format!("{name}{a},{b})")),
    ];
    let save = vec(param(), 1..4).prop_map(|params| format!("save({})", params.join(",")));
    prop_oneof![
        (on_change(), save).prop_map(|(handler, act)| format!("{handler}.{act}")),
        on_change().prop_map(|handler| format!("{handler}.snapshot()")),
        (prop_oneof![1 => on_change(), 3 => on_match], trace)
            .prop_map(|(handler, act)| format!("{handler}.{act}")),
    ]
}

fn trigger() -> impl Strategy<Value = String> {
    (0..EVENTS.len()).prop_flat_map(|event| {
        let (letter, fields) = EVENTS[event];
        let variables = vec((select(&VARIABLES[..]), expression(fields)), 0..3);
        let number = fields[1];
        let rest = (
            prop::bool::weighted(0.6),
            prop::option::weighted(0.3, expression(fields)),
            vec(action(fields), 0..3),
            prop::bool::weighted(0.2),
            select(&ROOMS[..]),
        );
        let key = prop_oneof![2 => Just(number), 1 => select(fields)];
        (key, variables, rest).prop_map(move |(key, vars, (first, val, actions, filter, room))| {
            let mut text = format!("{letter}hist:keys={key}");
            if first {
                text += &format!(":a={number}");
            }
            for (name, expression) in vars {
                text += &format!(":{name}={expression}");
            }
            if let Some(val) = val {
                text += &format!(":vals={val}");
            }
            for action in actions {
                text += &format!(":{action}");
            }
            text += room;
            if filter {
                text += " if common_pid >= 0";
            }
            text
        })
    })
}

/// A trigger, hits, or the removal of an earlier trigger.
fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => trigger(),
        1 => vec((0u8..6, 0u8..3), 1..12).prop_map(|hits| {
            // Lines of digits are hits.
            hits.into_iter().flat_map(|(event, value)| [(b'0' + event) as char, (b'0' + value) as char]).collect()
        }),
    ]
}

proptest! {
    #[test]
    fn random(steps in vec(step(), 1..8), removals in vec(any::<prop::sample::Index>(), 0..3)) {
        let mut steps = steps;
        for removal in removals {
            let at = removal.index(steps.len());
            if steps[at].starts_with(|first: char| first.is_ascii_alphabetic()) {
                let removal = format!("{}!{}", &steps[at][..1], &steps[at][1..]);
                steps.push(removal);
            }
        }
        exercise(steps.join("\n").as_bytes(), jsonl::check);
    }
}
