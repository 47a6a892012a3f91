// SPDX-License-Identifier: MIT OR Apache-2.0

//! The child process that reads the file of an object, and compiles its unwind information.
//!
//! It opens the file, makes it its standard input, gives up all rights, and only then reads. It
//! writes the table to standard output, or in a sentence why it made none.

use std::ffi::CStr;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;

use crate::confinement::confine;
use crate::confinement::end_with_parent;

/// The name by which a program that is called so has to call [`main()`] at once.
pub const NAME: &str = "rhist-compiler";

/// The same, as the kernel shows it.
const COMM: &CStr = c"rhist-compiler";

/// The argument that stands for the code that the kernel maps into each program. Others are paths.
pub(crate) const VDSO: &str = "vdso";

/// Bytes of the largest file that is read, which leaves a quarter of the memory for its table.
const MOST_BYTES: u64 = 384 << 20;

/// The exit status if standard output has the reason why no table was made.
pub(crate) const FAILED: u8 = 1;

/// The exit status if the module does not hold the file now.
pub(crate) const NOT_HELD: u8 = 3;

/// The end without a table.
enum End {
    NotHeld,
    Failed(String),
}

/// Runs the child, with the words of its command line.
pub fn main(words: &[OsString]) -> ExitCode {
    let table = match words {
        [_, image] => table(image),
        _ => Err(End::Failed("expected a file".to_owned())),
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

fn table(image: &OsStr) -> Result<Vec<u8>, End> {
    let _ = rustix::thread::set_name(COMM);
    end_with_parent();
    let confined = || confine().map_err(|kept| End::Failed(kept.to_string()));
    let image = if image == VDSO {
        let image = vdso().map_err(|error| End::Failed(error.to_string()))?;
        confined()?;
        image
    } else {
        let size = open(image)?;
        confined()?;
        read(size)?
    };
    let rules = rhist_unwind::compile(&image).map_err(|error| End::Failed(error.to_string()))?;
    Ok(rules.to_bytes())
}

/// Makes a file standard input. Returns its size in bytes.
fn open(path: &OsStr) -> Result<usize, End> {
    let failed = |error: io::Error| End::Failed(format!("cannot be opened: {error}"));
    let file = File::open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESTALE) => End::NotHeld,
        _ => failed(error),
    })?;
    let size = file.metadata().map_err(failed)?.len();
    rustix::stdio::dup2_stdin(&file).map_err(|error| failed(error.into()))?;
    check_size(size)
}

fn check_size(bytes: u64) -> Result<usize, End> {
    match bytes <= MOST_BYTES {
        true => Ok(bytes as usize),
        false => Err(End::Failed(format!("larger than {} MiB", MOST_BYTES >> 20))),
    }
}

/// Reads standard input, which has about so many bytes.
fn read(size: usize) -> Result<Vec<u8>, End> {
    let mut image = Vec::new();
    image
        .try_reserve_exact(size + 1)
        .map_err(|_| End::Failed("too large for the memory of this process".to_owned()))?;
    let mut input = io::stdin().lock().take(MOST_BYTES + 1);
    let read = input.read_to_end(&mut image);
    read.map_err(|error| End::Failed(format!("cannot be read: {error}")))?;
    check_size(image.len() as u64)?;
    Ok(image)
}

/// The vDSO, which is the same in all processes of this architecture.
fn vdso() -> io::Result<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split_whitespace().next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = range.and_then(|(start, end)| Some(number(start)?..number(end)?));
    let range = range.ok_or_else(|| io::Error::other("this kernel maps no vDSO"))?;
    let mut image = vec![0; (range.end - range.start) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, range.start)?;
    Ok(image)
}
