// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs `rhist top` in a terminal provided by tmux. Without tmux, these tests are skipped with a
//! message.

mod patience;
#[path = "top/sample.rs"]
mod sample;
#[path = "top/tmux.rs"]
mod tmux;

use std::fs;
use std::process::Command;
use std::process::Stdio;

use insta::assert_snapshot;
use patience::wait_until;
use tmux::Tmux;

/// Starts `rhist top` in a shell, and waits until the recording has ended.
fn start(tmux: &Tmux, environment: &str) {
    let file = tmux.dir().join("recording.jsonl");
    sample::write(&file, 30);
    tmux.line(&format!(
        "{environment} {} top --replay {} -i 0.01",
        env!("CARGO_BIN_EXE_rhist"),
        file.display()
    ));
    tmux.wait_for("END OF RECORDING");
}

/// Checks that the terminal is as before.
fn assert_sane(tmux: &Tmux) {
    tmux.wait_until(|screen| screen.trim_end().ends_with('$'));
    assert_eq!(tmux.query("#{alternate_on} #{cursor_flag}"), "0 1");
    tmux.line("stty -a | grep -ow -e '-*echo' -e '-*icanon' -e '-*opost' | xargs echo =");
    tmux.wait_for("= opost icanon echo");
}

#[test]
fn keys_and_quit() {
    let Some(tmux) = Tmux::start("keys", 80, 24) else {
        return;
    };
    start(&tmux, "LC_ALL=C.UTF-8");
    assert_snapshot!("table", tmux.settled("table"));
    tmux.keys(&["/", "n", "o", "d", "Enter", "Enter"]);
    tmux.wait_for("values: few");
    assert_snapshot!("heat_map", tmux.settled("heat_map"));
    tmux.keys(&["Escape"]);
    tmux.wait_for("rate/s");
    tmux.keys(&["Escape"]);
    tmux.wait_for("postgres");
    tmux.keys(&["t"]);
    tmux.wait_for("Triggers");
    tmux.keys(&["?"]);
    tmux.wait_for("Keys");
    tmux.keys(&["q"]);
    assert_sane(&tmux);
}

#[test]
fn a_serial_console() {
    let Some(tmux) = Tmux::start("serial", 80, 24) else {
        return;
    };
    start(&tmux, "TERM=vt100");
    let screen = tmux.settled("serial");
    assert!(screen.is_ascii(), "{screen}");
    assert_snapshot!("serial", screen);
    assert_eq!(tmux.colors(), 0);
    tmux.keys(&["C-c"]);
    assert_sane(&tmux);
}

#[test]
fn a_size_that_changes() {
    let Some(tmux) = Tmux::start("size", 80, 24) else {
        return;
    };
    start(&tmux, "LC_ALL=C.UTF-8");
    tmux.resize(40, 10);
    tmux.wait_for("wait …");
    assert_snapshot!("small", tmux.settled("small"));
    tmux.resize(3, 2);
    tmux.resize(100, 30);
    tmux.wait_for("trend");
    tmux.keys(&["q"]);
    assert_sane(&tmux);
}

#[test]
fn signals_give_the_terminal_back() {
    let Some(tmux) = Tmux::start("signals", 80, 24) else {
        return;
    };
    for signal in ["TERM", "INT", "HUP"] {
        start(&tmux, "LC_ALL=C.UTF-8");
        tmux.kill(signal);
        assert_sane(&tmux);
        tmux.line("clear");
        tmux.wait_until(|screen| screen.trim() == "$");
    }
}

#[test]
fn stopped_and_continued() {
    let Some(tmux) = Tmux::start("stop", 80, 24) else {
        return;
    };
    start(&tmux, "LC_ALL=C.UTF-8");
    tmux.keys(&["C-z"]);
    assert_sane(&tmux);
    tmux.line("fg");
    tmux.wait_for("END OF RECORDING");
    tmux.keys(&["?"]);
    tmux.wait_for("Keys");
    tmux.keys(&["q"]);
    assert_sane(&tmux);
}

#[test]
fn a_terminal_that_goes_away() {
    let Some(tmux) = Tmux::start("away", 80, 24) else {
        return;
    };
    start(&tmux, "LC_ALL=C.UTF-8");
    let pid = tmux.pid().unwrap();
    tmux.run(&["kill-server"]);
    // Its new parent may not reap it, so a zombie has ended, too.
    wait_until(|| fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z ")));
}

#[test]
fn names_do_nothing_to_the_terminal() {
    let Some(tmux) = Tmux::start("names", 80, 24) else {
        return;
    };
    start(&tmux, "LC_ALL=C.UTF-8");
    tmux.wait_for(r"\u{1b}]2;owned\u{7}");
    assert_ne!(tmux.query("#{pane_title}"), "owned");
    tmux.keys(&["q"]);
    assert_sane(&tmux);
}

#[test]
fn a_recording_can_be_replayed() {
    let Some(tmux) = Tmux::start("record", 80, 24) else {
        return;
    };
    let file = tmux.dir().join("recording.jsonl");
    // The replay takes a minute, so it still runs at the end of this test.
    const INTERVALS: usize = 120;
    sample::write(&file, INTERVALS as u64);
    tmux.line(&format!(
        "LC_ALL=C {} top --replay {} -i 0.5",
        env!("CARGO_BIN_EXE_rhist"),
        file.display()
    ));
    tmux.wait_for("node");
    tmux.keys(&["w"]);
    tmux.wait_for("recording to rhist-2");
    let mut files = fs::read_dir(tmux.dir()).unwrap().map(|entry| entry.unwrap().path());
    let made = files.find(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("rhist-2"))
    });
    let made = made.unwrap();
    tmux.wait_until(|_| fs::read_to_string(&made).unwrap().lines().count() >= 2);
    tmux.keys(&["w"]);
    tmux.wait_for("recorded to");
    tmux.keys(&["q"]);
    assert_sane(&tmux);
    let output = rhist(&["top", "--batch", "--replay", made.to_str().unwrap()]);
    assert!((2..INTERVALS).contains(&output.lines().count()), "{output}");
}

fn rhist(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rhist"))
        .args(args)
        .env_remove("COLUMNS")
        .env_remove("LINES")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lines_of_json_without_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("recording.jsonl");
    sample::write(&file, 5);
    let output = rhist(&["top", "--replay", file.to_str().unwrap()]);
    let lines: Vec<serde_json::Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0]["name"], "runqlat");
}

#[test]
fn a_picture_of_the_last_screen() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("recording.jsonl");
    sample::write(&file, 5);
    let file = file.to_str().unwrap();
    let picture = rhist(&["top", "--replay", file, "--format", "svg"]);
    assert!(
        picture.starts_with("<svg") && picture.ends_with("</svg>\n"),
        "{picture}"
    );
    // 80 times 24 cells, and a margin.
    assert!(picture.contains("width=\"600\" height=\"408\""), "{picture}");
    assert!(picture.contains(">node</text>"), "{picture}");
    let output = Command::new(env!("CARGO_BIN_EXE_rhist"))
        .args(["top", "--replay", file, "--format", "svg"])
        .env("COLUMNS", "100")
        .env("LINES", "10")
        .output()
        .unwrap();
    let picture = String::from_utf8(output.stdout).unwrap();
    assert!(picture.contains("width=\"744\" height=\"184\""), "{picture}");
}

#[test]
fn names_are_those_of_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("recording.jsonl");
    sample::write_interrupts(&file, dir.path());
    let picture = rhist(&["top", "--replay", file.to_str().unwrap(), "--format", "svg"]);
    assert!(picture.contains("virtio0-input</text>"), "{picture}");
}

#[test]
fn what_is_wrong_gets_a_sentence() {
    for (args, sentence) in [
        (
            &["top", "runqlat", "--format", "folded"][..],
            "rhist: rhist top does not support --format folded, only text, json, svg",
        ),
        (&["top", "--replay", "Cargo.toml"], "rhist: Cargo.toml"),
        (&["top"], "rhist: missing recipe, count or between"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_rhist")).args(args).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with(sentence), "{error}");
        assert_eq!(output.status.code(), Some(2));
    }
}
