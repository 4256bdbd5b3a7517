//! `export --format otlp` on recordings: the trace has every launch, and other programs can read it. The protobuf is decoded with the
//! messages of opentelemetry-proto.

use std::collections::{BTreeSet, HashMap};
use std::process::Command;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::Value;

use crate::stored::{BEFORE, create_recording};

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Exports a recording that the SQL in `more` has changed, and returns the output.
fn export(more: &str, arguments: &[&str], traceparent: Option<&str>) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("recording.db");
    create_recording(&recording, &format!("{BEFORE}{more}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
    command.arg("export").args(arguments).arg(recording);
    command.env_remove("TRACEPARENT").env_remove("OTEL_SERVICE_NAME");
    command.envs(traceparent.map(|traceparent| ("TRACEPARENT", traceparent)));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Exports a recording as OTLP protobuf, and returns the decoded spans.
fn spans(arguments: &[&str], traceparent: Option<&str>) -> Vec<Span> {
    let bytes = export("", &[&["--format", "otlp-protobuf"], arguments].concat(), traceparent);
    let request = ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap();
    let [resource_spans] = request.resource_spans.try_into().unwrap();
    let attributes = &resource_spans.resource.as_ref().unwrap().attributes;
    assert_eq!(attributes[0].key, "service.name");
    let [scope_spans] = resource_spans.scope_spans.try_into().unwrap();
    assert_eq!(scope_spans.scope.unwrap().name, "spawnscope");
    scope_spans.spans
}

fn attribute(span: &Span, key: &str) -> Option<AnyValue> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.clone()?.value
}

fn int(span: &Span, key: &str) -> Option<i64> {
    match attribute(span, key)? {
        AnyValue::IntValue(int) => Some(int),
        _ => None,
    }
}

#[test]
fn a_trace_has_a_span_for_each_launch() {
    let spans = spans(&[], None);
    assert_eq!(spans.len(), 21);
    let by_id: HashMap<&[u8], &Span> = spans.iter().map(|span| (span.span_id.as_slice(), span)).collect();
    assert_eq!(by_id.len(), 21, "ids are unique");
    let traces: BTreeSet<&[u8]> = spans.iter().map(|span| span.trace_id.as_slice()).collect();
    assert_eq!(traces.len(), 1);
    for span in &spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert!(span.start_time_unix_nano > 1_700_000_000_000_000_000);
        let parent = by_id.get(span.parent_span_id.as_slice());
        assert_eq!(parent.is_none(), span.name == "bash", "only the command has no parent");
        assert!(parent.is_none_or(|parent| parent.start_time_unix_nano <= span.start_time_unix_nano));
    }
}

#[test]
fn spans_follow_the_conventions_for_cli_programs() {
    let spans = spans(&[], None);
    let dirname = spans.iter().find(|span| span.name == "dirname").unwrap();
    assert_eq!(dirname.kind, 1, "INTERNAL");
    for (key, expected) in [
        ("process.executable.name", "dirname"),
        ("process.executable.path", "/usr/bin/dirname"),
        ("code.file.path", "relocate.sh"),
    ] {
        assert_eq!(attribute(dirname, key), Some(AnyValue::StringValue(expected.to_owned())), "{key}");
    }
    assert_eq!(int(dirname, "code.line.number"), Some(5));
    assert_eq!(int(dirname, "process.exit.code"), Some(0));
    assert!(int(dirname, "process.pid").is_some());
    assert!(int(dirname, "spawnscope.phase.load_ns").unwrap() > 0);
    let Some(AnyValue::ArrayValue(arguments)) = attribute(dirname, "process.command_args") else {
        panic!("arguments are a list")
    };
    let expected = ["dirname", "usr/section0/file0"].map(|word| AnyValue::StringValue(word.into()));
    let arguments: Vec<AnyValue> = arguments.values.into_iter().filter_map(|value| value.value).collect();
    assert_eq!(arguments, expected);
    assert_eq!(dirname.status, None, "it succeeded");
}

#[test]
fn the_span_of_a_failed_launch_has_an_error() {
    let failing =
        "UPDATE launch SET wait_status = 3 << 8 WHERE id = 3; UPDATE launch SET wait_status = 9 WHERE id = 4;";
    let trace: Value = serde_json::from_slice(&export(failing, &["--format", "otlp"], None)).unwrap();
    let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let messages = spans.iter().filter_map(|span| span["status"]["message"].as_str());
    assert_eq!(messages.collect::<BTreeSet<_>>(), BTreeSet::from(["exit 3", "SIGKILL"]));
    let mut codes = spans.iter().filter_map(|span| span["status"]["code"].as_i64());
    assert!(codes.all(|code| code == 2));
}

#[test]
fn a_traceparent_makes_the_command_part_of_its_trace() {
    let spans = spans(&[], Some(TRACEPARENT));
    let root = spans.iter().find(|span| span.name == "bash").unwrap();
    assert_eq!(root.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
    assert_eq!(root.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(root.flags, 1);
    let invalid = self::spans(&[], Some("00-nonsense"));
    assert!(invalid.iter().any(|span| span.parent_span_id.is_empty()));
}

#[test]
fn too_many_spans_are_aggregated() {
    let spans = spans(&["--max-spans", "3"], None);
    let mut names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["bash", "dirname x 10", "mv x 10"]);
    let dirname = spans.iter().find(|span| span.name == "dirname x 10").unwrap();
    assert_eq!(int(dirname, "spawnscope.launches"), Some(10));
    assert_eq!(int(dirname, "spawnscope.launches_failed"), Some(0));
    // All were launched from one line.
    assert_eq!(int(dirname, "code.line.number"), Some(5));
    // The shell works between the launches.
    let duration_ns = dirname.end_time_unix_nano - dirname.start_time_unix_nano;
    assert!(int(dirname, "spawnscope.total_ns").unwrap().unsigned_abs() < duration_ns);
    assert_eq!(self::spans(&["--max-spans", "1"], None).len(), 1);
}

#[test]
fn the_json_and_the_protobuf_are_the_same_trace() {
    let trace: Value = serde_json::from_slice(&export("", &["--format", "otlp"], None)).unwrap();
    let json_spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let protobuf_spans = spans(&[], None);
    assert_eq!(json_spans.len(), protobuf_spans.len());
    for (json, span) in json_spans.iter().zip(&protobuf_spans) {
        let id: String = span.span_id.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(json["spanId"], id);
        assert_eq!(json["name"], span.name);
        assert_eq!(json["startTimeUnixNano"], span.start_time_unix_nano.to_string());
        assert_eq!(json["attributes"].as_array().unwrap().len(), span.attributes.len());
    }
}
