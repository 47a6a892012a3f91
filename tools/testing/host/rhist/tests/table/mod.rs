// SPDX-License-Identifier: GPL-2.0

//! The table of errors that host tests, oracles and the guest test read: `errors.tsv`.

use kernel::error::code::*;
use kernel::error::Error;

/// An error: a command and its answer.
#[allow(dead_code, reason = "oracles read the command only")]
pub(crate) struct Row {
    pub(crate) command: Vec<u8>,
    pub(crate) errno: Error,
    pub(crate) caret: usize,
    /// C's sentence, rhist's own, or both with a colon between.
    pub(crate) sentence: &'static str,
}

/// Returns the rows with one of these first columns.
pub(crate) fn rows(events: &[&str]) -> Vec<Row> {
    include_str!("../../../../selftests/hist/errors.tsv")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| <[_; 4]>::try_from(line.split('\t').collect::<Vec<_>>()).expect(line))
        .filter(|columns| events.contains(&columns[0]))
        .map(|[_, errno, marked, sentence]| {
            let (before, after) = marked.split_once('^').expect("no caret");
            let text = after.trim_end_matches('^');
            Row {
                command: unescape(&[before, text].concat()),
                errno: errno_of(errno),
                caret: unescape(before).len() + after.len() - text.len(),
                sentence,
            }
        })
        .collect()
}

fn errno_of(name: &str) -> Error {
    let known = [
        ("EPERM", EPERM),
        ("ENOENT", ENOENT),
        ("ESRCH", ESRCH),
        ("E2BIG", E2BIG),
        ("ENOMEM", ENOMEM),
        ("EEXIST", EEXIST),
        ("EINVAL", EINVAL),
        ("EDOM", EDOM),
        ("ERANGE", ERANGE),
    ];
    known.iter().find(|row| row.0 == name).expect(name).1
}

/// Replaces each `\xNN` by that byte.
fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}
