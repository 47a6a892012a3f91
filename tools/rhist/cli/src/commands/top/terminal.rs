// SPDX-License-Identifier: MIT OR Apache-2.0

//! The terminal: output, and keys as input. Restored on drop, and if the program panics.

use std::env;
use std::io;
use std::io::BufWriter;
use std::io::Stdout;
use std::io::Write;
use std::panic;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crossterm::cursor::Hide;
use crossterm::cursor::MoveTo;
use crossterm::cursor::Show;
use crossterm::queue;
use crossterm::terminal::Clear;
use crossterm::terminal::ClearType;
use crossterm::terminal::EnterAlternateScreen;
use crossterm::terminal::LeaveAlternateScreen;
use crossterm::terminal::disable_raw_mode;
use crossterm::terminal::enable_raw_mode;
use ratatui::backend::Backend;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::process;
use rustix::termios;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGWINCH;
use signal_hook::flag;

use super::input;
use super::input::Key;
use crate::signals::Signals;

/// Size if the terminal does not report one, such as a serial console.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// Time limit for the bytes of one key on a serial line.
const KEY_TIME: Duration = Duration::from_millis(5);

/// Whether the terminal is in use by this program.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Terminal of this process, on its standard input and output.
pub struct Terminal {
    backend: CrosstermBackend<BufWriter<Stdout>>,
    /// Current contents of the screen.
    screen: Buffer,
    /// Bytes of an incomplete key.
    pending: Vec<u8>,
    /// Set when the program continues after a suspension.
    resumed: Arc<AtomicBool>,
}

/// Result of [`Terminal::wait`].
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// Keys pressed; empty after a timeout, or if the size has changed.
    Keys(Vec<Key>),
    /// Interrupted, or the terminal was closed.
    End,
}

impl Terminal {
    /// Takes over the terminal.
    pub fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                leave();
                before(info);
            }));
        });
        let mut terminal = Terminal {
            backend: CrosstermBackend::new(BufWriter::new(io::stdout())),
            screen: Buffer::empty(Rect::ZERO),
            pending: Vec::new(),
            resumed: Arc::default(),
        };
        flag::register(SIGCONT, Arc::clone(&terminal.resumed))?;
        // Registered only to interrupt waiting.
        flag::register(SIGWINCH, Arc::default())?;
        terminal.enter_again()?;
        Ok(terminal)
    }

    fn enter_again(&mut self) -> io::Result<()> {
        ENTERED.store(true, Ordering::Relaxed);
        // crossterm considers the mode as raw until it has reset it itself.
        disable_raw_mode()?;
        enable_raw_mode()?;
        queue!(self.backend, EnterAlternateScreen, Hide)?;
        self.clear()
    }

    /// Suspends the program, for the job control of the shell, until it is continued.
    pub fn stop(&mut self) -> io::Result<()> {
        leave();
        process::kill_process(process::getpid(), process::Signal::TSTP)?;
        self.resumed.store(false, Ordering::Relaxed);
        self.enter_again()
    }

    /// Takes over the terminal again after a suspension, when another program may have used it.
    /// Returns whether that was needed.
    pub fn resume(&mut self) -> io::Result<bool> {
        let resumed = self.resumed.swap(false, Ordering::Relaxed);
        if resumed {
            self.enter_again()?;
        }
        Ok(resumed)
    }

    /// Clears the screen, so that everything is redrawn.
    pub fn clear(&mut self) -> io::Result<()> {
        self.screen = Buffer::empty(size());
        queue!(self.backend, Clear(ClearType::All))
    }

    /// Returns whether the size has changed since the last draw.
    pub fn is_resized(&self) -> bool {
        self.screen.area != size()
    }

    /// Returns whether nearly all output was sent. A serial line needs a second for a screen.
    pub fn is_ready(&self) -> bool {
        let stdout = io::stdout();
        let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
        let now = Timespec::default();
        !matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(0))
    }

    /// Draws the differences to the screen's contents.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        if self.is_resized() {
            self.clear()?;
        }
        let mut next = Buffer::empty(self.screen.area);
        draw(&mut next);
        self.backend.draw(self.screen.diff_iter(&next))?;
        self.screen = next;
        Write::flush(&mut self.backend)
    }

    /// Waits for keys, a signal, or the timeout.
    pub fn wait(&mut self, signals: &Signals, timeout: Duration) -> io::Result<Input> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Input::Keys(Vec::new())),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let [keys, signals] = fds.map(|fd| fd.revents());
        if !signals.is_empty() || keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Ok(Input::End);
        }
        thread::sleep(KEY_TIME);
        let mut bytes = [0; 256];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) | Err(rustix::io::Errno::IO) => return Ok(Input::End),
            Ok(length) => self.pending.extend(bytes.get(..length).unwrap_or_default()),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Input::Keys(input::take(&mut self.pending)))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal. Ignores errors, since the terminal may be closed.
fn leave() {
    if !ENTERED.swap(false, Ordering::Relaxed) {
        return;
    }
    let mut stdout = io::stdout().lock();
    // On terminals without an alternate screen, the prompt then appears below the output.
    let last = size().height.saturating_sub(1);
    let _ = queue!(stdout, MoveTo(0, last), Show, LeaveAlternateScreen);
    let _ = stdout.flush();
    let _ = disable_raw_mode();
}

/// Size of the screen.
fn size() -> Rect {
    let known = termios::tcgetwinsize(io::stdout()).ok();
    let known = known.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let var = |name, default| {
        env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    };
    let (width, height) = match known {
        Some(size) => (size.ws_col, size.ws_row),
        None => (var("COLUMNS", DEFAULT_SIZE.0), var("LINES", DEFAULT_SIZE.1)),
    };
    Rect::new(0, 0, width.clamp(1, 1000), height.clamp(1, 1000))
}
