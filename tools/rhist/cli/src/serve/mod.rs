// SPDX-License-Identifier: MIT OR Apache-2.0

//! Parts of `rhist serve` other than the histograms: plans for the texts of its configuration, a
//! server, metrics about itself, and messages to systemd.

mod connection;
mod hosts;
mod http;
mod notify;
mod planner;
mod self_metrics;
mod server;

pub use hosts::Hosts;
pub use http::Request;
pub use http::Response;
pub use notify::notify;
pub use notify::notify_progress;
pub use planner::WordsPlanner;
pub use self_metrics::SelfMetrics;
pub use server::Server;
