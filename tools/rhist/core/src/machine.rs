// SPDX-License-Identifier: MIT OR Apache-2.0

//! Capabilities of a machine: functions of its kernel, the module, and permissions.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::Access;

use crate::recipe::Measure;
use crate::tracefs::Backend;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;

/// Capabilities of a machine, read once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Release of the kernel.
    pub release: String,
    /// Version of the module, if it is loaded.
    pub module: Option<String>,
    /// Whether a module is installed that could be loaded.
    pub is_module_installed: bool,
    /// Whether Secure Boot is on. `None` if the firmware does not say.
    pub secure_boot: Option<bool>,
    /// `integrity` or `confidentiality`, if the kernel is locked down.
    pub lockdown: Option<String>,
    /// State of the tracing directory.
    pub tracefs: Place,
    /// Whether this process may create instances in it.
    pub is_writable: bool,
    /// Tracing functions that the directory offers.
    pub functions: Functions,
}

/// State of the tracing directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Not mounted.
    #[default]
    NotMounted,
    /// Not readable for this process.
    Denied,
    /// Readable.
    Found(Tracefs),
}

/// Functions of the kernel and the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// The kernel's own hist triggers, written in C.
    pub hist_triggers: bool,
    /// Synthetic events, which combine two events.
    pub synthetic_events: bool,
    /// Probes on instructions of the kernel.
    pub kprobes: bool,
    /// Probes on instructions of programs.
    pub uprobes: bool,
    /// Probes on functions and tracepoints of the kernel.
    pub fprobes: bool,
    /// Arguments of probes by their names.
    pub arguments: bool,
    /// Tracepoints of system calls.
    pub system_calls: bool,
    /// Tracepoints of locks.
    pub locks: bool,
    /// Events of programs.
    pub user_events: bool,
}

/// Missing requirement of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// This event (`system/event`) does not exist.
    Event(String),
    /// The kernel lacks probes of this kind: `kprobe`.
    Probes(&'static str),
}

impl Machine {
    /// Examines the machine whose root directory is `root`, and its tracing directory.
    pub fn look(root: &Path, tracefs: io::Result<Tracefs>) -> Self {
        let read = |path: &str| {
            fs::read_to_string(root.join(path))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let release = read("proc/sys/kernel/osrelease");
        let version = read("sys/module/rhist/version");
        let is_loaded = root.join("sys/module/rhist").exists();
        let is_module_installed = [format!("lib/modules/{release}/modules.dep")].iter().any(|path| {
            read(path)
                .lines()
                .any(|line| is_module(line.split(':').next().unwrap_or_default()))
        });
        let tracefs = match tracefs {
            Ok(tracefs) => Place::Found(tracefs),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Place::Denied,
            Err(_) => Place::NotMounted,
        };
        let (is_writable, functions) = match &tracefs {
            Place::Found(tracefs) => (is_writable(tracefs), Functions::of(tracefs)),
            _ => Default::default(),
        };
        Self {
            module: is_loaded.then(|| {
                if version.is_empty() {
                    "of unknown version".to_owned()
                } else {
                    version
                }
            }),
            is_module_installed,
            secure_boot: secure_boot(&root.join("sys/firmware/efi/efivars")),
            lockdown: lockdown(&read("sys/kernel/security/lockdown")),
            release,
            tracefs,
            is_writable,
            functions,
        }
    }

    /// Returns whether any measurement is possible.
    pub fn can_measure(&self) -> bool {
        let has_histograms = match &self.tracefs {
            Place::Found(tracefs) => tracefs.backend() == Backend::Rhist || self.functions.hist_triggers,
            _ => false,
        };
        has_histograms && self.is_writable && self.lockdown.as_deref() != Some("confidentiality")
    }

    /// Requirements of a measurement that this machine lacks. Empty if the measurement or one of
    /// its alternatives can run.
    pub fn lacks(&self, measure: &Measure) -> Vec<Lack> {
        let own = self.lacks_here(measure);
        if own.is_empty()
            || measure
                .alternatives
                .iter()
                .any(|other| self.lacks_here(other).is_empty())
        {
            return Vec::new();
        }
        own
    }

    fn lacks_here(&self, measure: &Measure) -> Vec<Lack> {
        let counted = measure.count.iter().map(|count| &count.event);
        let points = measure.start.iter().chain(&measure.end).chain(&measure.forget);
        let events = counted.chain(points.map(|point| &point.event));
        let is_there = |event: &str| match (&self.tracefs, EventName::parse(event)) {
            (Place::Found(tracefs), Some(name)) => tracefs.has_event(&name),
            _ => false,
        };
        // An event with a placeholder is created by the run, or named by the user.
        let missing = events.filter(|event| !event.contains('{') && !is_there(event));
        let mut lacks: Vec<Lack> = missing.map(|event| Lack::Event(event.clone())).collect();
        lacks.extend(
            measure
                .probes
                .iter()
                .filter_map(|definition| self.functions.lacks_probe(definition)),
        );
        lacks.sort_unstable();
        lacks.dedup();
        lacks
    }
}

impl Functions {
    /// Examines a tracing directory.
    fn of(tracefs: &Tracefs) -> Self {
        let readme = fs::read(tracefs.kernel().join("README")).unwrap_or_default();
        let readme = String::from_utf8_lossy(&readme);
        let has_event = |system: &str, event: &str| tracefs.event(system, event).join("format").exists();
        let has_probe = |text: &str| readme.contains("dynamic_events") && readme.contains(text);
        Self {
            hist_triggers: readme.contains("hist trigger"),
            synthetic_events: tracefs.dir().join("synthetic_events").exists(),
            kprobes: has_probe("kprobe_events"),
            uprobes: has_probe("uprobe_events"),
            fprobes: has_probe("<func-name>[%return]"),
            arguments: has_probe("<argname>[->field"),
            system_calls: has_event("raw_syscalls", "sys_enter"),
            locks: has_event("lock", "contention_begin"),
            user_events: tracefs.dir().join("user_events_data").exists(),
        }
    }

    /// Requirement that a line of `dynamic_events` lacks.
    fn lacks_probe(&self, definition: &str) -> Option<Lack> {
        let is_of_program = definition.split(' ').nth(1).is_some_and(|place| place.starts_with('/'));
        let (is_there, name) = match definition.chars().next() {
            Some('p' | 'r') if is_of_program => (self.uprobes, "uprobe"),
            Some('p' | 'r') => (self.kprobes, "kprobe"),
            Some('f' | 't') => (self.fprobes, "fprobe"),
            _ => return None,
        };
        match is_there {
            false => Some(Lack::Probes(name)),
            true if definition.contains("->") && !self.arguments => Some(Lack::Probes("BTF")),
            true => None,
        }
    }
}

/// Returns whether a path of `modules.dep` is the module rhist, compressed or not.
fn is_module(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split('.').next() == Some("rhist") && name.contains(".ko")
}

fn is_writable(tracefs: &Tracefs) -> bool {
    let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(tracefs.dir().join("instances"), all).is_ok()
}

/// Reads the EFI variable: four bytes of attributes, then 1 if Secure Boot is on.
fn secure_boot(efivars: &Path) -> Option<bool> {
    let variable = fs::read(efivars.join("SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")).ok()?;
    variable.get(4).map(|byte| *byte == 1)
}

/// Parses the word in brackets. `None` for `none`.
fn lockdown(text: &str) -> Option<String> {
    let word = text.split_once('[')?.1.split_once(']')?.0;
    (word != "none").then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    /// A machine with these files.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let tracefs = Tracefs::at(root.path().join("sys/kernel/tracing"));
        let machine = Machine::look(root.path(), tracefs);
        (root, machine)
    }

    const KERNEL: [(&str, &str); 4] = [
        ("proc/sys/kernel/osrelease", "7.3.4+deb13-amd64\n"),
        (
            "sys/kernel/tracing/README",
            "  dynamic_events\n hist trigger\n kprobe_events\n",
        ),
        ("sys/kernel/tracing/events/sched/sched_switch/format", ""),
        ("sys/kernel/tracing/instances/x", ""),
    ];

    #[test]
    fn nothing_there() {
        let (_root, machine) = machine(&[]);
        assert_eq!(machine, Machine::default());
        assert!(!machine.can_measure());
    }

    #[test]
    fn the_kernel_alone() {
        let (_root, machine) = machine(&KERNEL);
        assert!(machine.functions.hist_triggers && machine.functions.kprobes);
        assert!(!machine.functions.fprobes && !machine.functions.locks);
        assert_eq!(
            (machine.module.as_deref(), machine.release.as_str()),
            (None, "7.3.4+deb13-amd64")
        );
        assert!(machine.can_measure());
    }

    #[test]
    fn with_the_module() {
        let more = [
            ("sys/module/rhist/version", "0.9.0\n"),
            ("sys/kernel/tracing/rhist/hist_stats", ""),
            ("sys/kernel/tracing/rhist/instances/x", ""),
            ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
            (
                "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                "\x06\0\0\0\x01",
            ),
            (
                "lib/modules/7.3.4+deb13-amd64/modules.dep",
                "kernel/a.ko.xz:\nupdates/dkms/rhist.ko.xz: kernel/a.ko.xz\n",
            ),
        ];
        let (_root, machine) = machine(&[&KERNEL[..], &more].concat());
        assert_eq!(machine.module.as_deref(), Some("0.9.0"));
        assert_eq!(machine.lockdown.as_deref(), Some("integrity"));
        assert_eq!(machine.secure_boot, Some(true));
        assert!(machine.is_module_installed && machine.can_measure());
    }

    #[test]
    fn confidentiality_ends_it() {
        let lockdown = [("sys/kernel/security/lockdown", "none integrity [confidentiality]\n")];
        let (_root, machine) = machine(&[&KERNEL[..], &lockdown].concat());
        assert!(!machine.can_measure());
    }

    #[test]
    fn modules_of_other_names() {
        assert!(is_module("updates/rhist.ko") && is_module("extra/rhist.ko.zst"));
        assert!(!is_module("updates/rhist_probe.ko") && !is_module("rhist") && !is_module(""));
    }

    #[test]
    fn what_recipes_lack() {
        let (_root, machine) = machine(&KERNEL);
        let recipe = |text: &str| {
            Recipe::parse(&format!("summary = \"\"\nabout = \"\"\n{text}"))
                .unwrap()
                .measure
        };
        let lacks = |text: &str| machine.lacks(&recipe(text));
        let here = "[[count]]\nevent = \"sched:sched_switch\"\n";
        let gone = "[[count]]\nevent = \"lock:contention_begin\"\n";
        assert_eq!(lacks(here), []);
        assert_eq!(lacks(gone), [Lack::Event("lock:contention_begin".to_owned())]);
        assert_eq!(lacks("[[count]]\nevent = \"user_events:{name}\"\n"), []);
        assert_eq!(lacks("probes = [\"f:{group}/x y\"]\n"), [Lack::Probes("fprobe")]);
        assert_eq!(
            lacks("probes = [\"p:{group}/x /bin/sh:0x10\"]\n"),
            [Lack::Probes("uprobe")]
        );
        assert_eq!(lacks("probes = [\"p:{group}/x y a=b->c\"]\n"), [Lack::Probes("BTF")]);
        let alternative = "[[alternatives]]\n[[alternatives.count]]\nevent = \"sched:sched_switch\"\n";
        assert_eq!(lacks(&format!("{gone}{alternative}")), []);
    }
}
