//! Parses what the kernel puts on the stack of a new program: the number of arguments, pointers to
//! the arguments and to the environment variables, and the auxiliary vector. The strings are above
//! these (`create_elf_tables` in fs/binfmt_elf.c).

/// Maximum number of bytes of arguments that are stored, as with eBPF.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 4096;
pub(crate) const WORD: usize = size_of::<u64>();

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) arguments: u64,
    pub(crate) first_argument: Option<u64>,
    pub(crate) first_variable: Option<u64>,
    /// The address of the string with the file name passed to `execve` (AT_EXECFN).
    pub(crate) path: Option<u64>,
    /// The value of AT_ENTRY, and its offset from the stack pointer.
    pub(crate) entry_point: Option<(u64, u64)>,
    /// The offset from the stack pointer of the value of AT_NULL, which nothing uses.
    pub(crate) unused: u64,
    pub(crate) vdso: Option<u64>,
    /// The base address of the dynamic loader (AT_BASE); 0: none.
    pub(crate) loader: u64,
}

impl Layout {
    /// Parses a copy of the stack. Returns `None` if the copy ends before the auxiliary vector
    /// does.
    pub(crate) fn parse(stack: &[u8]) -> Option<Layout> {
        let (words, _) = stack.as_chunks::<WORD>();
        let offsets = (0u64..).step_by(WORD);
        let mut words = words.iter().zip(offsets).map(|(word, offset)| (u64::from_ne_bytes(*word), offset));
        let arguments = words.next()?.0;
        let mut layout = Layout { arguments, ..Layout::default() };
        if arguments > 0 {
            layout.first_argument = Some(words.next()?.0);
            for _ in 0..arguments {
                words.next()?;
            }
        } else {
            words.next()?;
        }
        layout.first_variable = Some(words.next()?.0).filter(|variable| *variable != 0);
        if layout.first_variable.is_some() {
            while words.next()?.0 != 0 {}
        }
        loop {
            let ((kind, _), (value, offset)) = (words.next()?, words.next()?);
            match kind {
                libc::AT_NULL => return Some(Layout { unused: offset, ..layout }),
                libc::AT_BASE => layout.loader = value,
                libc::AT_ENTRY => layout.entry_point = Some((value, offset)),
                libc::AT_SYSINFO_EHDR => layout.vdso = Some(value),
                libc::AT_EXECFN => layout.path = Some(value),
                _ => {}
            }
        }
    }
}

/// Returns the part of a copied stack from an address on. `stack_pointer` is the address of the
/// first copied byte.
pub(crate) fn copied_from(stack: &[u8], stack_pointer: u64, address: u64) -> Option<&[u8]> {
    let offset = usize::try_from(address.checked_sub(stack_pointer)?).ok()?;
    stack.get(offset..)
}

/// Returns the string at the start of these bytes; `None` if it is not NUL-terminated.
pub(crate) fn until_nul(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(bytes[..end].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_stack_is_parsed_with_and_without_arguments_and_variables() {
        let vector =
            [libc::AT_BASE, 7, libc::AT_SYSINFO_EHDR, 6, libc::AT_ENTRY, 8, libc::AT_EXECFN, 9, libc::AT_NULL, 0];
        for (before, arguments, first_argument, first_variable) in [
            (&[2, 100, 101, 0, 200, 201, 0][..], 2, Some(100), Some(200)),
            (&[1, 100, 0, 0], 1, Some(100), None),
            (&[0, 0, 200, 0], 0, None, Some(200)),
        ] {
            let words = [before, &vector].concat();
            let expected = Layout {
                arguments,
                first_argument,
                first_variable,
                path: Some(9),
                entry_point: Some((8, ((before.len() + 5) * WORD) as u64)),
                unused: ((before.len() + 9) * WORD) as u64,
                vdso: Some(6),
                loader: 7,
            };
            assert_eq!(Layout::parse(&stack(&words)), Some(expected));
            for cut in 0..words.len() {
                assert_eq!(Layout::parse(&stack(&words[..cut])), None, "{cut} words");
            }
        }
    }
}
