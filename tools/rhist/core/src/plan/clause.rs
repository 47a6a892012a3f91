// SPDX-License-Identifier: MIT OR Apache-2.0

//! Clauses that several triggers have.

use super::measure::USTACK;
use super::measure::has_program;
use super::measure::split_key;
use super::options::Asked;
use super::options::Options;
use crate::grammar::Trigger;
use crate::recipe::Measure;
use crate::recipe::Point;
use crate::room::Idle;
use crate::room::LEAST;
use crate::room::Size;

/// Default number of entries for starts.
const START_SIZE: u32 = 16384;

/// Number of entries that starts may grow to.
const START_MOST: u32 = 262_144;

/// Number of entries that starts with a stack may grow to: the module cannot number more entries
/// that are so wide.
const WIDE_MOST: u32 = 131_072;

/// Default number of entries for results.
const SIZE: u32 = 2048;

/// Number of entries that results by passing keys may grow to.
const MOST: u32 = 131_072;

/// Number of functions of a program's stack: the most that the module takes.
const DEPTH: u32 = 127;

/// Time after which a start without an end is taken out.
const START_IDLE: Idle = Idle::HOUR;

/// Names of keys whose values come and go: short ones of recipes, and fields.
const PASSING: [&str; 11] = [
    "pid", "tid", "file", "filename", "address", "port", "lport", "sport", "dport", "lock", USTACK,
];

/// Field of the synthetic event that carries the time.
pub(super) const VALUE: &str = "lat";

/// Number of an end. Ends with the same event and filter count as one that looks up several starts.
pub(super) fn number_of(end: &Point, measure: &Measure) -> usize {
    let is_same = |other: &Point| (&other.event, &other.filter) == (&end.event, &end.filter);
    measure.end.iter().position(is_same).unwrap_or(0)
}

/// Value expression of an end; by default the time since its start.
pub(super) fn since(point: &Point, i: usize) -> String {
    point
        .value
        .as_deref()
        .unwrap_or("common_timestamp-{start}")
        .replace("{start}", &format!("$ts{i}"))
        // Blanks would become part of the variable's name.
        .replace(' ', "")
}

/// Clauses of a distribution: `:unit(…)` if buckets use another unit than the values, and
/// `:quantiles(…)`.
pub(super) fn dist_clauses(options: &Options) -> String {
    let mut clauses = match options.unit.word() {
        "" => String::new(),
        word => format!(":unit({word})"),
    };
    if options.only_buckets {
        clauses += ":quantiles(50)";
    }
    clauses
}

/// Room for this start, and for all triggers that look it up by the same keys: it grows, and starts
/// are taken out when an end has used them up, or after an hour.
pub(super) fn room(asked: Asked<'_>, i: usize) -> String {
    let taken = match asked.has_room() && !is_by_cpu(asked.measure, i) {
        true => format!(":expire(taken,{START_IDLE})"),
        false => String::new(),
    };
    growing(asked, i) + &taken
}

/// Room for this start that grows, in which entries stay. A requested size can raise the number of
/// starts but not lower it, since few results may need many starts.
///
/// With the next step, four times as large, which is allocated ahead, a histogram that begins with
/// a quarter of the entries has room for all of them.
pub(super) fn growing(asked: Asked<'_>, i: usize) -> String {
    let Asked { measure, options, .. } = asked;
    let start = measure.start.get(i);
    let own = start.and_then(|start| start.size).unwrap_or(START_SIZE);
    let wanted = options.size.or(measure.size);
    let more = wanted.map(|size| size.entries).filter(|entries| *entries > own);
    let is_wide = start.is_some_and(|start| start.keep.values().any(|field| field.contains("stack")));
    let most = match is_wide {
        true => WIDE_MOST,
        false => wanted.and_then(|size| size.most).unwrap_or(0).max(START_MOST),
    };
    let size = match asked.has_room() && !is_by_cpu(measure, i) {
        true => Size::fixed(more.unwrap_or((own / 4).max(LEAST))).up_to(most),
        false => Size::fixed(more.unwrap_or(own)),
    };
    format!(":size={size}")
}

/// Returns whether a start has at most one entry for each CPU.
fn is_by_cpu(measure: &Measure, i: usize) -> bool {
    let start = measure.start.get(i);
    start.is_some_and(|start| {
        start
            .on
            .iter()
            .all(|key| matches!(key.as_str(), "common_cpu" | "cpu" | "cpu_id"))
    })
}

/// Room for results: the depth of stacks of programs, then entries. By keys whose values come and
/// go, these grow, and hits without a place are counted together.
pub(super) fn size_of(asked: Asked<'_>) -> String {
    let Asked {
        measure, options, keys, ..
    } = asked;
    let wanted = options.size.or(measure.size);
    let depth = match has_program(keys) {
        true => format!(":ustack({DEPTH})"),
        false => String::new(),
    };
    if !asked.has_room() {
        let size = wanted.map(|size| Size::fixed(size.entries));
        return depth + &size.map_or(String::new(), |size| format!(":size={size}"));
    }
    let is_passing = has_passing(measure);
    let size = match (wanted, options.size) {
        // A number on the command line is meant as it is.
        (Some(size), Some(_)) => Some(size),
        (wanted, _) if is_passing => Some(wanted.unwrap_or(Size::fixed(SIZE)).up_to(MOST)),
        (wanted, _) => wanted,
    };
    let mut clauses = depth + &size.map_or(String::new(), |size| format!(":size={size}"));
    if let Some(idle) = idle_of(asked) {
        clauses += &format!(":expire({idle})");
    }
    if is_passing || size.is_some_and(|size| size.most.is_some()) {
        clauses += ":full(other)";
    }
    clauses
}

/// Time after which an entry of the results without hits is taken out.
pub(super) fn idle_of(asked: Asked<'_>) -> Option<Idle> {
    let Asked { measure, options, .. } = asked;
    let passing = options.expire_passing.filter(|_| has_passing(measure));
    options.expire.or(passing).filter(|_| asked.has_room())
}

/// Time after which a trigger that a person has written takes out entries without hits.
pub(super) fn idle_in(trigger: &str) -> Option<Idle> {
    let clauses = Trigger::parse(trigger).clauses;
    // The last clause of a name counts.
    let expire = clauses
        .iter()
        .rev()
        .find_map(|clause| clause.text.strip_prefix("expire("))?;
    let mut words = expire.trim_end_matches(')').split(',');
    words.find_map(|word| word.parse().ok())
}

/// Returns whether a trigger has a clause of these functions that only newer modules know.
pub(crate) fn has_room(trigger: &str) -> bool {
    let clauses = Trigger::parse(trigger).clauses;
    clauses.iter().any(|clause| match clause.text.strip_prefix("size=") {
        Some(size) => size.contains(".."),
        None => clause.text.starts_with("expire(") || clause.text.starts_with("full("),
    })
}

/// Returns whether results are counted by a key whose values come and go, such as threads.
fn has_passing(measure: &Measure) -> bool {
    let is_passing = |key: &str| {
        let (field, modifier) = split_key(key);
        let name = field.trim_start_matches('$');
        modifier == Some("ip") || PASSING.contains(&name) || name.ends_with("_pid")
    };
    let by = measure.by.iter();
    by.flat_map(|name| [Some(name), measure.keys.get(name)])
        .flatten()
        .any(|key| is_passing(key))
}

/// Keys of a histogram, which needs at least one. The CPU is the cheapest: its counter is in the
/// CPU's own cache.
pub(super) fn keys_or_cpu(keys: &[String]) -> String {
    if keys.is_empty() {
        "common_cpu".to_owned()
    } else {
        keys.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Id;
    use super::super::Plan;
    use super::*;
    use crate::plan::Error;
    use crate::question::Question;
    use crate::recipe::Count;
    use crate::tracefs::fixture;

    /// Texts of a plan's triggers, from the first clause of its room on.
    fn rooms(is_rhist: bool, measure: &Measure, options: &Options) -> Result<Vec<String>, Error> {
        let (_root, tracefs) = fixture::tracefs(is_rhist);
        let plan = Plan::new(&tracefs, Id::example(), measure, options, Question::default())?;
        let room = |text: &str| {
            text.split_once(":size=")
                .map_or(String::new(), |(_, room)| room.to_owned())
        };
        Ok(plan.steps.iter().map(|step| room(step.text())).collect())
    }

    fn counted(by: &[&str]) -> Measure {
        Measure {
            by: by.iter().map(|key| (*key).to_owned()).collect(),
            keys: [("pid", "next_pid"), ("cpu", "common_cpu"), ("task", "next_pid")]
                .map(|(name, key)| (name.to_owned(), key.to_owned()))
                .into(),
            count: vec![Count {
                event: "sched:sched_switch".to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        }
    }

    fn point(event: &str, on: &str) -> Point {
        Point {
            event: event.to_owned(),
            on: vec![on.to_owned()],
            ..Point::default()
        }
    }

    #[test]
    fn results_by_keys_that_come_and_go() {
        let room = |by: &[&str], options: &Options| {
            let [rhist, c] = [true, false].map(|is_rhist| rooms(is_rhist, &counted(by), options).unwrap().remove(0));
            (rhist, c)
        };
        let both = |text: &str| (text.to_owned(), text.to_owned());
        let rhist = |text: &str| (text.to_owned(), String::new());
        let none = Options::default();
        assert_eq!(room(&[], &none), both(""));
        assert_eq!(room(&["cpu"], &none), both(""));
        for by in [
            &["pid"][..],
            &["cpu", "task"],
            &["next_pid"],
            &["common_pid"],
            &["prev_pid.execname"],
        ] {
            assert_eq!(room(by, &none), rhist("2048..131072:full(other)"), "{by:?}");
        }
        let size = |text: &str| Options {
            size: Some(text.parse().unwrap()),
            ..Options::default()
        };
        assert_eq!(room(&["cpu"], &size("100")), both("100"));
        assert_eq!(
            room(&["pid"], &size("100")),
            ("100:full(other)".to_owned(), "100".to_owned())
        );
        let idle = Some("60s".parse().unwrap());
        let service = Options {
            expire_passing: Some(Idle::HOUR),
            ..Options::default()
        };
        assert_eq!(room(&["cpu"], &service), both(""));
        assert_eq!(room(&["pid"], &service), rhist("2048..131072:expire(1h):full(other)"));
        let fixed = Options {
            expire: idle,
            is_fixed: true,
            ..size("100..1000")
        };
        let of_rhist = |by: &[&str], options: &Options| rooms(true, &counted(by), options).unwrap().remove(0);
        assert_eq!(of_rhist(&["pid"], &fixed), "100");
        assert_eq!(of_rhist(&["cpu"], &size("100..1000")), "100..1000:full(other)");
        let expire = Options {
            expire: idle,
            ..service
        };
        assert_eq!(of_rhist(&["pid"], &expire), "2048..131072:expire(1m):full(other)");
        for (options, option) in [(size("100..1000"), "--size A..B"), (expire, "--expire")] {
            let error = rooms(false, &counted(&["pid"]), &options).unwrap_err();
            assert!(error.to_string().contains(option), "{error}");
        }
        // A recipe's size is where its results begin.
        let sized = Measure {
            size: Some(Size::fixed(8192)),
            ..counted(&["pid"])
        };
        assert_eq!(rooms(true, &sized, &none).unwrap(), ["8192..131072:full(other)"]);
        assert_eq!(rooms(false, &sized, &none).unwrap(), ["8192"]);
    }

    #[test]
    fn starts() {
        let measure = |size, on: &str| Measure {
            start: vec![Point {
                size,
                ..point("sched:sched_waking", on)
            }],
            end: vec![point("sched:sched_switch", if on == "pid" { "next_pid" } else { on })],
            ..Measure::default()
        };
        let room = |is_rhist, size, on: &str, options: &Options| {
            rooms(is_rhist, &measure(size, on), options).unwrap().remove(0)
        };
        let none = Options::default();
        assert_eq!(room(true, None, "pid", &none), "4096..262144:expire(taken,1h)");
        assert_eq!(room(false, None, "pid", &none), "16384");
        assert_eq!(
            room(true, Some(131_072), "pid", &none),
            "32768..262144:expire(taken,1h)"
        );
        assert_eq!(room(true, Some(100), "pid", &none), "65..262144:expire(taken,1h)");
        assert_eq!(room(true, None, "common_cpu", &none), "16384");
        let size = |text: &str| Options {
            size: Some(text.parse().unwrap()),
            ..Options::default()
        };
        assert_eq!(room(true, None, "pid", &size("100")), "4096..262144:expire(taken,1h)");
        let large = size("20000..1000000");
        assert_eq!(room(true, None, "pid", &large), "20000..1000000:expire(taken,1h)");
        let mut wide = measure(None, "pid");
        let stack = ("stack".to_owned(), "common_stacktrace".to_owned());
        wide.start[0].keep = [stack].into();
        assert_eq!(rooms(true, &wide, &large).unwrap()[0], "20000..131072:expire(taken,1h)");
        let fixed = Options { is_fixed: true, ..none };
        assert_eq!(room(true, None, "pid", &fixed), "16384");
    }

    #[test]
    fn clauses_of_newer_modules() {
        for text in [
            "hist:keys=a:size=65..256",
            "hist:keys=a:full(other) if b",
            "hist:keys=a:expire(1s)",
        ] {
            assert!(has_room(text), "{text}");
        }
        for text in [
            "hist:keys=a:size=65",
            "hist:keys=full:expire=b.log2 if c == \":full(other)\"",
            "",
        ] {
            assert!(!has_room(text), "{text}");
        }
        let idle = |text: &str| idle_in(text).map(|idle| idle.to_string());
        assert_eq!(idle("hist:keys=a:expire(taken,60s)").as_deref(), Some("1m"));
        assert_eq!(
            idle("hist:keys=a:expire(1h):expire(2h,taken):full(other)").as_deref(),
            Some("2h")
        );
        assert_eq!(idle("hist:keys=a:expire(taken)"), None);
        assert_eq!(idle("hist:keys=a if b == \":expire(1h)\""), None);
    }
}
