// SPDX-License-Identifier: MIT OR Apache-2.0

//! A connection of a client: it never keeps anybody waiting, and has memory for one request.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFlags;

use super::http::MAX_HEAD;
use super::http::Parsed;
use super::http::Request;
use super::http::Response;
use super::http::parse;

/// How long a request may take to arrive, and a response to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection is kept without a request. Prometheus scrapes each minute, if it is told nothing else.
const IDLE: Duration = Duration::from_secs(120);

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// What has arrived and was not answered yet.
    input: Vec<u8>,
    output: Option<Output>,
    /// When it is closed, if nothing goes on.
    deadline: Instant,
    /// Since when it has been doing what it does.
    since: Instant,
}

/// A response on its way.
#[derive(Debug)]
struct Output {
    head: Vec<u8>,
    body: Rc<Vec<u8>>,
    /// Bytes of both that were sent.
    sent: usize,
    keep_alive: bool,
}

/// What came of a connection.
#[derive(Debug)]
pub enum Progress {
    /// It waits for its client.
    Waits,
    /// It has a request, to be answered.
    Asks(Request),
    /// It has one that gets this answer, and whether only the head of it; it is the last one.
    Refuses(Response, bool),
    /// It is over.
    Over,
}

impl Connection {
    /// One that has just been made.
    pub fn new(stream: TcpStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            output: None,
            deadline: now + PATIENCE,
            since: now,
        })
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What it waits for.
    pub fn interest(&self) -> PollFlags {
        if self.output.is_some() {
            PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }

    /// When it is over, if nothing comes.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Since when it has been doing what it does: whoever has done so longest makes room for others.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// The body that it sends.
    pub fn body(&self) -> Option<&Rc<Vec<u8>>> {
        self.output.as_ref().map(|output| &output.body)
    }

    /// Goes on as far as it can without waiting.
    pub fn go_on(&mut self, now: Instant) -> Progress {
        match self.try_go_on(now) {
            Ok(progress) => progress,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Progress::Waits
            }
            Err(_) => Progress::Over,
        }
    }

    fn try_go_on(&mut self, now: Instant) -> io::Result<Progress> {
        if let Some(output) = &mut self.output {
            while let Some(rest) = output.rest() {
                match self.stream.write(rest)? {
                    0 => return Ok(Progress::Over),
                    sent => output.sent += sent,
                }
            }
            if !output.keep_alive {
                return Ok(Progress::Over);
            }
            self.output = None;
            (self.since, self.deadline) = (now, now + IDLE);
        }
        loop {
            // A client may send its next request before it has the answer.
            match parse(&self.input) {
                Parsed::Request(request, length) => {
                    self.input.drain(..length);
                    return Ok(Progress::Asks(request));
                }
                Parsed::Refused(response, is_head) => return Ok(Progress::Refuses(response, is_head)),
                Parsed::Partial => {}
            }
            let mut buffer = [0; 1024];
            let room = buffer.len().min(MAX_HEAD + 1 - self.input.len().min(MAX_HEAD));
            match self.stream.read(&mut buffer[..room])? {
                0 => return Ok(Progress::Over),
                read => {
                    if self.input.is_empty() {
                        (self.since, self.deadline) = (now, now + PATIENCE);
                    }
                    self.input.extend_from_slice(&buffer[..read]);
                }
            }
        }
    }

    /// Begins to answer.
    pub fn answer(&mut self, response: &Response, keep_alive: bool, is_head: bool, now: Instant) {
        self.output = Some(Output {
            head: response.head(keep_alive).into_bytes(),
            body: if is_head { Rc::default() } else { response.body.clone() },
            sent: 0,
            keep_alive,
        });
        (self.since, self.deadline) = (now, now + PATIENCE);
    }
}

impl Output {
    /// What is still to be sent.
    fn rest(&self) -> Option<&[u8]> {
        let rest = match self.sent.checked_sub(self.head.len()) {
            None => &self.head[self.sent..],
            Some(sent) => &self.body[sent..],
        };
        (!rest.is_empty()).then_some(rest)
    }
}
