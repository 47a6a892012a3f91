// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files of `/proc` that contain names.

use std::collections::BTreeMap;

/// Names by their numbers.
pub(super) type Table = BTreeMap<i128, String>;

/// A file that contains names.
pub(super) struct ProcFile {
    pub name: &'static str,
    pub parse: fn(&str) -> Table,
}
