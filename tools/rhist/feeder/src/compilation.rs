// SPDX-License-Identifier: MIT OR Apache-2.0

//! A child process that reads a file, as its parent sees it: [`crate::compiler`] is its own side.
//!
//! From the time at which it reads the file, the child may be in the hands of the file's maker. So
//! its output is limited in size, taken as a table only in the form of one, and as text only
//! escaped.

use std::ffi::OsString;
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

use crate::base_name::MOST_NAME;
use crate::compiler::FAILED;
use crate::compiler::NAME;
use crate::compiler::NOT_HELD;
use crate::confinement::SECONDS;
use crate::name_table::NameTable;

/// Characters of a reason that are shown.
const REASON: usize = 200;

/// Bytes that are read at once: as much as fits in a pipe.
const PIECE: usize = 1 << 16;

/// The purpose of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// It makes rules.
    Rules,
    /// It reads names of functions.
    Names,
}

impl Job {
    /// Bytes of its longest output.
    fn most_bytes(self) -> usize {
        match self {
            Self::Rules => Form::MOST_BYTES,
            Self::Names => 1 + MOST_NAME + NameTable::MOST_BYTES,
        }
    }

    /// The child in reasons.
    fn noun(self) -> &'static str {
        match self {
            Self::Rules => "the compiler",
            Self::Names => "the reader",
        }
    }
}

/// The result of a child.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A table of rules, and the numbers in its header.
    Table(Form, Vec<u8>),
    /// A table of names.
    Names(NameTable),
    /// The module does not hold the file now.
    NotHeld,
    /// A reason, which is safe to print.
    Failed(String),
}

/// A running child. Killed when dropped.
#[derive(Debug)]
pub struct Compilation {
    job: Job,
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
    /// Starts `program`, which has to call [`crate::compiler::main()`], with arguments for a job.
    /// After `patience`, it is killed.
    pub fn start(program: &Path, job: Job, arguments: &[OsString], patience: Duration) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg0(NAME)
            .args(arguments)
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
            job,
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
            let why = format!("{} made too much output", self.job.noun());
            return Ok(Some(Outcome::Failed(why)));
        }
        if let Some(status) = status {
            return Ok(Some(self.outcome(status)));
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
                Ok(count) if self.bytes.len() + count > self.job.most_bytes() => return Ok(false),
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

    /// Whether it has written anything.
    pub fn has_said(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The name of the file without its folders, which a child for names writes before it reads;
    /// empty if it is not known.
    pub fn base_name(&self) -> &[u8] {
        self.bytes.get(1..self.name_end()).unwrap_or_default()
    }

    /// Where the name of the file ends in the output.
    fn name_end(&self) -> usize {
        match (self.job, self.bytes.first()) {
            (Job::Names, Some(len)) => self.bytes.len().min(1 + usize::from(*len)),
            _ => 0,
        }
    }

    /// The result of a child that has ended.
    fn outcome(&mut self, status: ExitStatus) -> Outcome {
        const FAILED_CODE: i32 = FAILED as i32;
        const NOT_HELD_CODE: i32 = NOT_HELD as i32;
        let noun = self.job.noun();
        let bytes = self.bytes.split_off(self.name_end());
        match (status.code(), self.job) {
            (Some(0), Job::Rules) => match Form::of(&bytes) {
                Some(form) => Outcome::Table(form, bytes),
                None => Outcome::Failed("the compiler made no table".to_owned()),
            },
            (Some(0), Job::Names) => match NameTable::read(bytes) {
                Some(table) => Outcome::Names(table),
                None => Outcome::Failed("the reader made no table".to_owned()),
            },
            (Some(NOT_HELD_CODE), _) => Outcome::NotHeld,
            (Some(FAILED_CODE), _) => Outcome::Failed(reason(&bytes)),
            (Some(code), _) => Outcome::Failed(format!("{noun} ended with status {code}")),
            (None, _) => Outcome::Failed(killed(noun, status.signal())),
        }
    }
}

impl Drop for Compilation {
    fn drop(&mut self) {
        self.kill();
        // A child that ends later is waited for by nobody, until this process ends.
        let _ = self.child.try_wait();
    }
}

fn killed(noun: &str, signal: Option<i32>) -> String {
    match signal {
        Some(libc::SIGXCPU) => format!("took more than {SECONDS} s of a processor"),
        // Also if the memory of its control group is used up.
        Some(libc::SIGKILL) => format!("{noun} was killed"),
        Some(libc::SIGABRT) => format!("{noun} gave up: its memory is limited"),
        signal => format!("{noun} died of signal {}", signal.unwrap_or_default()),
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
