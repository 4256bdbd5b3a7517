//! Runs the commands whose output is shown in documents. A comment before a block says what to run:
//!
//! - `run on NAME.sql`: the block begins with `$ spawnscope ...`, followed by the output of this command for a recording of
//!   `tests/recordings`;
//! - `run on NAME.sql: VERB ...`: this command is run instead of the shown one, which needs privileges or another machine;
//! - `run`: the command reads no recording.
//!
//! The output must have the shape of the text in the block, in which a line `...` stands for any lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::commands::{command_lines, program_commands};
use super::pages::{Block, pages, root};
use super::shape;
use super::stored::create_recording;

/// The recording of `examples/unpack.sh 40`.
pub const UNPACK: &str = "unpack.sql";
/// Lines that begin with this are messages of `record`, not part of the report that it prints. The live tests compare them.
const MESSAGE: &str = "spawnscope: ";

/// A recording under the default name, in a directory of its own.
pub struct Recording {
    directory: tempfile::TempDir,
}

impl Recording {
    /// Makes a recording from its rows in `tests/recordings`.
    pub fn from_rows(name: &str) -> Recording {
        let recording = Recording { directory: tempfile::tempdir().unwrap() };
        let rows = Path::new("crates/spawnscope/tests/recordings").join(name);
        let rows = std::fs::read_to_string(root().join(rows)).unwrap();
        create_recording(&recording.file(), &rows);
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
        let output = Command::new(env!("CARGO_BIN_EXE_spawnscope"))
            .args(&self.arguments)
            .env_remove("COLUMNS")
            .current_dir(directory.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {errors}", self.arguments);
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn output_in_documents_has_the_shape_of_printed_output() {
    let (mut verbs, mut wrong) = (Vec::new(), Vec::new());
    for page in pages() {
        for block in page.blocks() {
            let Some(run) = Run::requested_by(&block) else {
                continue;
            };
            let shown = block.lines[1..].iter().filter(|line| !line.starts_with(MESSAGE));
            let shown = shown.map(|line| format!("{line}\n")).collect::<String>();
            let printed = run.print();
            if !shape::matches(&shown, &printed) {
                wrong.push(format!("{} shows\n{shown}\nbut\n{printed}", page.position(block.line)));
            }
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
fn the_comment_of_a_block_says_what_to_run() {
    let run = Run::requested_by(&commented_block("run on a.sql: report --full")).unwrap();
    assert_eq!(run.recording.as_deref(), Some("a.sql"));
    assert_eq!(run.arguments, ["report", "--full"]);
    let run = Run::requested_by(&commented_block("run")).unwrap();
    assert_eq!((run.recording, run.arguments), (None, vec!["tree".to_owned()]));
    assert!(
        Run::requested_by(&commented_block("table: x86_64")).is_none()
            && Run::requested_by(&Block::default()).is_none()
    );
}

fn commented_block(comment: &str) -> Block {
    let lines = vec!["$ spawnscope tree".to_owned(), "output".to_owned()];
    Block { comment: Some(comment.to_owned()), lines, ..Block::default() }
}
