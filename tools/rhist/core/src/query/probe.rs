// SPDX-License-Identifier: MIT OR Apache-2.0

//! Probes in the place of events: `kprobe:FUNCTION`, `uprobe:FILE:SYMBOL`, and others.

use std::fs;

use object::Object;
use object::ObjectSegment;
use object::ObjectSymbol;
use object::SymbolKind;

use super::error::Error;
use crate::problem::Problem;
use crate::recipe::Measure;
use crate::suggest;

/// Probes that a command line asks for.
#[derive(Debug, Default)]
pub struct Probes {
    /// Lines for `dynamic_events`, with `{group}` for the group of the run.
    pub definitions: Vec<String>,
    /// The same lines with kretprobes as requested. `definitions` has fprobes instead: these miss
    /// no call that returns late, but do not support every function and argument.
    pub kretprobes: Vec<String>,
    /// Texts of the probes on the command line.
    texts: Vec<String>,
}

impl Probes {
    /// Adds the probes to the measure that uses them. For kernels that refuse the fprobes, adds an
    /// alternative with kretprobes.
    pub fn complete(self, measure: Measure) -> Measure {
        let alternatives = match self.kretprobes == self.definitions {
            true => Vec::new(),
            false => vec![Measure {
                probes: self.kretprobes,
                ..measure.clone()
            }],
        };
        Measure {
            probes: self.definitions,
            alternatives,
            ..measure
        }
    }

    /// Resolves an event. Returns the name of an event as it is, and defines a probe if the text
    /// asks for one.
    ///
    /// Arguments of the probe may follow the function, in the syntax of the kernel:
    /// `kprobe:vfs_read size=$arg3`.
    pub fn event(&mut self, text: &str) -> Result<String, Error> {
        let Some((kind, rest)) = text.split_once(':') else {
            return Ok(text.to_owned());
        };
        if let Some(known) = self.texts.iter().position(|known| known == text) {
            return Ok(format!("{{group}}:probe{known}"));
        }
        let (place, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
        let name = format!("probe{}", self.definitions.len());
        let (prefix, place) = match kind {
            "kprobe" => ("p", place.to_owned()),
            "fprobe" | "fentry" => ("f", place.to_owned()),
            "fexit" | "kretprobe" => ("f", format!("{place}%return")),
            "tprobe" => ("t", place.to_owned()),
            "uprobe" => ("p", in_file(place)?),
            "uretprobe" => ("r", in_file(place)?),
            _ => return Ok(text.to_owned()),
        };
        if place.is_empty() || place == "%return" || text.chars().any(char::is_control) {
            return Err(Error::other(format!(
                "{text:?}: the probe needs a function: {kind}:FUNCTION"
            )));
        }
        self.texts.push(text.to_owned());
        let definition = |prefix, place: &str| {
            let definition = format!("{prefix}:{{group}}/{name} {place} {arguments}");
            definition.trim_end().to_owned()
        };
        self.definitions.push(definition(prefix, &place));
        self.kretprobes.push(match kind {
            "kretprobe" => definition("r", place.trim_end_matches("%return")),
            _ => definition(prefix, &place),
        });
        Ok(format!("{{group}}:{name}"))
    }
}

/// The kernel function that a probe is on; `None` for other probes. `definition` is the line for
/// `dynamic_events`.
pub fn function(definition: &str) -> Option<&str> {
    let mut words = definition.split_whitespace();
    let is_function = words.next()?.starts_with(['p', 'r', 'f']);
    let place = words.next().filter(|place| is_function && !place.contains('/'))?;
    // MODULE:FUNCTION+OFFSET, or FUNCTION%return
    let name = place.rsplit(':').next()?.split(['+', '%']).next()?;
    Some(name).filter(|name| !name.is_empty() && !name.starts_with("0x"))
}

/// Functions with names similar to a missing one. `symbols` are the contents of `/proc/kallsyms`.
pub fn near_functions(name: &str, symbols: &str) -> Vec<String> {
    let function = |line: &'_ str| {
        let mut words = line.split_whitespace().skip(1);
        let is_function = matches!(words.next()?, "t" | "T" | "w" | "W");
        words.next().filter(|_| is_function).map(str::to_owned)
    };
    let functions: Vec<String> = symbols.lines().filter_map(function).collect();
    match functions.iter().any(|function| function == name) {
        true => Vec::new(),
        false => suggest::near(name, functions.iter().map(String::as_str))
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

/// Translates `FILE:SYMBOL` or `FILE:0xOFFSET` to the kernel's syntax, with the offset in the file.
fn in_file(place: &str) -> Result<String, Error> {
    let Some((path, symbol)) = place.rsplit_once(':') else {
        return Err(Error::other(format!(
            "{place}: a probe in a program needs a file and a function: uprobe:FILE:FUNCTION"
        )));
    };
    if symbol.starts_with("0x") {
        return Ok(format!("{path}:{symbol}"));
    }
    // Reading a device might never end.
    let fail = |error| Error::Io(path.to_owned(), error);
    if !fs::metadata(path).map_err(fail)?.is_file() {
        return Err(Error::other(format!("{path}: not a program or library")));
    }
    let data = fs::read(path).map_err(fail)?;
    let file = object::File::parse(&*data)
        .map_err(|error| Error::other(format!("{path}: not a program or library: {error}")))?;
    let symbols = || {
        file.symbols()
            .chain(file.dynamic_symbols())
            .filter(|candidate| candidate.is_definition())
    };
    let Some(address) = symbols()
        .find(|candidate| candidate.name() == Ok(symbol))
        .map(|found| found.address())
    else {
        let functions = symbols().filter(|candidate| candidate.kind() == SymbolKind::Text);
        let near = suggest::near(symbol, functions.filter_map(|candidate| candidate.name().ok()));
        let problem = Problem::new(
            path.len() + 1..place.len(),
            format!("{path} has no function {symbol} in its symbols"),
        );
        return Err(Error::text("FILE:FUNCTION", place, problem.near(&near)));
    };
    let offset = file
        .segments()
        .find(|segment| (segment.address()..segment.address().saturating_add(segment.size())).contains(&address))
        .map(|segment| address - segment.address() + segment.file_range().0)
        .ok_or_else(|| Error::other(format!("{path}: {symbol} is in no segment that is loaded")))?;
    Ok(format!("{path}:{offset:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_probes() {
        for (definition, expected) in [
            ("p:rhist_1_2/probe0 vfs_raed size=$arg3", Some("vfs_raed")),
            ("r:g/probe0 xfs:xfs_buf_redd", Some("xfs_buf_redd")),
            ("f:g/probe0 vfs_raed%return", Some("vfs_raed")),
            ("p:g/probe0 vfs_raed+0x10", Some("vfs_raed")),
            ("p:g/probe0 /bin/sh:0x1234", None),
            ("t:g/probe0 sched_switch", None),
            ("p:g/probe0 0xffffffff81000000", None),
            ("p:g/probe0", None),
        ] {
            assert_eq!(function(definition), expected, "{definition}");
        }
    }

    #[test]
    fn functions_that_are_near() {
        let symbols = "ffffffff81000000 T _text\nffffffff81201234 T vfs_read\nffffffff81201235 t vfs_readv\n\
                       ffffffff82201235 D vfs_raed\nffffffffc0101235 t xfs_buf_read\t[xfs]\nnonsense\n";
        assert_eq!(near_functions("vfs_raed", symbols), ["vfs_read"]);
        assert_eq!(near_functions("xfs_buf_redd", symbols), ["xfs_buf_read"]);
        // The function exists, so the reason is another one.
        assert_eq!(near_functions("vfs_read", symbols), [""; 0]);
        assert_eq!(near_functions("nosuchthing", ""), [""; 0]);
    }

    #[test]
    fn symbols_that_are_near() {
        let exe = std::env::current_exe().unwrap();
        let place = format!("{}:mian", exe.display());
        let error = in_file(&place).unwrap_err();
        let Error::Text { problem, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(problem.label, "did you mean main?");
        assert_eq!(&place[problem.at.clone()], "mian");
        assert!(in_file(&format!("{}:main", exe.display())).is_ok());
    }
}
