// SPDX-License-Identifier: GPL-2.0

//! Numbers as the kernel's `kstrtoull()` reads them.

use kernel::error::{
    code::*,
    Result, //
};

/// Reads a number: optional `+`, then `0x` and hexadecimal digits, `0` and octal digits, or decimal
/// digits, then at most one newline (`kstrtoull()` with base 0, `lib/kstrtox.c`).
///
/// # Errors
///
/// `EINVAL` for other text, `ERANGE` if it does not fit.
pub fn number(text: &[u8]) -> Result<u64> {
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (digits, base) = match text {
        [b'0', b'x' | b'X', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => {
            (digits, 16)
        }
        [b'0', ..] => (text, 8),
        _ => (text, 10),
    };
    let mut value = Some(0u64);
    let mut rest = digits;
    while let Some((&byte, tail)) = rest.split_first() {
        let Some(digit) = char::from(byte).to_digit(base) else {
            break;
        };
        value = value
            .and_then(|value| value.checked_mul(base.into()))
            .and_then(|value| value.checked_add(digit.into()));
        rest = tail;
    }
    let value = value.ok_or(ERANGE)?;
    if rest.len() == digits.len() || !matches!(rest, b"" | b"\n") {
        return Err(EINVAL);
    }
    Ok(value)
}
