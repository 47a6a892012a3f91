// SPDX-License-Identifier: GPL-2.0

//! The `hist_jsonl` file: lines of JSON for programs. `Documentation/hist_jsonl.rst` describes its
//! contents; a change other than an additional member needs a new [`SCHEMA`].

use core::str;

use kernel::prelude::*;

use super::{
    file::{
        HistFile,
        Printer, //
    },
    row::{
        Distribution,
        GroupCell,
        KeyCell,
        Row,
        SavedCell,
        TrackedBuf,
        ValueCell,
        VariableCell, //
    },
    snapshot::{
        LastSnapshot,
        Snapshot, //
    },
    trigger::{
        command,
        listed, //
    },
    user_stack,
    IntervalView,
    Names,
    View, //
};
use crate::{
    event::{
        group::GONE,
        Bucket,
        Exponential,
        Moment,
        Unit,
        Whole, //
    },
    hist::{
        reader::Gone,
        spec::{
            action::{
                Action,
                ActionKind,
                Handler, //
            },
            field::HistField, //
        },
        Spec, //
    },
    map::{
        ListedEntry,
        Other, //
    },
    text::Text,
    trigger::{
        Full,
        Quantile, //
    },
};

/// The version of the schema.
const SCHEMA: u32 = 1;

/// The place and time at which histograms are read.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    /// The system of their event.
    pub system: &'a [u8],
    /// The name of their event.
    pub event: &'a [u8],
    /// The boot id of the kernel, if known.
    pub boot_id: Option<&'a [u8]>,
    /// Reads the clocks.
    pub now: fn() -> Now,
}

/// The time.
#[derive(Clone, Copy)]
pub struct Now {
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
}

impl HistFile {
    /// The `hist_jsonl` file of an event with the histograms `views`. Fails with `ENOMEM`, and as
    /// [`Names::check_signal`].
    pub fn jsonl<'a>(views: impl Iterator<Item = View<'a>>, origin: &Origin<'_>) -> Result<Self> {
        Self::with_printer(&Jsonl, views, |out, view, _| {
            header(out, &view, origin, |_| Ok(()))?;
            Snapshot::take(&view)
        })
    }

    /// The `hist_delta_jsonl` file of an event with the intervals `views`. Fails as
    /// [`HistFile::jsonl`].
    pub fn intervals_jsonl<'a>(
        views: impl Iterator<Item = IntervalView<'a>>,
        origin: &Origin<'_>,
    ) -> Result<Self> {
        Self::with_printer(&Jsonl, views, |out, mut view, _| {
            header(out, &view.view, origin, |out| interval(out, &view))?;
            Snapshot::of_interval(&mut view)
        })
    }
}

/// Appends the member of a header about an interval.
fn interval(out: &mut Text, view: &IntervalView<'_>) -> Result {
    out.bytes(b",\"interval\":{\"begin\":")?;
    moment(out, view.interval.begin())?;
    out.bytes(b",\"end\":")?;
    moment(out, view.interval.end())?;
    out.bytes(b",\"ended\":")?;
    string_or_null(out, view.ended.map(|ended| ended.word().as_bytes()))?;
    out.format(format_args!(",\"lost_histograms\":{}}}", view.lost))
}

/// Prints lines of JSON.
struct Jsonl;

impl Printer for Jsonl {
    fn row(
        &self,
        out: &mut Text,
        row: &Row<'_>,
        buf: &mut TrackedBuf,
        names: &dyn Names,
    ) -> Result {
        out.bytes(b"{\"type\":\"entry\"")?;
        if let Some(birth) = row.entry.and_then(ListedEntry::birth) {
            out.format(format_args!(",\"begin_boottime_ns\":{birth}"))?;
        }
        out.bytes(b",\"keys\":")?;
        keys(out, row, names)?;
        out.bytes(b",\"values\":")?;
        values(out, row)?;
        out.bytes(b",\"variables\":[")?;
        variables(out, row, names)?;
        out.bytes(b"],\"actions\":[")?;
        actions(out, row, buf)?;
        out.bytes(b"]}\n")
    }

    fn end(&self, out: &mut Text, snapshot: &Snapshot, names: &dyn Names) -> Result {
        let losses = snapshot.losses();
        out.format(format_args!(
            "{{\"type\":\"trailer\",\"hits\":{},\"entries\":{},\"shown\":{},\"dropped\":{},\"excess\":{}",
            snapshot.hits(),
            snapshot.len(),
            snapshot.shown(),
            snapshot.drops(),
            losses.excess,
        ))?;
        out.bytes(b",\"no_bucket\":")?;
        match snapshot.without_bucket() {
            Some(values) => out.format(format_args!("{values}"))?,
            None => out.bytes(NULL)?,
        }
        out.format(format_args!(
            ",\"unresolved\":{},\"missed\":{},\"rejected\":{},\"snapshot\":",
            losses.unresolved, losses.missed, losses.rejected
        ))?;
        last_snapshot(out, snapshot, names)?;
        others(out, snapshot)?;
        out.bytes(b",\"complete\":true}\n")
    }
}

const NULL: &[u8] = b"null";

/// Appends the line before the entries; `more` appends further members.
fn header(
    out: &mut Text,
    view: &View<'_>,
    origin: &Origin<'_>,
    more: impl FnOnce(&mut Text) -> Result,
) -> Result {
    let spec = view.hist.spec();
    out.format(format_args!(
        "{{\"type\":\"header\",\"schema\":{SCHEMA},\"trigger\":"
    ))?;
    shown(out, |out| command(out, spec, view.name, view.filter))?;
    out.bytes(b",\"system\":")?;
    string(out, origin.system)?;
    out.bytes(b",\"event\":")?;
    string(out, origin.event)?;
    out.bytes(b",\"name\":")?;
    let name = view
        .name
        .map(|token| token.strip_prefix(b"name=").unwrap_or(token));
    string_or_null(out, name)?;
    out.bytes(b",\"filter\":")?;
    string_or_null(out, view.filter)?;
    out.format(format_args!(
        ",\"paused\":{},\"size\":{}",
        view.paused,
        1u32 << spec.bits
    ))?;
    room(out, spec)?;
    out.bytes(b",\"clock\":")?;
    string_or_null(out, spec.timed.then(|| spec.clock.name().as_bytes()))?;
    out.bytes(b",\"boot_id\":")?;
    string_or_null(out, origin.boot_id)?;
    let now = (origin.now)();
    out.format(format_args!(
        ",\"realtime_ns\":{},\"monotonic_ns\":{}",
        now.realtime_ns, now.monotonic_ns
    ))?;
    out.bytes(b",\"begin\":")?;
    moment(out, view.hist.begin())?;
    more(out)?;
    out.bytes(b",\"keys\":[")?;
    listed(out, b",", spec.keys.iter(), |out, field| {
        out.bytes(b"{")?;
        column(out, field, Unit::One)?;
        out.bytes(b"}")
    })?;
    out.bytes(b"],\"values\":[")?;
    listed(out, b",", spec.vals.iter(), |out, field| {
        value_column(out, spec, field)
    })?;
    out.bytes(b"],\"variables\":[")?;
    let names = spec.vars.iter().filter_map(|var| var.variable.as_ref());
    listed(out, b",", names, |out, var| string(out, &var.name))?;
    out.bytes(b"],\"actions\":[")?;
    listed(out, b",", spec.actions.iter(), |out, action| {
        action_column(out, spec, action)
    })?;
    out.bytes(b"]}\n")
}

/// Appends members for the clauses that make room, if the trigger has them.
fn room(out: &mut Text, spec: &Spec) -> Result {
    let room = spec.room();
    if let Some([_, bits_max]) = room.sizes {
        out.format(format_args!(",\"size_max\":{}", 1u32 << bits_max))?;
    }
    if let Some(ns) = room.expire.idle_ns {
        out.format(format_args!(",\"expire_ns\":{ns}"))?;
    }
    if room.expire.taken {
        out.bytes(b",\"expire_taken\":true")?;
    }
    if room.full != Full::default() {
        out.bytes(b",\"full\":[")?;
        listed(out, b",", room.full.words(), |out, word| {
            out.format(format_args!("\"{word}\""))
        })?;
        out.bytes(b"]")?;
    }
    Ok(())
}

/// Appends a moment.
fn moment(out: &mut Text, moment: Moment) -> Result {
    let Moment { boot_ns, real_ns } = moment;
    out.format(format_args!(
        "{{\"boottime_ns\":{boot_ns},\"realtime_ns\":{real_ns}}}"
    ))
}

/// Appends the description of a key or value, as members of an object. Values with a unit for their
/// buckets are nanoseconds.
fn column(out: &mut Text, field: &HistField, bucket_unit: Unit) -> Result {
    out.bytes(b"\"name\":")?;
    string(out, field.name())?;
    out.bytes(b",\"type\":")?;
    string(out, field.type_())?;
    out.bytes(b",\"modifier\":")?;
    match field.modifier {
        None => out.bytes(NULL)?,
        Some(modifier) => match modifier.number() {
            None => out.format(format_args!("\"{}\"", modifier.word()))?,
            Some(number) => out.format(format_args!("\"{}={number}\"", modifier.word()))?,
        },
    }
    let unit: Option<&[u8]> = match bucket_unit {
        Unit::One if field.is_usecs() => Some(b"us"),
        Unit::One => None,
        _ => Some(b"ns"),
    };
    out.bytes(b",\"unit\":")?;
    string_or_null(out, unit)
}

/// Appends the description of a value.
fn value_column(out: &mut Text, spec: &Spec, field: &HistField) -> Result {
    let buckets = field.distribution(spec.distributions.unit);
    let unit = buckets.map_or(Unit::One, Exponential::unit);
    out.bytes(b"{")?;
    column(out, field, unit)?;
    out.bytes(b",\"bucket_unit\":")?;
    string_or_null(out, (unit != Unit::One).then(|| unit.name()))?;
    out.bytes(b"}")
}

/// Appends the description of an action.
fn action_column(out: &mut Text, spec: &Spec, action: &Action) -> Result {
    let handler = match action.handler {
        Handler::OnMatch { .. } => "onmatch",
        Handler::OnMax { .. } => "onmax",
        Handler::OnChange { .. } => "onchange",
    };
    let kind = match action.kind {
        ActionKind::Save => "save",
        ActionKind::Snapshot => "snapshot",
        ActionKind::Trace => "trace",
    };
    out.format(format_args!(
        "{{\"handler\":\"{handler}\",\"action\":\"{kind}\",\"saved\":["
    ))?;
    let saves = action.kind == ActionKind::Save;
    let saved = spec.save_vars.iter().filter(|_| saves);
    listed(out, b",", saved, |out, var| string(out, &var.variable.name))?;
    out.bytes(b"]}")
}

/// Appends the keys of an entry.
fn keys(out: &mut Text, row: &Row<'_>, names: &dyn Names) -> Result {
    out.bytes(b"[")?;
    listed(out, b",", row.keys(), |out, (field, cell)| {
        key(out, field, &cell, names)
    })?;
    out.bytes(b"]")
}

fn key(out: &mut Text, field: &HistField, cell: &KeyCell<'_>, names: &dyn Names) -> Result {
    let number = |number| Whole::new(number, field.signed());
    match *cell {
        KeyCell::Number(bits) | KeyCell::Hex(bits) => out.format(format_args!("{}", number(bits))),
        KeyCell::Task { pid, comm } => {
            out.format(format_args!("{{\"value\":{},\"comm\":", number(pid)))?;
            string(out, comm)?;
            out.bytes(b"}")
        }
        KeyCell::Symbol { address, offset } => symbol(out, address, offset, names),
        // A content that is not scaled, such as a stack.
        KeyCell::Log2(power @ 65..) => out.format(format_args!("{power}")),
        KeyCell::Log2(_) | KeyCell::Bucket { .. } | KeyCell::Range(_) => {
            match cell.range(field.has_sign()) {
                Some((first, last)) => {
                    out.format(format_args!("{{\"first\":{first},\"last\":{last}}}"))
                }
                None => out.bytes(NULL),
            }
        }
        KeyCell::Syscall(bits) => {
            out.format(format_args!("{{\"value\":{},\"syscall\":", number(bits)))?;
            string_or_null(out, names.syscall(bits))?;
            out.bytes(b"}")
        }
        KeyCell::Stack(entries) => stack(out, entries.entries(), names),
        KeyCell::UserStack(words) => user_stack::jsonl(out, words.entries(), field.depth()),
        KeyCell::Text(text) => string(out, text),
        KeyCell::Address(address) => out.format(format_args!("\"{address}\"")),
        KeyCell::Group(cell) => group(out, cell),
    }
}

/// Appends a control group, with its path if that is known.
fn group(out: &mut Text, group: GroupCell<'_>) -> Result {
    out.bytes(b"{\"value\":")?;
    match group.id {
        GONE => out.bytes(NULL)?,
        id => out.format(format_args!("{id}"))?,
    }
    out.bytes(b",\"cgroup\":")?;
    let mut path = Text::new();
    let known = group.show(&mut path)?;
    string_or_null(out, known.then_some(path.as_bytes()))?;
    out.bytes(b"}")
}

/// Appends return addresses.
fn stack(out: &mut Text, entries: impl Iterator<Item = u64>, names: &dyn Names) -> Result {
    out.bytes(b"{\"stack\":[")?;
    listed(out, b",", entries, |out, entry| {
        symbol(out, entry, true, names)
    })?;
    out.bytes(b"]}")
}

/// Appends an address, with the symbol there.
fn symbol(out: &mut Text, address: u64, offset: bool, names: &dyn Names) -> Result {
    out.format(format_args!("{{\"address\":\"{address:#x}\",\"symbol\":"))?;
    let mut name = Text::new();
    names.symbol(&mut name, address, offset)?;
    // The kernel prints the address if it knows no symbol.
    let name = Some(name.as_bytes()).filter(|name| !name.starts_with(b"0x"));
    string_or_null(out, name)?;
    out.bytes(b"}")
}

/// Appends the values of an entry.
fn values(out: &mut Text, row: &Row<'_>) -> Result {
    out.bytes(b"[")?;
    listed(out, b",", row.values(), |out, (field, cell)| {
        value(out, row, field, &cell)
    })?;
    out.bytes(b"]")
}

/// Appends a value of an entry as it is kept, however `hist` shows it.
fn value(out: &mut Text, row: &Row<'_>, field: &HistField, cell: &ValueCell<'_>) -> Result {
    match cell {
        ValueCell::Statistic(_) | ValueCell::Distribution(_) if !row.has_hits() => out.bytes(NULL),
        ValueCell::Number(_) | ValueCell::Hex(_) | ValueCell::Percent(_) | ValueCell::Graph(_) => {
            match field.column().and_then(|column| row.columns.get(column)) {
                Some(&sum) => out.format(format_args!("{}", Whole::new(sum, field.signed()))),
                None => out.bytes(NULL),
            }
        }
        ValueCell::Statistic(number) => out.format(format_args!("{number}")),
        ValueCell::Distribution(values) => {
            distribution(out, values, &row.spec.distributions.quantiles)
        }
    }
}

/// Appends a distribution. Its buckets have OpenTelemetry's indices.
fn distribution(out: &mut Text, values: &Distribution<'_>, quantiles: &[Quantile]) -> Result {
    let buckets = values.counts.iter();
    let buckets = buckets.map(|bucket| (Exponential::bucket(bucket.code()), bucket.count));
    let mut zeros = buckets
        .clone()
        .filter(|&(bucket, _)| bucket == Bucket::Zero);
    out.format(format_args!(
        "{{\"count\":{},\"no_bucket\":{},\"sum\":{},\"min\":{},\"max\":{},\"zero_count\":{},\"scale\":{}",
        values.count,
        values.without_bucket(),
        Whole::new(values.sum, values.buckets.signed()),
        values.min,
        values.max,
        zeros.next().map_or(0, |(_, count)| count),
        values.buckets.scale(),
    ))?;
    let positive = buckets.clone().filter_map(|(bucket, count)| match bucket {
        Bucket::Positive(index) => Some((index, count)),
        _ => None,
    });
    let negative = buckets.filter_map(|(bucket, count)| match bucket {
        Bucket::Negative(index) => Some((index, count)),
        _ => None,
    });
    let count = |out: &mut Text, (index, count)| out.format(format_args!("\"{index}\":{count}"));
    out.bytes(b",\"positive\":{")?;
    listed(out, b",", positive, count)?;
    out.bytes(b"},\"negative\":{")?;
    listed(out, b",", negative, count)?;
    out.bytes(b"},\"quantiles\":{")?;
    listed(out, b",", quantiles.iter(), |out, &quantile| {
        out.format(format_args!("\"{quantile}\":"))?;
        match values.quantile(quantile) {
            Some(value) => out.format(format_args!("{value}")),
            None => out.bytes(NULL),
        }
    })?;
    out.bytes(b"}}")
}

/// Appends the variables of an entry.
fn variables(out: &mut Text, row: &Row<'_>, names: &dyn Names) -> Result {
    let mut comma: &[u8] = b"";
    row.variables(|field, cell| {
        out.bytes(comma)?;
        comma = b",";
        match cell {
            None => out.bytes(NULL),
            Some(VariableCell::Number(number)) => {
                out.format(format_args!("{}", Whole::new(number, field.signed())))
            }
            Some(VariableCell::Group(cell)) => group(out, cell),
            Some(VariableCell::Text(text)) => string(out, text),
            Some(VariableCell::UserStack(words)) => {
                user_stack::jsonl(out, words.iter().copied(), field.depth())
            }
            Some(VariableCell::Stack(entries)) => {
                let entries = entries.iter().copied();
                stack(out, entries.take_while(|&entry| entry != 0), names)
            }
        }
    })
}

/// Appends the values that the actions have stored in an entry.
fn actions(out: &mut Text, row: &Row<'_>, buf: &mut TrackedBuf) -> Result {
    row.read_saved(buf)?;
    for (n, action) in row.spec.actions.iter().enumerate() {
        if n > 0 {
            out.bytes(b",")?;
        }
        let value = row.tracked(n, buf)?.filter(|_| row.shows_action(n));
        let Some(value) = value else {
            out.bytes(NULL)?;
            continue;
        };
        let value = tracked(action, value);
        out.format(format_args!("{{\"value\":{value},\"saved\":["))?;
        let mut comma: &[u8] = b"";
        if action.kind == ActionKind::Save {
            row.saved(buf, |var, cell| {
                out.bytes(comma)?;
                comma = b",";
                match cell {
                    SavedCell::Number(number) => {
                        let number = Whole::new(number, var.value.signed());
                        out.format(format_args!("{number}"))
                    }
                    SavedCell::Group(Some(cell)) => group(out, cell),
                    SavedCell::Group(None) => out.bytes(NULL),
                    SavedCell::Address(address) => out.format(format_args!("\"{address}\"")),
                    SavedCell::UserStack(Some(words)) => {
                        user_stack::jsonl(out, words.iter().copied(), var.value.depth())
                    }
                    SavedCell::UserStack(None) => out.bytes(NULL),
                    SavedCell::Text(text) => string_or_null(out, text),
                }
            })?;
        }
        out.bytes(b"]}")?;
    }
    Ok(())
}

/// The number that an action tracks.
fn tracked(action: &Action, value: u64) -> Whole {
    let signed = action.track.as_ref().map(|track| track.var_ref.signed);
    Whole::new(value, signed.unwrap_or(false))
}

/// Appends the members of a trailer about hits without an entry, of a trigger that has them.
fn others(out: &mut Text, snapshot: &Snapshot) -> Result {
    if snapshot.others().is_none() {
        return Ok(());
    }
    out.bytes(b",\"other\":{")?;
    let kinds = [
        ("folded", Other::Folded),
        ("expired", Other::Expired),
        ("recycled", Other::Recycled),
    ];
    listed(out, b",", kinds.into_iter(), |out, (name, other)| {
        out.format(format_args!("\"{name}\":"))?;
        let Some(row) = snapshot.other(other) else {
            return out.bytes(NULL);
        };
        out.format(format_args!("{{\"hitcount\":{},\"values\":", row.hits()))?;
        values(out, &row)?;
        out.bytes(b"}")
    })?;
    let Gone {
        expired,
        expired_set,
        recycled,
    } = snapshot.gone();
    out.format(format_args!(
        "}},\"expired_entries\":{expired},\"expired_set\":{expired_set},\"recycled_entries\":{recycled}"
    ))
}

/// Appends the cause of the last snapshot of the ring buffer; null if none was taken.
fn last_snapshot(out: &mut Text, snapshot: &Snapshot, names: &dyn Names) -> Result {
    let hist = snapshot.hist();
    let action = hist.spec().snapshot_action();
    let Some(action) = action.filter(|_| snapshot.shows_last_snapshot()) else {
        return out.bytes(NULL);
    };
    let Some(last) = LastSnapshot::read(hist)? else {
        return out.bytes(NULL);
    };
    let value = tracked(action, last.value);
    out.format(format_args!("{{\"value\":{value},\"keys\":"))?;
    keys(out, &last.row(hist), names)?;
    out.bytes(b"}")
}

/// Appends the output of `show` as a string.
fn shown(out: &mut Text, show: impl FnOnce(&mut Text) -> Result) -> Result {
    let mut text = Text::new();
    show(&mut text)?;
    string(out, text.as_bytes())
}

fn string_or_null(out: &mut Text, bytes: Option<&[u8]>) -> Result {
    match bytes {
        Some(bytes) => string(out, bytes),
        None => out.bytes(NULL),
    }
}

/// Appends characters as a string; or, if they are not UTF-8, which JSON requires, as an object
/// that has the bytes, too.
fn string(out: &mut Text, bytes: &[u8]) -> Result {
    if let Ok(text) = str::from_utf8(bytes) {
        out.bytes(b"\"")?;
        escaped(out, text)?;
        return out.bytes(b"\"");
    }
    out.bytes(b"{\"text\":\"")?;
    for chunk in bytes.utf8_chunks() {
        escaped(out, chunk.valid())?;
        if !chunk.invalid().is_empty() {
            out.bytes("\u{fffd}".as_bytes())?;
        }
    }
    out.bytes(b"\",\"bytes\":\"")?;
    for byte in bytes {
        out.format(format_args!("{byte:02x}"))?;
    }
    out.bytes(b"\"}")
}

/// Appends the inside of a string, without the quotes.
fn escaped(out: &mut Text, text: &str) -> Result {
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !matches!(byte, 0..b' ' | b'"' | b'\\') {
            continue;
        }
        out.bytes(&bytes[from..at])?;
        from = at + 1;
        match byte {
            b'\n' => out.bytes(b"\\n")?,
            b'\t' => out.bytes(b"\\t")?,
            b'"' | b'\\' => out.bytes(&[b'\\', byte])?,
            _ => out.format(format_args!("\\u{byte:04x}"))?,
        }
    }
    out.bytes(&bytes[from..])
}
