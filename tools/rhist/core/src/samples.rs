// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ticks of the clock of `rhist:sample`, by their fates.

use std::fs;

use crate::tracefs::Tracefs;

/// Name of the event in `hist_stats`.
const EVENT: &str = "rhist:sample";

/// File with the frequency, in the top tracing directory.
pub const FREQUENCY: &str = "events/rhist/sample/frequency";

/// File with the sources of samples, the chosen one in brackets, in the top tracing directory.
pub const SOURCE: &str = "events/rhist/sample/source";

/// Returns whether samples are taken by counters of cycles, not by the clock.
pub fn are_by_cycles(tracefs: &Tracefs) -> bool {
    let text = fs::read_to_string(tracefs.dir().join(SOURCE));
    text.is_ok_and(|text| text.contains("[cycles]"))
}

/// The present frequency. `None` if the module has none.
pub fn frequency(tracefs: &Tracefs) -> Option<String> {
    let text = fs::read_to_string(tracefs.dir().join(FREQUENCY)).ok()?;
    text.trim().parse::<u32>().ok().map(|hertz| hertz.to_string())
}

/// Ticks of all CPUs, each of which is a sample, or filtered, lost, late or off, or of others:
/// `samples + filtered + lost + late + off + others = ticks`, except for ticks that came while the
/// kernel added these numbers up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Ticks per second of each CPU.
    pub frequency: u64,
    /// Ticks by the clock.
    pub ticks: u64,
    /// Ticks for which the interrupt came after the next one.
    pub late: u64,
    /// Ticks of CPUs that were offline or isolated, or had not started their timer.
    pub off: u64,
    /// Hits that were counted.
    pub samples: u64,
    /// Hits that a filter has rejected.
    pub filtered: u64,
    /// Hits without an entry.
    pub lost: u64,
    /// All other ticks, if the run leaves out tasks by the instance's list of tasks.
    pub others: u64,
    /// The sum may be higher than the ticks by this.
    pub more: u64,
    /// The sum may be lower than the ticks by this.
    pub fewer: u64,
    /// A number was lower than before, as after a clear of the histogram, or a new start of the
    /// ticks.
    pub has_fallen: bool,
}

impl Samples {
    /// The increase since `begin`. `last` is the reading before this one.
    pub fn since(self, begin: Self, last: Self) -> Self {
        let numbers = |it: Self| [it.ticks, it.late, it.off, it.samples, it.filtered, it.lost];
        let mut pairs = numbers(self).into_iter().zip(numbers(last));
        Self {
            frequency: self.frequency,
            ticks: self.ticks.saturating_sub(begin.ticks),
            late: self.late.saturating_sub(begin.late),
            off: self.off.saturating_sub(begin.off),
            samples: self.samples.saturating_sub(begin.samples),
            filtered: self.filtered.saturating_sub(begin.filtered),
            lost: self.lost.saturating_sub(begin.lost),
            others: 0,
            more: self.more,
            fewer: begin.more,
            has_fallen: pairs.any(|(now, last)| now < last),
        }
    }

    /// Attributes all ticks that are missing to tasks that are left out.
    pub fn with_others(self) -> Self {
        Self {
            others: self.ticks.saturating_sub(self.sum()),
            ..self
        }
    }

    /// Returns whether each tick is accounted for. If not, another program has paused or cleared
    /// the histogram.
    pub fn adds_up(&self) -> bool {
        let range = self.ticks.saturating_sub(self.fewer)..=self.ticks.saturating_add(self.more);
        !self.has_fallen && range.contains(&self.sum())
    }

    fn sum(&self) -> u64 {
        let parts = [self.samples, self.filtered, self.lost, self.late, self.off, self.others];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Reads the ticks, and the samples of the histogram in an instance. `None` without one.
pub fn read(tracefs: &Tracefs, instance: &str) -> Option<Samples> {
    parse(&tracefs.hist_stats(), instance)
}

/// Frequency of the samples that are taken at present, and the program that was the first to ask
/// for them: `99 Hz for sh (48)`.
pub fn taker(tracefs: &Tracefs) -> Option<String> {
    let stats = tracefs.hist_stats();
    let (taker, _) = lines(&stats).find_map(|line| line.rsplit_once(" ticks, "))?;
    Some(taker.rsplit_once(", ")?.0.to_owned())
}

/// Rests of the event's lines.
fn lines(stats: &str) -> impl Iterator<Item = &str> {
    let lines = stats.lines().filter_map(|line| line.strip_prefix(EVENT));
    lines.filter_map(|rest| rest.strip_prefix(' ').map(str::trim_start))
}

/// Parses `99 Hz for sh (48), 1026 ticks, 72 late, 0 off, 3 more meanwhile`, and
/// `hist 1: 954 samples, 0 filtered, 0 lost, instances/NAME`. The name of the program may contain
/// anything.
fn parse(stats: &str, instance: &str) -> Option<Samples> {
    let place = format!(", instances/{instance}");
    let is_ours = |line: &&str| line.starts_with("hist ") && line.contains(" samples, ");
    let hits = lines(stats)
        .filter(is_ours)
        .find_map(|line| line.strip_suffix(&place))?;
    let hits = hits.split_once(": ")?.1;
    let ticks = lines(stats).find(|line| !line.starts_with("hist ") && line.contains(" ticks, "))?;
    let number = |line: &str, what: &str| {
        let mut words = line.rsplit(", ");
        words.find_map(|word| word.strip_suffix(what)?.trim_end().parse::<u64>().ok())
    };
    Some(Samples {
        frequency: ticks.split(' ').next()?.parse().ok()?,
        ticks: number(ticks, "ticks")?,
        late: number(ticks, "late")?,
        off: number(ticks, "off")?,
        samples: number(hits, "samples")?,
        filtered: number(hits, "filtered")?,
        lost: number(hits, "lost")?,
        more: number(ticks, "more meanwhile").unwrap_or(0),
        ..Samples::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "commands: 3\n\
        rhist:sample                    clock, 0 lost\n\
        rhist:sample                    499 Hz for a, 7 ticks, b (48), 1026 ticks, 72 late, 1 off, 3 more meanwhile\n\
        rhist:sample                    hist 1: 954 samples, 0 filtered, 0 lost\n\
        rhist:sample                    hist 1: 855 samples, 97 filtered, 2 lost, instances/rhist-1\n\
        rhist:sample                    hist 1: 5 stacks, 0 hits without stack, instances/rhist-1\n\
        sched:sched_switch              hist 1: 7 unresolved, 4 missed, 0 rejected, instances/rhist-1\n";

    #[test]
    fn of_a_run() {
        let expected = Samples {
            frequency: 499,
            ticks: 1026,
            late: 72,
            off: 1,
            samples: 855,
            filtered: 97,
            lost: 2,
            more: 3,
            ..Samples::default()
        };
        assert_eq!(parse(STATS, "rhist-1"), Some(expected));
        assert_eq!(parse(STATS, "rhist-2"), None);
        assert_eq!(parse("", "rhist-1"), None);
        // The line of an older module does not tell the instance.
        assert_eq!(parse(STATS, "rhist-"), None);
        // One of the three that came meanwhile is among them.
        assert!(expected.adds_up());
        let listed = Samples {
            samples: 800,
            ..expected
        };
        assert!(!listed.adds_up() && listed.with_others().adds_up());
        assert_eq!(listed.with_others().others, 54);
    }

    #[test]
    fn increases() {
        let samples = |ticks, samples, more| Samples {
            ticks,
            samples,
            more,
            ..Samples::default()
        };
        let begin = samples(4, 3, 0);
        let since = samples(9, 8, 0).since(begin, samples(6, 5, 0));
        assert_eq!(since, samples(5, 5, 0));
        assert!(since.adds_up());
        // The first reading may have had up to two ticks more than it told, the last one up to one.
        let begin = samples(4, 4, 2);
        for (hits, adds_up) in [(5, false), (6, true), (8, true), (9, true), (10, false)] {
            assert_eq!(
                samples(12, 4 + hits, 1).since(begin, begin).adds_up(),
                adds_up,
                "{hits}"
            );
        }
        // Cleared since the last reading: not by far enough to be below the first one.
        assert!(!samples(20, 12, 0).since(samples(4, 3, 0), samples(15, 14, 0)).adds_up());
    }
}
