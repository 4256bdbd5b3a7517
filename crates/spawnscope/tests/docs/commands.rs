//! Checks that the program accepts the command lines in documents, and that SQL in documents runs
//! on a recording.

use clap::error::ErrorKind;

use super::pages::{Block, Page, pages};
use super::shell;
use super::shown::{Recording, UNPACK};

/// Placeholders that stand for a value of a certain form, each with a valid value. All other
/// placeholders stand for any text.
const PLACEHOLDERS: [(&str, &str); 4] = [("PID", "1"), ("SHELL", "bash"), ("VERB", "report"), ("HZ", "999")];

/// Returns the command lines of a block: those after prompts if there are any, otherwise all. A
/// line that ends with `|` or a backslash continues.
pub fn command_lines(block: &Block) -> Vec<(usize, String)> {
    let has_prompts = block.lines.iter().any(|line| line.starts_with("$ "));
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continues = false;
    for (line, number) in block.lines.iter().zip(block.line..) {
        let text = line.strip_prefix("$ ").unwrap_or(line).trim();
        if continues {
            lines.last_mut().unwrap().1.push_str(text);
        } else if !has_prompts || line.starts_with("$ ") {
            lines.push((number, text.to_owned()));
        } else {
            continue;
        }
        let last = &mut lines.last_mut().unwrap().1;
        continues = last.ends_with('|') || last.ends_with('\\');
        *last = last.trim_end_matches('\\').to_owned();
    }
    lines
}

/// Returns the commands of `program` in a line, without `sudo` and variables before them.
pub fn program_commands(program: &str, line: &str) -> Vec<Vec<String>> {
    let is_before =
        |word: &&String| *word == "sudo" || word.split_once('=').is_some_and(|(name, _)| !name.contains('-'));
    let commands = shell::commands(line).into_iter();
    let bare = commands.map(|words| {
        let before = words.iter().take_while(is_before).count();
        words[before..].to_vec()
    });
    bare.filter(|words| words.first().is_some_and(|word| word == program)).collect()
}

/// Parses a command as the program does. Help and the version count as parsed.
fn parse(words: &[String]) -> Result<(), String> {
    let values = words.iter().map(|word| {
        let known = PLACEHOLDERS.iter().find(|(name, _)| name == word);
        known.map_or(word.clone(), |(_, value)| (*value).to_owned())
    });
    match spawnscope::cli::command().try_get_matches_from(values) {
        Err(error) if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Err(error.to_string())
        }
        _ => Ok(()),
    }
}

/// Returns the text of a page that may contain commands, with line numbers: the command lines of
/// code blocks, and code spans.
fn candidates(page: &Page) -> Vec<(usize, String)> {
    let mut found: Vec<_> = page.blocks().iter().flat_map(command_lines).collect();
    let prose = page.prose();
    let spans = prose.iter().flat_map(|(number, line)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.map(|span| (*number, span.to_owned()))
    });
    found.extend(spans.filter(|(_, span)| span.contains("spawnscope ")));
    found
}

#[test]
fn every_command_parses() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages() {
        for (number, line) in candidates(&page) {
            for words in program_commands("spawnscope", &line) {
                checked += 1;
                // A verb alone is a name in a sentence.
                if let Err(error) = parse(&words)
                    && words.len() > 2
                {
                    wrong.push(format!("{}: {line}: {error}", page.position(number)));
                }
            }
        }
    }
    assert!(checked > 100, "commands are found: {checked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sql_in_documents_runs_on_a_recording() {
    let recording = Recording::from_rows(UNPACK);
    let connection = rusqlite::Connection::open(recording.file()).unwrap();
    let mut checked = 0;
    for page in pages() {
        for (number, line) in page.blocks().iter().flat_map(command_lines) {
            for words in program_commands("sqlite3", &line) {
                checked += 1;
                let rows = connection.query_row(words.last().unwrap(), [], |row| row.get::<_, i64>(0));
                assert!(rows.is_ok_and(|count| count > 0), "{}: {line}", page.position(number));
            }
        }
    }
    assert!(checked > 0, "a query is found");
}

#[test]
fn wrong_commands_are_rejected() {
    for right in [
        "sudo spawnscope record -p PID",
        "X=1 spawnscope report --json | jq",
        "spawnscope record -- make --wrong",
        "spawnscope --help",
    ] {
        assert_eq!(program_commands("spawnscope", right).len(), 1, "{right}");
        assert!(has_right_commands(right), "{right}");
    }
    for wrong in [
        "spawnscope report --wrong",
        "true; spawnscope rapport",
        "spawnscope record -p x",
        "spawnscope doctor no-such-check",
    ] {
        assert!(!has_right_commands(wrong), "{wrong}");
    }
    let block = Block { lines: ["$ one", "output", "$ two |", "three"].map(str::to_owned).into(), ..Block::default() };
    let found: Vec<String> = command_lines(&block).into_iter().map(|(_, line)| line).collect();
    assert_eq!(found, ["one", "two |three"]);
}

fn has_right_commands(line: &str) -> bool {
    program_commands("spawnscope", line).iter().all(|words| parse(words).is_ok())
}
