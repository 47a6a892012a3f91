// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist report`: prints a recording.

use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use rhist_core::names::Names;
use rhist_core::picture;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::recording::Reader;
use rhist_core::table::Table;

use crate::options::Common;
use crate::options::Format;
use crate::screen::Page;
use crate::screen::Screen;
use crate::screen::View;

/// Arguments of `rhist report`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The recording; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show each interval besides the total; as a picture: over time
    #[arg(short, long)]
    pub intervals: bool,
}

/// Prints the recording, as far as it can be read.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
    let mut reader = Reader::open(&args.file)?;
    let page = Page::of(&io::stdout());
    let mut out = BufWriter::new(io::stdout().lock());
    let shown = show(&mut reader, args.intervals, common, page, &mut out).and_then(|()| Ok(out.flush()?));
    if let (Some(note), false) = (reader.note(), common.quiet) {
        say!("rhist: {note}");
    }
    shown?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the total, and with `each` all intervals. If a line is invalid, prints everything before
/// it, and then fails.
fn show(reader: &mut Reader, each: bool, common: &Common, page: Page, out: &mut dyn Write) -> anyhow::Result<()> {
    let question = reader.question().clone();
    let mut total = Reading::default();
    let mut seconds = 0.0;
    let mut columns = Vec::new();
    let mut result = Ok(());
    while let Some(interval) = reader.next() {
        let interval = match interval {
            Ok(interval) => interval,
            Err(error) => {
                result = Err(error.into());
                break;
            }
        };
        let by = !interval.delta.keys.is_empty();
        match common.format() {
            Format::Svg if each => columns.push(column(&interval)),
            Format::Text | Format::Json if each => {
                screen(&question, reader.names(), page, common, by).print(out, &View::interval(&interval))?;
            }
            _ => (),
        }
        seconds += interval.seconds();
        total.append(interval);
    }
    if !columns.is_empty() && picture::first_dist(&total.table.total()).is_some() {
        out.write_all(picture::heat_map(&question, &columns).as_bytes())?;
    } else {
        let by = !total.table.keys.is_empty();
        screen(&question, reader.names(), page, common, by).print(out, &View::total(&total, seconds))?;
    }
    result
}

fn screen<'a>(question: &'a Question, names: &'a Names, page: Page, common: &Common, by: bool) -> Screen<'a> {
    Screen {
        question,
        names,
        page,
        format: common.format(),
        by,
        quiet: common.quiet,
    }
}

/// Strips the keys from an interval, since a heat map does not need them.
fn column(interval: &Interval) -> Interval {
    Interval {
        from: interval.from.clone(),
        to: interval.to.clone(),
        delta: Table {
            values: interval.delta.values.clone(),
            rows: vec![interval.delta.total()],
            ..Table::default()
        },
        ..Interval::default()
    }
}
