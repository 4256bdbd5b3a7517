//! Launchers that pass one file at a time to a program: xargs, find, or a shell loop.

use crate::explain::advice::phrases::name;
use crate::model::launch::Exec;
use crate::patterns::shells::Dialect;

/// A launcher that passes one file at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Launcher {
    /// `xargs`.
    Xargs {
        /// Number of parallel processes (-P).
        parallel: usize,
        /// Whether it replaces a placeholder (-I).
        replaces: bool,
    },
    Find,
    Shell(Dialect),
}

/// Returns the launcher that an exec runs. `None` if the program is not a launcher, or already
/// passes many files at once.
pub(super) fn launcher(exec: &Exec<'_>, cpus: usize) -> Option<Launcher> {
    let program = exec.program_name();
    let arguments: Vec<String> = exec.arguments().map(name).collect();
    match program {
        b"xargs" | b"gxargs" => xargs(&arguments, cpus),
        // Only a command at the end of the expression can be batched. Anywhere else it is a test,
        // whose result find needs for each file.
        b"find" | b"gfind" => arguments.last().is_some_and(|last| last == ";").then_some(Launcher::Find),
        _ => Dialect::of_program(program).map(Launcher::Shell),
    }
}

/// Returns the launcher of an `xargs` call if its options pass one argument or line at a time.
fn xargs(arguments: &[String], cpus: usize) -> Option<Launcher> {
    let mut parallel = 1;
    let (mut is_single, mut replaces) = (false, false);
    let mut words = arguments.iter().skip(1).map(String::as_str);
    while let Some((option, value)) = next_option(&mut words) {
        match (option, value) {
            ("-n" | "-L" | "--max-args" | "--max-lines", Some("1")) => is_single = true,
            ("-I" | "-i" | "--replace", _) => (is_single, replaces) = (true, true),
            ("-P" | "--max-procs", Some(value)) => {
                parallel = value.parse().ok().filter(|parallel| *parallel > 0).unwrap_or(cpus);
            }
            _ => {}
        }
    }
    is_single.then_some(Launcher::Xargs { parallel, replaces })
}

/// Returns the next option with its value. `None` when the next word is the program that xargs
/// launches.
fn next_option<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<(&'w str, Option<&'w str>)> {
    let word = words.next().filter(|word| word.starts_with('-'))?;
    if word.starts_with("--") {
        return Some(word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value))));
    }
    if word.len() > 2 && word.is_char_boundary(2) {
        return Some((&word[..2], Some(&word[2..])));
    }
    let takes_value = matches!(word, "-n" | "-L" | "-P" | "-I" | "-d" | "-s" | "-a" | "-E");
    Some((word, if takes_value { words.next() } else { None }))
}
