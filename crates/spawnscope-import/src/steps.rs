//! Logs of build tools, which name spans of time: ninja's `.ninja_log`, the page that `cargo build
//! --timings` writes, cargo's log of `-Zbuild-analysis`, and Bazel's profile. They have no
//! processes, so they are no recordings; the analysis matches the spans with launches.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::BuildStep;

use crate::error::ImportError;
use crate::input::open_unpacked;
use crate::text::{after, find};

/// Maximum size of a log, unpacked.
const MAX_BYTES: u64 = 1 << 29;
const OTHER: &str = "none of the logs of build tools that are read: .ninja_log, cargo-timing.html, cargo's log of \
                     -Zbuild-analysis, Bazel's profile";

/// Reads the builds of a log, each with its steps.
///
/// # Errors
/// If the file cannot be read or has no steps.
pub fn build_steps(path: &Path) -> Result<Vec<Vec<BuildStep>>, ImportError> {
    let failed = |source| ImportError::Read { path: path.to_owned(), source };
    let mut text = Vec::new();
    open_unpacked(path).map_err(failed)?.take(MAX_BYTES).read_to_end(&mut text).map_err(failed)?;
    let mut builds = parse(&text);
    builds.retain(|steps| !steps.is_empty());
    match builds.is_empty() {
        true => Err(ImportError::Other { path: path.to_owned(), what: OTHER }),
        false => Ok(builds),
    }
}

/// Returns the builds of a log; none if it is something else.
pub(crate) fn parse(text: &[u8]) -> Vec<Vec<BuildStep>> {
    if text.starts_with(b"# ninja log v") {
        of_ninja(text)
    } else if let Some(units) = after(text, b"UNIT_DATA = ") {
        vec![first_value::<Vec<Unit>>(units).unwrap_or_default().into_iter().map(Unit::step).collect()]
    } else if find(text, b"\"unit-registered\"").is_some() {
        vec![of_build_analysis(text)]
    } else {
        let profile = first_value::<Profile>(text).map(|profile| profile.events).unwrap_or_default();
        vec![profile.into_iter().filter_map(Span::step).collect()]
    }
}

/// Reads ninja's log. A build appends its steps as they end, with times since its own start, so a
/// step that ends before the last one belongs to the next build. Of a step with several outputs,
/// the first one is taken.
fn of_ninja(text: &[u8]) -> Vec<Vec<BuildStep>> {
    let (mut builds, mut last) = (vec![Vec::new()], ([0; 2], &b""[..]));
    for line in text.split(|byte| *byte == b'\n').skip(1) {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        let [start, end, _, output, hash] = fields[..] else { continue };
        let times = [start, end].map(|field| str::from_utf8(field).ok()?.parse::<u32>().ok());
        let [Some(start), Some(end)] = times else { continue };
        let this = ([start, end], hash);
        if this == last {
            continue;
        }
        if end < last.0[1] {
            builds.push(Vec::new());
        }
        last = this;
        let [from, to] = this.0.map(|ms| Nanos(u64::from(ms) * 1_000_000));
        builds.last_mut().into_iter().for_each(|steps| steps.push(BuildStep { from, to, name: output.to_vec() }));
    }
    builds
}

/// A unit on cargo's page of timings.
#[derive(Deserialize)]
struct Unit {
    name: String,
    version: String,
    target: String,
    start: f64,
    duration: f64,
}

impl Unit {
    fn step(self) -> BuildStep {
        let name = format!("{} {}{}", self.name, self.version, self.target).into_bytes();
        BuildStep { from: nanos(self.start), to: nanos(self.start + self.duration), name }
    }
}

/// A message of cargo's build analysis.
#[derive(Deserialize)]
struct Message {
    reason: String,
    index: Option<u64>,
    elapsed: Option<f64>,
    package_id: Option<String>,
    target: Option<Target>,
    mode: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: String,
}

fn of_build_analysis(text: &[u8]) -> Vec<BuildStep> {
    let (mut names, mut begun, mut steps) = (HashMap::new(), HashMap::new(), Vec::new());
    for line in text.split(|byte| *byte == b'\n') {
        let Some(message) = first_value::<Message>(line) else { continue };
        let Some(index) = message.index else { continue };
        let at = nanos(message.elapsed.unwrap_or_default());
        match message.reason.as_str() {
            "unit-registered" => drop(names.insert(index, message.name())),
            "unit-started" => drop(begun.insert(index, at)),
            "unit-finished" => {
                let (Some(from), Some(name)) = (begun.remove(&index), names.get(&index)) else { continue };
                steps.push(BuildStep { from, to: at, name: Vec::clone(name) });
            }
            _ => {}
        }
    }
    steps
}

impl Message {
    /// Returns the name of a unit: `path+file:///x/serde#1.0.1` is the package serde 1.0.1,
    /// `registry+https://x#serde@1.0.1`, too.
    fn name(&self) -> Vec<u8> {
        let id = self.package_id.as_deref().unwrap_or_default();
        let (source, version) = id.rsplit_once('#').unwrap_or((id, ""));
        let package = match version.split_once('@') {
            Some((name, version)) => format!("{name} {version}"),
            None => format!("{} {version}", source.rsplit('/').next().unwrap_or_default()),
        };
        let mut name = package.into_bytes();
        if let Some(target) = self.target.as_ref().filter(|target| target.kind != "lib") {
            let is_script = target.kind == "build-script";
            name.extend(format!(" {}", if is_script { &target.kind } else { &target.name }).bytes());
        }
        if self.mode.as_deref() == Some("run-custom-build") {
            name.extend(b" (run)");
        }
        name
    }
}

/// Bazel's profile, a Chrome trace.
#[derive(Deserialize)]
struct Profile {
    #[serde(rename = "traceEvents")]
    events: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    ts: Option<f64>,
    dur: Option<f64>,
    args: Option<SpanArguments>,
}

#[derive(Deserialize)]
struct SpanArguments {
    target: Option<String>,
}

impl Span {
    /// Returns an action of Bazel. Other spans say what Bazel itself did.
    fn step(self) -> Option<BuildStep> {
        let (start, span) = (self.ts?, self.dur?);
        let name = self.args.and_then(|arguments| arguments.target).unwrap_or(self.name);
        let step = BuildStep { from: nanos(start / 1e6), to: nanos((start + span) / 1e6), name: name.into_bytes() };
        (self.cat == "action processing").then_some(step)
    }
}

/// Maximum time of a step since the start of its build, in seconds.
const MAX_SECONDS: f64 = 1e8;

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds.clamp(0.0, MAX_SECONDS) * 1e9) as u64)
}

/// Returns the JSON value at the beginning of a text.
fn first_value<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    serde_json::Deserializer::from_slice(text).into_iter().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes steps: from, to, in milliseconds, and name.
    fn steps(log: &str) -> Vec<Vec<(u64, u64, String)>> {
        let ms = |at: Nanos| (at.0 + 500_000) / 1_000_000;
        let describe = |step: BuildStep| (ms(step.from), ms(step.to), String::from_utf8(step.name).unwrap());
        parse(log.as_bytes()).into_iter().map(|steps| steps.into_iter().map(describe).collect()).collect()
    }

    #[test]
    fn builds_that_ninja_appended_are_told_apart() {
        let log = "# ninja log v7\n0\t5\t1\ta.o\tff\n1\t9\t1\tx.h\te\n1\t9\t1\tx.c\te\nbroken\n2\t7\t1\tb.o\tf\n0\t8\t1\tc.o\tf\n";
        let [a, x, b, c] = [(0, 5, "a.o"), (1, 9, "x.h"), (2, 7, "b.o"), (0, 8, "c.o")]
            .map(|(from, to, name)| (from, to, name.to_owned()));
        assert_eq!(steps(log), [vec![a, x], vec![b, c]]);
    }

    /// The shapes of cargo 1.95 and 1.97.
    #[test]
    fn both_logs_of_cargo_name_the_same_units() {
        let page = r#"<script>const UNIT_DATA = [
            {"i": 2, "name": "bb", "version": "0.1.0", "mode": "todo", "target": " build-script", "start": 0.24, "duration": 0.32, "sections": [["x", {"start": 0}]]},
            {"i": 0, "name": "aa", "version": "1.2.3", "mode": "todo", "target": "", "start": 0.25, "duration": 0.15}
        ];</script>"#;
        let log = r#"{"reason":"build-started","command":["cargo"]}
            {"reason":"unit-registered","package_id":"registry+https://x/y#aa@1.2.3","target":{"name":"aa","kind":"lib"},"mode":"build","index":0}
            {"reason":"unit-registered","package_id":"path+file:///x/bb#0.1.0","target":{"name":"build-script-build","kind":"build-script"},"mode":"build","index":2}
            {"reason":"unit-started","index":2,"elapsed":0.24}
            {"reason":"unit-started","index":0,"elapsed":0.25}
            {"reason":"unit-finished","index":0,"elapsed":0.4}
            {"reason":"unit-finished","index":2,"elapsed":0.56}"#;
        let (mut first, mut second) = (steps(page), steps(log));
        first[0].sort();
        second[0].sort();
        assert_eq!(first, second);
        assert_eq!(first, [[(240, 560, "bb 0.1.0 build-script".to_owned()), (250, 400, "aa 1.2.3".to_owned())]]);
    }

    #[test]
    fn the_actions_of_a_profile_of_bazel_are_steps() {
        let log = r#"{"otherData":{"build_id":"x"},"traceEvents":[{"name":"thread_name","ph":"M","pid":1,"args":{"name":"x"}},
            {"cat":"action processing","name":"Compiling a.cc","ph":"X","ts":1000,"dur":5000,"pid":1,"args":{"target":"//a:a"}},
            {"cat":"general information","name":"x","ph":"X","ts":0,"dur":9}]}"#;
        assert_eq!(steps(log), [[(1, 6, "//a:a".to_owned())]]);
        assert_eq!(steps("x").concat(), []);
    }
}
