// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where batches go.

use std::fmt;
use std::time::Duration;

use ureq::http::HeaderName;
use ureq::http::HeaderValue;
use ureq::http::Uri;
use ureq::http::header;

use super::Error;
use crate::address::Address;
use crate::address::Invalid;
use crate::problem::named;

/// Where OTLP has metrics, below the address of a receiver.
const METRICS: &str = "/v1/metrics";

/// What is said of each request by those who make it: another word would make it another request, or none.
const MADE: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::TRANSFER_ENCODING,
];

/// The address of a receiver, and what is sent along.
#[derive(Clone)]
pub struct Endpoint {
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// How long a request may take, from the look-up of the name to the end of the answer. The
    /// look-up itself ends when the machine's resolver gives up.
    pub timeout: Duration,
}

impl Endpoint {
    /// A receiver on this machine, as the specification of OTLP has it.
    pub const DEFAULT: &str = "http://localhost:4318/v1/metrics";
    /// As in the specification of the exporter.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// The receiver at `url`, which may begin with its host. Without a path, it is that of OTLP's metrics.
    pub fn new(url: &str) -> Result<Self, Error> {
        let error = |why: &str| Error(format!("{}: {why}", named(url)));
        let whole = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = whole
            .parse()
            .map_err(|_| error("no URL, such as http://localhost:4318"))?;
        match uri.scheme_str() {
            Some("http") => (),
            Some("https") => {
                return Err(error(
                    "rhist has no TLS: push to a collector on this machine, which can send it on encrypted",
                ));
            }
            _ => return Err(error("a URL begins with http:// here")),
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
            return Err(error("nobody listens on port 0"));
        }
        // A `Uri` has a path, whether there was one or not.
        let behind = whole
            .split_once("://")
            .and_then(|(_, rest)| rest.strip_prefix(authority.as_str()));
        let has_path = behind.is_some_and(|behind| behind.starts_with('/'));
        let path = if has_path { uri.path() } else { METRICS };
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(Endpoint {
            url: format!("http://{authority}{path}{query}"),
            headers: Vec::new(),
            timeout: Self::TIMEOUT,
        })
    }

    /// The receiver of which this is the address for all signals.
    pub(super) fn base(url: &str) -> Result<Self, Error> {
        let end = url.find(['?', '#']).unwrap_or(url.len());
        let (address, rest) = url.split_at(end);
        Self::new(&format!("{}{METRICS}{rest}", address.trim_end_matches('/')))
    }

    /// Sends a header with each request. One of the same name takes its place. Some are for HTTP alone to set.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let name: HeaderName = name
            .parse()
            .map_err(|_| Error(format!("{name:?} is no name of a header")))?;
        if MADE.contains(&name) {
            return Err(Error(format!("the header {name} is set by rhist: leave it out")));
        }
        // The value is a secret.
        let value = value.parse().map_err(|_| {
            Error(format!(
                "the value of the header {name} has characters that none can have"
            ))
        })?;
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value));
        Ok(())
    }

    /// Its address.
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
