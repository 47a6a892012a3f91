// SPDX-License-Identifier: GPL-2.0

//! Blocks of the `hist_debug` file. Guests compare whole files with C (`scenes/debug.scene`).

use kernel::sync::Arc;
use rhist::hist::show;
use rhist::hist::Histogram;

use super::events::*;

fn hist_debug_file(hists: &[&Arc<Histogram>]) -> String {
    let views = hists.iter().map(|hist| view(hist));
    text(|out| show::hist_debug_file(out, views))
}

#[test]
fn several() {
    let event = sched_waking();
    let (a, b) = (hist(&event, "keys=pid"), hist(&event, "keys=prio"));
    let (text_a, text_b) = (hist_debug_file(&[&a]), hist_debug_file(&[&b]));
    assert_eq!(hist_debug_file(&[&a, &b]), format!("{text_a}\n\n{text_b}"));
    assert_eq!(hist_debug_file(&[]), "");
}

#[test]
fn keys() {
    // Name, whether it is a field of the event, type, size, signedness, function.
    for (name, is_field, type_, size, signed, function) in [
        ("common_timestamp", false, "u64", 8, 0, "timestamp"),
        ("common_stacktrace", false, "unsigned long[]", 248, 0, "nop"),
        ("stack", true, "unsigned long[]", 248, 0, "stack"),
        ("s8", true, "s8", 8, 1, "s8"),
        ("u8", true, "u8", 8, 0, "u8"),
        ("s16", true, "s16", 8, 1, "s16"),
        ("u16", true, "u16", 8, 0, "u16"),
        ("s32", true, "s32", 8, 1, "s32"),
        ("u32", true, "u32", 8, 0, "u32"),
        ("s64", true, "s64", 8, 1, "s64"),
        ("u64", true, "u64", 8, 0, "u64"),
        ("odd", true, "char[13]", 16, 0, "string"),
        ("even", true, "char[16]", 16, 0, "string"),
        ("fits", true, "char[504]", 504, 0, "string"),
        ("dyn", true, "__data_loc char[]", 256, 0, "dynstring"),
        ("rel", true, "__rel_loc char[]", 256, 0, "reldynstring"),
        ("ptr", true, "const char *", 8, 0, "u64"),
        ("mask", true, "__data_loc cpumask_t", 8, 0, "u32"),
        ("common_pid", true, "int", 8, 1, "s32"),
        ("common_type", true, "unsigned short", 8, 0, "u16"),
        ("common_cpu", false, "unsigned int", 8, 0, "cpu"),
        ("cpu", true, "unsigned int", 8, 0, "cpu"),
        ("common_comm", false, "char[]", 256, 0, "comm"),
        ("comm", true, "char[]", 256, 0, "comm"),
        ("hitcount", false, "u64", 8, 0, "counter"),
    ] {
        let hist = hist(&zoo(), &format!("keys={name}"));
        let file = hist_debug_file(&[&hist]);
        let (_, key) = file.split_once("HIST_FIELD_FL_KEY\n").unwrap();
        let field = match is_field {
            true => format!("      ftrace_event_field name: {name}\n"),
            false => String::new(),
        };
        let rest = format!(
            "      type: {type_}\n      size: {size}\n      is_signed: {signed}\n      \
             function: hist_field_{function}()\n"
        );
        assert_eq!(key, field + &rest, "{name}");
    }
}

#[test]
fn expressions() {
    // Expression, type, signedness, function.
    for (key, type_, signed, function) in [
        ("u8+s16", "u8", 0, "plus"),
        ("s16-u8", "s16", 1, "minus"),
        ("s64*2", "s64", 1, "mult"),
        ("3*u8", "u64", 0, "mult"),
        ("-(s8)", "s8", 1, "uminus"),
        ("u64/s8", "u64", 0, "div"),
        ("u64/16", "u64", 0, "div_power2"),
        ("u64/10", "u64", 0, "div_mult_shift"),
        ("u64/1048577", "u64", 0, "div_not_power2"),
        ("s16.log2+1", "s16", 0, "plus"),
        ("common_cpu-1", "unsigned int", 0, "minus"),
    ] {
        let hist = hist(&zoo(), &format!("keys={key}"));
        let file = hist_debug_file(&[&hist]);
        let (_, block) = file.split_once("HIST_FIELD_FL_KEY\n").unwrap();
        let expected = format!(
            "      type: {type_}\n      size: 8\n      is_signed: {signed}\n      \
             function: hist_field_{function}()\n"
        );
        assert_eq!(block, expected, "{key}");
    }
}
