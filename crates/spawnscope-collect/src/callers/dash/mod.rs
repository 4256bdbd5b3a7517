//! The Debian Almquist shell, and busybox's variant of it: finds where it stores the command being executed. It exports nothing, so
//! a copy of it is run once (`calibrate`, `search`, `memory`), and the result is stored for all copies of the same build (`cache`).
//! Some builds are known without running them (`builds`). The reader is `ebpf/dash.h`, which documents what is read.

mod builds;
mod cache;
mod calibrate;
mod memory;
mod search;

use std::fs::File;

use super::elf::Elf;
use crate::wire::{DASH_BLOCK_BYTES, WireDash};

/// Error messages that only dash and its variants contain.
const MARKS: [&[u8]; 2] = [b"Illegal number: %s", b"parameter not set"];

/// Upper limit for the read-only data: busybox has half of it, dash much less. Larger programs are not searched.
const MAX_CONSTANTS: u64 = 1 << 19;

/// The layout of a dash. `trusted` is its file if it may be run to find the layout. A file that another user's process brought may
/// not; its layout is known only if a dash of the same build was seen before, or if it is a distribution's. `None` if it is another
/// program, or unknown.
pub(super) fn layout(program: &Elf<'_>, trusted: Option<&File>) -> Option<WireDash> {
    let constants = program.constants(MAX_CONSTANTS)?;
    let says = |text: &&[u8]| constants.windows(text.len()).any(|window| window == *text);
    if !MARKS.iter().all(says) {
        return None;
    }
    let build = program.build_id()?;
    let known = cache::find(build);
    let calibrated = known.or_else(|| {
        let found = calibrate::layout(program, trusted?)?;
        cache::keep(build, found);
        Some(found)
    });
    let layout = calibrated.unwrap_or_else(|| builds::find(build));
    layout.filter(|layout| fits(layout, program))
}

/// Whether all addresses are within the program's variables. The cache may have been written by anyone.
fn fits(layout: &WireDash, program: &Elf<'_>) -> bool {
    let variables = program.variables();
    let is_variable = |address: &u64| variables.iter().any(|range| range.contains(address));
    let is_place = |block: u64, place: u64| match place {
        ..DASH_BLOCK_BYTES => is_variable(&block),
        address => is_variable(&address),
    };
    let own = [layout.line, layout.own_name, layout.command_name, layout.input];
    own.iter().all(|place| is_place(layout.own_block, *place))
        && is_place(layout.parameters_block, layout.parameters)
        && [layout.function_line, layout.job].iter().all(is_variable)
        && program.code_start() == Some(layout.code_start)
}
