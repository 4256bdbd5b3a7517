//! Decodes the records in the ring buffer of stacks, without side effects. `crate::stacks` turns
//! them into call chains.

use zerocopy::FromBytes;

use super::decode::{path_of_components, pid};
use crate::stacks::{CopiedStack, FileId, ImageId, MappedFile, Mapping, Registers, Sample, StackInput};
use crate::wire::{
    KERNEL_FRAMES, KIND_IMAGE, KIND_MAPPING, KIND_SAMPLE, KIND_STACK, WireHeader, WireImage, WireMapping, WireSample,
    WireStack,
};
use spawnscope_data::event::{LaunchId, Nanos, TaskId};

/// Decodes a record. Returns `None` if the bytes are not a record of this format.
pub(super) fn decode(bytes: &[u8]) -> Option<StackInput> {
    match WireHeader::read_from_prefix(bytes).ok()?.0.kind {
        KIND_MAPPING => {
            let (mapping, rest) = WireMapping::read_from_prefix(bytes).ok()?;
            decode_mapping(&mapping, rest)
        }
        KIND_STACK => {
            let (stack, rest) = WireStack::read_from_prefix(bytes).ok()?;
            Some(StackInput::Stack(Box::new(decode_stack(&stack, rest)?)))
        }
        KIND_IMAGE => {
            let (wire, _) = WireImage::read_from_prefix(bytes).ok()?;
            let image = ImageId(wire.image);
            Some(match wire.pid {
                0 => StackInput::ImageEnd { image, is_complete: wire.is_complete != 0 },
                process => StackInput::UnreadImage { image, pid: pid(process), start_stack: wire.start_stack },
            })
        }
        KIND_SAMPLE => {
            let (sample, rest) = WireSample::read_from_prefix(bytes).ok()?;
            Some(StackInput::Stack(Box::new(CopiedStack {
                sample: Some(decode_sample(&sample)?),
                ..decode_stack(&sample.stack, rest)?
            })))
        }
        _ => None,
    }
}

fn decode_mapping(mapping: &WireMapping, rest: &[u8]) -> Option<StackInput> {
    let components = rest.get(..mapping.path_bytes as usize)?;
    let file = (mapping.inode != 0).then(|| MappedFile {
        id: FileId { device: mapping.device, inode: mapping.inode, modified: Some(mapping.modified) },
        path: path_of_components(components, mapping.complete != 0).into(),
    });
    Some(StackInput::Mapping {
        image: ImageId(mapping.image),
        pid: pid(mapping.pid),
        mapping: Mapping { start: mapping.start, end: mapping.end, offset: mapping.offset, file },
    })
}

fn decode_stack(stack: &WireStack, rest: &[u8]) -> Option<CopiedStack> {
    Some(CopiedStack {
        at: Nanos(stack.header.at),
        launch: LaunchId(stack.header.launch),
        task: TaskId(stack.header.task),
        image: (stack.image != 0).then_some(ImageId(stack.image)),
        start_stack: stack.start_stack,
        pid: pid(stack.pid),
        registers: Registers(stack.registers.in_dwarf_order().map(Some)),
        bytes: rest.get(..stack.user_bytes as usize)?.to_vec(),
        sample: None,
    })
}

fn decode_sample(sample: &WireSample) -> Option<Sample> {
    let frames = sample.kernel_bytes as usize / size_of::<u64>();
    Some(Sample {
        span: Nanos(sample.span),
        is_waiting: sample.is_waiting != 0,
        kernel: sample.kernel.get(..frames)?.to_vec(),
        is_kernel_truncated: frames == KERNEL_FRAMES,
        has_user_part: sample.stack.registers.are_known(),
    })
}

#[cfg(test)]
mod tests {
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;

    /// Returns a wait of thread 3 with two kernel frames and four bytes of user stack.
    fn wait() -> WireSample {
        let mut sample = WireSample::new_zeroed();
        sample.stack.header.kind = KIND_SAMPLE;
        (sample.stack.header.at, sample.stack.header.task) = (500, 3);
        (sample.stack.registers.ip, sample.stack.user_bytes) = (0x40, 4);
        (sample.span, sample.is_waiting, sample.kernel_bytes) = (70, 1, 16);
        sample.kernel[..2].copy_from_slice(&[0x10, 0x20]);
        sample
    }

    fn decoded(sample: &WireSample, stack: &[u8]) -> Option<CopiedStack> {
        match decode(&[sample.as_bytes(), stack].concat())? {
            StackInput::Stack(stack) => Some(*stack),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sample_is_decoded_as_a_stack_with_kernel_frames() {
        let stack = decoded(&wait(), b"user").unwrap();
        assert_eq!((stack.at, stack.task, stack.image), (Nanos(500), TaskId(3), None));
        assert_eq!(stack.bytes, b"user");
        let sample = stack.sample.unwrap();
        assert_eq!((sample.span, sample.is_waiting), (Nanos(70), true));
        assert_eq!(sample.kernel, [0x10, 0x20]);
        assert!(sample.has_user_part && !sample.is_kernel_truncated);
    }

    #[test]
    fn a_full_kernel_part_is_marked_as_truncated_and_a_larger_one_is_malformed() {
        let mut sample = wait();
        sample.kernel_bytes = (KERNEL_FRAMES * 8) as u32;
        let full = decoded(&sample, b"user").and_then(|stack| stack.sample).unwrap();
        assert!(full.is_kernel_truncated);
        sample.kernel_bytes += 8;
        assert!(decoded(&sample, b"user").is_none());
        assert!(decoded(&wait(), b"us").is_none(), "shorter than its length field");
    }
}
