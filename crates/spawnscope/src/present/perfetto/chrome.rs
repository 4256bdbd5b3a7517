//! Writes a trace as Chrome's JSON, for programs that do not read Perfetto's protobuf (chrome://tracing, speedscope). It has the tracks of
//! the Perfetto trace as threads of one process, without nesting and without arrows.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::launches::LaunchWriter;
use super::tracks::{Span, Tracks};
use super::{Contents, NAME_COLUMNS, charge_name, table, text, verdict_and_totals};
use crate::event::Nanos;

/// The pid of the process that all tracks belong to.
const PROCESS: u32 = 1;
/// The thread of the critical path.
const CRITICAL_PATH: u64 = 1;
/// The thread of the first track of launches.
const FIRST_LAUNCH_THREAD: u64 = 2;

/// Writes the whole trace, event by event.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(out: &mut dyn Write, contents: &Contents<'_, '_>) -> io::Result<()> {
    let tracks = Tracks::arrange(contents.forest);
    let mut events = Events { out, is_first: true };
    events.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let title = format!("spawnscope: {}", table::title(contents.report, NAME_COLUMNS));
    events.write(&metadata("process_name", None, &title))?;
    if !contents.critical_path.is_empty() {
        events.write(&metadata("thread_name", Some(CRITICAL_PATH), "critical path"))?;
        for stretch in contents.critical_path {
            let name = charge_name(contents, stretch.charge);
            events.write(&slice(CRITICAL_PATH, "critical path", &name, stretch.start, stretch.end))?;
        }
    }
    write_launches(&mut events, contents, &tracks)?;
    let about = verdict_and_totals(contents.report);
    let other_data = json!({ "about": about, "started_unix_ns": contents.forest.started_unix_ns });
    writeln!(events.out, "\n],\"otherData\":{other_data}}}")
}

fn write_launches(events: &mut Events<'_>, contents: &Contents<'_, '_>, tracks: &Tracks) -> io::Result<()> {
    for (track, thread) in tracks.all.iter().zip(FIRST_LAUNCH_THREAD..) {
        let command = contents.forest.launches[track.first_launch].command.label();
        events.write(&metadata("thread_name", Some(thread), &text::escape(&command)))?;
        let mut order = metadata("thread_sort_index", Some(thread), "");
        order["args"] = json!({ "sort_index": thread });
        events.write(&order)?;
    }
    let writer = LaunchWriter::new(contents, tracks);
    for (index, launch) in contents.forest.launches.iter().enumerate() {
        let Some((track, (span, pieces))) = tracks.track_of[index].zip(Span::with_phases(contents.forest, launch))
        else {
            continue;
        };
        let thread = FIRST_LAUNCH_THREAD + u64::from(track);
        let name = super::launches::title(launch);
        let mut event = slice(thread, "launch", &name, span.start, span.end);
        event["args"] = writer.arguments(index).into_iter().filter_map(argument).collect::<Map<_, _>>().into();
        events.write(&event)?;
        for piece in pieces.iter().filter(|piece| piece.end > piece.start) {
            events.write(&slice(thread, "phase", piece.phase.name(), piece.start, piece.end))?;
        }
    }
    Ok(())
}

fn argument(annotation: super::DebugAnnotation) -> Option<(String, Value)> {
    let number = annotation.int_value.map(Value::from);
    Some((annotation.name?, number.or(annotation.string_value.map(Value::from))?))
}

/// The events of the trace, one per line.
struct Events<'o> {
    out: &'o mut dyn Write,
    is_first: bool,
}

impl Events<'_> {
    fn write(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.is_first) {
            self.out.write_all(b",\n")?;
        }
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }
}

/// Returns a complete event. Its times are in microseconds, with fractions for the nanoseconds.
fn slice(thread: u64, category: &str, name: &str, start: Nanos, end: Nanos) -> Value {
    let [start, duration] = [start, end.since(start)].map(|time| time.0 as f64 / 1e3);
    json!({
        "ph": "X", "pid": PROCESS, "tid": thread, "cat": category, "name": name, "ts": start, "dur": duration,
    })
}

/// Returns a metadata event that names the process or one of its threads.
fn metadata(what: &str, thread: Option<u64>, name: &str) -> Value {
    json!({ "ph": "M", "pid": PROCESS, "tid": thread.unwrap_or(0), "name": what, "args": { "name": name } })
}
