// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules of each kind, and what no rule can say.

use crate::file::*;
use rhist_elf::Machine::Aarch64;
use rhist_elf::Machine::X86_64;
use rhist_unwind::Rule;

/// The expression of linkers for the procedure linkage table.
const PLT: [u8; 11] = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];

fn sp(cfa: i32, fp: i16) -> Rule {
    Rule::Sp { cfa, fp, ra: -1 }
}

fn fp(cfa: i32, fp: i16) -> Rule {
    Rule::Fp { cfa, fp, ra: -1 }
}

/// Instructions with an expression.
fn expression(head: &[u8], code: &[u8]) -> Vec<u8> {
    [head, &[code.len() as u8], code].concat()
}

#[test]
fn a_function_with_a_frame_pointer() {
    let code = [
        ADVANCE | 1,
        DEF_CFA_OFFSET,
        16,
        OFFSET | RBP,
        2,
        ADVANCE1,
        3,
        DEF_CFA_REGISTER,
        RBP,
        ADVANCE2,
        30,
        0,
        REMEMBER,
        DEF_CFA,
        RSP,
        8,
        RESTORE | RBP,
        ADVANCE4,
        1,
        0,
        0,
        0,
        RESTORE_STATE,
    ];
    let rows = rules_with(X86_64, &Cie::of(X86_64), &code);
    let expected = [
        (0, sp(8, 0)),
        (1, sp(16, -2)),
        (4, fp(16, -2)),
        (34, sp(8, 0)),
        (35, fp(16, -2)),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn equal_rules_are_one_row() {
    // Registers that no rule has.
    let code = [
        ADVANCE | 2,
        OFFSET | RBX,
        3,
        ADVANCE | 2,
        ARGS_SIZE,
        16,
        ADVANCE | 2,
        DEF_CFA_OFFSET,
        8,
    ];
    assert_eq!(rules_with(X86_64, &Cie::of(X86_64), &code), [(0, sp(8, 0))]);
}

#[test]
fn advancing_by_nothing_replaces_the_row() {
    let code = [
        DEF_CFA_OFFSET,
        16,
        ADVANCE,
        DEF_CFA_OFFSET,
        24,
        ADVANCE | 4,
        DEF_CFA_OFFSET,
        32,
        ADVANCE,
        DEF_CFA_OFFSET,
        24,
    ];
    assert_eq!(rules_with(X86_64, &Cie::of(X86_64), &code), [(0, sp(24, 0))]);
}

#[test]
fn where_the_frame_pointer_is() {
    for (code, expected) in [
        (&[SAME_VALUE, RBP][..], sp(8, 0)),
        (&[OFFSET | RBP, 2, SAME_VALUE, RBP], sp(8, 0)),
        (&[OFFSET | RBP, 2, RESTORE | RBP], sp(8, 0)),
        (&[OFFSET_EXTENDED, RBP, 4], sp(8, -4)),
        (&[OFFSET_SF, RBP, 4], sp(8, -4)),
        // At or above the frame address.
        (&[OFFSET | RBP, 0], Rule::Other),
        (&[OFFSET_SF, RBP, 0x7f], Rule::Other),
        (&[UNDEFINED, RBP], Rule::Other),
        (&[REGISTER, RBP, RBX], Rule::Other),
        (&[VAL_OFFSET, RBP, 2], Rule::Other),
        (&[EXPRESSION, RBP, 2, 0x77, 0], Rule::Other),
        (&[EXPRESSION, RBP, 2, 0x76, 0], Rule::Other),
        (&[VAL_EXPRESSION, RBP, 2, 0x76, 0], Rule::Other),
    ] {
        assert_eq!(rule(X86_64, code), expected, "{code:x?}");
    }
}

#[test]
fn numbers_that_do_not_fit() {
    let fp_at = |words: u64| rule(X86_64, &[&[OFFSET | RBP], &uleb(words)[..]].concat());
    assert_eq!(fp_at(32768), sp(8, -32768));
    assert_eq!(fp_at(32769), Rule::Other);
    assert_eq!(fp_at(u64::MAX), Rule::Other);
    let cfa = |bytes: u64| rule(X86_64, &[&[DEF_CFA_OFFSET], &uleb(bytes)[..]].concat());
    assert_eq!(cfa(0x7fff_ffff), sp(0x7fff_ffff, 0));
    assert_eq!(cfa(0x8000_0000), Rule::Other);
    assert_eq!(cfa(u64::MAX), sp(-1, 0));
    assert_eq!(rule(X86_64, &[&[DEF_CFA_SF, RBP], &sleb(2)[..]].concat()), fp(-16, 0));
    let unaligned = Cie {
        data_align: -4,
        instructions: vec![DEF_CFA, RSP, 8, OFFSET | RIP, 2],
        ..Cie::of(X86_64)
    };
    assert_eq!(rules_with(X86_64, &unaligned, &[OFFSET | RBP, 4]), [(0, sp(8, -2))]);
    assert_eq!(rules_with(X86_64, &unaligned, &[OFFSET | RBP, 3]), [(0, Rule::Other)]);
}

#[test]
fn where_the_return_address_is() {
    for (code, expected) in [
        (&[UNDEFINED, RIP][..], Rule::End),
        // Without a frame address, too.
        (&[DEF_CFA, R10, 0, UNDEFINED, RIP], Rule::End),
        (&[OFFSET | RIP, 2], Rule::Other),
        (&[SAME_VALUE, RIP], Rule::Other),
        (&[REGISTER, RIP, RBX], Rule::Other),
        // As in `vfork()`, and as nobody writes it.
        (
            &[DEF_CFA_OFFSET, 0, REGISTER, RIP, RDI],
            Rule::Sp { cfa: 0, fp: 0, ra: 0 },
        ),
        (&[DEF_CFA_REGISTER, RBP, REGISTER, RIP, RDI], Rule::Other),
        (&[DEF_CFA_EXPRESSION, 2, 0x76, 8, REGISTER, RIP, RDI], Rule::Other),
        (&[REGISTER, RIP, RDI, REGISTER, RBP, RDI], Rule::Other),
        (&[VAL_OFFSET, RIP, 1], Rule::Other),
        (&[EXPRESSION, RIP, 2, 0x76, 0], Rule::Other),
    ] {
        assert_eq!(rule(X86_64, code), expected, "{code:x?}");
    }
    let none = Cie {
        instructions: vec![DEF_CFA, RSP, 8],
        ..Cie::of(X86_64)
    };
    assert_eq!(rules_with(X86_64, &none, &[]), [(0, Rule::Other)]);
    let other = Cie {
        ra: RBX,
        instructions: vec![DEF_CFA, RSP, 8, OFFSET | RBX, 1],
        ..Cie::of(X86_64)
    };
    assert_eq!(rules_with(X86_64, &other, &[]), [(0, Rule::Other)]);
}

#[test]
fn where_the_frame_address_is() {
    for (code, expected) in [
        (&[DEF_CFA, R10, 0][..], Rule::Other),
        (&[DEF_CFA_REGISTER, RBP], fp(8, 0)),
        (&[DEF_CFA_EXPRESSION, 2, 0x77, 8], Rule::Other),
        (&[DEF_CFA_EXPRESSION, 0], Rule::Other),
    ] {
        assert_eq!(rule(X86_64, code), expected, "{code:x?}");
    }
}

#[test]
fn frames_that_gcc_aligns() {
    let deref = |code: &[u8], at: &[u8]| {
        let code = [
            expression(&[DEF_CFA_EXPRESSION], code),
            expression(&[EXPRESSION, RBP], at),
        ]
        .concat();
        rule(X86_64, &code)
    };
    assert_eq!(deref(&[0x76, 0x78, 0x06], &[0x76, 0]), Rule::Deref { cfa: -8, ra: -1 });
    assert_eq!(
        deref(&[0x76, 0xf8, 0x7e, 0x06], &[0x76, 0]),
        Rule::Deref { cfa: -136, ra: -1 }
    );
    // Another register, another place, more or less code.
    assert_eq!(deref(&[0x77, 0x78, 0x06], &[0x76, 0]), Rule::Other);
    assert_eq!(deref(&[0x76, 0x78, 0x06], &[0x76, 8]), Rule::Other);
    assert_eq!(deref(&[0x76, 0x78, 0x06], &[0x77, 0]), Rule::Other);
    assert_eq!(deref(&[0x76, 0x78, 0x06, 0x06], &[0x76, 0]), Rule::Other);
    assert_eq!(deref(&[0x76, 0x78], &[0x76, 0]), Rule::Other);
    assert_eq!(deref(&[0x76, 0x78, 0x06], &[0x76, 0, 0x06]), Rule::Other);
    assert_eq!(
        rule(X86_64, &expression(&[DEF_CFA_EXPRESSION], &[0x76, 0x78, 0x06])),
        Rule::Other
    );
}

#[test]
fn frames_that_openssl_aligns() {
    let frame = |code: &[u8]| rule(X86_64, &expression(&[DEF_CFA_EXPRESSION], code));
    let expected = Rule::DerefSp {
        cfa: 136,
        fp: 0,
        ra: -1,
    };
    assert_eq!(frame(&[0x77, 0x88, 0x01, 0x06, 0x23, 8]), expected);
    assert_eq!(
        frame(&[0x77, 0x78, 0x06, 0x23, 8]),
        Rule::Other,
        "below the stack pointer"
    );
    assert_eq!(frame(&[0x76, 8, 0x06, 0x23, 8]), Rule::Other, "above another register");
    assert_eq!(frame(&[0x77, 8, 0x06, 0x23, 56]), Rule::Other);
    assert_eq!(frame(&[0x77, 8, 0x06, 0x23, 8, 0x06]), Rule::Other);
    assert_eq!(frame(&[0x77, 8, 0x06]), Rule::Other);
}

#[test]
fn a_rule_for_the_stack_pointer() {
    assert_eq!(rule(X86_64, &[VAL_OFFSET, RSP, 0]), sp(8, 0));
    assert_eq!(rule(X86_64, &[VAL_OFFSET, RSP, 1]), Rule::Other);
    assert_eq!(rule(X86_64, &[OFFSET | RSP, 2]), Rule::Other);
    assert_eq!(rule(Aarch64, &[VAL_OFFSET, SP, 1]), Rule::Other);
}

#[test]
fn the_procedure_linkage_table() {
    let plt = expression(&[DEF_CFA_EXPRESSION], &PLT);
    let expected = |from, fp| Rule::Plt { from, fp, ra: -1 };
    assert_eq!(rule(X86_64, &plt), expected(11, 0));
    assert_eq!(rule(X86_64, &[&plt[..], &[OFFSET | RBP, 2]].concat()), expected(11, -2));
    for at in 0..PLT.len() {
        let mut other = PLT;
        other[at] ^= 1;
        // Entries that begin with endbr64 are pushed to another byte.
        let found = if at == 6 { expected(10, 0) } else { Rule::Other };
        assert_eq!(rule(X86_64, &expression(&[DEF_CFA_EXPRESSION], &other)), found);
        assert_eq!(
            rule(X86_64, &expression(&[DEF_CFA_EXPRESSION], &PLT[..at])),
            Rule::Other
        );
    }
    assert_eq!(rule(Aarch64, &plt), Rule::Other);
}

#[test]
fn signal_frames() {
    for machine in [X86_64, Aarch64] {
        // The letter S stands for itself, without data.
        let cie = Cie {
            augmentation: "zRS",
            ..Cie::of(machine)
        };
        assert_eq!(
            rules_with(machine, &cie, &[ADVANCE | 1, DEF_CFA_OFFSET, 32]),
            [(0, Rule::Sigreturn)]
        );
    }
}

#[test]
fn aarch64() {
    let sp = |cfa, fp, ra| Rule::Sp { cfa, fp, ra };
    let code = [
        NEGATE_RA_STATE,
        ADVANCE | 1,
        DEF_CFA_OFFSET,
        32,
        OFFSET | X29,
        4,
        OFFSET | X30,
        3,
        ADVANCE | 1,
        DEF_CFA_REGISTER,
        X29,
        ADVANCE | 4,
        DEF_CFA,
        SP,
        0,
        RESTORE | X29,
        RESTORE | X30,
        NEGATE_RA_STATE,
        ADVANCE | 1,
        UNDEFINED,
        X30,
    ];
    let rows = rules_with(Aarch64, &Cie::of(Aarch64), &code);
    let expected = [
        (0, sp(0, 0, 0)),
        (4, sp(32, -4, -3)),
        (
            8,
            Rule::Fp {
                cfa: 32,
                fp: -4,
                ra: -3,
            },
        ),
        (24, sp(0, 0, 0)),
        (28, Rule::End),
    ];
    assert_eq!(rows, expected);
    assert_eq!(rule(Aarch64, &[OFFSET | X30, 0]), Rule::Other);
    assert_eq!(rule(Aarch64, &[REGISTER, X30, 1]), Rule::Other);
    assert_eq!(rule(Aarch64, &[DEF_CFA, 28, 0]), Rule::Other);
    assert_eq!(rule(Aarch64, &[SAME_VALUE, X30]), sp(0, 0, 0));
}

#[test]
fn set_loc_is_an_address() {
    let mut frames = Frames::default();
    let cie = frames.cie(&Cie::of(X86_64));
    let place = FRAME_ADDRESS + frames.bytes.len() as u64 + 18;
    let to = (CODE_ADDRESS + 20).wrapping_sub(place) as u32;
    frames.fde(
        cie,
        0,
        64,
        &[&[SET_LOC], &to.to_le_bytes()[..], &[DEF_CFA_OFFSET, 16]].concat(),
    );
    let rules = File::new(X86_64, 64, &frames).compile().unwrap();
    assert_eq!(rows(&rules)[1..3], [(0, sp(8, 0)), (20, sp(16, 0))]);
}

#[test]
fn states_are_remembered_seven_deep() {
    let deep = |n: usize| {
        let mut code = Vec::new();
        for level in 1..=n as u8 {
            code.extend([REMEMBER, DEF_CFA_OFFSET, 8 + 8 * level]);
        }
        code.push(ADVANCE | 1);
        code.extend([RESTORE_STATE].repeat(n));
        code
    };
    assert_eq!(
        rules_with(X86_64, &Cie::of(X86_64), &deep(7)),
        [(0, sp(64, 0)), (1, sp(8, 0))]
    );
}
