// SPDX-License-Identifier: MIT OR Apache-2.0

//! For measurements among the tests.

use rustix::time::ClockId;
use rustix::time::clock_gettime;

/// Milliseconds of a CPU that this thread has used: others on the machine change little of it.
pub(crate) fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
