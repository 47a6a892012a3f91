// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions in `.eh_frame`, and the rules at their instructions.

use crate::eh_frame::EhFrame;
use crate::entries;
use crate::entries::Entries;
use crate::error::Error;
use crate::limits::MOST_ROWS;
use crate::rule::Rule;
use crate::translation::Translation;
use gimli::BaseAddresses;
use gimli::CommonInformationEntry;
use gimli::EhFrameOffset;
use gimli::EndianSlice;
use gimli::FrameDescriptionEntry;
use gimli::LittleEndian;
use gimli::Register;
use gimli::RegisterRule;
use gimli::UnwindContext;
use gimli::UnwindContextStorage;
use gimli::UnwindSection;
use gimli::UnwindTableRow;
use gimli::Vendor;
use rhist_elf::Machine;
use std::ops::Range;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Cie<'a> = CommonInformationEntry<Bytes<'a>>;
type Fde<'a> = FrameDescriptionEntry<Bytes<'a>>;

/// How often the bytes of `.eh_frame` may be read again for initial instructions. These are read
/// for each function anew: in real files that is less than all other instructions, in hostile ones
/// it might be the square of them.
const READINGS: usize = 16;

/// Room for rules of registers, which are 97 at most on AArch64, and for states that are
/// remembered: in real files one or two.
struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = [(Register, RegisterRule<usize>); 128];
    type Stack = Box<[UnwindTableRow<usize, Self>; 8]>;
}

/// Why the rules of a function cannot be read.
pub(crate) enum Fault {
    /// Its entry is malformed, or says something that gimli does not know.
    Malformed,
    /// The file is not to be read further.
    File(Error),
}

impl From<gimli::Error> for Fault {
    fn from(_: gimli::Error) -> Self {
        Self::Malformed
    }
}

/// The entries for functions.
pub(crate) struct Frames<'a> {
    section: gimli::EhFrame<Bytes<'a>>,
    data: Bytes<'a>,
    is_open: bool,
    bases: BaseAddresses,
    translation: Translation<'a>,
    context: UnwindContext<usize, Storage>,
    /// The CIE that was read last, with its offset.
    cie: Option<(usize, gimli::Result<Cie<'a>>)>,
    /// Bytes of CIEs that may still be read.
    left: usize,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(machine: Machine, eh_frame: &EhFrame<'a>) -> Self {
        let mut section = gimli::EhFrame::new(eh_frame.data, LittleEndian);
        section.set_address_size(8);
        section.set_vendor(match machine {
            Machine::X86_64 => Vendor::Default,
            Machine::Aarch64 => Vendor::AArch64,
        });
        Self {
            section,
            data: EndianSlice::new(eh_frame.data, LittleEndian),
            is_open: eh_frame.is_open,
            bases: BaseAddresses::default().set_eh_frame(eh_frame.address),
            translation: Translation::new(machine, section),
            context: UnwindContext::new_in(),
            cie: None,
            left: READINGS.saturating_mul(eh_frame.data.len()),
        }
    }

    /// Offsets of the entries.
    pub(crate) fn entries(&self) -> Entries<'a> {
        Entries::new(self.data, self.is_open)
    }

    /// Addresses of the function whose entry is at an offset.
    pub(crate) fn addresses(&mut self, entry: usize) -> Result<Range<u64>, Fault> {
        let fde = self.fde(entry)?;
        let start = fde.initial_address();
        Ok(start..start.checked_add(fde.len()).ok_or(Fault::Malformed)?)
    }

    /// Appends the rules of a function: each with the address from which on it holds. They end
    /// before `end`; later ones are not even read.
    pub(crate) fn rules(&mut self, entry: usize, end: u64, rules: &mut Vec<(u64, Rule)>) -> Result<(), Fault> {
        let fde = self.fde(entry)?;
        if fde.is_signal_trampoline() {
            rules.push((fde.initial_address(), Rule::Sigreturn));
            return Ok(());
        }
        let ra = fde.cie().return_address_register();
        let mut table = fde.rows(&self.section, &self.bases, &mut self.context)?;
        while let Some(row) = table.next_row()? {
            if row.start_address() >= end {
                break;
            }
            let here = (row.start_address(), self.translation.rule(ra, row));
            match rules.last_mut() {
                // The last instruction advanced by nothing.
                Some(last) if last.0 == here.0 => *last = here,
                Some(last) if last.1 == here.1 => (),
                _ => rules.push(here),
            }
            if rules.len() > MOST_ROWS {
                return Err(Fault::File(Error::TooManyRows));
            }
        }
        Ok(())
    }

    fn fde(&mut self, entry: usize) -> Result<Fde<'a>, Fault> {
        let partial = self
            .section
            .partial_fde_from_offset(&self.bases, EhFrameOffset(entry))?;
        let offset = partial.cie_offset().0;
        self.left = self
            .left
            .checked_sub(entries::length(self.data, offset))
            .ok_or(Fault::File(Error::TooCostly))?;
        let (cie, section, bases) = (&mut self.cie, &self.section, &self.bases);
        if !matches!(cie, Some((last, _)) if *last == offset) {
            *cie = Some((offset, section.cie_from_offset(bases, EhFrameOffset(offset))));
        }
        let Some((_, Ok(cie))) = cie else {
            return Err(Fault::Malformed);
        };
        Ok(partial.parse(|_, _, _| Ok(cie.clone()))?)
    }
}
