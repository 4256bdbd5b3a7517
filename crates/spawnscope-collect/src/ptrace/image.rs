//! A new program image, as the kernel laid it out on the stack of a process that is stopped right after its exec: arguments, and the
//! auxiliary vector with the file's name, the entry point and the loader (`create_elf_tables` in fs/binfmt_elf.c).

use spawnscope_data::event::{Pid, variables};
use spawnscope_system::memory;

use crate::scripts;

/// Bytes of arguments that are kept, as with eBPF.
const MAX_ARGUMENTS: usize = 4096;
/// The longest path that the kernel accepts, including its NUL.
const MAX_PATH: usize = libc::PATH_MAX as usize;
/// First size of the buffer: enough for all that the kernel puts on the stack of almost every process, strings included.
const USUAL_STACK: usize = 16384;
/// Largest size of the buffer: enough for about 100,000 arguments and variables.
const LARGE_STACK: usize = 1 << 20;
/// Largest part of an environment that is read if it is not on the stack that was read.
const MAX_ENVIRONMENT: usize = 65536;
const WORD: usize = size_of::<u64>();

/// The image as described on the stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// The file name passed to `execve`.
    pub(super) path: Vec<u8>,
    /// Arguments, each NUL-terminated, up to `MAX_ARGUMENTS`.
    pub(super) argv: Vec<u8>,
    /// Bytes of all arguments, NULs included.
    pub(super) argv_bytes: u64,
    /// The variables of its environment that may be recorded.
    pub(super) variables: Vec<u8>,
    /// The entry point of the program, and the address of its entry in the auxiliary vector.
    pub(super) entry: u64,
    pub(super) entry_slot: u64,
    /// Where the vDSO is.
    pub(super) vdso: Option<u64>,
    /// Whether a dynamic loader runs before it.
    pub(super) has_loader: bool,
}

/// Pointers and numbers on the stack.
#[derive(Debug, Default, PartialEq, Eq)]
struct Layout {
    first_argument: Option<u64>,
    first_variable: Option<u64>,
    path: Option<u64>,
    /// The value of AT_ENTRY, and where it is relative to the stack pointer.
    entry: Option<(u64, u64)>,
    vdso: Option<u64>,
    loader: u64,
}

impl Layout {
    /// `None` if the words end before the vector does.
    fn parse(stack: &[u8]) -> Option<Layout> {
        let (words, _) = stack.as_chunks::<WORD>();
        let places = (0u64..).step_by(WORD);
        let mut words = words
            .iter()
            .zip(places)
            .map(|(word, place)| (u64::from_ne_bytes(*word), place));
        let mut next = || words.next();
        let arguments = next()?.0;
        let mut layout = Layout::default();
        if arguments > 0 {
            layout.first_argument = Some(next()?.0);
            for _ in 0..arguments {
                next()?;
            }
        } else {
            next()?;
        }
        layout.first_variable = Some(next()?.0).filter(|variable| *variable != 0);
        if layout.first_variable.is_some() {
            while next()?.0 != 0 {}
        }
        loop {
            let ((kind, _), (value, place)) = (next()?, next()?);
            match kind {
                libc::AT_NULL => return Some(layout),
                libc::AT_BASE => layout.loader = value,
                libc::AT_ENTRY => layout.entry = Some((value, place)),
                libc::AT_SYSINFO_EHDR => layout.vdso = Some(value),
                libc::AT_EXECFN => layout.path = Some(value),
                _ => {}
            }
        }
    }
}

impl Image {
    /// The image of a process of this architecture, whose stack pointer is `stack`. `None` if it cannot be read.
    pub(super) fn read(process: Pid, stack: u64) -> Option<Image> {
        let sizes = [USUAL_STACK, LARGE_STACK].into_iter();
        let (content, layout) = sizes
            .filter_map(|size| {
                let content = memory::read(process, stack, size);
                let layout = Layout::parse(&content)?;
                Some((content, layout))
            })
            .next()?;
        // The strings are on the stack, usually within what was read.
        let from = |address: u64| {
            let offset = usize::try_from(address.checked_sub(stack)?).ok()?;
            content.get(offset..)
        };
        let path_at = layout.path?;
        // The kernel stores the strings one after another: arguments, variables, the file's name.
        let (start, end) = (layout.first_argument, layout.first_variable.unwrap_or(path_at));
        let argv_bytes = start.map_or(0, |start| end.saturating_sub(start));
        let kept = usize::try_from(argv_bytes).unwrap_or(MAX_ARGUMENTS).min(MAX_ARGUMENTS);
        let environment = layout.first_variable.map(|first| {
            let bytes = usize::try_from(path_at.saturating_sub(first)).unwrap_or(usize::MAX);
            let read = from(first).and_then(|rest| rest.get(..bytes));
            read.map_or_else(
                || memory::read(process, first, bytes.min(MAX_ENVIRONMENT)),
                <[u8]>::to_vec,
            )
        });
        let (entry, place) = layout.entry?;
        Some(Image {
            path: from(path_at)
                .and_then(until_nul)
                .or_else(|| memory::string(process, path_at, MAX_PATH))?,
            argv: start.map_or_else(Vec::new, |start| {
                let read = from(start).and_then(|rest| rest.get(..kept));
                read.map_or_else(|| memory::read(process, start, kept), <[u8]>::to_vec)
            }),
            argv_bytes,
            variables: environment.map(|bytes| variables::allowed(&bytes)).unwrap_or_default(),
            entry,
            entry_slot: stack + place,
            vdso: layout.vdso,
            has_loader: layout.loader != 0,
        })
    }

    /// The interpreter, if the file is a `#!` script.
    pub(super) fn interpreter(&self, process: Pid) -> Option<Vec<u8>> {
        scripts::interpreter(process, &self.argv, &self.path)
    }
}

fn until_nul(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(bytes[..end].to_vec())
}

/// The arguments passed to an `execve` that has not begun yet: each NUL-terminated, up to `MAX_ARGUMENTS`, and the bytes of all of
/// them.
pub(super) fn arguments_passed(process: Pid, list: u64) -> (Vec<u8>, u64) {
    let pointers = memory::read(process, list, LARGE_STACK.min(512 * WORD));
    let (pointers, _) = pointers.as_chunks::<WORD>();
    let pointers = pointers.iter().map(|pointer| u64::from_ne_bytes(*pointer));
    let (mut argv, mut bytes) = (Vec::new(), 0);
    for pointer in pointers.take_while(|pointer| *pointer != 0) {
        let argument = memory::string(process, pointer, MAX_PATH).unwrap_or_default();
        bytes += argument.len() as u64 + 1;
        if argv.len() + argument.len() < MAX_ARGUMENTS {
            argv.extend(argument);
            argv.push(0);
        }
    }
    (argv, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_stack_is_parsed_with_and_without_arguments_and_variables() {
        let vector = [
            libc::AT_BASE,
            7,
            libc::AT_SYSINFO_EHDR,
            6,
            libc::AT_ENTRY,
            8,
            libc::AT_EXECFN,
            9,
            libc::AT_NULL,
            0,
        ];
        let layout = |words: usize, first_argument, first_variable| Layout {
            first_argument,
            first_variable,
            path: Some(9),
            entry: Some((8, ((words + 5) * WORD) as u64)),
            vdso: Some(6),
            loader: 7,
        };
        for (before, expected) in [
            (&[2, 100, 101, 0, 200, 201, 0][..], layout(7, Some(100), Some(200))),
            (&[1, 100, 0, 0], layout(4, Some(100), None)),
            (&[0, 0, 200, 0], layout(4, None, Some(200))),
        ] {
            let words = [before, &vector].concat();
            assert_eq!(Layout::parse(&stack(&words)), Some(expected));
            for cut in 0..words.len() {
                assert_eq!(Layout::parse(&stack(&words[..cut])), None, "{cut} words");
            }
        }
    }
}
