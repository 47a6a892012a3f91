// SPDX-License-Identifier: MIT OR Apache-2.0

//! The work of a child process that reads the names of the functions of a file.
//!
//! Before it opens the file, it writes the name of the file: its length in a byte, and the name.
//! The table or a sentence comes behind it.

use std::ffi::CStr;
use std::ffi::OsStr;
use std::fs::File;
use std::fs::Metadata;
use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rhist_symbols::Symbols;
use rhist_symbols::build_id;

use crate::base_name::base_name;
use crate::confinement::confine;
use crate::confinement::end_with_parent;
use crate::input;
use crate::input::End;
use crate::input::Input;
use crate::input::VDSO;
use crate::map_file::MEMORY;
use crate::map_file::MapFile;
use crate::name_table::NameTable;

/// The argument that asks for names.
pub const NAMES: &str = "names";

/// The name of the vDSO, as in `/proc/PID/maps`.
const VDSO_NAME: &[u8] = b"[vdso]";

/// The name of the process, as the kernel shows it.
const COMM: &CStr = c"rhist-names";

/// The table of names of a file, which has this device and inode, with those in a file of
/// debugging information; or, if the image is [`MEMORY`], of code without a file: then the others
/// are a process, the address of the code, and when the process began.
pub fn table(image: &OsStr, device: &OsStr, inode: &OsStr, debug: Option<&OsStr>) -> Result<Vec<u8>, End> {
    let _ = rustix::thread::set_name(COMM);
    end_with_parent();
    if image == MEMORY {
        say(b"").map_err(End::failed)?;
        return of_memory(device, inode, debug);
    }
    let name = match image == VDSO {
        true => VDSO_NAME.to_vec(),
        false => base_name(image, device, inode),
    };
    say(&name).map_err(End::failed)?;
    let input = Input::open(image)?;
    let debug = debug.map(|path| read_debug(path, input.size())).transpose()?;
    confine().map_err(End::failed)?;
    let image = input.read()?;
    let symbols = match debug {
        Some(debug) => Symbols::read_with_debug(&image, &debug),
        None => Symbols::read(&image),
    };
    let symbols = symbols.map_err(End::failed)?;
    let build_id = build_id(&image).map_err(End::failed)?;
    NameTable::write(&symbols, build_id.unwrap_or_default()).ok_or_else(too_many)
}

/// The table of names of code without a file, of a process that began at `start`, in the mapping
/// that begins at an address, in hexadecimal: from the process's perf map.
fn of_memory(process: &OsStr, begin: &OsStr, start: Option<&OsStr>) -> Result<Vec<u8>, End> {
    let process = process.to_str().and_then(|process| process.parse().ok());
    let begin = begin.to_str().and_then(|begin| u64::from_str_radix(begin, 16).ok());
    let start = start.and_then(|start| start.to_str()?.parse().ok());
    let (Some(process), Some(begin), Some(start)) = (process, begin, start) else {
        return Err(End::failed("expected a process, an address and a time"));
    };
    let file = MapFile::open(process, start, begin)?;
    confine().map_err(End::failed)?;
    let names = NameTable::write_mapping(&file.read()?, &file.mapping);
    names.ok_or_else(too_many)
}

/// The end because a table would be too large.
fn too_many() -> End {
    End::Failed(format!("more than {} MiB", NameTable::MOST_BYTES >> 20))
}

/// Writes the name of the file.
fn say(name: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    // At most `MOST_NAME`.
    output.write_all(&[name.len() as u8])?;
    output.write_all(name)?;
    output.flush()
}

/// Whether a file is one of debugging information that root has installed.
pub fn is_trusted(file: &Metadata) -> bool {
    file.is_file() && file.uid() == 0
}

/// Reads a file of debugging information, beside another one of so many bytes.
fn read_debug(path: &OsStr, beside: usize) -> Result<Vec<u8>, End> {
    let mut file = File::open(Path::new(path)).map_err(input::cannot_be_opened)?;
    let metadata = file.metadata().map_err(input::cannot_be_opened)?;
    if !is_trusted(&metadata) {
        return Err(End::failed("debugging information that is not root's"));
    }
    let size = metadata.len();
    input::check_size(size.saturating_add(beside as u64))?;
    input::read(&mut file, size as usize)
}
