// SPDX-License-Identifier: MIT OR Apache-2.0

//! HTTP server for scrapes.

mod connection;
mod hosts;
mod message;
mod server;

pub use hosts::Hosts;
pub use message::Request;
pub use message::Response;
pub use server::Server;
