//! The arguments that choose a window of a recording, shared by the verbs that explain one.

use clap::{Args, ValueHint};

use crate::analyze::model::window::Part;
use crate::event::{Nanos, Pid};

/// Which part of a recording to explain.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Part of the recording")]
pub struct WindowArguments {
    /// Only episode N, as numbered by `report --full`: a span in which one process launched others,
    /// such as a request of a server
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["from", "to", "process"])]
    pub episode: Option<u32>,
    /// Only what happened after the first S seconds of the recording
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_instant)]
    pub from: Option<Nanos>,
    /// Only what happened in the first S seconds of the recording
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_instant)]
    pub to: Option<Nanos>,
    /// Only the process PID and what it launches
    #[arg(long, value_name = "PID", value_hint = ValueHint::Other, value_parser = clap::value_parser!(i32).range(1..))]
    pub process: Option<i32>,
}

impl WindowArguments {
    /// Returns the part that the arguments name, or else `default`.
    pub fn part(&self, default: Part) -> Part {
        if let Some(number) = self.episode {
            return Part::Episode(number as usize);
        }
        if self.from.is_none() && self.to.is_none() && self.process.is_none() {
            return default;
        }
        Part::Span { from: self.from, to: self.to, pid: self.process.map(Pid) }
    }

    /// Returns the options as the user would type them, followed by the name of the recording.
    /// `None` if there are neither.
    pub fn with_file(&self, file: Option<String>) -> Option<String> {
        let typed = [
            self.episode.map(|number| format!("--episode {number}")),
            self.from.map(|at| format!("--from {}", at.0 as f64 / NANOS_PER_SECOND)),
            self.to.map(|at| format!("--to {}", at.0 as f64 / NANOS_PER_SECOND)),
            self.process.map(|pid| format!("--process {pid}")),
            file,
        ];
        let typed: Vec<String> = typed.into_iter().flatten().collect();
        (!typed.is_empty()).then(|| typed.join(" "))
    }
}

const NANOS_PER_SECOND: f64 = 1e9;
/// Maximum time after the start of a recording, in seconds: nanoseconds are stored as signed 64-bit
/// integers.
const MAX_SECONDS: f64 = 9e9;

fn parse_instant(text: &str) -> Result<Nanos, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=MAX_SECONDS).contains(&seconds) {
        return Err("give seconds after the start of the recording, such as 12.5".to_owned());
    }
    Ok(Nanos((seconds * NANOS_PER_SECOND) as u64))
}
