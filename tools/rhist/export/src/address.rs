// SPDX-License-Identifier: MIT OR Apache-2.0

//! Address of a server as in a URL, `HOST:PORT`: to listen on, to push to, and as HTTP clients send
//! it (`Host`).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ureq::http::uri::Authority;

/// A host with an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name in lower case, or an IP address without brackets.
    host: String,
    port: Option<u16>,
}

/// The text does not parse as an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid;

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected HOST:PORT, such as localhost:9953 or [2001:db8::7]:9953, with a port up to 65535")
    }
}

impl Address {
    /// A name in lower case, or an IP address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, if the text gives one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns whether the host is an IP address. Unlike a name, nobody can redirect it through
    /// DNS.
    pub fn is_ip(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok()
    }
}

impl FromStr for Address {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let authority: Authority = text.parse().map_err(|_| Invalid)?;
        let host = authority.host();
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = !host.is_empty() && inner.is_none_or(|host| host.parse::<IpAddr>().is_ok());
        // The rest is the port. Rejects user information and passwords, which stand before the
        // host.
        let rest = text.strip_prefix(host).ok_or(Invalid)?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port.parse().map_err(|_| Invalid)?),
            None if rest.is_empty() => None,
            None => return Err(Invalid),
        };
        // A fully qualified name may end with a dot.
        let host = inner.unwrap_or(host).trim_end_matches('.').to_ascii_lowercase();
        is_host.then_some(Self { host, port }).ok_or(Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(String, Option<u16>, bool)> {
        let address: Address = text.parse().ok()?;
        Some((address.host().to_owned(), address.port(), address.is_ip()))
    }

    #[test]
    fn addresses() {
        let known = |host: &str, port, is_ip| Some((host.to_owned(), port, is_ip));
        assert_eq!(parse("LocalHost:9953"), known("localhost", Some(9953), false));
        assert_eq!(parse("web.example."), known("web.example", None, false));
        assert_eq!(parse("127.0.0.1:0"), known("127.0.0.1", Some(0), true));
        assert_eq!(parse("[::1]:80"), known("::1", Some(80), true));
        assert_eq!(parse("[::1]"), known("::1", None, true));
        for wrong in [
            "", ":80", "a:b", "a:70000", "a:", "::1", "[::1", "[a]:80", "u@h:80", "a/b", "a b", "http://a", "a:1:2",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
