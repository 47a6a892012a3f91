// SPDX-License-Identifier: MIT OR Apache-2.0

//! The loop that connects the source with the state, the screen and the terminal.

use std::io;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use anyhow::Context;
use rhist_core::question::Source;
use rhist_core::recording::Writer;

use super::batch;
use super::date;
use super::input::Key;
use super::keyboard;
use super::keyboard::Request;
use super::look::Look;
use super::options::Options;
use super::picture;
use super::screen;
use super::state::State;
use super::terminal::Input;
use super::terminal::Terminal;
use crate::options::Format;
use crate::signals::Signals;

/// Longest sleep.
const NAP: Duration = Duration::from_secs(1);

/// Delay before a slow terminal is checked again.
const SLOW: Duration = Duration::from_millis(50);

/// Shows a source until a key or a signal ends it. If the output is not a terminal, prints lines of
/// JSON, and also ends with the source. As a picture, prints the last screen at the end.
///
/// Fails if the source or the terminal fails.
pub fn run(source: &mut dyn Source, options: Options, signals: &Signals) -> anyhow::Result<()> {
    match options.format {
        Format::Svg => return picture::run(source, options, signals),
        Format::Text if io::stdin().is_terminal() && io::stdout().is_terminal() => {}
        _ => return batch::run(source, &options, signals),
    }
    let terminal = Terminal::enter().context("the terminal cannot be used")?;
    let mut top = Top {
        state: State::new(source.question().clone(), options.names),
        source,
        terminal,
        signals,
        look: Look::from_env(),
        recording: None,
        interval: options.interval,
        end: options.end,
        next: Instant::now() + options.interval,
        is_drawn: false,
    };
    top.run()
}

/// State of the main loop.
struct Top<'a> {
    source: &'a mut dyn Source,
    state: State,
    terminal: Terminal,
    signals: &'a Signals,
    look: Look,
    recording: Option<Writer>,
    interval: Duration,
    end: Option<Instant>,
    /// Time of the next reading.
    next: Instant,
    /// Whether the screen shows the current state.
    is_drawn: bool,
}

impl Top<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        while self.end.is_none_or(|end| Instant::now() < end) {
            if self.terminal.resume()? {
                self.is_drawn = false;
            }
            if !self.state.ended && Instant::now() >= self.next {
                self.read()?;
            }
            if (!self.is_drawn || self.terminal.is_resized()) && self.terminal.is_ready() {
                let (state, total, look) = (&mut self.state, self.source.total(), self.look);
                self.terminal.draw(|buffer| screen::draw(state, total, look, buffer))?;
                self.is_drawn = true;
            }
            match self.terminal.wait(self.signals, self.nap())? {
                Input::End => return Ok(()),
                Input::Keys(keys) => {
                    for key in keys {
                        self.is_drawn = false;
                        if self.press(key)? {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Time until the next action.
    fn nap(&self) -> Duration {
        let next = (!self.state.ended).then_some(self.next);
        let next = [next, self.end].into_iter().flatten().min();
        let longest = if self.is_drawn { NAP } else { SLOW };
        next.map_or(longest, |next| {
            next.saturating_duration_since(Instant::now()).min(longest)
        })
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        self.next += self.interval;
        if self.next <= now {
            // After a suspension.
            self.next = now + self.interval;
        }
        let interval = match self.source.interval() {
            Ok(interval) => interval,
            // The numbers so far can still be viewed.
            Err(error) if self.state.history.pushed > 0 => {
                self.state.message = Some(error.to_string());
                None
            }
            Err(error) => return Err(anyhow::anyhow!(error)),
        };
        let Some(interval) = interval else {
            self.state.ended = true;
            self.is_drawn = false;
            return Ok(());
        };
        self.state.read(&interval, self.source.total());
        self.is_drawn &= self.state.is_frozen();
        if let Some(note) = interval.notes.last() {
            self.state.message = Some(note.clone());
            self.is_drawn = false;
        }
        if let Some(writer) = &mut self.recording
            && let Err(error) = writer.append(&interval, self.state.names())
        {
            self.stop_recording(error.to_string());
        }
        Ok(())
    }

    /// Handles a key. Returns whether to end.
    fn press(&mut self, key: Key) -> anyhow::Result<bool> {
        match keyboard::press(&mut self.state, self.source.total(), key) {
            Some(Request::Quit) => return Ok(true),
            Some(Request::Suspend) => {
                self.terminal.stop()?;
            }
            Some(Request::Redraw) => self.terminal.clear()?,
            Some(Request::Record) => self.record(),
            None => {}
        }
        Ok(false)
    }

    /// Begins or ends a recording.
    fn record(&mut self) {
        if let Some(file) = self.state.recording.clone() {
            return self.stop_recording(format!("recorded to {file}"));
        }
        let file = format!("rhist-{}.jsonl", date::file_name(SystemTime::now()));
        match Writer::create(Path::new(&file), &self.state.question) {
            Ok(writer) => {
                self.recording = Some(writer);
                self.state.message = Some(format!("recording to {file}; w ends the recording"));
                self.state.recording = Some(file);
            }
            Err(error) => self.state.message = Some(error.to_string()),
        }
    }

    fn stop_recording(&mut self, message: String) {
        self.recording = None;
        self.state.recording = None;
        self.state.message = Some(message);
        self.is_drawn = false;
    }
}
