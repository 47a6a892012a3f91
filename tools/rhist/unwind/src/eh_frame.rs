// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the unwind information of an ELF file.

use crate::error::Error;
use gimli::BaseAddresses;
use gimli::EhFrameHdr;
use object::elf;
use object::read::elf::ProgramHeader;
use object::read::elf::SectionHeader;
use rhist_elf::Image;
use rhist_elf::LE;

/// The contents of `.eh_frame`.
pub(crate) struct EhFrame<'a> {
    pub(crate) data: &'a [u8],
    /// Virtual address of the first byte.
    pub(crate) address: u64,
    /// Whether a length of 0 ends it, since the size of the section is unknown.
    pub(crate) is_open: bool,
}

impl<'a> EhFrame<'a> {
    /// Finds `.eh_frame` by its section; in a file without sections by the header that the unwinder
    /// of the program itself finds it by (`.eh_frame_hdr`).
    pub(crate) fn find(image: &Image<'a>) -> Result<Self, Error> {
        let found = match image.section(b".eh_frame\0") {
            Some(section) => Self {
                data: image
                    .contents(section)
                    .ok_or(rhist_elf::Error::Header("the section .eh_frame"))?,
                address: section.sh_addr(LE),
                is_open: false,
            },
            None => Self::by_hdr(image).ok_or(Error::NoFrames)?,
        };
        match found.data {
            [] => Err(Error::NoFrames),
            _ => Ok(found),
        }
    }

    fn by_hdr(image: &Image<'a>) -> Option<Self> {
        let segment = image
            .segments()
            .iter()
            .find(|segment| segment.p_type(LE) == elf::PT_GNU_EH_FRAME)?;
        let hdr = segment.data(LE, image.data()).ok()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(segment.p_vaddr(LE));
        let address = EhFrameHdr::new(hdr, gimli::LittleEndian)
            .parse(&bases, 8)
            .ok()?
            .eh_frame_ptr()
            .direct()
            .ok()?;
        let mapped = image
            .segments()
            .iter()
            .filter_map(|segment| image.mapped(segment))
            .find(|mapped| mapped.addresses.contains(&address))?;
        let size = mapped.addresses.end - address;
        let offset = mapped.offset + (address - mapped.addresses.start);
        Some(Self {
            data: image.bytes(offset, size)?,
            address,
            is_open: true,
        })
    }
}
