// SPDX-License-Identifier: MIT OR Apache-2.0

//! Time limit of tests for events that must happen.

use std::thread;
use std::time::Duration;
use std::time::Instant;

/// Far more than anything takes, also on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it is so.
pub fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "waited too long");
        thread::sleep(Duration::from_millis(20));
    }
}
