// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist`: questions about a running kernel, answered by histograms of its trace events.

use std::process::ExitCode;

fn main() -> ExitCode {
    rhist::main()
}
