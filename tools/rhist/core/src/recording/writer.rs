// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writes recordings.

use std::fs::File;
use std::io;
use std::io::Write;
use std::path::Path;

use rustix::io::Errno;

use super::Error;
use super::encode;
use crate::lock::LockFile;
use crate::names::Names;
use crate::question::Interval;
use crate::question::Question;
use crate::table::Text;

/// A recording being written.
pub struct Writer {
    file: LockFile,
    /// As it is shown in errors.
    name: String,
    question: Question,
}

impl Writer {
    /// Begins a recording in a new or empty file, or in one that is not a regular file.
    ///
    /// Fails if the file has content, which may be a recording, or if another process records to
    /// it.
    pub fn create(path: &Path, question: &Question) -> Result<Self, Error> {
        let name = name(path);
        let error = |error: io::Error| Error(format!("{name}: {error}"));
        let file = File::options().append(true).create(true).open(path).map_err(error)?;
        let file = LockFile::new(file);
        let is_file = file.metadata().map_err(error)?.is_file();
        // Not all file systems have locks.
        if is_file && file.lock() == Err(Errno::WOULDBLOCK) {
            return Err(Error(format!("{name}: another process records to it")));
        }
        // Checked under the lock: a previous holder may have written.
        let metadata = file.metadata().map_err(error)?;
        if metadata.is_file() && metadata.len() > 0 {
            return Err(Error(format!("{name} exists: remove it, or record to another file")));
        }
        Ok(Writer {
            file,
            name,
            question: question.clone(),
        })
    }

    /// Replaces the question before anything is written: some of its details are known only once
    /// the measurement runs.
    pub fn set_question(&mut self, question: &Question) {
        self.question.clone_from(question);
    }

    /// Adds an interval with the names of its numbers, and waits until it is on the disk.
    ///
    /// On failure, truncates the file to the previous interval if possible.
    pub fn append(&mut self, interval: &Interval, names: &Names) -> Result<(), Error> {
        let error = |error: io::Error| Error(format!("{}: the interval is not recorded: {error}", self.name));
        let request = encode::request(&self.question, names, interval);
        let mut line = serde_json::to_vec(&request).map_err(|json| error(json.into()))?;
        line.push(b'\n');
        let before = self.file.metadata().map_err(error)?;
        let written = self.file.write_all(&line).and_then(|()| sync(&self.file));
        if written.is_err() && before.is_file() {
            // A partial line would make the next one unreadable.
            let _ = self.file.set_len(before.len());
        }
        written.map_err(error)
    }
}

/// Waits until the data are on the disk. Ignores the error for pipes and terminals.
fn sync(file: &File) -> io::Result<()> {
    match rustix::fs::fdatasync(file) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOTSUP | rustix::io::Errno::ROFS) => Ok(()),
        result => Ok(result?),
    }
}

/// Formats a path for messages.
pub fn name(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    Text::from(path.as_os_str().as_bytes()).to_string()
}
