// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist serve`: exports the histograms of a configuration to Prometheus.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use rhist_core::journal::Journals;
use rhist_core::plan::Id;
use rhist_core::quantity;
use rhist_core::question::Question;
use rhist_core::run;
use rhist_core::threads;
use rhist_core::tracefs::Backend;
use rhist_export::address::Address;
use rhist_export::http::Hosts;
use rhist_export::http::Request;
use rhist_export::http::Response;
use rhist_export::http::Server;
use rhist_export::metrics::prometheus::Format;
use rhist_export::notify::notify;
use rhist_export::notify::notify_progress;
use rhist_export::push;
use rhist_export::push::Limits;
use rhist_export::push::Pace;
use rhist_export::push::Pusher;
use rhist_export::push::Queue;
use rhist_export::self_metrics::SelfMetrics;
use rhist_export::service::Changes;
use rhist_export::service::PushSettings;
use rhist_export::service::Pushing;
use rhist_export::service::Service;
use rhist_export::service::ServiceEvent;
use rustix::time::ClockId;
use rustix::time::clock_gettime;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;

use super::check;
use super::planner::ConfigPlanner;
use super::programs::ServicePrograms;
use super::push::tell;
use super::push::tell_left;
use crate::diagnostic;
use crate::diagnostic::USAGE;
use crate::run::Failed;
use crate::run::guard;
use crate::run::tracefs;
use crate::screen::percent;
use crate::signals::Guard;
use crate::signals::Signals;

/// Age up to which a scrape is answered from memory, so that frequent scrapes cost little.
const FRESH: Duration = Duration::from_secs(1);

/// Time after which the service reports that it is ready, even if some histograms have not started.
/// Less than systemd's limit (`TimeoutStartSec=`).
const START: Duration = Duration::from_secs(10);

/// Time limit for the receiver of pushes at the end. Batches not accepted by then stay in the
/// queue.
const PATIENCE: Duration = Duration::from_secs(3);

/// Port if only a host is given.
const PORT: u16 = 9953;

/// Response at `/`.
const ABOUT: &str = "rhist: histograms of this machine's trace events, for Prometheus\n\n/metrics\n/healthz\n";

/// Arguments of `rhist serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Address to listen on; everyone who can connect can read all metrics
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9953")]
    pub listen: Address,
    /// Another host name to accept from clients of this machine, such as a proxy's
    #[arg(long, value_name = "NAME")]
    pub host: Vec<Address>,
    /// Folder of the configuration: files *.toml
    #[arg(long, value_name = "FOLDER", default_value = check::FOLDER)]
    pub config: PathBuf,
}

/// Serves until SIGTERM or SIGINT.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let end = Signals::of(&[SIGTERM, SIGINT]).context("signals")?;
    let mut again = Signals::of(&[SIGHUP]).context("signals")?;
    let Some(config) = check::read(&args.config) else {
        return Ok(ExitCode::from(USAGE));
    };
    let settings = check::push_settings(&config)?;
    let tracefs = tracefs(None)?;
    let guard = guard(&tracefs, &[SIGTERM, SIGINT], false, PATIENCE)?;
    let journals = Journals::find();
    for entries in run::reap(&tracefs, &journals, false).0 {
        say!(
            "rhist: removed the objects of a run that had died: rhist {}",
            entries.command
        );
    }
    // Bound before the triggers exist, so that a port in use is reported at once.
    let listen = (args.listen.host(), args.listen.port().unwrap_or(PORT));
    let mut server = Server::bind(listen).with_context(|| format!("cannot listen on {}:{}", listen.0, listen.1))?;
    let address = server.address()?;
    let programs = ServicePrograms::default();
    let mut scraper = Scraper {
        planner: ConfigPlanner {
            programs: Some(programs.clone()),
        },
        programs,
        service: Service::new(Id::of_this_process().context("/proc")?, journals),
        own: SelfMetrics::new(match tracefs.backend() {
            Backend::Rhist => "rhist",
            Backend::C => "C",
        }),
        pushing: Pushing::new(|endpoint| {
            let url = endpoint.url().to_owned();
            let queue = Queue::somewhere(push::state_folder(), &url, Limits::default(), tell);
            Pusher::start(endpoint, queue, Pace::default(), tell)
        }),
        hosts: Hosts::new(
            address.ip(),
            &Question::of_this_machine().host,
            args.host.iter().chain([&args.listen]),
        ),
        threads: Vec::new(),
        bodies: BTreeMap::new(),
    };
    if config.histograms.is_empty() {
        say!("rhist: {} has no histograms", args.config.display());
    }
    scraper.service.apply(config, Instant::now());
    scraper.push_to(settings);
    // During boot, other services wait until all histograms count, but only up to this limit.
    let begin = Instant::now();
    while scraper.service.has_due(begin) && begin.elapsed() < START && !end.wait(Some(begin)).context("signals")? {
        scraper.tick(begin);
    }
    say!("rhist: listening on http://{address}/metrics");
    notify("READY=1");
    loop {
        let due = [scraper.service.due(), scraper.pushing.due()]
            .into_iter()
            .flatten()
            .min();
        let wake = [end.as_fd(), again.as_fd()];
        let answer = &mut |request: &Request, server: &Server| scraper.answer(request, server);
        let [is_over, is_again] = server.turn(wake, due, answer).context(Failed)?;
        if is_over {
            notify("STOPPING=1");
            scraper.finish(&guard);
            return Ok(ExitCode::SUCCESS);
        }
        if is_again {
            again.forget().context("signals")?;
            let now = clock_gettime(ClockId::Monotonic);
            let us = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
            notify(&format!("RELOADING=1\nMONOTONIC_USEC={us}"));
            scraper.reload(args);
            notify("READY=1");
        }
        if scraper.pushing.due().is_some_and(|due| due <= Instant::now()) {
            scraper.push();
        }
        if scraper.service.read_due().is_some_and(|due| due <= Instant::now()) {
            scraper.read(Duration::ZERO);
        }
        scraper.tick(Instant::now());
    }
}

/// State of the service.
struct Scraper {
    planner: ConfigPlanner,
    programs: ServicePrograms,
    service: Service,
    own: SelfMetrics,
    pushing: Pushing,
    hosts: Hosts,
    /// Threads of this process when the histograms were started.
    threads: Vec<i32>,
    /// Last response for each format, and its time.
    bodies: BTreeMap<&'static str, (Instant, Rc<Vec<u8>>)>,
}

impl Scraper {
    /// Starts one histogram that is due.
    fn tick(&mut self, now: Instant) {
        if !self.service.is_released(now) {
            self.programs.go_on();
        }
        log(self.service.tick(&self.planner, now));
        if self.programs.has_begun() {
            self.leave_out_threads();
        }
    }

    fn read(&mut self, age: Duration) {
        log(self.service.read(age));
    }

    /// Reads all histograms, and pushes the increase.
    fn push(&mut self) {
        self.read(Duration::ZERO);
        self.pushing.push(&mut self.service);
    }

    fn push_to(&mut self, settings: Option<PushSettings>) {
        if let Some(settings) = &settings {
            let (url, seconds) = (settings.endpoint.url(), settings.interval.as_secs_f64());
            say!("rhist: pushes to {url} every {seconds} s");
        }
        self.pushing.apply(settings, &mut self.service, PATIENCE);
        self.leave_out_threads();
    }

    /// Starts the histograms anew if this process has other threads: a new one, for a receiver or
    /// for stacks of programs, must be left out of the measurements. Also, the number of an ended
    /// one may later be reused by a task that must count.
    fn leave_out_threads(&mut self) {
        let mut threads = threads::own();
        threads.sort_unstable();
        if threads != self.threads {
            log(self.service.remake());
        }
        self.threads = threads;
    }

    /// Ends the service. Pushes all counts so far.
    fn finish(mut self, guard: &Guard) {
        guard.goes_on();
        if self.pushing.due().is_some() {
            log(self.service.read_last());
            self.pushing.push(&mut self.service);
        }
        guard.goes_on();
        self.service.stop(|| {
            guard.goes_on();
            notify_progress();
        });
        tell_left(&self.pushing.finish(PATIENCE));
    }

    /// Reads the configuration again. Also lets go of the module for a minute: this may be the
    /// reason of the signal.
    fn reload(&mut self, args: &Args) {
        log(self.service.release());
        self.programs.release();
        let config = check::read(&args.config).and_then(|config| match check::push_settings(&config) {
            Ok(settings) => Some((config, settings)),
            Err(error) => {
                diagnostic::complain(&error.into());
                None
            }
        });
        self.own.reloaded(config.is_some());
        let Some((config, settings)) = config else {
            say!("rhist: the new configuration is not used; the previous one stays in use");
            return;
        };
        // Removed histograms lose their counts since the last scrape, unless these are pushed.
        if self.pushing.due().is_some() {
            self.push();
        }
        let Changes {
            added,
            removed,
            changed,
            same,
        } = self.service.apply(config, Instant::now());
        for (what, names) in [("added", added), ("removed", removed), ("changed", changed)] {
            if !names.is_empty() {
                say!("rhist: {what}: {}", names.join(", "));
            }
        }
        say!("rhist: {} unchanged", quantity::things(same as u64, "histograms"));
        self.push_to(settings);
        self.bodies.clear();
    }

    fn answer(&mut self, request: &Request, server: &Server) -> Response {
        if let Some(host) = request.host.as_deref().filter(|host| !self.hosts.accepts(host)) {
            return Response::text(403, &self.hosts.refusal(host));
        }
        match request.path.as_str() {
            "/metrics" => self.metrics(Format::accepted(&request.accept), server),
            "/healthz" => Response::text(200, "ok\n"),
            "/" => Response::text(200, ABOUT),
            _ => Response::text(404, "not found: this server has /metrics and /healthz\n"),
        }
    }

    fn metrics(&mut self, format: Format, server: &Server) -> Response {
        let begin = Instant::now();
        let kind = format.content_type();
        let known = self
            .bodies
            .get(kind)
            .filter(|(made, _)| begin.saturating_duration_since(*made) < FRESH);
        let body = match known {
            Some((_, body)) => body.clone(),
            None => {
                self.read(FRESH);
                self.own.take(server);
                let body = Rc::new(self.body(format));
                self.own.scraped(begin.elapsed());
                self.bodies.insert(kind, (begin, body.clone()));
                body
            }
        };
        Response {
            status: 200,
            content_type: kind,
            body,
        }
    }

    fn body(&self, format: Format) -> Vec<u8> {
        let mut body = Vec::new();
        let names = self.service.label_names();
        self.service.families(&names, |family| format.write(&family, &mut body));
        for family in self
            .own
            .families(&self.service)
            .into_iter()
            .chain(self.pushing.families())
        {
            format.write(&family, &mut body);
        }
        format.end(&mut body);
        body
    }
}

/// Prints events of histograms.
fn log(happened: impl IntoIterator<Item = (String, ServiceEvent)>) {
    for (name, happened) in happened {
        match happened {
            ServiceEvent::Started(notes) => {
                say!("rhist: {name}: counts");
                for note in notes {
                    say!("rhist: {name}: note: {}", crate::screen::lines(&note));
                }
            }
            ServiceEvent::Failed(why) => say!("rhist: {name}: cannot count now: {}", crate::screen::lines(&why)),
            ServiceEvent::Unread(why) => say!(
                "rhist: {name}: counts, but cannot be read now: {}",
                crate::screen::lines(&why)
            ),
            ServiceEvent::Paused(share, rest) => {
                let (share, rest) = (percent(share), rest.as_secs());
                say!("rhist: {name}: cost {share} of a CPU, more than its budget: paused for {rest} s");
            }
            ServiceEvent::Disturbed(what) => say!("rhist: {name}: {}", crate::screen::lines(&what)),
        }
    }
}

#[cfg(test)]
mod machine;
