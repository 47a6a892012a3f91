// SPDX-License-Identifier: MIT OR Apache-2.0

//! From a row of DWARF's call frame information to a rule.

use crate::rule::Rule;
use gimli::AArch64;
use gimli::CfaRule;
use gimli::EhFrame;
use gimli::EndianSlice;
use gimli::LittleEndian;
use gimli::Reader;
use gimli::Register;
use gimli::RegisterRule;
use gimli::UnwindContextStorage;
use gimli::UnwindExpression;
use gimli::UnwindTableRow;
use gimli::X86_64;
use gimli::constants;
use rhist_elf::Machine;

/// The expression for the frame address that linkers write for entries of the procedure linkage
/// table of x86-64: `breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus`. Entries that begin
/// with `endbr64` have `lit9` or `lit10`.
const PLT: [u8; 11] = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
/// Where the number is in it that differs.
const FROM: usize = 6;

/// `deref, plus_uconst 8`.
const DEREF_PLUS_8: [u8; 3] = [0x06, 0x23, 8];

/// Registers of an architecture, by their numbers in DWARF.
pub(crate) struct Translation<'a> {
    machine: Machine,
    section: EhFrame<EndianSlice<'a, LittleEndian>>,
    sp: Register,
    fp: Register,
    /// The column of the return address.
    ra: Register,
}

/// Where the caller's value of a register is.
enum Saved {
    /// Nowhere: the register has it.
    Not,
    /// At the frame address plus as many words, which are fewer than 0.
    At(i16),
    /// At the address that the frame pointer has.
    AtFp,
}

impl<'a> Translation<'a> {
    pub(crate) fn new(machine: Machine, section: EhFrame<EndianSlice<'a, LittleEndian>>) -> Self {
        let (sp, fp, ra) = match machine {
            Machine::X86_64 => (X86_64::RSP, X86_64::RBP, X86_64::RA),
            Machine::Aarch64 => (AArch64::SP, AArch64::X29, AArch64::X30),
        };
        Self {
            machine,
            section,
            sp,
            fp,
            ra,
        }
    }

    /// Translates a row of a function whose return address is in the column `ra`.
    pub(crate) fn rule<S>(&self, ra: Register, row: &UnwindTableRow<usize, S>) -> Rule
    where
        S: UnwindContextStorage<usize>,
    {
        if ra != self.ra {
            return Rule::Other;
        }
        // A rule of its own for the stack pointer would be another one than the frame address.
        if !matches!(row.register(self.sp), None | Some(RegisterRule::ValOffset(0))) {
            return Rule::Other;
        }
        if row.register(ra) == Some(RegisterRule::Undefined) {
            return Rule::End;
        }
        self.frame(row).unwrap_or(Rule::Other)
    }

    fn frame<S>(&self, row: &UnwindTableRow<usize, S>) -> Option<Rule>
    where
        S: UnwindContextStorage<usize>,
    {
        let is_in_rdi =
            self.machine == Machine::X86_64 && row.register(self.ra) == Some(RegisterRule::Register(X86_64::RDI));
        let ra = match self.machine {
            // glibc's `vfork()`, whose child overwrites the stack.
            Machine::X86_64 if is_in_rdi => 0,
            Machine::X86_64 => match self.saved(row.register(self.ra))? {
                // A call pushes it.
                Saved::At(-1) => -1,
                _ => return None,
            },
            Machine::Aarch64 => match self.saved(row.register(self.ra))? {
                Saved::At(words) => words,
                Saved::Not => 0,
                Saved::AtFp => return None,
            },
        };
        let fp = self.saved(row.register(self.fp))?;
        match (row.cfa(), fp) {
            (CfaRule::RegisterAndOffset { register, offset }, fp) => {
                let cfa = i32::try_from(*offset).ok()?;
                let fp = match fp {
                    Saved::Not => 0,
                    Saved::At(words) => words,
                    Saved::AtFp => return None,
                };
                match *register {
                    register if register == self.sp => Some(Rule::Sp { cfa, fp, ra }),
                    register if register == self.fp && !is_in_rdi => Some(Rule::Fp { cfa, fp, ra }),
                    _ => None,
                }
            }
            (CfaRule::Expression(_), _) if is_in_rdi => None,
            (CfaRule::Expression(expression), Saved::AtFp) => {
                let mut code = self.code(*expression)?;
                let cfa = i32::try_from(self.above(self.fp, &mut code)?).ok()?;
                let is_deref = code.slice() == [constants::DW_OP_deref.0];
                is_deref.then_some(Rule::Deref { cfa, ra })
            }
            (CfaRule::Expression(expression), fp) => {
                let fp = match fp {
                    Saved::At(words) => words,
                    _ => 0,
                };
                let mut code = self.code(*expression)?;
                let plt = plt(code.slice()).filter(|_| self.machine == Machine::X86_64);
                if let Some(from) = plt {
                    return Some(Rule::Plt { from, fp, ra });
                }
                let cfa = i32::try_from(self.above(self.sp, &mut code)?).ok()?;
                let is_deref = cfa >= 0 && code.slice() == DEREF_PLUS_8;
                is_deref.then_some(Rule::DerefSp { cfa, fp, ra })
            }
        }
    }

    /// Where a register is saved, if a rule can say so. By the architectures' conventions, a
    /// register without a rule has the caller's value.
    fn saved(&self, rule: Option<RegisterRule<usize>>) -> Option<Saved> {
        match rule {
            None | Some(RegisterRule::SameValue) => Some(Saved::Not),
            Some(RegisterRule::Offset(bytes)) if bytes < 0 && bytes % 8 == 0 => {
                i16::try_from(bytes / 8).ok().map(Saved::At)
            }
            Some(RegisterRule::Expression(expression)) => {
                let mut code = self.code(expression)?;
                (self.above(self.fp, &mut code)? == 0 && code.is_empty()).then_some(Saved::AtFp)
            }
            _ => None,
        }
    }

    fn code(&self, expression: UnwindExpression<usize>) -> Option<EndianSlice<'a, LittleEndian>> {
        Some(expression.get(&self.section).ok()?.0)
    }

    /// Reads the operation that pushes a register plus a number, which is returned.
    fn above(&self, register: Register, code: &mut EndianSlice<'a, LittleEndian>) -> Option<i64> {
        let operation = u16::from(code.read_u8().ok()?);
        (operation == u16::from(constants::DW_OP_breg0.0) + register.0).then(|| code.read_sleb128().ok())?
    }
}

/// The byte of an entry of the procedure linkage table behind its push, by the expression for the
/// frame address.
fn plt(code: &[u8]) -> Option<u8> {
    let from = code.get(FROM)?.checked_sub(constants::DW_OP_lit0.0)?;
    let mut expected = PLT;
    expected[FROM] = code[FROM];
    ((1..16).contains(&from) && code == expected).then_some(from)
}
