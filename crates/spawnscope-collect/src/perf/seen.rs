//! What is known of a program: arguments, directory, and the file as it was named. /proc has it, but the process may have ended or executed
//! another program when the reader looks. A copy of its stack has it too, except for the directory.

use std::fs;

use spawnscope_data::event::{Nanos, Pid, variables};
use spawnscope_system::perf_events::Stack;
use spawnscope_system::{clock, procfs};

use crate::initial_stack::{self, Layout, MAX_ARGUMENTS, until_nul};
use crate::scripts;

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// When it had been read. It belongs to an exec if the process had neither ended nor executed anything else by then.
    pub(super) by: Nanos,
    /// Arguments, each NUL-terminated, up to `MAX_ARGUMENTS`.
    pub(super) argv: Vec<u8>,
    /// Bytes of all arguments.
    pub(super) argv_bytes: u64,
    /// The file passed to `execve`; `None` without the right to read the process's memory.
    pub(super) path: Option<Vec<u8>>,
    /// The interpreter of a `#!` script.
    pub(super) interpreter: Option<Vec<u8>>,
    /// The working directory.
    pub(super) cwd: Option<Vec<u8>>,
    /// The variables of its environment that may be recorded, if a copy of its stack has them.
    pub(super) variables: Vec<u8>,
    /// Whether a copy of its stack has it. Then it is not known whether a file that its arguments name is a script.
    pub(super) is_copied: bool,
}

impl Seen {
    /// Looks at a process. `None` if it has ended, or its exec has not set its arguments up yet.
    pub(super) fn of(process: Pid) -> Option<Seen> {
        let mut argv = fs::read(format!("/proc/{}/cmdline", process.0)).ok()?;
        if argv.is_empty() {
            return None;
        }
        let argv_bytes = argv.len() as u64;
        argv.truncate(MAX_ARGUMENTS);
        let path = procfs::program(process).filter(|path| !path.is_empty());
        let interpreter = path
            .as_ref()
            .and_then(|path| scripts::interpreter(process, &argv, path));
        Some(Seen {
            path,
            interpreter,
            cwd: procfs::working_directory(process),
            argv,
            argv_bytes,
            by: clock::now(),
            variables: Vec::new(),
            is_copied: false,
        })
    }

    /// Reads a copied stack. `None` if it does not have the arguments and the file's name.
    pub(super) fn copied(stack: &Stack<'_>) -> Option<Seen> {
        let start = initial_stack::find(stack.content)?;
        let layout = Layout::parse(stack.content.get(start..)?)?;
        let from = |address: u64| {
            let offset = usize::try_from(address.checked_sub(stack.pointer)?).ok()?;
            stack.content.get(offset..)
        };
        let path_at = layout.path?;
        let path = until_nul(from(path_at)?)?;
        let mut argv = layout.first_argument.map_or(Some(Vec::new()), |first| {
            strings(from(first)?, usize::try_from(layout.arguments).ok()?)
        })?;
        let argv_bytes = argv.len() as u64;
        argv.truncate(MAX_ARGUMENTS);
        let environment = layout.first_variable.and_then(|first| {
            let bytes = usize::try_from(path_at.checked_sub(first)?).ok()?;
            from(first)?.get(..bytes)
        });
        Some(Seen {
            by: stack.at,
            argv,
            argv_bytes,
            path: Some(path),
            interpreter: None,
            cwd: None,
            variables: environment.map(variables::allowed).unwrap_or_default(),
            is_copied: true,
        })
    }
}

/// This many strings, which follow one another, each with its NUL.
fn strings(bytes: &[u8], count: usize) -> Option<Vec<u8>> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == 0);
    let end = ends.map(|(at, _)| at + 1).nth(count.checked_sub(1)?)?;
    bytes.get(..end).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack with a frame of the program, the layout, a gap and the strings.
    fn content(pointer: u64) -> Vec<u8> {
        let strings_at = pointer + 400;
        let words = [
            7,
            0,
            2,
            strings_at,
            strings_at + 5,
            0,
            strings_at + 8,
            0,
            libc::AT_PAGESZ,
            rustix::param::page_size() as u64,
            libc::AT_CLKTCK,
            rustix::param::clock_ticks_per_second(),
            libc::AT_EXECFN,
            strings_at + 30,
            0,
            0,
        ];
        let mut content: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        content.resize(400, 0);
        content.extend(b"true\0-x\0CARGO_PKG_NAME=some_one\0/bin/true\0");
        content
    }

    fn seen(content: &[u8], pointer: u64) -> Option<Seen> {
        let (at, pid) = (Nanos(5), Pid(1));
        Seen::copied(&Stack {
            at,
            pid,
            pointer,
            content,
        })
    }

    #[test]
    fn a_copied_stack_has_arguments_path_and_variables() {
        let pointer = 0x7ffc_0000_0000;
        let mut content = content(pointer);
        // The name of the file follows the variables.
        let path_at = 400 + 8 + b"CARGO_PKG_NAME=some_one\0".len();
        content[13 * 8..14 * 8].copy_from_slice(&(pointer + path_at as u64).to_ne_bytes());
        let read = seen(&content, pointer).expect("all is there");
        assert_eq!((read.argv.as_slice(), read.argv_bytes), (&b"true\0-x\0"[..], 8));
        assert_eq!(read.path.as_deref(), Some(&b"/bin/true"[..]));
        assert_eq!(read.variables, b"CARGO_PKG_NAME=some_one\0");
        assert_eq!((read.by, read.cwd), (Nanos(5), None));
        for cut in 0..content.len() {
            assert_eq!(seen(&content[..cut], pointer), None, "{cut} bytes");
        }
    }

    #[test]
    fn this_many_strings_are_taken() {
        assert_eq!(strings(b"a\0b\0c\0", 2), Some(b"a\0b\0".to_vec()));
        assert_eq!(strings(b"a\0b", 2), None);
        assert_eq!(strings(b"a\0", 0), None);
    }
}
