//! What interpreters and run-time systems take to start: every one that is found here, with a program that does nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use crate::lab::LabError;
use crate::lab::compiler::Compiler;
use crate::lab::ground::Ground;
use crate::lab::harness::Case;
use crate::lab::outcome::{Outcome, Unit, Value, key, measure};
use crate::lab::shell::find;
use crate::lab::worker::protocol::{CPU, Program, Request, Setting, WALL};
use crate::lab::worker::{Mechanism, Worker};

/// Programs with arguments that have them do nothing, and those of the arguments that are worth telling.
const COMMANDS: [(&str, &[&str], &[&str]); 22] = [
    ("dash", &[], &["-c", ":"]),
    ("bash", &[], &["-c", ":"]),
    ("mksh", &[], &["-c", ":"]),
    ("zsh", &["-f"], &["-c", ":"]),
    ("fish", &["--no-config"], &["-c", "true"]),
    ("perl", &[], &["-e", "1"]),
    ("python3", &[], &["-c", "pass"]),
    ("python3", &["-I"], &["-c", "pass"]),
    ("python3", &["-S"], &["-c", "pass"]),
    ("python3", &["-I", "-S"], &["-c", "pass"]),
    ("node", &[], &["-e", "0"]),
    ("deno", &[], &["eval", "0"]),
    ("bun", &[], &["-e", "0"]),
    ("ruby", &[], &["-e", "0"]),
    ("ruby", &["--disable-gems"], &["-e", "0"]),
    ("java", &["-version"], &[]),
    ("lua", &[], &["-e", ""]),
    ("php", &["-n"], &["-r", ""]),
    ("Rscript", &[], &["-e", ""]),
    ("guile", &[], &["-c", "0"]),
    ("tclsh", &["/dev/null"], &[]),
    ("gawk", &[], &["BEGIN { exit }"]),
];
/// Marks a script in front of a program.
const SHIM: &str = "(shim)";
/// Positions among the columns of what the collector says.
const PHASES: [(&str, &str); 3] = [("exec_ns", "exec"), ("load_ns", "load"), ("run_ns", "run")];

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("runtime", "runtime", Unit::Text),
        measure("wall_ns", "wall", Unit::Nanos),
        measure("cpu_ns", "cpu", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("Start-up of runtimes that do nothing", columns);
    let (mut found, absent) = interpreters();
    found.extend(compiled(ground, &mut outcome));
    let worker = Rc::new(Worker::start(&Setting::default())?);
    let case = |(name, program): &(String, Program)| {
        let (worker, program) = (Rc::clone(&worker), program.clone());
        Case::new([Value::from(name.as_str())], move |count| {
            let request = Request::Launch {
                mechanism: Mechanism::VforkExec,
                program: program.clone(),
                count,
            };
            worker.ask(&request).map(|values| vec![values[WALL], values[CPU]])
        })
    };
    let measured = ground.interleave(found.iter().map(case).collect());
    outcome.add(&measured);
    if found.iter().any(|(name, _)| name.ends_with(SHIM)) {
        outcome.note("(shim): what PATH has is a script that looks for the program");
    }
    add_phases(ground, &mut outcome, &found);
    if !absent.is_empty() {
        outcome.note(format!("not here: {}", absent.join(", ")));
    }
    Ok(outcome)
}

/// Those that are here, by name, and the names of those that are not.
fn interpreters() -> (Vec<(String, Program)>, Vec<&'static str>) {
    let mut found: Vec<(String, Program)> = Vec::new();
    let mut absent: Vec<&str> = Vec::new();
    for (name, told, untold) in COMMANDS {
        let Some(path) = find(name) else {
            if !absent.contains(&name) {
                absent.push(name);
            }
            continue;
        };
        let shown = format!("{name} {}", told.join(" "));
        let arguments = [told, untold].concat();
        for (mark, path) in behind_shims(name, path) {
            // What the script takes is the same whatever it is given.
            if mark == SHIM && !told.is_empty() {
                continue;
            }
            let argv = [super::text(&path)]
                .into_iter()
                .chain(arguments.iter().map(|&one| one.to_owned()));
            found.push((format!("{} {mark}", shown.trim()).trim().to_owned(), Program::new(argv)));
        }
    }
    (found, absent)
}

/// The program, and the one behind it where it is a version manager's script.
fn behind_shims(name: &str, path: PathBuf) -> Vec<(&'static str, PathBuf)> {
    let is_script = std::fs::read(&path).is_ok_and(|content| content.starts_with(b"#!"));
    let others = std::env::var_os("PATH").unwrap_or_default();
    let real = std::env::split_paths(&others)
        .map(|folder| folder.join(name))
        .find(|other| std::fs::read(other).is_ok_and(|content| content.starts_with(b"\x7fELF")));
    match real {
        Some(real) if is_script => vec![(SHIM, path), ("", real)],
        _ if is_script => vec![(SHIM, path)],
        _ => vec![("", path)],
    }
}

/// Programs that do nothing, from the compilers that are here; in a hurry, only C's.
fn compiled(ground: &Ground<'_>, outcome: &mut Outcome) -> Vec<(String, Program)> {
    let folder = ground.folder();
    let mut programs = Vec::new();
    let c = Compiler::find().map(|cc| cc.compile("int main(void) { return 0; }", &folder.join("c-hello"), &[]));
    match c {
        Some(Ok(path)) => programs.push(("C".to_owned(), Program::new([path]))),
        Some(Err(error)) => outcome.note(format!("C: {error}")),
        None => outcome.note("C: left out, since there is no cc"),
    }
    if ground.effort.quick {
        outcome.note("quick: no programs in Go and Rust are compiled");
        return programs;
    }
    let sources = [
        ("Rust", "rustc", "rust-hello.rs", "fn main() {}", &["-O"][..]),
        (
            "Go",
            "go",
            "go-hello.go",
            "package main\nfunc main() {}\n",
            &["build"][..],
        ),
    ];
    for (language, compiler, file, text, options) in sources {
        let Some(compiler) = find(compiler) else {
            outcome.note(format!("{language}: left out, since there is no {compiler}"));
            continue;
        };
        let (source, output) = (folder.join(file), folder.join(file.replace('.', "-")));
        if !ground.goes_on(&format!("compiling {language}"), 0.0) || std::fs::write(&source, text).is_err() {
            continue;
        }
        let status = Command::new(compiler)
            .args(options)
            .arg("-o")
            .arg(&output)
            .arg(&source)
            .current_dir(folder)
            .stderr(Stdio::null())
            .status();
        match status {
            Ok(status) if status.success() => programs.push((language.to_owned(), Program::new([output]))),
            _ => outcome.note(format!("{language}: its compiler refused")),
        }
    }
    programs
}

/// Follows one start of each by the collector, where that is allowed.
fn add_phases(ground: &Ground<'_>, outcome: &mut Outcome, found: &[(String, Program)]) {
    let mut unknown = None;
    let phases: Vec<(String, Option<[Option<f64>; 3]>)> = found
        .iter()
        .map(|(name, program)| {
            let going = unknown.is_none() && ground.goes_on(&format!("following {name}"), 1.0);
            let phases = match going.then(|| recorded(ground.folder(), program)) {
                Some(Ok(phases)) => Some(phases),
                Some(Err(reason)) => {
                    unknown = Some(reason);
                    None
                }
                None => None,
            };
            (name.clone(), phases)
        })
        .collect();
    for (position, (name, title)) in PHASES.into_iter().enumerate() {
        outcome.columns.push(measure(name, title, Unit::Nanos));
        for row in &mut outcome.rows {
            let of_it = phases
                .iter()
                .find(|(runtime, _)| row.0[0].1 == Value::from(runtime.as_str()));
            let value = of_it.and_then(|(_, phases)| phases.and_then(|phases| phases[position]));
            row.0
                .push((name.to_owned(), value.map_or(Value::Unknown, Value::Number)));
        }
    }
    match unknown {
        Some(reason) => outcome.note(format!(
            "exec, load and run are unknown, which root would add: {reason}"
        )),
        None => outcome.note("exec, load and run: one start under `spawnscope record`, whose wall is a little longer"),
    }
}

/// Exec, load and run of all processes of a start, where the recording has them.
fn recorded(folder: &Path, program: &Program) -> Result<[Option<f64>; 3], String> {
    let recording = folder.join("runtime.db");
    let recorded = Command::new("/proc/self/exe")
        .args(["record", "--quiet", "--no-lines", "-o"])
        .arg(&recording)
        .arg("--")
        .args(&program.argv)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !recorded.status.success() {
        let said = String::from_utf8_lossy(&recorded.stderr);
        return Err(said.lines().next().unwrap_or("record failed").to_owned());
    }
    let report = Command::new("/proc/self/exe")
        .args(["report", "--json"])
        .arg(&recording)
        .output()
        .map_err(|error| error.to_string())?;
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).map_err(|error| error.to_string())?;
    let phase = |(_, title): (&str, &str)| report["phases"][title].as_f64();
    Ok(PHASES.map(phase))
}
