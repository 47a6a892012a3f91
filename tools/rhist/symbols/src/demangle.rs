// SPDX-License-Identifier: MIT OR Apache-2.0

//! Demangles names of Rust and C++.

use crate::limits::MOST_RAW;
use crate::shown::Escaper;
use cpp_demangle::DemangleOptions;
use cpp_demangle::ParseOptions;
use cpp_demangle::Symbol;
use std::fmt::Write;

/// Most nested parts of a C++ name: cpp_demangle's defaults, which the stack of a thread has room
/// for.
const MOST_PARSED: u32 = 96;
const MOST_PRINTED: u32 = 128;

/// Demangles a name; `None` if it is not mangled, or too deeply nested.
pub(crate) fn demangle(name: &[u8]) -> Option<Escaper> {
    // A name that was cut does not parse.
    if name.len() >= MOST_RAW {
        return None;
    }
    let name = str::from_utf8(name).ok()?;
    rust(name).or_else(|| cpp(name))
}

fn rust(name: &str) -> Option<Escaper> {
    let is_rust = name.starts_with("_R") || (name.starts_with("_ZN") && has_hash(name));
    if !is_rust {
        return None;
    }
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    written(|escaper| write!(escaper, "{demangled:#}").is_ok())
}

/// Whether a name has the hash that ends names of Rust in their older form, which otherwise have
/// the form of variables of C++: `17h`, 16 hexadecimal digits, `E`, and perhaps a suffix of LLVM.
fn has_hash(name: &str) -> bool {
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    name.strip_suffix('E')
        .and_then(|name| name.len().checked_sub(19).and_then(|at| name.get(at..)))
        .and_then(|hash| hash.strip_prefix("17h"))
        .is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn cpp(name: &str) -> Option<Escaper> {
    if !name.starts_with("_Z") && !name.starts_with("_GLOBAL_") {
        return None;
    }
    let parse = ParseOptions::default().recursion_limit(MOST_PARSED);
    let print = DemangleOptions::default().recursion_limit(MOST_PRINTED);
    let symbol = Symbol::new_with_options(name, &parse).ok()?;
    written(|escaper| symbol.structured_demangle(escaper, &print).is_ok())
}

/// The text that a demangler writes, also if it stopped as the text was full; `None` if it failed.
fn written(write: impl FnOnce(&mut Escaper) -> bool) -> Option<Escaper> {
    let mut escaper = Escaper::default();
    let is_whole = write(&mut escaper);
    (is_whole || escaper.is_full).then_some(escaper)
}
