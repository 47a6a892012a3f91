// SPDX-License-Identifier: MIT OR Apache-2.0

//! The file that a child process reads.

use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::fs::FileExt;

/// The argument that stands for the code that the kernel maps into each program. Others are paths.
pub const VDSO: &str = "vdso";

/// Bytes of the largest file that is read, which leaves a quarter of the memory for its table.
pub const MOST_BYTES: u64 = 384 << 20;

/// The end without a table.
#[derive(Debug)]
pub enum End {
    /// The module does not hold the file now.
    NotHeld,
    /// The reason.
    Failed(String),
}

impl End {
    /// With the text of an error as the reason.
    pub fn failed(why: impl ToString) -> Self {
        Self::Failed(why.to_string())
    }
}

/// A file, before it is read.
#[derive(Debug)]
pub enum Input {
    /// Standard input, with about so many bytes.
    Stdin(usize),
    /// The vDSO, which is trusted, and was read.
    Vdso(Vec<u8>),
}

impl Input {
    /// Opens a file as standard input, or reads the vDSO. To be called before the process gives up
    /// its rights.
    pub fn open(image: &OsStr) -> Result<Self, End> {
        match image == VDSO {
            true => vdso().map(Self::Vdso).map_err(End::failed),
            false => open(image).map(Self::Stdin),
        }
    }

    /// Bytes of the file, which a hostile file system may change.
    pub fn size(&self) -> usize {
        match self {
            Self::Stdin(size) => *size,
            Self::Vdso(image) => image.len(),
        }
    }

    /// Reads the file. To be called only after the process has given up its rights.
    pub fn read(self) -> Result<Vec<u8>, End> {
        match self {
            Self::Stdin(size) => read(&mut io::stdin().lock(), size),
            Self::Vdso(image) => Ok(image),
        }
    }
}

/// Makes a file standard input. Returns its size in bytes.
fn open(path: &OsStr) -> Result<usize, End> {
    let file = File::open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESTALE) => End::NotHeld,
        _ => cannot_be_opened(error),
    })?;
    let size = file.metadata().map_err(cannot_be_opened)?.len();
    rustix::stdio::dup2_stdin(&file).map_err(|error| cannot_be_opened(error.into()))?;
    check_size(size)
}

/// The end because a file cannot be opened.
pub fn cannot_be_opened(error: io::Error) -> End {
    End::Failed(format!("cannot be opened: {error}"))
}

/// The size of a file in bytes, if that may be read.
pub fn check_size(bytes: u64) -> Result<usize, End> {
    match bytes <= MOST_BYTES {
        true => Ok(bytes as usize),
        false => Err(End::Failed(format!("larger than {} MiB", MOST_BYTES >> 20))),
    }
}

/// Reads a file that has about so many bytes.
pub fn read(file: &mut impl Read, size: usize) -> Result<Vec<u8>, End> {
    let mut image = Vec::new();
    image
        .try_reserve_exact(size + 1)
        .map_err(|_| End::failed("too large for the memory of this process"))?;
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut image);
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
