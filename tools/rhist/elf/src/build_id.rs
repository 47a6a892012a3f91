// SPDX-License-Identifier: MIT OR Apache-2.0

//! Build ids: bytes that the linker made of the contents of a file.

use crate::error::Error;
use crate::image::Image;
use crate::image::LE;
use object::elf;
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
    for segment in image.segments() {
        if segment.p_type(LE) != elf::PT_NOTE {
            continue;
        }
        left = match left.checked_sub(segment.p_filesz(LE)) {
            Some(left) => left,
            None => break,
        };
        if let Ok(Some(notes)) = segment.notes(LE, image.data())
            && let Some(id) = first(notes)
        {
            return Ok(Some(id));
        }
    }
    for section in image.sections() {
        if section.sh_type(LE) != elf::SHT_NOTE {
            continue;
        }
        left = match left.checked_sub(section.sh_size(LE)) {
            Some(left) => left,
            None => break,
        };
        if let Ok(Some(notes)) = section.notes(LE, image.data())
            && let Some(id) = first(notes)
        {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The first build id that is not empty.
fn first<'a>(mut notes: object::read::elf::NoteIterator<'a, crate::image::Header>) -> Option<&'a [u8]> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(LE) == elf::NT_GNU_BUILD_ID && !note.desc().is_empty() {
            return Some(note.desc());
        }
    }
    None
}
