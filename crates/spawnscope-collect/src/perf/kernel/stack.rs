//! Parses the stack copies in a ring buffer.

use perf_event_open_sys::bindings as perf;

use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::memory::number_at;

/// Bytes of a record's header: type, flags, size.
const HEADER_BYTES: usize = 8;
/// PERF_SAMPLE_REGS_ABI_64: the registers of the sample are known, and the program is a 64-bit one.
const ABI_64: u64 = 2;

/// A copied stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stack<'a> {
    /// When the stack was copied.
    pub(crate) at: Nanos,
    /// The process that the stack belongs to.
    pub(crate) pid: Pid,
    /// The stack pointer: the address of the first byte of `content`.
    pub(crate) pointer: u64,
    /// The bytes of the stack from `pointer` on.
    pub(crate) content: &'a [u8],
}

/// Parses consecutive copies and passes them to `handle`. Stacks of 32-bit programs are skipped. Stops at a malformed record.
pub(crate) fn parse_stacks<'a>(mut bytes: &'a [u8], handle: &mut impl FnMut(Stack<'a>)) {
    while let Some(size) = bytes.get(6..).and_then(|rest| rest.first_chunk()) {
        let size = usize::from(u16::from_ne_bytes(*size));
        let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size >= HEADER_BYTES) else {
            return;
        };
        if let Some(stack) = parse_one(record) {
            handle(stack);
        }
        bytes = rest;
    }
}

fn parse_one(record: &[u8]) -> Option<Stack<'_>> {
    let kind = u32::from_ne_bytes(number_at(record, 0)?);
    if kind != perf::PERF_RECORD_SAMPLE || u64::from_ne_bytes(number_at(record, 32)?) != ABI_64 {
        return None;
    }
    // A sample consists of thread, time, CPU, ABI and stack pointer, the number of reserved bytes, these bytes, and how many of them were copied.
    let content = record.get(56..)?;
    let reserved = u64::from_ne_bytes(number_at(record, 48)?);
    let (content, rest) = content.split_at_checked(usize::try_from(reserved).ok()?)?;
    let copied = usize::try_from(u64::from_ne_bytes(number_at(rest, 0)?)).ok()?;
    Some(Stack {
        at: Nanos(u64::from_ne_bytes(number_at(record, 16)?)),
        pid: Pid(i32::from_ne_bytes(number_at(record, HEADER_BYTES)?)),
        pointer: u64::from_ne_bytes(number_at(record, 40)?),
        content: content.get(..copied)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sample of process 7 at time 99. The first `copied` bytes of `content` were copied.
    fn sample(abi: u64, content: &[u8], copied: u64) -> Vec<u8> {
        let numbers = [99, 0, abi, 0x7000, content.len() as u64];
        let numbers = numbers.map(u64::to_ne_bytes).concat();
        let size = (HEADER_BYTES + 8 + numbers.len() + content.len() + 8) as u16;
        let header = [
            &perf::PERF_RECORD_SAMPLE.to_ne_bytes()[..],
            &[0, 0],
            &size.to_ne_bytes(),
            &7u32.to_ne_bytes(),
            &8u32.to_ne_bytes(),
        ];
        [&header.concat()[..], &numbers, content, &copied.to_ne_bytes()].concat()
    }

    fn parsed(bytes: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let mut all = Vec::new();
        parse_stacks(bytes, &mut |stack| {
            assert_eq!((stack.at, stack.pid), (Nanos(99), Pid(7)));
            all.push((stack.content.to_vec(), stack.pointer));
        });
        all
    }

    #[test]
    fn the_content_is_only_what_was_copied() {
        let first = sample(ABI_64, b"abcdefgh", 3);
        let all = [&first[..], &sample(1, b"narrow..", 8), &sample(ABI_64, b"ijklmnop", 8)].concat();
        let (abc, rest) = ((b"abc".to_vec(), 0x7000), (b"ijklmnop".to_vec(), 0x7000));
        assert_eq!(parsed(&all), [abc.clone(), rest]);
        for cut in 0..first.len() {
            assert_eq!(parsed(&first[..cut]), [], "{cut} bytes");
        }
        assert_eq!(parsed(&sample(ABI_64, b"abcdefgh", 9)), [], "more than was reserved");
        assert_eq!(parsed(&[0; 16]), [], "a size of zero");
    }
}
