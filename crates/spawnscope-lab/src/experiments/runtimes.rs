//! Start-up times of installed interpreters and language run times, with a program that does nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use super::phases::{NoPhases, PHASES, record_phases};
use crate::LabError;
use crate::batches::Case;
use crate::compiler::Compiler;
use crate::context::ExperimentContext;
use crate::harness::MIN_ROUNDS;
use crate::outcome::{Outcome, Unit, Value, key, measure};
use crate::shell::find_program;
use crate::worker::protocol::{CPU, Program, Request, Setting, WALL};
use crate::worker::{Mechanism, Worker};

/// Programs, with arguments that make them do nothing. The first list of arguments is part of the case's name, the second is not.
const COMMANDS: [(&str, &[&str], &[&str]); 23] = [
    (SH, &[], &["-c", ":"]),
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
/// The system shell, which is often the same file as another one.
const SH: &str = "sh";
/// Arguments with which an interpreter prints the path of its own file. Only interpreters that are often behind a version manager's script
/// are listed.
const EXECUTABLE_QUERIES: [(&str, [&str; 2]); 4] = [
    ("python3", ["-c", "import sys; print(sys.executable)"]),
    ("ruby", ["-e", "puts RbConfig.ruby"]),
    ("node", ["-p", "process.execPath"]),
    ("perl", ["-e", "print $^X"]),
];
/// Marks the case of a script that starts the program.
const SHIM: &str = "(shim)";
/// The columns of the recorded phases.
const PHASE_COLUMNS: [&str; 3] = ["exec_ns", "load_ns", "run_ns"];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("runtime", "runtime", Unit::Text),
        measure("wall_ns", "wall", Unit::Nanos),
        measure("cpu_ns", "cpu", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("Start-up of runtimes with a program that does nothing", columns);
    let (mut found, absent) = interpreters(&mut outcome);
    if let Some(note) = remove_duplicate_sh(&mut found) {
        outcome.note(note);
    }
    found.extend(compile_programs(context, &mut outcome));
    let worker = Rc::new(Worker::start(&Setting::default())?);
    let cases = found.iter().map(|(name, program)| {
        let (worker, program) = (Rc::clone(&worker), program.clone());
        Case::new([Value::from(name.as_str())], move |count| {
            let request = Request::Launch { mechanism: Mechanism::VforkExec, program: program.clone(), count };
            worker.request(&request).map(|values| vec![values[WALL], values[CPU]])
        })
    });
    let measured = context.interleave(cases.collect());
    outcome.add(&measured);
    outcome.files = program_files(context.directory(), &found);
    add_phases(context, &mut outcome, &found);
    if !absent.is_empty() {
        outcome.note(format!("not installed: {}", absent.join(", ")));
    }
    Ok(outcome)
}

/// Returns the installed interpreters with their names, and the names of missing ones.
fn interpreters(outcome: &mut Outcome) -> (Vec<(String, Program)>, Vec<&'static str>) {
    let mut found: Vec<(String, Program)> = Vec::new();
    let mut absent: Vec<&str> = Vec::new();
    for (name, visible, hidden) in COMMANDS {
        let Some(path) = find_program(name) else {
            if !absent.contains(&name) {
                absent.push(name);
            }
            continue;
        };
        let label = format!("{name} {}", visible.join(" "));
        let arguments = [visible, hidden].concat();
        for (mark, path) in resolve_shim(name, path, outcome) {
            // The script takes the same time for all arguments.
            if mark == SHIM && !visible.is_empty() {
                continue;
            }
            let argv = [super::text(&path)].into_iter().chain(arguments.iter().map(|&argument| argument.to_owned()));
            found.push((format!("{} {mark}", label.trim()).trim().to_owned(), Program::new(argv)));
        }
    }
    (found, absent)
}

/// Removes `sh` if it is the same file as another shell, and returns a note that names that shell.
fn remove_duplicate_sh(found: &mut Vec<(String, Program)>) -> Option<String> {
    let position = found.iter().position(|(name, _)| name == SH)?;
    let sh = device_and_inode(&found[position].1)?;
    let (same, _) = found.iter().find(|(name, program)| name != SH && device_and_inode(program) == Some(sh))?;
    let note = format!("{SH} is {same}");
    found.remove(position);
    Some(note)
}

fn device_and_inode(program: &Program) -> Option<(u64, u64)> {
    let metadata = Path::new(program.argv.first()?).metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Returns the program with an empty mark. If it is a script, which is probably a version manager's, returns the script with the mark
/// `SHIM`, and the program that the script starts, if that is known.
fn resolve_shim(name: &str, path: PathBuf, outcome: &mut Outcome) -> Vec<(&'static str, PathBuf)> {
    if !has_prefix(&path, b"#!") {
        return vec![("", path)];
    }
    let real = shim_target(name, &path).filter(|real| has_prefix(real, b"\x7fELF"));
    let target = match &real {
        Some(real) => format!("starts {}", without_home(real)),
        None => "does not show what it starts".to_owned(),
    };
    outcome.note(format!("{name} {SHIM}: {} is a script, which {target}", without_home(&path)));
    [(SHIM, path)].into_iter().chain(real.map(|real| ("", real))).collect()
}

fn has_prefix(path: &Path, prefix: &[u8]) -> bool {
    std::fs::read(path).is_ok_and(|content| content.starts_with(prefix))
}

/// Shortens the home directory to `~`, because reports are shown to others.
fn without_home(path: &Path) -> String {
    let home = std::env::home_dir().filter(|home| home.components().count() > 1);
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// Returns the file of each program, except for programs that this run has created.
fn program_files(directory: &Path, found: &[(String, Program)]) -> BTreeMap<String, String> {
    let files = found.iter().filter_map(|(name, program)| {
        let path = Path::new(program.argv.first()?).canonicalize().ok()?;
        (!path.starts_with(directory.canonicalize().ok()?)).then(|| (name.clone(), without_home(&path)))
    });
    files.collect()
}

/// Returns the interpreter that a script starts, as the interpreter itself reports it.
fn shim_target(name: &str, script: &Path) -> Option<PathBuf> {
    let (_, query) = EXECUTABLE_QUERIES.iter().find(|(other, _)| *other == name)?;
    let output = Command::new(script).args(query).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(path.trim()))
}

/// Compiles programs that do nothing with the installed compilers; in a quick run, only the C program.
fn compile_programs(context: &ExperimentContext<'_>, outcome: &mut Outcome) -> Vec<(String, Program)> {
    let directory = context.directory();
    let mut programs = Vec::new();
    let c = Compiler::find().map(|cc| cc.compile("int main(void) { return 0; }", &directory.join("c-hello"), &[]));
    match c {
        Some(Ok(path)) => programs.push(("C".to_owned(), Program::new([path]))),
        Some(Err(error)) => outcome.note(format!("C: {error}")),
        None => outcome.note("C: skipped, no cc found"),
    }
    if context.effort.quick {
        outcome.note("quick: Rust, Go and Java are skipped");
        return programs;
    }
    for language in LANGUAGES {
        if !context.report_progress(&format!("compiling {}", language.name), 0.0) {
            break;
        }
        match language.compile(directory) {
            Ok(program) => programs.push((language.name.to_owned(), program)),
            Err(reason) => outcome.note(format!("{}: {reason}", language.name)),
        }
    }
    programs
}

/// A language with a compiler of its own.
struct Language {
    name: &'static str,
    compiler: &'static str,
    options: &'static [&'static str],
    /// The name of the source file, and its content.
    source: (&'static str, &'static str),
    /// The command that is launched: the compiled file, or a virtual machine and its class.
    command: &'static [&'static str],
}

const LANGUAGES: [Language; 3] = [
    Language {
        name: "Rust",
        compiler: "rustc",
        options: &["-O", "-o", "rust-hello"],
        source: ("rust-hello.rs", "fn main() {}"),
        command: &["rust-hello"],
    },
    Language {
        name: "Go",
        compiler: "go",
        options: &["build", "-o", "go-hello"],
        source: ("go-hello.go", "package main\nfunc main() {}\n"),
        command: &["go-hello"],
    },
    Language {
        name: "java, a class",
        compiler: "javac",
        options: &[],
        source: ("Hello.java", "class Hello { public static void main(String[] arguments) {} }\n"),
        command: &["java", "Hello"],
    },
];

impl Language {
    fn compile(&self, directory: &Path) -> Result<Program, String> {
        let compiler = require_program(self.compiler)?;
        let (source, text) = self.source;
        std::fs::write(directory.join(source), text)
            .map_err(|error| format!("its source cannot be written: {error}"))?;
        let status =
            Command::new(compiler).args(self.options).arg(source).current_dir(directory).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("its compiler failed".to_owned());
        }
        match *self.command {
            [machine, class] => {
                let machine = require_program(machine)?;
                Ok(Program::new([&machine, Path::new("-cp"), directory, Path::new(class)]))
            }
            [file] => Ok(Program::new([directory.join(file)])),
            _ => Err("nothing to launch".to_owned()),
        }
    }
}

fn require_program(name: &str) -> Result<PathBuf, String> {
    find_program(name).ok_or_else(|| format!("skipped, no {name} found"))
}

/// Adds the phases of recorded starts, if recording is allowed.
fn add_phases(context: &ExperimentContext<'_>, outcome: &mut Outcome, found: &[(String, Program)]) {
    let columns = PHASE_COLUMNS.into_iter().zip(PHASES);
    outcome.columns.extend(columns.map(|(name, title)| measure(name, title, Unit::Nanos)));
    let mut recording_fails = false;
    for row in 0..outcome.rows.len() {
        let name = outcome.rows[row].0[0].1.clone();
        let program = found.iter().find(|(runtime, _)| name == Value::from(runtime.as_str()));
        let program = program
            .filter(|(runtime, _)| !recording_fails && context.report_progress(&format!("following {runtime}"), 1.0));
        let phases = match program.map(|(runtime, program)| (runtime, record_phases(context.directory(), program))) {
            Some((_, Ok(phases))) => phases.map(Value::from),
            Some((runtime, Err(NoPhases::ThisCommand(reason)))) => {
                outcome.note(format!("{runtime}: exec, load and run are unknown ({reason})"));
                UNKNOWN
            }
            Some((_, Err(NoPhases::AnyCommand(reason)))) => {
                recording_fails = true;
                let root = if rustix::process::geteuid().is_root() { "" } else { "; they need root" };
                outcome.note(format!("exec, load and run are unknown{root}: {reason}"));
                UNKNOWN
            }
            None => UNKNOWN,
        };
        let names = PHASE_COLUMNS.map(str::to_owned).into_iter();
        outcome.rows[row].0.extend(names.zip(phases));
    }
    if outcome.rows.iter().any(|row| PHASE_COLUMNS.iter().any(|column| *row.get(column) != Value::Unknown)) {
        outcome.note(format!(
            "exec, load and run: {MIN_ROUNDS} warm starts under `spawnscope record`, after all rounds, when the load may have differed; \
             recording makes the wall slightly longer; child processes are not included"
        ));
    }
}

const UNKNOWN: [Value; 3] = [Value::Unknown, Value::Unknown, Value::Unknown];

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn sh_is_removed_if_it_is_the_same_file_as_another_shell() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for shell in ["dash", "busybox"] {
            std::fs::write(path.join(shell), "").unwrap();
        }
        symlink("dash", path.join("linked")).unwrap();
        std::fs::hard_link(path.join("dash"), path.join("hard")).unwrap();
        symlink("busybox", path.join("other")).unwrap();
        for (sh, expected) in
            [("linked", Some("sh is dash")), ("hard", Some("sh is dash")), ("other", None), ("missing", None)]
        {
            let programs = [(SH, sh), ("dash", "dash")];
            let mut found = programs.map(|(name, file)| (name.to_owned(), Program::new([path.join(file)]))).to_vec();
            assert_eq!(remove_duplicate_sh(&mut found).as_deref(), expected, "{sh}");
            assert_eq!(found.len(), if expected.is_some() { 1 } else { 2 }, "{sh}");
        }
        assert_eq!(remove_duplicate_sh(&mut Vec::new()), None);
    }
}
