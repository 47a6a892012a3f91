// SPDX-License-Identifier: MIT OR Apache-2.0

//! A terminal: a window of tmux with a shell in it.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use tempfile::TempDir;

use crate::patience::PATIENCE;

/// A tmux server with one window, which ends on drop.
pub struct Tmux {
    dir: TempDir,
}

impl Tmux {
    /// Starts the server. Without tmux, prints a message and returns `None`.
    pub fn start(test: &str, width: u16, height: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("SKIP {test}: tmux is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let tmux = Tmux { dir };
        let (width, height) = (width.to_string(), height.to_string());
        let shell = "env -u LC_ALL -u LANG -u NO_COLOR PS1='$ ' sh -i";
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            shell,
        ]);
        tmux.wait_for("$");
        Some(tmux)
    }

    /// Working directory of the shell.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a command of tmux, and returns its output.
    pub fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.dir.path());
        let output = command
            .arg("-S")
            .arg(self.dir.path().join("socket"))
            .args(args)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Types a line.
    pub fn line(&self, line: &str) {
        self.run(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    /// Presses keys, given by tmux's names. After Escape, the caller has to wait for its effect:
    /// the terminal takes a key right behind it for a part of the same sequence.
    pub fn keys(&self, keys: &[&str]) {
        for key in keys {
            self.run(&["send-keys", key]);
        }
    }

    /// Current contents of the screen.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits until the screen equals a snapshot, or for [`PATIENCE`]. Returns the screen.
    pub fn settled(&self, snapshot: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");
        let file = std::fs::read_to_string(format!("{folder}/top__{snapshot}.snap")).unwrap_or_default();
        let expected = file.splitn(3, "---\n").last().unwrap_or_default().trim_end();
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if screen.trim_end() == expected || begin.elapsed() > PATIENCE {
                return screen;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Number of colours on the screen.
    pub fn colors(&self) -> usize {
        let screen = self.run(&["capture-pane", "-p", "-e"]);
        let colors = screen.matches("\x1b[3").count() + screen.matches("\x1b[1;3").count();
        // Excludes the default colour.
        colors - screen.matches("\x1b[39").count()
    }

    /// Value of a tmux format.
    pub fn query(&self, format: &str) -> String {
        self.run(&["display-message", "-p", format]).trim_end().into()
    }

    /// Resizes the window.
    pub fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.run(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// Waits until a text is on the screen.
    pub fn wait_for(&self, text: &str) {
        self.wait_until(|screen| screen.contains(text));
    }

    /// Waits until the screen satisfies a condition.
    pub fn wait_until(&self, is_so: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "waited too long:\n{screen}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Foreground process of the shell.
    pub fn pid(&self) -> Option<String> {
        let shell = self.query("#{pane_pid}");
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).ok()?;
        Some(children.split_whitespace().next()?.into())
    }

    /// Sends it a signal.
    pub fn kill(&self, signal: &str) {
        let pid = self.pid().unwrap();
        let status = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        let _ = command
            .arg("-S")
            .arg(self.dir.path().join("socket"))
            .arg("kill-server")
            .output();
    }
}
