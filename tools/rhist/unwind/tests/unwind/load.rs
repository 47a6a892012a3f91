// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures the compilation of all programs and libraries of this machine.

use crate::machine;
use crate::machine::seconds;
use crate::table::Table;
use rhist_unwind::Error;
use rhist_unwind::compile;

/// Most CPU time for all files together.
const MOST_SECONDS: f64 = 5.0;

#[test]
#[ignore = "for a release build: see the suite rules of ../test"]
fn all_programs_of_this_machine() {
    let (mut files, mut image_bytes, mut rows, mut bytes, mut largest) = (0, 0, 0, 0, 0);
    let (mut functions, mut spent) = ([0; 3], 0.0);
    for (path, image) in machine::files() {
        let begin = seconds();
        let compiled = compile(&image);
        spent += seconds() - begin;
        let rules = match compiled {
            Ok(rules) => rules,
            // Scripts, archives, object files, and libraries without code.
            Err(Error::File(rhist_elf::Error::NotElf | rhist_elf::Error::Kind(_)) | Error::NoFrames) => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let table = rules.to_bytes();
        Table::read(&table).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        files += 1;
        image_bytes += image.len();
        rows += rules.row_count();
        bytes += table.len();
        largest = largest.max(rules.row_count());
        for (sum, count) in functions
            .iter_mut()
            .zip([rules.malformed, rules.outside, rules.overlapping])
        {
            *sum += count;
        }
    }
    let [malformed, outside, overlapping] = functions;
    println!(
        "{:.0} ms of a CPU for {files} files of {} MB: {rows} rows, {largest} in the largest table, {} kB of tables; \
         functions: {malformed} malformed, {outside} outside, {overlapping} overlapping",
        spent * 1e3,
        image_bytes >> 20,
        bytes >> 10,
    );
    assert!(files > 100 && rows > 100_000, "{files} files, {rows} rows");
    assert!(spent <= MOST_SECONDS, "more than {MOST_SECONDS} s");
}
