// SPDX-License-Identifier: MIT OR Apache-2.0

//! Completion for zsh, which filters candidates by the typed word.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::Path;

use clap_complete::env;
use clap_complete::env::EnvCompleter;

/// Completion for zsh. Unlike the one of `clap_complete`, it also shows events whose system was not
/// typed, and adds no blank after an incomplete word.
#[derive(Debug)]
pub(super) struct Zsh;

/// Command with which `clap_complete` shows the candidates.
const SHOWN: &str = "[[ -n $other ]] && _describe -V 'values' other\n";

/// Replacement. `-U` turns off the filter of zsh.
const ALL_SHOWN: &str = r#"local -a open=(${(M)other:#*[:=]})
        other=(${other:#*[:=]})
        [[ -n $open ]] && _describe -V 'values' open -U -S ''
        [[ -n $other ]] && _describe -V 'values' other -U
"#;

impl EnvCompleter for Zsh {
    fn name(&self) -> &'static str {
        "zsh"
    }

    fn is(&self, name: &str) -> bool {
        name == "zsh"
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        bin: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut script = Vec::new();
        env::Zsh.write_registration(variable, name, bin, completer, &mut script)?;
        let script = String::from_utf8_lossy(&script).replace(SHOWN, ALL_SHOWN);
        out.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        env::Zsh.write_complete(command, words, folder, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_shown() {
        let mut script = Vec::new();
        Zsh.write_registration("COMPLETE", "rhist", "rhist", "rhist", &mut script)
            .unwrap();
        let script = String::from_utf8(script).unwrap();
        assert_eq!(script.matches("other -U\n").count(), 1, "{script}");
        assert_eq!(script.matches("open -U -S ''\n").count(), 1, "{script}");
    }
}
