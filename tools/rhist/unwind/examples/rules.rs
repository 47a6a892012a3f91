// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rules [--list] FILE`: writes the table of an ELF file to standard output; with `--list` its
//! rows as text, each with the offset in the file, the frame address, and where the caller's frame
//! pointer and the return address are, in readelf's words: `c-16` is 16 bytes below the frame
//! address, `u` not saved.

use rhist_elf::Machine;
use rhist_unwind::Rule;
use rhist_unwind::Rules;
use rhist_unwind::compile;
use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::io::BufWriter;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (is_list, path) = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list", path] => (true, (*path).to_owned()),
        [path] => (false, (*path).to_owned()),
        _ => return Err("usage: rules [--list] FILE".into()),
    };
    let rules = compile(&fs::read(&path)?).map_err(|error| format!("{path}: {error}"))?;
    eprintln!(
        "{path}: {} rows, {} rules, {} bytes; {} functions malformed, {} outside, {} overlapping",
        rules.row_count(),
        rules.distinct().len(),
        rules.size(),
        rules.malformed,
        rules.outside,
        rules.overlapping,
    );
    let output = BufWriter::new(io::stdout().lock());
    match is_list {
        true => list(&rules, output)?,
        false => rules.write_to(output)?,
    }
    Ok(())
}

fn list(rules: &Rules, mut output: impl Write) -> io::Result<()> {
    let (sp, fp) = match rules.machine() {
        Machine::X86_64 => ("rsp", "rbp"),
        Machine::Aarch64 => ("sp", "x29"),
    };
    let saved = |words: i16| match words {
        0 => "u".to_owned(),
        words => format!("c{}", 8 * i32::from(words)),
    };
    for (offset, rule) in rules.rows() {
        let text = match rule {
            Rule::None => "none".to_owned(),
            Rule::End => "end".to_owned(),
            Rule::Sp { cfa, fp, ra } => format!("{sp}{cfa:+} {} {}", saved(fp), saved(ra)),
            Rule::Fp { cfa, fp: at, ra } => format!("{fp}{cfa:+} {} {}", saved(at), saved(ra)),
            Rule::Deref { cfa, ra } => format!("*({fp}{cfa:+}) *({fp}) {}", saved(ra)),
            Rule::Plt { from, fp, ra } => format!("plt{from:+} {} {}", saved(fp), saved(ra)),
            Rule::Sigreturn => "sigreturn".to_owned(),
            Rule::Other => "other".to_owned(),
            Rule::DerefSp { cfa, fp, ra } => format!("*({sp}{cfa:+})+8 {} {}", saved(fp), saved(ra)),
            Rule::Frame => "frame".to_owned(),
        };
        writeln!(output, "{offset:016x} {text}")?;
    }
    output.flush()
}
