// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receivers of batches.

use std::fmt;
use std::time::Duration;

use rhist_core::problem::named;
use ureq::http::HeaderName;
use ureq::http::HeaderValue;
use ureq::http::Uri;
use ureq::http::header;

use super::Error;
use super::Signal;
use crate::address::Address;
use crate::address::Invalid;

/// Headers that the HTTP client sets itself. Other values would change the meaning of a request, or
/// break it.
const MADE: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::TRANSFER_ENCODING,
];

/// Address of a receiver, with headers and timeout.
#[derive(Clone)]
pub struct Endpoint {
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Limit of a request, from the look-up of the name to the end of the answer. The look-up
    /// itself ends only when the machine's resolver gives up.
    pub timeout: Duration,
}

impl Endpoint {
    /// Receiver on this machine, as the specification of OTLP defines it.
    pub const DEFAULT: &str = "http://localhost:4318";
    /// Default timeout from the specification of the exporter.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// Parses the address of a receiver of metrics: see [`Self::of()`].
    pub fn new(url: &str) -> Result<Self, Error> {
        Self::of(Signal::Metrics, url)
    }

    /// Parses the address of a receiver. The scheme may be missing; without a path, adds OTLP's.
    pub fn of(signal: Signal, url: &str) -> Result<Self, Error> {
        let error = |why: &str| Error(format!("{}: {why}", named(url)));
        let whole = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = whole
            .parse()
            .map_err(|_| error("expected a URL, such as http://localhost:4318"))?;
        match uri.scheme_str() {
            Some("http") => (),
            Some("https") => {
                return Err(error(
                    "rhist has no TLS: push to a collector on this machine, which can send it on encrypted",
                ));
            }
            _ => return Err(error("the URL has to begin with http://")),
        }
        let authority = uri.authority().ok_or_else(|| error("the URL has no host"))?;
        if authority.as_str().contains('@') {
            return Err(Error(
                "the URL has a password: put it into a header, where no process list shows it".to_owned(),
            ));
        }
        let address: Address = authority
            .as_str()
            .parse()
            .map_err(|why: Invalid| error(&why.to_string()))?;
        if address.port() == Some(0) {
            return Err(error("port 0 is not valid"));
        }
        // A `Uri` has a path even if the text has none.
        let behind = whole
            .split_once("://")
            .and_then(|(_, rest)| rest.strip_prefix(authority.as_str()));
        let has_path = behind.is_some_and(|behind| behind.starts_with('/'));
        let path = if has_path { uri.path() } else { signal.path() };
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(Endpoint {
            url: format!("http://{authority}{path}{query}"),
            headers: Vec::new(),
            timeout: Self::TIMEOUT,
        })
    }

    /// Parses the address of a receiver for all signals.
    pub(super) fn base(signal: Signal, url: &str) -> Result<Self, Error> {
        let end = url.find(['?', '#']).unwrap_or(url.len());
        let (address, rest) = url.split_at(end);
        let (address, path) = (address.trim_end_matches('/'), signal.path());
        Self::of(signal, &format!("{address}{path}{rest}"))
    }

    /// Adds a header to each request, replacing one of the same name. Fails for headers that only
    /// the HTTP client may set.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let name: HeaderName = name
            .parse()
            .map_err(|_| Error(format!("{name:?} is not a name of a header")))?;
        if MADE.contains(&name) {
            return Err(Error(format!("the header {name} is set by rhist: leave it out")));
        }
        // Keep the value out of messages: it is a secret.
        let value = value.parse().map_err(|_| {
            Error(format!(
                "the value of the header {name} has characters that headers cannot have"
            ))
        })?;
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value));
        Ok(())
    }

    /// Complete URL for requests.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}
