//! Reads the variables of a blocked process through /proc.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::process::Child;

use crate::callers::elf::Elf;

/// A location in a block that a variable points to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockLocation {
    /// The address of the variable that points to the block.
    pub(super) holder: u64,
    pub(super) offset: u64,
}

/// No mapping is below this address.
const MIN_ADDRESS: u64 = 1 << 16;

/// The variables of a blocked process.
pub(super) struct Memory {
    file: File,
    /// The address of each section of variables, as in the ELF file, and its content.
    variables: Vec<(u64, Vec<u8>)>,
    /// The pid of the child that the process waits for.
    pub(super) job_pid: u32,
}

impl Memory {
    pub(super) fn read(process: &Child, program: &Elf<'_>) -> Option<Memory> {
        let id = process.id();
        let file = File::open(format!("/proc/{id}/mem")).ok()?;
        let bias = code_start(id)?.wrapping_sub(program.code_start()?);
        let mut memory = Memory { file, variables: Vec::new(), job_pid: last_child(id)? };
        for range in program.variables() {
            let bytes = memory.bytes(bias.wrapping_add(range.start), (range.end - range.start) as usize)?;
            memory.variables.push((range.start, bytes));
        }
        Some(memory)
    }

    fn bytes(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut read = vec![0; bytes];
        self.file.read_exact_at(&mut read, address).ok()?;
        Some(read)
    }

    pub(super) fn number(&self, address: u64) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes(address, 4)?.first_chunk()?))
    }

    pub(super) fn pointer(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes(address, 8)?.first_chunk()?))
    }

    pub(super) fn has_text(&self, address: u64, text: &str) -> bool {
        let read = self.bytes(address, text.len() + 1);
        read.is_some_and(|read| read.strip_suffix(b"\0") == Some(text.as_bytes()))
    }

    pub(super) fn points_to_text(&self, address: u64, text: &str) -> bool {
        self.pointer(address).is_some_and(|pointer| self.has_text(pointer, text))
    }

    /// Returns all aligned variables of `BYTES` bytes, with their values.
    fn aligned_variables<const BYTES: usize>(&self) -> impl Iterator<Item = (u64, [u8; BYTES])> {
        self.variables.iter().flat_map(|(start, bytes)| {
            let skipped = start.next_multiple_of(BYTES as u64) - start;
            let bytes = bytes.get(skipped as usize..).unwrap_or_default();
            let (values, _) = bytes.as_chunks::<BYTES>();
            let first = start + skipped;
            values.iter().enumerate().map(move |(at, value)| (first + (at * BYTES) as u64, *value))
        })
    }

    /// Returns the addresses of the variables that may point to blocks.
    pub(super) fn holders(&self) -> impl Iterator<Item = u64> {
        self.pointers().filter(|(_, value)| *value >= MIN_ADDRESS && value.is_multiple_of(8)).map(|(holder, _)| holder)
    }

    /// Splits the first `bytes` bytes of the block that a variable points to into words of `WORD`
    /// bytes.
    fn words_in_block<const WORD: usize>(
        &self,
        holder: u64,
        bytes: u64,
    ) -> impl Iterator<Item = (BlockLocation, [u8; WORD])> {
        let block = self.value(holder).and_then(|block| self.bytes(block, bytes as usize));
        let words: Vec<[u8; WORD]> = block.unwrap_or_default().as_chunks::<WORD>().0.to_vec();
        words.into_iter().zip((0..).step_by(WORD)).map(move |(word, offset)| {
            let location = BlockLocation { holder, offset };
            (location, word)
        })
    }

    pub(super) fn numbers_in_block(&self, holder: u64, bytes: u64) -> impl Iterator<Item = (BlockLocation, u32)> {
        self.words_in_block(holder, bytes).map(|(location, word)| (location, u32::from_le_bytes(word)))
    }

    pub(super) fn pointers_in_block(&self, holder: u64, bytes: u64) -> impl Iterator<Item = (BlockLocation, u64)> {
        self.words_in_block(holder, bytes).map(|(location, word)| (location, u64::from_le_bytes(word)))
    }

    fn value(&self, variable: u64) -> Option<u64> {
        self.variables.iter().find_map(|(start, bytes)| {
            let at = usize::try_from(variable.checked_sub(*start)?).ok()?;
            Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
        })
    }

    /// Returns the addresses of the four-byte variables with this value.
    pub(super) fn variables_with(&self, value: u32) -> impl Iterator<Item = u64> {
        self.aligned_variables().filter(move |(_, bytes)| *bytes == value.to_le_bytes()).map(|(address, _)| address)
    }

    pub(super) fn pointers(&self) -> impl Iterator<Item = (u64, u64)> {
        self.aligned_variables().map(|(address, value)| (address, u64::from_le_bytes(value)))
    }
}

/// Returns the start of a process's code, as reported by the kernel.
fn code_start(process: u32) -> Option<u64> {
    let mut text = String::new();
    File::open(format!("/proc/{process}/stat")).ok()?.read_to_string(&mut text).ok()?;
    // Split after the name, which may contain any character. `startcode` is the 26th field.
    text.rsplit(')').next()?.split_whitespace().nth(23)?.parse().ok()
}

fn last_child(process: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    // The children are in order of creation.
    children.split_whitespace().next_back()?.parse().ok()
}
