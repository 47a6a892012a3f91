// SPDX-License-Identifier: MIT OR Apache-2.0

//! ELF files: their segments and sections.

use crate::error::Error;
use object::LittleEndian;
use object::elf;
use object::elf::FileHeader64;
use object::elf::ProgramHeader64;
use object::elf::SectionHeader64;
use object::read::elf::FileHeader;
use object::read::elf::ProgramHeader;
use object::read::elf::SectionHeader;
use std::ops::Range;

/// The byte order of all files that are read, which fields of their headers ask for.
pub const LE: LittleEndian = LittleEndian;
pub(crate) type Header = FileHeader64<LittleEndian>;
/// A program header.
pub type Segment = ProgramHeader64<LittleEndian>;
/// A section header.
pub type Section = SectionHeader64<LittleEndian>;

/// Architecture of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Also called amd64.
    X86_64,
    /// Also called arm64.
    Aarch64,
}

impl Machine {
    /// The number in the header of ELF files (`e_machine`).
    pub fn number(self) -> u16 {
        match self {
            Self::X86_64 => elf::EM_X86_64,
            Self::Aarch64 => elf::EM_AARCH64,
        }
    }
}

/// A segment that is mapped, or the part of it that is in the file.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// Virtual addresses.
    pub addresses: Range<u64>,
    /// Offset in the file of the first address.
    pub offset: u64,
}

/// The executable segments of a file.
#[derive(Clone, Debug)]
pub struct Code {
    /// By address.
    segments: Vec<Mapped>,
}

impl Code {
    /// The segment of an address. If segments overlap, the last one that begins before it counts.
    pub fn segment(&self, address: u64) -> Option<&Mapped> {
        let behind = self
            .segments
            .partition_point(|segment| segment.addresses.start <= address);
        let segment = self.segments[..behind].last()?;
        segment.addresses.contains(&address).then_some(segment)
    }
}

/// An ELF file for one of the architectures, which a program is loaded from, or which has the
/// debugging information of such a file.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    data: &'a [u8],
    header: &'a Header,
    segments: &'a [Segment],
    sections: &'a [Section],
    machine: Machine,
}

impl<'a> Image<'a> {
    /// Reads the headers. A file whose table of sections is not where the header says, has none.
    ///
    /// # Errors
    ///
    /// The file is not an ELF file of 64 bits for a supported architecture, or its table of
    /// segments is not in the file.
    pub fn parse(data: &'a [u8]) -> Result<Self, Error> {
        if !data.starts_with(&elf::ELFMAG) {
            return Err(Error::NotElf);
        }
        let is_ours = data.get(4..6) == Some(&[elf::ELFCLASS64, elf::ELFDATA2LSB]);
        if !is_ours {
            return Err(Error::Abi);
        }
        let header = Header::parse(data).map_err(|_| Error::Header("the ELF header"))?;
        let machine = match header.e_machine(LE) {
            elf::EM_X86_64 => Machine::X86_64,
            elf::EM_AARCH64 => Machine::Aarch64,
            other => return Err(Error::Machine(other)),
        };
        match header.e_type(LE) {
            elf::ET_EXEC | elf::ET_DYN => (),
            other => return Err(Error::Kind(other)),
        }
        let segments = header
            .program_headers(LE, data)
            .map_err(|_| Error::Header("the table of segments"))?;
        let sections = header.section_headers(LE, data).unwrap_or_default();
        Ok(Self {
            data,
            header,
            segments,
            sections,
            machine,
        })
    }

    /// The whole file.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The architecture of its code.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The virtual address where the kernel starts a program; `None` in most libraries.
    pub fn entry(&self) -> Option<u64> {
        Some(self.header.e_entry.get(LE)).filter(|&address| address != 0)
    }

    /// The program headers, in the order of the file.
    pub fn segments(&self) -> &'a [Segment] {
        self.segments
    }

    /// The section headers, in the order of the file; none if the file has been stripped of them.
    pub fn sections(&self) -> &'a [Section] {
        self.sections
    }

    /// The parts of executable segments that are in the file.
    pub fn code(&self) -> Code {
        let mut segments: Vec<Mapped> = self
            .segments
            .iter()
            .filter(|segment| segment.p_flags(LE) & elf::PF_X != 0)
            .filter_map(|segment| self.mapped(segment))
            .collect();
        segments.sort_by_key(|segment| segment.addresses.start);
        Code { segments }
    }

    /// Finds a section with contents by its name, which ends with a zero byte.
    pub fn section(&self, name: &[u8]) -> Option<&'a Section> {
        let names = self.header.shstrndx(LE, self.data).ok()?;
        let names = self.contents(self.sections.get(names as usize)?)?;
        // Looks at as many bytes as the name has: a hostile file may have many names without an
        // end.
        self.sections.iter().find(|section| {
            section.sh_type(LE) != elf::SHT_NOBITS
                && names
                    .get(section.sh_name(LE) as usize..)
                    .is_some_and(|rest| rest.starts_with(name))
        })
    }

    /// The contents of a section; `None` if they lie behind the file.
    pub fn contents(&self, section: &Section) -> Option<&'a [u8]> {
        section.data(LE, self.data).ok()
    }

    /// The part of a segment that is in the file; `None` for one that is not loaded, or of which
    /// nothing is in the file.
    pub fn mapped(&self, segment: &Segment) -> Option<Mapped> {
        if segment.p_type(LE) != elf::PT_LOAD {
            return None;
        }
        let (start, offset) = (segment.p_vaddr(LE), segment.p_offset(LE));
        let there = (self.data.len() as u64).checked_sub(offset)?;
        let end = start.checked_add(segment.p_filesz(LE).min(there))?;
        (start < end).then_some(Mapped {
            addresses: start..end,
            offset,
        })
    }

    /// A part of the file: `size` bytes from this offset on.
    pub fn bytes(&self, offset: u64, size: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.data.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    }
}
