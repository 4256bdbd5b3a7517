//! Finds the call sites of launches in scripts: reads the memory of the creator's interpreter while the creator is stopped in its fork. The
//! layouts of interpreters, and the decoding of what is read, are shared with the eBPF collector (`callers`).

mod bash;
mod bash_texts;
mod dash;
mod make;
mod memory;
mod perl;
mod python;
mod script;
mod shell;
mod zsh;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use spawnscope_data::event::{Chain, Pid};
use spawnscope_system::procfs;

use self::memory::Memory;
use self::script::Script;
pub(super) use self::shell::Shell;
use self::shell::ShellSetup;
use crate::Settings;
use crate::callers::make::makefiles::Makefiles;
use crate::callers::{self, Layout};
use crate::wire::{INTERPRETER_BASH, INTERPRETER_DASH, WireBash, WireDash};

/// An interpreter whose memory can be read.
#[derive(Debug)]
pub(super) struct Interpreter {
    layout: Layout,
    /// The entry point in the ELF file.
    entry_point: u64,
}

/// The interpreter that a process runs, and where it is in memory.
#[derive(Clone, Debug)]
pub(crate) struct RunningInterpreter {
    interpreter: Arc<Interpreter>,
    /// An address in the process minus the same address in the ELF file.
    bias: u64,
    /// Whether the process is in a nested pid namespace. Determined only for Python, where it matters.
    is_nested: bool,
}

/// What is known about the program of a process.
#[derive(Clone, Debug, Default)]
pub(crate) enum Program {
    /// Not an interpreter, or unknown.
    #[default]
    Other,
    /// Not examined yet. The program is examined at its first launch, because most programs never launch anything.
    Unexamined {
        /// The address of the program's entry point.
        entry_point: u64,
    },
    Interpreter(RunningInterpreter),
}

/// The interpreters found so far.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    is_enabled: bool,
    /// The executables examined so far, by device and inode. `None`: not an interpreter.
    examined: HashMap<(u64, u64), Option<Arc<Interpreter>>>,
    makefiles: Makefiles,
}

impl Interpreters {
    /// Examines in advance the interpreters that are likely to run.
    pub(crate) fn new(settings: &Settings) -> Interpreters {
        let mut interpreters = Interpreters {
            is_enabled: settings.script_lines,
            examined: HashMap::new(),
            makefiles: Makefiles::default(),
        };
        if !settings.script_lines {
            return interpreters;
        }
        for path in callers::likely_interpreters(settings.command.as_deref()) {
            let Some((id, file)) = File::open(path).ok().and_then(|file| Some((file_id(&file)?, file))) else {
                continue;
            };
            if interpreters.examined.contains_key(&id) {
                continue;
            }
            // Do not store that a file is not an interpreter: a process that runs the file may reveal more.
            if let Some(found) = examine(&file, None) {
                interpreters.examined.insert(id, Some(found));
            }
        }
        interpreters
    }

    /// Examines only this interpreter in advance.
    pub(crate) fn with(file: Option<&File>) -> Interpreters {
        let found = file.and_then(|file| file_id(file).zip(examine(file, None)));
        let examined = found.into_iter().map(|(id, interpreter)| (id, Some(interpreter))).collect();
        Interpreters { is_enabled: true, examined, makefiles: Makefiles::default() }
    }

    /// Returns the interpreter that a process runs, given the address of its program's entry point. Examines the executable if it is new.
    fn running(&mut self, process: Pid, entry_point: u64) -> Option<RunningInterpreter> {
        if !self.is_enabled {
            return None;
        }
        let path = format!("/proc/{}/exe", process.0);
        let found = fs::metadata(&path).ok()?;
        let known = self.examined.entry((found.dev(), found.ino()));
        let known = known.or_insert_with(|| examine(&File::open(path).ok()?, Some(process)));
        let interpreter = Arc::clone(known.as_ref()?);
        let is_python = matches!(interpreter.layout, Layout::Python(_));
        Some(RunningInterpreter {
            bias: entry_point.wrapping_sub(interpreter.entry_point),
            interpreter,
            is_nested: is_python && procfs::innermost_id(process).is_some_and(|innermost| innermost != process),
        })
    }

    /// Returns the interpreter that a process runs, if any.
    fn interpreter_of<'a>(&mut self, process: Pid, program: &'a mut Program) -> Option<&'a RunningInterpreter> {
        if let Program::Unexamined { entry_point } = *program {
            *program = self.running(process, entry_point).map_or(Program::Other, Program::Interpreter);
        }
        match program {
            Program::Interpreter(running) => Some(running),
            _ => None,
        }
    }
}

/// Returns the device and inode number of a regular file.
fn file_id(file: &File) -> Option<(u64, u64)> {
    let found = file.metadata().ok()?;
    found.is_file().then(|| (found.dev(), found.ino()))
}

fn examine(file: &File, process: Option<Pid>) -> Option<Arc<Interpreter>> {
    let layout = callers::layout_of(file, process)?;
    let entry_point = callers::entry_point(file)?;
    Some(Arc::new(Interpreter { layout, entry_point }))
}

/// Returns the call chain of a shell that is not stopped; `None` if it cannot be read, or changed while it was read.
pub(crate) fn position(interpreters: &mut Interpreters, process: Pid, program: &mut Program) -> Option<Chain> {
    let creator = Creator { process, thread: process, program, shell: Shell::default(), is_spawn: true };
    call_site(interpreters, creator).0
}

/// A process that launches, and the state of its shell.
pub(super) struct Creator<'a> {
    pub(super) process: Pid,
    /// The thread that launches.
    pub(super) thread: Pid,
    pub(super) program: &'a mut Program,
    pub(super) shell: Shell,
    /// Whether the child shares the creator's memory until its exec (vfork), so that it will execute a program at once.
    pub(super) is_spawn: bool,
}

/// Returns the call site of a launch, if it is already known, and the state of the new process's shell. The creator must be stopped in its
/// fork.
pub(super) fn call_site(interpreters: &mut Interpreters, creator: Creator<'_>) -> (Option<Chain>, Shell) {
    let Creator { process, thread, program, shell, is_spawn } = creator;
    let Some(running) = interpreters.interpreter_of(process, program) else {
        return (None, Shell::default());
    };
    let bias = running.bias;
    match &running.interpreter.layout {
        Layout::Bash(layout) => from_bash(&shell, process, bias, layout),
        Layout::Dash(layout) => from_dash(&shell, process, bias, layout, is_spawn),
        Layout::Python(layout) => {
            let chain = python::chain(thread, layout, bias, running.is_nested);
            (chain, Shell::default())
        }
        Layout::Perl(layout) => (perl::chain(thread, layout, bias), Shell::default()),
        Layout::Make(layout) => {
            let chain = make::chain(thread, layout, bias, &mut interpreters.makefiles);
            (chain, Shell::default())
        }
        Layout::Zsh(layout) => (zsh::chain(process, layout, bias), Shell::default()),
    }
}

fn from_bash(shell: &Shell, process: Pid, bias: u64, layout: &WireBash) -> (Option<Chain>, Shell) {
    let mut script = Script::new(Memory::new(process), bias, INTERPRETER_BASH);
    script.line_is_uncertain = shell.has_uncertain_line;
    let chain = bash::read(&mut script, layout).and_then(|()| script.chain());
    let child = Shell { has_uncertain_line: script.line_is_uncertain, ..Shell::default() };
    (chain, child)
}

/// Like `call_site`, for a dash. The call site of a forked dash is known only when it begins its first command (`own_call_site`).
fn from_dash(shell: &Shell, process: Pid, bias: u64, layout: &WireDash, is_spawn: bool) -> (Option<Chain>, Shell) {
    let mut script = Script::new(Memory::new(process), bias, INTERPRETER_DASH);
    let variables = dash::Variables::find(&mut script, process, layout);
    let Some(position) = variables.and_then(|variables| dash::read(&mut script, &variables, shell)) else {
        return (None, Shell::default());
    };
    if is_spawn {
        return (script.chain(), Shell::default());
    }
    let line = script.called.lines[0];
    let is_in_same_function = position.inherits_input && shell.function_line == position.function_line;
    let is_not_read_yet = !position.inherits_input && position.function_line == 0 && line > position.read_lines;
    let child = Shell {
        has_uncertain_line: false,
        is_subshell: true,
        is_pending: true,
        has_own_line: position.is_pipeline || is_not_read_yet,
        line,
        function_line: position.function_line,
        input_kind: position.input_kind,
        string_lines: position.string_lines,
        min_line: if is_in_same_function { shell.line } else { 1 },
    };
    (None, child)
}

impl Shell {
    /// Whether the shell's system calls must be observed, because its call site has not been reported yet.
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Call when a forked shell whose call site has not been reported enters a system call. Returns the call site, unless this call still
    /// belongs to the shell's setup.
    pub(super) fn call_site_at_entry(
        &mut self,
        process: Pid,
        program: &Program,
        number: libc::c_long,
        first_argument: u64,
    ) -> Option<Chain> {
        if !self.is_pending {
            return None;
        }
        match ShellSetup::classify(number, first_argument) {
            ShellSetup::Continues => return None,
            ShellSetup::IsInBackground => {
                self.has_own_line = true;
                return None;
            }
            ShellSetup::Ends => {}
        }
        let chain = self.own_call_site(process, program);
        (self.is_pending, self.has_own_line) = (false, false);
        chain
    }

    fn own_call_site(&mut self, process: Pid, program: &Program) -> Option<Chain> {
        let Program::Interpreter(running) = program else {
            return None;
        };
        let Layout::Dash(layout) = &running.interpreter.layout else {
            return None;
        };
        if self.has_own_line {
            self.line = self.min_line;
        }
        let mut script = Script::new(Memory::new(process), running.bias, INTERPRETER_DASH);
        let variables = dash::Variables::find(&mut script, process, layout)?;
        dash::read(&mut script, &variables, self)?;
        self.line = script.called.lines[0];
        script.chain()
    }
}
