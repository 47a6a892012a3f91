// SPDX-License-Identifier: MIT OR Apache-2.0

//! Small ELF files with call frame information of the tests' choice.

use crate::table::Table;
use rhist_elf::Machine;
use rhist_unwind::Error;
use rhist_unwind::Rule;
use rhist_unwind::Rules;
use rhist_unwind::compile;

/// Offset of the code in the file.
pub const CODE: u64 = 0x1000;
/// Address of the code.
pub const CODE_ADDRESS: u64 = 0x40_1000;
/// Address of `.eh_frame`.
pub const FRAME_ADDRESS: u64 = 0x8000_0000;

// Instructions of DWARF, which operands follow.
pub const SET_LOC: u8 = 0x01;
pub const ADVANCE1: u8 = 0x02;
pub const ADVANCE2: u8 = 0x03;
pub const ADVANCE4: u8 = 0x04;
pub const OFFSET_EXTENDED: u8 = 0x05;
pub const UNDEFINED: u8 = 0x07;
pub const SAME_VALUE: u8 = 0x08;
pub const REGISTER: u8 = 0x09;
pub const REMEMBER: u8 = 0x0a;
pub const RESTORE_STATE: u8 = 0x0b;
pub const DEF_CFA: u8 = 0x0c;
pub const DEF_CFA_REGISTER: u8 = 0x0d;
pub const DEF_CFA_OFFSET: u8 = 0x0e;
pub const DEF_CFA_EXPRESSION: u8 = 0x0f;
pub const EXPRESSION: u8 = 0x10;
pub const OFFSET_SF: u8 = 0x11;
pub const DEF_CFA_SF: u8 = 0x12;
pub const VAL_OFFSET: u8 = 0x14;
pub const VAL_EXPRESSION: u8 = 0x16;
pub const NEGATE_RA_STATE: u8 = 0x2d;
pub const ARGS_SIZE: u8 = 0x2e;
/// The operand is in the lower bits.
pub const ADVANCE: u8 = 0x40;
pub const OFFSET: u8 = 0x80;
pub const RESTORE: u8 = 0xc0;

pub const RBX: u8 = 3;
pub const RDI: u8 = 5;
pub const RBP: u8 = 6;
pub const RSP: u8 = 7;
pub const R10: u8 = 10;
pub const RIP: u8 = 16;
pub const X29: u8 = 29;
pub const X30: u8 = 30;
pub const SP: u8 = 31;

pub fn uleb(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

pub fn sleb(mut number: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !(-64..64).contains(&number) {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8 & 0x7f);
    bytes
}

/// Contents of `.eh_frame`.
#[derive(Clone, Default)]
pub struct Frames {
    pub bytes: Vec<u8>,
}

/// A CIE.
#[derive(Clone)]
pub struct Cie {
    pub version: u8,
    pub augmentation: &'static str,
    pub code_align: u64,
    pub data_align: i64,
    pub ra: u8,
    /// How addresses of functions are encoded: relative to their place, signed, 4 bytes.
    pub encoding: u8,
    pub instructions: Vec<u8>,
}

impl Cie {
    /// As compilers write it: at the first instruction, the return address is on the stack of
    /// x86-64, or in the link register of AArch64.
    pub fn of(machine: Machine) -> Self {
        let (code_align, ra, instructions) = match machine {
            Machine::X86_64 => (1, RIP, vec![DEF_CFA, RSP, 8, OFFSET | RIP, 1]),
            Machine::Aarch64 => (4, X30, vec![DEF_CFA, SP, 0]),
        };
        Self {
            version: 1,
            augmentation: "zR",
            code_align,
            data_align: -8,
            ra,
            encoding: 0x1b,
            instructions,
        }
    }
}

impl Frames {
    /// Appends an entry, and returns its offset.
    pub fn entry(&mut self, contents: &[u8]) -> usize {
        let at = self.bytes.len();
        self.bytes.extend((contents.len() as u32).to_le_bytes());
        self.bytes.extend(contents);
        at
    }

    pub fn cie(&mut self, cie: &Cie) -> usize {
        let mut contents = vec![0, 0, 0, 0, cie.version];
        contents.extend(cie.augmentation.as_bytes());
        contents.push(0);
        contents.extend(uleb(cie.code_align));
        contents.extend(sleb(cie.data_align));
        contents.push(cie.ra);
        if cie.augmentation.starts_with('z') {
            contents.extend([1, cie.encoding]);
        }
        contents.extend(&cie.instructions);
        self.entry(&contents)
    }

    /// Appends the entry of a function in the code, `start` bytes behind its begin.
    pub fn fde(&mut self, cie: usize, start: i64, size: u32, instructions: &[u8]) -> usize {
        let at = self.bytes.len() as u64;
        let address = CODE_ADDRESS.wrapping_add_signed(start);
        let mut contents = (at as u32 + 4 - cie as u32).to_le_bytes().to_vec();
        contents.extend((address.wrapping_sub(FRAME_ADDRESS + at + 8) as u32).to_le_bytes());
        contents.extend(size.to_le_bytes());
        contents.push(0);
        contents.extend(instructions);
        self.entry(&contents)
    }
}

/// An ELF file.
pub struct File {
    pub machine: u16,
    pub code_size: usize,
    pub eh_frame: Vec<u8>,
    /// Otherwise the header of the unwinder leads to `.eh_frame`.
    pub has_sections: bool,
    /// Contents of a segment of notes.
    pub notes: Vec<u8>,
    /// Name of the second section.
    pub other: &'static str,
    /// Its offset and size, if it has not the names.
    pub other_range: Option<(u64, u64)>,
}

impl File {
    pub fn new(machine: Machine, code_size: usize, frames: &Frames) -> Self {
        Self {
            machine: machine.number(),
            code_size,
            eh_frame: frames.bytes.clone(),
            has_sections: true,
            notes: Vec::new(),
            other: ".shstrtab",
            other_range: None,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let aligned = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(8), 0);
        let mut bytes = vec![0; CODE as usize + self.code_size];
        aligned(&mut bytes);
        let frame = bytes.len() as u64;
        bytes.extend(&self.eh_frame);
        aligned(&mut bytes);
        let frame_end = bytes.len() as u64;
        let hdr = bytes.len() as u64;
        let hdr_address = FRAME_ADDRESS + 0x4000_0000;
        // Relative to its place, signed, 4 bytes; without a table.
        bytes.extend([1, 0x1b, 0xff, 0xff]);
        bytes.extend((FRAME_ADDRESS.wrapping_sub(hdr_address + 4) as u32).to_le_bytes());
        let notes = bytes.len() as u64;
        bytes.extend(&self.notes);
        aligned(&mut bytes);
        let names = bytes.len() as u64;
        let of_names = ["", ".eh_frame", self.other, ""].join("\0");
        bytes.extend(of_names.as_bytes());
        aligned(&mut bytes);
        let sections = bytes.len() as u64;
        // Name, type, address, offset, size.
        let (other, other_size) = self.other_range.unwrap_or((names, of_names.len() as u64));
        let table = [
            (0_u32, 0_u32, 0, 0, 0),
            (1, 1, FRAME_ADDRESS, frame, self.eh_frame.len() as u64),
            (11, 3, 0, other, other_size),
            (0, 3, 0, names, of_names.len() as u64),
        ];
        for (name, kind, address, offset, size) in table {
            bytes.extend(name.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            for number in [2, address, offset, size, 0, 1, 0] {
                bytes.extend(number.to_le_bytes());
            }
        }
        // Type, flags, offset, address, size.
        let segments = [
            (1_u32, 4_u32, frame, FRAME_ADDRESS, frame_end - frame),
            (1, 5, CODE, CODE_ADDRESS, self.code_size as u64),
            (0x6474_e550, 4, hdr, hdr_address, 8),
            (4, 4, notes, 0, self.notes.len() as u64),
        ];
        let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        head.extend(3_u16.to_le_bytes());
        head.extend(self.machine.to_le_bytes());
        head.extend(1_u32.to_le_bytes());
        let has = u16::from(self.has_sections);
        for number in [0, 64, u64::from(has) * sections] {
            head.extend(number.to_le_bytes());
        }
        head.extend([0; 4]);
        for number in [64, 56, segments.len() as u16, 64, 4 * has, 3 * has] {
            head.extend(number.to_le_bytes());
        }
        for (kind, flags, offset, address, size) in segments {
            head.extend(kind.to_le_bytes());
            head.extend(flags.to_le_bytes());
            for number in [offset, address, address, size, size, 4_u64] {
                head.extend(number.to_le_bytes());
            }
        }
        bytes[..head.len()].copy_from_slice(&head);
        bytes
    }

    pub fn compile(&self) -> Result<Rules, Error> {
        let rules = compile(&self.bytes())?;
        Table::read(&rules.to_bytes()).unwrap().assert_equal(&rules);
        Ok(rules)
    }
}

/// Rows of a table, with offsets relative to the begin of the code.
pub fn rows(rules: &Rules) -> Vec<(i64, Rule)> {
    rules
        .rows()
        .map(|(offset, rule)| (offset as i64 - CODE as i64, rule))
        .collect()
}

/// Rules of a function of 64 bytes with this CIE, each with its offset in the function.
pub fn rules_with(machine: Machine, cie: &Cie, instructions: &[u8]) -> Vec<(i64, Rule)> {
    let mut frames = Frames::default();
    let cie = frames.cie(cie);
    frames.fde(cie, 0, 64, instructions);
    let rules = File::new(machine, 64, &frames).compile().unwrap();
    assert_eq!((rules.malformed, rules.outside, rules.overlapping), (0, 0, 0));
    let mut rows = rows(&rules);
    // The begin of the page, and the end of the function.
    if !rows.is_empty() {
        assert_eq!(rows.remove(0), (-(CODE as i64), Rule::None));
        let last = rows.pop().unwrap();
        assert!(last == (64, Rule::None) || last.1 == Rule::None && last.0 < 64);
        if last.0 < 64 {
            rows.push(last);
        }
    }
    rows
}

/// The only rule of a function that begins with these instructions.
pub fn rule(machine: Machine, instructions: &[u8]) -> Rule {
    match rules_with(machine, &Cie::of(machine), instructions)[..] {
        [] => Rule::None,
        [(0, rule)] => rule,
        ref other => panic!("{other:?}"),
    }
}
