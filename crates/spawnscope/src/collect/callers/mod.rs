//! Interpreters whose scripts ask for launches: which executables are one, told by what is in the file and never by its
//! name, and where one keeps the file, line and function that it executes. `elf` reads executables. Knows no maps: the
//! collector hands layouts on to those who read the memory.

mod bash;
mod code;
mod dash;
mod elf;
pub(super) mod python;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use object::ReadCache;

use self::elf::Elf;
use crate::collect::ebpf::wire::{WireBash, WireDash, WirePython};
use crate::event::Pid;

/// Where an interpreter keeps what its script executes.
pub(super) enum Layout {
    /// GNU bash.
    Bash(WireBash),
    /// The Debian Almquist shell.
    Dash(WireDash),
    /// CPython.
    Python(WirePython),
}

/// Where the interpreter in `file` keeps what its script executes; `process` is one that runs it, if any does. `None`: it
/// is no interpreter, or not one that is understood. One that nobody runs yet is trusted to be run for a look at it.
pub(super) fn layout_of(file: &File, process: Option<Pid>) -> Option<Layout> {
    let cache = ReadCache::new(file);
    let program = Elf::parse(&cache)?;
    let trusted = process.is_none().then_some(file);
    let bash = bash::layout(&program).map(Layout::Bash);
    let python = || python::layout(&program, file, process).map(Layout::Python);
    bash.or_else(python)
        .or_else(|| dash::layout(&program, trusted).map(Layout::Dash))
}

/// Directories of the system's interpreters, whatever PATH says.
const DIRECTORIES: [&str; 2] = ["/bin", "/usr/bin"];
const INTERPRETERS: [&str; 6] = ["bash", "sh", "dash", "ash", "python3", "python"];

/// The executables that a command is likely to be run by; they may not exist. `command` is the file of the command.
pub(super) fn usual(command: Option<&Path>) -> Vec<PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let directories = DIRECTORIES.iter().map(PathBuf::from);
    let directories = directories.chain(std::env::split_paths(&search));
    let interpreters = directories.flat_map(|directory| INTERPRETERS.map(|name| directory.join(name)));
    let own = command
        .into_iter()
        .flat_map(|file| [Some(file.to_owned()), named_interpreter(file)]);
    own.flatten().chain(interpreters).collect()
}

/// What the first line of a script names: `#!/bin/sh -e` is run by /bin/sh.
fn named_interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.next().map(|path| PathBuf::from(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_its_interpreter_in_its_first_line() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        let named = |text: &[u8]| {
            std::fs::write(&script, text).unwrap();
            named_interpreter(&script)
        };
        assert_eq!(named(b"#!/bin/sh -e\nexit\n"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(named(b"#! /opt/my\tx"), Some(PathBuf::from("/opt/my")));
        assert_eq!(named(b"#!\n/bin/sh"), None);
        assert_eq!(named(b"\x7fELF"), None);
    }

    #[test]
    fn an_executable_is_no_interpreter_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let bash = directory.path().join("bash");
        for content in [
            &b"#!/bin/bash\n"[..],
            b"",
            b"\x7fELF\x02\x01\x01",
            &std::fs::read("/bin/true").unwrap(),
        ] {
            std::fs::write(&bash, content).unwrap();
            assert!(layout_of(&File::open(&bash).unwrap(), None).is_none());
        }
    }
}
