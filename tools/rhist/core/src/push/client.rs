// SPDX-License-Identifier: MIT OR Apache-2.0

//! One request, and what its answer means, by the specification of OTLP/HTTP.

use std::io::ErrorKind;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use prost::Message;
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
use crate::table::Text;

/// What is read of an answer.
const MAX_ANSWER: u64 = 64 << 10;

/// Characters of a receiver's message that are shown.
const MAX_MESSAGE: usize = 200;

/// Sends batches to a receiver.
pub struct Client {
    endpoint: Endpoint,
    agent: Agent,
}

/// Looks up the receiver's name on the thread that sends. ureq's own resolver starts a thread for
/// each request if there is a time limit: what such a thread does would be measured, since only
/// threads that are there before the triggers count are left out.
#[derive(Debug, Default)]
struct OnThisThread(DefaultResolver);

/// What became of a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The receiver has it. It must not be sent again, also if some of it was rejected.
    Accepted {
        /// Data points that were rejected.
        rejected: u64,
        /// Why, or what else the receiver wants to be known.
        message: Option<String>,
    },
    /// It is to be sent again.
    Later {
        /// How long the receiver wants to be left alone.
        after: Option<Duration>,
        /// Why.
        why: String,
        /// Whether it may be due to the batch, as if the receiver ends the connection while it reads this one: others may be
        /// accepted.
        of_batch: bool,
    },
    /// It must not be sent again.
    Refused {
        /// Why.
        why: String,
    },
}

impl Client {
    /// For one receiver.
    pub fn new(endpoint: Endpoint) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // What was measured goes where it was told to, and nowhere else.
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

    /// Where it sends.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a batch, and waits for the answer, no longer than the endpoint's timeout, unless the
    /// look-up of the name alone takes longer: that ends when the machine's resolver gives up, and
    /// then the request has failed.
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
            // Nobody knows what the receiver has got. If it had it all, it gets it twice, as the protocol has it.
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

/// Whether an error may be one of a connection that there was.
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
        // The time was over, or what was answered is none of HTTP.
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
    // The status says what happened, whether the rest arrives or not.
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
            // Those between say so of a receiver that has hung up, or did not answer in time.
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
        rejected_data_points: crate::otlp::model::Digits,
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

/// What a receiver says of an error.
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

/// A text from elsewhere as it can be shown.
fn message(text: &str) -> String {
    let short: String = text.chars().take(MAX_MESSAGE).collect();
    Text::from(short.trim()).to_string()
}
