// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of functions.

use crate::demangle::demangle;
use crate::limits::MOST_RAW;
use crate::shown::Escaper;
use crate::shown::Shown;

/// The name of a function, as it is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    pub(crate) raw: &'a [u8],
    pub(crate) is_plt: bool,
}

impl<'a> Name<'a> {
    /// A name that another process has read. `None` if no file may have it: it is empty, has more
    /// than [`MOST_RAW`] bytes, or a zero byte.
    pub fn new(raw: &'a [u8], is_plt: bool) -> Option<Self> {
        let is_name = !raw.is_empty() && raw.len() <= MOST_RAW && !raw.contains(&0);
        is_name.then_some(Self { raw, is_plt })
    }

    /// The bytes in the file: mangled, with the version of the symbol if they have one
    /// (`memcpy@@GLIBC_2.14`), at most [`MOST_RAW`]. They may contain anything but
    /// zero, and are not empty.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether this is the entry of the procedure linkage table for a function of that name, which
    /// may be in another file.
    pub fn is_plt(&self) -> bool {
        self.is_plt
    }

    /// The name that people know: demangled if it is one of Rust or C++, without the hash of Rust
    /// and without the version of a symbol; `name@plt` in the procedure linkage table.
    pub fn shown(&self) -> Shown {
        let suffix = if self.is_plt { "@plt" } else { "" };
        let name = without_version(self.raw);
        if let Some(escaper) = demangle(name) {
            return escaper.finish(suffix);
        }
        let mut escaper = Escaper::default();
        // An error means that it is full, and finish() says so.
        let _ = escaper.bytes(name);
        escaper.finish(suffix)
    }
}

/// Cuts off the version that linkers append to names in `.symtab`: `@VERSION` or `@@VERSION`.
pub(crate) fn without_version(name: &[u8]) -> &[u8] {
    let Some(at) = name.iter().rposition(|&byte| byte == b'@') else {
        return name;
    };
    let version = &name[at + 1..];
    let is_version = !version.is_empty()
        && version
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    let name_end = if at > 0 && name[at - 1] == b'@' { at - 1 } else { at };
    if is_version && name_end > 0 {
        &name[..name_end]
    } else {
        name
    }
}
