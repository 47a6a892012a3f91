// SPDX-License-Identifier: MIT OR Apache-2.0

//! Build ids: bytes that the linker made of the contents of a file.

use crate::error::Error;
use crate::image::Header;
use crate::image::Image;
use crate::image::LE;
use object::elf;
use object::read::elf::NoteIterator;
use object::read::elf::ProgramHeader;
use object::read::elf::SectionHeader;

/// Reads the build id of an ELF file of any architecture that is supported: bytes that the linker
/// made of the contents, by default 20. `None` if it lacks one.
///
/// It is looked for in segments, as the kernel and the loader have nothing else, and then in
/// sections: in a file with nothing but debugging information, segments may lead elsewhere.
///
/// # Errors
///
/// The file is not such a program or library.
pub fn build_id(image: &[u8]) -> Result<Option<&[u8]>, Error> {
    let image = Image::parse(image)?;
    // Segments and sections may overlap; a hostile file may have many with the same notes.
    let mut left = 2 * image.data().len() as u64;
    let segments = image.segments().iter();
    let of_segments = segments
        .filter(|segment| segment.p_type(LE) == elf::PT_NOTE)
        .map(|segment| (segment.p_filesz(LE), segment.notes(LE, image.data())));
    let sections = image.sections().iter();
    let of_sections = sections
        .filter(|section| section.sh_type(LE) == elf::SHT_NOTE)
        .map(|section| (section.sh_size(LE), section.notes(LE, image.data())));
    Ok(find(of_segments, &mut left).or_else(|| find(of_sections, &mut left)))
}

type Notes<'a> = NoteIterator<'a, Header>;

/// The first build id in these parts of a file, each with its size, of which `left` bytes may still
/// be read.
fn find<'a>(
    parts: impl Iterator<Item = (u64, object::read::Result<Option<Notes<'a>>>)>,
    left: &mut u64,
) -> Option<&'a [u8]> {
    for (size, notes) in parts {
        *left = left.checked_sub(size)?;
        if let Ok(Some(notes)) = notes
            && let Some(id) = first(notes)
        {
            return Some(id);
        }
    }
    None
}

/// The first build id that is not empty.
fn first<'a>(mut notes: Notes<'a>) -> Option<&'a [u8]> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(LE) == elf::NT_GNU_BUILD_ID && !note.desc().is_empty() {
            return Some(note.desc());
        }
    }
    None
}
