//! Draws launches: a slice for each, with its phases nested in it, and an arrow from its parent.

use std::io;

use super::messages::{Message, begin, end, instant};
use super::tracks::{Span, Tracks};
use super::{Contents, NAME_COLUMNS, Trace, text, track_uuid, words};
use crate::analyze::model::launch::{Launch, Outcome};
use crate::analyze::model::pieces::Piece;
use crate::analyze::sites::callers::{Callers, Detail};
use crate::event::Nanos;

/// The category of launches, and of the beginnings of arrows.
const LAUNCH_CATEGORY: &str = "launch";
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
        let mut slice = self.with_arguments(index, begin(track, LAUNCH_CATEGORY, &title(launch)));
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
