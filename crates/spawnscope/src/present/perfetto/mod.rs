//! Writes a Perfetto trace: one group with the critical path and, nested by parent, the launches. `tracks` decides which launches share a
//! track, `launches` draws them, `messages` defines the protobuf messages.

mod launches;
mod messages;
mod tracks;

use std::io::{self, Write};

use prost::Message;

use self::launches::LaunchWriter;
use self::messages::{
    ChildTracksOrdering, DebugAnnotation, SiblingMergeBehavior, TracePacket, TrackDescriptor, TrackEvent,
};
use self::tracks::{Track, Tracks};
use super::{critical, summary, table, text, units, verdict, words};
use crate::analyze::Forest;
use crate::analyze::explain::report::{Report, Spent};
use crate::analyze::path::critical_path::{Charge, Stretch};
use crate::event::Nanos;

/// Maximum width of names, in columns. Longer names are of no use in a timeline, and would make traces of long command lines huge.
const NAME_COLUMNS: usize = 200;
/// The id of the track that groups all others. Track 0 belongs to Perfetto.
const ROOT: u64 = 1;
/// The id of the track of the critical path.
const CRITICAL_PATH: u64 = 2;
/// The id of the first track of launches.
const FIRST_LAUNCH_TRACK: u64 = 3;

/// What a trace shows.
pub struct Contents<'c, 'a> {
    /// The launches.
    pub forest: &'c Forest<'a>,
    /// The report on them.
    pub report: &'c Report,
    /// The critical path by time. Empty if it is unknown.
    pub critical_path: &'c [Stretch],
    /// For each launch, how long its parent waited for it.
    pub waits_of_parents: &'c [Nanos],
    /// For each launch, how long its threads waited for a CPU.
    pub run_queue: &'c [Nanos],
}

/// Writes the whole trace. Time zero is the start of the recording; the UI shows wall-clock time from the clock snapshot.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(out: &mut dyn Write, contents: &Contents<'_, '_>) -> io::Result<()> {
    let mut trace = Trace { out, buffer: Vec::new() };
    let forest = contents.forest;
    trace.packet(&TracePacket::clock(forest.started_unix_ns))?;
    trace.packet(&root_track(contents.report))?;
    if !contents.critical_path.is_empty() {
        trace.write_critical_path(contents)?;
    }
    let tracks = Tracks::arrange(forest);
    for (track, uuid) in tracks.all.iter().zip(FIRST_LAUNCH_TRACK..) {
        trace.packet(&launch_track(forest, track, uuid))?;
    }
    LaunchWriter::new(contents, &tracks).write(&mut trace)
}

struct Trace<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
}

impl Trace<'_> {
    /// Writes a packet. A trace is a message with a single repeated field, number 1, so packets can be written one after another.
    fn packet(&mut self, packet: &TracePacket) -> io::Result<()> {
        const PACKET_TAG: u8 = (1 << 3) | 2;
        self.buffer.clear();
        self.buffer.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn slice(&mut self, start: Nanos, end: Nanos, begin: TrackEvent) -> io::Result<()> {
        let track = begin.track_uuid.unwrap_or_default();
        self.packet(&TracePacket::event(start, begin))?;
        self.packet(&TracePacket::event(end, TrackEvent::end(track)))
    }

    fn write_critical_path(&mut self, contents: &Contents<'_, '_>) -> io::Result<()> {
        self.packet(&TracePacket::track(TrackDescriptor {
            uuid: Some(CRITICAL_PATH),
            parent_uuid: Some(ROOT),
            name: Some("critical path".to_owned()),
            description: Some("Each moment counts once, for the activity that delayed the end.".to_owned()),
            sibling_order_rank: Some(0),
            ..TrackDescriptor::default()
        }))?;
        for stretch in contents.critical_path {
            let mut begin = TrackEvent::begin(CRITICAL_PATH, "critical path", charge_name(contents, stretch.charge));
            begin.debug_annotations = pid_annotation(contents.forest, stretch.charge).into_iter().collect();
            self.slice(stretch.start, stretch.end, begin)?;
        }
        Ok(())
    }
}

/// Returns the group of all tracks. Its description has the verdict and the totals.
fn root_track(report: &Report) -> TracePacket {
    TracePacket::track(TrackDescriptor {
        uuid: Some(ROOT),
        name: Some(format!("spawnscope: {}", table::title(report, NAME_COLUMNS))),
        description: Some(verdict_and_totals(report)),
        child_ordering: Some(ChildTracksOrdering::Explicit as i32),
        ..TrackDescriptor::default()
    })
}

fn verdict_and_totals(report: &Report) -> String {
    let sentences = [verdict::verdict(report), Some(format!("{}.", summary::totals(report)))];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns the description of a track of launches. Tracks are in order of creation, so their position is their rank.
fn launch_track(forest: &Forest<'_>, track: &Track, uuid: u64) -> TracePacket {
    let launch = &forest.launches[track.first_launch];
    let name = if track.launches > 1 {
        let launches = units::counted(track.launches, "launch", "launches");
        format!("{} ({launches})", text::escape(&launch.command.label()))
    } else {
        let pid = launch.pid.map(|pid| format!(" ({})", pid.0)).unwrap_or_default();
        format!("{}{pid}", launches::title(launch))
    };
    TracePacket::track(TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: Some(track.parent.map_or(ROOT, track_uuid)),
        name: Some(name),
        child_ordering: Some(ChildTracksOrdering::Explicit as i32),
        sibling_order_rank: i32::try_from(uuid).ok(),
        sibling_merge_behavior: Some(SiblingMergeBehavior::None as i32),
        ..TrackDescriptor::default()
    })
}

/// Returns the id of the track at a position.
fn track_uuid(track: u32) -> u64 {
    FIRST_LAUNCH_TRACK + u64::from(track)
}

fn charge_name(contents: &Contents<'_, '_>, charge: Charge) -> String {
    match charge {
        Charge::Phase(launch, phase) => format!("{}: {}", command_label(contents, launch), phase.name()),
        Charge::RunQueue(launch) => format!("{}: waiting for a CPU", command_label(contents, launch)),
        Charge::ExternalWait(what) => {
            let process = what.process().map(|name| contents.forest.text(name));
            critical::description(&Spent::ExternalWait(what, process.map(<[u8]>::to_vec)))
        }
    }
}

fn command_label(contents: &Contents<'_, '_>, launch: u32) -> String {
    text::escape(&contents.forest.launches[launch as usize].command.label())
}

fn pid_annotation(forest: &Forest<'_>, charge: Charge) -> Option<DebugAnnotation> {
    let (Charge::Phase(launch, _) | Charge::RunQueue(launch)) = charge else {
        return None;
    };
    let pid = forest.launches[launch as usize].pid?;
    Some(DebugAnnotation::number("pid", u64::try_from(pid.0).ok()?))
}
