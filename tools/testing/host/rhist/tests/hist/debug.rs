// SPDX-License-Identifier: GPL-2.0

//! The `hist_debug` file to the byte.

use kernel::sync::Arc;
use rhist::hist::show;
use rhist::hist::Histogram;

use super::events::*;
use super::world::*;

fn hist_debug_file(hists: &[&Arc<Histogram>]) -> String {
    let views = hists.iter().map(|hist| view(hist));
    text(|out| show::hist_debug_file(out, views))
}

#[test]
fn basic() {
    let hist = hist(&sched_waking(), "keys=pid");
    assert_eq!(
        hist_debug_file(&[&hist]),
        "\
# event histogram
#
# trigger info: hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 [active]
#

hist_data: (ptr)

  n_vals: 1
  n_keys: 1
  n_fields: 2

  val fields:

    hist_data->fields[0]:
      flags:
        VAL: HIST_FIELD_FL_HITCOUNT
      type: u64
      size: 8
      is_signed: 0
      function: hist_field_counter()

  key fields:

    hist_data->fields[1]:
      flags:
        HIST_FIELD_FL_KEY
      ftrace_event_field name: pid
      type: pid_t
      size: 8
      is_signed: 1
      function: hist_field_s32()
"
    );
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

/// The example of the kernel's Documentation/trace/histogram-design.rst, with the lines that it
/// lacks.
#[test]
fn values_and_keys() {
    use rhist::event::FilterType::Other;
    let event = event(
        "kmem",
        "kmalloc",
        &[
            ("unsigned long", "call_site", 8, 8, false, Other),
            ("size_t", "bytes_req", 24, 8, false, Other),
            ("size_t", "bytes_alloc", 32, 8, false, Other),
        ],
    );
    let hist = hist(
        &event,
        "keys=common_pid,call_site.log2,5:values=bytes_req,bytes_alloc.hex,hitcount",
    );
    let block = |n, kind: &str, rest: &[(&str, &str)]| {
        let mut block = format!("\n    hist_data->fields[{n}]:\n      flags:\n        {kind}\n");
        for (name, value) in rest {
            block += &format!("      {name}: {value}\n");
        }
        block
    };
    let number = |name, type_, signed, function| {
        [
            ("ftrace_event_field name", name),
            ("type", type_),
            ("size", "8"),
            ("is_signed", signed),
            ("function", function),
        ]
    };
    let rest = |file: &str| file.split_once("#\n\n").unwrap().1.to_string();
    assert_eq!(
        rest(&hist_debug_file(&[&hist])),
        [
            "hist_data: (ptr)\n\n  n_vals: 3\n  n_keys: 3\n  n_fields: 6\n\n  val fields:\n".into(),
            block(
                0,
                "VAL: HIST_FIELD_FL_HITCOUNT",
                &[
                    ("type", "u64"),
                    ("size", "8"),
                    ("is_signed", "0"),
                    ("function", "hist_field_counter()")
                ]
            ),
            block(
                1,
                "VAL: normal u64 value",
                &number("bytes_req", "size_t", "0", "hist_field_u64()")
            ),
            block(
                2,
                "VAL: normal u64 value",
                &number("bytes_alloc", "size_t", "0", "hist_field_u64()")
            ),
            "\n  key fields:\n".into(),
            block(
                3,
                "HIST_FIELD_FL_KEY",
                &number("common_pid", "int", "1", "hist_field_s32()")
            ),
            block(
                4,
                "HIST_FIELD_FL_KEY",
                &number("call_site", "unsigned long", "0", "hist_field_log2()")
            ),
            block(
                5,
                "HIST_FIELD_FL_KEY\n        HIST_FIELD_FL_CONST",
                &[
                    ("constant", "5"),
                    ("type", "u64"),
                    ("size", "8"),
                    ("is_signed", "0"),
                    ("function", "hist_field_const()")
                ]
            ),
        ]
        .concat()
    );
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

/// Checks the file of `sched_switch` with this trigger, when `sched_waking` has another.
fn check(waking: &str, switch: &str, expected: &str) {
    let world = World::usual();
    world.add("sched_waking", waking);
    world.add("sched_switch", switch);
    assert_eq!(world.hist_debug("sched_switch"), expected);
}

const WAKING: &str = "hist:keys=pid:ts0=common_timestamp.usecs,c=comm,s=common_stacktrace,k=10";

#[test]
fn variables() {
    check(
        WAKING,
        "hist:keys=next_pid:a=$ts0,b=$k*2,c=sched.sched_waking.$c,d=$s,e=-(next_prio),f=common_pid.execname,g=$k:\
         vals=$ts0,next_prio",
        include_str!("debug/variables"),
    );
}

#[test]
fn actions() {
    check(
        WAKING,
        "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmax($lat).save(next_comm,prev_pid):\
         onchange($lat).small(prev_prio):onmatch(sched.sched_waking).small(target_cpu)",
        include_str!("debug/actions"),
    );
}

/// As in C, the text of a histogram ends at a field variable that is not a field of the event.
#[test]
fn field_variables_that_are_no_fields() {
    check(
        "hist:keys=pid",
        "hist:keys=next_pid:onmatch(sched.sched_waking).stacked(common_stacktrace,common_timestamp)",
        include_str!("debug/field_variables"),
    );
}
