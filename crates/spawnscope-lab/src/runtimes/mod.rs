//! Runtimes of languages that launch programs: a launcher in each language, how to run it, and how
//! its runtime creates processes.

mod creation;
mod parent;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use self::parent::{FILL_MEMORY_FACTOR, RuntimeParent, find_program};
use crate::LabError;

/// A runtime and its launcher. The arguments of a launcher are a number of bytes, a program, and
/// the exit status of that program. It fills memory of that size, and prints the number of bytes.
/// Each line of its standard input is a number of launches: it launches the program that many
/// times, one after the other, and prints how many of them had the status.
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    pub name: &'static str,
    /// Names of the interpreter or compiler, the usual one first.
    programs: &'static [&'static str],
    /// What makes it print its version.
    version: &'static str,
    /// Its options before the output of a compiler, or before the launcher.
    options: &'static [&'static str],
    is_compiled: bool,
    file: &'static str,
    launcher: &'static str,
}

pub const BASH: Runtime = interpreter("bash", &["bash"], "launcher.sh", include_str!("launcher.sh"));

pub const ALL: [Runtime; 9] = [
    BASH,
    interpreter("Python", &["python3", "python"], "launcher.py", include_str!("launcher.py")),
    interpreter("Node", &["node", "nodejs"], "launcher.js", include_str!("launcher.js")),
    interpreter("Ruby", &["ruby"], "launcher.rb", include_str!("launcher.rb")),
    Runtime { version: "-v", ..interpreter("Perl", &["perl"], "launcher.pl", include_str!("launcher.pl")) },
    interpreter("PHP", &["php"], "launcher.php", include_str!("launcher.php")),
    // The default is 25, a quarter of the machine's memory.
    Runtime {
        options: &["-XX:MaxRAMPercentage=75"],
        ..interpreter("Java", &["java"], "Launcher.java", include_str!("Launcher.java"))
    },
    Runtime {
        version: "version",
        ..compiler("Go", &["go"], &["build", "-o"], "launcher.go", include_str!("launcher.go"))
    },
    compiler("Rust", &["rustc"], &["-O", "-o"], "launcher.rs", include_str!("launcher.rs")),
];

const fn interpreter(
    name: &'static str,
    programs: &'static [&'static str],
    file: &'static str,
    launcher: &'static str,
) -> Runtime {
    Runtime { name, programs, version: "--version", options: &[], is_compiled: false, file, launcher }
}

const fn compiler(
    name: &'static str,
    programs: &'static [&'static str],
    options: &'static [&'static str],
    file: &'static str,
    launcher: &'static str,
) -> Runtime {
    Runtime { options, is_compiled: true, ..interpreter(name, programs, file, launcher) }
}

impl Runtime {
    /// Finds its interpreter or compiler in PATH.
    pub fn find(&self) -> Option<PathBuf> {
        self.programs.iter().find_map(|program| find_program(program))
    }

    /// Returns the name and the version.
    pub fn label(&self, program: &Path) -> String {
        let output = Command::new(program).arg(self.version).output().map(|output| output.stdout);
        let version = version_in(&String::from_utf8_lossy(&output.unwrap_or_default())).map(str::to_owned);
        version.map_or_else(|| self.name.to_owned(), |version| format!("{} {version}", self.name))
    }

    /// Writes the launcher into a directory, and compiles it if necessary. Returns the command
    /// without its arguments.
    pub fn prepare(&self, program: &Path, directory: &Path) -> Result<Vec<PathBuf>, LabError> {
        let file = directory.join(self.file);
        std::fs::write(&file, self.launcher).map_err(LabError::doing("write a launcher"))?;
        let options = self.options.iter().map(PathBuf::from);
        if !self.is_compiled {
            return Ok([program.to_owned()].into_iter().chain(options).chain([file]).collect());
        }
        let compiled = directory.join(format!("launcher-{}", self.name));
        let output = Command::new(program)
            .args(options)
            .args([&compiled, &file])
            .current_dir(directory)
            .output()
            .map_err(LabError::doing(format!("compile a {} launcher", self.name)))?;
        match output.status.success() {
            true => Ok(vec![compiled]),
            false => {
                let errors = String::from_utf8_lossy(&output.stderr);
                let last = errors.trim_end().lines().last().unwrap_or("no reason given");
                Err(LabError::Unavailable(format!("{} failed: {last}", program.display())))
            }
        }
    }
}

/// Returns the first word or part of a word that is a version: `5.36.0` of `(v5.36.0)`.
fn version_in(text: &str) -> Option<&str> {
    let words = text.split(|character: char| !character.is_ascii_digit() && character != '.');
    words.map(|word| word.trim_matches('.')).find(|word| word.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_runtimes_print() {
        for (text, version) in [
            ("v24.21.0\n", Some("24.21.0")),
            ("go version go1.24.1 linux/amd64", Some("1.24.1")),
            ("\nThis is perl 5, version 36, subversion 0 (v5.36.0) built for x", Some("5.36.0")),
            ("openjdk 17.0.15 2025-04-15\nOpenJDK Runtime", Some("17.0.15")),
            ("ruby. 3", None),
        ] {
            assert_eq!(version_in(text), version, "{text}");
        }
    }
}
