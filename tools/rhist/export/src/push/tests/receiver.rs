// SPDX-License-Identifier: MIT OR Apache-2.0

//! A receiver that answers each request as a test demands.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::net::SocketAddrV4;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rustix::net::AddressFamily;
use rustix::net::SocketFlags;
use rustix::net::SocketType;

use crate::push::Endpoint;

/// Far more than anything here takes, also on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it is so.
pub fn wait_until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "waited too long");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A port bound by the test, which no other process can take, and which refuses connections until
/// [`Receiver::listen`].
pub struct Port(OwnedFd);

impl Port {
    pub fn reserve() -> Self {
        let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        Port(socket)
    }

    pub fn endpoint(&self) -> Endpoint {
        let address = SocketAddr::try_from(rustix::net::getsockname(&self.0).unwrap()).unwrap();
        endpoint(address)
    }

    pub fn listen(self) -> TcpListener {
        rustix::net::listen(&self.0, 128).unwrap();
        self.0.into()
    }
}

/// Lets nobody through until it is opened.
#[derive(Default)]
pub struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    pub fn pass(&self) {
        let is_open = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}

/// An endpoint whose requests time out no earlier than the test.
fn endpoint(address: SocketAddr) -> Endpoint {
    let mut endpoint = Endpoint::new(&format!("http://{address}")).unwrap();
    endpoint.timeout = PATIENCE;
    endpoint
}

/// A request that the receiver got.
#[derive(Clone, Debug)]
pub struct Request {
    /// In lower case.
    pub head: String,
    pub body: Vec<u8>,
    pub when: Instant,
}

/// Answers the request with this number, from 0, and this body. The connection ends after an error,
/// or if the answer says so.
pub type Behaviour = dyn Fn(usize, &[u8], &mut TcpStream) -> io::Result<()> + Send + Sync;

pub struct Receiver {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    pub fn start(behaviour: impl Fn(usize, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), behaviour)
    }

    pub fn listen(
        listener: TcpListener,
        behaviour: impl Fn(usize, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::of(listener, move |number, _, stream| behaviour(number, stream))
    }

    /// Chooses the answer by the body of the request.
    pub fn start_by_body(behaviour: impl Fn(&[u8], &mut TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::of(listener, move |_, body, stream| behaviour(body, stream))
    }

    fn of(
        listener: TcpListener,
        behaviour: impl Fn(usize, &[u8], &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (all, behaviour): (_, Arc<Behaviour>) = (requests.clone(), Arc::new(behaviour));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (all, behaviour) = (all.clone(), behaviour.clone());
                thread::spawn(move || serve(stream, &all, &*behaviour));
            }
        });
        Receiver { address, requests }
    }

    pub fn endpoint(&self) -> Endpoint {
        endpoint(self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Bodies of all requests, as text.
    pub fn bodies(&self) -> Vec<String> {
        let requests = self.requests();
        requests
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect()
    }
}

fn serve(mut stream: TcpStream, all: &Mutex<Vec<Request>>, behaviour: &Behaviour) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        let mut body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let number = {
            let mut all = all.lock().unwrap();
            let when = Instant::now();
            let body = body.clone();
            all.push(Request { head, body, when });
            all.len() - 1
        };
        behaviour(number, &body, &mut stream).ok()?;
    }
}

/// Sends a complete answer.
pub fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// Reports success.
pub fn accept(stream: &mut TcpStream) -> io::Result<()> {
    answer(stream, "200 OK", "Content-Type: application/x-protobuf\r\n", b"")
}

/// Ends the connection.
pub fn close() -> io::Result<()> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Keeps the connection open without an answer.
pub fn hang() -> io::Result<()> {
    loop {
        thread::park();
    }
}
