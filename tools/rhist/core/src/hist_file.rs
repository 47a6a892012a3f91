// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms of an event, from the file that tells most: `hist_jsonl` of rhist, `hist` of C.

use std::fs::File;
use std::io::BufReader;

use crate::hist_text;
use crate::jsonl;
use crate::question::Backend;
use crate::table::Histogram;
use crate::tracefs::Tracefs;

/// Bytes that are read at once: the kernel makes its files in pieces of about this size.
const BUFFER: usize = 1 << 16;

/// Reads all histograms of an event (`system/event`), in the order of their triggers.
///
/// # Errors
///
/// Those of the file; or what is in it is no histogram.
pub fn read(instance: &Tracefs, event: &str) -> Result<Vec<Histogram>, Box<dyn std::error::Error + Send + Sync>> {
    let is_c = instance.backend() == Backend::C;
    let folder = instance.dir().join("events").join(event);
    let path = folder.join(if is_c { "hist" } else { "hist_jsonl" });
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(&path).map_err(|error| fail(&error))?;
    let reader = BufReader::with_capacity(BUFFER, file);
    if !is_c {
        return Ok(jsonl::read(reader).map_err(|error| fail(&error))?);
    }
    let mut histograms = hist_text::read(reader).map_err(|error| fail(&error))?;
    // Which event it is, C's text does not say.
    let (system, name) = event.split_once('/').unwrap_or(("", event));
    for histogram in &mut histograms {
        (histogram.system, histogram.event) = (system.to_owned(), name.to_owned());
    }
    Ok(histograms)
}
