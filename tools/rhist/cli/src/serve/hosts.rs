// SPDX-License-Identifier: MIT OR Apache-2.0

//! By which names clients may ask a service that only this machine can reach.
//!
//! A web page can give its own name an address of the visitor's machine, after it was loaded (DNS rebinding): to the browser,
//! the service is part of the page then, which may read it. But `Host` is still the name of the page.

use std::net::IpAddr;

use rhist_core::address::Address;

/// The names.
#[derive(Debug)]
pub struct Hosts {
    /// `None` if others than this machine can connect, who are meant to read it, and have any name for it.
    names: Option<Vec<String>>,
}

impl Hosts {
    /// The names for a service on `ip`: `localhost`, the host name `machine`, and `given`.
    pub fn new<'a>(ip: IpAddr, machine: &str, given: impl IntoIterator<Item = &'a Address>) -> Self {
        // Its first label, too. A name without a dot is nobody's domain.
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

    /// Whether a request with this `Host` is answered. No page can have the name of an IP address.
    pub fn accepts(&self, host: &str) -> bool {
        let Some(names) = &self.names else {
            return true;
        };
        let address = host.parse::<Address>();
        address.is_ok_and(|address| address.is_ip() || names.iter().any(|name| name == address.host()))
    }

    /// What a client is told whose `Host` is none of them.
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
