//! Reads details of a program: arguments, working directory, and the path that was passed to `execve`. They are in /proc, but the process may
//! have ended or executed another program by the time they are read. A copy of the process's stack contains them, too, except for the
//! working directory.

use std::fs;

use crate::perf::kernel::Stack;
use spawnscope_data::event::{Nanos, Pid, variables};
use spawnscope_system::{clock, procfs};

use crate::initial_stack::{self, Layout, MAX_ARGUMENT_BYTES, copied_from, until_nul};
use crate::scripts;

/// The details of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramDetails {
    /// When reading was finished. The details belong to an exec if the process had neither ended nor executed another program before this.
    pub(super) read_at: Nanos,
    /// Arguments, each NUL-terminated, up to `MAX_ARGUMENT_BYTES` in total.
    pub(super) argv: Vec<u8>,
    /// Bytes of all arguments.
    pub(super) argv_bytes: u64,
    /// The path passed to `execve`; `None` if this process may not read the memory of that process.
    pub(super) path: Option<Vec<u8>>,
    /// The interpreter of a `#!` script.
    pub(super) interpreter: Option<Vec<u8>>,
    /// The working directory.
    pub(super) cwd: Option<Vec<u8>>,
    /// The variables of the environment that may be recorded; empty if the details do not come from a copy of the stack.
    pub(super) variables: Vec<u8>,
    /// Whether the details come from a copy of the stack. If so, it is unknown whether the executed file is a script.
    pub(super) is_copied: bool,
}

impl ProgramDetails {
    /// Reads details in /proc. Returns `None` if the process has ended, or its exec has not set up the arguments yet.
    pub(super) fn read(process: Pid) -> Option<ProgramDetails> {
        let mut argv = fs::read(format!("/proc/{}/cmdline", process.0)).ok()?;
        if argv.is_empty() {
            return None;
        }
        let argv_bytes = argv.len() as u64;
        argv.truncate(MAX_ARGUMENT_BYTES);
        let path = procfs::program(process).filter(|path| !path.is_empty());
        let interpreter = path.as_ref().and_then(|path| scripts::interpreter(process, &argv, path));
        Some(ProgramDetails {
            path,
            interpreter,
            cwd: procfs::working_directory(process),
            argv,
            argv_bytes,
            read_at: clock::now(),
            variables: Vec::new(),
            is_copied: false,
        })
    }

    /// Reads details in a copied stack. Returns `None` if the copy does not contain the arguments and the path.
    pub(super) fn from_stack(stack: &Stack<'_>) -> Option<ProgramDetails> {
        let start = initial_stack::find(stack.content)?;
        let layout = Layout::parse(stack.content.get(start..)?)?;
        let path_at = layout.path?;
        let path = until_nul(copied_from(stack.content, stack.pointer, path_at)?)?;
        let mut argv = match layout.first_argument {
            None => Vec::new(),
            Some(first) => {
                let copied = copied_from(stack.content, stack.pointer, first)?;
                strings(copied, usize::try_from(layout.arguments).ok()?)?
            }
        };
        let argv_bytes = argv.len() as u64;
        argv.truncate(MAX_ARGUMENT_BYTES);
        let environment = layout.first_variable.and_then(|first| {
            let bytes = usize::try_from(path_at.checked_sub(first)?).ok()?;
            copied_from(stack.content, stack.pointer, first)?.get(..bytes)
        });
        Some(ProgramDetails {
            read_at: stack.at,
            argv,
            argv_bytes,
            path: Some(path),
            interpreter: None,
            cwd: None,
            variables: environment.map(variables::select_allowed).unwrap_or_default(),
            is_copied: true,
        })
    }
}

/// Returns the first `count` strings, each with its NUL.
fn strings(bytes: &[u8], count: usize) -> Option<Vec<u8>> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == 0);
    let end = ends.map(|(at, _)| at + 1).nth(count.checked_sub(1)?)?;
    bytes.get(..end).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stack with a frame of the program, the layout, a gap and the strings.
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

    fn details(content: &[u8], pointer: u64) -> Option<ProgramDetails> {
        let (at, pid) = (Nanos(5), Pid(1));
        ProgramDetails::from_stack(&Stack { at, pid, pointer, content })
    }

    #[test]
    fn a_copied_stack_contains_arguments_path_and_variables() {
        let pointer = 0x7ffc_0000_0000;
        let mut content = content(pointer);
        // The name of the file follows the variables.
        let path_at = 400 + 8 + b"CARGO_PKG_NAME=some_one\0".len();
        content[13 * 8..14 * 8].copy_from_slice(&(pointer + path_at as u64).to_ne_bytes());
        let read = details(&content, pointer).expect("the copy is complete");
        assert_eq!((read.argv.as_slice(), read.argv_bytes), (&b"true\0-x\0"[..], 8));
        assert_eq!(read.path.as_deref(), Some(&b"/bin/true"[..]));
        assert_eq!(read.variables, b"CARGO_PKG_NAME=some_one\0");
        assert_eq!((read.read_at, read.cwd), (Nanos(5), None));
        for cut in 0..content.len() {
            assert_eq!(details(&content[..cut], pointer), None, "{cut} bytes");
        }
    }

    #[test]
    fn the_requested_number_of_strings_is_returned() {
        assert_eq!(strings(b"a\0b\0c\0", 2), Some(b"a\0b\0".to_vec()));
        assert_eq!(strings(b"a\0b", 2), None);
        assert_eq!(strings(b"a\0", 0), None);
    }
}
