//! Call sites of a recording's launches, as text that a test can spell out.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spawnscope::analyze::model::frames::Frame;
use spawnscope::analyze::model::tree::Forest;
use spawnscope::record::reader::RecordingFile;

use super::roots::Root;
use super::run::{Finished, Record, run};
use super::workloads::word;

/// Lists the launches of a recording in order: the last argument of each (or the label, such as
/// `(bash)`, of a fork that executes nothing) and its call chain from the innermost frame outwards,
/// such as `main.sh:5 f < main.sh:7`. Files are shown by base name. `?` marks an unknown part, a
/// truncated chain ends with `...`, and an unknown chain is empty.
pub fn labelled_chains(file: &Path) -> Vec<(String, String)> {
    let file = RecordingFile::open(file).expect("the recording");
    let recording = file.read().expect("its rows");
    let forest = Forest::build(&recording);
    let launches = forest.launches.iter().filter(|launch| launch.parent.get().is_some());
    let chains = launches.map(|launch| {
        let last = launch.execs.last().and_then(|exec| exec.arguments().last());
        let label = last.map_or_else(|| launch.command.label(), <[u8]>::to_vec);
        let mut frames = forest.frames(launch.script_stack);
        let mut chain: Vec<String> = frames.by_ref().map(|frame| location(&frame)).collect();
        if frames.is_truncated() {
            chain.push("...".to_owned());
        }
        (text(&label), chain.join(" < "))
    });
    chains.collect()
}

/// Returns the chain of the only launch with this label.
#[track_caller]
pub fn chain_of<'a>(chains: &'a [(String, String)], label: &str) -> &'a str {
    let found: Vec<_> = chains.iter().filter(|(name, _)| name == label).collect();
    assert_eq!(found.len(), 1, "one launch of {label} in {chains:#?}");
    &found[0].1
}

/// Checks the chains of the launches that have these labels.
#[track_caller]
pub fn assert_chains(chains: &[(String, String)], truth: &[(&str, &str)]) {
    for (label, chain) in truth {
        assert_eq!(chain_of(chains, label), *chain, "of {label}");
    }
}

/// Writes files below a directory. In their texts, `@t` stands for the path of a small program.
pub fn write_files(directory: &Path, files: &[(&str, &str)]) {
    let tiny = word("tiny");
    for (name, text) in files {
        let file = directory.join(name);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, text.replace("@t", &tiny)).expect("a file");
    }
}

/// The chain of a label that no launch has.
pub const NOT_LAUNCHED: &str = "not launched";

/// The beginning of a script with functions and a sourced file, which bash and zsh run alike.
pub const FUNCTIONS: &str = "\
@t top
f() {
  @t in_f\"$1\"
}
f 1
g() { f 2; }

  g
main() {
  f 3
}
main
. \"${0%/*}/library.sh\"
of_library 2
";
pub const LIBRARY: (&str, &str) = (
    "library.sh",
    "\
of_library() {
  @t of_library\"$1\"
}
@t sourced\"$((++sourced))\"
of_library 1$sourced
",
);
pub const IN_FUNCTIONS: [(&str, &str); 7] = [
    ("top", "main.sh:1"),
    ("in_f1", "main.sh:3 f < main.sh:5"),
    ("in_f2", "main.sh:3 f < main.sh:6 g < main.sh:8"),
    ("in_f3", "main.sh:3 f < main.sh:10 main < main.sh:12"),
    ("sourced1", "library.sh:4 < main.sh:13"),
    ("of_library11", "library.sh:2 of_library < library.sh:5 < main.sh:13"),
    ("of_library2", "library.sh:2 of_library < main.sh:14"),
];

/// Texts that bash and zsh evaluate alike.
pub const EVALUATIONS: &str = "\
f() {
  @t in_f\"$1\"
}
eval '@t evaluated; f 1'
lines='
@t first
f 2'
eval \"$lines\"
g() {
  eval \"$lines\"

}
lines='
@t second
f 3'
g
";
pub const IN_EVALUATIONS: [(&str, &str); 6] = [
    ("evaluated", "main.sh:4"),
    ("in_f1", "main.sh:2 f < main.sh:4"),
    ("first", "main.sh:8"),
    ("in_f2", "main.sh:2 f < main.sh:8"),
    ("second", "main.sh:10 g < main.sh:16"),
    ("in_f3", "main.sh:2 f < main.sh:10 g < main.sh:16"),
];

/// Checks that a chain of 32 frames is whole, and that a longer one is truncated and marked.
pub fn assert_recursion_is_truncated(shell: &Shell) {
    let script = "f() {\n  if (($1 == 0)); then @t deep; else f $(($1 - 1)); fi\n}\nf 40\n";
    let frames = ["main.sh:2 f"; 32].join(" < ");
    shell.expect(script, &[], &[("deep", &format!("{frames} < ..."))]);
    let whole = format!("{} < main.sh:4", ["main.sh:2 f"; 31].join(" < "));
    shell.expect(&script.replace("40", "30"), &[], &[("deep", &whole)]);
}

/// The constructs for which bash and zsh fork alike.
pub const FORKS: &str = "\
f() {
@t in_f\"$1\"
}
x=$(@t substituted1; @t substituted2; :)
x=$(f 1; :)
x=`@t backquoted; :`
@t pipe1 | @t pipe2 | @t pipe3
@t background &
wait
(@t subshell1; @t subshell2; :)
f 2 | @t behind_f
f 3 &
wait
(f 4; :)
for i in $(@t in_words; :); do :; done
if @t condition; then @t body; fi
case $(@t subject; :) in *) @t branch ;; esac
[[ $(@t tested; :) ]]
time @t timed 2>/dev/null
! @t negated
@t here <<< $(@t here_string; :)
echo $(echo $(@t nested; :); :)
a && @t never || @t either
";
pub const IN_FORKS: [(&str, &str); 5] = [
    ("in_f1", "main.sh:2 f < main.sh:5"),
    ("in_f2", "main.sh:2 f < main.sh:11"),
    ("in_f3", "main.sh:2 f < main.sh:12"),
    ("in_f4", "main.sh:2 f < main.sh:14"),
    ("never", NOT_LAUNCHED),
];

/// Returns the label after the program's name, unless it contains a variable: `in_f` of ` in_f;
/// :)`, `list` of `', 'list'`.
fn plain_label(after: &str) -> Option<&str> {
    let label = after.strip_prefix("', '").or_else(|| after.strip_prefix(' '))?;
    let end = label.find(|each: char| !each.is_alphanumeric() && each != '_').unwrap_or(label.len());
    (end > 0 && !label[end..].starts_with(['"', '$'])).then(|| &label[..end])
}

/// A shell, or another interpreter or make, that runs the scripts of a test.
#[derive(Clone)]
pub struct Shell {
    program: PathBuf,
    /// The root directory in which it is installed and runs; `None` for this machine.
    pub root: Option<Root>,
}

impl Shell {
    /// Returns a shell of this machine.
    pub fn installed(program: impl Into<PathBuf>) -> Shell {
        Shell { program: program.into(), root: None }
    }

    /// Returns a shell that is installed in a root directory and runs there.
    pub fn in_root(root: Root, program: impl Into<PathBuf>) -> Shell {
        Shell { program: program.into(), root: Some(root) }
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        let words = [self.program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new));
        match self.root {
            Some(root) => root.run(words),
            None => run(Command::new(&self.program).args(arguments)),
        }
    }

    /// Returns the label of the shell's forks that execute nothing.
    pub fn label(&self) -> String {
        format!("({})", self.program.file_name().unwrap_or_default().display())
    }

    /// Returns the command that records the shell with these arguments.
    pub fn recorder(&self, record: &Record, arguments: &[impl AsRef<OsStr>]) -> Command {
        let words = [self.program.as_os_str()].into_iter();
        let words = words.chain(arguments.iter().map(AsRef::as_ref));
        match self.root {
            Some(root) => root.recorder(record, words),
            None => record.command(words),
        }
    }

    pub fn record(&self, record: &Record, arguments: &[impl AsRef<OsStr>]) -> Finished {
        run(&mut self.recorder(record, arguments))
    }

    /// Like `expect`, for a script in which each launch with a plain label has the line of that
    /// label, if `truth` says nothing else.
    #[track_caller]
    pub fn expect_own_lines(&self, script: &str, truth: &[(&str, &str)]) {
        let own = (1..).zip(script.lines()).flat_map(|(number, line)| {
            let labels = line.split("@t").skip(1).filter_map(plain_label);
            labels.map(move |label| (label, format!("main.sh:{number}")))
        });
        let own = own.filter(|(label, _)| truth.iter().all(|(other, _)| other != label));
        let own: Vec<(&str, String)> = own.collect();
        let expected = truth.iter().copied().filter(|(_, chain)| *chain != NOT_LAUNCHED);
        let all: Vec<(&str, &str)> =
            own.iter().map(|(label, chain)| (*label, chain.as_str())).chain(expected).collect();
        let chains = self.expect(script, &[], &all);
        for (label, _) in truth.iter().filter(|(_, chain)| *chain == NOT_LAUNCHED) {
            assert!(chains.iter().all(|(launched, _)| launched != label), "{label} in {chains:#?}");
        }
    }

    /// Records a script, in which `@t` stands for the path of a small program, and checks the
    /// chains of the launches whose labels are in `truth`. `other_files` are files that the script
    /// may read. Returns the chains of all launches.
    #[track_caller]
    pub fn expect(&self, script: &str, other_files: &[(&str, &str)], truth: &[(&str, &str)]) -> Vec<(String, String)> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        write_files(directory.path(), &[other_files, &[("main.sh", script)]].concat());
        let record = Record::new();
        self.record(&record, &[directory.path().join("main.sh")]).expect_code(0);
        let chains = labelled_chains(&record.file());
        assert_chains(&chains, truth);
        chains
    }
}

impl std::fmt::Display for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suite = self.root.map_or("this machine", |root| root.suite);
        write!(f, "{} of {suite}", self.program.display())
    }
}

fn location(frame: &Frame<'_>) -> String {
    let file =
        frame.file.map_or("?".to_owned(), |file| text(file.rsplit(|&byte| byte == b'/').next().unwrap_or_default()));
    let line = frame.line.map_or("?".to_owned(), |line| line.to_string());
    let function = frame.function.map_or(String::new(), |function| format!(" {}", text(function)));
    format!("{file}:{line}{function}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
