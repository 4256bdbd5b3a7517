//! Writes the launches as an OpenTelemetry trace in OTLP/JSON: a span for each launch, with the
//! attributes of the semantic conventions for CLI programs. `tree` decides which spans there are,
//! `context` their ids. Ids are hexadecimal, and 64-bit numbers are strings.

mod context;
mod tree;

use std::fmt::Display;
use std::io::{self, Write};

use serde_json::{Value, json};

pub use self::context::TraceContext;
use self::tree::{Node, Tree};
use super::json_values::hex;
use super::text;
use super::words::signal_name;
use crate::analyze::Forest;
use crate::analyze::model::launch::{Launch, Outcome, base_name};
use crate::analyze::model::phases::Phase;
use crate::analyze::sites::callers::{CallSite, Callers, Detail};
use crate::event::Nanos;

/// `SPAN_KIND_INTERNAL`, which the conventions prescribe for the program itself.
const INTERNAL: i32 = 1;
/// `STATUS_CODE_ERROR`
const ERROR: i32 = 2;
const SCOPE: &str = "spawnscope";

pub struct Contents<'c, 'a> {
    pub forest: &'c Forest<'a>,
    pub command: &'c [Vec<u8>],
    /// The name of the service. `None` means the name of the command.
    pub service: Option<&'c str>,
    pub context: &'c TraceContext,
    pub max_spans: usize,
}

pub fn write(out: &mut dyn Write, contents: &Contents<'_, '_>) -> io::Result<()> {
    let forest = contents.forest;
    let tree = Tree::arrange(forest, contents.max_spans, |index| lifetime(forest, index).is_some());
    let callers = Callers::find(forest, Detail::Line);
    let spans: Vec<Value> = tree.nodes.iter().map(|node| span(contents, &tree, node, &callers)).collect();
    let scope = json!({ "name": SCOPE, "version": env!("CARGO_PKG_VERSION") });
    let resource_spans = json!({
        "resource": { "attributes": resource(contents, tree.dropped) },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    });
    serde_json::to_writer(&mut *out, &json!({ "resourceSpans": [resource_spans] }))?;
    out.write_all(b"\n")
}

fn resource(contents: &Contents<'_, '_>, dropped: u64) -> Vec<Value> {
    let command = contents.command.first().map(|file| text::escape(base_name(file)));
    let service = contents.service.map(str::to_owned).or(command);
    let mut attributes = vec![string("service.name", service.unwrap_or_else(|| SCOPE.to_owned()))];
    if dropped > 0 {
        attributes.push(int("spawnscope.launches_dropped", dropped));
    }
    attributes
}

/// Returns the start and the end of a launch, if both are known. The end of a running process is
/// that of the recording.
fn lifetime(forest: &Forest<'_>, index: usize) -> Option<(Nanos, Nanos)> {
    let launch = &forest.launches[index];
    let unfinished = launch.is_unfinished().then_some(forest.end);
    let (start, end) = (launch.start()?, unfinished.or_else(|| launch.end())?);
    Some((start, end.max(start)))
}

fn span(contents: &Contents<'_, '_>, tree: &Tree, node: &Node, callers: &Callers) -> Value {
    let forest = contents.forest;
    let first = node.launches[0];
    let lifetimes = node.launches.iter().filter_map(|index| lifetime(forest, *index));
    let start = lifetimes.clone().map(|(start, _)| start).min().unwrap_or_default();
    let end = lifetimes.map(|(_, end)| end).max().unwrap_or_default();
    let started_unix_ns = u64::try_from(forest.started_unix_ns).unwrap_or_default();
    let unix_ns = |at: Nanos| started_unix_ns.saturating_add(at.0).to_string();
    let context = contents.context;
    let launch = &forest.launches[first];
    let name = text::escape(&launch.command.label());
    let is_one_launch = node.launches.len() == 1;
    let mut attributes = if is_one_launch {
        launch_attributes(launch, callers.call_site_of(first))
    } else {
        sibling_attributes(forest, node, callers)
    };
    attributes.extend(phase_attributes(forest, node));
    let mut span = json!({
        "traceId": hex(&context.trace_id),
        "spanId": hex(&span_id(contents, node)),
        "name": if is_one_launch { name } else { format!("{name} x {}", node.launches.len()) },
        "kind": INTERNAL,
        "startTimeUnixNano": unix_ns(start),
        "endTimeUnixNano": unix_ns(end),
        "attributes": attributes,
        "flags": context.flags,
    });
    if let Some(parent) = node.parent.map(|parent| span_id(contents, &tree.nodes[parent])).or(context.parent) {
        span["parentSpanId"] = hex(&parent).into();
    }
    if let Some(message) = error(launch.outcome).filter(|_| is_one_launch) {
        span["status"] = json!({ "message": message, "code": ERROR });
    }
    span
}

fn span_id(contents: &Contents<'_, '_>, node: &Node) -> [u8; 8] {
    contents.context.span_id(contents.forest.launches[node.launches[0]].id.0)
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({ "key": key, "value": value })
}

fn string(key: &str, value: impl Into<String>) -> Value {
    attribute(key, &json!({ "stringValue": value.into() }))
}

fn int(key: &str, value: impl Display + Copy) -> Value {
    attribute(key, &json!({ "intValue": value.to_string() }))
}

fn launch_attributes(launch: &Launch<'_>, call_site: Option<&CallSite>) -> Vec<Value> {
    let mut attributes = vec![string("process.executable.name", text::escape(launch.command.name))];
    attributes.extend(launch.pid.get().map(|pid| int("process.pid", pid.0)));
    if let Some(exec) = launch.execs.last() {
        attributes.push(string("process.executable.path", text::escape(exec.path())));
        let arguments = exec.arguments().map(|argument| json!({ "stringValue": String::from_utf8_lossy(argument) }));
        let arguments = json!({ "arrayValue": { "values": arguments.collect::<Vec<_>>() } });
        attributes.push(attribute("process.command_args", &arguments));
        attributes.extend(exec.cwd().map(|cwd| string("process.working_directory", String::from_utf8_lossy(cwd))));
    }
    match launch.outcome {
        Outcome::Code(0) => attributes.push(int("process.exit.code", 0)),
        Outcome::Code(code) => {
            attributes.extend([int("process.exit.code", code), string("error.type", code.to_string())]);
        }
        Outcome::Signal { number, .. } => attributes.push(string("error.type", signal_name(number))),
        Outcome::Running | Outcome::Unknown => {}
    }
    attributes.extend(call_site.into_iter().flat_map(call_site_attributes));
    attributes
}

fn call_site_attributes(call_site: &CallSite) -> Vec<Value> {
    let file = call_site.file.as_ref().map(|file| string("code.file.path", String::from_utf8_lossy(file)));
    let line = call_site.line.map(|line| int("code.line.number", line));
    let function = call_site.function.as_ref();
    let function = function.map(|name| string("code.function.name", String::from_utf8_lossy(name)));
    [file, line, function].into_iter().flatten().collect()
}

/// Returns the attributes of siblings that share a span. The call site is included only if it is
/// the same for all of them.
fn sibling_attributes(forest: &Forest<'_>, node: &Node, callers: &Callers) -> Vec<Value> {
    let first = &forest.launches[node.launches[0]];
    let failed = node.launches.iter().filter(|index| error(forest.launches[**index].outcome).is_some());
    let lifetimes = node.launches.iter().filter_map(|index| lifetime(forest, *index));
    let mut attributes = vec![
        string("process.executable.name", text::escape(first.command.name)),
        int("spawnscope.launches", node.launches.len()),
        int("spawnscope.launches_failed", failed.count()),
        int("spawnscope.total_ns", lifetimes.map(|(start, end)| end.since(start).0).sum::<u64>()),
    ];
    let call_site = callers.call_site_of(node.launches[0]);
    if node.launches.iter().all(|index| callers.call_site_of(*index) == call_site) {
        attributes.extend(call_site.into_iter().flat_map(call_site_attributes));
    }
    attributes
}

/// Returns the phases as sums over the launches of a span. A phase that is unknown for one of them
/// is omitted.
fn phase_attributes(forest: &Forest<'_>, node: &Node) -> Vec<Value> {
    let attributes = Phase::ALL.into_iter().filter_map(|phase| {
        let times = node.launches.iter().map(|index| forest.launches[*index].phases.get(phase));
        let sum: u64 = times.collect::<Option<Vec<Nanos>>>()?.iter().map(|time| time.0).sum();
        Some(int(&format!("spawnscope.phase.{}_ns", phase.name()), sum))
    });
    attributes.collect()
}

fn error(outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Code(0) | Outcome::Running | Outcome::Unknown => None,
        Outcome::Code(code) => Some(format!("exit {code}")),
        Outcome::Signal { number, .. } => Some(signal_name(number)),
    }
}
