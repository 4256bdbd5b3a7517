//! `record --otlp`: a server on this machine gets the figures of the report of the same recording, decoded with the messages of
//! opentelemetry-proto. A server that is busy, silent or unreachable changes neither the command nor the recording.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::Value;

use crate::support::recording::report;
use crate::support::run::{Record, run};
use crate::support::workloads::word;
use crate::support::{apply, live_test};

/// A request as it arrived.
struct Request {
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
    status: u16,
}

/// A server on the loopback interface, which runs until the test process ends.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server. `answer` returns the status for the request with this number, or `None` if the server never answers it.
    fn start(answer: fn(usize) -> Option<u16>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let received = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = Arc::clone(&received);
                thread::spawn(move || serve(stream, &received, answer));
            }
        });
        Server { address, requests }
    }

    /// Returns the last metrics that the server accepted, by name and by labels.
    fn metrics(&self) -> HashMap<String, HashMap<String, f64>> {
        let requests = self.requests.lock().expect("no panic");
        let last = requests.iter().rfind(|r| r.path == "/v1/metrics" && r.status == 200);
        let request = ExportMetricsServiceRequest::decode(&last.expect("metrics").body[..]).expect("protobuf");
        let scope = &request.resource_metrics[0].scope_metrics[0];
        let metrics = scope.metrics.iter();
        metrics.map(|metric| (metric.name.clone(), points(metric.data.as_ref().expect("data")))).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().expect("no panic");
        let received = requests.iter().filter(|r| r.path == "/v1/traces" && r.status == 200);
        let decoded = received.map(|request| ExportTraceServiceRequest::decode(&request.body[..]));
        let resources = decoded.flat_map(|request| request.expect("protobuf").resource_spans);
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

fn serve(mut stream: TcpStream, received: &Mutex<Vec<Request>>, answer: fn(usize) -> Option<u16>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = HashMap::new();
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(':') else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let status = {
            let mut received = received.lock().expect("no panic");
            let status = answer(received.len());
            received.push(Request { path, headers, body, status: status.unwrap_or(0) });
            status
        };
        let Some(status) = status else {
            // The client closes the connection.
            let _ = reader.read_line(&mut String::new());
            return None;
        };
        let answer =
            format!("HTTP/1.1 {status} X\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

fn points(data: &Data) -> HashMap<String, f64> {
    match data {
        Data::Gauge(gauge) => {
            let points = gauge.data_points.iter();
            points.map(|p| (labels(&p.attributes), number(&p.value))).collect()
        }
        Data::Sum(sum) => {
            assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
            let points = sum.data_points.iter();
            points.map(|p| (labels(&p.attributes), number(&p.value))).collect()
        }
        Data::Histogram(histogram) => {
            let points = histogram.data_points.iter();
            points
                .map(|p| {
                    assert_eq!(p.bucket_counts.len(), p.explicit_bounds.len() + 1);
                    assert_eq!(p.bucket_counts.iter().sum::<u64>(), p.count);
                    (labels(&p.attributes), p.sum.expect("a sum"))
                })
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

fn number(value: &Option<Number>) -> f64 {
    match value {
        Some(Number::AsInt(int)) => *int as f64,
        other => panic!("not an integer: {other:?}"),
    }
}

/// Returns the values of labels, joined by spaces.
fn labels(attributes: &[KeyValue]) -> String {
    let values = attributes.iter().filter_map(|attribute| match attribute.value.clone()?.value? {
        Any::StringValue(text) => Some(text),
        _ => None,
    });
    let values: Vec<String> = values.collect();
    values.join(" ")
}

const SCRIPT: &str = "for i in 1 2 3 4 5; do \"$0\"; done; (exit 3); (:); sh -c 'kill -9 $$'; exit 0";

fn words() -> [String; 4] {
    ["bash", "-c", SCRIPT, &word("tiny")].map(str::to_owned)
}

#[track_caller]
fn assert_metrics_agree(metrics: &HashMap<String, HashMap<String, f64>>, report: &Value) {
    for row in report["commands"].as_array().expect("commands") {
        let command = row["command"].as_str().expect("a name");
        let launches = value(metrics, "spawnscope_launches_total", command);
        assert_eq!(launches, count(&row["count"]), "{command}");
        for (phase, time) in row["phases"].as_object().expect("phases") {
            let seconds = value(metrics, "spawnscope_phase_seconds", &format!("{command} {phase}")).unwrap_or(0.0);
            let reported = time.as_f64().unwrap_or(0.0) / 1e9;
            assert!((seconds - reported).abs() < 1e-8, "{command} {phase}: {seconds} {reported}");
        }
    }
    let launches = value(metrics, "spawnscope_launches_started_total", "");
    assert_eq!(launches, count(&report["launches"]));
    assert_eq!(value(metrics, "spawnscope_launch_failures_total", "sh"), Some(1.0));
    assert_eq!(value(metrics, "spawnscope_launch_failures_total", "(bash)"), Some(1.0));
    assert_eq!(value(metrics, "spawnscope_recorder_running", ""), Some(0.0));
}

fn value(metrics: &HashMap<String, HashMap<String, f64>>, name: &str, labels: &str) -> Option<f64> {
    metrics.get(name).and_then(|series| series.get(labels)).copied()
}

fn count(value: &Value) -> Option<f64> {
    value.as_u64().map(|count| count as f64)
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn metrics_and_spans_agree_with_the_report() {
    let server = Server::start(|_| Some(200));
    let record = Record::new().flags(&["-q", "--otlp", &server.address]);
    let errors = record.run(words()).expect_code(0).errors();
    assert!(!errors.contains("failed to send"), "{errors}");

    let report = report(&record.file());
    let metrics = server.metrics();
    assert_metrics_agree(&metrics, &report);
    let spans = server.spans();
    assert_eq!(Some(spans.len() as u64), report["launches"].as_u64());
    let ids: HashSet<&[u8]> = spans.iter().map(|span| &span.span_id[..]).collect();
    assert_eq!(ids.len(), spans.len());
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    assert_eq!(roots[0].name, "bash");
    for span in &spans {
        assert_eq!(span.trace_id, roots[0].trace_id);
        assert!(span.parent_span_id.is_empty() || ids.contains(&span.parent_span_id[..]));
        assert!(roots[0].start_time_unix_nano <= span.start_time_unix_nano, "{span:?}");
        assert!(span.end_time_unix_nano > span.start_time_unix_nano, "{span:?}");
    }
    let failed: Vec<&Span> = spans.iter().filter(|span| span.status.is_some()).collect();
    assert_eq!(failed.len(), 2, "(exit 3) and the killed shell: {failed:?}");
    for request in server.requests.lock().expect("no panic").iter() {
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
    }
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn the_longest_launches_of_an_interval_have_spans() {
    let server = Server::start(|_| Some(200));
    let record = Record::new().flags(&["-q", "--otlp", &server.address, "--otlp-spans", "2"]);
    record.run(words()).expect_code(0);
    let launches = report(&record.file())["launches"].as_u64().expect("a count");
    let spans = server.spans();
    let has_longest = spans.iter().any(|span| span.name == "bash");
    assert!(spans.len() >= 2 && (spans.len() as u64) < launches && has_longest, "{spans:?}");
}

/// The server is busy twice. Its address and a header come from the environment.
#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_request_to_a_busy_server_is_repeated() {
    let server = Server::start(|request| Some(if request < 2 { 503 } else { 200 }));
    let record = Record::new().flags(&["-q", "--otlp"]);
    let mut command = record.command(words());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &server.address);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a%20b");
    let errors = run(&mut command).expect_code(0).errors();
    assert!(!errors.contains("failed to send"), "{errors}");
    let report = report(&record.file());
    assert_metrics_agree(&server.metrics(), &report);
    assert_eq!(Some(server.spans().len() as u64), report["launches"].as_u64());
    let requests = server.requests.lock().expect("no panic");
    assert_eq!((requests[0].status, requests[1].status), (503, 503));
    assert_eq!(requests[0].body, requests[1].body, "the same request again");
    assert!(requests.iter().all(|request| request.headers["x-tenant"] == "a b"));
}

#[track_caller]
fn assert_command_is_not_affected(address: &str) {
    let record = Record::new().flags(&["-q", "--otlp", address]);
    let began = Instant::now();
    let finished = record.run(["sh", "-c", "/bin/true; exit 7"]).expect_code(7);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let errors = finished.errors();
    assert_eq!(errors.matches("failed to send to").count(), 1, "{errors}");
    let report = report(&record.file());
    assert_eq!(report["launches"].as_u64(), Some(2));
    assert_eq!(report["lost_events"].as_u64(), Some(0));
}

#[apply(live_test)]
#[needs(Ebpf)]
fn an_unreachable_server_causes_one_message() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    assert_command_is_not_affected(&address);
}

/// Slow, because it waits for the whole time that the recorder grants a server.
#[apply(live_test)]
#[needs(Ebpf)]
fn a_server_that_never_answers_does_not_delay_the_command() {
    let server = Server::start(|_| None);
    assert_command_is_not_affected(&server.address);
    assert!(!server.requests.lock().expect("no panic").is_empty());
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_refused_request_is_not_repeated() {
    let server = Server::start(|_| Some(404));
    assert_command_is_not_affected(&server.address);
    let requests = server.requests.lock().expect("no panic");
    let bodies: HashSet<&[u8]> = requests.iter().map(|request| &request.body[..]).collect();
    assert_eq!(bodies.len(), requests.len(), "a request came twice");
}
