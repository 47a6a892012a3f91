// SPDX-License-Identifier: MIT OR Apache-2.0

//! Connection of a client. Never blocks, and keeps one request in memory.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFlags;

use super::message::MAX_HEAD;
use super::message::Parsed;
use super::message::Request;
use super::message::Response;
use super::message::parse;

/// Time limit for the arrival of a request, and for sending a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time limit for an idle connection. Prometheus scrapes every minute by default.
const IDLE: Duration = Duration::from_secs(120);

/// A non-blocking connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// Bytes received but not answered yet.
    input: Vec<u8>,
    output: Option<Output>,
    /// Time at which it is closed without further progress.
    deadline: Instant,
    /// Start of the current activity: idle, receiving or sending.
    since: Instant,
}

/// A response being sent.
#[derive(Debug)]
struct Output {
    head: Vec<u8>,
    body: Rc<Vec<u8>>,
    /// Bytes sent so far, of head and body together.
    sent: usize,
    keep_alive: bool,
}

/// State of a connection after some progress.
#[derive(Debug)]
pub enum Progress {
    /// Waiting for the client.
    Waits,
    /// A request has arrived, and must be answered.
    Asks(Request),
    /// An invalid request has arrived; contains the response, and whether to send only its head.
    /// The connection ends after it.
    Refuses(Response, bool),
    /// Closed.
    Over,
}

impl Connection {
    /// Creates a connection from an accepted socket.
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

    /// The socket, for polling.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Event to poll for.
    pub fn interest(&self) -> PollFlags {
        if self.output.is_some() {
            PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }

    /// Time at which to close it without further progress.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Start of the current activity. The connection with the oldest start makes way for a new one.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Body being sent.
    pub fn body(&self) -> Option<&Rc<Vec<u8>>> {
        self.output.as_ref().map(|output| &output.body)
    }

    /// Makes progress without blocking.
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
            // A client may send its next request before it has read the response.
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

    /// Starts sending a response.
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
    /// Bytes still to be sent.
    fn rest(&self) -> Option<&[u8]> {
        let rest = match self.sent.checked_sub(self.head.len()) {
            None => &self.head[self.sent..],
            Some(sent) => &self.body[sent..],
        };
        (!rest.is_empty()).then_some(rest)
    }
}
