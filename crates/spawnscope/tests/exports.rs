//! `export --format otlp` on recordings: the trace has every launch, as the specification of
//! OTLP/JSON and the conventions for CLI programs require.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::directory::Directory;
use crate::run::run;
use crate::stored::BEFORE;

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Exports a recording that the SQL in `more` has changed, and returns the spans.
fn spans(more: &str, arguments: &[&str], traceparent: Option<&str>) -> Vec<Value> {
    let directory = Directory::with(&[("recording.db", &format!("{BEFORE}{more}"))]);
    let mut command = directory.command(&[&["export", "--format", "otlp", "recording.db"], arguments].concat());
    command.env_remove("TRACEPARENT").env_remove("OTEL_SERVICE_NAME");
    command.envs(traceparent.map(|traceparent| ("TRACEPARENT", traceparent)));
    let trace = run(&mut command).expect_code(0).json();
    let resource = &trace["resourceSpans"][0];
    let service = json!({ "key": "service.name", "value": { "stringValue": "bash" } });
    assert_eq!(resource["resource"]["attributes"][0], service);
    assert_eq!(resource["scopeSpans"][0]["scope"]["name"], "spawnscope");
    resource["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    spans.iter().find(|span| span["name"] == name).unwrap()
}

fn attribute<'s>(span: &'s Value, key: &str) -> Option<&'s Value> {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    Some(&found["value"])
}

/// 64-bit integers are strings in OTLP/JSON.
fn int(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

fn int_attribute(span: &Value, key: &str) -> Option<u64> {
    int(&attribute(span, key)?["intValue"])
}

#[test]
fn a_trace_has_a_span_for_each_launch() {
    let spans = spans("", &[], None);
    let by_id: HashMap<&Value, &Value> = spans.iter().map(|span| (&span["spanId"], span)).collect();
    assert_eq!((spans.len(), by_id.len()), (21, 21), "ids are unique");
    let times = |span: &Value| ["startTimeUnixNano", "endTimeUnixNano"].map(|key| int(&span[key]).unwrap());
    for span in &spans {
        assert_eq!((&span["traceId"], span["traceId"].as_str().unwrap().len()), (&spans[0]["traceId"], 32));
        let [start, end] = times(span);
        assert!(1_700_000_000_000_000_000 < start && start <= end);
        let parent = by_id.get(&span["parentSpanId"]);
        assert_eq!(parent.is_none(), span["name"] == "bash", "only the command has no parent");
        assert!(parent.is_none_or(|parent| times(parent)[0] <= start));
    }
}

#[test]
fn spans_follow_the_conventions_for_cli_programs() {
    let spans = spans("", &[], None);
    let dirname = named(&spans, "dirname");
    assert_eq!((&dirname["kind"], dirname.get("status")), (&json!(1), None), "INTERNAL, and no error");
    for (key, expected) in [
        ("process.executable.name", "dirname"),
        ("process.executable.path", "/usr/bin/dirname"),
        ("code.file.path", "relocate.sh"),
    ] {
        assert_eq!(attribute(dirname, key), Some(&json!({ "stringValue": expected })), "{key}");
    }
    assert_eq!(int_attribute(dirname, "code.line.number"), Some(5));
    assert_eq!(int_attribute(dirname, "process.exit.code"), Some(0));
    assert!(int_attribute(dirname, "process.pid").is_some());
    assert!(int_attribute(dirname, "spawnscope.phase.load_ns").unwrap() > 0);
    let arguments = ["dirname", "usr/section0/file0"].map(|word| json!({ "stringValue": word }));
    let expected = json!({ "arrayValue": { "values": arguments } });
    assert_eq!(attribute(dirname, "process.command_args"), Some(&expected));
}

#[test]
fn the_span_of_a_failed_launch_has_an_error() {
    let failing =
        "UPDATE launch SET wait_status = 3 << 8 WHERE id = 3; UPDATE launch SET wait_status = 9 WHERE id = 4;";
    let spans = spans(failing, &[], None);
    let messages = spans.iter().filter_map(|span| span["status"]["message"].as_str());
    assert_eq!(messages.collect::<BTreeSet<_>>(), BTreeSet::from(["exit 3", "SIGKILL"]));
    let mut codes = spans.iter().filter_map(|span| span["status"]["code"].as_i64());
    assert!(codes.all(|code| code == 2));
}

#[test]
fn a_traceparent_makes_the_command_part_of_its_trace() {
    let spans = spans("", &[], Some(TRACEPARENT));
    let root = named(&spans, "bash");
    let ids = ["traceId", "parentSpanId"].map(|key| root[key].as_str().unwrap());
    assert_eq!(ids, ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"]);
    assert_eq!(root["flags"], 1);
    let invalid = self::spans("", &[], Some("00-nonsense"));
    assert_eq!(named(&invalid, "bash").get("parentSpanId"), None);
}

#[test]
fn too_many_spans_are_aggregated() {
    let spans = spans("", &["--max-spans", "3"], None);
    let names: BTreeSet<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["bash", "dirname x 10", "mv x 10"]));
    let dirname = named(&spans, "dirname x 10");
    assert_eq!(int_attribute(dirname, "spawnscope.launches"), Some(10));
    assert_eq!(int_attribute(dirname, "spawnscope.launches_failed"), Some(0));
    assert_eq!(int_attribute(dirname, "code.line.number"), Some(5), "all were launched from one line");
    let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"].map(|key| int(&dirname[key]).unwrap());
    assert!(
        int_attribute(dirname, "spawnscope.total_ns").unwrap() < end - start,
        "the shell works between the launches"
    );
    assert_eq!(self::spans("", &["--max-spans", "1"], None).len(), 1);
}
