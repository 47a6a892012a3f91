// SPDX-License-Identifier: MIT OR Apache-2.0

//! Code without unwind information.

use object::read::elf::SectionHeader;
use rhist_elf::Image;
use rhist_elf::LE;
use rhist_elf::Machine;
use std::ops::Range;

/// `push` of x86-64, with four bytes.
const PUSH: u8 = 0x68;

/// Whether code without unwind information has frame pointers: Go's has, and Go's linker writes
/// such sections.
pub(crate) fn keeps_frame_pointers(image: &Image<'_>) -> bool {
    [&b".gopclntab\0"[..], b".note.go.buildid\0"]
        .iter()
        .any(|name| image.section(name).is_some())
}

/// The sections of code by which a program calls functions of other files, each with its place in
/// the file, and whether its entries push a word at byte 6. Some linkers write no unwind
/// information for them.
pub(crate) fn linkage_tables(image: &Image<'_>) -> Vec<(Range<u64>, bool)> {
    if image.machine() != Machine::X86_64 {
        return Vec::new();
    }
    [&b".plt\0"[..], b".plt.got\0", b".plt.sec\0", b".iplt\0"]
        .iter()
        .filter_map(|name| image.section(name))
        .filter_map(|section| {
            let (offset, size) = section.file_range(LE)?;
            let data = image.bytes(offset, size)?;
            // The first entry differs.
            let pushes = data.len() > 32 && data[16..].chunks_exact(16).all(|entry| entry[6] == PUSH);
            Some((offset..offset + size, pushes))
        })
        .collect()
}

/// Whether a system call is at an offset in the file.
pub(crate) fn is_system_call(image: &Image<'_>, offset: u64) -> bool {
    let instruction: &[u8] = match image.machine() {
        Machine::X86_64 => &[0x0f, 0x05],
        Machine::Aarch64 => &[0x01, 0x00, 0x00, 0xd4],
    };
    image.bytes(offset, instruction.len() as u64) == Some(instruction)
}
