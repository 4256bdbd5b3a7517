//! Draws launches: a slice for each, with its phases nested in it, and an arrow from its parent.

use std::io;

use super::messages::{DebugAnnotation, TracePacket, TrackEvent};
use super::tracks::{Span, Tracks};
use super::{Contents, NAME_COLUMNS, Trace, text, track_uuid, words};
use crate::analyze::model::launch::{Launch, Outcome};
use crate::analyze::model::pieces::Piece;
use crate::analyze::sites::callers::{Callers, Detail};
use crate::event::Nanos;

/// The category of launches, and of the beginnings of arrows.
const LAUNCH_CATEGORY: &str = "launch";
/// The category of phases.
const PHASE_CATEGORY: &str = "phase";

pub(super) struct LaunchWriter<'w, 'c, 'a> {
    contents: &'w Contents<'c, 'a>,
    tracks: &'w Tracks,
    callers: Callers,
}

impl<'w, 'c, 'a> LaunchWriter<'w, 'c, 'a> {
    pub(super) fn new(contents: &'w Contents<'c, 'a>, tracks: &'w Tracks) -> Self {
        LaunchWriter { contents, tracks, callers: Callers::find(contents.forest, Detail::Line) }
    }

    /// Draws all launches whose start and end are known.
    pub(super) fn write(&self, trace: &mut Trace<'_>) -> io::Result<()> {
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
        let mut slice = TrackEvent::begin(track, LAUNCH_CATEGORY, title(launch));
        slice.debug_annotations = self.arguments(index);
        if let Some((at, fork)) = self.flow_start(index, span.start) {
            slice.terminating_flow_ids.clone_from(&fork.flow_ids);
            trace.packet(&TracePacket::event(at, fork))?;
        }
        trace.packet(&TracePacket::event(span.start, slice))?;
        for piece in phases.iter().filter(|piece| piece.end > piece.start) {
            let phase = TrackEvent::begin(track, PHASE_CATEGORY, piece.phase.name().to_owned());
            trace.slice(piece.start, piece.end, phase)?;
        }
        trace.packet(&TracePacket::event(span.end, TrackEvent::end(track)))
    }

    /// Returns the beginning of the arrow to a launch: a moment on its parent's track, inside its parent's slice.
    fn flow_start(&self, index: usize, start: Nanos) -> Option<(Nanos, TrackEvent)> {
        let forest = self.contents.forest;
        let launch = &forest.launches[index];
        let parent = forest.parent(index).filter(|_| launch.is_launch())?;
        let parent_span = self.tracks.spans[parent];
        let at = parent_span.map_or(start, |span| start.min(span.end));
        if parent_span.is_some_and(|span| at < span.start) {
            return None;
        }
        let mut fork =
            TrackEvent::instant(track_uuid(self.tracks.track_of[parent]?), LAUNCH_CATEGORY, "fork".to_owned());
        fork.flow_ids = vec![launch.id.0];
        Some((at, fork))
    }

    /// Returns what the UI shows about a launch when it is selected.
    fn arguments(&self, index: usize) -> Vec<DebugAnnotation> {
        let launch = &self.contents.forest.launches[index];
        let exec = launch.execs.last();
        let call_site = self.callers.call_site_of(index);
        let failed_execs = self.contents.forest.failed_execs(index).len() as u64;
        let [parent_wait, run_queue] = [self.contents.waits_of_parents, self.contents.run_queue]
            .map(|spans| spans.get(index).map(|span| span.0).filter(|span| *span > 0));
        let pid = launch.pid.and_then(|pid| u64::try_from(pid.0).ok()).map(|pid| DebugAnnotation::number("pid", pid));
        let texts = [
            ("argv", exec.map(|exec| text::command_line(exec.arguments(), None))),
            ("cwd", exec.and_then(|exec| exec.cwd()).map(text::escape)),
            ("exit", outcome(launch)),
            ("call_site", call_site.map(|call_site| text::escape(&call_site.label()))),
            ("mechanism", launch.mechanism.map(|mechanism| mechanism.name().to_owned())),
        ];
        let numbers = [
            ("parent_wait_ns", parent_wait),
            ("run_queue_ns", run_queue),
            ("cpu_ns", launch.cpu.get().map(|cpu| cpu.0)),
            ("parent_rss_bytes", launch.parent_rss_bytes.get()),
            ("failed_execs", Some(failed_execs).filter(|failed| *failed > 0)),
        ];
        let texts = texts.into_iter().filter_map(|(name, value)| Some(DebugAnnotation::text(name, value?)));
        let numbers = numbers.into_iter().filter_map(|(name, value)| Some(DebugAnnotation::number(name, value?)));
        pid.into_iter().chain(texts).chain(numbers).collect()
    }
}

/// Returns the title of a launch's slice: the program and its arguments, shortened.
pub(super) fn title(launch: &Launch<'_>) -> String {
    text::truncate(&words::program(launch, Some(NAME_COLUMNS)), NAME_COLUMNS)
}

fn outcome(launch: &Launch<'_>) -> Option<String> {
    match launch.outcome {
        Outcome::Code(0) => Some("exit 0".to_owned()),
        Outcome::Unknown => None,
        other => Some(words::outcome(other)),
    }
}
