// SPDX-License-Identifier: GPL-2.0

//! The line of a trigger, and the `trigger` file.

use kernel::prelude::*;

use super::View;
use crate::{
    event::Unit,
    hist::{
        spec::{
            action::{
                Action,
                Handler, //
            },
            field::HistField,
            SortBy,
            Statistic, //
        },
        Spec, //
    },
    limits,
    text::Text,
    trigger::{
        Expire,
        Full,
        Quantile, //
    },
};

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

/// Appends the triggers of an event, one per line, each after `column`: as in C first `others`, the
/// lines of other triggers, then the hist triggers `views`. Fails with `ENOMEM`.
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

/// Appends the heading of the `n`th histogram of a file; `more` appends further lines. Fails with
/// `ENOMEM`.
pub(super) fn title(
    out: &mut Text,
    view: &View<'_>,
    n: usize,
    more: impl FnOnce(&mut Text) -> Result,
) -> Result {
    if n > 0 {
        out.bytes(b"\n\n")?;
    }
    out.bytes(b"# event histogram\n#\n# trigger info: ")?;
    trigger_line(out, view)?;
    more(out)?;
    out.bytes(b"#\n\n")
}

/// Appends the trigger as one line. Writing the line with `!` before it and without the bracket at
/// its end removes the trigger. Fails with `ENOMEM`.
pub fn trigger_line(out: &mut Text, view: &View<'_>) -> Result {
    command(out, view.hist.spec(), view.name, view.filter)?;
    out.bytes(if view.paused {
        b" [paused]\n"
    } else {
        b" [active]\n"
    })
}

/// Appends the command that creates a trigger with this spec, the whole token `name=…`, and the
/// text of the filter. Fails with `ENOMEM`.
pub fn command(out: &mut Text, spec: &Spec, name: Option<&[u8]>, filter: Option<&[u8]>) -> Result {
    out.bytes(b"hist:")?;
    if let Some(name) = name {
        out.bytes(name)?;
        out.bytes(b":")?;
    }
    out.bytes(b"keys=")?;
    listed(out, b",", spec.keys.iter(), command_field)?;
    if !spec.on.is_empty() {
        out.bytes(b":on(")?;
        listed(out, b",", spec.on.iter(), command_field)?;
        out.bytes(b")")?;
    }
    out.bytes(b":vals=")?;
    let hidden = usize::from(spec.nohitcount);
    listed(out, b",", spec.vals.iter().skip(hidden), command_field)?;
    if !spec.vars.is_empty() {
        out.bytes(b":")?;
        listed(out, b",", spec.vars.iter(), command_field)?;
    }
    distributions(out, spec)?;
    out.bytes(b":sort=")?;
    // Without modifiers, which `sort=` does not take, except statistics.
    listed(out, b",", spec.sort.iter(), |out, key| {
        let field = spec.sort_field(key.by);
        out.bytes(field.command_name())?;
        match key.by {
            SortBy::Value(_) => out.bytes(field.value_name().1.as_bytes())?,
            SortBy::Distribution(_, Statistic::Min) => out.bytes(b".min")?,
            SortBy::Distribution(_, Statistic::Max) => out.bytes(b".max")?,
            SortBy::Distribution(_, Statistic::Avg) => out.bytes(b".avg")?,
            SortBy::Distribution(_, Statistic::Quantile(quantile)) => {
                out.format(format_args!(".p{quantile}"))?;
            }
            SortBy::Key(_) => (),
        }
        if key.descending {
            out.bytes(b".descending")?;
        }
        Ok(())
    })?;
    if let Some(limit) = spec.limit {
        out.format(format_args!(":limit({limit})"))?;
    }
    if spec.ustack != limits::STACK_DEPTH as u32 {
        out.format(format_args!(":ustack({})", spec.ustack))?;
    }
    out.format(format_args!(":size={}", 1u32 << spec.bits))?;
    room(out, spec)?;
    if spec.timed {
        out.format(format_args!(":clock={}", spec.clock.name()))?;
    }
    if spec.nohitcount {
        out.bytes(b":nohitcount")?;
    }
    for action in &spec.actions {
        out.bytes(b":")?;
        self::action(out, action)?;
    }
    if let Some(filter) = filter {
        out.bytes(b" if ")?;
        out.bytes(filter)?;
    }
    Ok(())
}

/// Appends the upper size, and the clauses that make room.
fn room(out: &mut Text, spec: &Spec) -> Result {
    let room = spec.room();
    if let Some([_, bits_max]) = room.sizes {
        out.format(format_args!("..{}", 1u32 << bits_max))?;
    }
    if room.expire != Expire::default() {
        out.format(format_args!(":expire({})", room.expire))?;
    }
    if room.full != Full::default() {
        out.format(format_args!(":full({})", room.full))?;
    }
    Ok(())
}

/// Appends the clauses for distributions that differ from the defaults.
fn distributions(out: &mut Text, spec: &Spec) -> Result {
    let distributions = &spec.distributions;
    if distributions.quantiles[..] != Quantile::DEFAULT {
        out.bytes(b":quantiles(")?;
        listed(
            out,
            b",",
            distributions.quantiles.iter(),
            |out, quantile| out.format(format_args!("{quantile}")),
        )?;
        out.bytes(b")")?;
    }
    if distributions.unit != Unit::One {
        out.bytes(b":unit(")?;
        out.bytes(distributions.unit.name())?;
        out.bytes(b")")?;
    }
    match distributions.buckets {
        limits::BUCKETS_DEFAULT => Ok(()),
        buckets => out.format(format_args!(":buckets({buckets})")),
    }
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
pub(super) fn listed<T>(
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

/// Appends an action as it is written in a trigger. Fails with `ENOMEM`.
fn action(out: &mut Text, action: &Action) -> Result {
    match &action.handler {
        Handler::OnMatch { system, event } => {
            out.bytes(b"onmatch(")?;
            out.bytes(system)?;
            out.bytes(b".")?;
            out.bytes(event)?;
        }
        Handler::OnMax { var } => {
            out.bytes(b"onmax(")?;
            out.bytes(var)?;
        }
        Handler::OnChange { var } => {
            out.bytes(b"onchange(")?;
            out.bytes(var)?;
        }
    }
    out.bytes(b").")?;
    out.bytes(&action.name)?;
    let params = action.params.iter();
    let mut comma: &[u8] = b"(";
    for param in Iterator::chain(action.synth_event.iter(), params) {
        out.bytes(comma)?;
        out.bytes(param)?;
        comma = b",";
    }
    if comma == b"(" {
        out.bytes(comma)?;
    }
    out.bytes(b")")
}
