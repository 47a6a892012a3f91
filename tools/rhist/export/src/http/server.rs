// SPDX-License-Identifier: MIT OR Apache-2.0

//! Server for scrapes: a single thread with non-blocking sockets.
//!
//! Libraries with a thread for each client let slow clients use up threads and memory without
//! bound. Here, each step of a client has a deadline, and the numbers of clients and of different
//! responses in memory are small.

use std::io;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::ToSocketAddrs;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;

use super::connection::Connection;
use super::connection::Progress;
use super::message::Request;
use super::message::Response;

/// Limit of connections. A new one replaces the one with the oldest activity.
const MAX_CONNECTIONS: usize = 32;

/// Limit of different bodies in memory: the ones being sent, and the new one. Beyond it,
/// connections with the oldest body are closed.
const MAX_BODIES: usize = 3;

/// Bodies up to this size do not count.
const SMALL_BODY: usize = 64 << 10;

/// Limit of requests answered in one turn, so that all clients get their share.
const MAX_AT_ONCE: usize = 8;

/// Pause after accept() fails for lack of file descriptors. It ends early if a connection is
/// closed.
const PAUSE: Duration = Duration::from_secs(1);

/// Accepts connections, and answers requests.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    connections: Vec<Connection>,
    /// End of a pause. Meanwhile the listener is not polled: a waiting client that cannot be
    /// accepted would wake poll() all the time.
    paused: Option<Instant>,
    /// Numbers of responses, by status.
    pub counts: Vec<(u16, u64)>,
    /// Number of connections closed because they were too slow, or to make way for others.
    pub dropped: u64,
}

impl Server {
    /// Listens on an address. If a name has several, uses the first possible one.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            connections: Vec::new(),
            paused: None,
            counts: Vec::new(),
            dropped: 0,
        })
    }

    /// Address that it listens on.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits until one of `wake` is readable, a client needs attention, or the time is over.
    /// Answers clients. Returns which of `wake` are readable.
    pub fn turn<const N: usize>(
        &mut self,
        wake: [BorrowedFd<'_>; N],
        until: Option<Instant>,
        answer: &mut dyn FnMut(&Request, &Self) -> Response,
    ) -> io::Result<[bool; N]> {
        let deadlines = self.connections.iter().map(Connection::deadline);
        let until = deadlines.chain(until).chain(self.paused).min();
        let (woken, ready) = self.wait(wake, until)?;
        let now = Instant::now();
        let mut connections = std::mem::take(&mut self.connections);
        let before = connections.len();
        let mut at_once = 0;
        let mut place = 0;
        connections.retain_mut(|connection| {
            let is_ready = ready.get(place + 1).copied().unwrap_or(false);
            place += 1;
            let stays = if is_ready {
                self.serve(connection, now, &mut at_once, answer)
            } else {
                true
            };
            let is_late = connection.deadline() <= now;
            self.dropped += u64::from(stays && is_late);
            stays && !is_late
        });
        self.connections = connections;
        self.paused = self
            .paused
            .filter(|until| *until > now && self.connections.len() == before);
        if ready.first() == Some(&true) {
            self.accept(now);
        }
        self.bound_bodies();
        Ok(woken)
    }

    /// Polls. Returns which of `wake` are readable, and for the listener and each connection,
    /// whether it is ready.
    fn wait<const N: usize>(
        &self,
        wake: [BorrowedFd<'_>; N],
        until: Option<Instant>,
    ) -> io::Result<([bool; N], Vec<bool>)> {
        let mut fds: Vec<PollFd<'_>> = wake.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let interest = self.paused.map_or(PollFlags::IN, |_| PollFlags::empty());
        fds.push(PollFd::new(&self.listener, interest));
        fds.extend(
            self.connections
                .iter()
                .map(|one| PollFd::new(one.stream(), one.interest())),
        );
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(([false; N], Vec::new())),
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let woken = std::array::from_fn(|_| ready.next().unwrap_or(false));
        Ok((woken, ready.collect()))
    }

    /// Makes progress with a connection. Returns whether to keep it.
    fn serve(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        at_once: &mut usize,
        answer: &mut dyn FnMut(&Request, &Self) -> Response,
    ) -> bool {
        loop {
            match connection.go_on(now) {
                Progress::Over => return false,
                Progress::Asks(request) => {
                    let response = answer(&request, self);
                    self.count(response.status);
                    connection.answer(&response, request.keep_alive, request.is_head, now);
                    *at_once += 1;
                }
                Progress::Refuses(response, is_head) => {
                    self.count(response.status);
                    connection.answer(&response, false, is_head, now);
                }
                Progress::Waits => return true,
            }
            if *at_once >= MAX_AT_ONCE {
                return true;
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        // One connection per call: poll() reports further ones.
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            // No client is waiting, or it has closed the connection.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => return,
            Err(_) => {
                self.paused = Some(now + PAUSE);
                return;
            }
        };
        let Ok(connection) = Connection::new(stream, now) else {
            return;
        };
        if self.connections.len() >= MAX_CONNECTIONS {
            let oldest = self.connections.iter().enumerate().min_by_key(|(_, one)| one.since());
            if let Some((place, _)) = oldest {
                self.connections.swap_remove(place);
                self.dropped += 1;
            }
        }
        self.connections.push(connection);
    }

    /// Closes connections with the oldest body while too many different ones are in memory.
    fn bound_bodies(&mut self) {
        loop {
            let mut bodies: Vec<(*const Vec<u8>, Instant)> = Vec::new();
            for connection in &self.connections {
                let Some(body) = connection.body().filter(|body| body.len() > SMALL_BODY) else {
                    continue;
                };
                let body = Rc::as_ptr(body);
                match bodies.iter_mut().find(|(other, _)| *other == body) {
                    Some((_, since)) => *since = connection.since().min(*since),
                    None => bodies.push((body, connection.since())),
                }
            }
            if bodies.len() < MAX_BODIES {
                return;
            }
            let Some((oldest, _)) = bodies.into_iter().min_by_key(|(_, since)| *since) else {
                return;
            };
            let before = self.connections.len();
            self.connections
                .retain(|one| one.body().is_none_or(|body| Rc::as_ptr(body) != oldest));
            self.dropped += (before - self.connections.len()) as u64;
        }
    }

    fn count(&mut self, status: u16) {
        match self.counts.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((status, 1)),
        }
    }
}
