// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of numbers: devices, system calls, errors, flags. A number without a name stays a number.
//!
//! Each [`NameKind`] has a file here with its decoder; [`Names::name`] lists them. What has to be read is read when the first
//! name of its kind is asked for.

mod constant;
mod device;
mod errno;
mod format;
mod ipv4;
mod irq;
mod signal;
mod softirq;
mod state;
mod syscall;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::recipe::NameKind;
pub use format::Symbols;

type Table = BTreeMap<i128, String>;

/// A file below `/proc` that has names.
struct ProcFile {
    name: &'static str,
    parse: fn(&str) -> Table,
}

/// Where names are looked up.
#[derive(Debug, Default)]
pub struct Names {
    /// `/proc` of the machine that the numbers are from; `None` if that is another one.
    proc: Option<PathBuf>,
    devices: OnceCell<Table>,
    irqs: OnceCell<Table>,
    /// By column: what the print format of its event has.
    formats: BTreeMap<String, Symbols>,
}

impl Names {
    /// Names of this machine. Reads nothing yet.
    pub fn new() -> Self {
        Self::with_proc("/proc")
    }

    /// As [`Self::new`], with another `/proc`.
    pub fn with_proc(proc: impl Into<PathBuf>) -> Self {
        Names {
            proc: Some(proc.into()),
            ..Names::default()
        }
    }

    /// Names for numbers of another machine, or of another boot: only what is the same everywhere.
    pub fn elsewhere() -> Self {
        Names::default()
    }

    /// Takes the names of `field` from the contents of its event's `format` file, for [`NameKind::Format`] in `column`.
    /// Does nothing if there are none.
    pub fn add_format(&mut self, column: &str, field: &str, format: &str) {
        if let Some(symbols) = Symbols::parse(format, field) {
            self.formats.insert(column.to_owned(), symbols);
        }
    }

    /// The name of a number in `column`, which is a key or a saved field. It may have any characters.
    pub fn name(&self, kind: NameKind, column: &str, number: i128) -> Option<String> {
        match kind {
            NameKind::Device => self.of_machine(&self.devices, device::FILE, number),
            NameKind::Syscall => syscall::name(std::env::consts::ARCH, number).map(str::to_owned),
            NameKind::Errno => errno::name(number).map(str::to_owned),
            NameKind::State => state::name(number),
            NameKind::Signal => signal::name(number),
            NameKind::Softirq => softirq::name(number).map(str::to_owned),
            NameKind::Irq => self.of_machine(&self.irqs, irq::FILE, number),
            NameKind::Ipv4 => ipv4::name(number),
            NameKind::Format => self.formats.get(column)?.name(number),
        }
    }

    /// A name from a file of `/proc`, which is read once. A file that cannot be read has no names.
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
    fn a_format_belongs_to_its_column() {
        let mut names = Names::new();
        let format = r#"print fmt: "%s", __print_symbolic(REC->vec, { 0, "HI" })"#;
        names.add_format("softirq", "vec", format);
        names.add_format("other", "irq", format);
        assert_eq!(names.name(NameKind::Format, "softirq", 0), Some("HI".to_owned()));
        assert_eq!(names.name(NameKind::Format, "softirq", 1), None);
        assert_eq!(names.name(NameKind::Format, "other", 0), None);
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
            NameKind::Irq,
            NameKind::Ipv4,
            NameKind::Format,
        ] {
            for number in [i128::MIN, i64::MIN.into(), u64::MAX.into(), i128::MAX] {
                names.name(kind, "x", number);
            }
        }
    }
}
