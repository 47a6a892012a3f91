// SPDX-License-Identifier: MIT OR Apache-2.0

//! Events that are given as probes: `kprobe:FUNCTION`, `uprobe:FILE:SYMBOL`, and others.

use std::fs;

use anyhow::Context;
use anyhow::bail;
use object::Object;
use object::ObjectSegment;
use object::ObjectSymbol;

/// Probes that a command line has asked for.
#[derive(Debug, Default)]
pub struct Probes {
    /// For `dynamic_events`, with `{group}` for the group of the run.
    pub definitions: Vec<String>,
    /// What they were given as.
    texts: Vec<String>,
}

impl Probes {
    /// The event that is meant: an event of the kernel stays what it is, a probe is defined.
    ///
    /// Behind the function may be arguments of the probe, as the kernel has them: `kprobe:vfs_read size=$arg3`.
    pub fn event(&mut self, text: &str) -> anyhow::Result<String> {
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
            "kretprobe" => ("r", place.to_owned()),
            "fprobe" | "fentry" => ("f", place.to_owned()),
            "fexit" => ("f", format!("{place}%return")),
            "tprobe" => ("t", place.to_owned()),
            "uprobe" => ("p", in_file(place)?),
            "uretprobe" => ("r", in_file(place)?),
            _ => return Ok(text.to_owned()),
        };
        if place.is_empty() || text.chars().any(char::is_control) {
            bail!("{text:?}: a probe has a place: {kind}:FUNCTION");
        }
        self.texts.push(text.to_owned());
        self.definitions.push(
            format!("{prefix}:{{group}}/{name} {place} {arguments}")
                .trim_end()
                .to_owned(),
        );
        Ok(format!("{{group}}:{name}"))
    }
}

/// `FILE:SYMBOL` or `FILE:0xOFFSET` as the kernel takes it: the offset in the file.
fn in_file(place: &str) -> anyhow::Result<String> {
    let Some((path, symbol)) = place.rsplit_once(':') else {
        bail!("{place}: a probe in a program has a file and a function: uprobe:FILE:FUNCTION");
    };
    if symbol.starts_with("0x") {
        return Ok(format!("{path}:{symbol}"));
    }
    // A device could be read without end.
    if !fs::metadata(path).with_context(|| path.to_owned())?.is_file() {
        bail!("{path}: no program or library");
    }
    let data = fs::read(path).with_context(|| path.to_owned())?;
    let file = object::File::parse(&*data).with_context(|| format!("{path}: no program or library"))?;
    let address = file
        .symbols()
        .chain(file.dynamic_symbols())
        .find(|candidate| candidate.name() == Ok(symbol) && candidate.is_definition())
        .map(|found| found.address())
        .with_context(|| format!("{path}: there is no function {symbol} in its symbols"))?;
    let offset = file
        .segments()
        .find(|segment| (segment.address()..segment.address().saturating_add(segment.size())).contains(&address))
        .map(|segment| address - segment.address() + segment.file_range().0)
        .with_context(|| format!("{path}: {symbol} is in no part that is loaded"))?;
    Ok(format!("{path}:{offset:#x}"))
}
