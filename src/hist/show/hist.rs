// SPDX-License-Identifier: GPL-2.0

//! The `hist` file: C's text.

use core::cmp::min;

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
        Stack,
        TrackedBuf,
        ValueCell, //
    },
    snapshot::{
        LastSnapshot,
        Snapshot, //
    },
    trigger::{
        listed,
        title, //
    },
    user_stack,
    IntervalView,
    Names,
    View, //
};
use crate::{
    event::Moment,
    hist::{
        spec::{
            action::{
                ActionKind,
                Handler, //
            },
            field::{
                Function,
                HistField, //
            },
        },
        Histogram, //
    },
    map::Other,
    text::Text,
    trigger::Quantile, //
};

impl HistFile {
    /// The `hist` file of an event with the histograms `views`. Fails with `ENOMEM`, and as
    /// [`Names::check_signal`].
    pub fn new<'a>(views: impl Iterator<Item = View<'a>>) -> Result<Self> {
        Self::with_printer(&HistText, views, |out, view, n| {
            title(out, &view, n, |_| Ok(()))?;
            Snapshot::take(&view)
        })
    }

    /// The `hist_delta` file of an event with the intervals `views`. Fails as [`HistFile::new`].
    pub fn intervals<'a>(views: impl Iterator<Item = IntervalView<'a>>) -> Result<Self> {
        Self::with_printer(&HistText, views, |out, mut view, n| {
            title(out, &view.view, n, |out| interval(out, &view))?;
            Snapshot::of_interval(&mut view)
        })
    }
}

/// Appends the lines of the heading about an interval.
fn interval(out: &mut Text, view: &IntervalView<'_>) -> Result {
    let edges = [
        ("begin", view.interval.begin()),
        ("end", view.interval.end()),
    ];
    for (name, Moment { boot_ns, real_ns }) in edges {
        out.format(format_args!(
            "# {name}: {boot_ns} ns since boot, {real_ns} ns since 1970\n"
        ))?;
    }
    if let Some(ended) = view.ended {
        out.format(format_args!("# {}\n", ended.word()))?;
    }
    match view.lost {
        0 => Ok(()),
        lost => out.format(format_args!("# lost: {lost} histograms\n")),
    }
}

/// Prints C's text.
struct HistText;

impl Printer for HistText {
    fn row(
        &self,
        out: &mut Text,
        row: &Row<'_>,
        buf: &mut TrackedBuf,
        names: &dyn Names,
    ) -> Result {
        show_row(out, row, buf, names)
    }

    fn end(&self, out: &mut Text, snapshot: &Snapshot, names: &dyn Names) -> Result {
        others(out, snapshot)?;
        totals(out, snapshot, names)
    }
}

/// Appends an entry.
fn show_row(out: &mut Text, row: &Row<'_>, buf: &mut TrackedBuf, names: &dyn Names) -> Result {
    show_keys(out, row, names)?;
    show_values(out, row)?;
    show_tracked(out, row, buf)?;
    out.bytes(b"\n")
}

/// Appends the row of hits without an entry, unless all are of entries.
fn others(out: &mut Text, snapshot: &Snapshot) -> Result {
    match snapshot.others().filter(Row::has_hits) {
        Some(others) => {
            out.bytes(b"{ other }")?;
            show_values(out, &others)?;
            out.bytes(b"\n")
        }
        None => Ok(()),
    }
}

/// Appends the lines after the entries.
fn totals(out: &mut Text, snapshot: &Snapshot, names: &dyn Names) -> Result {
    if snapshot.shows_last_snapshot() {
        show_last_snapshot(out, snapshot.hist(), names)?;
    }
    out.format(format_args!(
        "\nTotals:\n    Hits: {}\n    Entries: {}\n    Dropped: {}\n",
        snapshot.hits(),
        snapshot.len(),
        snapshot.drops()
    ))?;
    for (name, other) in [
        ("Folded", Other::Folded),
        ("Expired", Other::Expired),
        ("Recycled", Other::Recycled),
    ] {
        if let Some(row) = snapshot.other(other) {
            out.format(format_args!("    {name}: {}\n", row.hits()))?;
        }
    }
    if snapshot.hist().spec().limit.is_some() {
        let hidden = snapshot.len() - snapshot.shown();
        out.format(format_args!("    Not shown: {hidden}\n"))?;
    }
    match snapshot.without_bucket() {
        Some(values) => out.format(format_args!("    Without bucket: {values}\n")),
        None => Ok(()),
    }
}

/// Appends an entry's key: `{ name: content, … }`.
fn show_keys(out: &mut Text, row: &Row<'_>, names: &dyn Names) -> Result {
    out.bytes(b"{ ")?;
    let mut stack = false;
    listed(out, b", ", row.keys(), |out, (field, cell)| {
        out.bytes(field.name())?;
        match cell {
            KeyCell::Number(number) => out.format(format_args!(": {number:>10}")),
            KeyCell::Hex(number) => out.format(format_args!(": {number:x}")),
            KeyCell::Task { pid, comm } => {
                out.bytes(b": ")?;
                out.padded(16, |out| out.bytes(comm))?;
                out.format(format_args!("[{pid:>10}]"))
            }
            KeyCell::Symbol { address, offset } => {
                out.format(format_args!(": [{address:x}] "))?;
                let width = if offset { 55 } else { 45 };
                out.padded(width, |out| names.symbol(out, address, offset))
            }
            KeyCell::Log2(power) => out.format(format_args!(": ~ 2^{power:<2}")),
            KeyCell::Bucket { first, last } => out.format(format_args!(": ~ {first}-{last}")),
            KeyCell::Range(Some((first, last))) => match first.value() < 0 {
                true => out.format(format_args!(": ~ {first} - {last}")),
                false => out.format(format_args!(": ~ {first}-{last}")),
            },
            KeyCell::Range(None) => out.bytes(b": ~"),
            KeyCell::Syscall(number) => {
                out.bytes(b": ")?;
                let name = names.syscall(number).unwrap_or(b"unknown_syscall");
                out.padded(30, |out| out.bytes(name))?;
                out.format(format_args!("[{number:>3}]"))
            }
            KeyCell::Text(text) => {
                out.bytes(b": ")?;
                out.padded(50, |out| out.bytes(text))
            }
            KeyCell::Address(address) => {
                out.bytes(b": ")?;
                out.padded(ADDRESS_WIDTH, |out| out.format(format_args!("{address}")))
            }
            KeyCell::Group(group) => {
                out.bytes(b": ")?;
                out.padded(GROUP_WIDTH, |out| show_group(out, group))
            }
            KeyCell::UserStack(words) => {
                stack = true;
                show_user_stack(out, words)
            }
            KeyCell::Stack(entries) => {
                stack = true;
                show_stack(out, field, entries, names)
            }
        }
    })?;
    // A stack has ended with a newline.
    out.bytes(if stack { b"}" } else { b" }" })
}

/// Appends a control group: its path, or its id if only that is known.
fn show_group(out: &mut Text, group: GroupCell<'_>) -> Result {
    match group.show(out)? {
        true => Ok(()),
        false => out.format(format_args!("{}", group.id)),
    }
}

/// Appends a stack after its name.
fn show_stack(out: &mut Text, field: &HistField, stack: Stack<'_>, names: &dyn Names) -> Result {
    out.bytes(match field.function {
        Function::Stack => b":\n",
        _ => b".stacktrace",
    })?;
    for entry in stack.entries() {
        out.bytes(b"         ")?;
        names.symbol(out, entry, true)?;
        out.bytes(b"\n")?;
    }
    Ok(())
}

/// Appends a stack of a program after its name.
fn show_user_stack(out: &mut Text, words: Stack<'_>) -> Result {
    out.bytes(b":\n")?;
    for word in words.entries() {
        out.bytes(b"         ")?;
        user_stack::word(out, word)?;
        out.bytes(b"\n")?;
    }
    Ok(())
}

/// Appends an entry's values. The hitcount is left out with `nohitcount`; so are expressions, as in
/// C, although they are summed up, and entries can be sorted by them.
fn show_values(out: &mut Text, row: &Row<'_>) -> Result {
    let hide_hitcount = row.spec.nohitcount;
    let mut gap: &[u8] = if hide_hitcount { b"  " } else { b" " };
    let values = row.values().skip(usize::from(hide_hitcount));
    for (field, cell) in values.filter(|(field, _)| !field.is_hidden()) {
        out.bytes(gap)?;
        gap = b"  ";
        let (name, statistic) = field.value_name();
        out.bytes(name)?;
        out.bytes(statistic.as_bytes())?;
        match cell {
            ValueCell::Number(sum) => out.format(format_args!(": {sum:>10}"))?,
            ValueCell::Hex(sum) => out.format(format_args!(": {sum:>10x}"))?,
            ValueCell::Percent(Some(part)) => {
                let (percent, rest) = (part / 100, part % 100);
                out.format(format_args!(" (%): {percent:>3}.{rest:02}"))?;
            }
            ValueCell::Percent(None) => out.bytes(b" (%):[ERROR]")?,
            ValueCell::Graph(Some(part)) => {
                let bar = min(part as usize * BAR.len() / 10000, BAR.len());
                out.bytes(b": ")?;
                out.padded(BAR.len(), |out| out.bytes(&BAR[..bar]))?;
            }
            ValueCell::Statistic(number) => out.format(format_args!(": {number:>10}"))?,
            ValueCell::Distribution(distribution) => {
                show_distribution(out, &distribution, &row.spec.distributions.quantiles)?
            }
            ValueCell::Graph(None) => out.format(format_args!(": {:>20}", "[ERROR]"))?,
        }
    }
    Ok(())
}

/// Appends a distribution: its extremes, the quantiles in between, the average, and the number of
/// values in no bucket, if any.
fn show_distribution(
    out: &mut Text,
    distribution: &Distribution<'_>,
    quantiles: &[Quantile],
) -> Result {
    let &Distribution {
        count,
        min,
        max,
        avg,
        ..
    } = distribution;
    out.format(format_args!(":  count: {count:>10}  min: {min:>10}"))?;
    for &quantile in quantiles {
        out.format(format_args!("  p{quantile}: "))?;
        match distribution.quantile(quantile) {
            Some(value) => out.right(10, |out| out.format(format_args!("{value}")))?,
            None => out.format(format_args!("{:>10}", "-"))?,
        }
    }
    out.format(format_args!("  max: {max:>10}  avg: {avg:>10}"))?;
    // The quantiles leave out values without a bucket.
    match distribution.without_bucket() {
        0 => Ok(()),
        lost => out.format(format_args!("  without bucket: {lost:>10}")),
    }
}

/// Appends the values that the actions of a trigger have stored in an entry.
fn show_tracked(out: &mut Text, row: &Row<'_>, buf: &mut TrackedBuf) -> Result {
    row.read_saved(buf)?;
    for (n, action) in row.spec.actions.iter().enumerate() {
        let name = match action.handler {
            Handler::OnMatch { .. } => continue,
            Handler::OnMax { .. } => "max",
            Handler::OnChange { .. } => "changed",
        };
        if action.kind == ActionKind::Snapshot || !row.shows_action(n) {
            continue;
        }
        let value = match row.tracked(n, buf)? {
            Some(value) => value,
            None if row.is_gone() => continue,
            None => 0,
        };
        out.format(format_args!("\n\t{name}: {value:>10}"))?;
        // After each action, as in C.
        row.saved(buf, |var, cell| {
            out.bytes(b"  ")?;
            out.bytes(&var.variable.name)?;
            out.bytes(b": ")?;
            match cell {
                SavedCell::Number(number) => out.format(format_args!("{number:>10}")),
                SavedCell::Group(Some(group)) => show_group(out, group),
                SavedCell::Group(None) => out.bytes(b"(null)"),
                SavedCell::Address(address) => out.format(format_args!("{address}")),
                SavedCell::UserStack(Some(words)) => {
                    listed(out, b";", words.iter(), |out, &word| {
                        user_stack::word(out, word)
                    })
                }
                SavedCell::UserStack(None) => out.bytes(b"(null)"),
                SavedCell::Text(text) => out.padded(32, |out| out.bytes(text.unwrap_or(b"(null)"))),
            }
        })?;
    }
    Ok(())
}

/// Appends the cause of the last snapshot, if one was taken.
fn show_last_snapshot(out: &mut Text, hist: &Histogram, names: &dyn Names) -> Result {
    let Some(action) = hist.spec().snapshot_action() else {
        return Ok(());
    };
    let Some(last) = LastSnapshot::read(hist)? else {
        return Ok(());
    };
    let (handler, var) = match &action.handler {
        Handler::OnMax { var } => (&b"onmax"[..], var),
        Handler::OnChange { var } => (&b"onchange"[..], var),
        Handler::OnMatch { .. } => return Ok(()),
    };
    out.bytes(b"\nSnapshot taken (see tracing/snapshot).  Details:\n\ttriggering value { ")?;
    out.bytes(handler)?;
    out.bytes(b"(")?;
    out.bytes(var)?;
    out.format(format_args!(
        ") }}: {:>10}\ttriggered by event with key: ",
        last.value
    ))?;
    show_keys(out, &last.row(hist), names)?;
    out.bytes(b"\n")
}

/// The length of the longest address.
const ADDRESS_WIDTH: usize = 39;

/// The room for the path of a control group.
const GROUP_WIDTH: usize = 50;

/// The longest bar of `.graph`.
const BAR: &[u8; 20] = b"####################";
