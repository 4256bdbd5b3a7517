//! Writes a Perfetto trace: one group with the critical path and, nested by parent, the launches,
//! each as a slice with its phases nested in it and an arrow from its parent. `tracks` decides
//! which launches share a track. Packets are protobuf messages with the field numbers of Perfetto's
//! trace protos.

mod tracks;

use std::io::{self, Write};

use self::tracks::{Span, Track, Tracks};
use super::html::push_varint;
use super::{critical, headline, text, units, verdict, words};
use crate::analyze::Forest;
use crate::analyze::explain::report::{Report, Spent};
use crate::analyze::model::launch::{Launch, Outcome};
use crate::analyze::model::pieces::Piece;
use crate::analyze::path::critical_path::{Charge, Stretch};
use crate::analyze::sites::callers::{Callers, Detail};
use crate::event::Nanos;

/// Maximum width of names, in columns. Longer names are of no use in a timeline, and would make
/// traces of long command lines huge.
const NAME_COLUMNS: usize = 200;
/// The id of the track that groups all others. Track 0 belongs to Perfetto.
const ROOT: u64 = 1;
const CRITICAL_PATH: u64 = 2;
const FIRST_LAUNCH_TRACK: u64 = 3;

pub struct Contents<'c, 'a> {
    pub forest: &'c Forest<'a>,
    pub report: &'c Report,
    /// The critical path by time. Empty if it is unknown.
    pub critical_path: &'c [Stretch],
    pub waits_of_parents: &'c [Nanos],
    /// For each launch, how long its threads waited for a CPU.
    pub run_queue: &'c [Nanos],
}

/// Writes the whole trace. Time zero is the start of the recording; the UI shows wall-clock time
/// from the clock snapshot.
pub fn write(out: &mut dyn Write, contents: &Contents<'_, '_>) -> io::Result<()> {
    let mut trace = Trace(out);
    let forest = contents.forest;
    trace.packet(&clock(forest.started_unix_ns))?;
    trace.track(&root_track(contents.report))?;
    if !contents.critical_path.is_empty() {
        trace.write_critical_path(contents)?;
    }
    let tracks = Tracks::arrange(forest);
    for (track, uuid) in tracks.all.iter().zip(FIRST_LAUNCH_TRACK..) {
        trace.track(&launch_track(forest, track, uuid))?;
    }
    LaunchWriter::new(contents, &tracks).write(&mut trace)
}

struct Trace<'o>(&'o mut dyn Write);

impl Trace<'_> {
    /// Writes a `TracePacket` as a field of the trace. A trace is a message with a single repeated
    /// field, so packets can be written one after another.
    fn packet(&mut self, contents: &Message) -> io::Result<()> {
        self.0.write_all(&Message::default().message(1, contents).0)
    }

    fn track(&mut self, track: &Message) -> io::Result<()> {
        self.packet(&Message::default().number(10, SEQUENCE).message(60, track))
    }

    fn event(&mut self, at: Nanos, event: &Message) -> io::Result<()> {
        self.packet(&Message::default().number(8, at.0).number(10, SEQUENCE).message(11, event))
    }

    fn write_critical_path(&mut self, contents: &Contents<'_, '_>) -> io::Result<()> {
        let description = "Each moment counts once, for the activity on the critical path.";
        self.track(&track(CRITICAL_PATH, "critical path").inside(ROOT, 0).described(description))?;
        for stretch in contents.critical_path {
            let slice = begin(CRITICAL_PATH, "critical path", &charge_name(contents, stretch.charge));
            let pid = pid(contents.forest, stretch.charge);
            self.event(stretch.start, &slice.with_number("pid", pid))?;
            self.event(stretch.end, &end(CRITICAL_PATH))?;
        }
        Ok(())
    }
}

/// Returns the group of all tracks. Its description has the verdict and the totals.
fn root_track(report: &Report) -> Message {
    let name = format!("spawnscope: {}", headline::title(report, NAME_COLUMNS));
    track(ROOT, &name).described(&verdict_and_totals(report)).with_ranks()
}

fn verdict_and_totals(report: &Report) -> String {
    let sentences = [verdict::verdict(report), Some(format!("{}.", headline::totals(report)))];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns the description of a track of launches. Tracks are in order of creation, so their
/// position is their rank.
fn launch_track(forest: &Forest<'_>, shared: &Track, uuid: u64) -> Message {
    let launch = &forest.launches[shared.first_launch];
    let name = if shared.launches > 1 {
        let launches = units::counted(shared.launches, "launch", "launches");
        format!("{} ({launches})", text::escape(&launch.command.label()))
    } else {
        let pid = launch.pid.get().map(|pid| format!(" ({})", pid.0)).unwrap_or_default();
        format!("{}{pid}", launch_title(launch))
    };
    track(uuid, &name).inside(shared.parent.map_or(ROOT, track_uuid), uuid).with_ranks().unmerged()
}

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

fn pid(forest: &Forest<'_>, charge: Charge) -> Option<u64> {
    let (Charge::Phase(launch, _) | Charge::RunQueue(launch)) = charge else { return None };
    u64::try_from(forest.launches[launch as usize].pid.get()?.0).ok()
}

/// The category of launches, and of the beginnings of arrows.
const LAUNCH_CATEGORY: &str = "launch";
const PHASE_CATEGORY: &str = "phase";

struct LaunchWriter<'w, 'c, 'a> {
    contents: &'w Contents<'c, 'a>,
    tracks: &'w Tracks,
    callers: Callers,
}

impl<'w, 'c, 'a> LaunchWriter<'w, 'c, 'a> {
    fn new(contents: &'w Contents<'c, 'a>, tracks: &'w Tracks) -> Self {
        LaunchWriter { contents, tracks, callers: Callers::find(contents.forest, Detail::Line) }
    }

    fn write(&self, trace: &mut Trace<'_>) -> io::Result<()> {
        let forest = self.contents.forest;
        for (index, launch) in forest.launches.iter().enumerate() {
            let track = self.tracks.track_of[index].map(track_uuid);
            if let Some((track, (span, phases))) = track.zip(Span::with_phases(forest, launch)) {
                self.write_launch(trace, index, track, span, &phases)?;
            }
        }
        Ok(())
    }

    fn write_launch(
        &self,
        trace: &mut Trace<'_>,
        index: usize,
        track: u64,
        span: Span,
        phases: &[Piece],
    ) -> io::Result<()> {
        let launch = &self.contents.forest.launches[index];
        let mut slice = self.with_arguments(index, begin(track, LAUNCH_CATEGORY, &launch_title(launch)));
        if let Some((at, fork)) = self.fork(index, span.start) {
            slice = slice.with_arrowhead(launch.id.0);
            trace.event(at, &fork)?;
        }
        trace.event(span.start, &slice)?;
        for piece in phases.iter().filter(|piece| piece.end > piece.start) {
            trace.event(piece.start, &begin(track, PHASE_CATEGORY, piece.phase.name()))?;
            trace.event(piece.end, &end(track))?;
        }
        trace.event(span.end, &end(track))
    }

    /// Returns the beginning of the arrow to a launch: a moment on its parent's track, inside its
    /// parent's slice.
    fn fork(&self, index: usize, start: Nanos) -> Option<(Nanos, Message)> {
        let forest = self.contents.forest;
        let launch = &forest.launches[index];
        let parent = forest.parent(index).filter(|_| launch.is_launch())?;
        let parent_span = self.tracks.spans[parent];
        let at = parent_span.map_or(start, |span| start.min(span.end));
        if parent_span.is_some_and(|span| at < span.start) {
            return None;
        }
        let track = track_uuid(self.tracks.track_of[parent]?);
        Some((at, instant(track, LAUNCH_CATEGORY, "fork").with_arrow(launch.id.0)))
    }

    /// Adds what the UI shows about a launch when it is selected.
    fn with_arguments(&self, index: usize, slice: Message) -> Message {
        let launch = &self.contents.forest.launches[index];
        let exec = launch.execs.last();
        let call_site = self.callers.call_site_of(index);
        let failed_execs = self.contents.forest.failed_execs(index).len() as u64;
        let [parent_wait, run_queue] = [self.contents.waits_of_parents, self.contents.run_queue]
            .map(|spans| spans.get(index).map(|span| span.0).filter(|span| *span > 0));
        slice
            .with_number("pid", launch.pid.get().and_then(|pid| u64::try_from(pid.0).ok()))
            .with_text("argv", exec.map(|exec| text::command_line(exec.arguments(), None)))
            .with_text("cwd", exec.and_then(|exec| exec.cwd()).map(text::escape))
            .with_text("exit", outcome(launch))
            .with_text("call_site", call_site.map(|call_site| text::escape(&call_site.label())))
            .with_text("mechanism", launch.mechanism.map(|mechanism| mechanism.name().to_owned()))
            .with_number("parent_wait_ns", parent_wait)
            .with_number("run_queue_ns", run_queue)
            .with_number("cpu_ns", launch.cpu.get().map(|cpu| cpu.0))
            .with_number("parent_rss_bytes", launch.parent_rss_bytes.get())
            .with_number("failed_execs", Some(failed_execs).filter(|failed| *failed > 0))
    }
}

/// Returns the title of a launch's slice: the program and its arguments, shortened.
fn launch_title(launch: &Launch<'_>) -> String {
    text::truncate(&words::program(launch, Some(NAME_COLUMNS)), NAME_COLUMNS)
}

fn outcome(launch: &Launch<'_>) -> Option<String> {
    match launch.outcome {
        Outcome::Code(0) => Some("exit 0".to_owned()),
        Outcome::Unknown => None,
        other => Some(words::outcome(other)),
    }
}

/// All packets form one sequence. They refer to each other only by track ids.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: the first packet does not depend on earlier ones.
const STATE_CLEARED: u64 = 1;
/// Perfetto's `BUILTIN_CLOCK_REALTIME`.
const REALTIME: u64 = 1;
/// Perfetto's `BUILTIN_CLOCK_BOOTTIME`, the default clock of timestamps.
const BOOTTIME: u64 = 6;
/// `ChildTracksOrdering.EXPLICIT`: by `sibling_order_rank`.
const EXPLICIT: u64 = 3;
/// `SiblingMergeBehavior.SIBLING_MERGE_BEHAVIOR_NONE`: by default, the UI merges siblings of the
/// same name.
const NO_MERGING: u64 = 2;
/// `TrackEvent.Type`
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;

/// A protobuf message. Fields are appended in any order.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, wire_type: u64) {
        push_varint(&mut self.0, (field << 3) | wire_type);
    }

    fn number(mut self, field: u64, number: u64) -> Message {
        self.key(field, 0);
        push_varint(&mut self.0, number);
        self
    }

    fn fixed(mut self, field: u64, number: u64) -> Message {
        self.key(field, 1);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.key(field, 2);
        push_varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }

    /// Nests a track in another one, in the order of ranks.
    fn inside(self, parent: u64, rank: u64) -> Message {
        self.number(5, parent).number(12, rank)
    }

    fn described(self, description: &str) -> Message {
        self.text(14, description)
    }

    /// Orders the tracks inside of a track by their ranks.
    fn with_ranks(self) -> Message {
        self.number(11, EXPLICIT)
    }

    /// Keeps a track apart from siblings of the same name.
    fn unmerged(self) -> Message {
        self.number(15, NO_MERGING)
    }

    fn with_arrow(self, id: u64) -> Message {
        self.fixed(47, id)
    }

    fn with_arrowhead(self, id: u64) -> Message {
        self.fixed(48, id)
    }

    /// Adds an argument of a slice, if it is known.
    fn with_text(self, name: &str, value: Option<String>) -> Message {
        self.with_argument(name, value.map(|text| Message::default().text(6, &text)))
    }

    /// Adds an argument of a slice, if it is known. Numbers are signed 64-bit integers.
    fn with_number(self, name: &str, value: Option<u64>) -> Message {
        self.with_argument(name, value.map(|number| Message::default().number(4, number)))
    }

    fn with_argument(self, name: &str, value: Option<Message>) -> Message {
        match value {
            Some(value) => self.message(4, &value.text(10, name)),
            None => self,
        }
    }
}

/// Maps time zero, the start of the recording, to the wall clock.
fn clock(started_unix_ns: i64) -> Message {
    let unix_ns = u64::try_from(started_unix_ns).unwrap_or_default();
    let clocks = [(BOOTTIME, 0), (REALTIME, unix_ns)].into_iter().fold(Message::default(), |clocks, (id, at)| {
        clocks.message(1, &Message::default().number(1, id).number(2, at))
    });
    Message::default().message(6, &clocks).number(8, 0).number(10, SEQUENCE).number(13, STATE_CLEARED)
}

/// `TrackDescriptor`. A track with a process or a thread would not be nested: Perfetto ignores the
/// parent of such a track.
fn track(uuid: u64, name: &str) -> Message {
    Message::default().number(1, uuid).text(2, name)
}

fn begin(track: u64, category: &str, name: &str) -> Message {
    event(track, SLICE_BEGIN).text(22, category).text(23, name)
}

/// The end of the slice that began last on the track.
fn end(track: u64) -> Message {
    event(track, SLICE_END)
}

fn instant(track: u64, category: &str, name: &str) -> Message {
    event(track, INSTANT).text(22, category).text(23, name)
}

fn event(track: u64, kind: u64) -> Message {
    Message::default().number(9, kind).number(11, track)
}
