// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads recordings.

use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;

use super::Error;
use super::decode;
use super::decode::PartsError;
use super::writer::name;
use crate::names::Names;
use crate::otlp::model::ScopeMetrics;
use crate::question::Interval;
use crate::question::Question;
use crate::table::Text;

/// Limit of a line, in bytes. A line with 131072 keys and four distributions has about 200 MB.
const MAX_LINE: u64 = 1 << 30;

/// Limit for reading a line that does not start like one of a recording, in bytes: enough for the
/// error message.
const MAX_OTHER: u64 = 1 << 12;

/// An open recording: an iterator over its intervals, which ends after the first error.
pub struct Reader {
    input: Box<dyn BufRead + Send>,
    /// Name for errors.
    name: String,
    /// Number of the line read last, from 1.
    line: u64,
    question: Question,
    boot_id: Option<String>,
    names: Names,
    /// Text of the resource from which `question` and `boot_id` were parsed. Most lines repeat it,
    /// and skip the parser.
    resource: String,
    /// Interval of the first line, until the iterator returns it.
    first: Option<Interval>,
    note: Option<String>,
    is_done: bool,
}

impl Reader {
    /// Opens a recording; `-` is standard input. Fails if the first line is not part of a
    /// recording.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Self::new(Box::new(BufReader::new(io::stdin())), "standard input");
        }
        let name = name(path);
        let file = File::open(path).map_err(|error| Error(format!("{name}: {error}")))?;
        Self::new(Box::new(BufReader::with_capacity(1 << 16, file)), &name)
    }

    /// Reads a recording from another source. `name` is for errors.
    pub fn new(input: Box<dyn BufRead + Send>, name: &str) -> Result<Self, Error> {
        let mut reader = Reader {
            input,
            name: name.to_owned(),
            line: 0,
            question: Question::default(),
            boot_id: None,
            names: Names::elsewhere(),
            resource: String::new(),
            first: None,
            note: None,
            is_done: false,
        };
        match reader.read()? {
            Some(interval) => reader.first = Some(interval),
            None if reader.note.is_some() => return Err(Error(format!("{name} has no whole interval"))),
            None => return Err(Error(format!("{name} is empty: not a recording"))),
        }
        Ok(reader)
    }

    /// The question of the last line read.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Names of numbers, from all lines read so far.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Names of numbers, to use after the end.
    pub fn into_names(self) -> Names {
        self.names
    }

    /// The first interval, until it is taken.
    pub(super) fn first(&self) -> Option<&Interval> {
        self.first.as_ref()
    }

    /// Remark about the file, known at its end: the last line was cut off.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Reads the interval in the next line.
    fn read(&mut self) -> Result<Option<Interval>, Error> {
        let mut line = Vec::new();
        let failed = |error: io::Error| Error(format!("{}: {error}", self.name));
        let most = match self.input.fill_buf().map_err(failed)?.first() {
            Some(byte) if !b"{ \t\r\n".contains(byte) => MAX_OTHER,
            _ => MAX_LINE,
        };
        let length = (&mut self.input).take(most).read_until(b'\n', &mut line);
        let length = length.map_err(failed)?;
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        if length as u64 == most {
            return Err(self.error(match most {
                MAX_LINE => "too long for a recording",
                _ => "not a recording",
            }));
        }
        let is_last = line.pop_if(|byte| *byte == b'\n').is_none();
        match decode::parts(&line) {
            Ok((resource, scope)) => self.interval(resource, &scope).map(Some),
            // The first line must be valid, or else the file is not a recording.
            Err(PartsError::Json(error)) if is_last && (error.is_eof() || self.line > 1 && error.is_syntax()) => {
                self.note = Some(format!("line {} of {} is cut off, and left out", self.line, self.name));
                Ok(None)
            }
            Err(PartsError::Json(error)) => {
                let error = error.to_string().replace("at line 1 column", "at column");
                Err(self.error(&format!("not a recording: {error}")))
            }
            Err(PartsError::Other) => Err(self.error("metrics that were not recorded by rhist")),
        }
    }

    fn interval(&mut self, resource: &str, scope: &ScopeMetrics) -> Result<Interval, Error> {
        if self.line == 1 || resource != self.resource {
            let (question, boot_id) = decode::resource(resource).map_err(|error| self.error(&error))?;
            if self.line > 1 && question != self.question {
                return Err(self.error("this line records another question than the lines above"));
            }
            self.question = question;
            self.boot_id = boot_id;
            self.resource = resource.to_owned();
        }
        decode::add_names(&mut self.names, scope);
        decode::interval(&self.question, self.boot_id.clone(), scope).map_err(|error| self.error(&error))
    }

    fn error(&self, what: &str) -> Error {
        // The message may quote the file.
        Error(format!("{}, line {}: {}", self.name, self.line, Text::from(what)))
    }
}

impl Iterator for Reader {
    type Item = Result<Interval, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        if self.is_done {
            return None;
        }
        let interval = self.read().transpose();
        self.is_done = !matches!(interval, Some(Ok(_)));
        interval
    }
}
