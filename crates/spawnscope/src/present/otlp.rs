//! Writes the launches as an OpenTelemetry trace in OTLP/JSON: a span for each launch, with the
//! attributes of the semantic conventions for CLI programs. Ids are hexadecimal, and 64-bit numbers
//! are strings.
//!
//! Viewers cannot show tens of thousands of spans. So if there are too many launches, similar
//! siblings (launches of one program by the same span) become one span.
//!
//! The ids of a trace are those in TRACEPARENT (W3C Trace Context), so that the command becomes
//! part of its caller's trace, or new ones.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

use serde_json::{Value, json};

use super::text;
use super::words::signal_name;
use crate::analyze::Forest;
use crate::analyze::model::launch::{Command, Launch, Outcome, base_name};
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
    let tree = Tree::arrange(forest, contents.max_spans, |index| forest.launches[index].lifetime(forest.end).is_some());
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

fn span(contents: &Contents<'_, '_>, tree: &Tree, node: &Node, callers: &Callers) -> Value {
    let forest = contents.forest;
    let first = node.launches[0];
    let lifetimes = node.launches.iter().filter_map(|index| forest.launches[*index].lifetime(forest.end));
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
        "traceId": format!("{:032x}", context.trace_id),
        "spanId": span_hex(span_id(contents, node)),
        "name": if is_one_launch { name } else { format!("{name} x {}", node.launches.len()) },
        "kind": INTERNAL,
        "startTimeUnixNano": unix_ns(start),
        "endTimeUnixNano": unix_ns(end),
        "attributes": attributes,
        "flags": context.flags,
    });
    if let Some(parent) = node.parent.map(|parent| span_id(contents, &tree.nodes[parent])).or(context.parent) {
        span["parentSpanId"] = span_hex(parent).into();
    }
    if let Some(message) = error(launch.outcome).filter(|_| is_one_launch) {
        span["status"] = json!({ "message": message, "code": ERROR });
    }
    span
}

fn span_hex(id: u64) -> String {
    format!("{id:016x}")
}

fn span_id(contents: &Contents<'_, '_>, node: &Node) -> u64 {
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
    let lifetimes = node.launches.iter().filter_map(|index| forest.launches[*index].lifetime(forest.end));
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

/// Numbers of similar siblings that may have a span each. They are tried in this order until there
/// are few enough spans.
const SIBLING_LIMITS: [usize; 7] = [usize::MAX, 1024, 256, 64, 16, 4, 1];

/// A span: one launch, or similar siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    launches: Vec<usize>,
    parent: Option<usize>,
}

/// The spans of a trace, parents first.
#[derive(Clone, Debug)]
struct Tree {
    nodes: Vec<Node>,
    /// Number of launches without a span, because there were too many spans even after aggregation.
    dropped: u64,
}

impl Tree {
    /// Arranges the launches for which `has_time` returns true in at most `max_spans` spans.
    fn arrange(forest: &Forest<'_>, max_spans: usize, has_time: impl Fn(usize) -> bool) -> Tree {
        let mut tree = Tree::aggregate(forest, SIBLING_LIMITS[0], &has_time);
        for sibling_limit in &SIBLING_LIMITS[1..] {
            if tree.nodes.len() <= max_spans {
                return tree;
            }
            tree = Tree::aggregate(forest, *sibling_limit, &has_time);
        }
        // Nodes are ordered level by level, so the deepest ones are dropped.
        let dropped = tree.nodes.iter().skip(max_spans).map(|node| node.launches.len() as u64).sum();
        tree.nodes.truncate(max_spans);
        Tree { dropped, ..tree }
    }

    /// Arranges the launches. If there are more than `sibling_limit` similar siblings, they become
    /// one span.
    fn aggregate(forest: &Forest<'_>, sibling_limit: usize, has_time: &impl Fn(usize) -> bool) -> Tree {
        let tops = [forest.roots.as_slice(), &forest.orphans].concat();
        let mut nodes: Vec<Node> = Vec::new();
        let mut pending: VecDeque<(Option<usize>, Vec<usize>)> =
            VecDeque::from([(None, visible(forest, tops, has_time))]);
        while let Some((parent, siblings)) = pending.pop_front() {
            let mut alike: BTreeMap<Command<'_>, Vec<usize>> = BTreeMap::new();
            for index in siblings {
                alike.entry(*forest.launches[index].command).or_default().push(index);
            }
            let each = alike.into_values().flat_map(|launches| {
                let size = if launches.len() > sibling_limit { launches.len() } else { 1 };
                launches.chunks(size).map(<[usize]>::to_vec).collect::<Vec<_>>()
            });
            for launches in each {
                let children = launches.iter().flat_map(|index| forest.children(*index).iter().copied());
                let children = visible(forest, children.collect(), has_time);
                if !children.is_empty() {
                    pending.push_back((Some(nodes.len()), children));
                }
                nodes.push(Node { launches, parent });
            }
        }
        Tree { nodes, dropped: 0 }
    }
}

/// Replaces processes that are not launches, or whose time is unknown, with their children.
fn visible(forest: &Forest<'_>, indices: Vec<usize>, has_time: &impl Fn(usize) -> bool) -> Vec<usize> {
    let mut visible = Vec::with_capacity(indices.len());
    let mut pending = indices;
    while let Some(index) = pending.pop() {
        if forest.launches[index].is_launch() && has_time(index) {
            visible.push(index);
        } else {
            pending.extend_from_slice(forest.children(index));
        }
    }
    visible.sort_unstable();
    visible
}

/// The trace that the spans belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: u128,
    /// The span that launched the command, if it is part of another trace.
    pub parent: Option<u64>,
    /// The flags of the trace. Bit 0: sampled.
    pub flags: u8,
}

impl TraceContext {
    /// Parses a TRACEPARENT: `00-TRACE-SPAN-FLAGS`, in lower-case hexadecimal. Returns `None` if it
    /// is invalid: the caller ignores it then.
    pub fn parse(text: &str) -> Option<TraceContext> {
        let parts: Vec<&str> = text.trim().split('-').collect();
        let [version, trace_id, parent, flags, more @ ..] = &parts[..] else { return None };
        let [version, flags] = [parse_hex(version, 2)?, parse_hex(flags, 2)?];
        let [trace_id, parent] = [parse_hex(trace_id, 32)?, parse_hex(parent, 16)?];
        // Later versions may add parts; version 255 is invalid.
        let is_valid = version != 0xff && (version > 0 || more.is_empty()) && trace_id != 0 && parent != 0;
        is_valid.then_some(TraceContext { trace_id, parent: Some(parent as u64), flags: flags as u8 })
    }

    /// Returns a new trace for a recording. Its ids are the same for each export of this recording,
    /// so that two exports do not become two traces.
    pub fn for_recording(started_unix_ns: i64, command: &[Vec<u8>]) -> TraceContext {
        let [high, low] = [0u8, 1].map(|number| {
            let mut hasher = DefaultHasher::new();
            (number, started_unix_ns, command).hash(&mut hasher);
            u128::from(hasher.finish().max(1))
        });
        TraceContext { trace_id: high << 64 | low, parent: None, flags: 1 }
    }

    /// Returns the id of the span with a number. Numbers below 2^63 have different ids.
    fn span_id(&self, number: u64) -> u64 {
        // An odd factor permutes all 64-bit numbers.
        let id = (self.trace_id as u64 ^ 0x5bd1_e995).wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        id.max(1)
    }
}

/// Parses this many digits in lower case.
fn parse_hex(hex: &str, digits: usize) -> Option<u128> {
    let is_lower = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_lower && hex.len() == digits).then(|| u128::from_str_radix(hex, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(valid).unwrap();
        assert_eq!(context.trace_id >> 112, 0x4bf9);
        assert_eq!(context.parent.unwrap() & 0xff, 0xb7);
        assert!(TraceContext::parse(&valid.replacen("00", "01", 1)).is_some());
        for invalid in [
            "",
            "00-0-0-01",
            &valid.to_uppercase(),
            &valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &valid.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &valid.replacen("00", "ff", 1),
            &format!("{valid}-more"),
        ] {
            assert_eq!(TraceContext::parse(invalid), None, "{invalid}");
        }
    }
}
