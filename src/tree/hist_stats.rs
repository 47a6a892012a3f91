// SPDX-License-Identifier: GPL-2.0

//! `hist_stats`: the source of each event's hits, and the losses.

use super::{
    contents::Shown,
    state::{
        OpenState,
        Tree, //
    },
};
use crate::{
    hist::show,
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::{
        clock,
        stack::{
            self,
            Mode, //
        },
        text, //
    },
    text::Text, //
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};

pub(super) const FILE: OverlayFile<Tree> = OverlayFile::new(c"hist_stats", 0o440, &HistStatsOps);

struct HistStatsOps;

impl FileOps<Tree> for HistStatsOps {
    fn read(&self, tree: &Tree, _file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        // Most of it is formatted with the registry locked.
        let mut out = Text::uncharged();
        let commands = tree.engine.commands();
        let reads = tree.reads.load(Relaxed);
        out.format(format_args!("commands: {commands}\nreads: {reads}\n"))?;
        let lock = if clock::is_lockless() {
            "without"
        } else {
            "with"
        };
        out.format(format_args!("clock: global, {lock} a lock\n"))?;
        walks(&mut out)?;
        tree.engine.for_each_source(|names, source, lost| {
            let [system, event] = names.map(CStr::to_bytes);
            show::event_column(&mut out, system, event)?;
            out.format(format_args!("{source}, {lost} lost\n"))
        })?;
        tree.engine.for_each_trigger(|names, n, trigger| {
            if !trigger.spec().has_vars() && trigger.filter().is_none() {
                return Ok(());
            }
            let histogram = trigger.data.histogram();
            let [system, event] = names.map(CStr::to_bytes);
            show::event_column(&mut out, system, event)?;
            out.format(format_args!(
                "hist {n}: {} unresolved, {} missed, {} rejected",
                histogram.unresolved(),
                histogram.missed(),
                histogram.rejected().counted()
            ))?;
            if !trigger.site.dir.is_top() {
                out.bytes(b", instances/")?;
                out.bytes(trigger.site.dir.name().to_bytes())?;
            }
            out.bytes(b"\n")
        })?;
        Shown::text(out)
    }
}

/// Appends how stacks are walked.
fn walks(out: &mut Text) -> Result {
    let walks = stack::walks();
    match walks.mode {
        Mode::Unwinder => out.bytes(b"stacks: by the unwinder\n"),
        Mode::Rules => out.format(format_args!(
            "stacks: by {} rules, the unwinder was asked for {} frames and {} stacks, {} checked\n",
            walks.learned, walks.frames, walks.failed, walks.checked
        )),
        Mode::Wrong(difference) => {
            out.format(format_args!(
                "stacks: by the unwinder, since frame {} differed: by rules ",
                difference.nth
            ))?;
            frame(out, difference.by_rules)?;
            out.bytes(b", by the unwinder ")?;
            frame(out, difference.by_unwinder)?;
            out.bytes(b", behind ")?;
            frame(out, difference.callee)?;
            out.bytes(b"\n")
        }
    }
}

/// Appends the function of a frame.
fn frame(out: &mut Text, address: usize) -> Result {
    match address {
        0 => out.bytes(b"none"),
        address => out.bytes(text::symbol(address as u64, true).as_bytes()),
    }
}
