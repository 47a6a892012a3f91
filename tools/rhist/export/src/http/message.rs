// SPDX-License-Identifier: MIT OR Apache-2.0

//! Requests and responses of HTTP/1.1, as far as needed for scrapes: `GET` and `HEAD` without a
//! body.

use std::rc::Rc;

/// Limit of a request's head, in bytes. Prometheus sends some hundred.
pub const MAX_HEAD: usize = 8 << 10;

/// Limit of the number of headers.
const MAX_HEADERS: usize = 64;

/// A parsed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Path without the query.
    pub path: String,
    /// `Accept`; empty if missing. Repeated headers are joined to one list.
    pub accept: String,
    /// `Host`, which browsers set to the host of the page's address.
    pub host: Option<String>,
    /// Whether to send only the head of the response.
    pub is_head: bool,
    /// Whether another request may follow.
    pub keep_alive: bool,
}

/// A response to be sent.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Value of `Content-Type`.
    pub content_type: &'static str,
    /// Shared by all connections that send it.
    pub body: Rc<Vec<u8>>,
}

/// Result of parsing received bytes.
#[derive(Debug)]
pub enum Parsed {
    /// Incomplete request.
    Partial,
    /// A request, with its length in bytes.
    Request(Request, usize),
    /// An invalid or unsupported request, with the response, and whether to send only its head.
    Refused(Response, bool),
}

/// Parses the head of a request.
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => return Parsed::Partial,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return Parsed::Refused(Response::text(431, "the head of this request is too large\n"), false);
        }
        Err(error) => {
            let response = Response::text(400, &format!("bad request: {error}\n"));
            return Parsed::Refused(response, false);
        }
    };
    let all = |name: &str| {
        let headers = head.headers.iter();
        let same = headers.filter(|header| header.name.eq_ignore_ascii_case(name));
        let values = same.map(|header| String::from_utf8_lossy(header.value).trim().to_owned());
        values.collect::<Vec<_>>()
    };
    let find = |name: &str| all(name).into_iter().next();
    let is_head = head.method == Some("HEAD");
    let refuse = |why: &str| Parsed::Refused(Response::text(400, &format!("bad request: {why}\n")), is_head);
    // Rejects requests that two parsers may read differently.
    let lengths = all("content-length");
    if lengths.len() > 1 {
        return refuse("more than one Content-Length");
    }
    let (path, authority) = split(head.path.unwrap_or_default());
    let hosts = all("host");
    let host = match hosts.as_slice() {
        [] if head.version == Some(1) => return refuse("no Host"),
        [] => authority.map(str::to_owned),
        [host] if authority.is_none_or(|authority| authority.eq_ignore_ascii_case(host)) => Some(host.clone()),
        [_] => return refuse("target and Host name different hosts"),
        _ => return refuse("more than one Host"),
    };
    let has_body = find("transfer-encoding").is_some() || lengths.iter().any(|length| length != "0");
    if has_body {
        return Parsed::Refused(Response::text(413, "this server accepts no request bodies\n"), is_head);
    }
    if !is_head && head.method != Some("GET") {
        return Parsed::Refused(Response::text(405, "this server answers GET and HEAD only\n"), false);
    }
    let connection = find("connection").unwrap_or_default().to_ascii_lowercase();
    let keep_alive = match head.version {
        Some(1) => !connection.contains("close"),
        _ => connection.contains("keep-alive"),
    };
    let request = Request {
        path: path.to_owned(),
        accept: all("accept").join(","),
        host,
        is_head,
        keep_alive,
    };
    Parsed::Request(request, length)
}

/// Splits a target into path and host: `/metrics` is the path of `/metrics`, and of
/// `http://localhost:9953/metrics`, the form that proxies send.
fn split(target: &str) -> (&str, Option<&str>) {
    let (path, authority) = match target.split_once("://") {
        Some((scheme, rest)) if ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            let path = if path.starts_with('/') { path } else { "/" };
            (path, Some(authority))
        }
        _ => (target, None),
    };
    (path.split('?').next().unwrap_or_default(), authority)
}

impl Response {
    /// A plain-text response.
    pub fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: Rc::new(text.as_bytes().to_vec()),
        }
    }

    /// Formats status line and headers.
    pub fn head(&self, keep_alive: bool) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            _ => "Error",
        };
        let allow = if self.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let connection = if keep_alive { "keep-alive" } else { "close" };
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n\
             {allow}Connection: {connection}\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(text: &str) -> Request {
        match parse(text.as_bytes()) {
            Parsed::Request(request, length) => {
                assert_eq!(length, text.len());
                request
            }
            other => panic!("{other:?}"),
        }
    }

    fn status(text: &str) -> u16 {
        match parse(text.as_bytes()) {
            Parsed::Refused(response, _) => response.status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests() {
        let get = request("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nACCEPT: text/plain;q=0.5 \r\n\r\n");
        assert_eq!(
            (get.path.as_str(), get.accept.as_str()),
            ("/metrics", "text/plain;q=0.5")
        );
        assert_eq!(get.host.as_deref(), Some("a"));
        assert!(get.keep_alive && !get.is_head);
        assert!(!request("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n").keep_alive);
        assert!(!request("HEAD / HTTP/1.0\r\n\r\n").keep_alive);
        assert!(request("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").is_head);
    }

    #[test]
    fn targets_with_a_host() {
        for (target, host, path) in [
            ("http://localhost:9953/metrics?x=http://y", "localhost:9953", "/metrics"),
            ("HTTP://[::1]:9953/healthz", "[::1]:9953", "/healthz"),
            ("http://LocalHost", "localhost", "/"),
            ("http://localhost?x", "localhost", "/"),
            ("/x://y/metrics", "a", "/x://y/metrics"),
            ("ftp://localhost/metrics", "a", "ftp://localhost/metrics"),
        ] {
            let get = request(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!((get.path.as_str(), get.host.as_deref()), (path, Some(host)), "{target}");
        }
        // HTTP/1.0 requires no Host, so the target's host is used.
        let old = request("GET http://evil.example/metrics HTTP/1.0\r\n\r\n");
        assert_eq!(old.host.as_deref(), Some("evil.example"));
        assert_eq!(request("GET /metrics HTTP/1.0\r\n\r\n").host, None);
    }

    #[test]
    fn several_lines_are_one_list() {
        let get = request("GET / HTTP/1.1\r\nAccept: text/plain;q=0.5\r\nHost: a\r\naccept: */*;q=0.1\r\n\r\n");
        assert_eq!(get.accept, "text/plain;q=0.5,*/*;q=0.1");
    }

    #[test]
    fn a_head_that_is_refused_gets_no_body() {
        let is_head = |text: &str| match parse(text.as_bytes()) {
            Parsed::Refused(_, is_head) => is_head,
            other => panic!("{other:?}"),
        };
        assert!(is_head("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"));
        assert!(!is_head("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"));
    }

    #[test]
    fn what_is_refused() {
        assert_eq!(status("POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
        assert_eq!(
            status("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
            413
        );
        assert_eq!(
            status("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
            413
        );
        assert_eq!(status("\x16\x03\x01\x02\x00\x01"), 400);
        assert_eq!(status(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(MAX_HEAD))), 431);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65))), 431);
    }

    #[test]
    fn a_long_line_is_not_called_a_header() {
        match parse(format!("GET /{} HTTP/1.1\r\n", "a".repeat(MAX_HEAD)).as_bytes()) {
            Parsed::Refused(response, _) => assert_eq!(*response.body, b"the head of this request is too large\n"),
            other => panic!("{other:?}"),
        }
    }

    /// RFC 9112, 3.2 and 6.3: a different parser may find another request in the same bytes.
    #[test]
    fn what_could_be_read_in_two_ways() {
        for (target, headers) in [
            ("/", ""),
            ("/", "Host: a\r\nHost: a\r\n"),
            ("/", "Host: a\r\nhost: b\r\n"),
            ("/", "Host: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n"),
            ("/", "Host: a\r\nContent-Length: 0\r\ncontent-length: 5\r\n"),
            ("http://b/metrics", "Host: a\r\n"),
            ("http://a:1/metrics", "Host: a\r\n"),
            ("http://a@b/metrics", "Host: b\r\n"),
            ("http:///metrics", "Host: a\r\n"),
        ] {
            for method in ["GET", "HEAD"] {
                let text = format!("{method} {target} HTTP/1.1\r\n{headers}\r\n");
                assert_eq!(status(&text), 400, "{text}");
            }
        }
        assert_eq!(status("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
        assert_eq!(
            request("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
                .host
                .as_deref(),
            Some("a")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(&bytes);
        }

        #[test]
        fn what_is_cut_is_waited_for(cut in 0usize..40) {
            let text = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
            prop_assert!(matches!(parse(&text[..cut]), Parsed::Partial));
        }
    }
}
