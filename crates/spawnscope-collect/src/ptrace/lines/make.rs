//! Reads which line of a makefile GNU make executes when it forks. `ebpf/make.h` documents what is read and why; the results of both must
//! be equal.

use spawnscope_data::event::{Chain, Pid};
use spawnscope_system::procfs;
use spawnscope_system::ptrace::CallInfo;

use super::memory::Memory;
use crate::callers::make::makefiles::{Makefiles, Site};
use crate::wire::*;

/// The job being started.
struct Job {
    /// Where on the stack the pointer to its environment is, in words from the stack pointer.
    environment_index: usize,
    target: u64,
    /// The index of the line in the target's recipe.
    index: u32,
}

/// A stopped make process.
struct Make {
    memory: Memory,
    /// The words from the stack pointer upwards.
    stack: Vec<u64>,
    stack_pointer: u64,
}

/// A position in a makefile.
#[derive(Default)]
struct Position {
    kind: u32,
    file: Vec<u8>,
    target: Vec<u8>,
    line: u32,
    index: u32,
    text: Vec<u8>,
}

/// Returns the call chain of a stopped thread; `None` if it cannot be read.
pub(super) fn chain(thread: Pid, layout: &WireMake, bias: u64, makefiles: &mut Makefiles) -> Option<Chain> {
    let stack_pointer = CallInfo::read(thread).ok()?.stack_pointer;
    let mut make = Make { memory: Memory::new(thread), stack: Vec::new(), stack_pointer };
    make.read_stack();
    let position = match make.job() {
        Some(job) => make.running_recipe(&job)?,
        None => {
            let address = make.memory.pointer(bias.wrapping_add(layout.reading))?;
            make.read_position(address)?
        }
    };
    let directory = procfs::working_directory(thread);
    Some(makefiles.chain(&Site {
        kind: position.kind,
        file: &position.file,
        target: &position.target,
        line: position.line,
        index: position.index,
        text: &position.text,
        directory: directory.as_deref(),
        process: Some(thread),
        is_in_other_mounts: is_in_other_mount_namespace(thread),
    }))
}

/// Whether a process is in another mount namespace than spawnscope.
fn is_in_other_mount_namespace(process: Pid) -> bool {
    let [own, other] =
        ["self", &process.0.to_string()].map(|process| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok());
    own != other
}

/// Whether an allocator may have returned this value.
fn may_be_allocated(address: u64) -> bool {
    address > MAKE_LINE_LIMIT && address.is_multiple_of(16)
}

impl Make {
    fn pointer(&mut self, object: u64, offset: u64) -> Option<u64> {
        self.memory.pointer(object.wrapping_add(offset))
    }

    fn number(&mut self, object: u64, offset: u64) -> Option<u32> {
        self.memory.number(object.wrapping_add(offset))
    }

    /// Reads a pointer, and accepts it only if an allocator may have returned it.
    fn allocated(&mut self, object: u64, offset: u64) -> Option<u64> {
        self.pointer(object, offset).filter(|address| may_be_allocated(*address))
    }

    fn read_stack(&mut self) {
        let offsets = (0..u64::from(MAKE_STACK_BYTES)).step_by(8);
        let start = self.stack_pointer;
        let memory = &mut self.memory;
        self.stack = offsets.map_while(|offset| memory.pointer(start.wrapping_add(offset))).collect();
    }

    /// Finds the job that is being started: the job whose environment make has passed last.
    fn job(&mut self) -> Option<Job> {
        let words: Vec<u64> = self.stack.iter().copied().filter(|word| may_be_allocated(*word)).collect();
        let jobs = words.into_iter().filter_map(|word| self.job_at(word));
        jobs.min_by_key(|job| job.environment_index)
    }

    fn job_at(&mut self, address: u64) -> Option<Job> {
        let environment = self.allocated(address, MAKE_JOB_ENVIRONMENT)?;
        let target = self.allocated(address, MAKE_JOB_FILE)?;
        let line = self.number(address, MAKE_JOB_LINE)?;
        self.allocated(address, MAKE_JOB_LINES)?;
        let recipe = self.allocated(target, MAKE_TARGET_RECIPE)?;
        self.allocated(recipe, MAKE_RECIPE_TEXTS)?;
        let count = self.number(recipe, MAKE_RECIPE_COUNT)? & 0xffff;
        let mut words = self.stack.iter().take(MAKE_ENVIRONMENT_BYTES as usize / 8);
        let environment_index = words.position(|word| *word == environment)?;
        let index = line.checked_sub(1).filter(|index| *index < count)?;
        Some(Job { environment_index, target, index })
    }

    /// Reads a string; returns an empty one if it is unknown.
    fn text(&mut self, address: Option<u64>) -> Vec<u8> {
        let text = address.and_then(|address| self.memory.text(address, SCRIPT_FILE_BYTES as usize));
        text.unwrap_or_default()
    }

    /// Reads a string, truncated to MAKE_TEXT_BYTES.
    fn truncated_text(&mut self, address: Option<u64>) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut at = address.filter(|address| *address != 0)?;
        while text.len() + 1 < MAKE_TEXT_BYTES as usize {
            match self.memory.byte(at)? {
                0 => break,
                byte => text.push(byte),
            }
            at = at.wrapping_add(1);
        }
        Some(text)
    }

    /// Reads the file and line of the position at an address, and the name of a target.
    fn position(&mut self, position_address: u64, target: Option<u64>) -> Option<Position> {
        let line = self.pointer(position_address, MAKE_POSITION_LINE)?;
        let file = self.pointer(position_address, 0)?;
        let name = target.and_then(|target| self.pointer(target, 0));
        Some(Position {
            file: self.text(Some(file)),
            target: self.text(name),
            line: if line < MAKE_LINE_LIMIT { line as u32 } else { 0 },
            ..Position::default()
        })
    }

    /// Adds the text of a line of a recipe.
    fn add_recipe_line(&mut self, position: &mut Position, recipe: u64, index: u64) {
        let texts = self.pointer(recipe, MAKE_RECIPE_TEXTS).filter(|texts| *texts != 0);
        let Some(texts) = texts.filter(|_| index < MAKE_LINE_LIMIT) else {
            return;
        };
        position.index = index as u32;
        let text = self.pointer(texts, index * 8);
        position.text = self.truncated_text(text).unwrap_or_default();
    }

    fn running_recipe(&mut self, job: &Job) -> Option<Position> {
        let recipe = self.pointer(job.target, MAKE_TARGET_RECIPE)?;
        let mut position = self.position(recipe, Some(job.target))?;
        position.kind = MAKE_RUNS;
        self.add_recipe_line(&mut position, recipe, job.index.into());
        Some(position)
    }

    /// Reads the name of the variable whose position is at this address; returns `None` if the position is not that of a variable.
    fn variable(&mut self, position_address: u64) -> Option<Vec<u8>> {
        let length = self.number(position_address, MAKE_POSITION_BYTES)?;
        let name = self.memory.pointer(position_address.wrapping_sub(MAKE_NAME_TO_POSITION));
        self.truncated_text(name).filter(|name| name.len() == length as usize)
    }

    /// Returns the position that make reads or expands. A position on make's stack belongs to text that make reads; any other position
    /// belongs to a variable or a recipe.
    fn read_position(&mut self, address: u64) -> Option<Position> {
        let mut position = self.position(Some(address).filter(|address| *address != 0)?, None)?;
        if address.wrapping_sub(self.stack_pointer) < MAKE_MAX_STACK_BYTES {
            let file = self.memory.pointer(address.wrapping_sub(MAKE_FILE_TO_POSITION));
            let is_file = file.is_some_and(|file| file != 0);
            position.kind = if is_file { MAKE_READS } else { MAKE_EVALUATES };
        } else if let Some(name) = self.variable(address) {
            (position.kind, position.text) = (MAKE_VARIABLE, name);
        } else {
            position.kind = MAKE_EXPANDS;
            let index = self.pointer(address, MAKE_POSITION_INDEX)?;
            self.add_recipe_line(&mut position, address, index);
        }
        Some(position)
    }
}
