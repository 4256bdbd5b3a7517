//! Writes a Perfetto trace: one track per process, one slice per launch with its phases nested in it, and arrows from parent to child.
//! Defines the few protobuf messages that it needs (field numbers of Perfetto's trace protos) and writes packet by packet.

use std::io::{self, Write};

use prost::Message;

use super::{text, words};
use crate::analyze::Forest;
use crate::analyze::launch::Launch;
use crate::analyze::pieces::Piece;
use crate::event::Nanos;

/// All packets form one sequence. They refer to each other only by track ids.
const SEQUENCE: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: the first packet does not depend on earlier ones.
const STATE_CLEARED: u32 = 1;
/// Perfetto's `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_BOOTTIME`. Timestamps use the latter by default.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
/// Longer names are of no use in a timeline and would make traces of long command lines huge.
const NAME_COLUMNS: usize = 200;

/// `perfetto.protos.TracePacket`
#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

/// `perfetto.protos.ClockSnapshot`
#[derive(Clone, PartialEq, Message)]
struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    clocks: Vec<Clock>,
}

/// `perfetto.protos.ClockSnapshot.Clock`
#[derive(Clone, PartialEq, Message)]
struct Clock {
    #[prost(uint32, optional, tag = "1")]
    clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    timestamp: Option<u64>,
}

/// `perfetto.protos.TrackDescriptor`
#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
}

/// `perfetto.protos.ProcessDescriptor`
#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    cmdline: Vec<String>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
    #[prost(int64, optional, tag = "7")]
    start_timestamp_ns: Option<i64>,
}

/// `perfetto.protos.TrackEvent`
#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

/// `perfetto.protos.TrackEvent.Type`
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// `perfetto.protos.DebugAnnotation`
#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    int_value: Option<i64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

/// Writes the whole trace. Time zero is the start of the recording; the UI shows wall-clock time from the clock snapshot.
pub fn write(out: &mut dyn Write, forest: &Forest<'_>) -> io::Result<()> {
    let mut trace = Trace {
        out,
        buffer: Vec::new(),
    };
    trace.packet(&first_packet(forest.started_unix_ns))?;
    for index in 0..forest.launches.len() {
        trace.launch(forest, index)?;
    }
    Ok(())
}

struct Trace<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
}

impl Trace<'_> {
    /// A trace is a message with a single repeated field, number 1, so packets can be written one after another.
    fn packet(&mut self, packet: &TracePacket) -> io::Result<()> {
        const PACKET_TAG: u8 = (1 << 3) | 2;
        self.buffer.clear();
        self.buffer.push(PACKET_TAG);
        packet
            .encode_length_delimited(&mut self.buffer)
            .map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn launch(&mut self, forest: &Forest<'_>, index: usize) -> io::Result<()> {
        let launch = &forest.launches[index];
        self.packet(&descriptor(launch))?;
        let ended_by = if launch.is_unfinished() {
            Some(forest.end)
        } else {
            launch.end()
        };
        let (Some(start), Some(end)) = (launch.start(), ended_by) else {
            return Ok(());
        };
        let phases = launch.pieces(Some(forest.end));
        // Phases are clipped if two CPUs disagree about the order of events; the slice must still enclose them all.
        let start = phases.first().map_or(start, |first| first.start.min(start));
        let end = phases.last().map_or(end, |last| last.end.max(end)).max(start);

        let flow = launch.id.0;
        let parent = forest
            .parent(index)
            .map(|parent| &forest.launches[parent])
            .filter(|_| launch.is_launch());
        if let Some(parent) = parent {
            self.packet(&fork_instant(parent, start, flow))?;
        }
        let name = text::truncate(&words::program(launch, Some(NAME_COLUMNS)), NAME_COLUMNS);
        let mut slice = event(launch, EventType::SliceBegin);
        slice.name = Some(name);
        slice.categories = vec!["launch".to_owned()];
        slice.debug_annotations = annotations(launch, forest.failed_execs(index).len() as u64);
        slice.terminating_flow_ids = parent.map(|_| flow).into_iter().collect();
        self.packet(&at(start, slice))?;
        for piece in phases.iter().filter(|piece| piece.end > piece.start) {
            self.phase(launch, piece)?;
        }
        self.packet(&at(end, event(launch, EventType::SliceEnd)))
    }

    fn phase(&mut self, launch: &Launch<'_>, piece: &Piece) -> io::Result<()> {
        let mut slice = event(launch, EventType::SliceBegin);
        slice.name = Some(piece.phase.name().to_owned());
        slice.categories = vec!["phase".to_owned()];
        self.packet(&at(piece.start, slice))?;
        self.packet(&at(piece.end, event(launch, EventType::SliceEnd)))
    }
}

fn first_packet(started_unix_ns: i64) -> TracePacket {
    let clock = |id, timestamp| Clock {
        clock_id: Some(id),
        timestamp: Some(timestamp),
    };
    let unix_ns = u64::try_from(started_unix_ns).unwrap_or_default();
    TracePacket {
        clock_snapshot: Some(ClockSnapshot {
            clocks: vec![clock(BOOTTIME, 0), clock(REALTIME, unix_ns)],
        }),
        timestamp: Some(0),
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(STATE_CLEARED),
        ..TracePacket::default()
    }
}

/// Describes the track of a process. The start time distinguishes processes that had the same pid.
fn descriptor(launch: &Launch<'_>) -> TracePacket {
    let arguments = launch
        .execs
        .last()
        .map(|exec| exec.arguments().map(text::escape).collect());
    let process = ProcessDescriptor {
        pid: launch.pid.map(|pid| pid.0),
        cmdline: arguments.unwrap_or_default(),
        process_name: Some(text::escape(&launch.command.label())),
        start_timestamp_ns: launch.start().and_then(|start| i64::try_from(start.0).ok()),
    };
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(TrackDescriptor {
            uuid: Some(track_of(launch)),
            process: Some(process),
        }),
        ..TracePacket::default()
    }
}

/// Returns the track id. Track 0 belongs to Perfetto, and a launch may have id 0.
fn track_of(launch: &Launch<'_>) -> u64 {
    launch.id.0 + 1
}

fn event(launch: &Launch<'_>, r#type: EventType) -> TrackEvent {
    TrackEvent {
        r#type: Some(r#type as i32),
        track_uuid: Some(track_of(launch)),
        ..TrackEvent::default()
    }
}

fn at(when: Nanos, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(when.0),
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

/// Returns the start of the arrow to a child: an instant on the parent's track at the time of the fork.
fn fork_instant(parent: &Launch<'_>, when: Nanos, flow: u64) -> TracePacket {
    let mut instant = event(parent, EventType::Instant);
    instant.name = Some("fork".to_owned());
    instant.categories = vec!["launch".to_owned()];
    instant.flow_ids = vec![flow];
    at(when, instant)
}

fn annotations(launch: &Launch<'_>, failed_execs: u64) -> Vec<DebugAnnotation> {
    let word = |name: &str, value: String| DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(value),
        int_value: None,
    };
    let number = |name: &str, value: u64| DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: None,
        int_value: i64::try_from(value).ok(),
    };
    let outcome = Some(words::outcome(launch.outcome)).filter(|outcome| !outcome.is_empty());
    let cwd = launch.execs.last().and_then(|exec| exec.cwd());
    let failed_execs = Some(failed_execs).filter(|failed| *failed > 0);
    [
        launch
            .mechanism
            .map(|mechanism| word("mechanism", mechanism.name().to_owned())),
        cwd.map(|cwd| word("cwd", text::escape(cwd))),
        outcome.map(|outcome| word("exit", outcome)),
        launch
            .parent_rss_bytes
            .get()
            .map(|bytes| number("parent_rss_bytes", bytes)),
        launch.cpu.get().map(|cpu| number("cpu_ns", cpu.0)),
        failed_execs.map(|failed| number("failed_execs", failed)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
