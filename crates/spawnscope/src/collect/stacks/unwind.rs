//! Walks up a copied stack, frame by frame, by the unwind tables of the files whose code it is. Where these say nothing it
//! stops: what cannot be known is not guessed.

use std::rc::Rc;
use std::sync::Arc;

use gimli::{
    CfaRule, Evaluation, EvaluationResult, Reader as _, Register, RegisterRule, UnwindContext, UnwindExpression, Value,
};

use super::mappings::{Image, Mapping};
use super::modules::{Module, ModuleId, Modules};
use super::processor::{
    FRAME_POINTER, NEXT_INSTRUCTION, REGISTERS, RETURN_ADDRESS, RETURNS_BY_REGISTER, STACK_POINTER, bare_return,
    code_address, interrupted,
};
use super::recent::Recent;
use super::tables::{Rule, Slice, Tables};
use crate::event::Pid;

/// The registers as DWARF numbers them; `None` where a caller's value is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::collect) struct Registers(pub(in crate::collect) [Option<u64>; REGISTERS]);

impl Registers {
    /// The stack pointer.
    pub(super) fn stack_pointer(&self) -> u64 {
        self.get(STACK_POINTER).unwrap_or(0)
    }

    /// Where it stands.
    pub(super) fn next_instruction(&self) -> Option<u64> {
        self.get(NEXT_INSTRUCTION)
    }

    pub(super) fn get(&self, register: Register) -> Option<u64> {
        *self.0.get(usize::from(register.0))?
    }

    fn set(&mut self, register: Register, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(usize::from(register.0)) {
            *place = value;
        }
    }
}

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CodeAddress {
    pub(super) code: Code,
    /// In the file's own numbering, in the file, or in memory, as `code` says.
    pub(super) address: u64,
    /// Whether a call returns there: what called is the instruction before.
    pub(super) is_return: bool,
}

/// Whose code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Code {
    /// An open file's.
    Module(ModuleId),
    /// A file's that could not be opened.
    File(Arc<[u8]>),
    /// Made by the process.
    Memory,
    /// The kernel's.
    Kernel,
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Walked {
    /// From the innermost outwards.
    pub(super) places: Vec<CodeAddress>,
    /// Whether more follow outwards.
    pub(super) is_truncated: bool,
}

/// A process's memory, as far as it is known.
pub(super) struct Memory<'a> {
    pub(super) pid: Pid,
    pub(super) image: &'a Image,
    /// What lies at the stack pointer and above it.
    pub(super) stack: &'a [u8],
    /// The stack pointer.
    pub(super) start: u64,
    /// Where exec put the process's first stack.
    pub(super) start_stack: u64,
}

impl Memory<'_> {
    /// Whether nobody called what has its frame here: a program's first instructions, of which tables often say nothing, leave
    /// the stack where exec put it, or align it.
    fn is_outermost(&self, registers: &Registers) -> bool {
        let used = self.start_stack.checked_sub(registers.stack_pointer());
        used.is_some_and(|used| used < 16)
    }

    pub(super) fn read(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.stack.get(offset..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

/// Rules that were looked up lately: places that launch are few.
const RULES: usize = 16_384;
/// More frames than the largest copy has words.
const MOST_FRAMES: usize = 4096;
/// Steps of one expression: those of compilers and libc have fewer than ten.
const MOST_STEPS: u32 = 1000;

/// Walks stacks.
pub(super) struct Walker {
    rules: Recent<(ModuleId, u64), Option<Rc<Rule>>>,
    context: UnwindContext<usize>,
}

impl Default for Walker {
    fn default() -> Walker {
        Walker {
            rules: Recent::new(RULES),
            context: UnwindContext::new(),
        }
    }
}

/// What one step came to.
enum Step {
    /// The registers are now the caller's, which was calling, or else interrupted.
    Caller {
        was_calling: bool,
    },
    /// There is no caller.
    Outermost,
    Unknown,
}

impl Walker {
    /// The frames of a stack, beginning where its registers say. `modules` has the process's files.
    pub(super) fn walk(&mut self, mut registers: Registers, memory: &Memory, modules: &mut Modules) -> Walked {
        let mut walked = Walked::default();
        let mut is_return = false;
        while walked.places.len() < MOST_FRAMES {
            if let Some(caller) = interrupted(&registers, memory) {
                (registers, is_return) = (caller, false);
            }
            let Some(address) = registers.next_instruction() else {
                break;
            };
            let Some(mapping) = memory.image.find(address - u64::from(is_return && address > 0)) else {
                break;
            };
            let module = modules.of(memory.pid, mapping);
            walked
                .places
                .push(place(mapping, module.as_deref(), address, is_return));
            let step = match (&module, &mapping.file) {
                (Some(module), _) => self.step(&mut registers, memory, module, walked.places.last()),
                (None, None) => step_by_frame_pointer(&mut registers, memory),
                (None, Some(_)) => Step::Unknown,
            };
            let step = match step {
                Step::Unknown if memory.is_outermost(&registers) => Step::Outermost,
                Step::Unknown if walked.places.len() == 1 => step_from_call(&mut registers, memory, modules),
                step => step,
            };
            match step {
                Step::Caller { was_calling } => is_return = was_calling,
                Step::Outermost => return walked,
                Step::Unknown => break,
            }
        }
        walked.is_truncated = true;
        walked
    }

    fn step(
        &mut self,
        registers: &mut Registers,
        memory: &Memory,
        module: &Module,
        place: Option<&CodeAddress>,
    ) -> Step {
        let Some(place) = place else {
            return Step::Unknown;
        };
        let address = place.address - u64::from(place.is_return);
        let rule = match self.rules.get(&(module.id, address)) {
            Some(rule) => rule.clone(),
            None => {
                let rule = module.tables.rule(address, &mut self.context).map(Rc::new);
                self.rules.insert((module.id, address), rule.clone());
                rule
            }
        };
        rule.map_or(Step::Unknown, |rule| {
            follow(&rule, &module.tables, registers, memory, place.is_return)
        })
    }
}

fn place(mapping: &Mapping, module: Option<&Module>, address: u64, is_return: bool) -> CodeAddress {
    // A call may be the last instruction of a mapping: where it returns to is then behind it.
    let offset = (address - mapping.start) + mapping.offset;
    let before = offset - u64::from(is_return);
    let numbered = module.and_then(|module| Some((module.id, module.address_of(before)? + (offset - before))));
    let (code, address) = match (numbered, &mapping.file) {
        (Some((id, address)), _) => (Code::Module(id), address),
        (None, Some(file)) => (Code::File(Arc::clone(&file.path)), offset),
        (None, None) => (Code::Memory, address),
    };
    CodeAddress {
        code,
        address,
        is_return,
    }
}

/// `has_called`: it has called the one before, so that its own address to return to is in no register any more.
fn follow(rule: &Rule, tables: &Tables, registers: &mut Registers, memory: &Memory, has_called: bool) -> Step {
    let return_rule = rule.registers.iter().find(|(register, _)| *register == RETURN_ADDRESS);
    let return_rule = match return_rule {
        Some((_, RegisterRule::Undefined)) => return Step::Outermost,
        Some((_, rule)) => rule,
        None if RETURNS_BY_REGISTER && has_called => return Step::Unknown,
        None if RETURNS_BY_REGISTER => &RegisterRule::SameValue,
        None => return Step::Outermost,
    };
    let evaluator = Evaluator {
        rule,
        tables,
        registers,
        memory,
    };
    let Some(frame) = evaluator.frame() else {
        return Step::Unknown;
    };
    // Each frame lies above the one it called, unless a signal's handler has a stack of its own, which ends what was copied.
    if registers.get(STACK_POINTER).is_none_or(|stack| frame < stack) {
        return Step::Unknown;
    }
    let mut caller = registers.clone();
    caller.set(STACK_POINTER, Some(frame));
    for (register, rule) in &rule.registers {
        caller.set(*register, evaluator.register(*register, rule, frame));
    }
    let returns_to = evaluator.register(RETURN_ADDRESS, return_rule, frame);
    caller.set(NEXT_INSTRUCTION, returns_to.map(code_address));
    if returns_to.is_none() || caller == *registers {
        return Step::Unknown;
    }
    *registers = caller;
    Step::Caller {
        was_calling: !rule.is_signal,
    }
}

/// Code that a process makes at run time has no tables, and keeps frame pointers for its debuggers. It is believed as far
/// as it leads upwards into code.
fn step_by_frame_pointer(registers: &mut Registers, memory: &Memory) -> Step {
    let (Some(pointer), Some(stack)) = (registers.get(FRAME_POINTER), registers.get(STACK_POINTER)) else {
        return Step::Unknown;
    };
    let (Some(saved), Some(returns_to)) = (
        memory.read(pointer),
        pointer.checked_add(8).and_then(|at| memory.read(at)).map(code_address),
    ) else {
        return Step::Unknown;
    };
    if pointer < stack || memory.image.find(returns_to.saturating_sub(1)).is_none() {
        return Step::Unknown;
    }
    *registers = Registers([None; REGISTERS]);
    registers.set(FRAME_POINTER, Some(saved));
    registers.set(STACK_POINTER, pointer.checked_add(16));
    registers.set(NEXT_INSTRUCTION, Some(returns_to));
    Step::Caller { was_calling: true }
}

/// glibc's `clone` ends its table's entry before its system call, since it would be wrong in the child. Functions that small
/// have nothing on the stack but where they return to: believed if that is behind a call.
fn step_from_call(registers: &mut Registers, memory: &Memory, modules: &mut Modules) -> Step {
    let Some((returns_to, stack)) = bare_return(registers, memory).filter(|(address, _)| *address > 0) else {
        return Step::Unknown;
    };
    let mut is_behind_call = || {
        let mapping = memory.image.find(returns_to - 1)?;
        let module = modules.of(memory.pid, mapping)?;
        Some(module.is_behind_call(returns_to - mapping.start + mapping.offset))
    };
    if is_behind_call() != Some(true) {
        return Step::Unknown;
    }
    registers.set(STACK_POINTER, Some(stack));
    registers.set(NEXT_INSTRUCTION, Some(returns_to));
    Step::Caller { was_calling: true }
}

/// Evaluates the rules of one place.
struct Evaluator<'a> {
    rule: &'a Rule,
    tables: &'a Tables,
    registers: &'a Registers,
    memory: &'a Memory<'a>,
}

impl Evaluator<'_> {
    fn frame(&self) -> Option<u64> {
        match &self.rule.frame {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.registers.get(*register)?.checked_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.expression(expression, None),
        }
    }

    fn register(&self, register: Register, rule: &RegisterRule<usize>, frame: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.registers.get(register),
            RegisterRule::Offset(offset) => self.memory.read(frame.checked_add_signed(*offset)?),
            RegisterRule::ValOffset(offset) => frame.checked_add_signed(*offset),
            RegisterRule::Register(other) => self.registers.get(*other),
            RegisterRule::Expression(expression) => self.memory.read(self.expression(expression, Some(frame))?),
            RegisterRule::ValExpression(expression) => self.expression(expression, Some(frame)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    fn expression(&self, expression: &UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let evaluate = |mut section: Slice<'_>| {
            section.skip(expression.offset).ok()?;
            let code = section.split(expression.length).ok()?;
            let mut evaluation = Evaluation::new(code, self.rule.encoding);
            evaluation.set_max_iterations(MOST_STEPS);
            if let Some(first) = first {
                evaluation.set_initial_value(first);
            }
            let mut result = evaluation.evaluate().ok()?;
            loop {
                result = match result {
                    EvaluationResult::Complete => break,
                    EvaluationResult::RequiresRegister { register, .. } => {
                        let value = self.registers.get(register)?;
                        evaluation.resume_with_register(Value::Generic(value)).ok()?
                    }
                    EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                        let value = self.memory.read(address)?;
                        evaluation.resume_with_memory(Value::Generic(value)).ok()?
                    }
                    _ => return None,
                };
            }
            // What is left on the evaluation's stack, as a "location in memory".
            match evaluation.result().first()?.location {
                gimli::Location::Address { address } => Some(address),
                _ => None,
            }
        };
        self.tables.with_expressions_of(self.rule, evaluate).flatten()
    }
}

/// Looks for rules in a file and follows them, as `Walker::step` does, for `fuzz/`. Where to look is in the stack.
#[cfg(fuzzing)]
pub(in crate::collect) fn fuzz(file: &[u8], stack: &[u8]) {
    const START: u64 = 0x7ffc_0000_0000;
    let Ok(elf) = object::read::elf::ElfFile64::<object::Endianness, _>::parse(file) else {
        return;
    };
    let tables = Tables::read(&elf);
    let image = Image::of(Mapping {
        start: 0,
        end: START,
        offset: 0,
        file: None,
    });
    let memory = Memory {
        pid: Pid(1),
        image: &image,
        stack,
        start: START,
        start_stack: START + stack.len() as u64,
    };
    let words = stack.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let near_entry = (0..64).map(|offset| object::Object::entry(&elf).wrapping_add(offset));
    let mut context = UnwindContext::new();
    for address in words.take(64).chain(near_entry) {
        let mut registers = Registers([Some(address); REGISTERS]);
        registers.set(STACK_POINTER, Some(START));
        if let Some(rule) = tables.rule(address, &mut context) {
            follow(&rule, &tables, &mut registers, &memory, false);
        }
    }
}
