// SPDX-License-Identifier: GPL-2.0

//! Text as bytes: the contents of files, and names of events and fields.

use core::fmt;

use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// The text of a file, or a piece of it, filled completely before it is read. Names and strings of
/// events need not be UTF-8 and are copied as they are.
#[derive(Debug)]
pub struct Text {
    bytes: KVVec<u8>,
    charged: bool,
}

impl Text {
    /// An empty text, charged to the program's memory control group like other memory that it
    /// causes to be allocated. Allocates nothing.
    pub fn new() -> Self {
        Self {
            bytes: KVVec::new(),
            charged: true,
        }
    }

    /// An empty, uncharged text, to be filled with a lock held: a program at the limit of its
    /// control group may have to wait for charged memory as long as the OOM killer has processes to
    /// kill. Allocates nothing.
    pub fn uncharged() -> Self {
        Self {
            bytes: KVVec::new(),
            charged: false,
        }
    }

    fn flags(&self) -> Flags {
        match self.charged {
            true => GFP_KERNEL_ACCOUNT,
            false => GFP_KERNEL,
        }
    }

    /// The text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends `bytes`. Fails with `ENOMEM`.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result {
        let flags = self.flags();
        Ok(self.bytes.extend_from_slice(bytes, flags)?)
    }

    /// Appends the output of `show`, then blanks up to `width` bytes: `%-*s`. Fails with `ENOMEM`.
    pub fn padded(&mut self, width: usize, show: impl FnOnce(&mut Self) -> Result) -> Result {
        let start = self.bytes.len();
        show(self)?;
        let blanks = width.saturating_sub(self.bytes.len() - start);
        let flags = self.flags();
        Ok(self.bytes.extend_with(blanks, b' ', flags)?)
    }

    /// Appends the output of `show`, padded with blanks on the left to `width` bytes: `%*s`. Fails
    /// with `ENOMEM`.
    pub fn right(&mut self, width: usize, show: impl FnOnce(&mut Self) -> Result) -> Result {
        let start = self.bytes.len();
        self.padded(width, show)?;
        let shown = &mut self.bytes[start..];
        let blanks = shown.iter().rev().take_while(|&&byte| byte == b' ').count();
        shown.rotate_right(blanks);
        Ok(())
    }

    /// Appends the output of `format_args!` for numbers and other values whose formatting does not
    /// fail. Fails with `ENOMEM`.
    pub fn format(&mut self, args: fmt::Arguments<'_>) -> Result {
        fmt::write(self, args).map_err(|fmt::Error| ENOMEM)
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsMut<KVVec<u8>> for Text {
    fn as_mut(&mut self) -> &mut KVVec<u8> {
        &mut self.bytes
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.bytes(s.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// `isspace()` of the kernel (`lib/ctype.c`): Latin-1, with the no-break space.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// `isalnum()` of the kernel (`lib/ctype.c`): with the letters of Latin-1.
pub fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7)
}

/// Returns `bytes` up to its first NUL.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Copies `bytes`, for a histogram or its state: like the histogram itself, the copy is not
/// charged, since it is made with the lock of commands held; see [`Text::uncharged`]. Fails with
/// `ENOMEM`.
pub fn copy(bytes: &[u8]) -> Result<KVec<u8>> {
    copy_with(bytes, GFP_KERNEL)
}

/// Copies `bytes`, charged to the program's memory control group. Called without locks. Fails with
/// `ENOMEM`.
pub fn copy_charged(bytes: &[u8]) -> Result<KVec<u8>> {
    copy_with(bytes, GFP_KERNEL_ACCOUNT)
}

fn copy_with(bytes: &[u8], flags: Flags) -> Result<KVec<u8>> {
    let mut copy = KVec::with_capacity(bytes.len(), flags)?;
    copy.extend_from_slice(bytes, flags)?;
    Ok(copy)
}
