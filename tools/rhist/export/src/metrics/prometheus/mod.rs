// SPDX-License-Identifier: MIT OR Apache-2.0

//! Formats of Prometheus: its text format, the text format of OpenMetrics, and protocol buffers.
//! Only protocol buffers carry native histograms.

mod buckets;
mod message;
mod protobuf;
mod text;

use super::Family;

/// Exposition format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Text,
    /// The text format of OpenMetrics, version 1.0.0.
    OpenMetrics,
    /// Messages of `io.prometheus.client.MetricFamily`, each preceded by its length.
    Protobuf,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Protobuf, Self::OpenMetrics, Self::Text];

    /// Chooses the format that an `Accept` header prefers; of equal ones, the first in the header.
    /// Text if the header is empty or accepts no format known here.
    pub fn accepted(accept: &str) -> Self {
        let mut best = (Self::Text, 0.0);
        for range in split(accept, ',') {
            let mut parts = split(range, ';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
            let get = |name: &str| {
                parameters
                    .iter()
                    .find(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.trim_matches('"'))
            };
            let quality = get("q").map_or(1.0, |q| q.parse::<f64>().unwrap_or(0.0));
            let format = match kind.to_ascii_lowercase().as_str() {
                "application/vnd.google.protobuf"
                    if get("proto") == Some("io.prometheus.client.MetricFamily")
                        && get("encoding").is_none_or(|encoding| encoding == "delimited") =>
                {
                    Self::Protobuf
                }
                "application/openmetrics-text"
                    if get("version").is_none_or(|version| matches!(version, "1.0.0" | "0.0.1")) =>
                {
                    Self::OpenMetrics
                }
                "text/plain" | "text/*" | "*/*" => Self::Text,
                _ => continue,
            };
            if quality > best.1 {
                best = (format, quality);
            }
        }
        best.0
    }

    /// Value of `Content-Type` for this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// Appends a family.
    pub fn write(self, family: &Family<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Text | Self::OpenMetrics => text::write(family, self == Self::OpenMetrics, out),
            Self::Protobuf => protobuf::write(family, out),
        }
    }

    /// Appends the end mark after the last family, if the format needs one.
    pub fn end(self, out: &mut Vec<u8>) {
        if self == Self::OpenMetrics {
            out.extend_from_slice(b"# EOF\n");
        }
    }
}

/// Splits a header at the separators outside quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c| {
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
        c == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests;
