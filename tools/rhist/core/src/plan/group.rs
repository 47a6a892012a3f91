// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys and filters by the control group, or the container, of the task that a question is about,
//! and keys by the stack of its program. Only rhist's histograms have these.

use super::error::Error;
use super::measure::RUNNING;
use super::measure::USTACK;
use super::measure::formats;
use super::measure::split_key;
use super::options::Options;
use super::options::has_dist;
use crate::recipe::Measure;
use crate::recipe::Point;
use crate::tracefs::Tracefs;

/// Names in `--by`.
const NAMES: [&str; 2] = ["cgroup", "container"];

/// Names in `--by` for the control group of the task that a measure is about, for its container,
/// and, if it is the running task, for the stacks of the kernel and of its program, with the keys
/// that they stand for. Without names that the measure has itself; none if it is about no task.
pub fn task_keys(measure: &Measure) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let task = task(measure);
    let is_running = task.as_deref() == Some(RUNNING);
    let groups = NAMES.into_iter().filter_map(move |name| match task.as_deref()? {
        RUNNING => Some((name, format!("common_{name}"))),
        task => Some((name, format!("{task}.{name}"))),
    });
    let stacks = [("stack", "common_stacktrace"), ("ustack", USTACK)];
    let stacks = stacks.into_iter().filter(move |_| is_running);
    let own: Vec<String> = measure.keys.keys().cloned().collect();
    groups
        .chain(stacks.map(|(name, key)| (name, key.to_owned())))
        .filter(move |(name, _)| !own.iter().any(|own| own == name))
}

/// Returns whether a measure is about the running task.
pub(super) fn is_about_running(measure: &Measure) -> bool {
    task(measure).as_deref() == Some(RUNNING)
}

/// Adds these names to the keys of a measure, unless a key or a field of an event is called so.
pub(crate) fn add_names(tracefs: &Tracefs, measure: &mut Measure) {
    let formats = formats(tracefs, measure);
    for (name, key) in task_keys(measure) {
        // Events of the run's own probes get their format later.
        let argument = format!("{name}=");
        let mut words = measure.probes.iter().flat_map(|probe| probe.split(' '));
        let is_argument = words.any(|word| word.starts_with(&argument));
        if !is_argument && formats.iter().all(|format| format.field(name).is_none()) {
            measure.keys.entry(name.to_owned()).or_insert(key);
        }
    }
}

/// Field with the task that a measure is about, which `-p` compares. `None`: it is about none, or
/// the counted events have its thread only as a number that a start has kept.
fn task(measure: &Measure) -> Option<String> {
    let is_kept = measure.keys.get("pid").is_some_and(|key| key.starts_with('$'));
    let task = measure.pid.as_deref().unwrap_or(RUNNING);
    (!task.is_empty() && !is_kept).then(|| task.to_owned())
}

/// Returns whether a key is a control group or a container.
pub(super) fn is_group(key: &str) -> bool {
    matches!(
        split_key(key),
        ("common_cgroup" | "common_container", None) | (_, Some("cgroup" | "container"))
    )
}

/// Returns whether a clause of a trigger has control groups among its keys, variables or saved
/// fields.
pub(super) fn has_group(clause: &str) -> bool {
    let mut words = clause.split(['=', ',', ':', '(', ')']);
    words.any(is_group)
}

/// Replaces keys that are containers by their control groups, which the kernel knows. Returns the
/// indices of these keys.
pub(super) fn of_containers(keys: &mut [String]) -> Vec<usize> {
    let mut found = Vec::new();
    for (n, key) in keys.iter_mut().enumerate() {
        let group = match split_key(key) {
            ("common_container", None) => "common_cgroup".to_owned(),
            (field, Some("container")) => format!("{field}.cgroup"),
            _ => continue,
        };
        *key = group;
        found.push(n);
    }
    found
}

/// Filter for the tasks of a control group and the ones below it. Fails if the events are about
/// another task, whose number is in the field `pid`: no filter knows its group.
pub(super) fn filter(pid: &str, path: &str) -> Result<String, Error> {
    if pid != RUNNING {
        let title = "--cgroup and --container: a filter only knows the group of the running task, which these events are not about";
        return Err(Error::Impossible(format!("{title}: count --by cgroup instead")));
    }
    let is_plain = |c: char| !matches!(c, '"' | '*') && !c.is_control();
    if !path.starts_with('/') || !path.chars().all(is_plain) {
        return Err(Error::Impossible(format!(
            "--cgroup {path:?}: expected a path below the root of cgroup v2, such as /system.slice/ssh.service"
        )));
    }
    Ok(format!("common_cgroup ~ \"{path}\""))
}

/// Sentences about histograms that lack stacks of programs.
pub(crate) struct LackOfPrograms {
    /// Note for an answer without them.
    pub(crate) note: String,
    /// Error if a person has asked for them.
    pub(crate) error: String,
}

/// See [`LackOfPrograms`].
pub(crate) fn lack_of_programs(tracefs: &Tracefs) -> LackOfPrograms {
    let (why, instead) = match has_dist(tracefs) {
        true => ("this module takes no stacks of programs", "load a newer one"),
        false => ("C's histograms have no stacks of programs", "use rhist's"),
    };
    LackOfPrograms {
        note: format!("{why}, so they are left out"),
        error: format!("{why}: {instead}"),
    }
}

/// Takes the stacks of programs out of a recipe's keys, where no histogram has them. Returns a note
/// if any was.
///
/// # Errors
///
/// A person has asked for them.
pub(super) fn without_programs(
    tracefs: &Tracefs,
    measure: &mut Measure,
    options: &Options,
) -> Result<Option<String>, Error> {
    let lack = lack_of_programs(tracefs);
    let is_program = |name: &String| measure.keys.get(name).unwrap_or(name) == USTACK;
    let is_kept = |point: &Point| point.keep.values().any(|field| field == USTACK);
    if measure.start.iter().any(is_kept) || options.by.is_some() && measure.by.iter().any(is_program) {
        return Err(Error::Impossible(lack.error));
    }
    let mut by = measure.by.clone();
    by.retain(|name| !is_program(name));
    let is_less = by.len() < measure.by.len();
    measure.by = by;
    Ok(is_less.then_some(lack.note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Id;
    use crate::plan::Plan;
    use crate::question::Question;
    use crate::recipe::Count;
    use crate::tracefs::fixture;

    fn measure(pid: Option<&str>, key: Option<&str>) -> Measure {
        Measure {
            pid: pid.map(str::to_owned),
            keys: key.map(|key| ("pid".to_owned(), key.to_owned())).into_iter().collect(),
            count: vec![Count {
                event: "sched:sched_switch".to_owned(),
                ..Count::default()
            }],
            ..Measure::default()
        }
    }

    #[test]
    fn the_task_that_a_question_is_about() {
        let (_root, tracefs) = fixture::tracefs(true);
        for (pid, key, cgroup) in [
            (None, None, Some("common_cgroup")),
            (None, Some("common_pid"), Some("common_cgroup")),
            (None, Some("pid"), Some("common_cgroup")),
            (None, Some("$pid"), None),
            (Some("next_pid"), Some("next_pid"), Some("next_pid.cgroup")),
            (Some("common_pid"), None, Some("common_cgroup")),
            (Some(""), None, None),
        ] {
            let mut measure = measure(pid, key);
            add_names(&tracefs, &mut measure);
            let keys = ["cgroup", "container"].map(|name| measure.keys.get(name).cloned());
            let container = cgroup.map(|key| key.replace("cgroup", "container"));
            assert_eq!(keys, [cgroup.map(str::to_owned), container], "{pid:?} {key:?}");
            // Another task's memory cannot be read.
            let ustack = cgroup.filter(|key| *key == "common_cgroup").map(|_| "common_ustack");
            assert_eq!(
                measure.keys.get("ustack").map(String::as_str),
                ustack,
                "{pid:?} {key:?}"
            );
        }
        // An argument of a probe with this name stays.
        let mut own = measure(None, None);
        own.probes = vec!["p:{group}/x do_it cgroup=+8(%di):u64".to_owned()];
        add_names(&tracefs, &mut own);
        assert_eq!(own.keys.keys().collect::<Vec<_>>(), ["container", "stack", "ustack"]);
        // A key of the recipe with this name stays.
        let mut own = measure(None, None);
        own.keys.insert("cgroup".to_owned(), "next_prio".to_owned());
        add_names(&tracefs, &mut own);
        assert_eq!(own.keys["cgroup"], "next_prio");
        // An end counts.
        let mut between = Measure {
            end: vec![Point {
                event: "sched:sched_switch".to_owned(),
                ..Point::default()
            }],
            ..measure(None, None)
        };
        between.count.clear();
        add_names(&tracefs, &mut between);
        assert_eq!(between.keys["container"], "common_container");
    }

    #[test]
    fn containers_are_groups_for_the_kernel() {
        let mut keys = ["common_container", "comm", "prev_pid.container", "x.cgroup"].map(str::to_owned);
        assert_eq!(of_containers(&mut keys), [0, 2]);
        assert_eq!(keys, ["common_cgroup", "comm", "prev_pid.cgroup", "x.cgroup"]);
        assert!(["common_cgroup", "x.cgroup", "x.container"].into_iter().all(is_group));
        assert!(!["comm", "cgroup", "x.comm"].into_iter().any(is_group));
        for clause in [
            "keys=a,common_cgroup",
            "onmax($a).save(b,next_pid.cgroup)",
            "g=common_cgroup",
        ] {
            assert!(has_group(clause), "{clause}");
        }
        assert!(!["keys=cgroup,cgroup_ino", "vals=a.cgroup_x"].into_iter().any(has_group));
    }

    #[test]
    fn filters_of_groups() {
        assert_eq!(filter(RUNNING, "/a b").unwrap(), "common_cgroup ~ \"/a b\"");
        for path in ["", "a", "/a\"b", "/*", "/a\nb"] {
            assert!(filter(RUNNING, path).is_err(), "{path}");
        }
        let other = filter("next_pid", "/a").unwrap_err();
        assert!(other.to_string().ends_with("count --by cgroup instead"), "{other}");
    }

    #[test]
    fn stacks_of_programs_where_they_can_be_had() {
        let measure = Measure {
            by: vec!["ustack".to_owned(), "cpu".to_owned()],
            keys: [("ustack", USTACK), ("cpu", "common_cpu")]
                .map(|(name, key)| (name.to_owned(), key.to_owned()))
                .into(),
            ..measure(None, None)
        };
        let plan = |tracefs: &Tracefs, by: Option<&[&str]>| {
            let options = Options {
                by: by.map(|by| by.iter().map(|key| (*key).to_owned()).collect()),
                ..Options::default()
            };
            let plan = Plan::new(tracefs, Id::example(), &measure, &options, Question::default())?;
            Ok::<_, Error>((
                plan.steps[0].text().to_owned(),
                plan.question.notes.clone(),
                plan.has_programs(),
            ))
        };
        let (root, rhist) = fixture::tracefs(true);
        let (_c_root, c) = fixture::tracefs(false);
        for (tracefs, why, instead) in [
            (&rhist, "this module takes no stacks of programs", "load a newer one"),
            (&c, "C's histograms have no stacks of programs", "use rhist's"),
        ] {
            let (text, notes, has_programs) = plan(tracefs, None).unwrap();
            assert!(text.starts_with("hist:keys=common_cpu") && !has_programs, "{text}");
            assert_eq!(notes, [format!("{why}, so they are left out")]);
            for by in [&["ustack"][..], &["cpu", "common_ustack"]] {
                let error = plan(tracefs, Some(by)).unwrap_err();
                assert_eq!(error, Error::Impossible(format!("{why}: {instead}")));
            }
        }
        std::fs::create_dir(root.path().join("user_objects")).unwrap();
        let (text, notes, has_programs) = plan(&rhist, None).unwrap();
        assert!(
            text.starts_with("hist:keys=common_ustack,common_cpu:ustack(127):size=2048..131072") && has_programs,
            "{text}"
        );
        assert_eq!(notes, [""; 0]);
    }
}
