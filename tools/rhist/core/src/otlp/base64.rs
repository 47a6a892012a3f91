// SPDX-License-Identifier: MIT OR Apache-2.0

//! Base64 (RFC 4648), in which JSON carries bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Decodes a text. `None` if it is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let digits = text.trim_end_matches('=').as_bytes();
    for chunk in digits.chunks(4) {
        let mut bits = 0;
        for &digit in chunk {
            // Accepts both alphabets of RFC 4648, like all parsers of protobuf.
            let digit = match digit {
                b'-' => b'+',
                b'_' => b'/',
                digit => digit,
            };
            bits = bits << 6 | DIGITS.iter().position(|&known| known == digit)?;
        }
        bits <<= 6 * (4 - chunk.len());
        match chunk.len() {
            1 => return None,
            length => bytes.extend_from_slice(&(bits as u32).to_be_bytes()[1..length]),
        }
    }
    Some(bytes)
}
