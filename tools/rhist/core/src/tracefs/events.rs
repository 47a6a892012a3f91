// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lists events, and resolves their names.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;

use super::Tracefs;
use super::format::Format;
use crate::problem::Problem;
use crate::problem::named;
use crate::suggest;

/// Name of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventName {
    /// System of the event: `sched`.
    pub system: String,
    /// Name within the system: `sched_switch`.
    pub event: String,
}

/// Reason why a name could not be resolved.
#[derive(Debug)]
pub enum ResolveError {
    /// The list of events cannot be read.
    Io(io::Error),
    /// The name is unknown or ambiguous.
    Name(Problem),
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.system, self.event)
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot list the events: {error}"),
            Self::Name(problem) => write!(f, "{problem}"),
        }
    }
}

impl std::error::Error for ResolveError {}

impl From<io::Error> for ResolveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl EventName {
    /// Parses `system:event`, `system/event` or `system.event`. `None` for anything else, such as
    /// `../event`.
    pub fn parse(text: &str) -> Option<Self> {
        let (system, event) = text.split_once([':', '/', '.'])?;
        (is_name(system) && is_name(event)).then(|| Self {
            system: system.to_owned(),
            event: event.to_owned(),
        })
    }
}

/// Returns whether a text can be the name of a folder in tracefs.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

impl Tracefs {
    /// Lists all events, sorted.
    ///
    /// # Errors
    ///
    /// Neither `available_events` nor the folder `events` can be read.
    pub fn events(&self) -> io::Result<Vec<EventName>> {
        let listed = match fs::read(self.dir().join("available_events")) {
            Ok(text) => String::from_utf8_lossy(&text)
                .lines()
                .filter_map(EventName::parse)
                .collect(),
            Err(_) => self.walk_events()?,
        };
        let mut events: BTreeSet<EventName> = listed;
        // Histograms work on it, although it cannot be enabled like other events, so the kernel
        // does not list it.
        let print = EventName {
            system: "ftrace".to_owned(),
            event: "print".to_owned(),
        };
        if self.has_event(&print) {
            events.insert(print);
        }
        Ok(events.into_iter().collect())
    }

    fn walk_events(&self) -> io::Result<BTreeSet<EventName>> {
        let mut events = BTreeSet::new();
        for system in fs::read_dir(self.dir().join("events"))? {
            let system = system?;
            for event in fs::read_dir(system.path()).into_iter().flatten().flatten() {
                let name = format!(
                    "{}:{}",
                    system.file_name().to_string_lossy(),
                    event.file_name().to_string_lossy()
                );
                events.extend(EventName::parse(&name).filter(|name| self.has_event(name)));
            }
        }
        Ok(events)
    }

    /// Returns whether an event exists.
    pub fn has_event(&self, name: &EventName) -> bool {
        self.event(&name.system, &name.event).join("format").exists()
    }

    /// Resolves `system:event`, `system/event`, or the name of an event that only one system has.
    pub fn resolve(&self, text: &str) -> Result<EventName, ResolveError> {
        let name = EventName::parse(text);
        if let Some(name) = name.as_ref().filter(|name| self.has_event(name)) {
            return Ok(name.clone());
        }
        let events = self.events()?;
        match name {
            Some(name) => Err(ResolveError::Name(unknown(&events, &name))),
            None => find(&events, text).map_err(ResolveError::Name),
        }
    }

    /// Reads the fields of an event.
    ///
    /// # Errors
    ///
    /// `NotFound` if the event does not exist, `InvalidData` if its file does not parse.
    pub fn format(&self, name: &EventName) -> io::Result<Format> {
        let text = fs::read(self.event(&name.system, &name.event).join("format"))?;
        let error = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {error}"));
        Format::parse(&String::from_utf8_lossy(&text)).map_err(error)
    }
}

/// Finds an event by its name, in any system.
fn find(events: &[EventName], text: &str) -> Result<EventName, Problem> {
    let mut same = events.iter().filter(|name| name.event == text);
    match (same.next(), same.next()) {
        (Some(name), None) => return Ok(name.clone()),
        (Some(first), Some(second)) => {
            let title = format!("several systems have an event {text}");
            return Err(Problem::new(0..text.len(), title).near(&[first.to_string(), second.to_string()]));
        }
        (None, _) => {}
    }
    if events.iter().any(|name| name.system == text) {
        let problem = Problem::new(0..text.len(), format!("unknown event {}", named(text)));
        return Err(problem
            .label("this is a system")
            .help(format!("rhist ls events {text} lists its events")));
    }
    let nearest = suggest::near(text, events.iter().map(|name| name.event.as_str()));
    let full: Vec<String> = nearest
        .iter()
        .filter_map(|event| events.iter().find(|name| name.event == *event))
        .map(EventName::to_string)
        .collect();
    let problem = Problem::new(0..text.len(), format!("unknown event {}", named(text))).near(&full);
    Err(if full.is_empty() {
        problem.help("rhist ls events lists them")
    } else {
        problem
    })
}

/// Explains why an event does not exist.
fn unknown(events: &[EventName], name: &EventName) -> Problem {
    let EventName { system, event } = name;
    let title = format!("unknown event {}", named(&name.to_string()));
    let start = system.len() + 1;
    let in_system = || events.iter().filter(|other| other.system == *system);
    if in_system().next().is_none() {
        // The event may exist in another system.
        let full: Vec<String> = events
            .iter()
            .filter(|other| other.event == *event)
            .map(EventName::to_string)
            .collect();
        if !full.is_empty() {
            return Problem::new(0..system.len(), title).near(&full);
        }
        let systems: BTreeSet<&str> = events.iter().map(|other| other.system.as_str()).collect();
        let nearest = suggest::near(system, systems);
        let problem = Problem::new(0..system.len(), title).near(&nearest);
        return match nearest.is_empty() {
            true => problem.label("unknown system").help("rhist ls events lists them"),
            false => problem,
        };
    }
    let at = start..start + event.len();
    let nearest = suggest::near(event, in_system().map(|other| other.event.as_str()));
    match nearest.is_empty() {
        true => Problem::new(at, title).help(format!("rhist ls events {system} lists its events")),
        false => Problem::new(at, title).near(&nearest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(names: &[&str]) -> Vec<EventName> {
        names.iter().filter_map(|name| EventName::parse(name)).collect()
    }

    #[test]
    fn names() {
        let expected = Some(EventName {
            system: "sched".to_owned(),
            event: "sched_switch".to_owned(),
        });
        for text in ["sched:sched_switch", "sched/sched_switch", "sched.sched_switch"] {
            assert_eq!(EventName::parse(text), expected);
        }
        for text in [
            "",
            ":",
            "a:",
            ":a",
            "sched_switch",
            "../x",
            "a:..",
            "a:b:c",
            "a/b/c",
            "a:b\x1b",
        ] {
            assert_eq!(EventName::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn nearest_events() {
        let events = events(&[
            "sched:sched_switch",
            "sched:sched_wakeup",
            "irq:softirq_entry",
            "a:x1",
            "b:x1",
        ]);
        let said = |text: &str| match EventName::parse(text) {
            Some(name) => unknown(&events, &name),
            None => find(&events, text).unwrap_err(),
        };
        assert_eq!(
            said("sched:sched_swich").to_string(),
            "unknown event sched:sched_swich: did you mean sched_switch?"
        );
        assert_eq!(said("sched:sched_swich").at, 6..17);
        assert_eq!(
            said("shced:sched_swich").to_string(),
            "unknown event shced:sched_swich: did you mean sched?"
        );
        assert_eq!(said("x:sched_switch").label, "did you mean sched:sched_switch?");
        assert_eq!(said("sched_swich").label, "did you mean sched:sched_switch?");
        assert_eq!(
            said("x1").to_string(),
            "several systems have an event x1: did you mean a:x1 or b:x1?"
        );
        assert_eq!(said("qqqq").help, ["rhist ls events lists them"]);
        assert_eq!(find(&events, "softirq_entry").unwrap().to_string(), "irq:softirq_entry");
    }

    #[test]
    fn events_of_a_folder() {
        let root = tempfile::tempdir().unwrap();
        for event in ["sched/sched_switch", "ftrace/print", "irq/softirq_entry"] {
            let folder = root.path().join("events").join(event);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(
                folder.join("format"),
                include_str!("../../tests/fixtures/events/ftrace/print/format"),
            )
            .unwrap();
        }
        let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
        let names = |tracefs: &Tracefs| {
            tracefs
                .events()
                .unwrap()
                .iter()
                .map(|name| name.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&tracefs),
            ["ftrace:print", "irq:softirq_entry", "sched:sched_switch"]
        );
        std::fs::write(root.path().join("available_events"), "sched:sched_switch\n\x1b[2J\n").unwrap();
        assert_eq!(names(&tracefs), ["ftrace:print", "sched:sched_switch"]);
        assert_eq!(tracefs.resolve("print").unwrap().to_string(), "ftrace:print");
        assert_eq!(tracefs.resolve("irq:softirq_entry").unwrap().event, "softirq_entry");
        assert!(matches!(tracefs.resolve("irq:none"), Err(ResolveError::Name(_))));
        assert_eq!(
            tracefs
                .format(&tracefs.resolve("print").unwrap())
                .unwrap()
                .own_fields()
                .count(),
            2
        );
    }
}
