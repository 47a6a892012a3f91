// SPDX-License-Identifier: MIT OR Apache-2.0

//! Baseline for comparisons: the run up to a moment.

use std::collections::HashMap;

/// Numbers of the run up to the moment when the baseline was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Length of the run up to then, in seconds.
    pub seconds: f64,
    /// Numbers by key.
    pub keys: HashMap<u32, Base>,
}

/// Numbers of a key in the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Base {
    /// Hits per second.
    pub rate: f64,
    /// Median of the first distribution.
    pub p50: Option<f64>,
    /// 99th percentile of the first distribution.
    pub p99: Option<f64>,
}

impl Baseline {
    /// Numbers of a key; empty for a key that appeared later.
    pub fn get(&self, key: u32) -> Base {
        self.keys.get(&key).copied().unwrap_or_default()
    }
}
