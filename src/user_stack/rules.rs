// SPDX-License-Identifier: GPL-2.0

//! Rules: where the registers of a function's caller are, for each instruction of a file.
//!
//! # Format
//!
//! Words of 32 bits, little-endian. Offsets are offsets in the file.
//!
//! * The header has six words: `RUR1`; the [`Machine`] (low half) and the number of rules (high
//!   half); the number of rows; the first page; the number of pages; 0.
//! * Each rule has three words: its kind (low half) and `fp` (high half); `ra` (low half) and 0;
//!   `cfa`. The first rule is for gaps: [`Kind::Gap`] or [`Kind::Frame`].
//! * Each page of 64 KiB of the file has one word: the index of its first row.
//! * Each row has one word: the offset in the page (low half), and the index of the rule from there
//!   on (high half).
//!
//! The first row of a page has offset 0, so that a lookup stays in a page. In a page without rows
//! all is a gap.
//!
//! A row takes 4 bytes: most files have only hundreds of different rules, but ten thousands of
//! rows.

use kernel::prelude::*;

/// The first word: `RUR1` in memory.
const MAGIC: u32 = u32::from_le_bytes(*b"RUR1");

/// Words of the header.
const HEADER: usize = 6;
/// Words of a rule.
const RULE: usize = 3;

/// Bits of an offset in a page.
const PAGE_BITS: u32 = 16;
/// Pages of a file: offsets have 40 bits.
const PAGES: u32 = 1 << 24;

/// The architecture of a file, by the number of ELF (`e_machine`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u16)]
pub enum Machine {
    /// x86-64: the return address is below the canonical frame address (CFA), but for `vfork()`.
    X86 = 62,
    /// AArch64: it may be in a register.
    Arm64 = 183,
}

/// How the canonical frame address is found: the stack pointer of the caller, when it runs again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u16)]
pub enum Kind {
    /// Code without rules.
    Gap = 0,
    /// The outermost function, without a caller.
    Outermost = 1,
    /// The stack pointer plus `cfa`.
    Sp = 2,
    /// The frame pointer plus `cfa`.
    Fp = 3,
    /// The word at the frame pointer plus `cfa`. The frame pointer of the caller is where the frame
    /// pointer points to. (A function that aligns its stack: `.eh_frame` has expressions for it.)
    Deref = 4,
    /// An entry of the procedure linkage table of x86-64: the stack pointer plus 8, and plus 8 more
    /// from byte `cfa` of each 16 on, behind a push.
    Plt = 5,
    /// Where a signal handler returns to: the registers are where the kernel has put them.
    Signal = 6,
    /// Rules of a form that this does not have.
    Other = 7,
    /// The word at the stack pointer plus `cfa`, plus 8. (Assembler of OpenSSL that aligns its
    /// stack.)
    DerefSp = 8,
    /// Code with frame pointers.
    Frame = 9,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Gap,
        Self::Outermost,
        Self::Sp,
        Self::Fp,
        Self::Deref,
        Self::Plt,
        Self::Signal,
        Self::Other,
        Self::DerefSp,
        Self::Frame,
    ];
}

/// A rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    /// How the CFA is found.
    pub kind: Kind,
    /// Where the frame pointer of the caller is: in words of 8 bytes from the CFA, less than 0. 0:
    /// it has not changed.
    pub fp: i16,
    /// Where the return address is: in words of 8 bytes from the CFA, less than 0. 0: in the
    /// register [`lr`](super::Registers::lr).
    pub ra: i16,
    /// The bytes that are added to a register; for [`Kind::Plt`] the byte behind the push.
    pub cfa: i32,
}

impl Rule {
    /// A rule of a kind that needs no numbers.
    const fn of(kind: Kind) -> Self {
        Self {
            kind,
            fp: 0,
            ra: 0,
            cfa: 0,
        }
    }

    /// `None` if the kind is unknown.
    fn of_words(words: [u32; RULE]) -> Option<Self> {
        let [first, second, cfa] = words;
        Some(Self {
            kind: *Kind::ALL.get((first & 0xffff) as usize)?,
            fp: (first >> 16) as i16,
            ra: second as i16,
            cfa: cfa as i32,
        })
    }

    /// Of words that were not checked.
    fn parse(words: [u32; RULE], machine: Machine) -> Option<Self> {
        let rule = Self::of_words(words)?;
        let [_, second, _] = words;
        let is_valid = second >> 16 == 0
            && match rule.kind {
                Kind::Gap | Kind::Outermost | Kind::Signal | Kind::Other | Kind::Frame => {
                    rule == Self::of(rule.kind)
                }
                Kind::Sp | Kind::Fp => rule.fp <= 0 && rule.finds_return(machine),
                Kind::Deref => rule.fp == 0 && rule.finds_return(machine),
                Kind::DerefSp => rule.cfa >= 0 && rule.fp <= 0 && rule.finds_return(machine),
                Kind::Plt => {
                    let in_entry = (1..16).contains(&rule.cfa);
                    machine == Machine::X86 && rule.fp <= 0 && rule.ra == -1 && in_entry
                }
            };
        is_valid.then_some(rule)
    }

    fn finds_return(&self, machine: Machine) -> bool {
        match machine {
            // In a register: at the begin of `vfork()`.
            Machine::X86 => self.ra == -1 || self.ra == 0 && self.kind == Kind::Sp,
            Machine::Arm64 => self.ra <= 0,
        }
    }
}

/// A mistake in rules that were written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The header has another form, or is of rules for another architecture.
    Header,
    /// More rows or pages than a file may have.
    TooMany,
    /// Fewer words than the header says, or bytes behind the last one.
    Length,
    /// A rule without a meaning, or the first one is not for gaps.
    Rule,
    /// The index of a page's first row is out of order.
    Page,
    /// A row is out of order, does not begin its page, or has a rule that is missing.
    Row,
    /// Memory is missing.
    Memory,
}

/// The rules of a file, checked.
///
/// # Invariants
///
/// `words` has the form that the module's documentation says, with these numbers.
pub struct Rules {
    words: KVVec<u32>,
    /// Number of the first page.
    first: u32,
    /// Index of the first page in `words`.
    to_pages: usize,
    /// Index of the first row in `words`.
    to_rows: usize,
}

impl Rules {
    /// Maximum number of rows: 16 MiB.
    pub const ROWS_MAX: u32 = 4 << 20;

    /// Maximum number of pages: 4 GiB of a file.
    pub const PAGES_MAX: u32 = 1 << 16;

    /// Maximum number of bytes that are written.
    pub const BYTES_MAX: usize = 4
        * (HEADER + RULE * u16::MAX as usize + Self::PAGES_MAX as usize + Self::ROWS_MAX as usize);

    /// Rows that are checked between two calls of `between`.
    const BATCH: usize = 1 << 16;

    /// The rule for the instruction at this offset in the file. Any context: at most 17 steps.
    pub fn find(&self, offset: u64) -> Rule {
        self.nth(self.find_nth(offset))
    }

    /// The number of that rule, for [`Rules::nth`].
    #[inline(always)]
    pub(super) fn find_nth(&self, offset: u64) -> usize {
        self.row(offset).map_or(0, |row| row >> 16) as usize
    }

    /// The rule with this number. Any context.
    #[inline(always)]
    pub(super) fn nth(&self, nth: usize) -> Rule {
        self.rule(nth).unwrap_or(Rule::of(Kind::Gap))
    }

    /// The row that is in force at this offset.
    #[inline(always)]
    fn row(&self, offset: u64) -> Option<u32> {
        let page = (offset >> PAGE_BITS).checked_sub(self.first.into())? as usize;
        let pages = self.words.get(self.to_pages..self.to_rows)?;
        let begin = *pages.get(page)? as usize;
        let rows = self.words.get(self.to_rows..)?;
        let end = pages.get(page + 1).map_or(rows.len(), |&end| end as usize);
        let rows = rows.get(begin..end)?;
        let within = offset as u32 & 0xffff;
        let behind = rows.partition_point(|row| row & 0xffff <= within);
        rows.get(behind.checked_sub(1)?).copied()
    }

    #[inline(always)]
    fn rule(&self, nth: usize) -> Option<Rule> {
        let begin = HEADER + RULE * nth;
        let words = self.words.get(begin..begin + RULE)?;
        Rule::of_words(words.try_into().ok()?)
    }

    /// Bytes of memory that they take.
    pub fn size(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.words.len() - self.to_rows
    }
}

/// Rules that are being written, in pieces of any length. At most [`Rules::BYTES_MAX`] bytes, and
/// no more than the header announces, are kept.
pub struct Upload {
    words: KVVec<u32>,
    /// The begin of a word.
    rest: [u8; 4],
    rest_len: usize,
    /// `None` until its words are there.
    header: Option<Header>,
    machine: Machine,
    /// The first mistake: nothing is kept any more.
    fault: Option<Fault>,
}

impl Upload {
    /// Nothing of rules for this architecture.
    pub fn new(machine: Machine) -> Self {
        Self {
            words: KVVec::new(),
            rest: [0; 4],
            rest_len: 0,
            header: None,
            machine,
            fault: None,
        }
    }

    /// Appends bytes. Fails with the first mistake, from then on. Task context, may sleep.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let written = match self.fault {
            None => self.append(bytes),
            Some(fault) => Err(fault),
        };
        if let Err(fault) = written {
            self.fault = Some(fault);
            self.words = KVVec::new();
        }
        written
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        for &byte in bytes {
            if self.is_complete() {
                return Err(Fault::Length);
            }
            if let Some(place) = self.rest.get_mut(self.rest_len) {
                *place = byte;
            }
            self.rest_len += 1;
            if self.rest_len == self.rest.len() {
                self.rest_len = 0;
                self.push(u32::from_le_bytes(self.rest))?;
            }
        }
        Ok(())
    }

    fn push(&mut self, word: u32) -> Result<(), Fault> {
        self.words
            .push(word, GFP_KERNEL_ACCOUNT)
            .map_err(|_| Fault::Memory)?;
        if self.words.len() == HEADER {
            let header = Header::parse(&self.words, self.machine)?;
            self.words
                .reserve(header.words() - HEADER, GFP_KERNEL_ACCOUNT)
                .map_err(|_| Fault::Memory)?;
            self.header = Some(header);
        }
        Ok(())
    }

    /// Whether all words are there that the header announces.
    pub fn is_complete(&self) -> bool {
        let header = self.header.as_ref();
        header.is_some_and(|header| self.words.len() == header.words())
    }

    /// Checks the rules. Calls `between` now and then. Task context.
    pub fn finish(self, between: impl Fn()) -> Result<Rules, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let is_complete = self.is_complete();
        let Some(header) = self.header.filter(|_| is_complete) else {
            return Err(Fault::Length);
        };
        let rules = Rules {
            first: header.first,
            to_pages: header.to_pages(),
            to_rows: header.to_rows(),
            words: self.words,
        };
        // INVARIANT: This checks it.
        rules.check(self.machine, between)?;
        Ok(rules)
    }
}

/// The numbers in a header.
struct Header {
    rules: u32,
    rows: u32,
    first: u32,
    pages: u32,
}

impl Header {
    fn parse(words: &[u32], machine: Machine) -> Result<Self, Fault> {
        let (&[magic, of, rows, first, pages, zero], _) =
            words.split_first_chunk().ok_or(Fault::Length)?;
        let rules = of >> 16;
        if magic != MAGIC || of & 0xffff != u32::from(machine as u16) || zero != 0 || rules == 0 {
            return Err(Fault::Header);
        }
        if rows > Rules::ROWS_MAX || pages > Rules::PAGES_MAX || first > PAGES - pages {
            return Err(Fault::TooMany);
        }
        Ok(Self {
            rules,
            rows,
            first,
            pages,
        })
    }

    /// Index of the first page.
    fn to_pages(&self) -> usize {
        HEADER + RULE * self.rules as usize
    }

    /// Index of the first row.
    fn to_rows(&self) -> usize {
        self.to_pages() + self.pages as usize
    }

    /// Number of words.
    fn words(&self) -> usize {
        self.to_rows() + self.rows as usize
    }
}

impl Rules {
    /// Checks what [`Rules::find`] relies on: it cannot go wrong with other words, but it would be
    /// silent about them.
    fn check(&self, machine: Machine, between: impl Fn()) -> Result<(), Fault> {
        let rules = self.words.get(HEADER..self.to_pages).unwrap_or_default();
        for (nth, rule) in rules.chunks_exact(RULE).enumerate() {
            let rule = rule.try_into().map_err(|_| Fault::Rule)?;
            let rule = Rule::parse(rule, machine).ok_or(Fault::Rule)?;
            if nth == 0 && !matches!(rule.kind, Kind::Gap | Kind::Frame) {
                return Err(Fault::Rule);
            }
        }
        let rules = rules.len() / RULE;
        let pages = self.words.get(self.to_pages..self.to_rows);
        let pages = pages.unwrap_or_default();
        let rows = self.words.get(self.to_rows..).unwrap_or_default();
        if pages.first().is_some_and(|&first| first != 0) || pages.is_empty() && !rows.is_empty() {
            return Err(Fault::Page);
        }
        for (nth, &begin) in pages.iter().enumerate() {
            let end = pages.get(nth + 1).map_or(rows.len(), |&end| end as usize);
            let rows = rows.get(begin as usize..end).ok_or(Fault::Page)?;
            let mut least = 0;
            for (nth, row) in rows.iter().enumerate() {
                if nth % Self::BATCH == 0 {
                    between();
                }
                let offset = row & 0xffff;
                let in_order = if nth == 0 {
                    offset == 0
                } else {
                    offset >= least
                };
                if !in_order || (row >> 16) as usize >= rules {
                    return Err(Fault::Row);
                }
                least = offset + 1;
            }
        }
        Ok(())
    }
}
