// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of functions in flame graphs.

use crate::table::Frame;

/// Name of a frame's function without the offset, so that it is one function wherever it calls
/// from. Escaped as [`Frame`] shows it.
pub fn function(frame: &Frame) -> String {
    let mut text = frame.to_string();
    text.truncate(without_offset(&text).len());
    text
}

/// Cuts `+0x1f/0x90` or `+0x1f` off the end, also with a module of the kernel behind it:
/// `+0x1f/0x90 [ext4]`. Any other `+` belongs to the name, as in C++.
fn without_offset(text: &str) -> &str {
    let Some((name, offset)) = text.rsplit_once("+0x") else {
        return text;
    };
    let offset = match offset.split_once(' ') {
        Some((offset, module)) if module.starts_with('[') && module.ends_with(']') => offset,
        _ => offset,
    };
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_offset = match offset.split_once("/0x") {
        Some((offset, size)) => is_number(offset) && is_number(size),
        None => is_number(offset),
    };
    if is_offset && !name.is_empty() { name } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_offset_at_the_end_is_cut() {
        for (text, name) in [
            ("schedule+0x2f/0x90", "schedule"),
            ("schedule+0x2f", "schedule"),
            ("ext4_readdir+0x1f/0x3a0 [ext4]", "ext4_readdir"),
            ("libc.so.6+0x9a1d", "libc.so.6"),
            ("operator+(A const&, B)+0x1d", "operator+(A const&, B)"),
            ("operator++0x1d/0x20", "operator+"),
            ("operator+(A const&, B)", "operator+(A const&, B)"),
            ("foo<a+b>", "foo<a+b>"),
            ("foo<(char)+0x2>::bar", "foo<(char)+0x2>::bar"),
            ("f+0x", "f+0x"),
            ("f+0x1/0x", "f+0x1/0x"),
            ("f+0x1/0x20/0x3", "f+0x1/0x20/0x3"),
            ("f+0x1 [m", "f+0x1 [m"),
            ("+0x10", "+0x10"),
            ("0xffffffff81000000", "0xffffffff81000000"),
            ("", ""),
        ] {
            assert_eq!(without_offset(text), name);
        }
    }

    #[test]
    fn a_frame_without_a_symbol_is_its_address() {
        let frame = |symbol: Option<&str>| Frame {
            address: Some(0xffff_ffff_8100_0000),
            symbol: symbol.map(str::to_owned),
        };
        assert_eq!(function(&frame(None)), "0xffffffff81000000");
        assert_eq!(function(&frame(Some("f\u{1b}+0x1/0x2"))), "f\\u{1b}");
    }
}
