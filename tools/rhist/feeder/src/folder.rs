// SPDX-License-Identifier: MIT OR Apache-2.0

//! The folder `user_objects/` of a tracing directory.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::path::PathBuf;

use crate::list;
use crate::list::Object;

/// Bytes of a table that are written at once.
const PIECE: usize = 1 << 16;

/// The folder, with its list open.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    list: File,
}

impl Folder {
    /// Opens the list of the folder at this path.
    ///
    /// # Errors
    ///
    /// `NotFound` if the module is not loaded, or too old; `PermissionDenied`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let list = File::open(path.join("list"))?;
        Ok(Self { path, list })
    }

    /// The objects now. After that, the list is readable for `poll()` when it has changed.
    pub fn objects(&mut self) -> io::Result<Vec<Object>> {
        let mut text = String::new();
        self.list.rewind()?;
        self.list.read_to_string(&mut text)?;
        Ok(list::parse(&text))
    }

    /// Path of the file of an object.
    pub fn image(&self, number: u32) -> PathBuf {
        self.path.join(number.to_string()).join("image")
    }

    /// Gives an object its table.
    ///
    /// # Errors
    ///
    /// `EEXIST` if it has one, `ENOSPC` if all tables would take more memory than the module
    /// allows, `EINVAL` if the module finds a mistake in it, `ENOENT` if the object is gone.
    pub fn write(&self, number: u32, table: &[u8]) -> io::Result<()> {
        let path = self.path.join(number.to_string()).join("rules");
        // Without O_CREAT: a missing file means a missing object.
        let mut file = File::options().write(true).open(path)?;
        table.chunks(PIECE).try_for_each(|piece| file.write_all(piece))
    }
}

/// Readable when the list has changed.
impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.list.as_fd()
    }
}
