//! Writes the launches as an OpenTelemetry trace (OTLP), as JSON or protobuf: a span for each launch, with the attributes of the semantic
//! conventions for CLI programs. `tree` decides which spans there are, `context` their ids, `messages` and `metric_messages` have the
//! format. `live` creates the requests for a recording in progress.

mod context;
pub mod live;
mod messages;
mod metric_messages;
mod tree;

use std::io::{self, Write};

use prost::Message;

pub use self::context::TraceContext;
use self::messages::{KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span, Status, TracesData};
use self::tree::{Node, Tree};
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

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// OTLP/JSON.
    Json,
    /// Protobuf.
    Protobuf,
}

/// The input of a trace.
pub struct Contents<'c, 'a> {
    /// The launches.
    pub forest: &'c Forest<'a>,
    /// The arguments of the command.
    pub command: &'c [Vec<u8>],
    /// The name of the service. `None` means the name of the command.
    pub service: Option<&'c str>,
    /// The ids of the trace.
    pub context: &'c TraceContext,
    /// Maximum number of spans.
    pub max_spans: usize,
}

/// Writes the trace.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(out: &mut dyn Write, contents: &Contents<'_, '_>, encoding: Encoding) -> io::Result<()> {
    let data = data(contents);
    match encoding {
        Encoding::Json => {
            serde_json::to_writer(&mut *out, &data.json())?;
            out.write_all(b"\n")
        }
        Encoding::Protobuf => out.write_all(&data.encode_to_vec()),
    }
}

fn data(contents: &Contents<'_, '_>) -> TracesData {
    let forest = contents.forest;
    let tree = Tree::arrange(forest, contents.max_spans, |index| lifetime(forest, index).is_some());
    let callers = Callers::find(forest, Detail::Line);
    let spans = tree.nodes.iter().map(|node| span(contents, &tree, node, &callers)).collect();
    TracesData {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: resource(contents, tree.dropped) }),
            scope_spans: vec![ScopeSpans {
                scope: Some(Scope { name: SCOPE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }),
                spans,
            }],
        }],
    }
}

fn resource(contents: &Contents<'_, '_>, dropped: u64) -> Vec<KeyValue> {
    let command = contents.command.first().map(|file| text::escape(base_name(file)));
    let service = contents.service.map(str::to_owned).or(command);
    let mut attributes = vec![KeyValue::text("service.name", service.unwrap_or_else(|| SCOPE.to_owned()))];
    if dropped > 0 {
        attributes.push(KeyValue::int("spawnscope.launches_dropped", dropped));
    }
    attributes
}

/// Returns the start and the end of a launch, if both are known. The end of a running process is that of the recording.
fn lifetime(forest: &Forest<'_>, index: usize) -> Option<(Nanos, Nanos)> {
    let launch = &forest.launches[index];
    let unfinished = launch.is_unfinished().then_some(forest.end);
    let (start, end) = (launch.start()?, unfinished.or_else(|| launch.end())?);
    Some((start, end.max(start)))
}

fn span(contents: &Contents<'_, '_>, tree: &Tree, node: &Node, callers: &Callers) -> Span {
    let forest = contents.forest;
    let first = node.launches[0];
    let lifetimes = node.launches.iter().filter_map(|index| lifetime(forest, *index));
    let start = lifetimes.clone().map(|(start, _)| start).min().unwrap_or_default();
    let end = lifetimes.map(|(_, end)| end).max().unwrap_or_default();
    let started_unix_ns = u64::try_from(forest.started_unix_ns).unwrap_or_default();
    let context = contents.context;
    let parent = node.parent.map(|parent| span_id(contents, &tree.nodes[parent])).or(context.parent);
    let launch = &forest.launches[first];
    let name = text::escape(&launch.command.label());
    let is_one_launch = node.launches.len() == 1;
    let attributes = if is_one_launch {
        launch_attributes(launch, callers.call_site_of(first))
    } else {
        sibling_attributes(forest, node, callers)
    };
    Span {
        trace_id: context.trace_id.to_vec(),
        span_id: span_id(contents, node).to_vec(),
        parent_span_id: parent.map(Vec::from).unwrap_or_default(),
        name: if is_one_launch { name } else { format!("{name} x {}", node.launches.len()) },
        kind: INTERNAL,
        start_time_unix_nano: started_unix_ns.saturating_add(start.0),
        end_time_unix_nano: started_unix_ns.saturating_add(end.0),
        attributes: [attributes, phase_attributes(forest, node)].concat(),
        status: if is_one_launch { status(launch.outcome) } else { None },
        flags: u32::from(context.flags),
    }
}

fn span_id(contents: &Contents<'_, '_>, node: &Node) -> [u8; 8] {
    contents.context.span_id(contents.forest.launches[node.launches[0]].id.0)
}

/// Returns the attributes of one launch.
fn launch_attributes(launch: &Launch<'_>, call_site: Option<&CallSite>) -> Vec<KeyValue> {
    let mut attributes = vec![KeyValue::text("process.executable.name", text::escape(launch.command.name))];
    if let Some(pid) = launch.pid {
        attributes.push(KeyValue::int("process.pid", pid.0));
    }
    if let Some(exec) = launch.execs.last() {
        attributes.push(KeyValue::text("process.executable.path", text::escape(exec.path())));
        let arguments = exec.arguments().map(|argument| String::from_utf8_lossy(argument).into_owned());
        attributes.push(KeyValue::texts("process.command_args", arguments));
        let cwd = exec.cwd().map(|cwd| KeyValue::text("process.working_directory", String::from_utf8_lossy(cwd)));
        attributes.extend(cwd);
    }
    attributes.extend(outcome_attributes(launch.outcome));
    attributes.extend(call_site.into_iter().flat_map(call_site_attributes));
    attributes
}

/// Returns the attributes that show how a program ended.
fn outcome_attributes(outcome: Outcome) -> Vec<KeyValue> {
    match outcome {
        Outcome::Code(0) => vec![KeyValue::int("process.exit.code", 0)],
        Outcome::Code(code) => {
            vec![KeyValue::int("process.exit.code", code), KeyValue::text("error.type", code.to_string())]
        }
        Outcome::Signal { number, .. } => vec![KeyValue::text("error.type", signal_name(number))],
        Outcome::Running | Outcome::Unknown => Vec::new(),
    }
}

/// Returns the attributes that show where a launch was requested.
fn call_site_attributes(call_site: &CallSite) -> Vec<KeyValue> {
    let file = call_site.file.as_ref().map(|file| KeyValue::text("code.file.path", String::from_utf8_lossy(file)));
    let line = call_site.line.map(|line| KeyValue::int("code.line.number", line));
    let function = call_site.function.as_ref();
    let function = function.map(|name| KeyValue::text("code.function.name", String::from_utf8_lossy(name)));
    [file, line, function].into_iter().flatten().collect()
}

/// Returns the attributes of siblings that share a span. The call site is included only if it is the same for all of them.
fn sibling_attributes(forest: &Forest<'_>, node: &Node, callers: &Callers) -> Vec<KeyValue> {
    let first = &forest.launches[node.launches[0]];
    let mut attributes = vec![
        KeyValue::text("process.executable.name", text::escape(first.command.name)),
        KeyValue::int("spawnscope.launches", node.launches.len() as u64),
    ];
    let launches = node.launches.iter().map(|index| &forest.launches[*index]);
    let failed = launches.filter(|launch| matches!(launch.outcome, Outcome::Code(1..) | Outcome::Signal { .. }));
    attributes.push(KeyValue::int("spawnscope.launches_failed", failed.count() as u64));
    let total: u64 =
        node.launches.iter().filter_map(|index| lifetime(forest, *index)).map(|(start, end)| end.since(start).0).sum();
    attributes.push(KeyValue::int("spawnscope.total_ns", total));
    let call_site = callers.call_site_of(node.launches[0]);
    if node.launches.iter().all(|index| callers.call_site_of(*index) == call_site) {
        attributes.extend(call_site.into_iter().flat_map(call_site_attributes));
    }
    attributes
}

/// Returns the phases as sums over the launches of a span. A phase that is unknown for one of them is omitted.
fn phase_attributes(forest: &Forest<'_>, node: &Node) -> Vec<KeyValue> {
    let attributes = Phase::ALL.into_iter().filter_map(|phase| {
        let times = node.launches.iter().map(|index| forest.launches[*index].phases.get(phase));
        let sum: u64 = times.collect::<Option<Vec<Nanos>>>()?.iter().map(|time| time.0).sum();
        Some(KeyValue::int(&format!("spawnscope.phase.{}_ns", phase.name()), sum))
    });
    attributes.collect()
}

/// Returns the status, which is an error if the program did not exit with 0.
fn status(outcome: Outcome) -> Option<Status> {
    let message = match outcome {
        Outcome::Code(0) | Outcome::Running | Outcome::Unknown => return None,
        Outcome::Code(code) => format!("exit {code}"),
        Outcome::Signal { number, .. } => signal_name(number),
    };
    Some(Status { message, code: ERROR })
}
