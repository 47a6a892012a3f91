// SPDX-License-Identifier: MIT OR Apache-2.0

//! Waits for a time or a signal.

use std::fs;
use std::io;
use std::io::PipeReader;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;

/// Time limit for each step of a process's end.
pub const GRACE: Duration = Duration::from_secs(5);

/// Ends the process after a signal if it does not end by itself: a blocked process, for example on
/// a pipe without a reader, must not keep its triggers in the kernel.
#[derive(Debug)]
pub struct Guard {
    /// Number of completed steps.
    steps: Arc<AtomicU32>,
}

/// Catches signals. They no longer end the process, but wake up the thread that waits here.
#[derive(Debug)]
pub struct Signals {
    pipe: PipeReader,
}

impl Guard {
    /// Starts a thread that ends the process if no step completes within `grace` after one of these
    /// signals. SIGINT has this effect only the second time: after the first one, a pager may still
    /// show the output. Calls `leave` before the signal ends the process.
    pub fn start(signals: &[i32], grace: Duration, leave: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let pipe = |signal: &i32| Ok((*signal, *signal == SIGINT, Signals::of(&[*signal])?));
        let mut pipes = signals.iter().map(pipe).collect::<io::Result<Vec<_>>>()?;
        let steps = Arc::new(AtomicU32::new(0));
        let guard = Guard { steps: steps.clone() };
        thread::Builder::new().spawn(move || {
            let Ok(signal) = wait_for_end(&mut pipes) else { return };
            loop {
                let before = steps.load(Ordering::Relaxed);
                thread::sleep(grace);
                if steps.load(Ordering::Relaxed) == before {
                    break;
                }
            }
            leave();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        })?;
        Ok(guard)
    }

    /// Marks a step as complete, which restarts the time limit.
    pub fn goes_on(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits for a signal that ends the process. Signals that may wait count from the second time on.
fn wait_for_end(pipes: &mut [(i32, bool, Signals)]) -> io::Result<i32> {
    loop {
        let mut fds: Vec<_> = pipes
            .iter()
            .map(|(.., pipe)| PollFd::new(pipe, PollFlags::IN))
            .collect();
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = fds.iter().position(|fd| !fd.revents().is_empty());
        if let Some((signal, may_wait, pipe)) = ready.and_then(|place| pipes.get_mut(place)) {
            let count = pipe.forget()?;
            if count > usize::from(std::mem::take(may_wait)) {
                return Ok(*signal);
            }
        }
    }
}

/// Signals that end a measurement. Excludes SIGHUP if it is ignored, as under nohup.
pub fn ends() -> &'static [i32] {
    // SIGINT counts even if it is ignored, as for background jobs of scripts: there it is sent to
    // the process on purpose.
    match is_ignored(SIGHUP) {
        true => &[SIGINT, SIGTERM],
        false => &[SIGINT, SIGTERM, SIGHUP],
    }
}

impl Signals {
    /// Catches the signals that end a measurement.
    pub fn new() -> io::Result<Self> {
        Self::of(ends())
    }

    /// Catches these signals.
    pub fn of(signals: &[i32]) -> io::Result<Self> {
        let (pipe, end) = io::pipe()?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, end.try_clone()?)?;
        }
        Ok(Self { pipe })
    }

    /// Consumes the signals that have arrived, and returns their number. Blocks if none has
    /// arrived.
    pub fn forget(&mut self) -> io::Result<usize> {
        self.pipe.read(&mut [0; 64])
    }

    /// Waits for a signal until this time, or without limit. Returns whether one has arrived.
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

/// Readable after a signal has arrived.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Returns whether this process was started with a signal ignored.
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
