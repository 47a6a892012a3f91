// SPDX-License-Identifier: MIT OR Apache-2.0

//! Settings in the environment variables of OpenTelemetry's specification. A variable for a signal,
//! such as metrics, takes precedence over the one for all signals.

use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::Encoding;
use super::Endpoint;
use super::Error;
use super::Signal;
use super::Temporality;

/// Ends of variables for one signal or for all.
const ENDPOINT: &str = "ENDPOINT";
const HEADERS: &str = "HEADERS";
const TIMEOUT: &str = "TIMEOUT";
const PROTOCOL: &str = "PROTOCOL";
const TEMPORALITY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SERVICE: &str = "OTEL_SERVICE_NAME";

/// Reader of these variables. An empty variable counts as unset.
pub struct Environment<'a> {
    signal: Signal,
    get: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Environment<'a> {
    /// Of metrics: see [`Self::of()`].
    pub fn new(get: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self::of(Signal::Metrics, get)
    }

    /// `get` returns the value of a variable.
    pub fn of(signal: Signal, get: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Environment { signal, get }
    }

    fn value(&self, name: &str) -> Option<String> {
        (self.get)(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    /// Name of the variable of the signal.
    fn own(&self, end: &str) -> String {
        let signal = match self.signal {
            Signal::Metrics => "METRICS",
            Signal::Profiles => "PROFILES",
        };
        format!("OTEL_EXPORTER_OTLP_{signal}_{end}")
    }

    /// Name and value of the variable of the signal, or else of all signals.
    fn first(&self, end: &str) -> Option<(String, String)> {
        let names = [self.own(end), format!("OTEL_EXPORTER_OTLP_{end}")];
        names.into_iter().find_map(|name| {
            let value = self.value(&name)?;
            Some((name, value))
        })
    }

    /// Receiver with headers and timeout. `url` takes precedence over the variables.
    pub fn endpoint(&self, url: Option<&str>) -> Result<Endpoint, Error> {
        let signal = self.signal;
        let mut endpoint = match (url, self.first(ENDPOINT)) {
            (Some(url), _) => Endpoint::of(signal, url)?,
            (None, Some((name, url))) => match name == self.own(ENDPOINT) {
                true => Endpoint::of(signal, &url),
                false => Endpoint::base(signal, &url),
            }
            .map_err(|error| about(&name, error))?,
            (None, None) => Endpoint::of(signal, Endpoint::DEFAULT)?,
        };
        if let Some((name, headers)) = self.first(HEADERS) {
            for (header, value) in pairs(&headers).map_err(|error| about(&name, error))? {
                endpoint
                    .set_header(&header, &value)
                    .map_err(|error| about(&name, error))?;
            }
        }
        if let Some((name, milliseconds)) = self.first(TIMEOUT) {
            endpoint.timeout = duration(&name, &milliseconds)?;
        }
        Ok(endpoint)
    }

    /// Encoding of batches, if set.
    pub fn encoding(&self) -> Result<Option<Encoding>, Error> {
        match self.first(PROTOCOL) {
            None => Ok(None),
            Some((name, protocol)) => match protocol.as_str() {
                "http/protobuf" => Ok(Some(Encoding::Protobuf)),
                "http/json" => Ok(Some(Encoding::Json)),
                _ => Err(Error(format!(
                    "{name}: rhist has http/protobuf and http/json, not {protocol}"
                ))),
            },
        }
    }

    /// Temporality of points, if set. `lowmemory` is for programs that keep totals beside deltas.
    pub fn temporality(&self) -> Result<Option<Temporality>, Error> {
        let Some(preference) = self.value(TEMPORALITY) else {
            return Ok(None);
        };
        match preference.to_ascii_lowercase().as_str() {
            "delta" | "lowmemory" => Ok(Some(Temporality::Delta)),
            "cumulative" => Ok(Some(Temporality::Cumulative)),
            _ => Err(Error(format!(
                "{TEMPORALITY}: expected delta, cumulative or lowmemory, not {preference}"
            ))),
        }
    }

    /// Interval between pushes, if set.
    pub fn interval(&self) -> Result<Option<Duration>, Error> {
        self.value(INTERVAL).map(|value| duration(INTERVAL, &value)).transpose()
    }

    /// Attributes of the resource, which replace others of the same name.
    pub fn resource(&self) -> Result<Vec<(String, String)>, Error> {
        let mut attributes = match self.value(RESOURCE) {
            Some(text) => pairs(&text).map_err(|error| about(RESOURCE, error))?,
            None => Vec::new(),
        };
        if let Some(name) = self.value(SERVICE) {
            attributes.push(("service.name".to_owned(), name));
        }
        Ok(attributes)
    }
}

fn about(name: &str, Error(error): Error) -> Error {
    Error(format!("{name}: {error}"))
}

fn duration(name: &str, milliseconds: &str) -> Result<Duration, Error> {
    match milliseconds.parse() {
        Ok(number @ 1..) => Ok(Duration::from_millis(number)),
        _ => Err(Error(format!("{name}: {milliseconds} is not a number of milliseconds"))),
    }
}

/// Parses `NAME=VALUE,NAME=VALUE` with percent-encoding.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Error> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8().map(String::from).ok();
    pairs
        .map(|pair| {
            let pair = pair
                .split_once('=')
                .and_then(|(name, value)| Some((decoded(name)?, decoded(value)?)));
            pair.filter(|(name, _)| !name.is_empty())
                // Keep the value out of the message: it may be a secret.
                .ok_or_else(|| Error("expected NAME=VALUE,NAME=VALUE".to_owned()))
        })
        .collect()
}
