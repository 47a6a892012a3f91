// SPDX-License-Identifier: GPL-2.0

//! `hist_stats`: the source of each event's hits, and the losses.

use super::{
    contents::Shown,
    sample::lacking,
    state::{
        OpenState,
        Tree, //
    },
};
use crate::{
    hist::{
        show,
        Histogram, //
    },
    map::HitCounts,
    mirror::{
        FileOps,
        Opened,
        OverlayFile, //
    },
    rust::{
        cgroup,
        clock,
        cpu,
        sample::{
            SampleSource,
            Ticks, //
        },
        stack::{
            self,
            Mode, //
        },
        text,
        tracefs::TracingDir, //
    },
    text::Text,
    user_stack::End, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};

pub(super) const FILE: OverlayFile<Tree> = OverlayFile::new(c"hist_stats", 0o440, &HistStatsOps);

struct HistStatsOps;

impl FileOps<Tree> for HistStatsOps {
    fn read(&self, tree: &Tree, _file: &Opened<'_>, _open: &OpenState) -> Result<Shown> {
        let counted = counted(tree)?;
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
        if cgroup::has_only_root() {
            out.bytes(b"cgroups: all tasks are in the root of cgroup v2, which has no other\n")?;
        }
        walks(&mut out)?;
        user_stacks(&mut out, tree)?;
        tree.engine.for_each_source(|names, source, lost| {
            let [system, event] = names.map(CStr::to_bytes);
            show::event_column(&mut out, system, event)?;
            out.format(format_args!("{source}, {lost} lost\n"))
        })?;
        samples(&mut out, tree)?;
        tree.engine.for_each_trigger(|names, n, trigger| {
            let histogram = trigger.data.histogram();
            let [system, event] = names.map(CStr::to_bytes);
            let mut line = |text: fmt::Arguments<'_>| {
                show::event_column(&mut out, system, event)?;
                out.format(format_args!("hist {n}: {text}"))?;
                in_instance(&mut out, &trigger.site.dir)?;
                out.bytes(b"\n")
            };
            if trigger.spec().has_vars() || trigger.filter().is_some() {
                line(format_args!(
                    "{} unresolved, {} missed, {} rejected",
                    histogram.unresolved(),
                    histogram.missed(),
                    histogram.rejected().counted()
                ))?;
            }
            if let Some((stacks, lost)) = histogram.interned() {
                line(format_args!("{stacks} stacks, {lost} hits without stack"))?;
            }
            if let Some((readers, cuts, bytes)) = histogram.intervals() {
                line(format_args!(
                    "{readers} readers of intervals, {cuts} cuts, {bytes} bytes for them"
                ))?;
            }
            if let Some(groups) = histogram.groups() {
                line(format_args!(
                    "{} control groups kept, {} times another by its id only",
                    groups.held(),
                    groups.refused()
                ))?;
            }
            let mut counted = counted.iter();
            if let Some((_, hits)) = counted.find(|(other, _)| Arc::ptr_eq(other, &histogram)) {
                line(format_args!("{hits}"))?;
            }
            match histogram.room() {
                Some(room) => line(format_args!("room: {room}")),
                None => Ok(()),
            }
        })?;
        Shown::text(out)
    }
}

/// Where the hits were counted of each histogram whose trigger has clauses of room. The registry is
/// not locked during the count, which visits all slots; a histogram that was created since is left
/// out.
fn counted(tree: &Tree) -> Result<KVec<(Arc<Histogram>, HitCounts)>> {
    let mut counted = KVec::<(Arc<Histogram>, HitCounts)>::new();
    tree.engine.for_each_trigger(|_, _, trigger| {
        let histogram = trigger.data.histogram();
        let is_listed = |(other, _): &(Arc<Histogram>, _)| Arc::ptr_eq(other, &histogram);
        if histogram.has_room() && !counted.iter().any(is_listed) {
            counted.push((histogram, HitCounts::default()), GFP_KERNEL)?;
        }
        Ok(())
    })?;
    for (histogram, counts) in &mut counted {
        *counts = histogram.hit_counts(&cpu::yield_unless_killed)?;
    }
    Ok(counted)
}

/// Number of times that the ticks and the hits are read until no tick comes meanwhile.
const TRIES: usize = 32;

/// Appends the ticks of `rhist:sample`, and what its histograms made of them.
///
/// For a histogram that was there when the ticks began, and has neither been paused nor cleared
/// since, the numbers add up: `samples + filtered + lost + late + off = ticks`. If a tick comes
/// during each try, the sum may be higher, by up to the number that came during the last one. For
/// cycles, it may be higher or lower by one for each CPU.
fn samples(out: &mut Text, tree: &Tree) -> Result {
    let mut ticks = Ticks::now()?;
    for tries in 1.. {
        if !ticks.are_counted() {
            return Ok(());
        }
        let mut histograms = KVec::new();
        tree.engine.for_each_trigger(|names, n, trigger| {
            if names == [c"rhist", c"sample"] {
                let mut place = Text::uncharged();
                in_instance(&mut place, &trigger.site.dir)?;
                histograms.push((n, place, trigger.data.histogram()), GFP_KERNEL)?;
            }
            Ok(())
        })?;
        let mut lines = Text::uncharged();
        for (n, place, histogram) in &histograms {
            let samples = histogram.count_hits(&cpu::yield_unless_killed)?;
            let filtered = histogram.rejected().counted();
            let lost = histogram.drops() + histogram.unresolved();
            show::event_column(&mut lines, b"rhist", b"sample")?;
            lines.format(format_args!(
                "hist {n}: {samples} samples, {filtered} filtered, {lost} lost"
            ))?;
            lines.bytes(place.as_bytes())?;
            lines.bytes(b"\n")?;
        }
        let after = Ticks::now()?;
        // `None`: the event was disconnected and connected meanwhile.
        let meanwhile = after.passed().checked_sub(ticks.passed());
        if let Some(meanwhile) = meanwhile.filter(|&n| n == 0 || tries >= TRIES) {
            ticks_line(out, &ticks, meanwhile)?;
            return out.bytes(lines.as_bytes());
        }
        ticks = after;
    }
    Ok(())
}

/// Appends the line of the ticks, and how many more came while the hits were read; then the cycles
/// of each CPU.
fn ticks_line(out: &mut Text, ticks: &Ticks, meanwhile: u64) -> Result {
    let (name, id) = ticks.program();
    let (rate, due, late) = (ticks.rate(), ticks.due(), ticks.late());
    let begin = |out: &mut Text| show::event_column(out, b"rhist", b"sample");
    let counts_cycles = ticks.source() == SampleSource::Cycles;
    begin(out)?;
    let unit = if counts_cycles { "cycles" } else { "Hz" };
    out.format(format_args!("{rate} {unit} for "))?;
    out.bytes(name)?;
    if counts_cycles {
        let throttled = ticks.throttled();
        out.format(format_args!(
            " ({id}), {due} periods, {late} late, {throttled} throttled"
        ))?;
    } else {
        let off = ticks.off();
        out.format(format_args!(" ({id}), {due} ticks, {late} late, {off} off"))?;
    }
    if meanwhile != 0 {
        out.format(format_args!(", {meanwhile} more meanwhile"))?;
    }
    out.bytes(b"\n")?;
    if let Some((cpu, errno)) = ticks.lacking() {
        begin(out)?;
        out.bytes(b"clock instead of cycles: ")?;
        lacking(out, cpu, errno)?;
        out.bytes(b"\n")?;
    }
    for (cpu, of) in ticks.cycles() {
        begin(out)?;
        out.format(format_args!(
            "cpu {cpu}: {} cycles, {} periods, {} samples, {} late",
            of.cycles(),
            of.periods(),
            of.passed(),
            of.late()
        ))?;
        if of.is_lacking() {
            out.bytes(b", no counter")?;
        }
        out.bytes(b"\n")?;
    }
    Ok(())
}

/// Appends the instance of a trigger, unless it is the top directory.
fn in_instance(out: &mut Text, dir: &TracingDir) -> Result {
    if dir.is_top() {
        return Ok(());
    }
    out.bytes(b", instances/")?;
    out.bytes(dir.name().to_bytes())
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

/// Appends how stacks of programs ended, and the objects that they name.
fn user_stacks(out: &mut Text, tree: &Tree) -> Result {
    let Some(objects) = tree.engine.user_objects().objects() else {
        return Ok(());
    };
    out.bytes(b"stacks of programs: ")?;
    for end in End::ALL {
        let (stacks, name) = (objects.stacks(end), end.name());
        // All of them add up to the stacks that were taken.
        if stacks > 0 || end == End::Whole {
            out.format(format_args!("{stacks} {name}, "))?;
        }
    }
    out.format(format_args!(
        "{} objects, {} times one without a number, {} bytes of rules\n",
        objects.len(),
        objects.lost(),
        objects.bytes()
    ))
}

/// Appends the function of a frame.
fn frame(out: &mut Text, address: usize) -> Result {
    match address {
        0 => out.bytes(b"none"),
        address => out.bytes(text::symbol(address as u64, true).as_bytes()),
    }
}
