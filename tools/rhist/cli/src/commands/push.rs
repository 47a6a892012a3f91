// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist push`: sends measurements to a receiver of OTLP.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::bail;
use clap::ValueEnum;
use rhist_core::names::Names;
use rhist_core::plan::Plan;
use rhist_core::quantity::things;
use rhist_core::question::Interval;
use rhist_core::question::Question;
use rhist_core::question::Reading;
use rhist_core::recording::Reader;
use rhist_core::sink::Sink;
use rhist_core::tracefs::Tracefs;
use rhist_export::push;
use rhist_export::push::Encoding;
use rhist_export::push::Endpoint;
use rhist_export::push::Environment;
use rhist_export::push::Exporter;
use rhist_export::push::Format;
use rhist_export::push::Limits;
use rhist_export::push::Pace;
use rhist_export::push::Pusher;
use rhist_export::push::Queue;
use rhist_export::push::Signal;
use rhist_export::push::Totals;

use super::words;
use crate::options::Common;
use crate::options::seconds;
use crate::run;
use crate::run::Measurement;
use crate::screen::lines;
use crate::screen::until;
use crate::signals::GRACE;
use crate::signals::Guard;
use crate::signals::Signals;
use crate::signals::ends;

/// Default interval between pushes, in seconds.
const INTERVAL: f64 = 10.0;

/// Bytes of batches prepared from a recording before the receiver has accepted them.
const AHEAD: u64 = 1 << 20;

/// Interval for checking whether it has.
const STEP: Duration = Duration::from_millis(20);

/// Text of the help after the options.
const ENVIRONMENT: &str = "Environment:
  Defaults of these options are taken from OpenTelemetry's variables:
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT, and likewise
  _HEADERS, _TIMEOUT, _PROTOCOL; OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME,
  OTEL_METRIC_EXPORT_INTERVAL, OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE.";

/// Push a measurement to a receiver of OTLP, such as an OpenTelemetry collector
#[derive(Debug, clap::Args)]
#[command(after_help = ENVIRONMENT)]
pub struct Args {
    /// The receiver, by default on this machine: http://localhost:4318/v1/metrics
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Push JSON instead of protobuf
    #[arg(long)]
    json: bool,
    /// Push stacks as profiles, a format in development, by default to
    /// http://localhost:4318/v1development/profiles
    #[arg(long, conflicts_with_all = ["json", "temporality"])]
    profiles: bool,
    /// Seconds between pushes; by default 10
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "replay")]
    interval: Option<f64>,
    /// Send this header with each request
    #[arg(long, value_name = "NAME=VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Temporality of the numbers; by default delta
    #[arg(long, value_enum)]
    temporality: Option<Temporality>,
    /// Prefix for names of metrics; by default the name of the recipe
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Folder for batches that the receiver has not accepted yet
    #[arg(long, value_name = "FOLDER")]
    queue: Option<PathBuf>,
    /// Size limit of these batches in MiB; beyond it, the oldest are dropped
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    queue_size: u64,
    /// Push this recording instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    pub replay: Option<PathBuf>,
    /// Measurement: RECIPE, count or between, with its options
    #[arg(value_name = "RECIPE", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Temporality of points.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Temporality {
    /// Increase since the previous push
    Delta,
    /// Total since the start, as Prometheus expects it
    Cumulative,
}

/// Measures, and pushes each interval; or pushes a recording. The exit status is 1 if the receiver
/// has not accepted everything.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
    let get = |name: &str| std::env::var(name).ok();
    let environment = Environment::of(signal(args), &get);
    let mut endpoint = environment.endpoint(args.to.as_deref())?;
    for (name, value) in &args.header {
        endpoint.set_header(name, value)?;
    }
    let exporter = Exporter::new(format(args, &environment)?);
    if let Some(file) = &args.replay {
        return replay(args, Reader::open(file)?, endpoint, exporter, common.quiet);
    }
    let mut measurement = words::measurement(&args.words, common)?;
    measurement.common.check("push")?;
    measurement.interval = Some(interval(args, &measurement, &environment)?);
    let (tracefs, plans) = run::prepare(&measurement)?;
    if args.profiles {
        has_stacks(plans.best.key_names().into_iter())?;
    }
    if measurement.common.dry_run {
        return run::dry_run(&tracefs, &plans.best);
    }
    let url = endpoint.url().to_owned();
    let patience = endpoint.timeout;
    let folder = args.queue.clone().or_else(push::state_folder);
    let queue = Queue::somewhere(folder, &url, limits(args), tell);
    let mut sink = Pushed {
        question: Question::default(),
        name: args.name.clone(),
        exporter,
        pusher: Pusher::start(endpoint, queue, Pace::default(), tell),
        names: Names::new(),
        tracefs: &tracefs,
        url,
        patience,
        duration: measurement.duration,
        is_quiet: measurement.common.quiet,
        intervals: 0,
    };
    let result = run::go(&measurement, &tracefs, &plans.best, &mut sink);
    // Also sends the batches so far if the measurement ended in an error.
    let totals = sink.pusher.finish(patience);
    result?;
    Ok(end(&totals, sink.intervals, &sink.url, sink.is_quiet))
}

/// Sink that pushes intervals.
struct Pushed<'a> {
    question: Question,
    /// Name of the metrics, if given instead of the question's.
    name: Option<String>,
    exporter: Exporter,
    pusher: Pusher,
    names: Names,
    tracefs: &'a Tracefs,
    url: String,
    /// Time limit for the receiver at the end.
    patience: Duration,
    duration: Option<f64>,
    is_quiet: bool,
    intervals: u64,
}

impl Sink for Pushed<'_> {
    type Error = anyhow::Error;

    fn patience(&self) -> Duration {
        self.patience
    }

    fn begin(&mut self, plan: &Plan) -> anyhow::Result<()> {
        self.question = named(&plan.question, self.name.as_deref());
        self.names = plan.names(self.tracefs);
        if !self.is_quiet {
            let until = until(self.duration);
            say!("{}: pushed to {}, {until}", plan.question.summary, self.url);
        }
        Ok(())
    }

    fn interval(&mut self, interval: &Interval) -> anyhow::Result<()> {
        self.intervals += 1;
        let pusher = &self.pusher;
        self.exporter
            .export(&self.question, &self.names, interval, |batch| pusher.push(batch));
        Ok(())
    }

    fn end(&mut self, _: &Reading, _: f64) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Pushes a recording, no faster than the receiver accepts it. The file itself serves as the queue,
/// so batches are only held in memory.
fn replay(
    args: &Args,
    mut reader: Reader,
    endpoint: Endpoint,
    mut exporter: Exporter,
    is_quiet: bool,
) -> anyhow::Result<ExitCode> {
    let signals = Signals::new().context("signals")?;
    let (url, patience) = (endpoint.url().to_owned(), endpoint.timeout);
    let _guard = Guard::start(ends(), GRACE + patience, || ()).context("signals")?;
    // An interval of it is in memory anyway.
    let limits = Limits {
        bytes: u64::MAX,
        held: u64::MAX,
    };
    let pusher = Pusher::start(endpoint, Queue::in_memory(limits), Pace::default(), tell);
    let question = named(reader.question(), args.name.as_deref());
    let mut intervals = 0;
    let mut is_enough = false;
    while !is_enough && let Some(interval) = reader.next().transpose()? {
        if args.profiles {
            has_stacks(interval.delta.keys.iter().map(|column| column.name.as_str()))?;
        }
        exporter.export(&question, reader.names(), &interval, |batch| pusher.push(batch));
        intervals += 1;
        is_enough = wait(&pusher, &signals, AHEAD)?;
    }
    if let (Some(note), false) = (reader.note(), is_quiet) {
        say!("rhist: {note}");
    }
    wait(&pusher, &signals, 0)?;
    let totals = pusher.finish(patience);
    Ok(end(&totals, intervals, &url, is_quiet))
}

/// Waits until at most `bytes` are waiting, or a signal arrives. Returns whether a signal has
/// arrived.
fn wait(pusher: &Pusher, signals: &Signals, bytes: u64) -> anyhow::Result<bool> {
    loop {
        let until = match pusher.totals().bytes > bytes {
            true => Instant::now() + STEP,
            false => Instant::now(),
        };
        let is_enough = signals.wait(Some(until)).context("signals")?;
        if is_enough || pusher.totals().bytes <= bytes {
            return Ok(is_enough);
        }
    }
}

/// Reports the result, and returns the exit status.
fn end(totals: &Totals, intervals: u64, url: &str, is_quiet: bool) -> ExitCode {
    if !is_quiet {
        let [intervals, accepted] =
            [(intervals, "intervals"), (totals.accepted, "batches")].map(|(n, what)| things(n, what));
        say!("{intervals} pushed to {url}: {accepted} accepted");
    }
    if totals.rejected_points > 0 {
        say!(
            "rhist: the receiver rejected {}",
            things(totals.rejected_points, "data points")
        );
    }
    match tell_left(totals) + totals.rejected_points {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Reports the batches that an ended pusher leaves in its queue, and the ones lost. Returns the
/// total of both.
pub fn tell_left(totals: &Totals) -> u64 {
    let kept = totals.waiting - totals.volatile;
    let lost = totals.lost() + totals.volatile;
    if kept > 0 {
        say!(
            "rhist: kept for the next push to this receiver: {}",
            things(kept, "batches")
        );
    }
    if lost > 0 {
        say!(
            "rhist: lost: {}; {} refused, {} dropped, {} unreadable, {} not sent",
            things(lost, "batches"),
            totals.refused,
            totals.dropped,
            totals.unreadable,
            totals.volatile
        );
    }
    kept + lost
}

/// Interval between pushes, in seconds. The option after the recipe takes precedence.
fn interval(args: &Args, measurement: &Measurement, environment: &Environment) -> anyhow::Result<f64> {
    if let Some(interval) = measurement.interval.or(args.interval) {
        return Ok(interval);
    }
    let interval = environment.interval()?;
    Ok(interval.map_or(INTERVAL, |interval| interval.as_secs_f64()))
}

/// Format of batches.
fn format(args: &Args, environment: &Environment) -> anyhow::Result<Format> {
    if args.profiles {
        return Ok(Format {
            signal: Signal::Profiles,
            encoding: Encoding::Protobuf,
            temporality: push::Temporality::Delta,
            resource: environment.resource()?,
        });
    }
    Ok(Format {
        signal: Signal::Metrics,
        encoding: match args.json {
            true => Encoding::Json,
            false => environment.encoding()?.unwrap_or(Encoding::Protobuf),
        },
        temporality: match args.temporality {
            Some(Temporality::Delta) => push::Temporality::Delta,
            Some(Temporality::Cumulative) => push::Temporality::Cumulative,
            None => environment.temporality()?.unwrap_or(push::Temporality::Delta),
        },
        resource: environment.resource()?,
    })
}

/// Refuses profiles of a measurement without stacks.
fn has_stacks<'a>(mut keys: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    if !keys.any(|key| key.contains("stack")) {
        bail!("profiles are of stacks: add --by ustack, --by stack, or both");
    }
    Ok(())
}

fn signal(args: &Args) -> Signal {
    match args.profiles {
        true => Signal::Profiles,
        false => Signal::Metrics,
    }
}

fn limits(args: &Args) -> Limits {
    Limits {
        bytes: args.queue_size << 20,
        ..Limits::default()
    }
}

/// Renames a question.
fn named(question: &Question, name: Option<&str>) -> Question {
    let mut question = question.clone();
    if let Some(name) = name {
        name.clone_into(&mut question.name);
    }
    question
}

/// Prints a message of a pusher.
pub fn tell(sentence: &str) {
    say!("rhist: {}", lines(sentence));
}

fn header(text: &str) -> Result<(String, String), String> {
    let pair = text
        .split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "expected NAME=VALUE".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn intervals() {
        let interval = |line: &str, variable: Option<&str>| {
            let command = Args::augment_args(clap::Command::new("push"));
            let matches = command.try_get_matches_from(["push"].into_iter().chain(line.split(' ')));
            let args = Args::from_arg_matches(&matches.unwrap()).unwrap();
            let measurement = words::measurement(&args.words, &Common::default()).unwrap();
            let get = |name: &str| {
                variable
                    .filter(|_| name == "OTEL_METRIC_EXPORT_INTERVAL")
                    .map(str::to_owned)
            };
            super::interval(&args, &measurement, &Environment::new(&get)).unwrap()
        };
        assert_eq!(interval("runqlat", None), 10.0);
        assert_eq!(interval("runqlat", Some("7000")), 7.0);
        assert_eq!(interval("-i 5 runqlat", Some("7000")), 5.0);
        assert_eq!(interval("--interval 5 --json runqlat --by comm", None), 5.0);
        assert_eq!(interval("-i 5 runqlat -i 3", None), 3.0);
    }
}
