// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist top`: what a question measures, key by key, as it changes.
//!
//! [`state`] knows what is shown and how keys of the keyboard change it, [`screen`] and what it calls draw that into cells, and
//! the loop here connects both with the source and with the terminal.

mod baseline;
mod batch;
mod date;
mod header;
mod heat_map;
mod history;
mod input;
mod keyboard;
mod keys;
mod line;
mod look;
mod number;
mod paint;
mod picture;
mod screen;
mod screenful;
mod state;
mod table;
mod terminal;
mod text;

use std::io;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use anyhow::Context;
use rhist_core::names::Names;
use rhist_core::question::Source;
use rhist_core::recording::Writer;

use crate::args::Format;
use crate::signals::Signals;
use input::Key;
use keyboard::Request;
use look::Look;
use state::State;
use terminal::Input;
use terminal::Terminal;

/// Longest time for which nothing is looked at.
const NAP: Duration = Duration::from_secs(1);

/// How long to wait for a slow terminal before it is asked again.
const SLOW: Duration = Duration::from_millis(50);

/// How to show it.
#[derive(Debug)]
pub struct Options {
    /// Time from one reading to the next.
    pub interval: Duration,
    /// What to print instead of showing it on a terminal: lines of JSON, or a picture. Not text: that is for the terminal.
    pub format: Format,
    /// When to end, if it is not ended before.
    pub end: Option<Instant>,
    /// Whether the source is a recording, whose readings are there already.
    pub is_replay: bool,
    /// Names of numbers.
    pub names: Names,
}

/// Shows what a source has, until it is ended from the keyboard or by a signal. Where no terminal is, prints lines of JSON
/// until that or the end of the source; as a picture, the screen at that end.
///
/// Fails if the source or the terminal does.
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
        next: Instant::now(),
        is_drawn: false,
    };
    top.run()
}

/// What keys of the keyboard do, for the help of the command.
pub fn keys_help() -> String {
    let keys = keyboard::KEYS.iter();
    keys.fold("Keys:".to_owned(), |text, (keys, what)| {
        text + &format!("\n  {keys:20}  {what}")
    })
}

/// All that takes part.
struct Top<'a> {
    source: &'a mut dyn Source,
    state: State,
    terminal: Terminal,
    signals: &'a Signals,
    look: Look,
    recording: Option<Writer>,
    interval: Duration,
    end: Option<Instant>,
    /// When to read again.
    next: Instant,
    /// Whether the screen shows the state as it is.
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
                let (state, look) = (&mut self.state, self.look);
                self.terminal.draw(|buffer| screen::draw(state, look, buffer))?;
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

    /// How long there is nothing to do.
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
            // The first time, or after a stop.
            self.next = now + self.interval;
        }
        let reading = match self.source.read() {
            Ok(reading) => reading,
            // What was measured can still be looked at.
            Err(error) if self.state.last.is_some() => {
                self.state.message = Some(error.to_string());
                None
            }
            Err(error) => return Err(anyhow::anyhow!(error)),
        };
        let Some(reading) = reading else {
            self.state.ended = true;
            self.is_drawn = false;
            return Ok(());
        };
        let interval = self.state.read(reading);
        self.is_drawn &= self.state.is_frozen();
        if let (Some(writer), Some(interval)) = (&mut self.recording, &interval)
            && let Err(error) = writer.append(interval, self.state.names())
        {
            self.stop_recording(error.to_string());
        }
        Ok(())
    }

    /// Whether to end.
    fn press(&mut self, key: Key) -> anyhow::Result<bool> {
        match keyboard::press(&mut self.state, key) {
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

    /// Begins to record, or ends that.
    fn record(&mut self) {
        if let Some(file) = self.state.recording.clone() {
            return self.stop_recording(format!("{file} is written"));
        }
        let file = format!("rhist-{}.jsonl", date::file_name(SystemTime::now()));
        match Writer::create(Path::new(&file), &self.state.question) {
            Ok(writer) => {
                self.recording = Some(writer);
                self.state.message = Some(format!("each interval goes to {file} from now on; w ends that"));
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

#[cfg(test)]
mod tests;
