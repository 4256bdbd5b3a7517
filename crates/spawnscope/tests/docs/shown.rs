//! Runs the commands whose output is shown in documents. A comment before a block says what to run:
//!
//! - `run on NAME.sql`: the block begins with `$ spawnscope ...`, followed by the output of this
//!   command for a recording of `tests/recordings`;
//! - `run on NAME.sql: VERB ...`: this command is run instead of the shown one, which needs
//!   privileges or another machine;
//! - `run`: the command reads no recording.
//!
//! The output must be the text of the block; `SHOWN=overwrite` writes it there. A line `...` stands
//! for any lines.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::SystemTime;

use super::commands::{command_lines, program_commands};
use super::pages::{Block, Page, pages, root};
use super::stored::create_recording;

/// The recording of `examples/unpack.sh 40`.
pub const UNPACK: &str = "unpack.sql";
/// The script, which the recording was made of.
pub const SCRIPT: &str = "examples/unpack.sh";
/// Stands for the directory of the recorded command.
const DIRECTORY: &str = "/srv/package";
/// Lines that begin with this are messages of `record`, not part of the report that it prints. The
/// live tests compare the one in the README.
const MESSAGE: &str = "spawnscope: ";
/// A line that consists only of this stands for any lines.
const ELISION: &str = "...";

/// A recording under the default name, in a directory of its own.
pub struct Recording {
    pub directory: tempfile::TempDir,
}

fn rows(name: &str) -> String {
    fs::read_to_string(root().join("crates/spawnscope/tests/recordings").join(name)).unwrap()
}

impl Recording {
    /// Makes a recording from its rows in `tests/recordings`, with the recorded script beside it:
    /// it is as old as a script that was not edited since.
    pub fn from_rows(name: &str) -> Recording {
        let recording = Recording { directory: tempfile::tempdir().unwrap() };
        let directory = recording.directory.path();
        create_recording(&recording.file(), &rows(name).replace(DIRECTORY, directory.to_str().unwrap()));
        let script = directory.join(SCRIPT);
        fs::create_dir(script.parent().unwrap()).unwrap();
        fs::copy(root().join(SCRIPT), &script).unwrap();
        File::options().append(true).open(&script).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        recording
    }

    pub fn file(&self) -> PathBuf {
        self.directory.path().join("spawnscope.db")
    }
}

/// The command that a block asks to run.
struct Run {
    /// The name of the file in `tests/recordings`.
    recording: Option<String>,
    arguments: Vec<String>,
}

impl Run {
    /// Returns `None` if the block asks for no command.
    fn requested_by(block: &Block) -> Option<Run> {
        let wanted = block.comment.as_deref()?.strip_prefix("run")?;
        let (recording, instead) = wanted.split_once(':').unwrap_or((wanted, ""));
        let shown = command_lines(block).into_iter().next();
        let shown = shown.map(|(_, line)| line).unwrap_or_default();
        let line = match instead.trim() {
            "" => shown,
            instead => format!("spawnscope {instead}"),
        };
        let arguments = program_commands("spawnscope", &line).swap_remove(0).split_off(1);
        let recording = recording.trim().strip_prefix("on ").map(str::to_owned);
        Some(Run { recording, arguments })
    }

    fn print(&self) -> String {
        let recording = self.recording.as_deref().map(Recording::from_rows);
        let empty = tempfile::tempdir().unwrap();
        let directory = recording.as_ref().map_or(&empty, |recording| &recording.directory);
        let output = program(directory, &self.arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {errors}", self.arguments);
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Runs spawnscope in a directory.
fn program(directory: &tempfile::TempDir, arguments: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
    command.args(arguments).env_remove("COLUMNS").current_dir(directory.path()).output().unwrap()
}

fn is_overwriting() -> bool {
    std::env::var("SHOWN").is_ok_and(|value| value == "overwrite")
}

/// Returns the lines that a block should have: the shown command, the printed lines, and the shown
/// messages. As many lines stand before and after a line `...` as before.
fn renewed(shown: &[String], printed: &str) -> Vec<String> {
    let (messages, output): (Vec<&String>, Vec<&String>) =
        shown[1..].iter().partition(|line| line.starts_with(MESSAGE));
    let printed: Vec<String> = printed.lines().map(|line| line.trim_end().to_owned()).collect();
    let elision = output.iter().position(|line| line.trim() == ELISION);
    let text = match elision {
        None => printed,
        Some(before) => {
            let after = output.len() - before - 1;
            let end = printed.len().saturating_sub(after);
            let (first, last) = (&printed[..before.min(end)], &printed[end..]);
            [first, &[output[before].clone()], last].concat()
        }
    };
    [&shown[..1], &text, &messages.into_iter().cloned().collect::<Vec<_>>()].concat()
}

/// Writes other lines into the block of a page.
fn overwrite(page: &Page, block: &Block, lines: &[String]) {
    let file = root().join(&page.path);
    // The page may have been changed before: blocks are renewed from the last one to the first.
    let text = fs::read_to_string(&file).unwrap();
    let old: Vec<&str> = text.lines().collect();
    let (start, end) = (block.line - 1, block.line - 1 + block.lines.len());
    let indent = &old[start][..old[start].find('$').unwrap()];
    let new = lines.iter().map(|line| format!("{indent}{line}").trim_end().to_owned());
    let kept = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let all: Vec<String> = kept(&old[..start]).into_iter().chain(new).chain(kept(&old[end..])).collect();
    fs::write(&file, all.join("\n") + "\n").unwrap();
}

/// Returns what is wrong with a block, after renewing it if that was requested.
fn problem(page: &Page, block: &Block, run: &Run) -> Option<String> {
    let printed = run.print();
    let lines = renewed(&block.lines, &printed);
    if lines == block.lines {
        return None;
    }
    if is_overwriting() {
        overwrite(page, block, &lines);
        return None;
    }
    let (position, shown) = (page.position(block.line), block.lines.join("\n"));
    Some(format!("{position} shows\n{shown}\nbut\n{printed}\nSHOWN=overwrite renews it"))
}

#[test]
fn output_in_documents_is_what_is_printed() {
    let (mut verbs, mut wrong) = (Vec::new(), Vec::new());
    for page in pages() {
        for block in page.blocks().into_iter().rev() {
            let Some(run) = Run::requested_by(&block) else { continue };
            wrong.extend(problem(&page, &block, &run));
            verbs.push((page.path.display().to_string(), run.arguments[0].clone()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(verbs.iter().any(|(page, verb)| page == "README.md" && verb == "report"), "{verbs:?}");
    for verb in ["tree", "whatif", "advise", "doctor"] {
        let is_compared = verbs.iter().any(|(_, run)| run == verb);
        assert!(is_compared, "{verb}: {verbs:?}");
    }
}

#[test]
fn the_shown_flame_graph_is_current() {
    let recording = Recording::from_rows(UNPACK);
    let arguments = ["flame", "--weight", "critical", "-o", "flame.svg"];
    let output = program(&recording.directory, &arguments.map(str::to_owned));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let drawn = fs::read_to_string(recording.directory.path().join("flame.svg")).unwrap();
    let shown = root().join("docs/images/flame.svg");
    if is_overwriting() {
        fs::write(&shown, &drawn).unwrap();
    }
    assert!(fs::read_to_string(shown).is_ok_and(|shown| shown == drawn), "renew it: SHOWN=overwrite");
}

#[test]
fn the_shown_recording_is_of_the_shipped_script() {
    let sum = Command::new("sha256sum").arg(root().join(SCRIPT)).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let rows = rows(UNPACK);
    let recorded = rows.lines().find_map(|line| line.strip_prefix("-- The sha256sum of the script: "));
    assert_eq!(recorded, sum.split(' ').next(), "{SCRIPT} has changed: renew the documents with scripts/documents.sh");
}
