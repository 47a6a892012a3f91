// SPDX-License-Identifier: MIT OR Apache-2.0

//! Intervals of a run's histograms, as the kernel cuts them, and their sum.

use std::collections::BTreeMap;
use std::error::Error;

use crate::hist_file;
use crate::hist_file::DeltaFile;
use crate::plan::Gone;
use crate::table::Ended;
use crate::table::Histogram;
use crate::table::Moment;
use crate::table::Table;
use crate::table::Time;
use crate::tracefs::Tracefs;

/// Reader of the intervals of some events' histograms. Readers do not disturb each other.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Open files, by event (`system/event`).
    files: BTreeMap<String, DeltaFile>,
    /// Files of this round that were already read, if another one failed.
    read: BTreeMap<String, Vec<Histogram>>,
    /// Sum of all intervals of each histogram, in the order of the triggers.
    sums: BTreeMap<String, Vec<Histogram>>,
    /// End of the last interval.
    end: Moment,
    /// Sums since the last clear, for events with a histogram that was cleared.
    since_clear: BTreeMap<String, Vec<Histogram>>,
    /// Whether the kernel's totals have hits that the sums lack, or the other way round, other than
    /// by a clear.
    is_apart: bool,
}

/// An interval of all histograms.
#[derive(Debug)]
pub struct Cut {
    /// Counts of each histogram, by event, in the order of the triggers.
    pub histograms: BTreeMap<String, Vec<Histogram>>,
    /// Its begin: see [`crate::question::Interval::from`].
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// See [`crate::question::Interval::notes`].
    pub notes: Vec<String>,
}

impl Intervals {
    /// Opens the file of an event, before its triggers are added: so they are read from their
    /// creation on. Returns whether the kernel has such a file.
    pub fn open(&mut self, instance: &Tracefs, event: &str) -> Result<bool, hist_file::Error> {
        if self.files.contains_key(event) {
            return Ok(true);
        }
        let file = DeltaFile::open(instance, event)?;
        let is_there = file.is_some();
        self.files.extend(file.map(|file| (event.to_owned(), file)));
        Ok(is_there)
    }

    /// Lets the first interval begin now, before the first hit: ends the empty one since the
    /// triggers were added.
    ///
    /// # Errors
    ///
    /// As for [`Self::read()`]; also if the kernel lacks memory for a reader, or has too many.
    pub fn begin(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.read()?;
        self.end = Moment::now();
        Ok(())
    }

    /// Lets the sums go on from `totals`, which were read just before the files were opened.
    /// Returns whether no hit came since: it could be in no interval, but only in later totals.
    pub fn follow(&mut self, instance: &Tracefs, totals: BTreeMap<String, Vec<Histogram>>) -> bool {
        self.sums = totals;
        self.end = Moment::now();
        self.is_apart = !matches!(self.compare(instance), Ok(None));
        !self.is_apart
    }

    /// Asks for the next interval, without waiting for it. Files that are asked together share a
    /// cut of the kernel, and end together.
    pub fn ask(&mut self) -> Result<(), hist_file::Error> {
        for (event, file) in &mut self.files {
            if !self.read.contains_key(event) {
                file.ask()?;
            }
        }
        Ok(())
    }

    /// Ends the interval, and reads it.
    ///
    /// # Errors
    ///
    /// A file cannot be read: then nothing is lost if the next attempt succeeds. Or a trigger of
    /// the run is gone.
    pub fn read(&mut self) -> Result<Cut, Box<dyn Error + Send + Sync>> {
        self.ask()?;
        for (event, file) in &mut self.files {
            if !self.read.contains_key(event) {
                self.read.insert(event.clone(), file.read()?);
            }
        }
        let begin = self.end;
        let mut cut = Cut {
            histograms: BTreeMap::new(),
            from: Time::default(),
            to: Time::default(),
            notes: Vec::new(),
        };
        for (event, histograms) in std::mem::take(&mut self.read) {
            for span in histograms.iter().filter_map(|histogram| histogram.span) {
                self.end = self.end.max(span.end);
                self.is_apart |= span.ended == Some(Ended::Removed) || span.lost_histograms > 0;
                cut.notes.extend(note(&event, span.ended, span.lost_histograms));
            }
            let times = histograms.iter().map(|histogram| &histogram.table.time);
            if let Some(time) = times.max().filter(|time| **time > cut.to) {
                cut.to.clone_from(time);
            }
            let sums = self.sums.entry(event.clone()).or_default();
            if histograms.iter().any(is_cleared) {
                self.since_clear.entry(event.clone()).or_insert_with(|| sums.clone());
            }
            if let Some(sums) = self.since_clear.get_mut(&event) {
                add_since_clear(sums, &histograms);
            }
            let histograms = add(&event, sums, histograms)?;
            cut.histograms.insert(event, histograms);
        }
        let length = self.end.boottime_ns.saturating_sub(begin.boottime_ns);
        cut.from = Time {
            realtime_ns: begin.realtime_ns,
            monotonic_ns: cut.to.monotonic_ns.saturating_sub(length),
            boot_id: cut.to.boot_id.clone(),
        };
        Ok(cut)
    }

    /// The sum of all intervals, by event.
    pub fn sums(&self) -> BTreeMap<&str, Vec<Histogram>> {
        let sums = self.sums.iter();
        sums.map(|(event, sums)| (event.as_str(), sums.clone())).collect()
    }

    /// The same without the rows, which are most of it.
    pub fn sums_without_rows(&self) -> BTreeMap<&str, Vec<Histogram>> {
        let bare = |histogram: &Histogram| Histogram {
            hits: histogram.hits,
            expired_set: histogram.expired_set,
            entries: histogram.entries,
            rejected: histogram.rejected,
            table: Table {
                losses: histogram.table.losses.clone(),
                ..empty(histogram).table
            },
            ..empty(histogram)
        };
        let sums = self.sums.iter();
        sums.map(|(event, sums)| (event.as_str(), sums.iter().map(bare).collect()))
            .collect()
    }

    /// The totals that the kernel's files had at the end of the last interval, if a histogram was
    /// cleared: the sums have more than these.
    pub fn since_clear(&self) -> Option<BTreeMap<&str, Vec<Histogram>>> {
        (!self.since_clear.is_empty()).then(|| {
            let mut totals = self.sums();
            let cleared = self.since_clear.iter();
            totals.extend(cleared.map(|(event, sums)| (event.as_str(), sums.clone())));
            totals
        })
    }

    /// Compares the sums with the totals that the kernel shows, after the last hit; of a cleared
    /// histogram, the hits since. Describes the first difference, which only a bug of the kernel
    /// makes. `None`, too, after a removal: then they cannot be equal.
    pub fn compare(&self, instance: &Tracefs) -> Result<Option<String>, hist_file::Error> {
        if self.is_apart {
            return Ok(None);
        }
        for (event, sums) in &self.sums {
            let sums = self.since_clear.get(event).unwrap_or(sums);
            let totals = hist_file::read(instance, event)?;
            for sum in sums {
                let total = totals.iter().find(|total| total.is_same(sum));
                if let Some(difference) = total.and_then(|total| sum.difference(total)) {
                    return Ok(Some(format!("{event}: {difference}")));
                }
            }
        }
        Ok(None)
    }
}

/// Sentences about what other programs did to a histogram.
fn note(event: &str, ended: Option<Ended>, lost_histograms: u64) -> impl Iterator<Item = String> {
    let ended = ended.map(|ended| match ended {
        Ended::Cleared => {
            format!("{event}: another program cleared a trigger of this run; its earlier hits are included")
        }
        Ended::Removed => format!("{event}: another program removed a trigger of this run"),
    });
    let lost = (lost_histograms > 0).then(|| {
        format!(
            "{event}: hits are missing: other programs cleared or removed {lost_histograms} histograms that were not read"
        )
    });
    ended.into_iter().chain(lost)
}

fn is_cleared(histogram: &Histogram) -> bool {
    histogram.span.is_some_and(|span| span.ended == Some(Ended::Cleared))
}

/// The same histogram before its first hit.
fn empty(histogram: &Histogram) -> Histogram {
    Histogram {
        trigger: histogram.trigger.clone(),
        filter: histogram.filter.clone(),
        size: histogram.size,
        forgets: histogram.forgets,
        expired_set: histogram.expired_set.and(Some(0)),
        rejected: histogram.rejected.and(Some(0)),
        table: Table {
            keys: histogram.table.keys.clone(),
            values: histogram.table.values.clone(),
            ..Table::default()
        },
        ..Histogram::default()
    }
}

/// Adds an interval of an event's histograms to their sums, and empties the sums that were cleared
/// in it.
fn add_since_clear(sums: &mut [Histogram], parts: &[Histogram]) {
    for part in parts {
        if let Some(sum) = sums.iter_mut().find(|sum| sum.is_same(part)) {
            match is_cleared(part) {
                true => *sum = empty(part),
                false => sum.append(part.clone()),
            }
        }
    }
}

/// Adds an interval of an event's histograms to their sums. Returns one histogram for each trigger:
/// one that was cleared comes in two parts.
fn add(event: &str, sums: &mut Vec<Histogram>, parts: Vec<Histogram>) -> Result<Vec<Histogram>, Gone> {
    let mut histograms: Vec<Histogram> = Vec::new();
    for part in parts {
        match histograms.iter_mut().find(|histogram| histogram.is_same(&part)) {
            Some(histogram) => histogram.append(part),
            None => histograms.push(part),
        }
    }
    if sums.is_empty() {
        sums.extend(histograms.iter().cloned());
        for sum in sums {
            sum.entries = sum.table.entries();
        }
        return Ok(histograms);
    }
    let mut found = Vec::with_capacity(sums.len());
    for sum in sums {
        let place = histograms.iter().position(|histogram| histogram.is_same(sum));
        let histogram = histograms.swap_remove(place.ok_or_else(|| Gone::new(event))?);
        sum.append(histogram.clone());
        found.push(histogram);
    }
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests;
