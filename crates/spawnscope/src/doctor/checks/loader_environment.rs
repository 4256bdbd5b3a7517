//! What the dynamic loader is asked for besides its own work: by variables of the environment, and for the whole machine.

use std::path::Path;

use super::Check;
use crate::doctor::{Effect, Examination, Finding, Findings, Machine};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "loader-environment",
    looks_at: "LD_ variables and /etc/ld.so.preload, and what they cost, timed",
    run,
};

const EVERYWHERE: &str = "/etc/ld.so.preload";
/// Variables that make starts of programs longer, and what they ask for.
const VARIABLES: [(&str, &str); 6] = [
    ("LD_PRELOAD", "more libraries are loaded into each program"),
    ("LD_AUDIT", "a library is asked about each object and each symbol"),
    ("LD_LIBRARY_PATH", "its directories are searched for each library first"),
    ("LD_BIND_NOW", "all functions are looked up at the start"),
    ("LD_DEBUG", "the loader writes down what it does"),
    ("LD_PROFILE", "calls of a library are counted"),
];
/// From here on it is a good part of a launch.
const MATTERS: Nanos = Nanos(50_000);

/// Whether a variable is one of these.
pub(in crate::doctor) fn is_loaders(name: &str) -> bool {
    VARIABLES.iter().any(|(variable, _)| *variable == name)
}

/// Those that are set.
pub(in crate::doctor) fn variables(machine: &Machine) -> impl Iterator<Item = (&'static str, String)> {
    VARIABLES
        .iter()
        .filter_map(|(name, _)| Some((*name, machine.variable_text(name)?)))
}

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if let Some(libraries) = machine.text(EVERYWHERE).filter(|text| !text.is_empty()) {
        everywhere(machine, &libraries, findings);
    }
    let set: Vec<(&str, String)> = variables(machine).collect();
    if set.is_empty() {
        return;
    }
    let with = examination.measured.launch.exec_dynamic;
    let without = examination.measured.without_loader_variables;
    let more = with.zip(without).map(|(with, without)| with.since(without));
    let missing: Vec<String> = set
        .iter()
        .flat_map(|(name, value)| missing(machine, name, value))
        .collect();
    let matters = !missing.is_empty() || more.is_some_and(|more| more >= MATTERS);
    let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
    let mut finding = Finding::problem_if(matters, format!("{} changes each start of a program", names.join(", ")))
        .effect(more.map(|more| Effect::measured(more, "each launch of a dynamic program")));
    for (name, value) in &set {
        let meaning = VARIABLES
            .iter()
            .find(|(variable, _)| variable == name)
            .map_or("", |(_, meaning)| *meaning);
        finding = finding.evidence(format!("{name}={value}: {meaning}"));
    }
    if !missing.is_empty() {
        finding = finding.evidence(format!("not there: {}", missing.join(", ")));
    }
    if let (Some(with), Some(without)) = (with, without) {
        let (with, without) = (units::time(with), units::time(without));
        finding = finding.evidence(format!("`true` takes {with} with, {without} without"));
    }
    findings.add(
        finding
            .fix("set them for the one program that wants them (`LD_PRELOAD=... program`), not for all that it is launched beside")
            .fix("in place of LD_LIBRARY_PATH: a line in /etc/ld.so.conf.d and ldconfig, or an rpath in the program")
            .fix_cost("find out who sets them: a start-up file, a module system, a wrapper script"),
    );
}

fn everywhere(machine: &Machine, libraries: &str, findings: &mut Findings) {
    let named: Vec<&str> = libraries
        .split([' ', ':', '\n'])
        .filter(|name| !name.is_empty())
        .collect();
    let is_missing = |library: &&str| library.starts_with('/') && !machine.exists(library);
    let missing: Vec<&str> = named.iter().copied().filter(|library| is_missing(library)).collect();
    let finding = Finding::problem(format!("{EVERYWHERE} adds a library to each program of this machine"))
        .evidence(format!("it names {}", named.join(", ")))
        .evidence_if(
            (!missing.is_empty())
                .then(|| format!("not there: {}; each start looks for it in vain", missing.join(", "))),
        )
        .fix("ask whose it is before it is changed: monitoring and security products are installed so, and rootkits")
        .fix_cost("without the library, what it does is gone");
    findings.add(finding);
}

/// Files and directories that a variable names and that are not there.
fn missing(machine: &Machine, name: &str, value: &str) -> Vec<String> {
    let separators: &[char] = match name {
        "LD_PRELOAD" => &[':', ' '],
        "LD_AUDIT" | "LD_LIBRARY_PATH" => &[':'],
        _ => return Vec::new(),
    };
    // The loader puts its own words for `$LIB` and `$ORIGIN`.
    let is_missing = |path: &&str| Path::new(path).is_absolute() && !path.contains('$') && !machine.exists(path);
    value.split(separators).filter(is_missing).map(str::to_owned).collect()
}
