//! Reads the statement that a Perl interpreter executes when it forks, and its callers. `ebpf/perl.h` documents what is read and why; the
//! results of both must be equal.

use spawnscope_data::event::{Chain, Pid};
use spawnscope_system::ptrace::Registers;

use super::memory::Memory;
use super::script::Script;
use crate::wire::*;

/// The walk outwards through the contexts.
struct Walk {
    script: Script,
    interpreter: u64,
    /// The statement of the next frame.
    statement: u64,
    /// The address of the current context stack.
    stack: u64,
    /// The address of its contexts.
    contexts: u64,
    /// The index of the next context.
    index: i32,
}

/// Returns the call chain of a stopped thread; `None` if it cannot be read.
pub(super) fn chain(thread: Pid, layout: &WirePerl, bias: u64) -> Option<Chain> {
    let mut script = Script::new(Memory::new(thread), bias, INTERPRETER_PERL);
    let perl = interpreter_of_thread(&mut script, layout, thread)?;
    let statement = script.memory.pointer(perl.wrapping_add(layout.statement.into()))?;
    let stack = script.memory.pointer(perl.wrapping_add(layout.stack.into()))?;
    script.called.flags = SCRIPT_TRUNCATED;
    let mut walk = Walk { script, interpreter: perl, statement, stack, contexts: 0, index: 0 };
    walk.enter(stack)?;
    for _ in 0..PERL_MAX_CONTEXTS {
        if walk.leave_context().is_none() {
            break;
        }
    }
    walk.script.chain()
}

/// Returns the address of a thread's interpreter. glibc gives a pthread key that is in use an odd sequence number.
fn interpreter_of_thread(script: &mut Script, layout: &WirePerl, thread: Pid) -> Option<u64> {
    /// Bytes of a sequence number and a pointer.
    const VALUE: u64 = 16;
    let key = script.number(layout.key).filter(|key| *key < PTHREAD_INLINE_KEYS)?;
    let value =
        Registers::thread_pointer(thread)?.wrapping_add(layout.values.into()).wrapping_add(u64::from(key) * VALUE);
    let sequence = script.memory.pointer(value)?;
    script.memory.pointer(value.wrapping_add(8)).filter(|perl| sequence & 1 == 1 && *perl != 0)
}

impl Walk {
    fn pointer(&mut self, object: u64, offset: u64) -> Option<u64> {
        self.script.memory.pointer(object.wrapping_add(offset))
    }

    fn number(&mut self, object: u64, offset: u64) -> Option<u32> {
        self.script.memory.number(object.wrapping_add(offset))
    }

    /// Moves to the innermost context of a context stack.
    fn enter(&mut self, stack: u64) -> Option<()> {
        self.stack = stack;
        self.contexts = self.pointer(stack, PERL_STACK_CONTEXTS).filter(|first| *first != 0)?;
        self.index = self.number(stack, PERL_STACK_INDEX)?.cast_signed();
        Some(())
    }

    /// Moves one context outwards. Returns `None` at the end, after adding the last frame. Code that the interpreter calls itself, such as a
    /// signal handler, runs on its own context stack.
    fn leave_context(&mut self) -> Option<()> {
        let Ok(index) = u64::try_from(self.index) else {
            let outer = self.pointer(self.stack, PERL_STACK_OUTER).filter(|outer| *outer != 0);
            if let Some(outer) = outer {
                return self.enter(outer);
            }
            self.add_frame(0)?;
            self.script.called.flags = 0;
            return None;
        };
        let context = self.contexts.wrapping_add(index * PERL_CONTEXT_BYTES);
        self.index -= 1;
        let kind = self.script.memory.byte(context)?;
        let code = match kind & PERL_CONTEXT_KIND {
            PERL_CONTEXT_SUB => self.pointer(context, PERL_CONTEXT_CODE).unwrap_or(0),
            PERL_CONTEXT_FORMAT => 0,
            PERL_CONTEXT_EVAL if kind & PERL_CONTEXT_TRY == 0 => 0,
            _ => return Some(()),
        };
        self.add_frame(code)?;
        self.statement = self.pointer(context, PERL_CONTEXT_STATEMENT).unwrap_or(0);
        Some(())
    }

    /// Adds the frame of the current statement, which is in the function with this code (0: in no function).
    fn add_frame(&mut self, code: u64) -> Option<()> {
        let frame = self.script.called.frames;
        if frame > 0 && self.statement.wrapping_sub(self.interpreter) < PERL_MAX_INTERPRETER_BYTES {
            return None;
        }
        let line = self.number(self.statement, PERL_STATEMENT_LINE)?;
        if frame >= SCRIPT_FRAMES || !(1..PERL_LINE_LIMIT).contains(&line) {
            return None;
        }
        let file = self.pointer(self.statement, PERL_STATEMENT_FILE)?;
        self.script.add_text(file, SCRIPT_FILE_BYTES)?;
        let function = self.function_name(code);
        self.script.add_text_if_known(function, SCRIPT_FUNCTION_BYTES);
        self.script.called.lines[frame as usize] = line;
        self.script.called.frames = frame + 1;
        Some(())
    }

    /// Returns the address of a function's name. The first word of every SV points to its body.
    fn function_name(&mut self, code: u64) -> Option<u64> {
        let body = self.pointer(code, 0)?;
        let flags = self.number(body, PERL_CODE_FLAGS)?;
        let mut name = self.pointer(body, PERL_CODE_NAME)?;
        if flags & PERL_CODE_NAMED == 0 {
            let symbol = self.pointer(name, 0)?;
            name = self.pointer(symbol, PERL_SYMBOL_NAME)?;
        }
        (name != 0).then(|| name.wrapping_add(PERL_NAME_TEXT))
    }
}
