//! The code that passes many files at once to a program.

use super::launcher::Launcher;
use crate::advice::phrases::{name, quoted, replacement};
use crate::patterns::shells::Dialect;

/// The parts of a command line with one file.
struct Parts {
    program: String,
    /// Between the program and the file.
    options: String,
    /// After the file.
    destination: String,
}

/// Returns the lines of the fix for a launch with the arguments `argv`. `size` is the number of files per launch where several launches run
/// in parallel.
pub(super) fn snippet(launcher: Launcher, argv: &[Vec<u8>], has_destination: bool, size: usize) -> Vec<String> {
    let parts = Parts::of(argv, has_destination);
    let together = parts.together();
    let (before, after) = match launcher {
        Launcher::Xargs { parallel, replaces } => of_xargs(&parts, parallel, replaces, size),
        Launcher::Find => (
            format!("find ... -exec {} \\;", parts.one("{}")),
            format!("find ... -exec {together} {{}} +"),
        ),
        Launcher::Shell(Dialect::Posix) => (
            format!("for f in *; do {}; done", parts.one("\"$f\"")),
            format!("{together} -- *"),
        ),
        Launcher::Shell(_) => (
            format!("for f in \"${{files[@]}}\"; do {}; done", parts.one("\"$f\"")),
            format!("{together} -- \"${{files[@]}}\""),
        ),
    };
    let mut fix = vec!["pass many files at once:".to_owned()];
    fix.extend(replacement(&before, &after));
    if matches!(launcher, Launcher::Xargs { .. }) && has_destination {
        fix.push("  (with -t, the directory comes first, so the files can come last without -I)".to_owned());
    }
    fix
}

fn of_xargs(parts: &Parts, parallel: usize, replaces: bool, size: usize) -> (String, String) {
    let (each, file) = if replaces { ("-I{}", "{}") } else { ("-n1", "") };
    let workers = if parallel > 1 {
        format!(" -P{parallel}")
    } else {
        String::new()
    };
    let at_a_time = if parallel > 1 {
        format!(" -n{size}")
    } else {
        String::new()
    };
    (
        format!("xargs {each}{workers} {}", parts.one(file)),
        format!("xargs{at_a_time}{workers} {}", parts.together()),
    )
}

impl Parts {
    fn of(argv: &[Vec<u8>], has_destination: bool) -> Parts {
        let file = argv.len().saturating_sub(if has_destination { 2 } else { 1 });
        let words = |words: Option<&[Vec<u8>]>| -> String {
            // `--` is added again where it is needed.
            let words = words.unwrap_or_default().iter().filter(|word| *word != b"--");
            words.map(|word| format!(" {}", quoted(&name(word)))).collect()
        };
        Parts {
            program: argv.first().map(|program| name(program)).unwrap_or_default(),
            options: words(argv.get(1..file)),
            destination: words(argv.get(file + 1..)),
        }
    }

    fn one(&self, file: &str) -> String {
        let Parts {
            program,
            options,
            destination,
        } = self;
        let file = if file.is_empty() {
            String::new()
        } else {
            format!(" {file}")
        };
        format!("{program}{options}{file}{destination}")
    }

    fn together(&self) -> String {
        let Parts {
            program,
            options,
            destination,
        } = self;
        let target = if destination.is_empty() {
            String::new()
        } else {
            format!(" -t{destination}")
        };
        format!("{program}{options}{target}")
    }
}
