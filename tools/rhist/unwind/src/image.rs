// SPDX-License-Identifier: MIT OR Apache-2.0

//! ELF files: their segments, their unwind information, and their build id.

use crate::error::Error;
use gimli::BaseAddresses;
use gimli::EhFrameHdr;
use object::LittleEndian;
use object::elf;
use object::elf::FileHeader64;
use object::elf::ProgramHeader64;
use object::elf::SectionHeader64;
use object::read::elf::FileHeader;
use object::read::elf::ProgramHeader;
use object::read::elf::SectionHeader;
use std::ops::Range;

const LE: LittleEndian = LittleEndian;
/// `push` of x86-64, with four bytes.
const PUSH: u8 = 0x68;
type Header = FileHeader64<LittleEndian>;
type Segment = ProgramHeader64<LittleEndian>;
type Section = SectionHeader64<LittleEndian>;

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
pub(crate) struct Mapped {
    /// Virtual addresses.
    pub(crate) addresses: Range<u64>,
    /// Offset in the file of the first address.
    pub(crate) offset: u64,
}

/// The contents of `.eh_frame`.
pub(crate) struct EhFrame<'a> {
    pub(crate) data: &'a [u8],
    /// Virtual address of the first byte.
    pub(crate) address: u64,
    /// Whether a length of 0 ends it, since the size of the section is unknown.
    pub(crate) is_open: bool,
}

/// An ELF file for one of the architectures, which a program is loaded from.
pub(crate) struct Image<'a> {
    data: &'a [u8],
    header: &'a Header,
    segments: &'a [Segment],
    pub(crate) machine: Machine,
}

impl<'a> Image<'a> {
    pub(crate) fn parse(data: &'a [u8]) -> Result<Self, Error> {
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
        Ok(Self {
            data,
            header,
            segments,
            machine,
        })
    }

    /// The executable segments, by address.
    pub(crate) fn code(&self) -> Vec<Mapped> {
        let mut code: Vec<Mapped> = self
            .segments
            .iter()
            .filter(|segment| segment.p_flags(LE) & elf::PF_X != 0)
            .filter_map(|segment| self.mapped(segment))
            .collect();
        code.sort_by_key(|segment| segment.addresses.start);
        code
    }

    /// Finds `.eh_frame` by its section; in a file without sections by the header that the unwinder
    /// of the program itself finds it by (`.eh_frame_hdr`).
    pub(crate) fn eh_frame(&self) -> Result<EhFrame<'a>, Error> {
        let found = match self.section(b".eh_frame\0") {
            Some(section) => EhFrame {
                data: section
                    .data(LE, self.data)
                    .map_err(|_| Error::Header("the section .eh_frame"))?,
                address: section.sh_addr(LE),
                is_open: false,
            },
            None => self.eh_frame_of_hdr().ok_or(Error::NoFrames)?,
        };
        match found.data {
            [] => Err(Error::NoFrames),
            _ => Ok(found),
        }
    }

    /// Whether code without unwind information has frame pointers: Go's has, and Go's linker writes
    /// such sections.
    pub(crate) fn keeps_frame_pointers(&self) -> bool {
        [&b".gopclntab\0"[..], b".note.go.buildid\0"]
            .iter()
            .any(|name| self.section(name).is_some())
    }

    /// The sections of code by which a program calls functions of other files, each with its place
    /// in the file, and whether its entries push a word at byte 6. Some linkers write no unwind
    /// information for them.
    pub(crate) fn linkage_tables(&self) -> Vec<(Range<u64>, bool)> {
        [&b".plt\0"[..], b".plt.got\0", b".plt.sec\0", b".iplt\0"]
            .iter()
            .filter_map(|name| self.section(name))
            .filter_map(|section| {
                let (offset, size) = section.file_range(LE)?;
                let data = self.bytes(offset, size)?;
                // The first entry differs.
                let pushes = data.len() > 32 && data[16..].chunks_exact(16).all(|entry| entry[6] == PUSH);
                Some((offset..offset + size, pushes))
            })
            .filter(|_| self.machine == Machine::X86_64)
            .collect()
    }

    /// Whether a system call is at an offset in the file.
    pub(crate) fn is_system_call(&self, offset: u64) -> bool {
        let instruction: &[u8] = match self.machine {
            Machine::X86_64 => &[0x0f, 0x05],
            Machine::Aarch64 => &[0x01, 0x00, 0x00, 0xd4],
        };
        self.bytes(offset, instruction.len() as u64) == Some(instruction)
    }

    fn eh_frame_of_hdr(&self) -> Option<EhFrame<'a>> {
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.p_type(LE) == elf::PT_GNU_EH_FRAME)?;
        let hdr = segment.data(LE, self.data).ok()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(segment.p_vaddr(LE));
        let address = EhFrameHdr::new(hdr, gimli::LittleEndian)
            .parse(&bases, 8)
            .ok()?
            .eh_frame_ptr()
            .direct()
            .ok()?;
        let mapped = self
            .segments
            .iter()
            .filter_map(|segment| self.mapped(segment))
            .find(|mapped| mapped.addresses.contains(&address))?;
        let size = mapped.addresses.end - address;
        let offset = mapped.offset + (address - mapped.addresses.start);
        Some(EhFrame {
            data: self.bytes(offset, size)?,
            address,
            is_open: true,
        })
    }

    /// Finds a section with contents by its name, which ends with a zero byte.
    fn section(&self, name: &[u8]) -> Option<&'a Section> {
        let sections = self.header.section_headers(LE, self.data).ok()?;
        let names = self.header.shstrndx(LE, self.data).ok()?;
        let names = sections.get(names as usize)?.data(LE, self.data).ok()?;
        // Looks at as many bytes as the name has: a hostile file may have many names without an
        // end.
        sections.iter().find(|section| {
            section.sh_type(LE) != elf::SHT_NOBITS
                && names
                    .get(section.sh_name(LE) as usize..)
                    .is_some_and(|rest| rest.starts_with(name))
        })
    }

    /// The part of a segment that is in the file; `None` for one that is not loaded, or of which
    /// nothing is in the file.
    fn mapped(&self, segment: &Segment) -> Option<Mapped> {
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

    fn bytes(&self, offset: u64, size: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.data.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    }
}

/// Reads the build id of an ELF file of any architecture that is supported: bytes that the linker
/// made of the contents, by default 20. `None` if it lacks one.
///
/// # Errors
///
/// The file is not such a program or library.
pub fn build_id(image: &[u8]) -> Result<Option<&[u8]>, Error> {
    let image = Image::parse(image)?;
    // Segments may overlap; a hostile file may have many with the same notes.
    let mut left = image.data.len() as u64;
    for segment in image.segments {
        if segment.p_type(LE) != elf::PT_NOTE {
            continue;
        }
        left = match left.checked_sub(segment.p_filesz(LE)) {
            Some(left) => left,
            None => break,
        };
        let Ok(Some(mut notes)) = segment.notes(LE, image.data) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(LE) == elf::NT_GNU_BUILD_ID && !note.desc().is_empty() {
                return Ok(Some(note.desc()));
            }
        }
    }
    Ok(None)
}
