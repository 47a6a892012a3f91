// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is compared with: the run up to some moment.

use std::collections::HashMap;

/// What was measured until the baseline was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// How long that was, in seconds.
    pub seconds: f64,
    /// By the number of the key.
    pub keys: HashMap<u32, Base>,
}

/// What was measured of a key until the baseline was set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Base {
    /// Hits per second.
    pub rate: f64,
    /// The median of the first distribution.
    pub p50: Option<f64>,
    /// Its 99th percentile.
    pub p99: Option<f64>,
}

impl Baseline {
    /// What was measured of a key. Of one that was not there yet, nothing.
    pub fn get(&self, key: u32) -> Base {
        self.keys.get(&key).copied().unwrap_or_default()
    }
}
