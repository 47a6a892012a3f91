// SPDX-License-Identifier: MIT OR Apache-2.0

//! The tracing directory, either the kernel's or rhist's.

mod constant;
pub mod error_log;
pub mod events;
#[cfg(test)]
pub(crate) mod fixture;
pub mod format;
mod symbols;

use std::fmt;
use std::fs;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use error_log::LogEntry;
pub use symbols::Symbols;

/// Mount points of tracefs; older programs use the second one.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Variable that names a folder instead of a mount point, for tests.
pub const ROOT_VARIABLE: &str = "RHIST_TRACEFS";

/// Implementation of the histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The module rhist.
    #[default]
    Rhist,
    /// The kernel's own hist triggers, written in C.
    C,
}

/// A tracing directory: of the kernel, of rhist, or of an instance in one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracefs {
    /// The kernel's tracing directory. Instances, probes and synthetic events are the same in both.
    kernel: PathBuf,
    /// Directory in which histograms are created.
    dir: PathBuf,
    backend: Backend,
}

/// Error of writing a file of tracefs.
#[derive(Debug)]
pub struct WriteError {
    /// Path of the file.
    pub path: PathBuf,
    /// Text that was written.
    pub text: String,
    /// Error code of the kernel.
    pub error: io::Error,
    /// Last entry of `error_log`, if it is about this command.
    pub log: Option<LogEntry>,
}

impl Tracefs {
    /// Finds the tracing directory of this machine: rhist's if the module is loaded, otherwise the
    /// kernel's.
    ///
    /// # Errors
    ///
    /// `NotFound` if tracefs is not mounted, `PermissionDenied` if it is not readable.
    pub fn find() -> io::Result<Self> {
        let root = match std::env::var_os(ROOT_VARIABLE).filter(|root| !root.is_empty()) {
            Some(root) => PathBuf::from(root),
            None => PLACES
                .into_iter()
                .map(PathBuf::from)
                .find(|place| place.join("events").exists())
                .ok_or_else(|| match fs::read_dir(PLACES[0]) {
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
                    _ => io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted"),
                })?,
        };
        Self::at(root)
    }

    /// Opens the tracing directory at a path.
    ///
    /// # Errors
    ///
    /// `NotFound` if the path is not a tracing directory.
    pub fn at(root: PathBuf) -> io::Result<Self> {
        fs::metadata(root.join("events")).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(error.kind(), "not a tracing directory"),
            _ => error,
        })?;
        let rhist = root.join("rhist");
        // Under rhist exec, rhist's directory is mounted over the kernel's.
        let (dir, backend) = if root.join("hist_stats").exists() {
            (root.clone(), Backend::Rhist)
        } else if rhist.join("hist_stats").exists() {
            (rhist, Backend::Rhist)
        } else {
            (root.clone(), Backend::C)
        };
        Ok(Self {
            kernel: root,
            dir,
            backend,
        })
    }

    /// The same directory, but with the kernel's own histograms.
    pub fn with_c(self) -> Self {
        Self {
            dir: self.kernel.clone(),
            backend: Backend::C,
            ..self
        }
    }

    /// Implementation of the histograms in its files.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Directory in which histograms are created.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The kernel's own directory.
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// Tracing directory of an instance, which may not exist yet.
    pub fn instance(&self, name: &str) -> Self {
        let place = |dir: &Path| dir.join("instances").join(name);
        Self {
            kernel: place(&self.kernel),
            dir: place(&self.dir),
            backend: self.backend,
        }
    }

    /// Returns whether histograms can have stacks of programs.
    pub fn takes_programs(&self) -> bool {
        self.backend == Backend::Rhist && self.user_objects().is_dir()
    }

    /// Folder of rhist's top directory with the files that programs have mapped. Only root may
    /// look into it.
    pub fn user_objects(&self) -> PathBuf {
        self.dir.join("user_objects")
    }

    /// Folder of an event.
    pub fn event(&self, system: &str, event: &str) -> PathBuf {
        self.dir.join("events").join(system).join(event)
    }

    /// The text of `hist_stats`; empty without rhist. It has the names of tasks, which may be any
    /// bytes.
    pub fn hist_stats(&self) -> String {
        let text = fs::read(self.dir.join("hist_stats")).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Truncates a file of this directory.
    pub fn truncate(&self, file: &str) -> Result<(), WriteError> {
        let path = self.dir.join(file);
        let result = OpenOptions::new().write(true).truncate(true).open(&path);
        result.map(drop).map_err(|error| WriteError {
            path,
            text: String::new(),
            error,
            log: None,
        })
    }

    /// Appends a command to a file of this directory, in one write.
    pub fn write(&self, file: impl AsRef<Path>, text: &str) -> Result<(), WriteError> {
        let path = self.dir.join(file);
        // Without O_CREAT: a missing file means a missing event.
        let result = OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        result.map_err(|error| {
            let log = fs::read(self.dir.join("error_log")).unwrap_or_default();
            // An entry about a filter contains only the filter.
            let log = LogEntry::last(&String::from_utf8_lossy(&log))
                .filter(|entry| !entry.command.trim().is_empty() && text.contains(entry.command.trim()));
            WriteError {
                path,
                text: text.to_owned(),
                error,
                log,
            }
        })
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path.display(), self.text, self.error)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
