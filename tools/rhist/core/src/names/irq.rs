// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of interrupts: their handlers.

use super::proc::ProcFile;
use super::proc::Table;

pub(super) const FILE: ProcFile = ProcFile {
    name: "interrupts",
    parse,
};

fn parse(interrupts: &str) -> Table {
    interrupts.lines().filter_map(line).collect()
}

/// Parses `NUMBER: a count for each CPU, chip, hwirq-type  handler, handler`. Two spaces precede
/// the handlers, if any; the columns before them depend on the architecture.
fn line(line: &str) -> Option<(i128, String)> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim().parse().ok()?;
    let (_, handlers) = rest.rsplit_once("  ")?;
    let none = handlers.is_empty() || handlers.ends_with(' ') || handlers.bytes().all(|byte| byte.is_ascii_digit());
    (!none).then(|| (number, handlers.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts() {
        let names = parse(concat!(
            "           CPU0       CPU1       \n",
            " 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n",
            " 25:          1          0  IO-APIC   9-fasteoi \n",
            " 28:          0          0 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config\n",
            " 30:          0          0 GICv3  27 Level     i801_smbus, uhci_hcd:usb1\n",
            " 31:          0          0\n",
            "NMI:          0          0   Non-maskable interrupts\n",
        ));
        assert_eq!(names.len(), 3);
        assert_eq!(names[&24], "ACPI:Ged");
        assert_eq!(names[&28], "virtio0-config");
        assert_eq!(names[&30], "i801_smbus, uhci_hcd:usb1");
    }
}
