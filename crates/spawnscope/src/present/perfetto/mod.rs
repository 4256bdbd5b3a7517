//! Writes a Perfetto trace: one group with the critical path and, nested by parent, the launches.
//! `tracks` decides which launches share a track, `launches` draws them, `messages` defines the
//! protobuf messages.

mod launches;
mod messages;
mod tracks;

use std::io::{self, Write};

use self::launches::LaunchWriter;
use self::messages::{Message, begin, clock, end, event_packet, packet, track, track_packet};
use self::tracks::{Track, Tracks};
use super::{critical, headline, text, units, verdict, words};
use crate::analyze::Forest;
use crate::analyze::explain::report::{Report, Spent};
use crate::analyze::path::critical_path::{Charge, Stretch};
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
    fn packet(&mut self, contents: &Message) -> io::Result<()> {
        self.0.write_all(&packet(contents))
    }

    fn track(&mut self, track: &Message) -> io::Result<()> {
        self.packet(&track_packet(track))
    }

    fn event(&mut self, at: Nanos, event: &Message) -> io::Result<()> {
        self.packet(&event_packet(at, event))
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
        format!("{}{pid}", launches::title(launch))
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
