// SPDX-License-Identifier: MIT OR Apache-2.0

//! Waiting until a time comes, or until a signal says that it is enough.

use std::fs;
use std::io;
use std::io::PipeReader;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;

/// From now on these signals do not end the process, but wake up who waits here.
#[derive(Debug)]
pub struct Signals {
    pipe: PipeReader,
}

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP, the last one unless it is ignored, as behind nohup.
    pub fn new() -> io::Result<Self> {
        // What is ignored in the background of a script is SIGINT: there it ends what it is sent to, on purpose.
        match is_ignored(SIGHUP) {
            true => Self::of(&[SIGINT, SIGTERM]),
            false => Self::of(&[SIGINT, SIGTERM, SIGHUP]),
        }
    }

    /// Catches these.
    pub fn of(signals: &[i32]) -> io::Result<Self> {
        let (pipe, end) = io::pipe()?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, end.try_clone()?)?;
        }
        Ok(Self { pipe })
    }

    /// Forgets those that have come. To be called only if one has.
    pub fn forget(&mut self) -> io::Result<()> {
        self.pipe.read(&mut [0; 64]).map(|_| ())
    }

    /// Waits until then, or without end. Returns whether a signal has come.
    pub fn wait(&self, until: Option<Instant>) -> io::Result<bool> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.map(timespec);
            let mut fds = [PollFd::new(&self.pipe, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Is readable once a signal has come.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Whether this process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read("/proc/self/status").unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
