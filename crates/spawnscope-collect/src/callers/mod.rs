//! Recognizes the executables of interpreters, by the content of the file and never by its name,
//! and finds where an interpreter stores the file, line and function being executed. `elf` reads
//! executables. This module knows nothing about BPF: the collectors pass the layouts on to the code
//! that reads the memory.

mod bash;
pub(super) mod chains;
mod code;
mod dash;
mod elf;
pub(super) mod make;
mod perl;
pub(super) mod python;
pub(super) mod sources;
mod zsh;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use object::ReadCache;

use self::dash::functions::Functions;
use self::elf::Elf;
use self::sources::Sources;
use crate::wire::{WireBash, WireDash, WireMake, WirePerl, WirePython, WireZsh};
use spawnscope_data::event::Pid;

/// The files of scripts that were read so far, and the functions found in them.
#[derive(Debug, Default)]
pub(super) struct Files {
    sources: Sources,
    functions: Functions,
}

/// Where an interpreter stores the position in its script.
#[derive(Debug)]
pub(super) enum Layout {
    Bash(WireBash),
    /// The Debian Almquist shell, or the shell of busybox.
    Dash(WireDash),
    Python(WirePython),
    /// Perl with threads.
    Perl(WirePerl),
    Make(WireMake),
    Zsh(WireZsh),
}

/// Returns the layout of the interpreter in `file`; `None` if the file is not a supported
/// interpreter. `process` is a process that runs the file. Without one, the file is an interpreter
/// of the system or the user's command, so it is trusted and may be run for calibration.
pub(super) fn layout_of(file: &File, process: Option<Pid>) -> Option<Layout> {
    let cache = ReadCache::new(file);
    let program = Elf::parse(&cache)?;
    let trusted = process.is_none().then_some(file);
    let bash = bash::layout(&program).map(Layout::Bash);
    bash.or_else(|| python::layout(&program, file, process).map(Layout::Python))
        .or_else(|| perl::layout(&program).map(Layout::Perl))
        .or_else(|| make::layout(&program).map(Layout::Make))
        .or_else(|| zsh::layout(&program).map(Layout::Zsh))
        .or_else(|| dash::layout(&program, trusted).map(Layout::Dash))
}

/// Returns the virtual address of the entry point in an executable file.
pub(super) fn entry_point(file: &File) -> Option<u64> {
    Elf::parse(&ReadCache::new(file)).map(|program| program.entry_point())
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// Returns a text; `None` if it is empty, which means unknown.
fn known(text: &[u8]) -> Option<Vec<u8>> {
    (!text.is_empty()).then(|| text.to_vec())
}

/// Directories of the system's interpreters. They are searched even if they are not in PATH.
const DIRECTORIES: [&str; 2] = ["/bin", "/usr/bin"];
const INTERPRETERS: [&str; 10] = ["bash", "zsh", "sh", "dash", "ash", "python3", "python", "perl", "make", "gmake"];

/// Returns the paths of executables that are likely to run a command's scripts. They may not exist.
/// `command` is the file of the command.
pub(super) fn likely_interpreters(command: Option<&Path>) -> Vec<PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let directories = DIRECTORIES.iter().map(PathBuf::from);
    let directories = directories.chain(std::env::split_paths(&search));
    let interpreters = directories.flat_map(|directory| INTERPRETERS.map(|name| directory.join(name)));
    let own = command.into_iter().flat_map(|file| [Some(file.to_owned()), named_interpreter(file)]);
    own.flatten().chain(interpreters).collect()
}

/// Returns the interpreter named in a script's first line: /bin/sh for `#!/bin/sh -e`.
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
    fn the_first_line_of_a_script_names_its_interpreter() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        for (text, named) in [
            ("#!/bin/sh -e\nexit\n", Some("/bin/sh")),
            ("#! /opt/my\tx", Some("/opt/my")),
            ("#!\n/bin/sh", None),
            ("\x7fELF", None),
        ] {
            std::fs::write(&script, text).unwrap();
            assert_eq!(named_interpreter(&script), named.map(PathBuf::from), "{text:?}");
        }
    }

    #[test]
    fn an_executable_is_not_recognized_as_an_interpreter_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let bash = directory.path().join("bash");
        for content in [&b"#!/bin/bash\n"[..], b"", b"\x7fELF\x02\x01\x01", &std::fs::read("/bin/true").unwrap()] {
            std::fs::write(&bash, content).unwrap();
            assert!(layout_of(&File::open(&bash).unwrap(), None).is_none());
        }
    }
}
