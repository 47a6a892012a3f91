// SPDX-License-Identifier: GPL-2.0

//! The `hist` and `trigger` files as text.

use core::cmp::min;

use kernel::prelude::*;
use kernel::sync::Arc;

use super::action::Handler;
use super::action::Kind;
use super::field::Function;
use super::field::HistField;
use super::row::KeyCell;
use super::row::Row;
use super::row::SavedCell;
use super::row::Stack;
use super::row::Tracked;
use super::row::ValueCell;
use super::snapshot::Snapshot;
use super::snapshot::Taken;
use super::Histogram;
use super::Plan;
use crate::text::Text;

/// What only the kernel knows: names, and whether somebody still waits for the text.
pub trait Names {
    /// Appends the symbol at `address` (`%ps`), with the offset in it if `offset` (`%pS`). Fails with
    /// `ENOMEM`.
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> Result;

    /// The name of the system call `number`.
    fn syscall(&self, number: u64) -> Option<&[u8]>;

    /// Appends what stands for the address of a histogram (`%p`). Fails with `ENOMEM`.
    fn address(&self, out: &mut Text, histogram: &Histogram) -> Result;

    /// Lets others run. Fails with `EINTR` if the reader was killed.
    fn go_on(&self) -> Result;
}

/// A histogram as it is attached to an event, for printing.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The histogram.
    pub hist: &'a Arc<Histogram>,
    /// Looks up names.
    pub names: &'a dyn Names,
    /// The whole token `name=…` of its trigger.
    pub name: Option<&'a [u8]>,
    /// The text of its trigger's filter, without `if`.
    pub filter: Option<&'a [u8]>,
    /// Whether it is paused.
    pub paused: bool,
}

/// A piece of a `hist` file ends with the row that makes it this long, in bytes.
const PIECE: usize = 16384;

/// A `hist` file that is being read: what is in it, from which the text is made piece by piece. The text of all rows
/// may take a hundred times as much memory.
pub struct HistFile {
    hists: KVec<HistText>,
    /// The next row to show, by the number of its histogram and its own.
    next: (usize, usize),
}

/// What is shown of a histogram.
struct HistText {
    title: Text,
    snapshot: Snapshot,
}

impl HistFile {
    /// The file of an event with the histograms `views`. Fails with `ENOMEM`, and as [`Names::go_on`].
    pub fn new<'a>(views: impl Iterator<Item = View<'a>>) -> Result<Self> {
        let mut hists = KVec::new();
        for (n, view) in views.enumerate() {
            let mut heading = Text::new();
            title(&mut heading, &view, n)?;
            let hist = HistText {
                title: heading,
                snapshot: Snapshot::take(view.hist, &|| view.names.go_on())?,
            };
            hists.push(hist, GFP_KERNEL)?;
        }
        Ok(Self {
            hists,
            next: (0, 0),
        })
    }

    /// Hits that it shows.
    pub fn hits(&self) -> u64 {
        let hits = self.hists.iter().map(|hist| hist.snapshot.hits());
        hits.fold(0, u64::wrapping_add)
    }

    /// Begins again with the first piece.
    pub fn rewind(&mut self) {
        self.next = (0, 0);
    }

    /// The next piece of the text; `None` at its end. Fails with `ENOMEM`, as [`Names::go_on`], and with `EAGAIN` if
    /// what is saved in an entry was replaced again and again; the next call makes the same piece.
    pub fn next_piece(&mut self, names: &dyn Names) -> Result<Option<Text>> {
        names.go_on()?;
        let mut out = Text::new();
        let mut room = Tracked::new()?;
        let (mut n, mut row) = self.next;
        while let Some(hist) = self.hists.get(n) {
            let full = |out: &Text| out.as_bytes().len() >= PIECE;
            if full(&out) {
                break;
            }
            if row == 0 {
                out.bytes(hist.title.as_bytes())?;
            }
            while let Some(shown) = hist.snapshot.row(row) {
                show_row(&mut out, &shown, &mut room, names)?;
                row += 1;
                if full(&out) {
                    break;
                }
            }
            if row < hist.snapshot.len() {
                break;
            }
            totals(&mut out, &hist.snapshot, names)?;
            (n, row) = (n + 1, 0);
        }
        self.next = (n, row);
        Ok((!out.as_bytes().is_empty()).then_some(out))
    }
}

/// The `trigger` file of an event without triggers: the commands of the kernel, in its order.
pub const NO_TRIGGERS: &[u8] = b"# Available triggers:\n\
    # traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist\n";

/// Appends the first column of `show_event_triggers`: the name of the event. Fails with `ENOMEM`.
pub fn event_column(out: &mut Text, system: &[u8], event: &[u8]) -> Result {
    out.padded(31, |out| {
        out.bytes(system)?;
        out.bytes(b":")?;
        out.bytes(event)
    })?;
    out.bytes(b" ")
}

/// Appends the triggers of an event, one per line, each after `column`: as in C first `others`, the lines of other
/// triggers, then the hist triggers `views`. Fails with `ENOMEM`.
pub fn triggers<'a>(
    out: &mut Text,
    column: &[u8],
    others: impl Iterator<Item = &'a [u8]>,
    views: impl Iterator<Item = View<'a>>,
) -> Result {
    for other in others {
        out.bytes(column)?;
        out.bytes(other)?;
    }
    for view in views {
        out.bytes(column)?;
        trigger_line(out, &view)?;
    }
    Ok(())
}

/// Appends the heading of the `n`th histogram of a file. Fails with `ENOMEM`.
pub(super) fn title(out: &mut Text, view: &View<'_>, n: usize) -> Result {
    if n > 0 {
        out.bytes(b"\n\n")?;
    }
    out.bytes(b"# event histogram\n#\n# trigger info: ")?;
    trigger_line(out, view)?;
    out.bytes(b"#\n\n")
}

/// Appends the trigger as one line. Written with `!` before it and without the bracket at its end, the line
/// removes the trigger. Fails with `ENOMEM`.
pub fn trigger_line(out: &mut Text, view: &View<'_>) -> Result {
    command(out, view.hist.plan(), view.name, view.filter)?;
    out.bytes(if view.paused {
        b" [paused]\n"
    } else {
        b" [active]\n"
    })
}

/// Appends the command that makes a trigger with this plan, the whole token `name=…` and the text of the filter. Fails
/// with `ENOMEM`.
pub fn command(out: &mut Text, plan: &Plan, name: Option<&[u8]>, filter: Option<&[u8]>) -> Result {
    out.bytes(b"hist:")?;
    if let Some(name) = name {
        out.bytes(name)?;
        out.bytes(b":")?;
    }
    out.bytes(b"keys=")?;
    listed(out, b",", plan.keys().iter(), command_field)?;
    out.bytes(b":vals=")?;
    let hidden = usize::from(plan.nohitcount);
    listed(out, b",", plan.vals().iter().skip(hidden), command_field)?;
    if !plan.vars().is_empty() {
        out.bytes(b":")?;
        listed(out, b",", plan.vars().iter(), command_field)?;
    }
    out.bytes(b":sort=")?;
    // Without modifiers, which `sort=` does not take.
    listed(out, b",", plan.sort.iter(), |out, key| {
        out.bytes(plan.fields[key.field].command_name())?;
        if key.descending {
            out.bytes(b".descending")?;
        }
        Ok(())
    })?;
    out.format(format_args!(":size={}", 1u32 << plan.bits))?;
    if plan.timed {
        out.format(format_args!(":clock={}", plan.clock.name()))?;
    }
    if plan.nohitcount {
        out.bytes(b":nohitcount")?;
    }
    for action in &plan.actions {
        out.bytes(b":")?;
        action.show(out)?;
    }
    if let Some(filter) = filter {
        out.bytes(b" if ")?;
        out.bytes(filter)?;
    }
    Ok(())
}

/// Appends a key, value or variable as it is written in a trigger.
fn command_field(out: &mut Text, field: &HistField) -> Result {
    if let Some(variable) = &field.variable {
        out.bytes(&variable.name)?;
        out.bytes(b"=")?;
    }
    field.show_as(out, field.command_name())
}

/// Appends `items`, separated by `comma`.
fn listed<T>(
    out: &mut Text,
    comma: &[u8],
    items: impl Iterator<Item = T>,
    mut show: impl FnMut(&mut Text, T) -> Result,
) -> Result {
    for (n, item) in items.enumerate() {
        if n > 0 {
            out.bytes(comma)?;
        }
        show(out, item)?;
    }
    Ok(())
}

/// Appends an entry.
fn show_row(out: &mut Text, row: &Row<'_>, room: &mut Tracked, names: &dyn Names) -> Result {
    show_keys(out, row, names)?;
    show_values(out, row)?;
    show_tracked(out, row, room)?;
    out.bytes(b"\n")
}

/// Appends what follows the entries.
fn totals(out: &mut Text, snapshot: &Snapshot, names: &dyn Names) -> Result {
    show_taken(out, snapshot.hist(), names)?;
    out.format(format_args!(
        "\nTotals:\n    Hits: {}\n    Entries: {}\n    Dropped: {}\n",
        snapshot.hits(),
        snapshot.len(),
        snapshot.drops()
    ))
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
            KeyCell::Stack(entries) => {
                stack = true;
                show_stack(out, field, entries, names)
            }
        }
    })?;
    // Behind the newline of a stack.
    out.bytes(if stack { b"}" } else { b" }" })
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

/// Appends an entry's values.
fn show_values(out: &mut Text, row: &Row<'_>) -> Result {
    // Also where the hitcount is left out.
    let mut gap: &[u8] = if row.plan.nohitcount { b"  " } else { b" " };
    for (field, cell) in row.values() {
        out.bytes(gap)?;
        gap = b"  ";
        out.bytes(field.name())?;
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
            ValueCell::Graph(None) => out.format(format_args!(": {:>20}", "[ERROR]"))?,
        }
    }
    Ok(())
}

/// Appends what the actions of a trigger have stored in an entry.
fn show_tracked(out: &mut Text, row: &Row<'_>, room: &mut Tracked) -> Result {
    row.read_saved(room)?;
    for (n, action) in row.plan.actions.iter().enumerate() {
        let name = match action.handler {
            Handler::OnMatch { .. } => continue,
            Handler::OnMax { .. } => "max",
            Handler::OnChange { .. } => "changed",
        };
        if action.kind == Kind::Snapshot {
            continue;
        }
        let value = row.tracked(n, room)?;
        out.format(format_args!("\n\t{name}: {value:>10}"))?;
        // As in C, after each action.
        row.saved(room, |name, cell| {
            out.bytes(b"  ")?;
            out.bytes(name)?;
            out.bytes(b": ")?;
            match cell {
                SavedCell::Number(number) => out.format(format_args!("{number:>10}")),
                SavedCell::Text(text) => out.padded(32, |out| out.bytes(text.unwrap_or(b"(null)"))),
            }
        })?;
    }
    Ok(())
}

/// Appends why the last snapshot was taken, if one was.
fn show_taken(out: &mut Text, hist: &Histogram, names: &dyn Names) -> Result {
    let plan = hist.plan();
    let mut actions = plan.actions.iter();
    let Some(action) = actions.find(|action| action.kind == Kind::Snapshot) else {
        return Ok(());
    };
    let Some(taken) = Taken::read(hist)? else {
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
        taken.value
    ))?;
    show_keys(out, &taken.row(hist), names)?;
    out.bytes(b"\n")
}

/// The longest bar of `.graph`.
const BAR: &[u8; 20] = b"####################";
