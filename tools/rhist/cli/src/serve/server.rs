// SPDX-License-Identifier: MIT OR Apache-2.0

//! A server for scrapes: one thread, and sockets that never wait.
//!
//! Libraries that have a thread for each client let clients who are slow take threads and memory without bound. Here a
//! client has a deadline for all that it does, there are few clients at once, and few different responses in memory.

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
use super::http::Request;
use super::http::Response;

/// Connections at once. One more takes the place of that which has waited longest.
const MAX_CONNECTIONS: usize = 32;

/// Different bodies at once: those that are being sent, and the one that is made. Who is slow gets no more of the oldest.
const MAX_BODIES: usize = 3;

/// Bodies that are smaller are none of these.
const SMALL_BODY: usize = 64 << 10;

/// Requests that are answered at once: then others have their turn.
const MAX_AT_ONCE: usize = 8;

/// How long nobody is accepted after that has failed, as there are no more files, unless a connection ends before.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens, and answers.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    connections: Vec<Connection>,
    /// Until then nobody is accepted: who waits could not be, and would wake poll() all the time.
    paused: Option<Instant>,
    /// Responses by status, for who wants to know.
    pub counts: Vec<(u16, u64)>,
    /// Connections that were ended since they were too slow, or made room for others.
    pub dropped: u64,
}

impl Server {
    /// Listens on an address, the first one that is possible if a name has several.
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

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits until one of `wake` can be read, something comes from a client, or until a time; and answers clients. Returns
    /// which of `wake` can be read.
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

    /// Which of `wake` can be read, and of the listener and connections, with which something can be done.
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

    /// Goes on with a connection. Returns whether it stays.
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
        // One at a time: poll() says when there are more.
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            // Whoever it was is gone, or there is nobody.
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

    /// Ends connections that keep the oldest of too many bodies in memory.
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
