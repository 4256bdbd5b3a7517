//! Chooses the window for the part of a recording that the user requested.

use super::{Window, WindowSpan, episodes};
use crate::model::tree::Forest;
use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_data::rows::{Origin, Recording, Scope, ThreadRow};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole recording. For a recording of the whole machine there is then no critical path.
    Whole,
    /// The default: the whole recording of a command or of a process (`-p`); the busiest episode of
    /// a recording of the whole machine.
    Main,
    /// The episode with this number, from 1, in the order of `episodes`.
    Episode(usize),
    Span {
        /// The start of the span. `None` is the start of the recording.
        from: Option<Nanos>,
        /// The end of the span. `None` is the end of the recording.
        to: Option<Nanos>,
        /// The process to explain. `None` chooses the command, the process of `-p`, or the owner of
        /// the busiest episode in the span.
        pid: Option<Pid>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WindowError {
    /// There are fewer episodes than the requested number.
    #[error("the recording has no episode {number}: it has {count} (`spawnscope report --full` lists them)")]
    NoEpisode { number: usize, count: usize },
    /// A recording of the whole machine has no episode, because nothing was launched or nothing was
    /// reaped.
    #[error("no process launched another one and reaped it while this machine was recorded")]
    NoEpisodes,
    #[error("the span from {:.3} s to {:.3} s is empty: the recording lasts {:.3} s", seconds(*.from), seconds(*.to), seconds(*.end))]
    EmptySpan { from: Nanos, to: Nanos, end: Nanos },
    #[error("no recorded process has the pid {} in that span", .0.0)]
    NoProcess(Pid),
    #[error("nothing was launched in that span")]
    NoLaunches,
}

fn seconds(at: Nanos) -> f64 {
    at.0 as f64 / 1e9
}

/// Returns the window for a part of a recording. `None` is the whole recording.
pub fn choose(
    recording: &Recording,
    forest: &Forest<'_>,
    threads: &[ThreadRow],
    part: Part,
) -> Result<Option<Window>, WindowError> {
    let info = &recording.info;
    let span = match (part, info.scope) {
        (Part::Whole, Scope::Command | Scope::System) | (Part::Main, Scope::Command) => return Ok(None),
        (Part::Whole | Part::Main, Scope::Process) => match followed(forest) {
            Some(owner) => WindowSpan { owner, from: Nanos(0), to: forest.end },
            None => return Ok(None),
        },
        (Part::Main, Scope::System) => episodes(forest).first().ok_or(WindowError::NoEpisodes)?.span,
        (Part::Episode(number), _) => episode(forest, number)?,
        (Part::Span { from, to, pid }, _) => {
            let (from, to) = (from.unwrap_or_default(), to.unwrap_or(forest.end).min(forest.end));
            if from >= to {
                return Err(WindowError::EmptySpan { from, to, end: forest.end });
            }
            let owner = owner(recording, forest, (from, to), pid)?;
            WindowSpan { owner, from, to }
        }
    };
    Ok(Window::new(forest, threads, span))
}

fn episode(forest: &Forest<'_>, number: usize) -> Result<WindowSpan, WindowError> {
    let found = episodes(forest);
    let episode = number.checked_sub(1).and_then(|index| found.get(index));
    episode.map(|episode| episode.span).ok_or(WindowError::NoEpisode { number, count: found.len() })
}

fn owner(
    recording: &Recording,
    forest: &Forest<'_>,
    (from, to): (Nanos, Nanos),
    pid: Option<Pid>,
) -> Result<LaunchId, WindowError> {
    if let Some(pid) = pid {
        let mut with_pid = forest.launches.iter().filter(|launch| launch.pid.get() == Some(pid));
        let launch = with_pid.find(|launch| launch.existed_between(from, to));
        return launch.map(|launch| launch.id).ok_or(WindowError::NoProcess(pid));
    }
    let named = match recording.info.scope {
        Scope::Command => forest.root.map(|root| forest.launches[root].id),
        Scope::Process => followed(forest),
        Scope::System => None,
    };
    let owner = named.or_else(|| {
        let mut spans = episodes(forest).into_iter().map(|episode| episode.span);
        spans.find(|span| span.from < to && span.to > from).map(|span| span.owner)
    });
    owner.ok_or(WindowError::NoLaunches)
}

/// Returns the process that `-p` followed: the first one that existed before the recording.
fn followed(forest: &Forest<'_>) -> Option<LaunchId> {
    let launch = forest.launches.iter().find(|launch| launch.origin == Origin::Existed)?;
    Some(launch.id)
}
