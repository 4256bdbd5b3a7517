//! From the bytes of the buffer for stacks to what `collect::stacks` makes call chains of. Pure.

use zerocopy::FromBytes;

use super::decode::{path_of_components, pid};
use super::wire::{KIND_MAPPING, KIND_STACK, WireHeader, WireMapping, WireRegisters, WireStack};
use crate::collect::stacks::{CopiedStack, FileId, ImageId, MappedFile, Mapping, Registers, Told};
use crate::event::{LaunchId, Nanos, TaskId};

/// Turns a record into what it tells. `None`: not a record of this format.
pub(super) fn decode(bytes: &[u8]) -> Option<Told> {
    match WireHeader::read_from_prefix(bytes).ok()?.0.kind {
        KIND_MAPPING => {
            let (mapping, rest) = WireMapping::read_from_prefix(bytes).ok()?;
            mapped(&mapping, rest)
        }
        KIND_STACK => {
            let (stack, rest) = WireStack::read_from_prefix(bytes).ok()?;
            copied(&stack, rest)
        }
        _ => None,
    }
}

fn mapped(mapping: &WireMapping, rest: &[u8]) -> Option<Told> {
    let components = rest.get(..mapping.path_bytes as usize)?;
    let file = (mapping.inode != 0).then(|| MappedFile {
        id: FileId {
            device: mapping.device,
            inode: mapping.inode,
            modified: Some(mapping.modified),
        },
        path: path_of_components(components, mapping.complete != 0).into(),
    });
    Some(Told::Mapping {
        image: ImageId(mapping.image),
        pid: pid(mapping.pid),
        mapping: Mapping {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
            file,
        },
    })
}

fn copied(stack: &WireStack, rest: &[u8]) -> Option<Told> {
    let after_kernel = rest.get(stack.kernel_bytes as usize..)?;
    Some(Told::Stack(Box::new(CopiedStack {
        at: Nanos(stack.header.at),
        launch: LaunchId(stack.header.launch),
        task: TaskId(stack.header.task),
        image: (stack.image != 0).then_some(ImageId(stack.image)),
        start_stack: stack.start_stack,
        pid: pid(stack.pid),
        registers: registers(&stack.registers),
        bytes: after_kernel.get(..stack.user_bytes as usize)?.to_vec(),
    })))
}

/// In the order in which DWARF numbers them.
fn registers(wire: &WireRegisters) -> Registers {
    let in_order = [
        wire.ax, wire.dx, wire.cx, wire.bx, wire.si, wire.di, wire.bp, wire.sp, wire.r8, wire.r9, wire.r10, wire.r11,
        wire.r12, wire.r13, wire.r14, wire.r15, wire.ip,
    ];
    Registers(in_order.map(Some))
}
