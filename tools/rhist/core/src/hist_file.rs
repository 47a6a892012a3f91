// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms of an event, from the file that tells most: `hist_jsonl` of rhist, `hist` of C.

use std::fs::File;
use std::io::BufReader;

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
    if instance.backend() == Backend::C {
        return Err("the text of C cannot be read yet".into());
    }
    let path = instance.dir().join("events").join(event).join("hist_jsonl");
    let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let histograms = jsonl::read(BufReader::with_capacity(BUFFER, file));
    histograms.map_err(|error| format!("{}: {error}", path.display()).into())
}
