// SPDX-License-Identifier: GPL-2.0

//! The kernel's own functions as the judge: pieces of its source, compiled for this machine with a
//! program that replaces the kernel around them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

/// Reads a file of the kernel's source in `RHIST_KERNEL_SOURCE`. Returns `None` if that is not set;
/// the caller has no judge then.
pub(crate) fn kernel_file(path: &str) -> Option<String> {
    let source = std::env::var_os("RHIST_KERNEL_SOURCE")?;
    Some(fs::read_to_string(Path::new(&source).join(path)).unwrap())
}

/// Returns the text of `source` from `start` on, up to the first `end` after it.
#[allow(dead_code, reason = "not each judge is cut out of files")]
pub(crate) fn between<'a>(source: &'a str, start: &str, end: &str) -> &'a str {
    let start = source.find(start).unwrap_or_else(|| panic!("no {start}"));
    let length = source[start..]
        .find(end)
        .unwrap_or_else(|| panic!("no {end}"));
    &source[start..start + length]
}

/// `n` questions, or `RHIST_TEST_ROUNDS` percent of them for slow tools.
#[allow(dead_code, reason = "not each judge is asked random questions")]
pub(crate) fn rounds(n: usize) -> usize {
    match std::env::var("RHIST_TEST_ROUNDS") {
        Ok(percent) => (n * percent.parse::<usize>().unwrap() / 100).max(1),
        Err(_) => n,
    }
}

/// A program that reads questions and writes a line for each.
pub(crate) struct Oracle(PathBuf);

impl Oracle {
    /// Compiles `program`, a file below `tests/`, with `pieces`, each a file that it includes.
    pub(crate) fn new(program: &str, pieces: &[(&str, String)]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program.replace('/', "_"));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in pieces {
            fs::write(folder.join(name), text).unwrap();
        }
        let oracle = folder.join("oracle");
        let compiler = Command::new("cc")
            .args(["-std=gnu11", "-funsigned-char", "-w", "-O1"])
            .arg("-fsanitize=address,undefined")
            .arg("-I")
            .arg(&folder)
            .arg("-o")
            .arg(&oracle)
            .arg(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).join(program))
            .status()
            .expect("no C compiler");
        assert!(compiler.success());
        Self(oracle)
    }

    /// Runs the program with `questions` as its input. Returns its lines.
    pub(crate) fn ask(&self, questions: String) -> Vec<String> {
        let mut oracle = Command::new(&self.0)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("UBSAN_OPTIONS", "halt_on_error=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = oracle.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
        let output = oracle.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let last = said.lines().last();
        assert!(output.status.success(), "its last words: {last:?}");
        writer.join().unwrap().unwrap();
        said.lines().map(str::to_owned).collect()
    }
}
