// SPDX-License-Identifier: MIT OR Apache-2.0

//! Table `[push]`: receiver, format, and interval of pushes.

use std::time::Duration;

use rhist_core::problem::Problem;
use serde::Deserialize;
use toml::Spanned;

use crate::push;
use crate::push::Encoding;
use crate::push::Endpoint;
use crate::push::Environment;
use crate::push::Format;
use crate::push::Signal;
use crate::push::Temporality;

/// Default interval between pushes.
const INTERVAL: Duration = Duration::from_secs(60);

/// Settings of the table. The environment supplies missing ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Destination {
    to: Option<String>,
    interval: Option<Duration>,
    temporality: Option<Temporality>,
    json: Option<bool>,
}

/// Content of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    to: Option<Spanned<String>>,
    interval: Option<Spanned<u32>>,
    temporality: Option<Spanned<String>>,
    json: Option<bool>,
}

/// Complete settings for pushing.
#[derive(Clone, Debug)]
pub struct PushSettings {
    /// Receiver of the batches.
    pub endpoint: Endpoint,
    /// Format of batches.
    pub format: Format,
    /// Interval between pushes.
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

    /// Completes the table with the environment.
    ///
    /// # Errors
    ///
    /// A variable of the environment is invalid.
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
                signal: Signal::Metrics,
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
            let problem = Problem::new(text.span(), "temporality has to be delta or cumulative");
            Err(problem.help("delta: since the last push; cumulative: since the start"))
        }
    }
}

/// Checks the range of a number.
pub(super) fn number(
    word: &str,
    value: Option<Spanned<u32>>,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, Problem> {
    match value {
        Some(value) if !range.contains(value.get_ref()) => {
            let title = format!("{word} has to be from {} to {}", range.start(), range.end());
            Err(Problem::new(value.span(), title))
        }
        value => Ok(value.map(Spanned::into_inner)),
    }
}
