//! The Python interpreters whose lines are tested: those of this machine, and those of Debian
//! suites in their root directories.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::chains::Shell;
use super::roots::Root;
use super::run::{Record, run};
use super::workloads;

/// The first supported minor version.
const FIRST_MINOR: u32 = 9;

/// An interpreter of 3.9 or later.
#[derive(Clone)]
pub struct Python {
    shell: Shell,
    pub minor: u32,
}

impl Python {
    pub fn new(shell: Shell) -> Option<Python> {
        let printed = shell.run(&["-c", "import sys; print(sys.version_info[1])"]);
        let minor = printed.output().trim().parse().ok().filter(|&minor| minor >= FIRST_MINOR)?;
        Some(Python { shell, minor })
    }

    /// Returns the command that records this interpreter with these arguments.
    pub fn recorder(&self, record: &Record, arguments: &[impl AsRef<OsStr>]) -> Command {
        self.shell.recorder(record, arguments)
    }

    /// Returns the name of a function as this version reports it: up to 3.10, without its enclosing
    /// scope.
    pub fn name<'a>(&self, qualified: &'a str) -> &'a str {
        let plain = qualified.rsplit('.').next().filter(|_| self.minor < 11);
        plain.unwrap_or(qualified)
    }

    /// Reads a source file of its standard library.
    pub fn source(&self, file: &str) -> String {
        let directory = self.shell.root.map_or(PathBuf::from("/"), Root::path);
        fs::read_to_string(directory.join(file.trim_start_matches('/'))).expect("the standard library")
    }
}

impl std::fmt::Display for Python {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, 3.{}", self.shell, self.minor)
    }
}

/// Builds a program that uses a suite's Python as a shared library, as some distributions do.
fn build_linked_with_library_of(root: Root) -> PathBuf {
    const MAIN: &str =
        "int Py_BytesMain(int, char **);\nint main(int n, char **words) { return Py_BytesMain(n, words); }";
    let directory = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let libraries = root.list(&directory, |name| name.starts_with("libpython3.") && name.ends_with(".so.1.0"));
    let library = root.path().join(libraries[0].strip_prefix("/").expect("a path in the root"));
    let program = workloads::directory().join(format!("python-of-{}", root.suite));
    let source = program.with_extension("c");
    fs::write(&source, MAIN).expect("a source");
    let mut compiler = Command::new("cc");
    // The library may need a newer C library than this machine has.
    compiler.arg("-Wl,--unresolved-symbols=ignore-in-shared-libs").args([&source, &library]);
    run(compiler.arg("-o").arg(&program)).expect_code(0);
    program
}

/// Returns the interpreters of the Debian suites.
pub fn suite_interpreters() -> Vec<Python> {
    let found = Root::all().into_iter().flat_map(|root| {
        let programs = root
            .list("usr/bin", |name| name.strip_prefix("python3.").is_some_and(|minor| minor.parse::<u32>().is_ok()));
        programs.into_iter().map(move |program| Python::new(Shell::in_root(root, program)))
    });
    // A program that is compiled here needs a newer C library than that of bullseye.
    let with_newer_libc = Root::all().into_iter().filter(|root| root.suite != "bullseye");
    let linked = with_newer_libc.map(|root| Python::new(Shell::in_root(root, build_linked_with_library_of(root))));
    let found = found.chain(linked);
    found.map(|python| python.expect("an interpreter of 3.9 or later")).collect()
}

/// Returns the oldest and the newest interpreter of this machine. The others are tested with those
/// of the suites.
pub fn interpreters() -> Vec<Python> {
    let mut found = all_interpreters();
    found.sort_by_key(|python| python.minor);
    if found.len() > 2 {
        found.drain(1..found.len() - 1);
    }
    found
}

/// Returns all interpreters of this machine.
pub fn all_interpreters() -> Vec<Python> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let listed_paths = std::env::var_os("SPAWNSCOPE_TEST_PYTHONS").unwrap_or_default();
    let pyenv_versions =
        std::env::var_os("HOME").map(|home| list_directory(PathBuf::from(home).join(".pyenv/versions")));
    let directories = pyenv_versions.into_iter().flatten().map(|version| version.join("bin"));
    let in_directories =
        directories.chain(std::env::split_paths(&path)).flat_map(list_directory).filter(|path| is_python(path));
    let mut seen = HashSet::new();
    in_directories
        .chain(std::env::split_paths(&listed_paths))
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| is_elf(path) && seen.insert(path.clone()))
        .filter_map(|path| Python::new(Shell::installed(path)))
        .collect()
}

fn is_python(path: &Path) -> bool {
    let minor = path.file_name().and_then(|name| name.to_str()?.strip_prefix("python3."));
    minor.is_some_and(|minor| minor.parse::<u32>().is_ok())
}

fn list_directory(directory: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect::<Vec<_>>()
}

fn is_elf(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
}
