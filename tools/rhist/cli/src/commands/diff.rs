// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist diff`: compares two recordings.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use rhist_core::compare;
use rhist_core::compare::Sample;
use rhist_core::names::Names;
use rhist_core::question::Question;
use rhist_core::recording::Reader;

use crate::options::Common;
use crate::options::Format;
use crate::screen::Comparison;
use crate::screen::Page;
use crate::screen::Screen;

/// Arguments of `rhist diff`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A recording
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Another recording of the same question
    #[arg(value_name = "B")]
    pub b: PathBuf,
}

/// Compares two recordings, and prints the differences.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
    let [a, b] = [&args.a, &args.b];
    let (question_a, sample_a, known_a) = read(a, common.quiet)?;
    let (question_b, sample_b, known_b) = read(b, common.quiet)?;
    let [name_a, name_b] = [a, b].map(|path| path.to_string_lossy().into_owned());
    compare::check((&question_a, &sample_a), (&question_b, &sample_b))
        .map_err(|why| anyhow!("{} and {} cannot be compared: {why}", a.display(), b.display()))?;
    let differences = match common.format() {
        Format::Text | Format::Json => compare::compare(&sample_a, &sample_b),
        Format::Folded | Format::Svg => Vec::new(),
    };
    let comparison = Comparison {
        names: [&name_a, &name_b],
        questions: [&question_a, &question_b],
        samples: [&sample_a, &sample_b],
        notes: &compare::notes((&question_a, &sample_a), (&question_b, &sample_b), &differences),
        differences: &differences,
    };
    let screen = Screen {
        question: &question_b,
        names: &known_b,
        page: Page::of(&io::stdout()),
        format: common.format(),
        by: true,
        quiet: common.quiet,
    };
    screen.compare(&mut io::stdout().lock(), &known_a, &comparison)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path, quiet: bool) -> anyhow::Result<(Question, Sample, Names)> {
    let mut reader = Reader::open(path)?;
    let mut sample = Sample::default();
    for interval in &mut reader {
        sample.add(interval?);
    }
    if let (Some(note), false) = (reader.note(), quiet) {
        say!("rhist: {note}");
    }
    Ok((reader.question().clone(), sample, reader.into_names()))
}
