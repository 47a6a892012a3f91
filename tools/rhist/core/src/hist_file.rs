// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms of an event, from the file that tells most: `hist_jsonl` of rhist, `hist` of C.

use std::fs;
use std::fs::File;
use std::io::BufReader;

use rustix::time::ClockId;
use rustix::time::clock_gettime;

use crate::hist_text;
use crate::jsonl;
use crate::question::Backend;
use crate::table::Histogram;
use crate::table::Time;
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
    let time = now();
    let file = File::open(&path).map_err(|error| fail(&error))?;
    let reader = BufReader::with_capacity(BUFFER, file);
    if !is_c {
        return Ok(jsonl::read(reader).map_err(|error| fail(&error))?);
    }
    let mut histograms = hist_text::read(reader).map_err(|error| fail(&error))?;
    // Which event it is, and when it was read, C's text does not say.
    let (system, name) = event.split_once('/').unwrap_or(("", event));
    for histogram in &mut histograms {
        (histogram.system, histogram.event) = (system.to_owned(), name.to_owned());
        histogram.table.time.clone_from(&time);
    }
    Ok(histograms)
}

fn now() -> Time {
    let ns = |clock| {
        let time = clock_gettime(clock);
        u64::try_from(i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)).unwrap_or(0)
    };
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    Time {
        realtime_ns: ns(ClockId::Realtime),
        monotonic_ns: ns(ClockId::Monotonic),
        boot_id: boot_id.map(|id| id.trim_end().to_owned()),
    }
}
