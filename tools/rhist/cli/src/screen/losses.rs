// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints losses, and the cost of counting.

use std::collections::BTreeMap;

use rhist_core::quantity::things;
use rhist_core::question::Cost;
use rhist_core::question::Fill;
use rhist_core::table::Frame;
use rhist_core::table::Key;
use rhist_core::tracefs::Backend;

use super::Screen;
use super::View;
use super::number;

/// Lines about losses. Empty if everything was counted.
pub(super) fn losses(view: &View<'_>) -> Vec<String> {
    let losses = &view.table.losses;
    let mut lines = Vec::new();
    let mut add = |count: u64, one: &str, many: &str| {
        if count > 0 {
            lines.push(format!(
                "{} {}",
                number::count(count),
                if count == 1 { one } else { many }
            ));
        }
    };
    add(
        losses.dropped.saturating_sub(losses.dropped_starts),
        "hit dropped: no free entry for its keys (--size)",
        "hits dropped: no free entry for their keys (--size)",
    );
    add(
        losses.dropped_starts,
        "start dropped: no free entry for starts (--size)",
        "starts dropped: no free entry for starts (--size)",
    );
    add(
        losses.no_bucket.unwrap_or(0),
        "value in no bucket: the quantiles allow for it",
        "values in no bucket: the quantiles allow for them",
    );
    add(
        losses.unresolved.unwrap_or(0),
        "end without a start",
        "ends without a start",
    );
    add(
        losses.missed.unwrap_or(0),
        "start or maximum not stored: too many hits at once",
        "starts or maxima not stored: too many hits at once",
    );
    add(
        losses.missed_hits.unwrap_or(0),
        "hit missed: the kernel could not pass it on to the triggers",
        "hits missed: the kernel could not pass them on to the triggers",
    );
    add(
        losses.expired_starts.unwrap_or(0),
        "start forgotten: its end has not come for an hour",
        "starts forgotten: their ends have not come for an hour",
    );
    lines
}

/// How many events have a stack of a program that lacks functions, for each reason, and how many
/// that is of all. `None` if no stack does.
pub(super) fn cut(screen: &Screen<'_>, view: &View<'_>) -> Option<String> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &view.table.rows {
        for key in &row.keys {
            let Key::Stack(frames) = key else { continue };
            if let Some(reason) = frames.last().and_then(Frame::as_end) {
                *reasons.entry(reason).or_default() += row.hits;
            }
        }
    }
    let cut: u64 = reasons.values().sum();
    let all = view.table.total().hits;
    if cut == 0 || all == 0 {
        return None;
    }
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(reason, hits)| format!("{reason} {}", number::count(*hits)))
        .collect();
    Some(format!(
        "{} of {} have a part of the program's stack: {}",
        number::percent(cut as f64 / all as f64),
        things(all, &screen.noun()),
        reasons.join(", ")
    ))
}

/// Remark on a nearly full histogram. `None` also if entries were dropped, since the losses then
/// report it.
pub(super) fn fill(view: &View<'_>) -> Option<String> {
    let Fill {
        entries,
        size,
        is_of_starts,
    } = view.fill?;
    let full = size > 0 && entries.saturating_mul(10) >= size.saturating_mul(9) && view.table.losses.dropped == 0;
    full.then(|| {
        format!(
            "{} of {} entries{} are taken (--size)",
            number::count(entries),
            number::count(size),
            if is_of_starts { " for starts" } else { "" }
        )
    })
}

/// Possible losses that the kernel does not report. Empty if it reports all.
pub(super) fn untold(screen: &Screen<'_>, view: &View<'_>) -> Vec<String> {
    let losses = &view.table.losses;
    // Without variables, no event needs a start.
    let pairs = screen.question.triggers.iter().any(|trigger| trigger.contains('$'));
    if screen.question.backend != Backend::C || !pairs {
        return Vec::new();
    }
    let known = [
        (losses.unresolved, "ends without a start"),
        (losses.missed, "starts without room"),
    ];
    let untold: Vec<_> = known
        .iter()
        .filter(|(count, _)| count.is_none())
        .map(|(_, what)| *what)
        .collect();
    match untold.is_empty() {
        true => Vec::new(),
        false => vec![format!("not counted by this kernel: {}", untold.join(", "))],
    }
}

/// The ticks of a total of samples, by their fates. `None` for other events.
pub(super) fn ticks(view: &View<'_>) -> Option<String> {
    let samples = view.samples?;
    let mut parts = vec![format!("{} counted", number::count(samples.samples))];
    let others = [
        (samples.filtered, "idle or filtered out"),
        (samples.lost, "lost"),
        (samples.late, "late"),
        (samples.off, "of CPUs that were off"),
        (samples.others, "of other tasks"),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, what)| format!("{} {what}", number::count(*count))));
    let mut text = format!(
        "{} at {} Hz = {}",
        things(samples.ticks, "ticks"),
        samples.frequency,
        parts.join(" + ")
    );
    if !samples.adds_up() {
        text += ": this does not add up, since another program has paused or cleared the histogram";
    }
    // The samples before the first reading of the ticks, and after the last one.
    let more = view.events.saturating_sub(samples.samples);
    if more > 0 {
        text += &format!(", and {} at the begin and end", things(more, "samples"));
    }
    Some(text)
}

/// Cost of counting. `None` if nothing happened.
pub(super) fn cost(view: &View<'_>) -> Option<String> {
    let Cost { event_ns, rejected_ns } = view.cost;
    // Hides up to one per cent, which are hits of rhist's own threads.
    let rejected = view.rejected.filter(|hits| *hits > view.events / 100);
    let hits = [
        (view.events, event_ns, "events"),
        (rejected.unwrap_or(0), rejected_ns, "rejected"),
    ];
    let mut terms = Vec::new();
    let mut is_measured = true;
    for (count, ns, what) in hits {
        if let Some(rate) = view.rate(count).filter(|rate| *rate > 0.0) {
            let rate = format!("{} {what}/s", number::rate(rate));
            // With a coarse clock, the measured cost is 0: treat it as unknown.
            let ns = ns.filter(|ns| *ns >= 1.0);
            is_measured &= ns.is_some();
            terms.push(ns.map_or(rate.clone(), |ns| format!("{rate} × {ns:.0} ns")));
        }
    }
    if terms.is_empty() {
        return None;
    }
    let terms = terms.join(" + ");
    match view.cpus().filter(|_| is_measured) {
        Some(cpus) => Some(format!("{terms} = {} of a CPU", number::percent(cpus))),
        None => Some(format!("{terms}; the cost of one was not measured")),
    }
}
