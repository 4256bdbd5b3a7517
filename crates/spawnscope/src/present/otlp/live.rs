//! What `record --otlp` sends: requests with the metrics of a recording in progress, and with spans of its longest launches.

use prost::Message;

use super::messages::{KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span, TracesData};
use super::metric_messages::{
    Gauge, Histogram, HistogramPoint, Metric, MetricsData, NumberPoint, Points, ResourceMetrics, ScopeMetrics, Sum,
};
use super::{INTERNAL, SCOPE, TraceContext, outcome_attributes, status};
use crate::analyze::live::{BUCKETS, EndedLaunch};
use crate::event::Nanos;
use crate::present::json::hex;
use crate::present::live_metrics::{Family, MetricType, Series, Snapshot, Value, command_label, families};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: the next request makes up for one that is lost.
const CUMULATIVE: i32 = 2;
/// Arguments of a launch beyond this many bytes are not sent.
const MAX_ARGUMENT_BYTES: usize = 4096;

/// Where the data comes from: the recorder, its machine, and the trace.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the service.
    pub service: String,
    /// The machine.
    pub host: String,
    /// The trace of the recorded command. Without a command, the ids of all traces are derived from it.
    pub context: TraceContext,
    /// Whether all launches belong to one command, and to one trace.
    pub is_command: bool,
}

impl Source {
    fn resource(&self) -> Resource {
        Resource {
            attributes: vec![
                KeyValue::text("service.name", &self.service),
                KeyValue::text("service.instance.id", hex(&self.context.trace_id)),
                KeyValue::text("host.name", &self.host),
            ],
        }
    }

    /// Returns the trace of a launch: that of the command or, without a command, that of the launch's topmost ancestor in the recording.
    fn trace(&self, launch: &EndedLaunch) -> TraceContext {
        if self.is_command {
            return self.context.clone();
        }
        let mut context = self.context.clone();
        context.trace_id[8..].copy_from_slice(&self.context.span_id(launch.root.0));
        context
    }
}

/// Returns the body of a request with all metrics. `now` is the time since 1970-01-01 UTC in nanoseconds.
#[must_use]
pub fn metrics(source: &Source, snapshot: &Snapshot<'_>, now: u64) -> Vec<u8> {
    let start = u64::try_from(snapshot.recorder.started_unix_ns).unwrap_or_default();
    let families = families(snapshot);
    let data = MetricsData {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(source.resource()),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope()),
                metrics: families.iter().map(|family| metric(family, start, now)).collect(),
            }],
        }],
    };
    data.encode_to_vec()
}

fn scope() -> Scope {
    Scope { name: SCOPE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

fn metric(family: &Family<'_>, start: u64, now: u64) -> Metric {
    let numbers = family.series.iter().filter_map(|series| number(series, start, now));
    let points = match family.kind {
        MetricType::Gauge => Points::Gauge(Gauge { points: numbers.collect() }),
        MetricType::Counter => {
            Points::Sum(Sum { points: numbers.collect(), temporality: CUMULATIVE, is_monotonic: true })
        }
        MetricType::Histogram => Points::Histogram(Histogram {
            points: family.series.iter().filter_map(|series| histogram(series, start, now)).collect(),
            temporality: CUMULATIVE,
        }),
    };
    Metric {
        name: family.name(),
        description: family.help.to_owned(),
        unit: if family.name().ends_with("_seconds") { "s" } else { "" }.to_owned(),
        points: Some(points),
    }
}

fn labels(series: &Series<'_>) -> Vec<KeyValue> {
    let labels = series.labels.iter();
    labels.map(|(name, value)| KeyValue::text(name, *value)).collect()
}

fn number(series: &Series<'_>, start: u64, now: u64) -> Option<NumberPoint> {
    let Value::Count(count) = series.value else { return None };
    Some(NumberPoint {
        start_time_unix_nano: start,
        time_unix_nano: now,
        int: Some(i64::try_from(count).unwrap_or(i64::MAX)),
        attributes: labels(series),
    })
}

fn histogram(series: &Series<'_>, start: u64, now: u64) -> Option<HistogramPoint> {
    let Value::Times(times) = series.value else { return None };
    Some(HistogramPoint {
        start_time_unix_nano: start,
        time_unix_nano: now,
        count: times.count(),
        sum: Some(seconds(times.sum)),
        bucket_counts: times.counts().to_vec(),
        explicit_bounds: BUCKETS.map(seconds).to_vec(),
        attributes: labels(series),
    })
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

/// The spans of the longest launches in an interval, up to a maximum number.
#[derive(Debug)]
pub struct LongestSpans {
    max: usize,
    /// The total time and the span of each launch.
    spans: Vec<(Nanos, Span)>,
}

impl LongestSpans {
    /// Creates a list that keeps at most `max` spans.
    #[must_use]
    pub fn new(max: usize) -> LongestSpans {
        LongestSpans { max, spans: Vec::new() }
    }

    /// Adds a launch that has ended. `started_unix_ns` is the start of its recording.
    pub fn add(&mut self, source: &Source, launch: &EndedLaunch, started_unix_ns: i64) {
        let Some((start, total)) = launch.start.zip(launch.total).filter(|_| self.max > 0) else {
            return;
        };
        let start = u64::try_from(started_unix_ns).unwrap_or_default().saturating_add(start.0);
        self.spans.push((total, span(source, launch, start, total)));
        // Trimming takes linear time. Doing it only when the list is twice as long as necessary keeps the cost per launch low.
        if self.spans.len() >= 2 * self.max {
            self.trim();
        }
    }

    /// Ends the interval. Returns the body of a request with the spans, if there are any.
    pub fn finish_interval(&mut self, source: &Source) -> Option<Vec<u8>> {
        self.trim();
        if self.spans.is_empty() {
            return None;
        }
        let spans: Vec<Span> = self.spans.drain(..).map(|(_, span)| span).collect();
        let data = TracesData {
            resource_spans: vec![ResourceSpans {
                resource: Some(source.resource()),
                scope_spans: vec![ScopeSpans { scope: Some(scope()), spans }],
            }],
        };
        Some(data.encode_to_vec())
    }

    fn trim(&mut self) {
        if self.spans.len() > self.max {
            self.spans.select_nth_unstable_by(self.max, |(a, _), (b, _)| b.cmp(a));
            self.spans.truncate(self.max);
        }
    }
}

fn span(source: &Source, launch: &EndedLaunch, start: u64, total: Nanos) -> Span {
    let context = source.trace(launch);
    let parent = launch.parent.filter(|_| launch.root != launch.id);
    let parent = parent.map(|parent| context.span_id(parent.0)).or(context.parent);
    let name = command_label(launch);
    let executable = name.strip_prefix('(').and_then(|name| name.strip_suffix(')'));
    let executable = executable.filter(|_| launch.is_fork_without_exec).unwrap_or(&name);
    let mut attributes = vec![KeyValue::text("process.executable.name", executable)];
    attributes.extend(launch.pid.map(|pid| KeyValue::int("process.pid", pid.0)));
    if !launch.argv.is_empty() {
        attributes.push(KeyValue::texts("process.command_args", arguments(&launch.argv).into_iter()));
    }
    attributes.extend(outcome_attributes(launch.outcome));
    let phases = launch.phases.iter().flat_map(|phases| phases.iter());
    attributes.extend(phases.filter_map(|(phase, time)| {
        let name = format!("spawnscope.phase.{}_ns", phase.name());
        time.map(|time| KeyValue::int(&name, time.0))
    }));
    Span {
        trace_id: context.trace_id.to_vec(),
        span_id: context.span_id(launch.id.0).to_vec(),
        parent_span_id: parent.map(Vec::from).unwrap_or_default(),
        name,
        kind: INTERNAL,
        start_time_unix_nano: start,
        end_time_unix_nano: start.saturating_add(total.0),
        attributes,
        status: status(launch.outcome),
        flags: u32::from(context.flags),
    }
}

/// Splits arguments that are each terminated by NUL. Bytes beyond the limit are omitted.
fn arguments(argv: &[u8]) -> Vec<String> {
    let kept = &argv[..argv.len().min(MAX_ARGUMENT_BYTES)];
    let kept = kept.strip_suffix(b"\0").unwrap_or(kept);
    kept.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}
