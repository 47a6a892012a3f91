// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests how URLs and variables determine the receiver.

use std::time::Duration;

use crate::push::Encoding;
use crate::push::Endpoint;
use crate::push::Environment;
use crate::push::Temporality;

/// Calls `look` with the environment that has these variables.
fn with<T>(variables: &[(&str, &str)], look: impl FnOnce(Environment) -> T) -> T {
    let get = |name: &str| {
        let variable = variables.iter().find(|(known, _)| *known == name);
        variable.map(|(_, value)| (*value).to_owned())
    };
    look(Environment::new(&get))
}

fn endpoint(variables: &[(&str, &str)]) -> Result<Endpoint, String> {
    with(variables, |environment| environment.endpoint(None)).map_err(|error| error.to_string())
}

#[test]
fn urls() {
    for (url, expected) in [
        ("http://localhost:4318", "http://localhost:4318/v1/metrics"),
        ("http://localhost", "http://localhost/v1/metrics"),
        ("localhost:4318", "http://localhost:4318/v1/metrics"),
        ("[::1]:4318/x", "http://[::1]:4318/x"),
        ("http://[::1]:4318/", "http://[::1]:4318/"),
        ("http://localhost:4318?a=b", "http://localhost:4318/v1/metrics?a=b"),
        ("http://localhost:4318/?a=b", "http://localhost:4318/?a=b"),
        ("http://localhost#/x", "http://localhost/v1/metrics"),
        (
            "http://prometheus:9090/api/v1/otlp/v1/metrics?x=1",
            "http://prometheus:9090/api/v1/otlp/v1/metrics?x=1",
        ),
    ] {
        assert_eq!(Endpoint::new(url).unwrap().url(), expected);
    }
    let errors = [
        "https://otlp.example.com",
        "ftp://x",
        "localhost:43180000",
        "http://u:p@h/",
        "http:///x",
        "",
        "http://a b",
        "http://:80",
        "http://[]:80",
        "http://x:99999",
        "http://x:0",
        "http://x:",
        "http://x:-1/v1",
    ];
    let errors = errors.map(|url| Endpoint::new(url).unwrap_err().to_string());
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn variables() {
    let url = |variables: &[(&str, &str)]| endpoint(variables).unwrap().url().to_owned();
    assert_eq!(url(&[]), "http://localhost:4318/v1/metrics");
    let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
    assert_eq!(url(&[all]), "http://collector:4318/v1/metrics");
    let prefix = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector/x");
    assert_eq!(url(&[prefix]), "http://collector/x/v1/metrics");
    let query = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector/x/?a=b");
    assert_eq!(url(&[query]), "http://collector/x/v1/metrics?a=b");
    let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://metrics:1/own");
    assert_eq!(url(&[all, own]), "http://metrics:1/own");
    let empty = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", " ");
    assert_eq!(url(&[all, empty]), "http://collector:4318/v1/metrics");

    let headers = (
        "OTEL_EXPORTER_OTLP_HEADERS",
        "authorization=Basic%20dTpw, x-scope = a=b ,",
    );
    let headers = endpoint(&[headers]).unwrap().headers().to_vec();
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(headers, [("authorization", "Basic dTpw"), ("x-scope", "a=b")]);
    let timeout = endpoint(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")]).unwrap().timeout;
    assert_eq!(timeout, Duration::from_millis(1500));

    let resource = [
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=x,deployment.environment.name=a%2Cb",
        ),
        ("OTEL_SERVICE_NAME", "kernel"),
    ];
    let resource = with(&resource, |environment| environment.resource().unwrap());
    let resource: Vec<_> = resource
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        resource,
        [
            ("service.name", "x"),
            ("deployment.environment.name", "a,b"),
            ("service.name", "kernel")
        ]
    );

    with(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")], |environment| {
        assert_eq!(environment.encoding().unwrap(), Some(Encoding::Json));
    });
    with(
        &[("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Cumulative")],
        |environment| {
            assert_eq!(environment.temporality().unwrap(), Some(Temporality::Cumulative));
        },
    );
    with(&[("OTEL_METRIC_EXPORT_INTERVAL", "60000")], |environment| {
        assert_eq!(environment.interval().unwrap(), Some(Duration::from_secs(60)));
    });
}

/// Messages name the fault, but not the secret.
#[test]
fn what_variables_cannot_say() {
    let mut errors: Vec<_> = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otlp.example.com"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "ftp://collector"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x=%ff"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x=sec%0Aret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Content-Type=application/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "content-length=5"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Transfer-Encoding=chunked"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "host=x"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
    ]
    .into_iter()
    .map(|variable| endpoint(&[variable]).unwrap_err())
    .collect();
    with(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], |environment| {
        errors.push(environment.encoding().unwrap_err().to_string());
    });
    with(
        &[("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "x")],
        |environment| {
            errors.push(environment.temporality().unwrap_err().to_string());
        },
    );
    insta::assert_snapshot!(errors.join("\n"));
}
