// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs the command: destinations of its output, and recipes of a user.

mod patience;
mod receiver;

use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use rhist_core::names::Names;
use rhist_core::question::Cost;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::recording::Writer;
use rhist_core::table::Keys;
use rhist_core::table::Row;
use rhist_core::table::Table;
use rhist_core::table::Time;
use rustix::fs::OFlags;
use rustix::fs::fcntl_setfl;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

use patience::wait_until;
use receiver::receiver;

/// `rhist` with the events of the fixtures, and with recipes in `home`.
fn rhist(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhist"));
    command
        .env(
            "RHIST_TRACEFS",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/fixtures"),
        )
        .env("RHIST_RUN", home.join("run"))
        .env("XDG_CONFIG_HOME", home);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A recording with this number of hits per second.
fn record(path: &Path, seconds: u64, hits: u64) {
    let question = Question {
        name: "waits".to_owned(),
        noun: "waits".to_owned(),
        cpus: 1,
        ..Question::default()
    };
    let mut writer = Writer::create(path, &question).unwrap();
    for second in 1..=seconds {
        let time = |second: u64| Time {
            realtime_ns: second * 1_000_000_000,
            monotonic_ns: second * 1_000_000_000,
            boot_id: None,
        };
        let row = Row {
            keys: Keys::new(),
            hits,
            values: Vec::new(),
            worst: None,
            begin: None,
            last_ns: None,
        };
        let interval = Interval {
            from: time(second),
            to: time(second + 1),
            delta: Table {
                rows: vec![row],
                ..Table::default()
            },
            events: hits,
            rejected: None,
            cost: Cost::default(),
            ..Interval::default()
        };
        writer.append(&interval, &Names::elsewhere()).unwrap();
    }
}

/// Command lines that print something, in a folder with the recording `a`.
const PRINTING: [&str; 21] = [
    "--help",
    "--version",
    "runqlat --help",
    "ls recipes",
    "ls recipes --format json",
    "ls events",
    "show sched_switch",
    "count sched_switch --dry-run",
    "doctor",
    "clean",
    "",
    "report a",
    "report a -i",
    "report a --format json",
    "report a --format folded",
    "report a --format svg",
    "diff a a",
    "diff a a --format json",
    "diff a a --format folded",
    "diff a a --format svg",
    "top --replay a --batch",
];

#[test]
fn a_full_disk_is_told() {
    let home = tempfile::tempdir().unwrap();
    record(&home.path().join("a"), 9, 3);
    for line in PRINTING {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = rhist(home.path());
        let output = command
            .args(line.split_whitespace())
            .current_dir(home.path())
            .stdout(full);
        let output = output.output().unwrap();
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (Some(1), "rhist: No space left on device (os error 28)\n".to_owned()),
            "{line}"
        );
    }
}

#[test]
fn a_reader_may_go_away() {
    let home = tempfile::tempdir().unwrap();
    record(&home.path().join("a"), 9, 3);
    for line in PRINTING {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = rhist(home.path());
        let output = command
            .args(line.split_whitespace())
            .current_dir(home.path())
            .stdout(writer);
        let output = output.output().unwrap();
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (Some(0), String::new()),
            "{line}"
        );
    }
}

#[test]
fn a_dry_run_removes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let journal = home.path().join("run/1_2.journal");
    fs::create_dir(home.path().join("run")).unwrap();
    fs::write(&journal, "command runqlat\n").unwrap();
    let clean = |options: &[&str]| {
        let output = rhist(home.path()).arg("clean").args(options).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(clean(&["--dry-run"]), "would remove rhist-1_2: runqlat\n");
    assert!(journal.exists());
    assert_eq!(clean(&[]), "removed rhist-1_2: runqlat\n");
    assert_eq!(clean(&[]), "nothing to remove\n");
    assert!(!journal.exists());
}

#[test]
fn an_empty_variable_is_none() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("1_2.journal"), "command runqlat\n").unwrap();
    for (line, variable) in [("ls runs", "RHIST_RUN"), ("ls events", "RHIST_TRACEFS")] {
        let mut command = rhist(home.path());
        command.args(line.split(' ')).env(variable, "").current_dir(home.path());
        let output = command.output().unwrap();
        assert!(
            !String::from_utf8_lossy(&output.stdout).contains("rhist-1_2 "),
            "{output:?}"
        );
        assert!(!stderr(&output).contains("No such file"), "{output:?}");
    }
}

#[test]
fn a_variable_that_names_no_tracing_directory() {
    let home = tempfile::tempdir().unwrap();
    for (path, why) in [
        ("/nowhere", "not a tracing directory"),
        ("/etc/passwd", "Not a directory (os error 20)"),
    ] {
        let mut command = rhist(home.path());
        let output = command
            .args(["ls", "events"])
            .env("RHIST_TRACEFS", path)
            .output()
            .unwrap();
        assert_eq!(stderr(&output), format!("rhist: RHIST_TRACEFS={path}: {why}\n"));
    }
}

#[test]
fn units_need_rhist() {
    let home = tempfile::tempdir().unwrap();
    let line = "between sched_switch sched_switch --on prev_pid=next_pid --unit s --dry-run";
    let output = rhist(home.path()).args(line.split(' ')).output().unwrap();
    let expected = "C's histograms have no buckets in another unit: load rhist";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

/// A full pipe, with its end for reading.
fn full_pipe() -> (io::PipeReader, io::PipeWriter) {
    let (reader, mut writer) = io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while io::Write::write(&mut writer, &[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer)
}

/// A field of `/proc/PID/status`.
fn status_of(child: &Child, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let lines = status.lines().filter_map(|line| line.split_once(":\t"));
    let mut values = lines.filter(|(name, _)| *name == field);
    values.next().unwrap_or_default().1.to_owned()
}

/// Sends a signal, and waits until it has come: a second one at the same time would be none.
fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
    wait_until(|| {
        let pending = u64::from_str_radix(&status_of(child, "ShdPnd"), 16);
        // A process that has ended has none.
        pending.unwrap_or(0) >> (signal.as_raw() - 1) & 1 == 0
    });
}

/// Each signal ends a run whose output is full, on stdout and on stderr.
#[test]
fn a_signal_ends_what_nobody_reads() {
    let home = tempfile::tempdir().unwrap();
    record(&home.path().join("a"), 9, 3);
    fs::create_dir(home.path().join("etc")).unwrap();
    let (_reader, writer) = full_pipe();
    let start = |line: &str, is_stderr: bool| {
        let rhist = rhist(home.path());
        let mut command = Command::new("env");
        command
            // It is ignored where these tests run behind nohup.
            .arg("--default-signal=HUP")
            .arg(rhist.get_program())
            .args(line.split(' '))
            .envs(rhist.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(home.path())
            .env("RHIST_STATE", home.path());
        let writer = writer.try_clone().unwrap();
        match is_stderr {
            true => command.stderr(writer).stdout(Stdio::null()),
            false => command.stdout(writer).stderr(Stdio::null()),
        };
        let child = command.spawn().unwrap();
        // The second thread is there when signals are caught.
        wait_until(|| status_of(&child, "Threads").parse::<u32>().unwrap() > 1);
        child
    };
    let top = "top --batch --replay a";
    let cases = [
        (start(top, false), Signal::TERM, 1),
        (start(top, false), Signal::HUP, 1),
        (start(top, false), Signal::INT, 2),
        (start("push --replay a --to http://127.0.0.1:1", true), Signal::TERM, 1),
        (start("serve --config etc --listen 127.0.0.1:0", true), Signal::TERM, 1),
    ];
    // After one Ctrl-C, it may wait for a pager.
    let mut patient = start(top, false);
    send(&patient, Signal::INT);
    for (child, signal, times) in &cases {
        (0..*times).for_each(|_| send(child, *signal));
    }
    for (mut child, signal, _) in cases {
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
    }
    assert!(patient.try_wait().unwrap().is_none());
    patient.kill().unwrap();
    patient.wait().unwrap();
}

/// Objects of a dead run: the journal, and the instance.
fn leave(home: &Path, id: &str, lines: &str) {
    for folder in ["run", "tracing/instances", "tracing/events"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::write(
        home.join(format!("run/{id}.journal")),
        format!("command runqlat\n{lines}"),
    )
    .unwrap();
    fs::create_dir(home.join(format!("tracing/instances/rhist-{id}"))).unwrap();
}

/// `rhist` with the tracing directory that [`leave()`] makes.
fn status(home: &Path, options: &[&str]) -> String {
    let mut command = rhist(home);
    let output = command
        .env("RHIST_TRACEFS", home.join("tracing"))
        .args(options)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_state_tells_what_is_whose() {
    let home = tempfile::tempdir().unwrap();
    leave(home.path(), "1_2", "");
    leave(home.path(), "1_3", "kept\n");
    leave(home.path(), "1_4", "");
    let instances = home.path().join("tracing/instances");
    // Not empty, so it cannot be removed.
    fs::write(instances.join("rhist-1_4/x"), "").unwrap();
    for name in ["mine", "rhist", "rhist-mine", "rhist-7_7"] {
        fs::create_dir(instances.join(name)).unwrap();
    }
    let text = status(home.path(), &["--dry-run"]);
    for line in [
        "  rhist-1_2: rhist runqlat (its process is gone; the next rhist removes it)\n",
        "  rhist-1_3: rhist runqlat (kept; rhist clean removes it)\n",
        "Instances of others: mine, rhist, rhist-7_7, rhist-mine\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(instances.join("rhist-1_2").exists());
    let text = status(home.path(), &[]);
    for line in [
        "removed the objects of a run that had died: rhist runqlat\n",
        "  rhist-1_3: rhist runqlat (kept; rhist clean removes it)\n",
        "  rhist-1_4: rhist runqlat (its process is gone, and it could not be removed: Directory not empty (os error 39))\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!instances.join("rhist-1_2").exists() && !text.contains("rhist-1_2"));
    // With the module loaded, its own instance is not listed.
    fs::write(home.path().join("tracing/hist_stats"), "").unwrap();
    assert!(status(home.path(), &[]).contains("Instances of others: mine, rhist-7_7, rhist-mine\n"));
}

/// Tries each command with each common option: unsupported ones are rejected before anything is
/// done.
#[test]
fn options_that_a_command_does_not_know() {
    const OPTIONS: [&str; 7] = [
        "--dry-run",
        "--keep",
        "--quiet",
        "--format=text",
        "--format=json",
        "--format=folded",
        "--format=svg",
    ];
    const REFUSALS: [&str; 6] = [
        "has no option",
        "does not support --format",
        "expected a recipe, count or between before --",
        "unexpected argument",
        "invalid value",
        "cannot be used with",
    ];
    let home = tempfile::tempdir().unwrap();
    record(&home.path().join("a"), 2, 3);
    fs::create_dir(home.path().join("etc")).unwrap();
    let (url, _requests) = receiver("200 OK");
    let push = format!("push --to {url} --replay a");
    // Words of each command, and its supported options.
    for (line, known) in [
        ("", "dry-run"),
        ("count sched_switch", "dry-run keep quiet text json folded svg"),
        (
            "between sched_waking sched_switch --on pid=next_pid",
            "dry-run keep quiet text json folded svg",
        ),
        ("runqlat", "dry-run keep quiet text json folded svg"),
        ("top runqlat", "dry-run keep quiet text json svg"),
        ("top --batch --replay a", "quiet text json svg"),
        ("record new runqlat", "dry-run keep quiet"),
        ("push runqlat", "dry-run keep quiet"),
        (&push, "quiet"),
        ("report a", "quiet text json folded svg"),
        ("diff a a", "quiet text json folded svg"),
        ("ls recipes", "text json"),
        ("ls runs", "text json"),
        ("ls events", "text json"),
        ("show sched_switch", "text json"),
        ("clean", "dry-run"),
        ("doctor", "text json"),
        ("check", ""),
        ("serve --config etc --listen 127.0.0.1:0", ""),
        ("unwind --once", ""),
        ("exec true", "dry-run"),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        for option in OPTIONS {
            let name = option.trim_start_matches("--").trim_start_matches("format=");
            let is_known = known.split(' ').any(|known| known == name);
            let before = [&[option][..], &words].concat();
            let within = match words.split_first() {
                Some((first, rest)) => [&[*first, option][..], rest].concat(),
                None => vec![option],
            };
            // After exec, the option would belong to the program.
            let behind = [&words[..], &[option]].concat();
            let mut lines = vec![before, within];
            if words.first().is_none_or(|first| *first != "exec") {
                lines.push(behind);
            }
            for words in lines {
                // Supported options that start a measurement would fail later, if at all.
                if is_known && !words.iter().any(|word| ["--dry-run", "--replay"].contains(word)) && has_to_run(line) {
                    continue;
                }
                let output = rhist(home.path())
                    .args(&words)
                    .current_dir(home.path())
                    .output()
                    .unwrap();
                let said = stderr(&output);
                // The others are statuses of the program that exec runs.
                let status = if line.starts_with("exec") { 125 } else { 2 };
                let is_refused =
                    output.status.code() == Some(status) && REFUSALS.iter().any(|sentence| said.contains(sentence));
                assert_eq!(is_refused, !is_known, "{words:?}: {said}");
                if !is_known {
                    assert!(output.stdout.is_empty(), "{words:?}: {output:?}");
                }
            }
        }
    }
    assert!(!home.path().join("new").exists());
}

/// Returns whether a valid command line measures.
fn has_to_run(line: &str) -> bool {
    ["count", "between", "runqlat", "top runqlat", "record", "push runqlat"]
        .iter()
        .any(|measures| line.starts_with(measures))
}

#[test]
fn help_of_top_has_its_keys() {
    let home = tempfile::tempdir().unwrap();
    let output = rhist(home.path()).args(["top", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for key in ["Space", "Enter", "/"] {
        let begin = format!("\n  {key} ");
        assert!(help.contains(&begin), "{help}");
    }
}

#[test]
fn one_is_not_many() {
    let home = tempfile::tempdir().unwrap();
    record(&home.path().join("one"), 1, 1);
    for (format, expected) in [("text", "1 wait in 1 s"), ("svg", "1 wait")] {
        let mut command = rhist(home.path());
        let output = command
            .args(["report", "one", "--format", format])
            .current_dir(home.path());
        let output = String::from_utf8(output.output().unwrap().stdout).unwrap();
        assert!(output.contains(expected), "{output}");
        assert!(!output.contains("1 waits") && !output.contains("1 CPUs"), "{output}");
    }
}

#[test]
fn a_replay_tells_what_is_cut_off() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a");
    record(&path, 3, 3);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let mut command = rhist(home.path());
    let output = command
        .args(["top", "--batch", "--replay", "a"])
        .current_dir(home.path());
    let output = output.output().unwrap();
    assert_eq!(stderr(&output), "rhist: line 3 of a is cut off, and left out\n");
    assert!(output.status.success());
}

#[test]
fn recipes_of_a_user() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("rhist/recipes");
    fs::create_dir_all(&folder).unwrap();
    let begin = "summary = \"a\\u001b[2Jb\"\nabout = \"c\\u202ed\"\n";
    let count = "[[count]]\nevent = \"sched:sched_switch\"\n";
    let variant = "[variants.pid]\nsummary = \"v\"\n";
    fs::write(folder.join("mine.toml"), format!("{begin}{count}")).unwrap();
    fs::write(folder.join("option.toml"), format!("{begin}{count}{variant}")).unwrap();
    fs::write(folder.join("top.toml"), format!("{begin}{count}")).unwrap();
    fs::write(folder.join("broken.toml"), "a = \"\u{1b}[2J\u{202e}\"").unwrap();
    let run = |line: &str, shell: &str| {
        let mut command = rhist(home.path());
        if !shell.is_empty() {
            command.env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "2");
        }
        let output = command.args(line.split(' ')).output().unwrap();
        let [shown, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8(text.clone()).unwrap());
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{line}: {shown:?}");
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{line}: {said:?}");
        (output.status.code(), shown, said)
    };

    let (code, shown, _) = run("mine --help", "");
    assert_eq!(code, Some(0));
    assert!(
        shown.contains("a\\u{1b}[2Jb") && shown.contains("c\\u{202e}d"),
        "{shown}"
    );
    let (code, shown, said) = run("ls recipes", "");
    assert_eq!(code, Some(0));
    assert!(shown.contains("\nmine "), "{shown}");
    assert!(said.contains("top is a command of rhist"), "{said}");
    assert!(said.contains("pid is an option of all recipes"), "{said}");
    for (line, sentence) in [
        ("option --dry-run", "pid is an option of all recipes"),
        ("broken --dry-run", "invalid basic string"),
        ("record file top", "top is a command of rhist"),
        ("record file record", "record does not measure"),
        ("report mine\u{1b}[2J", "No such file"),
    ] {
        let (code, _, said) = run(line, "");
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains(sentence), "{line}: {said}");
        assert!(!said.contains("did you mean"), "{line}: {said}");
    }
    // Completion ignores them, and completes the others.
    for shell in ["bash", "zsh", "fish"] {
        let (code, shown, said) = run("-- rhist mine --dr", shell);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{shown}");
        assert!(shown.contains("--dry-run"), "{shell}: {shown}");
    }
}
