// SPDX-License-Identifier: MIT OR Apache-2.0

//! The procedure linkage table: code by which a file calls functions of others.
//!
//! An entry jumps to the address in a slot of the global offset table. A relocation fills that
//! slot, and has the symbol. So entries are found by their instructions, not by their number, as
//! linkers lay out the table differently.

use object::LittleEndian;
use object::elf;
use object::elf::Rela64;
use object::read::elf::SectionHeader;
use rhist_elf::Image;
use rhist_elf::LE;
use rhist_elf::Machine;
use std::ops::Range;

const SECTIONS: [&[u8]; 3] = [b".plt\0", b".plt.sec\0", b".plt.got\0"];
/// Where in an entry for x86-64 the jump may be: behind `bnd`, `endbr64`, both, or behind `endbr64`
/// and the move of a number, as mold writes it.
const JUMPS: [usize; 5] = [0, 1, 4, 5, 10];
/// `jmp *SLOT(%rip)`.
const JUMP: [u8; 2] = [0xff, 0x25];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// `push $NUMBER`.
const PUSH: u8 = 0x68;
/// `bti c`.
const BTI_C: u32 = 0xd503_245f;
/// Most bytes of an entry for AArch64: with `bti c`, and with a check of the address.
const LONGEST: u64 = 24;

/// Code that jumps to a function.
pub(crate) struct Entry {
    pub(crate) addresses: Range<u64>,
    pub(crate) target: Target,
}

/// The function that an entry leads to.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// The symbol with this number in `.dynsym`.
    Symbol(u32),
    /// A function of the file itself, which another function chooses (IFUNC): the address of the
    /// latter, whose symbol has the name of both.
    Resolver(u64),
}

/// The relocations that fill slots.
struct Slots {
    /// By the number that entries push: from `.rela.plt`, in the order of the file.
    numbered: Vec<Option<Target>>,
    /// Addresses of slots, ascending.
    by_address: Vec<(u64, Target)>,
}

impl Slots {
    fn read(image: &Image<'_>) -> Self {
        let (jump, data, resolver) = match image.machine() {
            Machine::X86_64 => (elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_GLOB_DAT, elf::R_X86_64_IRELATIVE),
            Machine::Aarch64 => (
                elf::R_AARCH64_JUMP_SLOT,
                elf::R_AARCH64_GLOB_DAT,
                elf::R_AARCH64_IRELATIVE,
            ),
        };
        let target = |rela: &Rela64<LittleEndian>| {
            let kind = rela.r_type(LE, false);
            if kind == jump || kind == data {
                Some(Target::Symbol(rela.r_sym(LE, false)))
            } else if kind == resolver {
                Some(Target::Resolver(rela.r_addend.get(LE) as u64))
            } else {
                None
            }
        };
        let plt = relocations(image, b".rela.plt\0");
        let numbered: Vec<_> = plt.iter().map(target).collect();
        let all = plt.iter().chain(relocations(image, b".rela.dyn\0"));
        let mut by_address: Vec<_> = all
            .filter_map(|rela| Some((rela.r_offset.get(LE), target(rela)?)))
            .collect();
        by_address.sort_by_key(|&(address, _)| address);
        Self { numbered, by_address }
    }

    fn find(&self, address: u64) -> Option<Target> {
        let at = self
            .by_address
            .binary_search_by_key(&address, |&(address, _)| address)
            .ok()?;
        Some(self.by_address[at].1)
    }
}

fn relocations<'a>(image: &Image<'a>, name: &[u8]) -> &'a [Rela64<LittleEndian>] {
    let section = image.section(name);
    let relocations = section.and_then(|section| section.data_as_array(LE, image.data()).ok());
    relocations.unwrap_or_default()
}

/// Finds all entries for functions that have a symbol.
pub(crate) fn entries(image: &Image<'_>) -> Vec<Entry> {
    let slots = Slots::read(image);
    let mut entries = Vec::new();
    if slots.by_address.is_empty() {
        return entries;
    }
    for name in SECTIONS {
        let Some(section) = image.section(name) else {
            continue;
        };
        let (Some(code), address) = (image.contents(section), section.sh_addr(LE)) else {
            continue;
        };
        // A hostile section may be at the end of all addresses.
        if address.checked_add(code.len() as u64 + LONGEST).is_none() {
            continue;
        }
        match image.machine() {
            Machine::X86_64 => {
                let size = if section.sh_entsize(LE) == 8 { 8 } else { 16 };
                x86_64(code, address, size, &slots, &mut entries);
            }
            Machine::Aarch64 => aarch64(code, address, &slots, &mut entries),
        }
    }
    entries
}

fn x86_64(code: &[u8], address: u64, size: usize, slots: &Slots, entries: &mut Vec<Entry>) {
    for (start, entry) in (address..).step_by(size).zip(code.chunks_exact(size)) {
        let number = |at: usize| Some(u32::from_le_bytes(entry.get(at..at + 4)?.try_into().ok()?));
        let by_jump = JUMPS.iter().find_map(|&at| {
            let is_jump = entry.get(at..at + 2) == Some(&JUMP);
            let distance = is_jump.then(|| number(at + 2)).flatten()?;
            let behind = start + at as u64 + 6;
            slots.find(behind.wrapping_add_signed(i64::from(distance as i32)))
        });
        // With `.plt.sec`, those in `.plt` only push the number of the relocation.
        let push = if entry.starts_with(&ENDBR64) { 4 } else { 0 };
        let by_push = || {
            let is_push = entry.get(push) == Some(&PUSH);
            let number = is_push.then(|| number(push + 1)).flatten()?;
            *slots.numbered.get(number as usize)?
        };
        if let Some(target) = by_jump.or_else(by_push) {
            let addresses = start..start + size as u64;
            entries.push(Entry { addresses, target });
        }
    }
}

fn aarch64(code: &[u8], address: u64, slots: &Slots, entries: &mut Vec<Entry>) {
    let first = entries.len();
    let end = address + code.len() as u64;
    let mut before = 0;
    let mut words = (address..).step_by(4).zip(code.chunks_exact(4)).peekable();
    while let Some((start, word)) = words.next() {
        let word = u32::from_le_bytes(word.try_into().unwrap_or_default());
        let load = words.peek().map_or(0, |(_, word)| {
            u32::from_le_bytes((*word).try_into().unwrap_or_default())
        });
        // `adrp x16, PAGE`, then `ldr x17, [x16, OFFSET]`.
        if word & 0x9f00_001f == 0x9000_0010 && load & 0xffc0_03ff == 0xf940_0211 {
            let pages = (word >> 29 & 3) | (word >> 3 & 0x1f_fffc);
            // 21 bits with a sign.
            let pages = i64::from((pages << 11) as i32 >> 11);
            let page = (start & !0xfff).wrapping_add_signed(pages << 12);
            let slot = page.wrapping_add(u64::from(load >> 10 & 0xfff) * 8);
            if let Some(target) = slots.find(slot) {
                let start = if before == BTI_C { start - 4 } else { start };
                if let Some(last) = entries[first..].last_mut() {
                    last.addresses.end = last.addresses.end.min(start);
                }
                let addresses = start..end.min(start + LONGEST);
                entries.push(Entry { addresses, target });
            }
        }
        before = word;
    }
}
