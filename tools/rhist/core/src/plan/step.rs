// SPDX-License-Identifier: MIT OR Apache-2.0

//! Steps of a run: single commands that it writes to the kernel.

use std::fmt;

use crate::samples;

/// Limit of concurrent calls that a return probe can track (`KRETPROBE_MAXACTIVE_MAX`). The
/// default is two per CPU, or ten; further calls are missed.
pub const MOST_ACTIVE: u32 = 4096;

/// Identifier in the names of a run's objects. Contains the process, so that names of two runs
/// never collide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(String);

/// A command for the kernel, with the name of the object that it creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Creates a probe.
    Probe {
        /// `group/event`.
        name: String,
        /// Line for `dynamic_events`.
        definition: String,
    },
    /// Creates a synthetic event.
    Synthetic {
        /// Name without `synthetic/`.
        name: String,
        /// Line for `synthetic_events`.
        definition: String,
    },
    /// Creates a trigger in the run's instance.
    Trigger {
        /// `system/event`.
        event: String,
        /// Line for the `trigger` file.
        command: String,
    },
    /// Sets how often `rhist:sample` happens, for the whole machine.
    Frequency {
        /// Samples per second on each CPU.
        hertz: String,
        /// The number to which the end of the run sets it; empty if it is not known yet.
        before: String,
    },
}

impl Id {
    /// ID of a run of this process.
    ///
    /// # Errors
    ///
    /// `/proc` is not mounted.
    pub fn of_this_process() -> std::io::Result<Self> {
        let stat = std::fs::read("/proc/self/stat")?;
        // The name in parentheses may contain any bytes, also parentheses. The start time is field
        // 22.
        let stat = String::from_utf8_lossy(&stat);
        let start = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(19))
            .unwrap_or("0");
        Ok(Self(format!("{}_{start}", std::process::id())))
    }

    /// ID for commands that are only printed.
    pub fn example() -> Self {
        Self("1".to_owned())
    }

    /// ID of one of several runs of this process. Unique among processes, like
    /// [`Self::second()`].
    pub fn numbered(&self, number: u32) -> Self {
        Self(format!("{}{number:06}", self.0))
    }

    /// ID of another run of this process. No other process can have it: one with that start time
    /// would start in many years.
    pub fn second(&self) -> Self {
        Self(format!("{}0", self.0))
    }

    /// Returns whether this is the ID `first`, or another one of its process.
    pub fn is_of(&self, first: &Self) -> bool {
        self.0.starts_with(&first.0)
    }

    /// Parses the ID in the name of an instance or a journal.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('_').collect();
        let is_number =
            |part: &&str| !part.is_empty() && part.len() <= 20 && part.bytes().all(|byte| byte.is_ascii_digit());
        (parts.len() == 2 && parts.iter().all(is_number)).then(|| Self(text.to_owned()))
    }

    /// Name of the instance.
    pub fn instance(&self) -> String {
        format!("rhist-{}", self.0)
    }

    /// Group of the probes.
    pub fn group(&self) -> String {
        format!("rhist_{}", self.0)
    }

    /// Name of a synthetic event.
    pub fn synthetic(&self, name: &str) -> String {
        format!("rhist_{}_{name}", self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Step {
    /// File that the command is appended to. `true` if it is relative to the run's instance,
    /// `false` for the top tracing directory.
    pub fn file(&self) -> (bool, String) {
        match self {
            Step::Probe { .. } => (false, "dynamic_events".to_owned()),
            Step::Synthetic { .. } => (false, "synthetic_events".to_owned()),
            Step::Trigger { event, .. } => (true, format!("events/{event}/trigger")),
            Step::Frequency { .. } => (false, samples::FREQUENCY.to_owned()),
        }
    }

    /// Returns whether the command has this word, as a key, variable or saved field.
    pub(super) fn has_word(&self, wanted: &str) -> bool {
        let mut words = self.text().split([',', ':', '=', '(', ')', ' ']);
        words.any(|word| word == wanted)
    }

    /// Text of the command.
    pub fn text(&self) -> &str {
        match self {
            Step::Probe { definition, .. } | Step::Synthetic { definition, .. } => definition,
            Step::Trigger { command, .. } => command,
            Step::Frequency { hertz, .. } => hertz,
        }
    }

    /// For a return probe by fprobe, the same command with the maximum number of tracked calls.
    /// Kernels from 6.14 on need no number, and refuse it.
    pub fn with_room(&self) -> Option<String> {
        match self {
            Step::Probe { definition, .. } if definition.contains("%return") => {
                let rest = definition.strip_prefix("f:")?;
                Some(format!("f{MOST_ACTIVE}:{rest}"))
            }
            _ => None,
        }
    }

    /// Text that undoes the command if written to the same file.
    pub fn undo(&self) -> String {
        match self {
            Step::Probe { name, .. } => format!("-:{name}"),
            Step::Synthetic { name, .. } => format!("!{name}"),
            Step::Trigger { command, .. } => format!("!{command}"),
            Step::Frequency { before, .. } => before.clone(),
        }
    }

    /// Shell command to run in the tracing directory.
    pub fn shell(&self, id: &Id) -> String {
        let plain = Self::append(id, self.file(), self.text());
        match self.with_room() {
            Some(room) => format!("{} 2>/dev/null || {plain}", Self::append(id, self.file(), &room)),
            None => plain,
        }
    }

    /// Shell command that undoes the step.
    pub fn shell_undo(&self, id: &Id) -> String {
        Self::append(id, self.file(), &self.undo())
    }

    fn append(id: &Id, (in_instance, file): (bool, String), text: &str) -> String {
        let dir = if in_instance {
            format!("instances/{}/", id.instance())
        } else {
            String::new()
        };
        // Some shells' echo interprets backslashes.
        let print = if text.contains('\\') { r"printf '%s\n'" } else { "echo" };
        format!("{print} {} >> {dir}{file}", word(text))
    }
}

/// Formats a text as one word of a shell, in quotes if necessary.
pub fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_have_room() {
        let room = |definition: &str| {
            let step = Step::Probe {
                name: "g/x".to_owned(),
                definition: definition.to_owned(),
            };
            step.with_room()
        };
        assert_eq!(room("f:g/x do_it%return").as_deref(), Some("f4096:g/x do_it%return"));
        assert_eq!(room("f:g/x do_it"), None);
        assert_eq!(room("p:g/x do_exit"), None);
    }

    #[test]
    fn words_of_a_shell() {
        let words = ["/tmp/a-b_1.jsonl", "", "a b", "it's", "$x", "*"].map(word);
        assert_eq!(words, ["/tmp/a-b_1.jsonl", "''", "'a b'", r"'it'\''s'", "'$x'", "'*'"]);
    }

    /// A shell that executes the printed commands writes the same bytes as rhist.
    #[test]
    fn shells_write_the_same() {
        let dir = tempfile::tempdir().unwrap();
        for definition in [
            "p:g/x vfs_read name=+0($arg1):string",
            "f:g/x vfs_read%return",
            r#"x y ~ "a\nb\\c\c$HOME`id`*'" #"#,
        ] {
            let step = Step::Probe {
                name: "g/x".to_owned(),
                definition: definition.to_owned(),
            };
            let written = step.with_room().unwrap_or(definition.to_owned());
            for (line, text) in [
                (step.shell(&Id::example()), written),
                (step.shell_undo(&Id::example()), step.undo()),
            ] {
                let line = format!("cd {} && {line}", word(dir.path().to_str().unwrap()));
                let status = std::process::Command::new("sh").args(["-c", &line]).status();
                assert!(status.unwrap().success(), "{line}");
                let file = dir.path().join("dynamic_events");
                assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{text}\n"));
                std::fs::remove_file(file).unwrap();
            }
        }
    }
}
