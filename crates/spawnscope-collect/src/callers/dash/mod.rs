//! Finds where dash (the Debian Almquist shell), or busybox's variant of it, stores the command
//! being executed. Dash exports no symbols, so it is run once (`calibrate`, `search`, `memory`),
//! and the result is stored for all copies of the same build (`cache`). The layouts of some builds
//! are known without running them (`builds`). `ebpf/dash.h` reads the variables, and documents what
//! they mean. `functions` finds the files of functions.

mod builds;
mod cache;
mod calibrate;
pub(super) mod functions;
mod memory;
mod search;

use std::fs::File;

use super::contains;
use super::elf::Elf;
use crate::wire::{DASH_BLOCK_BYTES, WireDash};

/// Error messages that only dash and its variants contain.
const MARKS: [&[u8]; 2] = [b"Illegal number: %s", b"parameter not set"];

/// Upper limit for the size of the read-only data, in bytes: that of busybox is half as large, that
/// of dash much smaller. Larger programs are not searched.
const MAX_CONSTANT_BYTES: u64 = 1 << 19;

/// Returns the layout of a dash; `None` if the program is not a dash, or the layout is unknown.
/// `trusted` is its file if it may be run in order to find the layout. A file from another user's
/// process may not be run: its layout is known only if a dash of the same build was calibrated
/// before, or if the build is listed in `builds`.
pub(super) fn layout(program: &Elf<'_>, trusted: Option<&File>) -> Option<WireDash> {
    let constants = program.read_only_data(MAX_CONSTANT_BYTES)?;
    if !MARKS.iter().all(|mark| contains(constants, mark)) {
        return None;
    }
    let build = program.build_id()?;
    let known = cache::find(build);
    let calibrated = known.or_else(|| {
        let found = calibrate::layout(program, trusted?)?;
        cache::store(build, found);
        Some(found)
    });
    let layout = calibrated.unwrap_or_else(|| builds::find(build));
    layout.filter(|layout| fits(layout, program))
}

/// Whether all addresses are within the program's variables. The content of the cache is not
/// trusted.
fn fits(layout: &WireDash, program: &Elf<'_>) -> bool {
    let variables = program.variables();
    let state = [layout.line, layout.dollar_zero, layout.command_name, layout.input];
    let state = state.map(|location| address_or_holder(location, layout.state_block));
    let parameters = address_or_holder(layout.parameters, layout.parameters_block);
    let mut addresses = state.into_iter().chain([parameters, layout.function_line, layout.job]);
    addresses.all(|address| variables.iter().any(|range| range.contains(&address)))
        && program.code_start() == Some(layout.code_start)
}

/// Returns the address of a variable or, if its location is an offset in a block, of the variable
/// that points to the block.
fn address_or_holder(location: u64, block: u64) -> u64 {
    if location < DASH_BLOCK_BYTES { block } else { location }
}
