// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends one request, and interprets its answer, following the specification of OTLP/HTTP.

use std::io::ErrorKind;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use prost::Message;
use rhist_core::table::Text;
use serde::Deserialize;
use ureq::Agent;
use ureq::Body;
use ureq::config::Config;
use ureq::http::Response;
use ureq::http::Uri;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::resolver::ResolvedSocketAddrs;
use ureq::unversioned::resolver::Resolver;
use ureq::unversioned::transport::DefaultConnector;
use ureq::unversioned::transport::NextTimeout;

use super::Batch;
use super::Encoding;
use super::Endpoint;
use super::retry_after;
use crate::otlp::protobuf::ExportMetricsServiceResponse;
use crate::otlp::protobuf::PartialSuccess;
use crate::otlp::protobuf::Status;

/// Limit for reading an answer, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// Limit for showing a receiver's message, in characters.
const MAX_MESSAGE: usize = 200;

/// Sends batches to a receiver.
pub struct Client {
    endpoint: Endpoint,
    agent: Agent,
}

/// Resolves the receiver's name on the sending thread. With a time limit, ureq's own resolver
/// starts a thread for each request, and rhist would measure that thread: it leaves out only
/// threads that exist before the triggers count.
#[derive(Debug, Default)]
struct OnThisThread(DefaultResolver);

/// Result of sending a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Accepted by the receiver. The batch must not be sent again, even if parts of it were
    /// rejected.
    Accepted {
        /// Number of rejected data points.
        rejected: u64,
        /// Reason for the rejection, or another warning of the receiver.
        message: Option<String>,
    },
    /// Failed for now; the batch is to be sent again.
    Later {
        /// Pause that the receiver has asked for.
        after: Option<Duration>,
        /// Reason, for messages.
        why: String,
        /// Whether the batch may be the cause, for example if the receiver closes the connection
        /// while it reads this batch. Other batches may then succeed.
        of_batch: bool,
    },
    /// Rejected; the batch must not be sent again.
    Refused {
        /// Reason, for messages.
        why: String,
    },
}

impl Client {
    /// Creates a client for one receiver.
    pub fn new(endpoint: Endpoint) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Measurements go to the configured address only: no redirects, no proxies.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(endpoint.timeout))
            .max_idle_connections(1)
            .user_agent(concat!("rhist/", env!("CARGO_PKG_VERSION")))
            .build();
        Client {
            endpoint,
            agent: Agent::with_parts(config, DefaultConnector::new(), OnThisThread::default()),
        }
    }

    /// The receiver's address and headers.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a batch, and waits for the answer. Takes no longer than the endpoint's timeout, except
    /// for the look-up of the name: that ends when the machine's resolver gives up, and then the
    /// request has failed.
    pub fn send(&self, batch: &Batch) -> Answer {
        let mut request = self
            .agent
            .post(self.endpoint.url())
            .header("content-type", batch.encoding.media_type());
        for (name, value) in self.endpoint.headers() {
            request = request.header(name, value);
        }
        match request.send(batch.body.as_slice()) {
            Ok(response) => answer(batch.encoding, response),
            // It is unknown how much the receiver has got. It may get the batch twice, which the
            // protocol allows.
            Err(error) => Answer::Later {
                after: None,
                of_batch: has_connected(&error),
                why: match error {
                    ureq::Error::Io(error) => message(&error.to_string()),
                    error => message(&error.to_string()),
                },
            },
        }
    }
}

impl Resolver for OnThisThread {
    fn resolve(&self, uri: &Uri, config: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.0.resolve(uri, config, NextTimeout::default())
    }
}

/// Returns whether an error may come from an established connection.
fn has_connected(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
        ),
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => false,
        // Timeout, or an answer other than HTTP.
        _ => true,
    }
}

fn answer(encoding: Encoding, mut response: Response<Body>) -> Answer {
    let status = response.status();
    let after = response
        .headers()
        .get("retry-after")
        .and_then(|value| value.to_str().ok());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let after = after.and_then(|value| retry_after::parse(value, now));
    let encoding = match response.body().mime_type() {
        Some(kind) if kind == Encoding::Protobuf.media_type() => Encoding::Protobuf,
        Some(kind) if kind == Encoding::Json.media_type() => Encoding::Json,
        _ => encoding,
    };
    // The status alone decides, even if the body does not arrive.
    let body = response
        .body_mut()
        .with_config()
        .limit(MAX_ANSWER)
        .read_to_vec()
        .unwrap_or_default();
    if status.is_success() {
        let partial = partial_success(encoding, &body).unwrap_or_default();
        return Answer::Accepted {
            rejected: partial.rejected_data_points.try_into().unwrap_or(0),
            message: Some(message(&partial.error_message)).filter(|message| !message.is_empty()),
        };
    }
    let detail = detail(encoding, &body)
        .map(|detail| message(&detail))
        .filter(|detail| !detail.is_empty());
    let why = match detail {
        Some(detail) => format!("{status}: {detail}"),
        None => status.to_string(),
    };
    match status.as_u16() {
        status @ (429 | 502 | 503 | 504) => Answer::Later {
            // Proxies answer so if the receiver closed the connection, or did not answer in time.
            of_batch: after.is_none() && matches!(status, 502 | 504),
            after,
            why,
        },
        _ => Answer::Refused { why },
    }
}

fn partial_success(encoding: Encoding, body: &[u8]) -> Option<PartialSuccess> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct JsonResponse {
        partial_success: Option<Partial>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Partial {
        rejected_data_points: rhist_core::otlp::model::Digits,
        error_message: String,
    }

    match encoding {
        Encoding::Protobuf => ExportMetricsServiceResponse::decode(body).ok()?.partial_success,
        Encoding::Json => {
            let partial = serde_json::from_slice::<JsonResponse>(body).ok()?.partial_success?;
            Some(PartialSuccess {
                rejected_data_points: partial.rejected_data_points.0.try_into().unwrap_or(0),
                error_message: partial.error_message,
            })
        }
    }
}

/// Message of a receiver about an error.
fn detail(encoding: Encoding, body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct JsonStatus {
        message: String,
    }

    match encoding {
        Encoding::Protobuf => Some(Status::decode(body).ok()?.message),
        Encoding::Json => Some(serde_json::from_slice::<JsonStatus>(body).ok()?.message),
    }
}

/// Makes a receiver's text short and safe for a terminal.
fn message(text: &str) -> String {
    let short: String = text.chars().take(MAX_MESSAGE).collect();
    Text::from(short.trim()).to_string()
}
