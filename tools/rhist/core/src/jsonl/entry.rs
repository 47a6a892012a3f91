// SPDX-License-Identifier: MIT OR Apache-2.0

//! Entries of a histogram: nearly all lines of a file.

use std::ops::Deref;
use std::sync::Arc;

use smallvec::smallvec;

use super::cursor::Cursor;
use super::cursor::Result;
use super::line;
use super::line::Cell;
use super::line::Characters;
use super::line::Header;
use crate::table::Begin;
use crate::table::Counts;
use crate::table::Dist;
use crate::table::Key;
use crate::table::Keys;
use crate::table::Moment;
use crate::table::Other;
use crate::table::Row;
use crate::table::Span;
use crate::table::Text;
use crate::table::Value;
use crate::table::Worst;

/// Members of an entry.
#[derive(Clone, Copy)]
enum EntryMember {
    Begin,
    Keys,
    Values,
    Actions,
}

const ENTRY: [(&str, EntryMember); 4] = [
    ("\"begin_boottime_ns\":", EntryMember::Begin),
    ("\"keys\":", EntryMember::Keys),
    ("\"values\":", EntryMember::Values),
    ("\"actions\":", EntryMember::Actions),
];

/// Members of a distribution. Its quantiles are computed again, for any percentage.
#[derive(Clone, Copy)]
enum DistMember {
    Count,
    Sum,
    Min,
    Max,
    Zero,
    Scale,
    Positive,
    Negative,
}

const DIST: [(&str, DistMember); 8] = [
    ("\"count\":", DistMember::Count),
    ("\"sum\":", DistMember::Sum),
    ("\"min\":", DistMember::Min),
    ("\"max\":", DistMember::Max),
    ("\"zero_count\":", DistMember::Zero),
    ("\"scale\":", DistMember::Scale),
    ("\"positive\":", DistMember::Positive),
    ("\"negative\":", DistMember::Negative),
];

/// Members of an object stored by an action.
#[derive(Clone, Copy)]
enum StoredMember {
    Value,
    Saved,
}

const STORED: [(&str, StoredMember); 2] = [("\"value\":", StoredMember::Value), ("\"saved\":", StoredMember::Saved)];

/// Parser of entries. Allocates each list once, with its exact size.
pub(super) struct Reader {
    /// Both clocks at one moment, and when the histogram began. `None` from older modules, which do
    /// not tell when a row began.
    clocks: Option<(Moment, u64)>,
    /// End of the interval: `CLOCK_BOOTTIME` in nanoseconds. `None` for totals.
    end_ns: Option<u64>,
    /// Number of keys of an entry.
    keys: usize,
    /// Number of values, without the hits.
    values: usize,
    /// Index of the action whose stored fields become [`Worst`].
    action: Option<usize>,
    /// Names of the fields saved with it.
    names: Vec<Arc<str>>,
    buckets: Vec<(i32, u64)>,
    saved: Vec<(Arc<str>, Key)>,
}

impl Reader {
    /// Parser for the entries that follow this header.
    pub(super) fn new(header: &Header) -> Self {
        let actions = header.actions.iter().enumerate();
        let maxima = actions.filter(|(_, action)| action.handler == "onmax");
        // Prefers save(), which stores more; among equals, the first.
        let worst = maxima.min_by_key(|(_, action)| action.action != "save");
        let name = |name: &Characters| name.0.to_lossy().into();
        let begin = header.begin.map(Moment::from);
        let end = header.interval.map(|interval| Span::from(interval).end);
        Reader {
            clocks: begin.map(|begin| (end.unwrap_or(begin), begin.boottime_ns)),
            end_ns: end.map(|end| end.boottime_ns),
            keys: header.keys.len(),
            values: header.values.len().saturating_sub(1),
            action: worst.map(|(place, _)| place),
            names: worst.map_or(Vec::new(), |(_, action)| action.saved.iter().map(name).collect()),
            buckets: Vec::new(),
            saved: Vec::new(),
        }
    }

    /// Parses an entry. The error describes the fault.
    pub(super) fn read(&mut self, line: &[u8]) -> Result<Row> {
        let mut line = Cursor::new(line)?;
        let (mut keys, mut hits) = (None, None);
        let mut row = Row {
            last_ns: self.end_ns,
            ..Row::default()
        };
        line.object(&ENTRY, |line, member| {
            match member {
                EntryMember::Begin => {
                    let begin = line.unsigned()?;
                    row.begin = self.clocks.map(|(clocks, histogram_ns)| Begin {
                        at: clocks.at(begin),
                        histogram_ns,
                    });
                }
                EntryMember::Keys => {
                    let mut read = Keys::with_capacity(self.keys);
                    line.list(|line| key(line).map(|key| read.push(key)))?;
                    keys = Some(counted(read, self.keys)?);
                }
                EntryMember::Values => {
                    let (number, values) = self.values(line)?;
                    (hits, row.values) = (Some(number), values);
                }
                EntryMember::Actions => row.worst = self.worst(line)?,
            }
            Ok(())
        })?;
        line.end()?;
        match (keys, hits) {
            (Some(keys), Some(hits)) => Ok(Row { keys, hits, ..row }),
            _ => Err("the entry has no keys, or no number of hits".into()),
        }
    }

    /// Parses the counts of keys without a row. The error describes the fault.
    pub(super) fn other(&mut self, counts: &[u8], other: Other) -> Result<Row> {
        let mut line = Cursor::new(counts)?;
        let mut found = None;
        line.object(&[("\"values\":", ())], |line, ()| {
            found = Some(self.values(line)?);
            Ok(())
        })?;
        line.end()?;
        let (hits, values) = found.ok_or("the counts of other have no values")?;
        Ok(Row {
            keys: smallvec![Key::Other(other); self.keys],
            hits,
            values,
            ..Row::default()
        })
    }

    /// Parses the number of hits, and the values.
    fn values(&mut self, line: &mut Cursor<'_>) -> Result<(u64, Vec<Value>)> {
        let mut hits = None;
        let mut values = Vec::with_capacity(self.values);
        line.list(|line| match hits {
            None => line.unsigned().map(|number| hits = Some(number)),
            Some(_) => self.value(line).map(|value| values.push(value)),
        })?;
        let hits = hits.ok_or("the values have no number of hits")?;
        Ok((hits, counted(values, self.values)?))
    }

    fn value(&mut self, line: &mut Cursor<'_>) -> Result<Value> {
        match line.peek() {
            Some(b'{') => Ok(Value::Dist(self.dist(line)?)),
            Some(b'n') => line.value().map(|_| Value::Unknown),
            _ => Ok(Value::Number(line.whole()?)),
        }
    }

    fn dist(&mut self, line: &mut Cursor<'_>) -> Result<Dist> {
        let (mut count, mut sum, mut min, mut max, mut zero, mut scale) = (None, None, None, None, None, None);
        let (mut positive, mut negative) = (None, None);
        line.object(&DIST, |line, member| {
            match member {
                DistMember::Count => count = Some(line.unsigned()?),
                DistMember::Sum => sum = Some(line.whole()?),
                DistMember::Min => min = Some(line.whole()?),
                DistMember::Max => max = Some(line.whole()?),
                DistMember::Zero => zero = Some(line.unsigned()?),
                DistMember::Scale => scale = Some(line.unsigned()?),
                DistMember::Positive => positive = Some(self.counts(line)?),
                DistMember::Negative => negative = Some(self.counts(line)?),
            }
            Ok(())
        })?;
        let (Some(count), Some(zero), Some(scale), Some(positive), Some(negative)) =
            (count, zero, scale, positive, negative)
        else {
            return Err("a distribution has no count, zero_count, scale, positive or negative".into());
        };
        let scale = u8::try_from(scale).ok().filter(|&scale| scale <= Dist::SCALE_MAX);
        Ok(Dist {
            scale: scale.ok_or("unknown scale")?,
            count,
            sum,
            // An empty distribution has neither.
            min: min.filter(|_| count > 0),
            max: max.filter(|_| count > 0),
            zero,
            positive,
            negative,
            ..Dist::default()
        })
    }

    /// Parses counts by bucket index.
    fn counts(&mut self, line: &mut Cursor<'_>) -> Result<Counts> {
        self.buckets.clear();
        line.map(|line, index| {
            let number = index.parse();
            let number = number.map_err(|_| format!("a bucket has the index {index:?}"))?;
            self.buckets.push((number, line.unsigned()?));
            Ok(())
        })?;
        Ok(self.buckets.iter().copied().collect())
    }

    /// Parses the fields that the action stored.
    fn worst(&mut self, line: &mut Cursor<'_>) -> Result<Option<Worst>> {
        let mut worst = None;
        let mut place = 0;
        line.list(|line| {
            match line.peek() {
                Some(b'{') if self.action == Some(place) => worst = Some(self.stored(line)?),
                _ => drop(line.value()?),
            }
            place += 1;
            Ok(())
        })?;
        Ok(worst)
    }

    fn stored(&mut self, line: &mut Cursor<'_>) -> Result<Worst> {
        let mut value = None;
        self.saved.clear();
        line.object(&STORED, |line, member| {
            match member {
                StoredMember::Value => value = Some(line.whole()?),
                StoredMember::Saved => {
                    let mut names = self.names.iter();
                    line.list(|line| match names.next() {
                        Some(name) => key(line).map(|key| self.saved.push((Arc::clone(name), key))),
                        None => line.value().map(drop),
                    })?;
                }
            }
            Ok(())
        })?;
        Ok(Worst {
            value: value.ok_or("an action has stored no value")?,
            saved: self.saved.drain(..).collect(),
        })
    }
}

/// Fails unless the list has `len` elements.
fn counted<T, L: Deref<Target = [T]>>(items: L, len: usize) -> Result<L> {
    match items.len() == len {
        true => Ok(items),
        false => Err(format!("{} keys or values, but the header has {len}", items.len()).into()),
    }
}

/// Parses a key, or a field that was saved.
fn key(line: &mut Cursor<'_>) -> Result<Key> {
    if let Some(b'-' | b'0'..=b'9') = line.peek() {
        return Ok(Key::Number(line.whole()?));
    }
    let at = line.at();
    let written = line.value()?;
    let text = written.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match text.filter(|text| !text.contains('\\')) {
        Some(text) => Ok(Key::Text(Text::from(text))),
        None => Ok(line::parse_at::<Cell>(written.as_bytes(), at)?.0),
    }
}
