// SPDX-License-Identifier: MIT OR Apache-2.0

//! Exports histograms: to Prometheus, which scrapes them, and to receivers of OTLP.
//!
//! Each module uses only those above it in this list:
//!
//! * [`address`]: the address of a service, and [`notify`]: messages to systemd;
//! * [`http`]: a server for scrapes;
//! * [`metrics`]: metric families, in the formats of Prometheus;
//! * `otlp`: intervals as requests of OTLP;
//! * [`push`]: sends these requests, from a queue on disk;
//! * [`service`]: the histograms of a configuration, with the totals of their counts;
//! * [`self_metrics`]: metrics of the service about itself.

pub mod address;
pub mod http;
#[cfg(test)]
#[path = "../../core/src/measure.rs"]
mod measure;
pub mod metrics;
pub mod notify;
mod otlp;
pub mod push;
pub mod self_metrics;
pub mod service;
