// SPDX-License-Identifier: MIT OR Apache-2.0

//! The table `[push]`: where a service pushes what it reads, how, and how often.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::config::number;
use crate::problem::Problem;
use crate::push;
use crate::push::Encoding;
use crate::push::Endpoint;
use crate::push::Environment;
use crate::push::Format;
use crate::push::Temporality;

/// From one push to the next, if nothing is said.
const INTERVAL: Duration = Duration::from_secs(60);

/// What the table says. What it does not say is up to the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Destination {
    to: Option<String>,
    interval: Option<Duration>,
    temporality: Option<Temporality>,
    json: Option<bool>,
}

/// What is in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    to: Option<Spanned<String>>,
    interval: Option<Spanned<u32>>,
    temporality: Option<Spanned<String>>,
    json: Option<bool>,
}

/// All that is needed to push.
#[derive(Clone, Debug)]
pub struct PushSettings {
    /// The receiver.
    pub endpoint: Endpoint,
    /// What batches are like.
    pub format: Format,
    /// From one push to the next.
    pub interval: Duration,
}

impl Destination {
    pub(super) fn new(table: Table) -> Result<Self, Problem> {
        if let Some(to) = &table.to {
            Endpoint::new(to.get_ref()).map_err(|error| Problem::new(to.span(), error.to_string()))?;
        }
        let interval = number("interval", table.interval, 1..=86_400)?;
        Ok(Self {
            to: table.to.map(Spanned::into_inner),
            interval: interval.map(|seconds| Duration::from_secs(seconds.into())),
            temporality: table.temporality.map(temporality).transpose()?,
            json: table.json,
        })
    }

    /// With what the environment says where the table says nothing.
    ///
    /// # Errors
    ///
    /// What is wrong in the environment.
    pub fn settings(&self, environment: &Environment<'_>) -> Result<PushSettings, push::Error> {
        let encoding = match self.json {
            Some(true) => Some(Encoding::Json),
            Some(false) => Some(Encoding::Protobuf),
            None => environment.encoding()?,
        };
        let temporality = match self.temporality {
            None => environment.temporality()?,
            known => known,
        };
        let interval = match self.interval {
            None => environment.interval()?,
            known => known,
        };
        Ok(PushSettings {
            endpoint: environment.endpoint(self.to.as_deref())?,
            format: Format {
                encoding: encoding.unwrap_or(Encoding::Protobuf),
                temporality: temporality.unwrap_or(Temporality::Delta),
                resource: environment.resource()?,
            },
            interval: interval.unwrap_or(INTERVAL),
        })
    }
}

fn temporality(text: Spanned<String>) -> Result<Temporality, Problem> {
    match text.get_ref().as_str() {
        "delta" => Ok(Temporality::Delta),
        "cumulative" => Ok(Temporality::Cumulative),
        _ => {
            let problem = Problem::new(text.span(), "temporality is delta or cumulative");
            Err(problem.help("what was added since the push before, or all since the start"))
        }
    }
}
