// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which function a place belongs to.

use crate::file::*;
use rhist_elf::Machine;

#[test]
fn functions_with_sizes_have_gaps() {
    assert_parts(
        &[func("a", 0, 16), func("b", 16, 8), func("c", 32, 8)],
        &[(0, 16, "a"), (16, 24, "b"), (32, 40, "c")],
    );
    let symbols = File::new(vec![func("a", 0, 16), func("b", 32, 8)]).read().unwrap();
    let at = |offset: u64| {
        let (name, distance) = symbols.find(CODE + offset)?;
        Some((name.shown().to_string(), distance))
    };
    assert_eq!(at(0), Some(("a".to_owned(), 0)));
    assert_eq!(at(15), Some(("a".to_owned(), 15)));
    assert_eq!((at(16), at(31)), (None, None));
    assert_eq!(at(32), Some(("b".to_owned(), 0)));
    assert_eq!((at(40), symbols.find(0), symbols.find(u64::MAX)), (None, None, None));
}

#[test]
fn functions_without_a_size_reach_to_the_next_one() {
    assert_parts(
        &[func("a", 0, 0), func("b", 16, 8), func("c", 32, 0)],
        &[(0, 16, "a"), (16, 24, "b"), (32, 0x1000, "c")],
    );
    // Not beyond one with a size that they lie in.
    assert_parts(
        &[func("a", 0, 16), func("b", 8, 0), func("c", 64, 8)],
        &[(0, 8, "a"), (8, 16, "b"), (64, 72, "c")],
    );
    let alias = func("alias", 0, 0);
    assert_parts(&[func("a", 0, 16).bind(LOCAL), alias], &[(0, 16, "alias")]);
}

#[test]
fn functions_end_with_their_section() {
    assert_parts(&[func("a", 0xff0, 0x100)], &[(0xff0, 0x1000, "a")]);
    // At the end of the section, and in another one.
    assert_parts(&[func("end", 0x1000, 0), func("a", 8, 0).section(PLT)], &[]);
}

#[test]
fn functions_that_overlap() {
    assert_parts(
        &[func("outer", 0, 64), func("inner", 16, 16), func("late", 56, 16)],
        &[(0, 16, "outer"), (16, 32, "inner"), (32, 56, "outer"), (56, 72, "late")],
    );
    assert_parts(
        &[func("short", 0, 16), func("long", 0, 32).bind(LOCAL)],
        &[(0, 16, "short"), (16, 32, "long")],
    );
    assert_parts(
        &[func("short", 0, 16).bind(LOCAL), func("long", 0, 32)],
        &[(0, 32, "long")],
    );
    assert_parts(
        &[func("short", 0, 16), func("long", 0, 32)],
        &[(0, 16, "short"), (16, 32, "long")],
    );
}

#[test]
fn one_of_several_names() {
    let all = [
        func("a_local", 0, 8).bind(LOCAL),
        func("b_weak", 0, 8).bind(WEAK),
        func("c_global", 0, 8),
        func("_a", 0, 8),
        func("__a", 0, 8),
        func("d_global", 0, 8),
    ];
    assert_parts(&all, &[(0, 8, "c_global")]);
    assert_parts(&all[..2], &[(0, 8, "b_weak")]);
    assert_parts(&all[3..5], &[(0, 8, "_a")]);
    assert_parts(&[func("read@@V_2.1", 0, 8), func("read@V_1", 0, 8)], &[(0, 8, "read")]);
    assert_parts(&[func("_Z1fv", 0, 8), func("_g", 0, 8)], &[(0, 8, "f()")]);
}

#[test]
fn labels_count_where_no_function_is() {
    let label = |name: &str, start| func(name, start, 0).kind(NOTYPE).bind(LOCAL);
    assert_parts(
        &[
            func("a", 0, 16),
            label("within", 8),
            label("same", 0),
            label("behind", 16),
            func("b", 32, 8),
        ],
        &[(0, 16, "a"), (16, 32, "behind"), (32, 40, "b")],
    );
    assert_parts(
        &[func("a", 0, 0), label("behind", 16).bind(GLOBAL)],
        &[(0, 16, "a"), (16, 0x1000, "behind")],
    );
    // One that is left out ends nothing.
    assert_parts(
        &[func("a", 0, 64), func("b", 8, 0), label("within", 16)],
        &[(0, 8, "a"), (8, 64, "b")],
    );
    assert_parts(&[label("$x", 0), label("$d.1", 4), label("$", 8)], &[(8, 0x1000, "$")]);
}

#[test]
fn symbols_that_name_no_code() {
    let data = |symbol: Symbol| Symbol {
        value: DATA_ADDRESS,
        ..symbol
    };
    let none = [
        func("object", 0, 8).kind(OBJECT),
        func("elsewhere", 0, 8).section(UNDEF),
        func("absolute", 0, 8).section(0xfff1),
        func("beyond", 0, 8).section(100),
        func("", 0, 8),
        data(func("data", 0, 8).section(DATA)),
        data(func("label", 0, 8).section(DATA).kind(NOTYPE)),
        func("of the system", 0, 8).bind(11),
    ];
    assert_parts(&none, &[]);
    assert!(File::new(none.to_vec()).read().unwrap().is_empty());
}

#[test]
fn either_table() {
    let file = File {
        symtab: None,
        dynsym: Some(vec![func("dynamic", 0, 8)]),
        ..File::new(Vec::new())
    };
    assert_eq!(parts(&file.read().unwrap()), [(0, 8, "dynamic".to_owned())]);
    let both = File {
        symtab: Some(vec![func("dynamic@@V_1", 0, 8), func("more", 8, 8).kind(IFUNC)]),
        machine: Machine::Aarch64,
        ..file
    };
    let expected = [(0, 8, "dynamic".to_owned()), (8, 16, "more".to_owned())];
    assert_eq!(parts(&both.read().unwrap()), expected);
    let none = File {
        symtab: None,
        ..File::new(Vec::new())
    };
    assert!(none.read().unwrap().is_empty());
}
