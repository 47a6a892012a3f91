// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks that output errors, and arguments that are not UTF-8, do not cause a panic.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

/// The command on a tracing directory that does not allow instances.
fn rhist(run: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhist"));
    command
        .env(
            "RHIST_TRACEFS",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures"),
        )
        .env("RHIST_RUN", run);
    command
}

#[test]
fn full_disks() {
    let run = tempfile::tempdir().unwrap();
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (line, code) in [
        ("clean", 1),
        ("nosuch", 2),
        ("ls events", 1),
        ("count sched_swich", 2),
        ("runqlat --slower x", 2),
    ] {
        let mut command = rhist(run.path());
        command.args(line.split(' ')).stdout(full()).stderr(full());
        assert_eq!(command.status().unwrap().code(), Some(code), "{line}");
    }
}

#[test]
fn a_file_whose_name_is_no_text() {
    let run = tempfile::tempdir().unwrap();
    let file = run.path().join(OsStr::from_bytes(b"\xff"));
    let mut command = rhist(run.path());
    command
        .arg("record")
        .arg(file)
        .args(["count", "sched_switch", "-d", "0.1"]);
    let output = command.output().unwrap();
    // The folder for instances is missing.
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("cannot make an instance"),
        "{output:?}"
    );
}
