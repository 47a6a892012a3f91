// SPDX-License-Identifier: MIT OR Apache-2.0

//! The child process that reads the file of an object, and compiles its unwind information, or
//! reads the names of its functions.
//!
//! It opens the file, makes it its standard input, gives up all rights, and only then reads. It
//! writes a table to standard output, or in a sentence why it made none.

use std::ffi::CStr;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::process::ExitCode;

use crate::confinement::confine;
use crate::confinement::end_with_parent;
use crate::input::End;
use crate::input::Input;
use crate::namer;
use crate::namer::NAMES;

/// The name by which a program that is called so has to call [`main()`] at once.
pub const NAME: &str = "rhist-compiler";

/// The same, as the kernel shows it.
const COMM: &CStr = c"rhist-compiler";

/// The exit status if standard output has the reason why no table was made.
pub(crate) const FAILED: u8 = 1;

/// The exit status if the module does not hold the file now.
pub(crate) const NOT_HELD: u8 = 3;

/// Runs the child, with the words of its command line.
pub fn main(words: &[OsString]) -> ExitCode {
    let table = match words {
        [_, image] => rules(image),
        [_, names, image, device, inode, debug @ ..] if names == NAMES && debug.len() <= 1 => {
            namer::table(image, device, inode, debug.first().map(OsString::as_os_str))
        }
        _ => Err(End::failed("expected a file")),
    };
    let (bytes, status) = match table {
        Ok(table) => (table, 0),
        Err(End::NotHeld) => (Vec::new(), NOT_HELD),
        Err(End::Failed(why)) => (why.into_bytes(), FAILED),
    };
    let mut output = io::stdout().lock();
    // If that fails, the parent has gone, or sees that the table is too short.
    match output.write_all(&bytes).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::from(status),
        Err(_) => ExitCode::FAILURE,
    }
}

/// The rules of a file.
fn rules(image: &OsStr) -> Result<Vec<u8>, End> {
    let _ = rustix::thread::set_name(COMM);
    end_with_parent();
    let input = Input::open(image)?;
    confine().map_err(End::failed)?;
    let rules = rhist_unwind::compile(&input.read()?).map_err(End::failed)?;
    Ok(rules.to_bytes())
}
