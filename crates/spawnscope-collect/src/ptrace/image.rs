//! Reads what the kernel has put on the stack for a new program, in a process that is stopped right
//! after its exec: the arguments, and the auxiliary vector with the file's name, the entry point
//! and the loader (`create_elf_tables` in fs/binfmt_elf.c).

use spawnscope_data::event::{Pid, variables};
use spawnscope_system::memory;
use spawnscope_system::ptrace::Entry;

use crate::initial_stack::{Layout, MAX_ARGUMENT_BYTES, WORD, copied_from, until_nul};

/// Maximum length in bytes of a path that the kernel accepts, including its NUL.
pub(super) const MAX_PATH: usize = libc::PATH_MAX as usize;
/// Number of bytes of the stack that are read first. For almost every process, they contain all
/// that the kernel puts there, strings included.
const USUAL_STACK_BYTES: usize = 16384;
/// Number of bytes that are read if the first ones are not enough. These bytes hold about 100,000
/// arguments and variables.
const LARGE_STACK_BYTES: usize = 1 << 20;
/// Maximum number of bytes of an environment that are read separately, if it is beyond the part of
/// the stack that has already been read.
const MAX_ENVIRONMENT_BYTES: usize = 65536;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) path: Vec<u8>,
    /// The arguments of `execve` as addresses in the new memory: the file name, the list of
    /// arguments, and the environment.
    pub(super) exec_arguments: [u64; 3],
    /// Arguments, each NUL-terminated, up to `MAX_ARGUMENT_BYTES` in total.
    pub(super) argv: Vec<u8>,
    /// Bytes of all arguments, NULs included.
    pub(super) argv_bytes: u64,
    /// The environment variables that may be recorded.
    pub(super) variables: Vec<u8>,
    pub(super) entry_point: u64,
    /// The entry of the program from a loader, if it can be observed.
    pub(super) entry: Option<Entry>,
    pub(super) has_loader: bool,
}

impl Image {
    /// Reads the image of a process of this architecture, whose stack pointer is `stack`. Returns
    /// `None` if it cannot be read.
    pub(super) fn read(process: Pid, stack: u64) -> Option<Image> {
        let sizes = [USUAL_STACK_BYTES, LARGE_STACK_BYTES].into_iter();
        let (content, layout) = sizes
            .filter_map(|size| {
                let content = memory::read(process, stack, size);
                let layout = Layout::parse(&content)?;
                Some((content, layout))
            })
            .next()?;
        // The strings are on the stack, usually within what was read.
        let path_at = layout.path?;
        let path = copied_from(&content, stack, path_at).and_then(until_nul);
        // The kernel stores the strings one after another: arguments, variables, the file's name.
        let (start, end) = (layout.first_argument, layout.first_variable.unwrap_or(path_at));
        let argv_bytes = start.map_or(0, |start| end.saturating_sub(start));
        let kept = usize::try_from(argv_bytes).unwrap_or(MAX_ARGUMENT_BYTES).min(MAX_ARGUMENT_BYTES);
        let environment = layout.first_variable.map(|first| {
            let bytes = usize::try_from(path_at.saturating_sub(first)).unwrap_or(usize::MAX);
            let read = copied_from(&content, stack, first).and_then(|rest| rest.get(..bytes));
            read.map_or_else(|| memory::read(process, first, bytes.min(MAX_ENVIRONMENT_BYTES)), <[u8]>::to_vec)
        });
        let (entry_point, slot_offset) = layout.entry_point?;
        let path = path.or_else(|| memory::read_string(process, path_at, MAX_PATH))?;
        // The kernel leaves a word unused above the file's name, at the top of the stack.
        let times = [path_at + path.len() as u64 + 1, stack + layout.unused];
        let entry = layout.vdso.map(|vdso| Entry { entry_point, slot: stack + slot_offset, times, vdso });
        Some(Image {
            path,
            exec_arguments: [path_at, stack + WORD as u64, stack + (layout.arguments + 2) * WORD as u64],
            argv: start.map_or_else(Vec::new, |start| {
                let read = copied_from(&content, stack, start).and_then(|rest| rest.get(..kept));
                read.map_or_else(|| memory::read(process, start, kept), <[u8]>::to_vec)
            }),
            argv_bytes,
            variables: environment.map(|bytes| variables::select_allowed(&bytes)).unwrap_or_default(),
            entry_point,
            entry,
            has_loader: layout.loader != 0,
        })
    }
}

/// Reads the arguments passed to an `execve` that has not begun yet. Returns them NUL-terminated,
/// up to `MAX_ARGUMENT_BYTES`, and the number of bytes of all of them.
pub(super) fn arguments_passed(process: Pid, list: u64) -> (Vec<u8>, u64) {
    let pointers = memory::read(process, list, LARGE_STACK_BYTES);
    let (pointers, _) = pointers.as_chunks::<WORD>();
    let pointers = pointers.iter().map(|pointer| u64::from_ne_bytes(*pointer));
    let (mut argv, mut bytes) = (Vec::new(), 0);
    for pointer in pointers.take_while(|pointer| *pointer != 0) {
        let argument = memory::read_string(process, pointer, MAX_PATH).unwrap_or_default();
        bytes += argument.len() as u64 + 1;
        if argv.len() + argument.len() < MAX_ARGUMENT_BYTES {
            argv.extend(argument);
            argv.push(0);
        }
    }
    (argv, bytes)
}
