// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures how long it takes to read the symbols of all programs and libraries of this machine.

use crate::machine;
use crate::machine::seconds;
use rhist_symbols::Error;
use rhist_symbols::Symbols;

/// Most CPU time for all files together.
const MOST_SECONDS: f64 = 5.0;

#[test]
#[ignore = "for a release build: see the suite rules of ../test"]
fn all_programs_of_this_machine() {
    let (mut files, mut image_bytes, mut parts, mut largest, mut shown) = (0, 0, 0, 0, 0);
    let (mut reading, mut showing) = (0.0, 0.0);
    for (path, image) in machine::files() {
        let begin = seconds();
        let read = Symbols::read(&image);
        reading += seconds() - begin;
        let symbols = match read {
            Ok(symbols) => symbols,
            // Scripts, archives, and object files.
            Err(Error::File(rhist_elf::Error::NotElf | rhist_elf::Error::Kind(_))) => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let count = symbols.iter().count();
        let begin = seconds();
        shown += symbols.iter().map(|(_, name)| name.shown().len()).sum::<usize>();
        showing += seconds() - begin;
        files += 1;
        image_bytes += image.len();
        parts += count;
        largest = largest.max(count);
    }
    println!(
        "{:.0} ms of a CPU for the symbols of {files} files of {} MB: {parts} named parts, {largest} in the largest file; \
         {:.0} ms to show all names, of {} kB",
        reading * 1e3,
        image_bytes >> 20,
        showing * 1e3,
        shown >> 10,
    );
    assert!(files > 100 && parts > 10_000, "{files} files, {parts} parts");
    assert!(reading + showing <= MOST_SECONDS, "more than {MOST_SECONDS} s");
}
