//! Measures the phases exec, load and run of a command by warm starts under `spawnscope record`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

use crate::harness::{Estimate, MIN_ROUNDS};
use crate::worker::protocol::Program;

/// The phases that are reported, in this order.
pub const PHASES: [&str; 3] = ["exec", "load", "run"];

/// Why the phases are unknown.
pub enum NoPhases {
    /// The phases of this command are unknown.
    ThisCommand(String),
    /// The phases of every command are unknown, because `record` itself failed.
    AnyCommand(String),
}

/// The script that is recorded: it starts a command `$1` times.
const SCRIPT: &str = "count=$1; shift; while [ $count -gt 0 ]; do \"$@\" || exit 1; count=$((count - 1)); done";
/// The exit status of `record` if it failed itself.
const RECORD_FAILED: i32 = 125;

/// Records warm starts of a program, and returns an estimate for each recorded phase. The phases are those of the started process, without
/// the processes that it launches itself.
pub fn record_phases(directory: &Path, program: &Program) -> Result<[Option<Estimate>; 3], NoPhases> {
    let recording = directory.join("runtime.db");
    let mut record = Command::new("/proc/self/exe");
    // The ptrace collector would lengthen the phases by its stops.
    record.args(["record", "--quiet", "--no-lines", "--collector", "ebpf", "-o"]);
    record.arg(&recording);
    record.args(["--", "/bin/sh", "-c", SCRIPT, "sh", &(MIN_ROUNDS + 1).to_string()]);
    let output = run(record.args(&program.argv))?;
    match output.status.code() {
        Some(0) => {}
        Some(RECORD_FAILED) => return Err(NoPhases::AnyCommand(reason(&output))),
        _ => {
            let reason = "a start under `record` failed";
            return Err(NoPhases::ThisCommand(reason.to_owned()));
        }
    }
    let mut export = Command::new("/proc/self/exe");
    let output = run(export.args(["export", "--format", "ndjson"]).arg(&recording))?;
    if !output.status.success() {
        return Err(NoPhases::ThisCommand(reason(&output)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let launches: Vec<Json> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    warm_start_phases(&launches)
        .ok_or_else(|| NoPhases::ThisCommand("the recording lacks some of its starts".to_owned()))
}

fn run(command: &mut Command) -> Result<Output, NoPhases> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| NoPhases::AnyCommand(format!("spawnscope cannot be run: {error}")))
}

/// Returns the first line of a command's error output, or else its exit status.
fn reason(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = errors.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(|| format!("it ended with {}", output.status), str::to_owned)
}

/// Returns the phases of the shell's children, except for the first, which found cold caches; `None` if there are too few.
fn warm_start_phases(launches: &[Json]) -> Option<[Option<Estimate>; 3]> {
    let shell = launches.iter().find(|launch| launch["parent"].is_null())?;
    let starts: Vec<&Json> = launches.iter().filter(|launch| launch["parent"] == shell["id"]).collect();
    let warm = starts.get(1..)?;
    if warm.len() < MIN_ROUNDS {
        return None;
    }
    Some(PHASES.map(|phase| {
        let values: Option<Vec<f64>> = warm.iter().map(|launch| launch["phases"][phase].as_f64()).collect();
        Estimate::from_values(&values?)
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phases_are_those_of_the_children_of_the_shell_except_for_the_first() {
        let mut launches = vec![launch(1, None, Some(9e9), 9e9), launch(2, Some(1), Some(8e8), 8e8)];
        for start in 0..6u64 {
            let id = 3 + 2 * start;
            launches.push(launch(id, Some(1), Some(100.0 + start as f64), 5.0));
            launches.push(launch(id + 1, Some(id), Some(7e7), 7e7));
        }
        let [exec, load, run] = warm_start_phases(&launches).unwrap().map(|phase| phase.unwrap());
        assert_eq!((exec.median, load.median, run.high, load.rounds), (7.0, 102.5, 5.0, 6));
        launches.push(launch(99, Some(1), None, 5.0));
        assert_eq!(warm_start_phases(&launches).unwrap()[1], None, "one of them is unknown");
        assert!(warm_start_phases(&launches[..6]).is_none(), "starts are missing");
        assert!(warm_start_phases(&[]).is_none());
    }

    fn launch(id: u64, parent: Option<u64>, load: Option<f64>, run: f64) -> Json {
        json!({"id": id, "parent": parent, "phases": {"exec": 7.0, "load": load, "run": run}})
    }
}
