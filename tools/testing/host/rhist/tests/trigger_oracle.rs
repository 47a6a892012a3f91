// SPDX-License-Identifier: GPL-2.0

//! The kernel's own parser as the judge: for each command, both log and return the same.
//!
//! The functions are taken out of `kernel/trace/trace_events_hist.c` and compiled with
//! `trigger/oracle.c`, which has the event of `trigger/walk.rs`.

mod oracle;
#[path = "trigger/strategy.rs"]
mod strategy;
mod table;
#[path = "trigger/walk.rs"]
mod walk;

use oracle::between;
use oracle::kernel_file;
use oracle::rounds;
use oracle::Oracle;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rhist::trigger::Command;
use rhist::trigger::Trigger;
use std::fmt::Write as _;
use strategy::pieces;
use strategy::sums;
use strategy::triggers;

/// The functions that make errors, and their dependencies, in the order of the file.
const FUNCTIONS: &[&str] = &[
    "hist_field_name",
    "select_value_fn",
    "parse_map_size",
    "parse_action",
    "parse_assignment",
    "parse_hist_trigger_attrs",
    "get_hist_field_flags",
    "expr_field_str",
    "expr_str",
    "contains_operator",
    "create_hist_field",
    "is_var_ref",
    "field_name_from_var",
    "local_field_var_ref",
    "parse_var_ref",
    "parse_field",
    "parse_const",
    "parse_atom",
    "parse_unary",
    "check_expr_operands",
    "parse_expr",
    "parse_action_params",
    "action_parse",
    "track_data_parse",
    "onmatch_parse",
    "create_hitcount_val",
    "__create_val_field",
    "create_val_field",
    "update_var_execname",
    "create_var_field",
    "create_val_fields",
    "create_key_field",
    "create_key_fields",
    "create_var_fields",
    "parse_var_defs",
    "create_hist_fields",
    "is_descending",
    "create_sort_keys",
    "parse_actions",
];

/// A function with its declaration, cut out of the file.
fn function<'a>(source: &'a str, name: &str) -> &'a str {
    let call = format!("{name}(");
    let mut from = 0;
    loop {
        let at = from
            + source[from..]
                .find(&call)
                .unwrap_or_else(|| panic!("no {name}"));
        from = at + call.len();
        let line = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let body = at + source[at..].find("\n{\n").unwrap();
        let declaration = &source[line..body];
        let starts =
            source[line..].starts_with(|byte: char| byte.is_ascii_alphabetic() || byte == '_');
        let whole = source[..at].ends_with([' ', '*', '\n']);
        if !starts || !whole || declaration.contains([';', '{']) {
            continue;
        }
        // The type may stand on a line of its own.
        let before = source[..line - 1]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let start = match source[before..line].starts_with("static ")
            && !source[before..line].contains(';')
        {
            true => before,
            false => line,
        };
        let end = body + source[body..].find("\n}\n").unwrap() + 3;
        return &source[start..end];
    }
}

/// Bugs of C, corrected so that its intention can be compared.
fn corrected(name: &str, text: &str) -> String {
    let (wrong, right) = match name {
        // C has cut off the definition of a variable when another variable refers to it.
        "create_var_fields" => (
            "hist_data->attrs->var_defs.expr[i];",
            "strdup(hist_data->attrs->var_defs.expr[i]);",
        ),
        // Assignments after the sixteenth in one token are ignored.
        "parse_var_defs" => ("j < TRACING_MAP_VARS_MAX;", ";"),
        _ => return text.to_owned(),
    };
    assert!(text.contains(wrong), "{name} is not what it was");
    text.replace(wrong, right)
}

/// Compiles the oracle. Returns `None` without the kernel's source.
fn build() -> Option<Oracle> {
    let hist = kernel_file("kernel/trace/trace_events_hist.c")?;
    let numbers = kernel_file("lib/kstrtox.c")?;

    let types = [
        between(&hist, "#define ERRORS", "struct hist_field;"),
        between(
            &hist,
            "#define HIST_FIELD_OPERANDS_MAX",
            "static u64 hist_fn_call",
        ),
        between(&hist, "#define for_each_hist_field", "struct track_data {"),
    ];

    let mut functions = String::new();
    for name in [
        "_parse_integer_fixup_radix",
        "_parse_integer_limit",
        "_kstrtoull",
        "kstrtoull",
    ] {
        writeln!(functions, "{}", function(&numbers, name)).unwrap();
    }
    for name in FUNCTIONS {
        writeln!(functions, "{}", corrected(name, function(&hist, name))).unwrap();
    }

    let parse = function(&hist, "event_hist_trigger_parse");
    let split = between(
        parse,
        "if (event_trigger_empty_param",
        "attrs = parse_hist_trigger_attrs",
    );
    Some(Oracle::new(
        "trigger/oracle.c",
        &[
            ("types.h", types.concat()),
            ("functions.h", functions),
            ("split.h", split.to_owned()),
        ],
    ))
}

/// The logged errors and the result of a command here, in the oracle's form.
fn verdict(written: &[u8]) -> String {
    let (log, result) = match Command::parse(written).hist() {
        Ok(params) => {
            let (log, result) = walk::walk(params);
            (log, result.map(drop))
        }
        Err(error) => (Vec::new(), Err(error)),
    };
    if let Err(error) = &result {
        assert!(
            !log.is_empty() || error.hint.is_some(),
            "nothing is said of {written:?}"
        );
    }
    let mut verdict = String::new();
    for error in log {
        let text = error.text.unwrap().as_str();
        write!(verdict, "[{text}@{}] ", error.caret).unwrap();
    }
    let errno = result.map_or_else(|error| error.errno.to_errno(), |()| 0);
    write!(verdict, "{errno}").unwrap();
    verdict
}

fn commands() -> Vec<Vec<u8>> {
    let mut runner = TestRunner::default();
    let rows = table::rows(&["fields", "host"]).into_iter();
    let mut commands: Vec<_> = rows.map(|row| row.command).collect();
    let bytes = vec(
        any::<u8>().prop_filter("ends the line", |byte| !b"\0\n".contains(byte)),
        0..40,
    );
    let starts = [
        "hist:",
        "hist:keys=",
        "hist:keys=pid:",
        "hist:keys=pid:x=",
        "hist:keys=pid:vals=",
        "hist:keys=pid:sort=",
        "hist:keys=pid:onmax($x).",
        "hist:keys=pid:onmatch(sched.sched_waking).",
    ];
    let mut value =
        |strategy: &BoxedStrategy<Vec<u8>>| strategy.new_tree(&mut runner).unwrap().current();
    let (bytes, pieces) = (bytes.boxed(), pieces().boxed());
    let triggers = triggers().prop_map(String::into_bytes).boxed();
    let sums = sums().prop_map(String::into_bytes).boxed();
    for _ in 0..rounds(4000) {
        for start in starts {
            commands.push([start.as_bytes(), &value(&pieces)].concat());
        }
        commands.push([b"hist:keys=pid:", &value(&bytes)[..]].concat());
        commands.push([b"hist:", &value(&triggers)[..]].concat());
        commands.push([b"hist:", &value(&sums)[..]].concat());
    }
    commands
}

#[test]
fn says_what_the_kernel_says() {
    let Some(oracle) = build() else {
        return;
    };
    let commands = commands();
    let lines: Vec<String> = commands
        .iter()
        .map(|command| command.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();

    let said = oracle.ask(lines.join("\n") + "\n");
    assert_eq!(said.len(), commands.len());
    for (command, said) in commands.iter().zip(said) {
        let text = String::from_utf8_lossy(command);
        let tree = Command::parse(command).hist().ok().map(Trigger::parse);
        // C refuses rhist's clauses before all else, and its modifiers and parentheses as such; if
        // the command has another mistake, too, rhist may report that one.
        let own = [
            "on(",
            "quantiles(",
            "unit(",
            "buckets(",
            "limit(",
            "expire(",
            "full(",
        ];
        let own = own
            .into_iter()
            .chain([
                ".min", ".max", ".avg", ".dist", ".log2=", ".ip", ".string", ".cgroup", ".comm",
            ])
            .chain(["=(", ",("]);
        let grows = |token: &str| token.starts_with("size=") && token.contains("..");
        let own = own.into_iter().any(|piece| text.contains(piece)) || text.split(':').any(grows);
        let refused = said.rsplit(' ').next() != Some("0");
        if own && refused && verdict(command).rsplit(' ').next() != Some("0") {
            continue;
        }
        if tree.is_some_and(|tree| tree.is_ok_and(|tree| walk::is_beyond_c(&tree))) {
            assert!(refused, "C takes {text:?}");
            continue;
        }
        assert_eq!(verdict(command), said, "{text:?}");
    }
}
