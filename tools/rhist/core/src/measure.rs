// SPDX-License-Identifier: MIT OR Apache-2.0

//! Clock for measurements in tests.

use rustix::time::ClockId;
use rustix::time::clock_gettime;

/// Milliseconds of CPU time of this thread. Other load on the machine hardly changes it.
pub(crate) fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
