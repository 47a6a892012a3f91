// SPDX-License-Identifier: MIT OR Apache-2.0

//! Allowed host names of a service that is reachable only from its own machine.
//!
//! A web page can point its own name to the visitor's machine after it was loaded (DNS rebinding).
//! To the browser, the service then belongs to the page, which may read it. However, `Host` is
//! still the name of the page.

use std::net::IpAddr;

use crate::address::Address;

/// Allowed host names.
#[derive(Debug)]
pub struct Hosts {
    /// Lower-case names. `None` if other machines can connect: these are meant to read it, and may
    /// use any name.
    names: Option<Vec<String>>,
}

impl Hosts {
    /// Names for a service on `ip`: `localhost`, the host name `machine`, and the names `given`.
    pub fn new<'a>(ip: IpAddr, machine: &str, given: impl IntoIterator<Item = &'a Address>) -> Self {
        // Includes the first label. A name without a dot cannot be a domain on the internet.
        let short = machine.split('.').next().unwrap_or_default();
        let own = ["localhost", machine, short].map(str::to_ascii_lowercase);
        let given = given.into_iter().map(|address| address.host().to_owned());
        Self {
            names: ip
                .to_canonical()
                .is_loopback()
                .then(|| own.into_iter().chain(given).collect()),
        }
    }

    /// Returns whether to answer a request with this `Host`. IP addresses are allowed, since a page
    /// cannot use them as its name.
    pub fn accepts(&self, host: &str) -> bool {
        let Some(names) = &self.names else {
            return true;
        };
        let address = host.parse::<Address>();
        address.is_ok_and(|address| address.is_ip() || names.iter().any(|name| name == address.host()))
    }

    /// Response to a client with another `Host`.
    pub fn refusal(&self, host: &str) -> String {
        let host: String = host.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
        format!(
            "This service is for clients of its machine, who ask it by an IP address or one of these names: {}. Not by {host}: so \
             a page of another site would ask. If that is a proxy of yours, name it with --host.\n",
            self.names.as_deref().unwrap_or_default().join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(ip: &str, given: &[&str]) -> Hosts {
        let given: Vec<Address> = given.iter().map(|text| text.parse().unwrap()).collect();
        Hosts::new(ip.parse().unwrap(), "Web1.example.org", &given)
    }

    #[test]
    fn names_of_this_machine() {
        for ip in ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1"] {
            let hosts = hosts(ip, &["metrics.example:9953"]);
            for host in [
                "127.0.0.1:9953",
                "[::1]:9953",
                "192.0.2.7",
                "localhost",
                "LOCALHOST:9953",
                "localhost.",
                "web1",
                "WEB1:9953",
                "web1.example.org:9953",
                "metrics.example",
            ] {
                assert!(hosts.accepts(host), "{host}");
            }
            for host in [
                "",
                "evil.example",
                "evil.example:9953",
                "localhost.evil.example",
                "127.0.0.1.evil.example",
                "web1.evil.example",
                "127.0.0.1@evil.example",
                "http://localhost",
                "localhost evil",
                "[localhost]",
                "::1",
            ] {
                assert!(!hosts.accepts(host), "{host}");
            }
        }
    }

    #[test]
    fn others_have_any_name_for_it() {
        for ip in ["0.0.0.0", "::", "192.0.2.7"] {
            assert!(hosts(ip, &[]).accepts("node.example:9953"), "{ip}");
        }
    }

    #[test]
    fn what_is_refused_is_told() {
        let refusal = hosts("::1", &[]).refusal(&format!("evil\u{1b}[31m.example{}", "x".repeat(500)));
        assert!(
            refusal.contains("localhost, web1.example.org, web1. Not by evil[31m.example"),
            "{refusal}"
        );
        assert!(refusal.len() < 400 && !refusal.contains('\u{1b}'));
    }
}
