//! Reads which line of a makefile a GNU make executes when it forks. `ebpf/make.h` documents what is read and why; both must report the
//! same.

use spawnscope_data::event::{Chain, Pid};
use spawnscope_system::procfs;
use spawnscope_system::ptrace::CallInfo;

use super::memory::Memory;
use crate::callers::make::makefiles::{Makefiles, Site};
use crate::wire::*;

/// The job that starts.
struct Job {
    /// Where the stack has its environment.
    nearest: usize,
    target: u64,
    index: u32,
}

/// A stopped make.
struct Make {
    memory: Memory,
    stack: Vec<u64>,
    stack_pointer: u64,
}

/// A position in a makefile, as make stores it.
#[derive(Default)]
struct Position {
    kind: u32,
    file: Vec<u8>,
    target: Vec<u8>,
    line: u32,
    index: u32,
    text: Vec<u8>,
}

/// The call chain of a stopped thread; `None` if it cannot be read.
pub(super) fn chain(thread: Pid, layout: &WireMake, bias: u64, makefiles: &mut Makefiles) -> Option<Chain> {
    let stack_pointer = CallInfo::of(thread).ok()?.stack_pointer;
    let mut make = Make {
        memory: Memory::of(thread),
        stack: Vec::new(),
        stack_pointer,
    };
    make.read_stack();
    let place = match make.job() {
        Some(job) => make.running_recipe(&job)?,
        None => {
            let place = make.memory.pointer(bias.wrapping_add(layout.reading))?;
            make.read_place(place)?
        }
    };
    let directory = procfs::working_directory(thread);
    Some(makefiles.chain(&Site {
        kind: place.kind,
        file: &place.file,
        target: &place.target,
        line: place.line,
        index: place.index,
        text: &place.text,
        directory: directory.as_deref(),
        process: Some(thread),
        is_elsewhere: sees_other_files(thread),
    }))
}

/// Whether a process is in another mount namespace.
fn sees_other_files(process: Pid) -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    namespace(&process.0.to_string()) != namespace("self")
}

/// Whether a value can be what an allocation returns.
fn is_allocated(address: u64) -> bool {
    address > MAKE_LINES && address.is_multiple_of(16)
}

impl Make {
    fn pointer(&mut self, object: u64, place: u64) -> Option<u64> {
        self.memory.pointer(object.wrapping_add(place))
    }

    fn number(&mut self, object: u64, place: u64) -> Option<u32> {
        self.memory.number(object.wrapping_add(place))
    }

    /// A pointer to what was allocated.
    fn allocated(&mut self, object: u64, place: u64) -> Option<u64> {
        self.pointer(object, place).filter(|address| is_allocated(*address))
    }

    fn read_stack(&mut self) {
        let places = (0..u64::from(MAKE_STACK_BYTES)).step_by(8);
        let start = self.stack_pointer;
        let memory = &mut self.memory;
        self.stack = places
            .map_while(|place| memory.pointer(start.wrapping_add(place)))
            .collect();
    }

    /// The job that is being started: the one whose environment was passed last.
    fn job(&mut self) -> Option<Job> {
        let words: Vec<u64> = self.stack.iter().copied().filter(|word| is_allocated(*word)).collect();
        let jobs = words.into_iter().filter_map(|word| self.job_at(word));
        jobs.min_by_key(|job| job.nearest)
    }

    fn job_at(&mut self, address: u64) -> Option<Job> {
        let environment = self.allocated(address, MAKE_JOB_ENVIRONMENT)?;
        let target = self.allocated(address, MAKE_JOB_FILE)?;
        let line = self.number(address, MAKE_JOB_LINE)?;
        self.allocated(address, MAKE_JOB_LINES)?;
        let recipe = self.allocated(target, MAKE_TARGET_RECIPE)?;
        self.allocated(recipe, MAKE_RECIPE_TEXTS)?;
        let count = self.number(recipe, MAKE_RECIPE_COUNT)? & 0xffff;
        let mut end = self.stack.iter().take(MAKE_ENVIRONMENT_BYTES as usize / 8);
        let nearest = end.position(|word| *word == environment)?;
        let index = line.checked_sub(1).filter(|index| *index < count)?;
        Some(Job { nearest, target, index })
    }

    /// A string; empty if it is unknown.
    fn text(&mut self, address: Option<u64>) -> Vec<u8> {
        let text = address.and_then(|address| self.memory.text(address, SCRIPT_FILE_BYTES as usize));
        text.unwrap_or_default()
    }

    /// The beginning of a string.
    fn beginning(&mut self, address: Option<u64>) -> Option<Vec<u8>> {
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

    /// The file and line of a place, and the name of a target.
    fn place(&mut self, place: u64, target: Option<u64>) -> Option<Position> {
        let line = self.pointer(place, MAKE_PLACE_LINE)?;
        let file = self.pointer(place, 0)?;
        let name = target.and_then(|target| self.pointer(target, 0));
        Some(Position {
            file: self.text(Some(file)),
            target: self.text(name),
            line: if line < MAKE_LINES { line as u32 } else { 0 },
            ..Position::default()
        })
    }

    /// Adds the text of a recipe's line.
    fn add_recipe_line(&mut self, place: &mut Position, recipe: u64, index: u64) {
        let texts = self.pointer(recipe, MAKE_RECIPE_TEXTS).filter(|texts| *texts != 0);
        let Some(texts) = texts.filter(|_| index < MAKE_LINES) else {
            return;
        };
        place.index = index as u32;
        let text = self.pointer(texts, index * 8);
        place.text = self.beginning(text).unwrap_or_default();
    }

    fn running_recipe(&mut self, job: &Job) -> Option<Position> {
        let recipe = self.pointer(job.target, MAKE_TARGET_RECIPE)?;
        let mut place = self.place(recipe, Some(job.target))?;
        place.kind = MAKE_RUNS;
        self.add_recipe_line(&mut place, recipe, job.index.into());
        Some(place)
    }

    /// The name of the variable with this place.
    fn variable(&mut self, place: u64) -> Option<Vec<u8>> {
        let length = self.number(place, MAKE_PLACE_BYTES)?;
        let name = self.memory.pointer(place.wrapping_sub(MAKE_BEFORE_PLACE_NAME));
        self.beginning(name).filter(|name| name.len() == length as usize)
    }

    /// The place that make reads or expands: on its stack the text that it reads, elsewhere a variable or a recipe.
    fn read_place(&mut self, at: u64) -> Option<Position> {
        let mut place = self.place(Some(at).filter(|at| *at != 0)?, None)?;
        if at.wrapping_sub(self.stack_pointer) < MAKE_MOST_STACK {
            let file = self.memory.pointer(at.wrapping_sub(MAKE_BEFORE_PLACE_FILE));
            let is_file = file.is_some_and(|file| file != 0);
            place.kind = if is_file { MAKE_READS } else { MAKE_EVALUATES };
        } else if let Some(name) = self.variable(at) {
            (place.kind, place.text) = (MAKE_VARIABLE, name);
        } else {
            place.kind = MAKE_EXPANDS;
            let index = self.pointer(at, MAKE_PLACE_INDEX)?;
            self.add_recipe_line(&mut place, at, index);
        }
        Some(place)
    }
}
