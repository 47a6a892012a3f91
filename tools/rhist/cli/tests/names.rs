// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers have the names from the format of their event in all commands.

mod patience;

use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use patience::wait_until;
use rhist::commands::words;
use rhist::options::Common;
use rhist_core::cost;
use rhist_core::journal::Journals;
use rhist_core::recipe::NameKind;
use rhist_core::tracefs::Tracefs;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::mknodat;

/// Tracing directory with the events of the fixtures.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures");

/// Counts softirqs by number. The probe only serves to be written before the trigger.
const RECIPE: &str = r#"
summary = "softirqs"
about = "softirqs"
by = ["vec"]
probes = ["p:{group}/x f"]
count = [{ event = "irq:softirq_entry" }]
"#;

const HISTOGRAM: &str = "# event histogram
#
# trigger info: hist:keys=vec:vals=hitcount:sort=hitcount:size=2048 [active]
#

{ vec:          3 } hitcount:         10

Totals:
    Hits: 10
    Entries: 1
    Dropped: 0
";

/// Output on a tracing directory where softirq 3 happens. In the end the removal fails, because the
/// instance contains files that a kernel's would not.
fn rhist(line: &str) -> Output {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for folder in ["instances", "rhist/recipes"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    symlink(format!("{FIXTURES}/events"), at("events")).unwrap();
    fs::write(at("rhist/recipes/mine.toml"), RECIPE).unwrap();
    let given = RECIPE.replace("softirq_entry", "{event}") + "[[args]]\nname = 'event'\nhelp = 'which of irq'\n";
    fs::write(at("rhist/recipes/given.toml"), given).unwrap();
    // A writer to the FIFO waits for the reader, which comes when the instance has its files.
    mknodat(CWD, at("dynamic_events"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_rhist"))
        .args(line.split(' '))
        .env("RHIST_TRACEFS", root.path())
        .env("RHIST_RUN", at("run"))
        .env("XDG_CONFIG_HOME", root.path())
        .env_remove("COLUMNS")
        .env_remove("LINES")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let event = first_in(&at("instances")).join("events/irq/softirq_entry");
    fs::create_dir_all(&event).unwrap();
    fs::write(event.join("trigger"), "").unwrap();
    fs::write(event.join("hist"), HISTOGRAM).unwrap();
    let _reader = File::options()
        .read(true)
        .write(true)
        .open(at("dynamic_events"))
        .unwrap();
    child.wait_with_output().unwrap()
}

/// The first entry of a folder, as soon as one exists.
fn first_in(folder: &Path) -> PathBuf {
    let mut first = None;
    wait_until(|| {
        first = fs::read_dir(folder).unwrap().next();
        first.is_some()
    });
    first.unwrap().unwrap().path()
}

#[test]
fn live() {
    for line in [
        "mine -i 0.1 -d 0.3",
        "top -i 0.1 --format svg mine -d 0.3",
        "given softirq_entry -i 0.1 -d 0.3",
    ] {
        let shown = rhist(line);
        assert!(
            String::from_utf8_lossy(&shown.stdout).contains("NET_RX"),
            "{line}: {shown:?}"
        );
    }
}

#[test]
fn recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("softirqs.jsonl");
    let path = path.to_str().unwrap();
    let recorded = rhist(&format!("record {path} mine -i 0.1 -d 0.3"));
    let reported = Command::new(env!("CARGO_BIN_EXE_rhist"))
        .args(["report", path])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&reported.stdout).contains("NET_RX"),
        "{recorded:?} {reported:?}"
    );
}

/// Additional renames would be counted, too.
#[test]
fn counted_renames_are_recognized() {
    let root = tempfile::tempdir().unwrap();
    let event = root.path().join("events/task/task_rename");
    fs::create_dir_all(&event).unwrap();
    fs::write(event.join("format"), "").unwrap();
    let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
    let journals = Journals::at(root.path().join("none/run"));
    let common = Common {
        dry_run: true,
        ..Common::default()
    };
    for event in ["task:task_rename", "task/task_rename", "task_rename"] {
        let measurement = words::measurement(&["count", event].map(OsString::from), &common).unwrap();
        let plans = measurement.plans(&tracefs).unwrap();
        let error = cost::measure(&tracefs, &journals, &plans.best).unwrap_err();
        assert!(
            error.to_string().starts_with("renames are what is measured"),
            "{event}: {error}"
        );
    }
}

#[test]
fn an_event_needs_no_system() {
    let tracefs = Tracefs::at(FIXTURES.into()).unwrap();
    let common = Common {
        dry_run: true,
        ..Common::default()
    };
    for event in ["irq:softirq_entry", "irq/softirq_entry", "softirq_entry"] {
        let words = ["count", event, "--by", "vec"].map(OsString::from);
        let measurement = words::measurement(&words, &common).unwrap();
        let plans = measurement.plans(&tracefs).unwrap();
        let names = plans.best.names(&tracefs);
        assert_eq!(
            names.name(NameKind::Format, "vec", 3),
            Some("NET_RX".to_owned()),
            "{event}"
        );
    }
}
