// SPDX-License-Identifier: MIT OR Apache-2.0

//! Metrics of the service about itself: version, resources, and results of scrapes and reloads.

use std::fs;
use std::time::Duration;

use rhist_core::table::Time;
use rustix::time::ClockId;
use rustix::time::clock_gettime;

use crate::http::Server;
use crate::metrics::Family;
use crate::metrics::Kind;
use crate::metrics::Value;
use crate::service::Service;

/// State of the process for these metrics.
#[derive(Debug)]
pub struct SelfMetrics {
    /// Start of the process.
    start: Time,
    backend: String,
    module: String,
    /// Whether the last configuration was accepted, and the time of the last accepted one, in
    /// nanoseconds of `CLOCK_REALTIME`.
    reload: (bool, u64),
    /// Scrapes that were computed rather than answered from memory.
    scrapes: u64,
    /// Total time of these scrapes including reads, and the time of the last one.
    scrape_time: (Duration, Duration),
    /// Numbers of responses, by status.
    responses: Vec<(String, u64)>,
    dropped: u64,
}

impl SelfMetrics {
    /// Creates the state. `backend` names the implementation of the histograms.
    pub fn new(backend: &str) -> Self {
        let start = Time::clocks();
        let module = fs::read_to_string("/sys/module/rhist/version").unwrap_or_default();
        Self {
            reload: (true, start.realtime_ns),
            start,
            backend: backend.to_owned(),
            module: module.trim().to_owned(),
            scrapes: 0,
            scrape_time: Default::default(),
            responses: Vec::new(),
            dropped: 0,
        }
    }

    /// Records the result of a reload.
    pub fn reloaded(&mut self, is_taken: bool) {
        self.reload.0 = is_taken;
        if is_taken {
            self.reload.1 = Time::clocks().realtime_ns;
        }
    }

    /// Records the duration of a scrape.
    pub fn scraped(&mut self, took: Duration) {
        self.scrapes += 1;
        self.scrape_time = (self.scrape_time.0 + took, took);
    }

    /// Copies the counts of the server.
    pub fn take(&mut self, server: &Server) {
        let responses = server.counts.iter().map(|(status, count)| (status.to_string(), *count));
        self.responses = responses.collect();
        self.dropped = server.dropped;
    }

    /// All metrics.
    pub fn families<'a>(&'a self, service: &Service) -> Vec<Family<'a>> {
        let start_ns = self.start.realtime_before(&Time::clocks());
        let start = Some(start_ns);
        let one = |name: &str, unit, kind, help: &str, labels, value| {
            let mut family = Family::new(name, unit, kind, help);
            family.push(labels, value, if kind == Kind::Counter { start } else { None });
            family
        };
        let seconds = |time: Duration| Value::Real(time.as_secs_f64());
        let version = env!("CARGO_PKG_VERSION");
        let labels = vec![
            ("version", version),
            ("backend", self.backend.as_str()),
            ("module", self.module.as_str()),
        ];
        let about = "Version of this program, whose histograms it uses, and the version of the module";
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Value::Real(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9);
        let since = |ns: u64| Value::Real(ns as f64 / 1e9);
        let mut responses = Family::new("rhist_serve_responses", "", Kind::Counter, "Responses by their status");
        for (status, count) in &self.responses {
            responses.push(vec![("code", status)], Value::Whole((*count).into()), start);
        }
        let (gauge, counter) = (Kind::Gauge, Kind::Counter);
        let mut families = vec![
            one("rhist_serve_build", "", Kind::Info, about, labels, Value::Whole(1)),
            one(
                "rhist_serve_config_last_reload_successful",
                "",
                gauge,
                "Whether the last reload of the configuration succeeded",
                vec![],
                Value::Whole(self.reload.0.into()),
            ),
            one(
                "rhist_serve_config_last_reload_success_timestamp_seconds",
                "seconds",
                gauge,
                "Time of the last successful reload of the configuration",
                vec![],
                since(self.reload.1),
            ),
            one(
                "rhist_serve_scrape_seconds",
                "seconds",
                counter,
                "Time spent on scrapes, including reading the histograms",
                vec![],
                seconds(self.scrape_time.0),
            ),
            one(
                "rhist_serve_scrapes",
                "",
                counter,
                "Scrapes that read the histograms; requests within a second share one",
                vec![],
                Value::Whole(self.scrapes.into()),
            ),
            one(
                "rhist_serve_last_scrape_seconds",
                "seconds",
                gauge,
                "Duration of the scrape before this one",
                vec![],
                seconds(self.scrape_time.1),
            ),
            one(
                "rhist_serve_connections_dropped",
                "",
                counter,
                "Connections closed by the service because they were slow or too many",
                vec![],
                Value::Whole(self.dropped.into()),
            ),
            one(
                "process_cpu_seconds",
                "seconds",
                counter,
                "CPU time of this process",
                vec![],
                cpu,
            ),
            one(
                "process_start_time_seconds",
                "seconds",
                gauge,
                "Start time of this process",
                vec![],
                since(start_ns),
            ),
        ];
        if !responses.points.is_empty() {
            families.push(responses);
        }
        if let Some(took) = service.read_time() {
            families.push(one(
                "rhist_serve_last_read_seconds",
                "seconds",
                gauge,
                "Duration of the last reading of all histograms",
                vec![],
                seconds(took),
            ));
        }
        if let Some(bytes) = resident_bytes() {
            families.push(one(
                "process_resident_memory_bytes",
                "bytes",
                gauge,
                "Memory of this process",
                vec![],
                Value::Whole(bytes.into()),
            ));
        }
        families
    }
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
