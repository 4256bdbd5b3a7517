//! Lines of Python programs: a script launches from functions, generators, threads and other kinds
//! of code, under each interpreter that is found. Every recorded call chain must be correct.
//! `SPAWNSCOPE_TEST_PYTHONS` names further interpreters, separated by colons.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use spawnscope::analyze::Forest;
use spawnscope::event::Language;
use spawnscope::record::RecordingFile;

use crate::support::chains::Shell;
use crate::support::prelude::*;
use crate::support::pythons::{Python, all_interpreters, interpreters, suite_interpreters};
use crate::support::workloads;

const SCRIPT: &str = "python_lines.py";
/// More frames are not recorded.
const MAX_FRAMES: usize = 48;

/// A frame: function (empty if there is none), file, and line (0 if unknown).
type PythonFrame = (String, String, u32);

fn frame(function: &str, file: &str, line: u32) -> PythonFrame {
    (function.to_owned(), file.to_owned(), line)
}

/// The call chain of a launch.
#[derive(Debug, PartialEq)]
struct CallChain {
    frames: Vec<PythonFrame>,
    is_truncated: bool,
}

impl CallChain {
    /// Returns the frames without those of the standard library.
    fn own_frames(self) -> Vec<PythonFrame> {
        self.frames
            .into_iter()
            .filter(|frame| !frame.1.contains("/lib/python3.") && !frame.1.starts_with("<frozen "))
            .collect()
    }
}

/// A recording of launches that pass their names to the program `tiny`.
struct Chains(spawnscope::record::reader::Recording);

impl Chains {
    fn read(file: &Path) -> Chains {
        let recording = RecordingFile::open(file).and_then(|file| file.read());
        Chains(recording.expect("a recording"))
    }

    /// Returns the call chain of the launch with this name, or `None` if it has none. The launch of
    /// a shell has the name of the launch that the shell makes.
    #[track_caller]
    fn call_chain(&self, name: &str) -> Option<CallChain> {
        let forest = Forest::build(&self.0);
        let (plain, by_shell) = (format!("\0{name}\0"), format!("/tiny {name};"));
        let named = forest.launches.iter().filter(|launch| {
            let argv = launch.execs.last().map(|exec| exec.argv());
            argv.is_some_and(|argv| contains(argv, &plain) || contains(argv, &by_shell))
        });
        let named: Vec<_> = named.collect();
        let ids: HashSet<_> = named.iter().map(|launch| launch.id).collect();
        let outermost = named.iter().filter(|launch| launch.parent.get().is_none_or(|parent| !ids.contains(&parent)));
        let outermost: Vec<_> = outermost.collect();
        assert_eq!(outermost.len(), 1, "launches of the name {name}");
        let mut frames = forest.frames(Some(outermost[0].script_stack?));
        let collected = frames.by_ref().map(|frame| {
            assert_eq!((frame.language, frame.module), (Language::Python, None));
            let [function, file] = [frame.function, frame.file]
                .map(|bytes| bytes.map_or(String::new(), |bytes| bytes.escape_ascii().to_string()));
            (function, file, frame.line.unwrap_or(0))
        });
        let collected = collected.collect();
        let is_truncated = frames.is_truncated();
        Some(CallChain { frames: collected, is_truncated })
    }

    /// Returns the number of Python frames in the recording.
    fn python_frames(&self) -> usize {
        let frames = self.0.frames.iter();
        frames.filter(|frame| frame.language == Language::Python).count()
    }

    #[track_caller]
    fn expect_own(&self, name: &str, expected: &[PythonFrame]) {
        let call_chain = self.call_chain(name).unwrap_or_else(|| panic!("no chain of {name}"));
        assert!(!call_chain.is_truncated, "{name}");
        assert_eq!(call_chain.own_frames(), expected, "{name}");
    }
}

fn contains(argv: &[u8], name: &str) -> bool {
    argv.windows(name.len()).any(|part| part == name.as_bytes())
}

/// Returns the path of the workload. It is in the directory of the test workloads, which is also
/// mounted in the roots of other Debian suites.
fn workload() -> PathBuf {
    workloads::directory().join(SCRIPT)
}

/// Records the workload under an interpreter.
fn record_script(python: &Python) -> Chains {
    fs::copy(script(SCRIPT), workload()).expect("a copy");
    let record = Record::new();
    run(&mut python.recorder(&record, &[workload(), path("tiny")])).expect_code(0);
    Chains::read(&record.file())
}

/// Returns the number of the line of the workload that ends with `# mark`.
#[track_caller]
fn marked_line(mark: &str) -> u32 {
    let text = fs::read_to_string(script(SCRIPT)).expect("the workload");
    let end = format!("  # {mark}");
    let found = text.lines().zip(1..).filter(|(line, _)| line.ends_with(&end));
    let lines: Vec<u32> = found.map(|(_, number)| number).collect();
    assert_eq!(lines.len(), 1, "lines with the mark {mark}");
    lines[0]
}

/// Returns the expected frames of a launch: functions with the marks of their lines, from the
/// innermost outwards, then the line of the module that calls them.
fn shape(python: &Python, functions: &[(&str, &str)], module: &str) -> Vec<PythonFrame> {
    let file = workload().as_os_str().as_bytes().escape_ascii().to_string();
    let modules = (!module.is_empty()).then_some(("", module));
    let frames = functions.iter().copied().chain(modules);
    frames.map(|(function, mark)| frame(python.name(function), &file, marked_line(mark))).collect()
}

#[apply(live_test)]
#[needs(Python)]
fn every_shape_of_python_code_has_its_lines() {
    let found = interpreters();
    assert!(!found.is_empty(), "a Python interpreter of 3.9 or later");
    found.iter().for_each(assert_lines);
}

#[apply(live_test)]
#[needs(MountNs, Roots)]
fn the_python_of_every_debian_suite_has_its_lines() {
    all_interpreters().iter().chain(&suite_interpreters()).for_each(assert_lines);
}

fn assert_lines(python: &Python) {
    println!("{python}");
    let chains = record_script(python);
    assert_shapes(python, &chains);
    assert_library_frames(python, &chains);
    assert_deep_chain(python, &chains);
}

fn assert_shapes(python: &Python, chains: &Chains) {
    for (name, functions, module) in SHAPES {
        chains.expect_own(name, &shape(python, functions, module));
    }
    let leave_mark = match python.minor {
        ..10 => "leave: outside in 3.9",
        _ => "enter, leave: outside",
    };
    let leave = [("Manager.__exit__", "leave: inside"), ("managed", leave_mark)];
    chains.expect_own("leave", &shape(python, &leave, "main: managed"));
    for number in 0..4 {
        chains.expect_own(&format!("thread {number}"), &shape(python, &[("worker", "thread")], ""));
    }
    assert_compiled(python, chains);
    // With several interpreters in one thread, the right frames cannot be determined.
    assert_eq!(chains.call_chain("several interpreters"), None);
}

/// The name of a launch, its functions with the marks of their lines, and the mark of the module's
/// line.
type Shape = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const SHAPES: &[Shape] = &[
    ("function", &[("function", "function")], "main: function"),
    ("method", &[("Builder.method", "method")], "main: method"),
    (
        "nested",
        &[("Builder.decorated.<locals>.inner", "nested: inner"), ("Builder.decorated", "nested: outer")],
        "main: nested",
    ),
    ("over lines", &[("over_lines", "over lines")], "main: over lines"),
    (
        "generator expression",
        &[
            ("generator_expression.<locals>.<genexpr>", "generator expression: inside"),
            ("generator_expression", "generator expression: outside"),
        ],
        "main: generator expression",
    ),
    ("generator", &[("generator", "generator: inside"), ("consume", "generator: outside")], "main: generator"),
    ("coroutine", &[("coroutine", "coroutine")], "main: coroutine"),
    ("os.fork", &[("forking", "os.fork")], "main: os.fork"),
    ("os.system", &[("system", "os.system")], "main: os.system"),
    ("os.posix_spawn", &[("spawn", "os.posix_spawn")], "main: os.posix_spawn"),
    ("shell", &[("shell", "shell")], "main: shell"),
    ("os.popen", &[("piped", "os.popen")], "main: os.popen"),
    ("preexec_fn", &[("with_hook", "preexec_fn")], "main: preexec_fn"),
    ("in preexec_fn", &[("hook", "in preexec_fn: hook"), ("with_hook", "preexec_fn")], "main: preexec_fn"),
    ("behind threads", &[("behind_threads", "behind threads")], "main: behind threads"),
    (
        "multiprocessing",
        &[("process", "multiprocessing: inside"), ("forked_process", "multiprocessing: outside")],
        "main: multiprocessing",
    ),
    ("handler", &[("with_handlers", "handler")], "main: handler"),
    ("enter", &[("Manager.__enter__", "enter: inside"), ("managed", "enter, leave: outside")], "main: managed"),
    ("partial", &[], "partial"),
    ("lambda", &[("<lambda>", "lambda")], "lambda"),
    ("module", &[], "module"),
];

/// Checks the code that the workload compiles from strings, with names of files that do not exist.
fn assert_compiled(python: &Python, chains: &Chains) {
    for number in 1..=30 {
        let first = [frame("", "compiled.py", number)];
        chains.expect_own(&format!("compiled {number}"), &with_exec(python, &first, "compiled"));
    }
    let names = [("réunion", "é.py"), ("ветка", "ж.py"), ("𠀀", "🐍.py")];
    for (number, (function, file)) in names.iter().enumerate() {
        let [function, file] = [function, file].map(|name| name.as_bytes().escape_ascii().to_string());
        let first = [frame(&function, &file, 2), frame("", &file, 3)];
        chains.expect_own(&format!("name {number}"), &with_exec(python, &first, "names"));
    }
    let first = [frame("plain", "\\xff.py", 2), frame("", "\\xff.py", 3)];
    chains.expect_own("name 3", &with_exec(python, &first, "names"));
    chains.expect_own("early", &with_exec(python, &[frame("", "long.py", 2)], "long_table"));
    // From 3.11 on, the line table of this code is too long, so its last lines are unknown.
    let late = if python.minor < 11 { 5003 } else { 0 };
    chains.expect_own("late", &with_exec(python, &[frame("", "long.py", late)], "long_table"));
    chains.expect_own("long name", &with_exec(python, &[frame("", "", 1)], "long_name"));
}

/// Returns the frames `first`, which `function` of the workload called by `exec`, and those of the
/// workload.
fn with_exec(python: &Python, first: &[PythonFrame], function: &str) -> Vec<PythonFrame> {
    let [mark, module] = [format!("{function}: exec"), format!("main: {function}")];
    [first, &shape(python, &[(function, &mark)], &module)].concat()
}

/// From 3.13 on, `subprocess` may launch by `posix_spawn`.
fn assert_library_frames(python: &Python, chains: &Chains) {
    const FORKS: [(&str, &str); 3] =
        [("Popen._execute_child", "fork_exec("), ("Popen.__init__", "self._execute_child("), ("run", "with Popen(")];
    const SPAWNS: [(&str, &str); 4] =
        [("Popen._posix_spawn", "os.posix_spawn("), ("Popen._execute_child", "self._posix_spawn("), FORKS[1], FORKS[2]];
    let call_chain = chains.call_chain("function").expect("a chain");
    let spawns = call_chain.frames[0].0 == python.name(SPAWNS[0].0);
    let expected = if spawns { &SPAWNS[..] } else { &FORKS[..] };
    let source = python.source(&call_chain.frames[0].1);
    for (found, (function, text)) in call_chain.frames.iter().zip(expected) {
        assert_eq!(found.0, python.name(function), "{python}");
        let line = source.lines().nth(found.2 as usize - 1).expect("the line");
        assert!(line.contains(text), "{python}: {found:?} is {line}");
    }
    assert_eq!(call_chain.frames[expected.len()].0, "function");
}

fn assert_deep_chain(python: &Python, chains: &Chains) {
    let call_chain = chains.call_chain("deep").expect("a chain");
    assert!(call_chain.is_truncated, "{python}");
    assert_eq!(call_chain.frames.len(), MAX_FRAMES);
    let own = call_chain.own_frames();
    assert_eq!(own[0].2, marked_line("deep: end"));
    let line = marked_line("deep: call");
    assert!(own[1..].iter().all(|frame| frame.0 == "recursion" && frame.2 == line));
}

#[apply(live_test)]
#[needs(Python)]
fn python_code_from_the_command_line_a_module_and_standard_input_has_its_lines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let module = directory.path().join("launching.py");
    fs::write(&module, launching_code("module")).expect("a module");
    let input = directory.path().join("input");
    fs::write(&input, launching_code("input")).expect("a script");
    let code = launching_code("argument");
    let cases = [
        ("argument", &["-c", &code][..], "<string>"),
        ("module", &["-m", "launching"], module.to_str().expect("a path in UTF-8")),
        ("input", &["-"], "<stdin>"),
    ];
    for python in interpreters() {
        for (name, arguments, file) in cases {
            let record = Record::new();
            let mut command = python.recorder(&record, arguments);
            command.current_dir(directory.path());
            command.stdin(fs::File::open(&input).expect("the script"));
            Running::start(&mut command).finish().expect_code(0);
            let frames = Chains::read(&record.file()).call_chain(name).map(CallChain::own_frames);
            assert_eq!(frames, Some(vec![frame("", file, 3)]), "{python}");
        }
    }
}

fn launching_code(name: &str) -> String {
    format!("import subprocess\n\nsubprocess.call([{:?}, {name:?}])\n", path("tiny"))
}

/// A shell runs a copy of the interpreter, whose path the recorder cannot know at the start. The
/// copy launches until it is recognised.
#[apply(live_test)]
#[needs(Python)]
fn a_python_that_was_unknown_at_the_start_is_recognised() {
    with_growing_lengths(|length| try_unknown_copy(20 * length));
}

fn try_unknown_copy(launches: u32) -> Result<(), String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copy = directory.path().join("copy");
    fs::copy("/usr/bin/python3", &copy).expect("a copy of the interpreter");
    let text = format!(
        "import subprocess, time\nfor n in range({launches}):\n  subprocess.call([{:?}, f'met {{n}}'])\n  time.sleep(0.05)\n",
        path("tiny")
    );
    let shell = ["sh", "-c", "\"$0\" -c \"$1\"; :"].map(OsStr::new);
    let arguments = [copy.as_os_str(), OsStr::new(&text)];
    let record = Record::new().recorded(shell.into_iter().chain(arguments));
    let chains = Chains::read(&record.file());
    let expected = [frame("", "<string>", 3)];
    let mut last = None;
    for number in 0..launches {
        last = chains.call_chain(&format!("met {number}")).map(CallChain::own_frames);
        // The chain is right or unknown.
        assert!(last.as_ref().is_none_or(|own| *own == expected));
    }
    ok_if(last.is_some(), || format!("not recognised in {launches} launches"))
}

/// Runs the workload under a copy of the system's interpreter in which each occurrence of `from` is
/// replaced by `to`.
fn record_with_changed_python(from: &[u8], to: &[u8]) -> Chains {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copy = directory.path().join("python3");
    let mut bytes = fs::read("/usr/bin/python3").expect("the interpreter");
    let offsets = (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from));
    let offsets: Vec<usize> = offsets.collect();
    assert!(!offsets.is_empty(), "the interpreter contains the bytes to replace");
    for at in offsets {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    write_program(&copy, bytes);
    record_script(&Python::new(Shell::installed(&copy)).expect("an interpreter"))
}

/// Without this symbol, the recorder cannot find the interpreter's frames.
#[apply(live_test)]
#[needs(Python)]
fn a_python_without_its_symbols_gives_no_lines() {
    let chains = record_with_changed_python(b"\0_PyRuntime\0", b"\0_PyHidden_\0");
    assert_eq!(chains.python_frames(), 0);
}

/// The interpreter reports another version, in which frames are at other offsets.
#[apply(live_test)]
#[needs(Python)]
fn a_python_that_reports_another_version_gives_no_lines() {
    let python = Path::new("/usr/bin/python3");
    let printed = run(Command::new(python).args(["-c", "import sys; print(sys.hexversion)"])).output();
    let number: u64 = printed.trim().parse().expect("a number");
    let minor = if number >> 16 == 0x30b { 0x30c } else { 0x30b };
    let other = minor << 16 | number & 0xffff;
    let chains = record_with_changed_python(&number.to_le_bytes(), &other.to_le_bytes());
    assert_eq!(chains.python_frames(), 0);
}
