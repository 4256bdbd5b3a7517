//! Finds dash's variables: they have the expected values at all stops. A variable is accepted only
//! if it is the only candidate. Busybox keeps most of its variables in blocks that other variables
//! point to.

use super::memory::{BlockLocation, Memory};
use crate::wire::{DASH_BLOCK_BYTES, WireDash};

/// What dash's variables must describe when the calibration script stops.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    /// The current line; `None` in a string, in which lines are counted separately.
    pub(super) line: Option<u32>,
    /// The line where the current function begins; 0: none.
    pub(super) function_line: u32,
    pub(super) source: CommandSource,
}

/// Where the script's commands come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandSource {
    Script,
    File,
    String,
}

/// The name of the function in the calibration script.
pub(super) const FUNCTION_NAME: &str = "calibrated";
/// The function's argument.
pub(super) const ARGUMENT: &str = "argument";

/// Number of bytes of a block that are searched. The line and the parameters are near the beginning
/// of their blocks, and other memory may follow a block.
const HEAD_BYTES: u64 = 128;

/// The remaining candidates for a variable.
struct Candidates<Location>(Option<Vec<Location>>);

impl<Location: Copy + PartialEq> Candidates<Location> {
    /// Removes the candidates that do not fit.
    fn keep(&mut self, fitting: impl Iterator<Item = Location>) {
        let fitting: Vec<Location> = fitting.collect();
        self.0 = Some(match self.0.take() {
            Some(before) => before.into_iter().filter(|location| fitting.contains(location)).collect(),
            None => fitting,
        });
    }

    fn all(&self) -> &[Location] {
        self.0.as_deref().unwrap_or_default()
    }

    fn only(&self) -> Option<Location> {
        <[Location; 1]>::try_from(self.all()).ok().map(|[location]| location)
    }
}

/// A variable that may also be in a block.
struct Variable {
    direct: Candidates<u64>,
    in_block: Candidates<BlockLocation>,
}

impl Variable {
    const fn new() -> Variable {
        Variable { direct: Candidates(None), in_block: Candidates(None) }
    }

    /// Keeps the pointers that fit, among the variables and in the first `bytes` bytes of the
    /// blocks that `holders` point to.
    fn keep(&mut self, memory: &Memory, holders: &[u64], bytes: u64, fits: impl Fn(u64) -> bool) {
        let direct = memory.pointers().filter(|(_, value)| fits(*value));
        self.direct.keep(direct.map(|(address, _)| address));
        let words = holders.iter().flat_map(|holder| memory.pointers_in_block(*holder, bytes));
        let in_block = words.filter(|(_, value)| fits(*value));
        self.in_block.keep(in_block.map(|(location, _)| location));
    }

    /// Returns the address of the variable that points to this variable's block; `None` if it is in
    /// no block.
    fn block(&self) -> Option<u64> {
        match self.direct.only() {
            Some(_) => None,
            None => self.in_block.only().map(|location| location.holder),
        }
    }

    /// Returns the variable's address or, if it has none, its offset in this block.
    fn location(&self, block: Option<u64>) -> Option<u64> {
        self.direct.only().or_else(|| {
            let within = self.in_block.all().iter().filter(|location| Some(location.holder) == block);
            let offsets: Vec<u64> = within.map(|location| location.offset).collect();
            Candidates(Some(offsets)).only()
        })
    }
}

pub(super) struct Search<'a> {
    script: &'a str,
    /// The name of the file that the script sources.
    sourced: &'a str,
    line: Variable,
    function_line: Candidates<u64>,
    dollar_zero: Variable,
    command_name: Variable,
    input: Variable,
    job: Candidates<u64>,
    parameters: Variable,
}

impl<'a> Search<'a> {
    pub(super) fn new(script: &'a str, sourced: &'a str) -> Search<'a> {
        Search {
            script,
            sourced,
            line: Variable::new(),
            function_line: Candidates(None),
            dollar_zero: Variable::new(),
            command_name: Variable::new(),
            input: Variable::new(),
            job: Candidates(None),
            parameters: Variable::new(),
        }
    }

    /// Removes the candidates that do not have the values expected at this stop.
    pub(super) fn narrow(&mut self, memory: &Memory, stop: Stop) {
        let holders: Vec<u64> = memory.holders().collect();
        self.narrow_lines(memory, stop, &holders);
        let state_block: Vec<u64> = self.line.in_block.all().iter().map(|location| location.holder).collect();
        self.dollar_zero.keep(memory, &state_block, DASH_BLOCK_BYTES, |name| memory.has_text(name, self.script));
        self.command_name.keep(memory, &state_block, DASH_BLOCK_BYTES, |name| match stop.source {
            // In busybox, this is the script's name.
            CommandSource::Script => name == 0 || memory.has_text(name, self.script),
            CommandSource::File => memory.has_text(name, self.sourced),
            CommandSource::String => memory.has_text(name, "eval"),
        });
        self.input.keep(memory, &state_block, DASH_BLOCK_BYTES, |input| is_input(memory, input, stop.source));
        let jobs = memory.pointers().filter(|(_, job)| is_job(memory, *job));
        self.job.keep(jobs.map(|(address, _)| address));
        if stop.function_line != 0 {
            self.parameters.keep(memory, &holders, HEAD_BYTES, |words| are_parameters(memory, words));
        }
    }

    fn narrow_lines(&mut self, memory: &Memory, stop: Stop, holders: &[u64]) {
        self.function_line.keep(memory.variables_with(stop.function_line));
        let Some(line) = stop.line else { return };
        self.line.direct.keep(memory.variables_with(line));
        let words = holders.iter().flat_map(|holder| memory.numbers_in_block(*holder, HEAD_BYTES));
        let in_block = words.filter(|(_, value)| *value == line);
        self.line.in_block.keep(in_block.map(|(location, _)| location));
    }

    pub(super) fn into_layout(self, code_start: u64) -> Option<WireDash> {
        let (state_block, parameters) = (self.line.block(), self.parameters.block());
        Some(WireDash {
            code_start,
            line: self.line.location(state_block)?,
            function_line: self.function_line.only()?,
            dollar_zero: self.dollar_zero.location(state_block)?,
            command_name: self.command_name.location(state_block)?,
            input: self.input.location(state_block)?,
            job: self.job.only()?,
            parameters: self.parameters.location(parameters)?,
            state_block: state_block.unwrap_or_default(),
            parameters_block: parameters.unwrap_or_default(),
        })
    }
}

/// Whether the memory at `input` looks like dash's `struct parsefile` for this source: the outer
/// input, a line number, and a descriptor.
fn is_input(memory: &Memory, input: u64, source: CommandSource) -> bool {
    // Any number may be tried as an address, and most have no memory.
    let Some(outer) = memory.pointer(input) else { return false };
    let Some(fd) = memory.number(input + 12).map(u32::cast_signed) else { return false };
    match source {
        CommandSource::Script => outer == 0 && (10..64).contains(&fd),
        CommandSource::File => is_input(memory, outer, CommandSource::Script) && (10..64).contains(&fd),
        CommandSource::String => is_input(memory, outer, CommandSource::Script) && fd == -1,
    }
}

/// Whether the memory at `job` looks like dash's `struct job` with the child that the script waits
/// for.
fn is_job(memory: &Memory, job: u64) -> bool {
    memory.number(job) == Some(memory.job_pid) && memory.pointer(job + 16) == Some(job)
}

fn are_parameters(memory: &Memory, words: u64) -> bool {
    memory.points_to_text(words, ARGUMENT)
        && words.checked_sub(8).is_some_and(|name| memory.points_to_text(name, FUNCTION_NAME))
}
