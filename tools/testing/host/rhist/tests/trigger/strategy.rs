// SPDX-License-Identifier: GPL-2.0

//! Random commands.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::sample::Index;

/// Pieces of triggers, valid and invalid, in any order.
pub(crate) fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(
        &[
            "keys=",
            "key=",
            "vals=",
            "values=",
            "sort=",
            "size=",
            "name=",
            "clock=",
            "x=",
            "y=",
            "=",
            ":",
            ":",
            ",",
            ",",
            ".",
            ".",
            "+",
            "-",
            "*",
            "/",
            "-(",
            "(",
            ")",
            ")",
            "$",
            "$x",
            "pid",
            "prio",
            "lat",
            "name",
            "stack",
            "hitcount",
            "stacktrace",
            "common_pid",
            "common_timestamp",
            "nosuch",
            ".hex",
            ".sym-offset",
            ".log2",
            ".buckets=2",
            ".execname",
            ".percent",
            ".usecs",
            ".stacktrace",
            ".descending",
            "128",
            "0",
            "08",
            "0x10",
            "nohitcount",
            "pause",
            "clear",
            "onmatch(",
            "sched.sched_waking",
            "onmax($x).",
            "onchange($x)",
            "save(",
            "snapshot()",
            "trace(",
            "latency(",
            " ",
            "\t",
            " if ",
            "if",
            "\u{b}",
            "a.b.",
            ".min",
            ".avg",
            ".dist",
            ".dist=5",
            ".log2=0",
            ".ip",
            ".string",
            ".cgroup",
            ".comm",
            ".p99.9",
            "on(",
            "quantiles(50,99.9)",
            "unit(s)",
            "buckets(4)",
            "limit(10)",
            "..",
            "expire(60s)",
            "expire(taken,1h)",
            "full(other)",
        ][..],
    );
    vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

fn name() -> impl Strategy<Value = String> {
    select(
        &[
            "pid",
            "lat",
            "name",
            "common_pid",
            "a b",
            "hitcount",
            "if",
            "",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn atom() -> impl Strategy<Value = String> {
    let modifier = select(
        &[
            "",
            "",
            "",
            ".hex",
            ".sym",
            ".sym-offset",
            ".syscall",
            ".log2",
            ".usecs",
            ".buckets=0x10",
            ".bucket=3",
            ".percentage",
            ".graph",
            ".stacktrace",
            ".wrong",
            ".min",
            ".max",
            ".avg",
            ".dist",
            ".dist=0",
            ".dist=6",
            ".log2=3",
            ".ip",
            ".string",
            ".cgroup",
            ".comm",
        ][..],
    );
    let qualifier = || select(&["", "", "sched.sched_waking."][..]);
    prop_oneof![
        4 => (qualifier(), name(), modifier).prop_map(|(a, b, c)| format!("{a}{b}{c}")),
        1 => (qualifier(), "[a-z]{1,3}").prop_map(|(a, b)| format!("{a}${b}")),
        1 => any::<u64>().prop_map(|value| value.to_string()),
        1 => any::<u64>().prop_map(|value| format!("{value:#x}")),
        1 => Just("common_pid.execname".to_owned()),
    ]
}

fn expr() -> impl Strategy<Value = String> {
    atom().prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("-({inner})")),
            (inner.clone(), select(&["+", "-", "*", "/"][..]), inner)
                .prop_map(|(left, operator, right)| format!("{left}{operator}{right}")),
        ]
    })
}

fn list<T: Strategy<Value = String>>(
    prefixes: &'static [&'static str],
    item: T,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = String> {
    (select(prefixes), vec(item, count))
        .prop_map(|(prefix, items)| prefix.to_owned() + &items.join(","))
}

fn action() -> impl Strategy<Value = String> {
    let handler = select(
        &[
            "onmatch(sched.sched_waking)",
            "onmatch(a.b)",
            "onmax($lat)",
            "onchange($lat)",
            "onmax()",
        ][..],
    );
    let act = select(&["save", "snapshot", "trace", "latency", "saved", "traced"][..]);
    let param = select(
        &[
            "pid",
            "$lat",
            "a.b.pid",
            "a.b.$lat",
            "common_pid.hex",
            " pid ",
            "x",
        ][..],
    );
    (handler, act, vec(param, 0..4))
        .prop_map(|(handler, act, params)| format!("{handler}.{act}({})", params.join(",")))
}

fn token() -> impl Strategy<Value = String> {
    let sort = (
        name(),
        select(
            &[
                "",
                ".ascending",
                ".descending",
                ".wrong",
                ".max",
                ".p99.9.descending",
            ][..],
        ),
    )
        .prop_map(|(name, order)| name + order);
    let assignment = (name(), expr()).prop_map(|(name, expr)| format!("{name}={expr}"));
    prop_oneof![
        list(&["keys=", "key="], expr(), 1..5),
        list(&["vals=", "val=", "values="], expr(), 1..5),
        list(&["sort="], sort, 1..4),
        list(&[""], assignment, 1..4),
        list(&["on("], expr(), 1..4).prop_map(|list| list + ")"),
        list(
            &["quantiles("],
            (0u32..110_000).prop_map(|n| format!("{}.{}", n / 1000, n % 1000)),
            1..10
        )
        .prop_map(|list| list + ")"),
        (
            select(&["unit(", "buckets(", "limit("][..]),
            select(&["s", "us", "1", "0", "2000"][..])
        )
            .prop_map(|(word, of)| format!("{word}{of})")),
        list(
            &["expire("],
            prop_oneof![
                Just("taken".to_owned()),
                (
                    0u64..100_000,
                    select(&["ms", "s", "m", "h", "us", "d", ""][..])
                )
                    .prop_map(|(time, unit)| format!("{time}{unit}")),
            ],
            1..3
        )
        .prop_map(|list| list + ")"),
        list(
            &["full("],
            select(&["other", "recycle", "recycle", "drop"][..]).prop_map(str::to_owned),
            1..3
        )
        .prop_map(|list| list + ")"),
        (50u32..200_000, 100u32..2_000_000).prop_map(|(from, to)| format!("size={from}..{to}")),
        vec(
            (
                expr(),
                select(&["", ".min", ".dist=2", ".hex", ".log2"][..])
            ),
            1..10
        )
        .prop_map(|vals| {
            let vals = vals
                .iter()
                .map(|(expr, modifier)| format!("({expr}){modifier}"));
            format!("vals={}", vals.collect::<Vec<_>>().join(","))
        }),
        action(),
        (100u32..200_000).prop_map(|size| format!("size={size}")),
        select(
            &[
                "nohitcount",
                "NOHC",
                "pause",
                "cont",
                "continue",
                "clear",
                "x=1,y",
                "clock= "
            ][..]
        )
        .prop_map(str::to_owned),
        name().prop_map(|name| format!("name={name}x")),
        name().prop_map(|name| format!("clock= {name}x")),
    ]
}

/// Mostly valid triggers.
pub(crate) fn triggers() -> impl Strategy<Value = String> {
    let filter = select(&["", "", " if pid == 1", "\tif  a if b"][..]);
    (
        list(&["keys="], expr(), 1..4),
        vec(token(), 0..6),
        any::<Index>(),
        filter,
    )
        .prop_map(|(keys, mut tokens, at, filter)| {
            tokens.insert(at.index(tokens.len() + 1), keys);
            tokens.join(":") + filter
        })
}

/// Triggers of existing fields with long expressions, whose variables refer to each other.
pub(crate) fn sums() -> impl Strategy<Value = String> {
    let atom = || {
        select(
            &[
                "pid",
                "lat",
                "prio",
                "common_pid",
                "common_cpu",
                "stack",
                "name",
                "hitcount",
                "0",
                "1",
                "7",
                "0x0",
                "$x",
                "$y",
                "sched.sched_switch.$x",
                "a.b.lat",
                "lat.usecs",
                "common_timestamp.usecs",
                "lat.hex",
                "pid.log2",
                "stack.stacktrace",
                "common_pid.execname",
                "common_stacktrace",
                "pid.sym-offset",
                "common_comm",
                "id.buckets=4",
            ][..],
        )
    };
    let sum = move || {
        let operator = select(&["+", "-", "*", "/"][..]);
        let tail = vec(
            (operator, atom()).prop_map(|(operator, atom)| operator.to_owned() + atom),
            0..5,
        );
        (atom(), tail, prop::bool::weighted(0.1)).prop_map(|(first, tail, minus)| {
            let sum = first.to_owned() + &tail.concat();
            if minus {
                format!("-({sum})")
            } else {
                sum
            }
        })
    };
    let assignment =
        (select(&["x", "y", "z"][..]), sum()).prop_map(|(name, sum)| format!("{name}={sum}"));
    let order = select(&["", ".descending", ".ascending", ".x"][..]);
    let sort = (atom(), order).prop_map(|(atom, order)| atom.to_owned() + order);
    let many = (0..19usize, select(&[",", ":"][..])).prop_map(|(count, separator)| {
        let vars: Vec<_> = (0..=count).map(|i| format!("v{i}=1")).collect();
        vars.join(separator)
    });
    let token = prop_oneof![
        4 => list(&["vals="], sum(), 1..4),
        4 => list(&[""], assignment, 1..4),
        2 => list(&["sort="], sort, 1..4),
        1 => Just("nohitcount".to_owned()),
        1 => many,
    ];
    (
        list(&["keys="], sum(), 1..5),
        vec(token, 0..5),
        any::<Index>(),
    )
        .prop_map(|(keys, mut tokens, at)| {
            tokens.insert(at.index(tokens.len() + 1), keys);
            tokens.join(":")
        })
}
