//! Formats the command line that passes many files at once to a program.

use super::launcher::Launcher;
use crate::explain::advice::phrases::{name, quoted, replacement};
use crate::patterns::shells::Dialect;

/// The parts of a command line that has one file.
struct Parts {
    program: String,
    /// The words between the program and the file.
    options: String,
    /// The words after the file.
    destination: String,
}

/// Returns the lines of the fix for a launch with the arguments `argv`. `size` is the number of
/// files per launch if xargs runs several launches in parallel.
pub(super) fn snippet(launcher: Launcher, argv: &[Vec<u8>], has_destination: bool, size: usize) -> Vec<String> {
    let parts = Parts::of(argv, has_destination);
    let without_file = parts.without_file();
    let (before, after) = match launcher {
        Launcher::Xargs { parallel, replaces } => xargs_lines(&parts, parallel, replaces, size),
        Launcher::Find => {
            (format!("find ... -exec {} \\;", parts.with_file("{}")), format!("find ... -exec {without_file} {{}} +"))
        }
        Launcher::Shell(Dialect::Posix) => {
            (format!("for f in *; do {}; done", parts.with_file("\"$f\"")), format!("{without_file} -- *"))
        }
        Launcher::Shell(_) => (
            format!("for f in \"${{files[@]}}\"; do {}; done", parts.with_file("\"$f\"")),
            format!("{without_file} -- \"${{files[@]}}\""),
        ),
    };
    let mut fix = vec!["pass many files at once:".to_owned()];
    fix.extend(replacement(&before, &after));
    if matches!(launcher, Launcher::Xargs { .. }) && has_destination {
        fix.push("  (with -t, the directory comes first, so the files can come last without -I)".to_owned());
    }
    fix
}

fn xargs_lines(parts: &Parts, parallel: usize, replaces: bool, size: usize) -> (String, String) {
    let (each, file) = if replaces { ("-I{}", "{}") } else { ("-n1", "") };
    let workers = if parallel > 1 { format!(" -P{parallel}") } else { String::new() };
    let batch_option = if parallel > 1 { format!(" -n{size}") } else { String::new() };
    (
        format!("xargs {each}{workers} {}", parts.with_file(file)),
        format!("xargs{batch_option}{workers} {}", parts.without_file()),
    )
}

impl Parts {
    fn of(argv: &[Vec<u8>], has_destination: bool) -> Parts {
        let file = argv.len().saturating_sub(if has_destination { 2 } else { 1 });
        Parts {
            program: argv.first().map(|program| name(program)).unwrap_or_default(),
            options: join_words(argv.get(1..file)),
            destination: join_words(argv.get(file + 1..)),
        }
    }

    /// Returns the command with this file.
    fn with_file(&self, file: &str) -> String {
        let Parts { program, options, destination } = self;
        let file = if file.is_empty() { String::new() } else { format!(" {file}") };
        format!("{program}{options}{file}{destination}")
    }

    /// Returns the command without the file, so that several files can be appended.
    fn without_file(&self) -> String {
        let Parts { program, options, destination } = self;
        let target = if destination.is_empty() { String::new() } else { format!(" -t{destination}") };
        format!("{program}{options}{target}")
    }
}

/// Formats words with a space before each. Without `--`, which the caller adds where it is needed.
fn join_words(words: Option<&[Vec<u8>]>) -> String {
    let words = words.unwrap_or_default().iter().filter(|word| *word != b"--");
    words.map(|word| format!(" {}", quoted(&name(word)))).collect()
}
