// SPDX-License-Identifier: MIT OR Apache-2.0

//! Completion for bash, which splits `sched:sched_switch` into three words.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::path::Path;

use clap_complete::env::EnvCompleter;

/// Completion for bash. The one of `clap_complete` does not handle words that contain `:`.
#[derive(Debug)]
pub(super) struct Bash;

/// Separator of candidates, which occurs in no name.
const SEPARATOR: char = '\x0b';

const REGISTRATION: &str = r#"
_rhist() {
    local IFS=$'\013'
    local words=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
    # Of a word that bash takes apart, $2 is what is behind the sign.
    [[ ${words[COMP_CWORD]} == [:=]* ]] || words[COMP_CWORD]=$2
    COMPREPLY=($(_CLAP_COMPLETE_INDEX=$COMP_CWORD VARIABLE=bash COMPLETER -- "${words[@]}")) || COMPREPLY=()
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _rhist NAME
"#;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let quoted = format!("'{}'", completer.replace('\'', r"'\''"));
        let script = REGISTRATION
            .replace("NAME", bin)
            .replace("COMPLETER", &quoted)
            .replace("VARIABLE", variable);
        out.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let index = std::env::var("_CLAP_COMPLETE_INDEX")
            .ok()
            .and_then(|index| index.parse().ok())
            .unwrap_or_default();
        let Joined { words, index, typed } = join(words, index);
        for (i, candidate) in clap_complete::engine::complete(command, words, index, folder)?
            .iter()
            .enumerate()
        {
            let value = candidate.get_value().to_string_lossy();
            // Bash replaces only the part after the last break character.
            let value = value.strip_prefix(&typed).unwrap_or(&value);
            if i > 0 {
                write!(out, "{SEPARATOR}")?;
            }
            out.write_all(value.as_bytes())?;
        }
        Ok(())
    }
}

/// Words as the user typed them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub words: Vec<OsString>,
    /// Index of the word to complete.
    pub index: usize,
    /// Its beginning, in front of the part that bash completes.
    pub typed: String,
}

/// Joins words that bash has split at `:` and `=`. Leaves other words alone.
pub(super) fn join(words: Vec<OsString>, index: usize) -> Joined {
    let is_sign = |word: &OsString| {
        word.to_str()
            .is_some_and(|text| !text.is_empty() && text.chars().all(is_break))
    };
    let mut joined = Joined {
        words: Vec::new(),
        index: 0,
        typed: String::new(),
    };
    let mut glue = false;
    for (i, word) in words.into_iter().enumerate() {
        let sign = is_sign(&word);
        match joined.words.last_mut() {
            Some(last) if glue || (sign && i > 1) => last.push(word),
            _ => joined.words.push(word),
        }
        glue = sign && i > 1;
        if i == index {
            joined.index = joined.words.len() - 1;
        }
    }
    if let Some(text) = joined.words.get(joined.index).and_then(|word| word.to_str()) {
        let end = text.rfind(is_break).map_or(0, |at| at + 1);
        joined.typed = text.get(..end).unwrap_or_default().to_owned();
    }
    joined
}

fn is_break(c: char) -> bool {
    matches!(c, ':' | '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &[&str], index: usize) -> (String, usize, String) {
        let Joined { words, index, typed } = join(words.iter().map(OsString::from).collect(), index);
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        (words.join("|"), index, typed)
    }

    #[test]
    fn words_with_signs() {
        let expected = |words: &str, index, typed: &str| (words.to_owned(), index, typed.to_owned());
        assert_eq!(
            joined(&["rhist", "count", "sched", ":", "sw"], 4),
            expected("rhist|count|sched:sw", 2, "sched:")
        );
        assert_eq!(
            joined(&["rhist", "count", "sched", ":"], 3),
            expected("rhist|count|sched:", 2, "sched:")
        );
        assert_eq!(
            joined(&["rhist", "x", "--by", "=", "a"], 4),
            expected("rhist|x|--by=a", 2, "--by=")
        );
        assert_eq!(joined(&["rhist", "x", "a:b", "c"], 3), expected("rhist|x|a:b|c", 3, ""));
        assert_eq!(joined(&["rhist", ""], 1), expected("rhist|", 1, ""));
        assert_eq!(joined(&[], 0), expected("", 0, ""));
    }
}
