// SPDX-License-Identifier: MIT OR Apache-2.0

//! A child process that compiles, as its parent sees it: [`crate::compiler`] is its own side.
//!
//! From the time at which it reads the file, the child may be in the hands of the file's maker. So
//! its output is limited in size, taken as a table only in the form of one, and as text only
//! escaped.

use std::ffi::OsStr;
use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use rhist_unwind::Form;
use rustix::fs::OFlags;
use rustix::fs::fcntl_setfl;
use rustix::process::Pid;
use rustix::process::PidfdFlags;
use rustix::process::pidfd_open;

use crate::compiler::FAILED;
use crate::compiler::NAME;
use crate::compiler::NOT_HELD;
use crate::confinement::SECONDS;

/// Characters of a reason that are shown.
const REASON: usize = 200;

/// Bytes that are read at once: as much as fits in a pipe.
const PIECE: usize = 1 << 16;

/// The result of a compilation.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A table, and the numbers in its header.
    Table(Form, Vec<u8>),
    /// The module does not hold the file now.
    NotHeld,
    /// A reason, which is safe to print.
    Failed(String),
}

/// A running child. Killed when dropped.
#[derive(Debug)]
pub struct Compilation {
    child: Child,
    /// Readable when the child has ended.
    ended: OwnedFd,
    /// `None` after its end.
    output: Option<ChildStdout>,
    bytes: Vec<u8>,
    begin: Instant,
    /// It is killed after this.
    patience: Duration,
}

impl Compilation {
    /// Starts `program`, which has to call [`crate::compiler::main()`], with a file. After
    /// `patience`, it is killed.
    pub fn start(program: &Path, image: &OsStr, patience: Duration) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg0(NAME)
            .arg(image)
            .env_clear()
            .current_dir("/")
            // Ctrl-C is for the parent.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let watched = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).and_then(|ended| {
            let output = child.stdout.take();
            output
                .as_ref()
                .map_or(Ok(()), |output| fcntl_setfl(output, OFlags::NONBLOCK))?;
            Ok((ended, output))
        });
        let (ended, output) = watched.inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(Self {
            child,
            ended,
            output,
            bytes: Vec::new(),
            begin: Instant::now(),
            patience,
        })
    }

    /// Files one of which is readable when [`Compilation::step()`] has something to do.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.output.iter().map(AsFd::as_fd).chain([self.ended.as_fd()])
    }

    /// When it was started.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// The latest time for the next [`Compilation::step()`].
    pub fn end(&self) -> Instant {
        self.begin + self.patience
    }

    /// Ends the child, which may still take a while.
    pub fn kill(&mut self) {
        // Fails if it has been waited for.
        let _ = self.child.kill();
    }

    /// Reads the output so far, without waiting. Returns the outcome when it is known: the child
    /// has ended, or was killed and is ending.
    pub fn step(&mut self) -> io::Result<Option<Outcome>> {
        // Asked before the output is read to its end.
        let status = self.child.try_wait()?;
        if !self.read()? {
            self.kill();
            return Ok(Some(Outcome::Failed("the compiler made too much output".to_owned())));
        }
        if let Some(status) = status {
            return Ok(Some(outcome(status, std::mem::take(&mut self.bytes))));
        }
        if Instant::now() < self.end() {
            return Ok(None);
        }
        self.kill();
        let seconds = self.patience.as_secs_f64();
        Ok(Some(Outcome::Failed(format!("not read after {seconds} s"))))
    }

    /// Reads the output that is there. Returns false if it is too long.
    fn read(&mut self) -> io::Result<bool> {
        let mut piece = [0; PIECE];
        while let Some(output) = &mut self.output {
            match output.read(&mut piece) {
                Ok(0) => self.output = None,
                Ok(count) if self.bytes.len() + count > Form::MOST_BYTES => return Ok(false),
                Ok(count) => self.bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether the child is gone. One that was killed may still wait for a file system that
    /// ignores signals.
    pub fn is_gone(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Compilation {
    fn drop(&mut self) {
        self.kill();
        // A child that ends later is waited for by nobody, until this process ends.
        let _ = self.child.try_wait();
    }
}

fn outcome(status: ExitStatus, bytes: Vec<u8>) -> Outcome {
    const FAILED_CODE: i32 = FAILED as i32;
    const NOT_HELD_CODE: i32 = NOT_HELD as i32;
    match status.code() {
        Some(0) => match Form::of(&bytes) {
            Some(form) => Outcome::Table(form, bytes),
            None => Outcome::Failed("the compiler made no table".to_owned()),
        },
        Some(NOT_HELD_CODE) => Outcome::NotHeld,
        Some(FAILED_CODE) => Outcome::Failed(reason(&bytes)),
        Some(code) => Outcome::Failed(format!("the compiler ended with status {code}")),
        None => Outcome::Failed(killed(status.signal())),
    }
}

fn killed(signal: Option<i32>) -> String {
    match signal {
        Some(libc::SIGXCPU) => format!("took more than {SECONDS} s of a processor"),
        // Also if the memory of its control group is used up.
        Some(libc::SIGKILL) => "the compiler was killed".to_owned(),
        Some(libc::SIGABRT) => "the compiler gave up: its memory is limited".to_owned(),
        signal => format!("the compiler died of signal {}", signal.unwrap_or_default()),
    }
}

/// A reason as the child gives it, in which nothing is interpreted by a terminal.
fn reason(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = text.trim().chars().take(REASON).map(|character| match character {
        ' '..='~' => character,
        _ => '?',
    });
    shown.collect()
}
