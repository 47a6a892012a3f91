// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two recordings and their differences.

use rhist_core::compare::Difference;
use rhist_core::compare::Sample;
use rhist_core::question::Question;

/// Two recordings with their differences.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    /// Names of the files.
    pub names: [&'a str; 2],
    /// Questions of the recordings.
    pub questions: [&'a Question; 2],
    /// Series of the recordings.
    pub samples: [&'a Sample; 2],
    /// Differences, from [`rhist_core::compare::compare`].
    pub differences: &'a [Difference],
    /// Warnings about the comparison.
    pub notes: &'a [String],
}
