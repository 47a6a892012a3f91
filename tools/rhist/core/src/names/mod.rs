// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of numbers: devices, system calls, errors, flags. A number without a name stays a number.
//!
//! Each [`NameKind`] has a decoder in a file here; [`Names::name`] lists them. Files are read at
//! the first lookup of their kind.

mod blockop;
pub(crate) mod cgroup;
pub mod container;
mod device;
mod errno;
mod hex;
mod ipv4;
mod irq;
mod proc;
mod signal;
mod softirq;
mod state;
mod syscall;
mod tcpstate;

use std::cell::OnceCell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use proc::ProcFile;
use proc::Table;

use crate::recipe::Measure;
use crate::recipe::NameKind;
use crate::tracefs::Symbols;
use crate::tracefs::Tracefs;
use crate::tracefs::events::EventName;

/// Minimum age of the list of control groups before an unknown group causes a new read.
const CGROUPS_AGE: Duration = Duration::from_secs(10);

/// Source of names.
#[derive(Debug, Default)]
pub struct Names {
    /// `/proc` of the machine that the numbers come from; `None` for another machine.
    proc: Option<PathBuf>,
    devices: OnceCell<Table>,
    irqs: OnceCell<Table>,
    /// Paths of control groups, and the time of reading.
    cgroups: RefCell<Option<(Instant, Table)>>,
    /// Names from the print format of the event, by column.
    formats: BTreeMap<String, Symbols>,
    /// Names stored in a recording, by column.
    recorded: BTreeMap<String, Table>,
}

impl Names {
    /// Names of this machine. Reads no file yet.
    pub fn new() -> Self {
        Self::with_proc("/proc")
    }

    /// Like [`Self::new`], with another `/proc`.
    pub fn with_proc(proc: impl Into<PathBuf>) -> Self {
        Names {
            proc: Some(proc.into()),
            ..Names::default()
        }
    }

    /// Names for numbers of another machine, or of another boot: only names that are the same
    /// everywhere.
    pub fn elsewhere() -> Self {
        Names::default()
    }

    /// Names of this machine, including the names that the events of `measure` define for the
    /// values of `columns`: keys of `measure`, or fields. Skips events that cannot be read.
    pub fn of_events<'a>(tracefs: &Tracefs, measure: &Measure, columns: impl IntoIterator<Item = &'a String>) -> Self {
        let mut names = Self::new();
        let counts = measure.count.iter().map(|count| &count.event);
        let ends = measure.end.iter().map(|point| &point.event);
        let format = |event: &String| tracefs.format(&EventName::parse(event)?).ok();
        let formats: Vec<_> = counts.chain(ends).filter_map(format).collect();
        for column in columns {
            let key = measure.keys.get(column).unwrap_or(column);
            let field = key.split('.').next().unwrap_or(key);
            if let Some(symbols) = formats.iter().find_map(|format| format.symbols(field)) {
                names.add_symbols(column, symbols);
            }
        }
        names
    }

    /// Default kind of names for a column: derived from the column's name if a field of this name
    /// means the same in all events, otherwise taken from the print format.
    pub fn usual(column: &str) -> NameKind {
        match column {
            "dev" => NameKind::Device,
            "cgroup_ino" => NameKind::Cgroup,
            "irq" => NameKind::Irq,
            "prev_state" => NameKind::State,
            "sig" => NameKind::Signal,
            _ => NameKind::Format,
        }
    }

    /// Adds the name that a number in `column` had at the time of recording.
    pub fn add_recorded(&mut self, column: &str, number: i128, name: &str) {
        match self.recorded.get_mut(column) {
            Some(names) if names.contains_key(&number) => (),
            Some(names) => {
                names.insert(number, name.to_owned());
            }
            None => {
                let names = Table::from([(number, name.to_owned())]);
                self.recorded.insert(column.to_owned(), names);
            }
        }
    }

    /// Adds the names of the values of `column`, for [`NameKind::Format`].
    pub fn add_symbols(&mut self, column: &str, symbols: Symbols) {
        self.formats.insert(column.to_owned(), symbols);
    }

    /// Name of a number in `column`, which is a key or a saved field. The name may contain any
    /// characters.
    pub fn name(&self, kind: NameKind, column: &str, number: i128) -> Option<String> {
        if let Some(name) = self.recorded.get(column).and_then(|names| names.get(&number)) {
            return Some(name.clone());
        }
        match kind {
            NameKind::Device => self.of_machine(&self.devices, device::FILE, number),
            NameKind::Syscall => syscall::name(std::env::consts::ARCH, number).map(str::to_owned),
            NameKind::Errno => errno::name(number).map(str::to_owned),
            NameKind::State => state::name(number),
            NameKind::Signal => signal::name(number),
            NameKind::Softirq => softirq::name(number).map(str::to_owned),
            NameKind::Tcpstate => tcpstate::name(number).map(str::to_owned),
            NameKind::Blockop => blockop::name(number).map(str::to_owned),
            NameKind::Irq => self.of_machine(&self.irqs, irq::FILE, number),
            NameKind::Ipv4 => ipv4::name(number),
            NameKind::Hex => hex::name(number),
            NameKind::Cgroup | NameKind::Container => self.cgroup(number),
            NameKind::Format => self.formats.get(column)?.name(number),
        }
    }

    /// Path of a control group. Reads all groups again if it is unknown and the list is older than
    /// [`CGROUPS_AGE`].
    fn cgroup(&self, number: i128) -> Option<String> {
        let folder = self.proc.as_deref().and_then(Path::parent)?.join(cgroup::FOLDER);
        let mut cgroups = self.cgroups.borrow_mut();
        let is_known = |(read, groups): &(Instant, Table)| groups.contains_key(&number) || read.elapsed() < CGROUPS_AGE;
        if !cgroups.as_ref().is_some_and(is_known) {
            *cgroups = Some((Instant::now(), cgroup::read(&folder)));
        }
        cgroups.as_ref()?.1.get(&number).cloned()
    }

    /// Looks up a name in a file of `/proc`, which is read once. An unreadable file counts as
    /// empty.
    fn of_machine(&self, table: &OnceCell<Table>, file: ProcFile, number: i128) -> Option<String> {
        let proc = self.proc.as_ref()?;
        table
            .get_or_init(|| (file.parse)(&std::fs::read_to_string(proc.join(file.name)).unwrap_or_default()))
            .get(&number)
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_on_first_use_and_once() {
        let proc = tempfile::tempdir().unwrap();
        let names = Names::with_proc(proc.path());
        let partitions = "major minor  #blocks  name\n\n   8        0  268435456 sda\n";
        std::fs::write(proc.path().join("partitions"), partitions).unwrap();
        assert_eq!(names.name(NameKind::Device, "dev", 8 << 20), Some("sda".to_owned()));
        assert_eq!(names.name(NameKind::Irq, "irq", 1), None);
        std::fs::remove_file(proc.path().join("partitions")).unwrap();
        assert_eq!(names.name(NameKind::Device, "dev", 8 << 20), Some("sda".to_owned()));
    }

    #[test]
    fn another_machine_has_no_devices() {
        let names = Names::elsewhere();
        for number in 0..1000 {
            assert_eq!(names.name(NameKind::Irq, "irq", number), None);
        }
        assert_eq!(names.name(NameKind::Errno, "ret", -2), Some("ENOENT".to_owned()));
    }

    #[test]
    fn names_of_events() {
        let (_root, tracefs) = crate::tracefs::fixture::tracefs(false);
        let measure = crate::recipe::Recipe::parse(
            r#"summary = "x"
            about = "y"
            names = { vec = "format", pid = "format" }
            keys = { softirq = "vec.hex" }
            count = [{ event = "no:event" }, { event = "irq:softirq_entry" }]"#,
        );
        let measure = measure.unwrap().measure;
        let columns = ["softirq", "vec", "pid"].map(str::to_owned);
        let names = Names::of_events(&tracefs, &measure, &columns);
        for column in ["softirq", "vec"] {
            assert_eq!(names.name(NameKind::Format, column, 0), Some("HI".to_owned()));
            assert_eq!(names.name(NameKind::Format, column, 99), None);
        }
        assert_eq!(names.name(NameKind::Format, "pid", 0), None);
    }

    #[test]
    fn no_number_is_too_large() {
        let names = Names::elsewhere();
        for kind in [
            NameKind::Device,
            NameKind::Syscall,
            NameKind::Errno,
            NameKind::State,
            NameKind::Signal,
            NameKind::Softirq,
            NameKind::Tcpstate,
            NameKind::Blockop,
            NameKind::Irq,
            NameKind::Ipv4,
            NameKind::Hex,
            NameKind::Cgroup,
            NameKind::Container,
            NameKind::Format,
        ] {
            for number in [i128::MIN, i64::MIN.into(), u64::MAX.into(), i128::MAX] {
                names.name(kind, "x", number);
            }
        }
    }
}
