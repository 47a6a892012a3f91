// SPDX-License-Identifier: GPL-2.0

//! The `hist` and `trigger` files as text.

use core::cmp::min;
use core::cmp::Ordering;

use kernel::prelude::*;

use super::field::Compare;
use super::field::Function;
use super::field::HistField;
use super::limits;
use super::sort::heapsort;
use super::Histogram;
use super::Plan;
use super::SortKey;
use crate::event::hit::COMM_LEN;
use crate::map::Elt;
use crate::text::until_nul;
use crate::text::Text;
use crate::trigger::ModifierKind;

/// What only the kernel knows.
pub trait Names {
    /// Appends the name of what is at `address` (`%ps`), followed by where in it that is if
    /// `offset` is true (`%pS`). Fails with `ENOMEM`.
    fn symbol(&self, out: &mut Text, address: u64, offset: bool) -> Result;

    /// The name of the system call `number`.
    fn syscall(&self, number: u64) -> Option<&[u8]>;
}

/// A histogram as it is attached to an event.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The histogram.
    pub hist: &'a Histogram,
    /// Who knows names.
    pub names: &'a dyn Names,
    /// The whole token `name=…` of its trigger.
    pub name: Option<&'a [u8]>,
    /// The text of its trigger's filter, without `if`.
    pub filter: Option<&'a [u8]>,
    /// Whether hits pass it by for now.
    pub paused: bool,
}

/// Appends the `hist` file of an event with the histograms `views`. Fails with `ENOMEM`.
pub fn hist_file<'a>(out: &mut Text, views: impl Iterator<Item = View<'a>>) -> Result {
    for (n, view) in views.enumerate() {
        title(out, &view, n)?;
        Snapshot::take(view.hist)?.show(out, view.names)?;
    }
    Ok(())
}

/// The `trigger` file of an event without triggers: the commands of the kernel, in its order.
pub const NO_TRIGGERS: &[u8] = b"# Available triggers:\n\
    # traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist\n";

/// Appends what stands before each trigger in `show_event_triggers`: the name of the event in a column of
/// its own. Fails with `ENOMEM`.
pub fn event_column(out: &mut Text, system: &[u8], event: &[u8]) -> Result {
    out.padded(31, |out| {
        out.bytes(system)?;
        out.bytes(b":")?;
        out.bytes(event)
    })?;
    out.bytes(b" ")
}

/// Appends the triggers of an event, each behind `column`: the lines `others` of other triggers, which C
/// puts before those of histograms, and the histograms `views`. Fails with `ENOMEM`.
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

/// Appends what stands above the `n`th histogram of a file. Fails with `ENOMEM`.
pub(super) fn title(out: &mut Text, view: &View<'_>, n: usize) -> Result {
    if n > 0 {
        out.bytes(b"\n\n")?;
    }
    out.bytes(b"# event histogram\n#\n# trigger info: ")?;
    trigger_line(out, view)?;
    out.bytes(b"#\n\n")
}

/// Appends the trigger in one line: what has to be written, with `!` before it and without the
/// bracket at its end, to remove it. Fails with `ENOMEM`.
pub fn trigger_line(out: &mut Text, view: &View<'_>) -> Result {
    let plan = view.hist.plan();
    out.bytes(b"hist:")?;
    if let Some(name) = view.name {
        out.bytes(name)?;
        out.bytes(b":")?;
    }
    out.bytes(b"keys=")?;
    listed(out, b",", plan.keys().iter(), command_field)?;
    out.bytes(b":vals=")?;
    let hidden = usize::from(plan.nohitcount);
    listed(out, b",", plan.vals().iter().skip(hidden), command_field)?;
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
    if let Some(clock) = plan.clock {
        out.format(format_args!(":clock={}", clock.name()))?;
    }
    if plan.nohitcount {
        out.bytes(b":nohitcount")?;
    }
    if let Some(filter) = view.filter {
        out.bytes(b" if ")?;
        out.bytes(filter)?;
    }
    out.bytes(if view.paused {
        b" [paused]\n"
    } else {
        b" [active]\n"
    })
}

/// Appends a key or a value as it is written in a trigger.
fn command_field(out: &mut Text, field: &HistField) -> Result {
    match field.function {
        Function::Const(number) => out.format(format_args!("{number}"))?,
        _ => out.bytes(field.command_name())?,
    }
    field.show_modifier(out)
}

/// Appends `items` with `comma` between them.
fn listed<T>(
    out: &mut Text,
    comma: &[u8],
    items: impl Iterator<Item = T>,
    show: impl Fn(&mut Text, T) -> Result,
) -> Result {
    for (n, item) in items.enumerate() {
        if n > 0 {
            out.bytes(comma)?;
        }
        show(out, item)?;
    }
    Ok(())
}

/// The entries of a histogram with their sums as they were when each was read, once. Hits go on
/// being counted while the text is made; what is sorted and shown does not change with them.
struct Snapshot<'a> {
    hist: &'a Histogram,
    entries: KVVec<Elt<'a>>,
    /// The sums of the first entry, then those of the second, and so on.
    sums: KVVec<u64>,
    /// Indices of entries, in the order to show them in.
    order: KVVec<u32>,
    drops: u64,
}

impl<'a> Snapshot<'a> {
    fn take(hist: &'a Histogram) -> Result<Self> {
        let mut snapshot = Self {
            hist,
            entries: KVVec::new(),
            sums: KVVec::new(),
            order: KVVec::new(),
            drops: hist.drops(),
        };
        snapshot.read()?;
        snapshot.sort()?;
        Ok(snapshot)
    }

    fn read(&mut self) -> Result {
        for entry in self.hist.map.elts() {
            let hitcount = entry.sum(0);
            // The first hit of an entry without one is just being counted.
            if hitcount == 0 {
                continue;
            }
            self.entries.push(entry, GFP_KERNEL)?;
            self.sums.push(hitcount, GFP_KERNEL)?;
            for (sum, field) in self.hist.plan.vals().iter().enumerate().skip(1) {
                // The hitcount once more has moved on meanwhile.
                let sum = match field.function {
                    Function::Counter => hitcount,
                    _ => entry.sum(sum),
                };
                self.sums.push(sum, GFP_KERNEL)?;
            }
        }
        Ok(())
    }

    fn key(&self, entry: u32) -> &'a [u8] {
        self.entries[entry as usize].key()
    }

    /// The name of the entry's task, if it is noted.
    fn comm(&self, entry: u32) -> [u8; COMM_LEN] {
        let index = self.entries[entry as usize].index();
        let comms = self.hist.comms.as_ref();
        comms.map_or([0; COMM_LEN], |comms| comms.get(index))
    }

    fn sums(&self, entry: u32) -> &[u64] {
        let n_vals = self.hist.plan.n_vals;
        &self.sums[entry as usize * n_vals..][..n_vals]
    }

    /// Sorts by key bytes first, which makes the final order depend on the entries alone, then as
    /// the trigger says: see [`super::sort`].
    fn sort(&mut self) -> Result {
        let mut order = KVVec::with_capacity(self.entries.len(), GFP_KERNEL)?;
        for entry in (0..).take(self.entries.len()) {
            order.push(entry, GFP_KERNEL)?;
        }
        heapsort(&mut order, |&a, &b| self.key(a).cmp(self.key(b)));
        self.sort_by(&mut order, &self.hist.plan.sort);
        self.order = order;
        Ok(())
    }

    /// Sorts by the first of `keys`, then those that it finds equal by the rest.
    fn sort_by(&self, mut order: &mut [u32], keys: &[SortKey]) {
        let Some((key, rest)) = keys.split_first() else {
            return;
        };
        heapsort(order, |&a, &b| self.compare(key, a, b));
        if rest.is_empty() {
            return;
        }
        while let Some(&first) = order.first() {
            let equal = |&entry: &u32| self.compare(key, first, entry).is_eq();
            let n = order.iter().take_while(|entry| equal(entry)).count();
            let (run, others) = order.split_at_mut(n.max(1));
            self.sort_by(run, rest);
            order = others;
        }
    }

    fn compare(&self, key: &SortKey, a: u32, b: u32) -> Ordering {
        let plan = &self.hist.plan;
        let order = match key.field.checked_sub(plan.n_vals) {
            None => self.sums(a)[key.field].cmp(&self.sums(b)[key.field]),
            Some(n) => {
                let at = plan.program.parts()[n].at;
                compare_keys(
                    plan.keys()[n].compare(),
                    &self.key(a)[at..],
                    &self.key(b)[at..],
                )
            }
        };
        match key.descending {
            true => order.reverse(),
            false => order,
        }
    }

    fn show(&self, out: &mut Text, names: &dyn Names) -> Result {
        let plan = &self.hist.plan;
        let wholes = self.wholes()?;
        for &entry in &self.order {
            let comm = self.comm(entry);
            show_key(out, plan, self.key(entry), &comm, names)?;
            show_vals(out, plan, self.sums(entry), &wholes)?;
            out.bytes(b"\n")?;
        }
        out.format(format_args!(
            "\nTotals:\n    Hits: {}\n    Entries: {}\n    Dropped: {}\n",
            wholes[0].total,
            self.order.len(),
            self.drops
        ))
    }

    /// The whole of each sum, that of the hitcount first.
    fn wholes(&self) -> Result<KVec<Whole>> {
        let nothing = Whole { total: 0, max: 0 };
        let mut wholes = KVec::from_elem(nothing, self.hist.plan.n_vals, GFP_KERNEL)?;
        for &entry in &self.order {
            for (whole, &sum) in wholes.iter_mut().zip(self.sums(entry)) {
                whole.total = whole.total.wrapping_add(sum);
                whole.max = whole.max.max(sum);
            }
        }
        Ok(wholes)
    }
}

/// Compares what `a` and `b` start with.
fn compare_keys(by: Compare, a: &[u8], b: &[u8]) -> Ordering {
    match by {
        Compare::Nothing => Ordering::Equal,
        Compare::Text => until_nul(a).cmp(until_nul(b)),
        Compare::Number(type_) => type_.compare(number(a), number(b)),
    }
}

/// The number that `bytes`, part of a key, start with.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}

/// Appends an entry's key: `{ name: content, … }`.
fn show_key(out: &mut Text, plan: &Plan, key: &[u8], comm: &[u8], names: &dyn Names) -> Result {
    out.bytes(b"{ ")?;
    let stack = plan.keys().iter().any(|field| field.function.is_stack());
    let keys = plan.keys().iter().zip(plan.program.parts());
    listed(out, b", ", keys, |out, (field, part)| {
        out.bytes(field.name())?;
        let content = &key[part.at..];
        let number = number(content);
        match field.modifier {
            Some(ModifierKind::Hex) => out.format(format_args!(": {number:x}")),
            Some(ModifierKind::Execname) => {
                out.bytes(b": ")?;
                out.padded(16, |out| out.bytes(until_nul(comm)))?;
                out.format(format_args!("[{number:>10}]"))
            }
            Some(ModifierKind::Sym) => {
                out.format(format_args!(": [{number:x}] "))?;
                out.padded(45, |out| names.symbol(out, number, false))
            }
            Some(ModifierKind::SymOffset) => {
                out.format(format_args!(": [{number:x}] "))?;
                out.padded(55, |out| names.symbol(out, number, true))
            }
            Some(ModifierKind::Log2) => out.format(format_args!(": ~ 2^{number:<2}")),
            Some(ModifierKind::Buckets(width)) => {
                let last = number.wrapping_add(width as u64 - 1);
                out.format(format_args!(": ~ {number}-{last}"))
            }
            Some(ModifierKind::Syscall) => {
                out.bytes(b": ")?;
                let name = names.syscall(number).unwrap_or(b"unknown_syscall");
                out.padded(30, |out| out.bytes(name))?;
                out.format(format_args!("[{number:>3}]"))
            }
            _ if field.function.is_stack() => {
                show_stack(out, field, &content[..limits::STACK as usize], names)
            }
            _ if field.function.is_string() => {
                out.bytes(b": ")?;
                out.padded(50, |out| out.bytes(until_nul(content)))
            }
            _ => out.format(format_args!(": {number:>10}")),
        }
    })?;
    // Behind the newline of a stack.
    out.bytes(if stack { b"}" } else { b" }" })
}

/// Appends a stack, of which the name is there.
fn show_stack(out: &mut Text, field: &HistField, stack: &[u8], names: &dyn Names) -> Result {
    out.bytes(match field.function {
        Function::Stack => b":\n",
        _ => b".stacktrace",
    })?;
    for entry in stack
        .chunks_exact(8)
        .map(number)
        .take_while(|&entry| entry != 0)
    {
        out.bytes(b"         ")?;
        names.symbol(out, entry, true)?;
        out.bytes(b"\n")?;
    }
    Ok(())
}

/// What all entries together have in one of their sums.
#[derive(Clone, Copy)]
struct Whole {
    total: u64,
    max: u64,
}

/// Appends an entry's sums.
fn show_vals(out: &mut Text, plan: &Plan, sums: &[u64], wholes: &[Whole]) -> Result {
    let vals = plan.vals().iter().zip(sums).zip(wholes).enumerate();
    for (n, ((field, &sum), whole)) in vals {
        match n {
            0 if plan.nohitcount => continue,
            // C sums them up, sorts by them, and does not show them.
            _ if !field.operands.is_empty() => continue,
            0 => out.bytes(b" ")?,
            _ => out.bytes(b"  ")?,
        }
        out.bytes(field.name())?;
        match field.modifier {
            Some(ModifierKind::Percent) => match hundredths(sum, whole.total) {
                Some(part) => {
                    let (percent, rest) = (part / 100, part % 100);
                    out.format(format_args!(" (%): {percent:>3}.{rest:02}"))?;
                }
                None => out.bytes(b" (%):[ERROR]")?,
            },
            Some(ModifierKind::Graph) => {
                out.bytes(b": ")?;
                match hundredths(sum, whole.max) {
                    Some(part) => {
                        let bar = min(part as usize * BAR.len() / 10000, BAR.len());
                        out.padded(BAR.len(), |out| out.bytes(&BAR[..bar]))?;
                    }
                    None => out.format(format_args!("{:>20}", "[ERROR]"))?,
                }
            }
            Some(ModifierKind::Hex) => out.format(format_args!(": {sum:>10x}"))?,
            _ => out.format(format_args!(": {sum:>10}"))?,
        }
    }
    Ok(())
}

/// The longest bar of `.graph`.
const BAR: &[u8; 20] = b"####################";

/// How many hundredths of a percent of `whole` the `part` is, if that can be said. It may be more than
/// all of it when the sum of all has wrapped. `u32::MAX` is how C says that it cannot be said.
fn hundredths(part: u64, whole: u64) -> Option<u32> {
    let quotient = if part < u64::MAX / 10000 {
        (part * 10000).checked_div(whole)
    } else {
        part.checked_div(whole / 10000)
    };
    match quotient {
        None if part == 0 => Some(0),
        quotient => quotient?.try_into().ok().filter(|&part| part != u32::MAX),
    }
}
