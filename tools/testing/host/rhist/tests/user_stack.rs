// SPDX-License-Identifier: GPL-2.0

//! Stacks of programs: words, rules as they are written, and walks through memory of any content.

#![cfg(not(loom))]

#[path = "user_stack/caches.rs"]
mod caches;
#[path = "user_stack/objects.rs"]
mod objects;
#[path = "user_stack/table.rs"]
mod table;

use std::collections::BTreeMap;

use proptest::prelude::*;
use rhist::user_stack::{
    End, Fault, Kind, Machine, Mapping, Near, Place, Program, Registers, Rule, Rules, Upload, Walk,
    Word,
};
use table::{upload, Table};

const NONE: Rule = rule(Kind::Gap, 0, 0, 0);

const fn rule(kind: Kind, cfa: i32, ra: i16, fp: i16) -> Rule {
    Rule { kind, fp, ra, cfa }
}

// --- words

proptest! {
    #[test]
    fn a_word_has_its_place(number in 0..Word::NUMBERS, offset in 0..Word::OFFSETS, exact: bool) {
        for place in [
            Place::File { object: number, offset },
            Place::Memory { mapping: number, offset },
            Place::Vdso { offset },
            Place::Unlisted,
        ] {
            let word = Word::new(place, exact).to_u64();
            prop_assert_ne!(word, 0);
            prop_assert_eq!(Word::place(word), Some((place, exact)));
        }
    }

    #[test]
    fn different_places_have_different_words(word: u64) {
        if let Some((place, exact)) = Word::place(word) {
            prop_assert_eq!(Word::new(place, exact).to_u64(), word);
        }
    }
}

#[test]
fn an_end_has_a_word() {
    for end in End::ALL {
        let word = Word::end(end).to_u64();
        assert_eq!((Word::as_end(word), Word::place(word)), (Some(end), None));
        assert_eq!(End::of_number(end.number()), Some(end));
    }
    let place = Word::new(Place::Unlisted, false).to_u64();
    assert_eq!([Word::as_end(place), Word::as_end(0)], [None; 2]);
}

#[test]
fn what_does_not_fit_is_unlisted() {
    for place in [
        Place::File {
            object: Word::NUMBERS,
            offset: 0,
        },
        Place::File {
            object: 0,
            offset: Word::OFFSETS,
        },
        Place::Memory {
            mapping: u32::MAX,
            offset: 0,
        },
        Place::Vdso { offset: u64::MAX },
    ] {
        let word = Word::new(place, true).to_u64();
        assert_eq!(Word::place(word), Some((Place::Unlisted, true)));
    }
    assert_eq!(Word::place(0), None);
}

// --- rules

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let any_rule = prop_oneof![
        Just(rule(Kind::Outermost, 0, 0, 0)),
        Just(rule(Kind::Other, 0, 0, 0)),
        Just(rule(Kind::Frame, 0, 0, 0)),
        (0..i32::MAX, -50..=0i16).prop_map(|(cfa, fp)| rule(Kind::DerefSp, cfa, -1, fp)),
        Just(rule(Kind::Plt, 11, -1, 0)),
        (any::<i32>(), -50..=0i16).prop_map(|(cfa, fp)| rule(Kind::Sp, cfa, -1, fp)),
        (any::<i32>(), -50..=0i16).prop_map(|(cfa, fp)| rule(Kind::Sp, cfa, 0, fp)),
        (any::<i32>(), -50..=0i16).prop_map(|(cfa, fp)| rule(Kind::Fp, cfa, -1, fp)),
        any::<i32>().prop_map(|cfa| rule(Kind::Deref, cfa, -1, 0)),
    ];
    prop::collection::vec(any_rule, 0..9).prop_map(|mut rules| {
        rules.insert(0, NONE);
        rules
    })
}

/// A valid table.
fn tables() -> impl Strategy<Value = Table> {
    let page = prop::collection::btree_map(any::<u16>(), any::<prop::sample::Index>(), 0..40);
    let pages = prop::collection::vec(page, 0..5);
    (rules(), pages, 0..1000u32).prop_map(|(rules, pages, first)| {
        let pages = pages.into_iter().map(|page| {
            let mut rows: Vec<(u16, u16)> = page
                .iter()
                .map(|(&offset, index)| (offset, index.index(rules.len()) as u16))
                .collect();
            if let Some(row) = rows.first_mut() {
                row.0 = 0;
            }
            rows
        });
        Table {
            machine: Machine::X86,
            pages: pages.collect(),
            rules,
            first,
        }
    })
}

proptest! {
    #[test]
    fn the_rule_that_is_found_is_the_last_row_before(
        table in tables(),
        piece in 1..64usize,
        others in prop::collection::vec(any::<u64>(), 20),
    ) {
        let rules = upload(table.machine, &table.to_bytes(), piece).unwrap();
        let mut expected = BTreeMap::new();
        for (nth, rows) in table.pages.iter().enumerate() {
            let page = (u64::from(table.first) + nth as u64) << 16;
            if rows.is_empty() {
                expected.insert(page, 0);
            }
            expected.extend(rows.iter().map(|&(offset, rule)| (page + u64::from(offset), rule)));
        }
        let end = u64::from(table.first + table.pages.len() as u32) << 16;
        expected.insert(end, 0);
        let near = expected.keys().flat_map(|&at| [at.saturating_sub(1), at, at + 1]);
        for offset in near.chain(others.iter().copied()).chain(others.iter().map(|other| other % (end + 9))) {
            let index = expected.range(..=offset).next_back().map_or(0, |(_, &rule)| rule);
            prop_assert_eq!(rules.find(offset), table.rules[usize::from(index)], "at {:#x}", offset);
        }
        prop_assert_eq!(rules.rows(), table.pages.iter().map(Vec::len).sum::<usize>());
        prop_assert_eq!(rules.size(), table.to_bytes().len());
    }

    #[test]
    fn rules_that_were_changed_are_refused_or_valid(
        table in tables(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        offsets in prop::collection::vec(any::<u64>(), 20),
    ) {
        let mut bytes = table.to_bytes();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if let Ok(rules) = upload(table.machine, &bytes, 7) {
            for offset in offsets {
                rules.find(offset);
                rules.find(offset % (1 << 27));
            }
        }
    }

    #[test]
    fn rules_have_the_length_that_they_announce(table in tables(), cut in 1..200usize) {
        let mut bytes = table.to_bytes();
        let cut = cut.min(bytes.len());
        prop_assert_eq!(upload(table.machine, &bytes[..bytes.len() - cut], 9).err(), Some(Fault::Length));
        bytes.extend(vec![0; cut]);
        prop_assert_eq!(upload(table.machine, &bytes, 9).err(), Some(Fault::Length));
    }
}

#[test]
fn each_mistake_in_rules_is_refused() {
    let valid = Table {
        machine: Machine::X86,
        rules: vec![NONE, rule(Kind::Sp, 8, -1, 0)],
        first: 3,
        pages: vec![vec![(0, 1), (5, 0)], vec![], vec![(0, 1)]],
    };
    assert!(valid.upload().is_ok());
    let fault = |change: &dyn Fn(&mut Table)| {
        let mut table = valid.clone();
        change(&mut table);
        table.upload().err()
    };
    let of_word = |nth: usize, word: u32| {
        let mut bytes = valid.to_bytes();
        bytes[4 * nth..4 * nth + 4].copy_from_slice(&word.to_le_bytes());
        upload(Machine::X86, &bytes, 4096).err()
    };
    let row = |offset, rule| vec![vec![(0, 1), (offset, rule)]];

    assert_eq!(of_word(0, 7), Some(Fault::Header));
    assert_eq!(
        of_word(1, 183 | 2 << 16),
        Some(Fault::Header),
        "of another architecture"
    );
    assert_eq!(of_word(1, 62), Some(Fault::Header), "without a rule");
    assert_eq!(of_word(5, 1), Some(Fault::Header));
    assert_eq!(of_word(2, Rules::ROWS_MAX + 1), Some(Fault::TooMany));
    assert_eq!(of_word(4, Rules::PAGES_MAX + 1), Some(Fault::TooMany));
    assert_eq!(
        of_word(3, (1 << 24) - 2),
        Some(Fault::TooMany),
        "offsets of more than 40 bits"
    );
    assert_eq!(of_word(2, 4), Some(Fault::Length));
    assert_eq!(of_word(2, 2), Some(Fault::Length));
    assert_eq!(
        of_word(12, 1),
        Some(Fault::Page),
        "the first page does not begin with the first row"
    );
    assert_eq!(of_word(14, 1), Some(Fault::Page), "pages out of order");
    assert_eq!(of_word(14, 9), Some(Fault::Page), "a page behind the rows");
    assert_eq!(of_word(13, 9), Some(Fault::Page));
    assert_eq!(fault(&|table| table.pages.clear()), None);
    assert_eq!(
        fault(&|table| table.rules[0] = table.rules[1]),
        Some(Fault::Rule)
    );
    assert_eq!(
        fault(&|table| table.pages = row(5, 2)),
        Some(Fault::Row),
        "the index of no rule"
    );
    assert_eq!(
        fault(&|table| table.pages = row(0, 0)),
        Some(Fault::Row),
        "twice the same offset"
    );
    assert_eq!(
        fault(&|table| table.pages = vec![vec![(1, 1)]]),
        Some(Fault::Row),
        "not from the begin"
    );
    for wrong in [
        rule(Kind::Gap, 8, 0, 0),
        rule(Kind::Outermost, 0, -1, 0),
        rule(Kind::Signal, 0, 0, -1),
        rule(Kind::Other, 0, 0, 1),
        rule(Kind::Fp, 8, 0, 0),
        rule(Kind::DerefSp, 8, 0, 0),
        rule(Kind::Sp, 8, -2, 0),
        rule(Kind::Sp, 8, 1, 0),
        rule(Kind::Fp, 8, -1, 1),
        rule(Kind::Deref, 8, -1, -2),
        rule(Kind::Plt, 0, -1, 0),
        rule(Kind::Plt, 16, -1, 0),
        rule(Kind::Plt, 11, 0, 0),
        rule(Kind::DerefSp, -8, -1, 0),
        rule(Kind::Frame, 8, 0, 0),
    ] {
        assert_eq!(
            fault(&|table| table.rules[1] = wrong),
            Some(Fault::Rule),
            "{wrong:?}"
        );
    }
    // The kind.
    assert_eq!(of_word(9, 10), Some(Fault::Rule));
    // Behind `ra`.
    assert_eq!(of_word(10, 0x1_ffff), Some(Fault::Rule));
}

#[test]
fn after_a_mistake_nothing_is_kept() {
    let table = Table {
        machine: Machine::X86,
        rules: vec![NONE],
        first: 0,
        pages: vec![],
    };
    let mut wrong = table.to_bytes();
    wrong[0] ^= 1;
    let mut upload = Upload::new(Machine::X86);
    assert_eq!(upload.write(&wrong), Err(Fault::Header));
    for _ in 0..3 {
        assert_eq!(upload.write(&table.to_bytes()), Err(Fault::Header));
    }
    assert!(!upload.is_complete());
    assert_eq!(upload.finish(|| ()).err(), Some(Fault::Header));
    let mut upload = Upload::new(Machine::X86);
    upload.write(&table.to_bytes()).unwrap();
    assert!(upload.is_complete());
    assert_eq!(upload.write(&[0]), Err(Fault::Length));
    assert!(!upload.is_complete());
    assert_eq!(upload.finish(|| ()).err(), Some(Fault::Length));
}

#[test]
fn rules_of_arm64_may_have_the_return_address_in_a_register() {
    let mut table = Table {
        machine: Machine::Arm64,
        rules: vec![NONE, rule(Kind::Sp, 0, 0, 0), rule(Kind::Sp, 32, -3, -4)],
        first: 0,
        pages: vec![vec![(0, 1), (8, 2)]],
    };
    assert!(table.upload().is_ok());
    table.rules.push(rule(Kind::Plt, 11, -1, 0));
    assert_eq!(table.upload().err(), Some(Fault::Rule));
}

#[test]
fn a_check_of_many_rows_lets_others_run() {
    let page: Vec<(u16, u16)> = (0..=u16::MAX).map(|offset| (offset, offset % 2)).collect();
    let table = Table {
        machine: Machine::X86,
        rules: vec![NONE, rule(Kind::Outermost, 0, 0, 0)],
        first: 0,
        pages: vec![page; 4],
    };
    let mut upload = Upload::new(Machine::X86);
    upload.write(&table.to_bytes()).unwrap();
    let called = std::cell::Cell::new(0);
    assert!(upload.finish(|| called.set(called.get() + 1)).is_ok());
    assert_eq!(called.get(), 4);
}

// --- walks

/// A program with memory, mappings and rules for each instruction.
#[derive(Debug, Default)]
struct Fake<const ARM: bool> {
    memory: BTreeMap<u64, u64>,
    mappings: Vec<(std::ops::Range<u64>, Place)>,
    /// By offset in the object, from which on they are valid.
    rules: BTreeMap<(u32, u64), Rule>,
    changing: Option<u64>,
    reads: usize,
    lookups: usize,
}

const FILE: Place = Place::File {
    object: 1,
    offset: 0x1000,
};
const BARE: Place = Place::File {
    object: 2,
    offset: 0,
};

impl<const ARM: bool> Fake<ARM> {
    /// Code with rules at 0x40_0000, and without at 0x50_0000.
    fn new(rules: &[(u64, Rule)], memory: &[(u64, u64)]) -> Self {
        Self {
            memory: memory.iter().copied().collect(),
            mappings: vec![(0x40_0000..0x41_0000, FILE), (0x50_0000..0x51_0000, BARE)],
            rules: rules
                .iter()
                .map(|&(at, rule)| ((1, at - 0x40_0000 + 0x1000), rule))
                .collect(),
            ..Self::default()
        }
    }

    /// The addresses of the stack, return addresses with their lowest bit set, and how it ends.
    fn walk(&mut self, registers: Registers) -> (Vec<u64>, End) {
        let mut addresses = Vec::new();
        let mappings = self.mappings.clone();
        let mut walk = Walk::new(self, registers);
        loop {
            if addresses.len() == 127 {
                return (addresses, End::Depth);
            }
            let word = match walk.next_word() {
                Ok(word) => word,
                Err(end) => return (addresses, end),
            };
            let (place, exact) = Word::place(word.to_u64()).unwrap();
            // A return address may be the one behind a mapping.
            let behind = u64::from(!exact);
            let address = mappings.iter().find_map(|(range, of)| match (*of, place) {
                (
                    Place::File { object, offset },
                    Place::File {
                        object: same,
                        offset: at,
                    },
                ) if object == same => {
                    let address = range.start + (at - offset);
                    range.contains(&(address - behind)).then_some(address)
                }
                _ => None,
            });
            let address = match place {
                Place::Unlisted if exact => Some(0),
                _ => address,
            };
            addresses.push(address.expect("an executable address") << 1 | u64::from(!exact));
        }
    }
}

impl<const ARM: bool> Program for Fake<ARM> {
    const MACHINE: Machine = if ARM { Machine::Arm64 } else { Machine::X86 };

    fn code(&self) -> u64 {
        if ARM {
            (1 << 48) - 1
        } else {
            u64::MAX
        }
    }

    fn near(&mut self, address: u64) -> Result<Near, End> {
        self.lookups += 1;
        if self.changing == Some(address) {
            return Err(End::Changing);
        }
        let (range, place) = self
            .mappings
            .iter()
            .find(|(range, _)| range.contains(&address))
            .ok_or(End::Astray)?;
        let mapping = Mapping {
            begin: range.start,
            end: range.end,
            place: *place,
        };
        Ok(Near::new(&mapping, None))
    }

    fn read(&mut self, address: u64) -> Option<u64> {
        self.reads += 1;
        self.memory.get(&address).copied()
    }

    fn rule(&mut self, place: Place) -> Option<Rule> {
        match place {
            Place::File { object: 1, offset } => Some(
                self.rules
                    .range(..=(1, offset))
                    .next_back()
                    .map_or(NONE, |(_, &rule)| rule),
            ),
            _ => None,
        }
    }
}

type X86 = Fake<false>;
type Arm = Fake<true>;

fn at(ip: u64, sp: u64, fp: u64) -> Registers {
    Registers {
        ip,
        sp,
        fp,
        lr: None,
    }
}

const fn exact(address: u64) -> u64 {
    address << 1
}

const fn called(address: u64) -> u64 {
    address << 1 | 1
}

#[test]
fn frames_by_stack_pointer_and_frame_pointer() {
    let rules = [
        (0x40_0100, rule(Kind::Sp, 24, -1, -2)),
        (0x40_0200, rule(Kind::Fp, 16, -1, -2)),
        (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let memory = [
        (0x7000 + 8, 0x7030),
        (0x7000 + 16, 0x40_0210),
        (0x7030, 0),
        (0x7038, 0x40_0305),
    ];
    let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0104, 0x7000, 1));
    assert_eq!(
        stack,
        [exact(0x40_0104), called(0x40_0210), called(0x40_0305)]
    );
    assert_eq!(end, End::Whole);
}

#[test]
fn a_return_address_behind_the_end_of_its_function_belongs_to_it() {
    // abort() is the last instruction of the first function.
    let rules = [
        (0x40_0100, rule(Kind::Sp, 16, -1, 0)),
        (0x40_0200, rule(Kind::Sp, 64, -1, 0)),
        (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let memory = [(0x7038, 0x40_0200), (0x7048, 0x40_0301)];
    let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0200, 0x7000, 0));
    assert_eq!(
        stack,
        [exact(0x40_0200), called(0x40_0200), called(0x40_0301)]
    );
    assert_eq!(end, End::Whole);
}

#[test]
fn entries_of_the_procedure_linkage_table() {
    let rules = [
        (0x40_0000, rule(Kind::Plt, 11, -1, 0)),
        (0x40_0100, rule(Kind::Outermost, 0, 0, 0)),
    ];
    for (offset, ra) in [
        (0, 0x7000),
        (6, 0x7000),
        (10, 0x7000),
        (11, 0x7008),
        (15, 0x7008),
        (16, 0x7000),
    ] {
        let (stack, end) =
            X86::new(&rules, &[(ra, 0x40_0101)]).walk(at(0x40_0000 + offset, 0x7000, 0));
        assert_eq!(stack[1..], [called(0x40_0101)], "at byte {offset}");
        assert_eq!(end, End::Whole);
    }
}

#[test]
fn a_function_that_aligns_its_stack() {
    let rules = [
        (0x40_0100, rule(Kind::Deref, -8, -1, 0)),
        (0x40_0200, rule(Kind::Fp, 16, -1, -2)),
        (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let memory = [
        // The frame pointer of the function: below it is the CFA, at it the caller's frame pointer.
        (0x7100 - 8, 0x7140),
        (0x7100, 0x7200),
        (0x7138, 0x40_0205),
        (0x7200, 5),
        (0x7208, 0x40_0301),
    ];
    let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0110, 0x7000, 0x7100));
    assert_eq!(
        stack,
        [exact(0x40_0110), called(0x40_0205), called(0x40_0301)]
    );
    assert_eq!(end, End::Whole);
}

#[test]
fn a_handler_on_another_stack_returns_to_what_the_signal_interrupted() {
    let rules = [
        (0x40_0100, rule(Kind::Sp, 8, -1, 0)),
        (0x40_0200, rule(Kind::Signal, 0, 0, 0)),
        (0x40_0300, rule(Kind::Sp, 8, -1, 0)),
        (0x40_0400, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let memory = [
        (0x9000, 0x40_0205),
        // uc_mcontext of rbp, rsp and rip.
        (0x9008 + 120, 0x77),
        (0x9008 + 160, 0x7000),
        (0x9008 + 168, 0x40_0300),
        (0x7000, 0x40_0401),
    ];
    let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0100, 0x9000, 0));
    // The interrupted instruction is the first of its function.
    assert_eq!(
        stack,
        [
            exact(0x40_0100),
            called(0x40_0205),
            exact(0x40_0300),
            called(0x40_0401)
        ]
    );
    assert_eq!(end, End::Whole);
}

/// `vfork()` has taken its return address from the stack.
#[test]
fn a_register_has_the_caller_of_vfork() {
    let rules = [
        (0x40_0100, rule(Kind::Sp, 0, 0, 0)),
        (0x40_0200, rule(Kind::Sp, 16, -1, 0)),
        (0x40_0280, rule(Kind::Signal, 0, 0, 0)),
        (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let memory = [
        (0x7008, 0x40_0304),
        (0x6000 + 104, 0x40_0204),
        (0x6000 + 120, 0x77),
        (0x6000 + 160, 0x7000),
        (0x6000 + 168, 0x40_0104),
    ];
    let mut program = X86::new(&rules, &memory);
    let registers = Registers {
        lr: Some(0x40_0208),
        ..at(0x40_0104, 0x7000, 3)
    };
    let (stack, end) = program.walk(registers);
    assert_eq!(
        stack,
        [exact(0x40_0104), called(0x40_0208), called(0x40_0304)]
    );
    assert_eq!(end, End::Whole);
    // Interrupted by a signal.
    let (stack, end) = program.walk(at(0x40_0280, 0x6000, 0));
    assert_eq!(
        stack,
        [
            exact(0x40_0280),
            exact(0x40_0104),
            called(0x40_0204),
            called(0x40_0304)
        ]
    );
    assert_eq!(end, End::Whole);
    // A caller has its return address on the stack.
    let registers = Registers {
        lr: Some(0x40_0108),
        ..registers
    };
    let (stack, end) = program.walk(registers);
    assert_eq!((stack.len(), end), (2, End::NoRules));
}

#[test]
fn the_link_register_has_the_caller_of_a_leaf_and_of_an_interrupted_one() {
    let rules = [
        (0x40_0100, rule(Kind::Sp, 0, 0, 0)),
        (0x40_0200, rule(Kind::Sp, 32, -3, -4)),
        (0x40_0280, rule(Kind::Signal, 0, 0, 0)),
        (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let signal = 0x7020 + 128 + 176 + 8;
    let memory = [
        (0x7000, 0x1),
        // With an authentication code.
        (0x7008, 0x00d3_0000_0040_0284),
        (signal + 8 * 29, 0x2),
        (signal + 8 * 30, 0x40_0304),
        (signal + 8 * 31, 0x8000),
        (signal + 8 * 32, 0x40_0104),
    ];
    let mut program = Arm::new(&rules, &memory);
    let registers = Registers {
        lr: Some(0x0051_0000_0040_0208),
        ..at(0x40_0100, 0x7000, 3)
    };
    let (stack, end) = program.walk(registers);
    assert_eq!(
        stack,
        [
            exact(0x40_0100),
            called(0x40_0208),
            called(0x40_0284),
            exact(0x40_0104),
            called(0x40_0304)
        ]
    );
    assert_eq!(end, End::Whole);
    // A caller has stored its return address: that a rule says otherwise cannot be right.
    let registers = Registers {
        lr: Some(0x40_0108),
        ..registers
    };
    let (stack, end) = program.walk(registers);
    assert_eq!((stack.len(), end), (2, End::NoRules));
}

#[test]
fn frame_pointers_in_a_file_that_has_them_and_in_one_without_rules() {
    let memory = [
        (0x7000, 0x7010),
        (0x7008, 0x40_0500),
        (0x7010, 0x7040),
        (0x7018, 0x50_0007),
        (0x7040, 0),
        (0x7048, 0x40_0017),
    ];
    let frames = [(0x40_0000, rule(Kind::Frame, 0, 0, 0))];
    let begin = at(0x50_0100, 0x6ff0, 0x7000);
    let expected = [
        exact(0x50_0100),
        called(0x40_0500),
        called(0x50_0007),
        called(0x40_0017),
    ];
    let (stack, end) = X86::new(&frames, &memory).walk(begin);
    assert_eq!((&stack[..], end), (&expected[..], End::Whole));
    // A register that has anything means nothing.
    let (stack, end) = X86::new(&[], &memory).walk(begin);
    assert_eq!((&stack[..], end), (&expected[..2], End::NoRules));
}

#[test]
fn a_register_that_was_popped_is_in_the_red_zone() {
    let rules = [
        (0x40_0100, rule(Kind::Sp, 8, -1, -2)),
        (0x40_0200, rule(Kind::Fp, 16, -1, -2)),
        (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let memory = [
        (0x6ff8, 0x7020),
        (0x7000, 0x40_0205),
        (0x7020, 5),
        (0x7028, 0x40_0305),
        (0x7100, 0x40_0106),
    ];
    let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0100, 0x7000, 0x77));
    assert_eq!(
        stack,
        [exact(0x40_0100), called(0x40_0205), called(0x40_0305)]
    );
    assert_eq!(end, End::Whole);
    // Not below it, and not while a function is called, which overwrites it.
    for (nth, words) in [(0, -17), (1, -18)] {
        let rules = [
            (0x40_0100, rule(Kind::Sp, 8, -1, words)),
            (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
        ];
        let memory = [
            (0x7008 - 8 * u64::from(words.unsigned_abs()), 7),
            (0x7000, 0x40_0305),
        ];
        let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0100, 0x7000, 0x77));
        let expected = if nth == 0 {
            (2, End::Whole)
        } else {
            (1, End::Astray)
        };
        assert_eq!((stack.len(), end), expected);
    }
    let (stack, end) = X86::new(
        &[(0x40_0100, rule(Kind::Sp, 8, -1, -2))],
        &[(0x7000, 0x40_0105), (0x6ff8, 1), (0x7008, 0x40_0105)],
    )
    .walk(at(0x40_0100, 0x7000, 0x77));
    assert_eq!((stack.len(), end), (2, End::Astray));
}

#[test]
fn a_call_of_an_address_without_code_has_a_caller() {
    let rules = [(0x40_0300, rule(Kind::Outermost, 0, 0, 0))];
    let (stack, end) = X86::new(&rules, &[(0x7000, 0x40_0305)]).walk(at(0, 0x7000, 0));
    assert_eq!(
        (stack, end),
        (vec![exact(0), called(0x40_0305)], End::Whole)
    );
    let registers = Registers {
        lr: Some(0x40_0304),
        ..at(0, 0x7000, 0)
    };
    let (stack, end) = Arm::new(&rules, &[]).walk(registers);
    assert_eq!(
        (stack, end),
        (vec![exact(0), called(0x40_0304)], End::Whole)
    );
    let (stack, end) = Arm::new(&rules, &[]).walk(Registers {
        lr: None,
        ..registers
    });
    assert_eq!((stack.len(), end), (1, End::Astray));
}

#[test]
fn a_call_may_be_the_last_instruction_of_a_mapping() {
    let rules = [(0x40_0300, rule(Kind::Outermost, 0, 0, 0))];
    let memory = [(0x7000, 0x41_0000)];
    let mut program = X86::new(&rules, &memory);
    let mut walk = Walk::new(&mut program, at(0, 0x7000, 0));
    walk.next_word().unwrap();
    let word = walk.next_word().unwrap();
    assert_eq!(
        Word::place(word.to_u64()),
        Some((
            Place::File {
                object: 1,
                offset: 0x1_1000
            },
            false
        ))
    );
}

#[test]
fn a_restorer_without_rules_is_known_by_its_instructions() {
    let code = [(0x50_0200, 0x0f00_0000_0fc0_c748), (0x50_0208, 0xf00d_0005)];
    let rules = [
        (0x40_0100, rule(Kind::Sp, 8, -1, 0)),
        (0x40_0400, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let memory = [
        (0x9000, 0x50_0200),
        (0x9008 + 120, 0x77),
        (0x9008 + 160, 0x7000),
        (0x9008 + 168, 0x40_0404),
        code[0],
        code[1],
    ];
    let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0100, 0x9000, 0));
    assert_eq!(
        stack,
        [exact(0x40_0100), called(0x50_0200), exact(0x40_0404)]
    );
    assert_eq!(end, End::Whole);
    // Also in a gap, and in code with frame pointers.
    for kind in [Kind::Gap, Kind::Frame] {
        let rules = [
            (0x40_0100, rule(Kind::Sp, 8, -1, 0)),
            (0x40_01f0, rule(kind, 0, 0, 0)),
            (0x40_0400, rule(Kind::Outermost, 0, 0, 0)),
        ];
        let mut memory = memory;
        memory[0].1 = 0x40_0200;
        (memory[4].0, memory[5].0) = (0x40_0200, 0x40_0208);
        let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0100, 0x9000, 0));
        assert_eq!((stack.len(), end), (3, End::Whole));
    }
    for nth in 0..2 {
        let mut other = memory;
        other[4 + nth].1 ^= 1;
        let (stack, end) = X86::new(&rules, &other).walk(at(0x40_0100, 0x9000, 0));
        assert_eq!((stack.len(), end), (2, End::NoRules));
    }
    let signal = 0x9000 + 128 + 176 + 8;
    let memory = [
        (signal + 8 * 29, 0x2),
        (signal + 8 * 30, 0x40_0404),
        (signal + 8 * 31, 0x8000),
        (signal + 8 * 32, 0x40_0104),
        (0x50_0200, 0xd400_0001_d280_1168),
    ];
    let rules = [
        (0x40_0100, rule(Kind::Sp, 0, 0, 0)),
        (0x40_0400, rule(Kind::Outermost, 0, 0, 0)),
    ];
    let registers = Registers {
        lr: Some(0x50_0200),
        ..at(0x40_0100, 0x9000, 0)
    };
    let (stack, end) = Arm::new(&rules, &memory).walk(registers);
    assert_eq!(
        stack,
        [
            exact(0x40_0100),
            called(0x50_0200),
            exact(0x40_0104),
            called(0x40_0404)
        ]
    );
    assert_eq!(end, End::Whole);
}

#[test]
fn a_stack_that_assembler_has_aligned() {
    let rules = [
        (0x40_0100, rule(Kind::DerefSp, 24, -1, -2)),
        (0x40_0300, rule(Kind::Outermost, 0, 0, 0)),
    ];
    // The stack pointer before the function pushed anything, at which is the return address.
    let memory = [(0x7018, 0x7100), (0x7100, 0x40_0305), (0x70f8, 0x77)];
    let (stack, end) = X86::new(&rules, &memory).walk(at(0x40_0100, 0x7000, 0));
    assert_eq!(
        (stack, end),
        (vec![exact(0x40_0100), called(0x40_0305)], End::Whole)
    );
}

#[test]
fn each_end_of_a_stack() {
    let sp = |cfa| rule(Kind::Sp, cfa, -1, 0);
    let one = |first, memory: &[(u64, u64)], registers| {
        let rules = [
            (0x40_0100, first),
            (0x40_0200, rule(Kind::Outermost, 0, 0, 0)),
        ];
        let (stack, end) = X86::new(&rules, memory).walk(registers);
        (stack.len(), end)
    };
    let registers = at(0x40_0100, 0x7000, 0x7100);
    assert_eq!(
        one(sp(8), &[(0x7000, 0x40_0201)], registers),
        (2, End::Whole)
    );
    assert_eq!(
        one(sp(8), &[(0x7000, 0)], registers),
        (1, End::Whole),
        "a return address of 0"
    );
    assert_eq!(one(sp(8), &[], registers), (1, End::NoMemory));
    assert_eq!(
        one(sp(8), &[(0x7000, 0x30_0000)], registers),
        (1, End::Astray),
        "no code"
    );
    assert_eq!(
        one(sp(0), &[(0x6ff8, 0x40_0201)], registers),
        (1, End::Astray),
        "no frame"
    );
    assert_eq!(
        one(sp(-8), &[(0x6ff0, 0x40_0201)], registers),
        (1, End::Astray),
        "downwards"
    );
    assert_eq!(
        one(sp(4), &[(0x6ffc, 0x40_0201)], registers),
        (1, End::Astray),
        "below the stack pointer"
    );
    assert_eq!(
        one(sp(i32::MIN), &[], registers),
        (1, End::NoMemory),
        "round the begin of memory"
    );
    assert_eq!(
        one(rule(Kind::Other, 0, 0, 0), &[], registers),
        (1, End::NoRules)
    );
    assert_eq!(
        one(rule(Kind::Signal, 0, 0, 0), &[], registers),
        (1, End::NoMemory)
    );
    assert_eq!(
        one(
            rule(Kind::Deref, 0, -1, 0),
            &[],
            at(0x40_0100, 0x7000, 0x6ff8)
        ),
        (1, End::Astray)
    );
    // A gap: even with something that looks like a frame.
    let frame = [(0x7100, 0x7200), (0x7108, 0x40_0201)];
    assert_eq!(one(NONE, &frame, registers), (1, End::NoRules));
    for (file, outermost) in [(0x40_0100, End::Whole), (0x50_0100, End::NoRules)] {
        let one = |memory: &[(u64, u64)], fp| {
            one(rule(Kind::Frame, 0, 0, 0), memory, at(file, 0x7000, fp))
        };
        assert_eq!(one(&frame, 0x7100), (2, End::Whole));
        assert_eq!(one(&[], 0x7100), (1, End::NoMemory));
        assert_eq!(one(&[], 0), (1, outermost));
        assert_eq!(
            one(&[], 0x6ff8),
            (1, End::NoRules),
            "below the stack pointer"
        );
        assert_eq!(one(&[], 0x7001), (1, End::NoRules), "not aligned");
        assert_eq!(
            one(&[(0x7100, 5), (0x7108, 0x30_0000)], 0x7100),
            (1, End::NoRules),
            "no code"
        );
        assert_eq!(one(&[(0x7100, 5), (0x7108, 0)], 0x7100), (1, outermost));
    }
    let mut program = X86::new(&[(0x40_0100, sp(8))], &[(0x7000, 0x50_0001)]);
    program.changing = Some(0x50_0000);
    assert_eq!(
        program.walk(registers),
        (vec![exact(0x40_0100)], End::Changing)
    );
    // A frame that is its own caller.
    let circle = [(0x7000, 0x7000), (0x7008, 0x50_0001)];
    let (stack, end) = X86::new(&[], &circle).walk(at(0x50_0000, 0x7000, 0x7000));
    assert_eq!((stack.len(), end), (2, End::NoRules));
    // A handler that returns to itself: the depth ends that.
    let rules = [(0x40_0100, rule(Kind::Signal, 0, 0, 0))];
    let memory = [
        (0x7000 + 120, 0),
        (0x7000 + 160, 0x7000),
        (0x7000 + 168, 0x40_0100),
    ];
    let (stack, end) = X86::new(&rules, &memory).walk(registers);
    assert_eq!((stack.len(), end), (127, End::Depth));
}

#[test]
fn code_of_two_files_that_call_each_other_is_looked_up_once() {
    let step = rule(Kind::Sp, 8, -1, 0);
    let memory: Vec<(u64, u64)> = (0..40)
        .map(|nth| {
            (
                0x7000 + 8 * nth,
                if nth % 2 == 0 { 0x60_0001 } else { 0x40_0001 },
            )
        })
        .collect();
    let mut program = X86::new(&[(0x40_0000, step)], &memory);
    program.mappings.push((
        0x60_0000..0x60_1000,
        Place::File {
            object: 1,
            offset: 0x1000,
        },
    ));
    let (stack, end) = program.walk(at(0x40_0000, 0x7000, 0));
    assert_eq!((stack.len(), end), (41, End::NoMemory));
    assert_eq!(program.lookups, 2);
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let small = prop_oneof![-64..64i32, any::<i32>()];
    (0..10usize, small, -4..=0i16, -4..=0i16).prop_map(|(kind, cfa, ra, fp)| {
        let kinds = [
            Kind::Gap,
            Kind::Outermost,
            Kind::Sp,
            Kind::Fp,
            Kind::Deref,
            Kind::Plt,
            Kind::Signal,
            Kind::Other,
            Kind::DerefSp,
            Kind::Frame,
        ];
        rule(kinds[kind], cfa, ra, fp)
    })
}

/// A number that is likely to be an address of code or of the stack.
fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0x40_0000..0x40_0040u64,
        1 => 0x50_0000..0x50_0040u64,
        4 => (0..32u64).prop_map(|nth| 0x7000 + 8 * nth),
        1 => any::<u64>(),
    ]
}

proptest! {
    #[test]
    fn a_walk_through_anything_ends_and_has_only_addresses_of_code(
        rules in prop::collection::btree_map(0..0x40u64, any_rule(), 0..8),
        memory in prop::collection::vec(any_word(), 64),
        begin in [any_word(), any_word(), any_word(), any_word()],
        lr: bool,
    ) {
        let rules: Vec<_> = rules.into_iter().map(|(at, rule)| (0x40_0000 + at, rule)).collect();
        let memory: Vec<_> = memory.iter().enumerate().map(|(nth, &word)| (0x7000 + 8 * nth as u64, word)).collect();
        let [ip, sp, fp, link] = begin;
        let registers = Registers { ip, sp, fp, lr: lr.then_some(link) };
        let mut x86 = X86::new(&rules, &memory);
        // Panics for a word outside of executable mappings.
        let (stack, end) = x86.walk(registers);
        prop_assert!(stack.len() < 127 || end == End::Depth);
        prop_assert!(x86.reads <= 6 * (stack.len() + 1), "{} reads", x86.reads);
        prop_assert!(x86.lookups <= 3 * (stack.len() + 1), "{} lookups", x86.lookups);
        let mut arm = Arm::new(&rules, &memory);
        let (stack, _) = arm.walk(registers);
        prop_assert!(arm.reads <= 6 * (stack.len() + 1));
    }
}
