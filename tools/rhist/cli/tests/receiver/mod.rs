// SPDX-License-Identifier: MIT OR Apache-2.0

//! A receiver of OTLP on this machine.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

/// Answers all requests with this status. Returns the URL, and the head and body of each request.
pub fn receiver(status: &'static str) -> (String, mpsc::Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            loop {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    match reader.read_line(&mut head) {
                        Ok(1..) => (),
                        _ => break,
                    }
                }
                let head = head.to_lowercase();
                let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) else {
                    break;
                };
                let mut body = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                sender.send((head, body)).unwrap();
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    (url, requests)
}
