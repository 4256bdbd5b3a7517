//! Finds the call sites of launches in scripts: reads the memory of the creator's interpreter while
//! the creator is stopped in its fork. The layouts of interpreters (`callers`), the code that reads
//! their memory (`readers`), and the decoding of what is read are shared with the eBPF collector.

mod memory;
mod readers;
mod shell;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, OnceLock};

use spawnscope_data::event::{Chain, Pid};
use spawnscope_system::procfs;
use spawnscope_system::ptrace::{CallInfo, FileVersion, Registers, StoreDetours};

use self::memory::KnownMemory;
use self::readers::{Reader, ScriptCall};
pub(super) use self::shell::Shell;
use self::shell::ShellSetup;
use crate::Settings;
use crate::callers::sources::Place;
use crate::callers::{self, Files, Layout, chains};
use crate::wire::{PYTHON_LINES_LOCATIONS, WireMake, WirePython};

/// An interpreter whose memory can be read.
#[derive(Debug)]
pub(super) struct Interpreter {
    layout: Layout,
    /// The entry point in the ELF file.
    entry_point: u64,
    /// The detours of the stores of dash's current line, once a process that needs them has been
    /// examined.
    line_stores: OnceLock<Option<StoreDetours>>,
}

/// The interpreter that a process runs, and where it is in memory.
#[derive(Clone, Debug)]
pub(crate) struct RunningInterpreter {
    interpreter: Arc<Interpreter>,
    /// An address in the process minus the same address in the ELF file.
    bias: u64,
    /// Whether the process is in a nested pid namespace. Determined only for Python, where it
    /// matters.
    is_nested: bool,
    memory: KnownMemory,
    /// Whether the detours are in the memory of the process.
    has_detours: bool,
}

impl RunningInterpreter {
    /// Returns the detours of the stores of dash's current line, after they were installed in a
    /// stopped process.
    fn install_detours(&mut self, process: Pid) -> Option<&StoreDetours> {
        let Layout::Dash(layout) = &self.interpreter.layout else {
            return None;
        };
        // In busybox, the line has no address of its own.
        let prepare = || {
            let has_address = layout.state_block == 0;
            has_address.then(|| StoreDetours::prepare(process, self.bias, layout.code_start, layout.line))?
        };
        let detours = self.interpreter.line_stores.get_or_init(prepare).as_ref()?;
        self.has_detours = self.has_detours || detours.install(process, self.bias).is_ok();
        Some(detours).filter(|_| self.has_detours)
    }
}

/// What is known about the program of a process.
#[derive(Clone, Debug, Default)]
pub(crate) enum Program {
    /// Not an interpreter, or unknown.
    #[default]
    Other,
    /// Not examined yet. The program is examined at its first launch, because most programs never
    /// launch anything.
    Unexamined {
        /// The address of the program's entry point.
        entry_point: u64,
        /// The program's file, if it is known.
        file: Option<FileVersion>,
    },
    Interpreter(RunningInterpreter),
}

impl Program {
    /// Notes the file of the program, unless the program was examined.
    pub(super) fn set_file(&mut self, file: Option<FileVersion>) {
        if let Program::Unexamined { file: known, .. } = self {
            *known = file;
        }
    }

    /// Whether the program is known to be one that sets no seccomp filter.
    pub(super) fn sets_no_filter(&self) -> bool {
        use Layout::{Bash, Dash, Make, Zsh};
        let Program::Interpreter(running) = self else { return false };
        matches!(running.interpreter.layout, Bash(_) | Dash(_) | Make(_) | Zsh(_))
    }

    /// Prepares a stopped shell so that the shells that it forks can stop when they begin their
    /// first command (`Shell::await_command`).
    pub(super) fn prepare_forks(&mut self, process: Pid) {
        if let Program::Interpreter(running) = self {
            running.install_detours(process);
        }
    }

    /// Whether a process has stopped by a signal because it begins a command.
    pub(super) fn begins_command(&self, process: Pid, signal: i32) -> bool {
        let Program::Interpreter(running) = self else {
            return false;
        };
        let detours = running.interpreter.line_stores.get().and_then(Option::as_ref);
        detours.is_some_and(|detours| detours.is_reached_by(process, running.bias, signal))
    }

    /// Whether the call site of a child may become known only when the child runs.
    pub(super) fn is_asked_later(&self) -> bool {
        match self {
            Program::Other => false,
            Program::Unexamined { .. } => true,
            Program::Interpreter(running) => matches!(running.interpreter.layout, Layout::Dash(_)),
        }
    }
}

/// The interpreters found so far.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    is_enabled: bool,
    /// The executables examined so far, by device and inode. `None`: not an interpreter.
    examined: HashMap<(u64, u64), Option<Arc<Interpreter>>>,
    pub(super) files: Files,
}

impl Interpreters {
    /// Examines in advance the interpreters that are likely to run.
    pub(crate) fn new(settings: &Settings) -> Interpreters {
        let mut interpreters =
            Interpreters { is_enabled: settings.script_lines, examined: HashMap::new(), files: Files::default() };
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
            // Do not store that a file is not an interpreter: a process that runs the file may
            // reveal more.
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
        Interpreters { is_enabled: true, examined, files: Files::default() }
    }

    /// Returns the interpreter that a process runs, given the address of its program's entry point.
    /// Examines the executable if it is new.
    fn running(&mut self, process: Pid, entry_point: u64, file: Option<FileVersion>) -> Option<RunningInterpreter> {
        if !self.is_enabled {
            return None;
        }
        let path = format!("/proc/{}/exe", process.0);
        let file = file.or_else(|| Some(FileVersion::of(&fs::metadata(&path).ok()?)))?;
        let known = self.examined.entry((file.device, file.inode));
        let known = known.or_insert_with(|| examine(&File::open(path).ok()?, Some(process)));
        let interpreter = Arc::clone(known.as_ref()?);
        let is_python = matches!(interpreter.layout, Layout::Python(_));
        Some(RunningInterpreter {
            bias: entry_point.wrapping_sub(interpreter.entry_point),
            interpreter,
            is_nested: is_python && procfs::innermost_id(process).is_some_and(|innermost| innermost != process),
            memory: KnownMemory::default(),
            has_detours: false,
        })
    }

    /// Returns the interpreter that a process runs, if any.
    fn interpreter_of<'a>(&mut self, process: Pid, program: &'a mut Program) -> Option<&'a mut RunningInterpreter> {
        if let Program::Unexamined { entry_point, file } = *program {
            *program = self.running(process, entry_point, file).map_or(Program::Other, Program::Interpreter);
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
    Some(Arc::new(Interpreter { layout, entry_point, line_stores: OnceLock::new() }))
}

/// Returns the call chain of a shell that is not stopped; `None` if it cannot be read, or changed
/// while it was read.
pub(crate) fn position(interpreters: &mut Interpreters, process: Pid, program: &mut Program) -> Option<Chain> {
    let creator = Creator { process, thread: process, program, shell: Shell::default(), is_spawn: true };
    call_site(interpreters, creator).0
}

/// A process that launches, and the state of its shell.
pub(super) struct Creator<'a> {
    pub(super) process: Pid,
    pub(super) thread: Pid,
    pub(super) program: &'a mut Program,
    pub(super) shell: Shell,
    /// Whether the child shares the creator's memory until its exec (vfork), so that it will
    /// execute a program at once.
    pub(super) is_spawn: bool,
}

/// Returns the call site of a launch, if it is already known, and the state of the new process's
/// shell. The creator must be stopped in its fork.
pub(super) fn call_site(interpreters: &mut Interpreters, creator: Creator<'_>) -> (Option<Chain>, Shell) {
    let Creator { process, thread, program, shell, is_spawn } = creator;
    let Some(running) = interpreters.interpreter_of(process, program) else {
        return (None, Shell::default());
    };
    let mut reader = Reader::new(thread, running);
    let found = match &running.interpreter.layout {
        Layout::Bash(layout) => {
            let (called, child) = reader.bash(layout, &shell.task());
            (called.and_then(script_chain), Shell::of(&child))
        }
        Layout::Dash(layout) => {
            let (called, child) = reader.dash(layout, &shell.task(), is_spawn);
            // The call site of a fork is known only when the shell begins its first command
            // (`own_call_site`).
            let called = called.filter(|_| is_spawn);
            let chain = called.and_then(|called| dash_chain(process, &called, &mut interpreters.files));
            (chain, Shell::of(&child))
        }
        Layout::Python(layout) => (python_chain(&mut reader, layout, thread, running.is_nested), Shell::default()),
        Layout::Perl(layout) => {
            let thread_pointer = Registers::thread_pointer(thread);
            (thread_pointer.and_then(|pointer| reader.perl(layout, pointer)).and_then(script_chain), Shell::default())
        }
        Layout::Make(layout) => (make_chain(&mut reader, layout, thread, &mut interpreters.files), Shell::default()),
        Layout::Zsh(layout) => (reader.zsh(layout).and_then(script_chain), Shell::default()),
    };
    running.memory = reader.known_memory();
    found
}

/// Returns the chain; `None` if no frame is known.
fn script_chain((called, data): ScriptCall) -> Option<Chain> {
    chains::script::chain(&called, &data).filter(|chain| !chain.frames.is_empty())
}

fn dash_chain(process: Pid, (called, data): &ScriptCall, files: &mut Files) -> Option<Chain> {
    let chain = chains::script::dash(called, data, || Place::of(process), files);
    chain.filter(|chain| !chain.frames.is_empty())
}

fn python_chain(reader: &mut Reader, layout: &WirePython, thread: Pid, is_nested: bool) -> Option<Chain> {
    let tid = if layout.line_format != PYTHON_LINES_LOCATIONS {
        Registers::thread_pointer(thread)?
    } else if is_nested {
        procfs::innermost_id(thread)?.0 as u64
    } else {
        thread.0 as u64
    };
    let (called, data) = reader.python(layout, tid)?;
    chains::python::chain(&called, &data)
}

fn make_chain(reader: &mut Reader, layout: &WireMake, thread: Pid, files: &mut Files) -> Option<Chain> {
    let (called, data) = reader.make(layout, CallInfo::read(thread).ok()?.stack_pointer)?;
    chains::make::chain(&called, &data, Some(Place::of(thread)), files)
}

impl Shell {
    /// Lets a forked shell whose call site is not known yet stop when it begins its first command,
    /// instead of at each system call up to then. Call before it runs.
    pub(super) fn await_command(&mut self, process: Pid, program: &mut Program) {
        if let (true, Program::Interpreter(running)) = (self.is_pending(), program) {
            let bias = running.bias;
            let detours = running.install_detours(process);
            self.awaits_command = detours.is_some_and(|detours| detours.choose(process, bias, true).is_ok());
        }
    }

    /// Undoes `await_command`. Returns whether the shell was to stop.
    pub(super) fn cease_awaiting(&mut self, process: Pid, program: &mut Program) -> bool {
        let awaited = std::mem::take(&mut self.awaits_command);
        if let (true, Program::Interpreter(running)) = (awaited, program) {
            let bias = running.bias;
            // If this fails, the process was killed.
            let _ = running.install_detours(process).map(|detours| detours.choose(process, bias, false));
        }
        awaited
    }

    /// Returns the call site of a forked shell that was to stop when it begins its first command,
    /// and lets it stop no more. Call at that stop, and when it launches, executes a program or
    /// ends before it. `creator`: the shell that has forked it.
    pub(super) fn call_site_at_command(
        &mut self,
        process: Pid,
        program: &mut Program,
        creator: Option<Pid>,
        files: &mut Files,
    ) -> Option<Chain> {
        if !self.cease_awaiting(process, program) {
            return None;
        }
        if creator.is_some_and(|creator| has_no_input(process, creator)) {
            self.use_own_line();
        }
        let chain = self.own_call_site(process, program, files);
        self.end_setup();
        chain
    }

    /// Call when a forked shell whose call site has not been reported enters a system call. Returns
    /// the call site, unless this call still belongs to the shell's setup.
    pub(super) fn call_site_at_entry(
        &mut self,
        process: Pid,
        program: &Program,
        number: libc::c_long,
        first_argument: u64,
        files: &mut Files,
    ) -> Option<Chain> {
        if !self.has_traced_calls() {
            return None;
        }
        match ShellSetup::classify(number, first_argument) {
            ShellSetup::Continues => return None,
            ShellSetup::IsInBackground => {
                self.use_own_line();
                return None;
            }
            ShellSetup::Ends => {}
        }
        let chain = self.own_call_site(process, program, files);
        self.end_setup();
        chain
    }

    fn own_call_site(&mut self, process: Pid, program: &Program, files: &mut Files) -> Option<Chain> {
        let Program::Interpreter(running) = program else {
            return None;
        };
        let Layout::Dash(layout) = &running.interpreter.layout else {
            return None;
        };
        let (called, own) = Reader::new(process, running).own_dash(layout, &self.task());
        *self = Shell::of(&own);
        dash_chain(process, &called?, files)
    }
}

/// Whether a forked shell has replaced its standard input by /dev/null, as it does in the
/// background.
fn has_no_input(process: Pid, creator: Pid) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let input = |process: Pid| fs::read_link(format!("/proc/{}/fd/0", process.0)).ok();
    // SAFETY: a plain system call.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, process.0, creator.0, KCMP_FILE, 0, 0) };
    let is_replaced = |own| order > 0 || Some(own) != input(creator);
    order != 0 && input(process).is_some_and(|own| own.as_os_str() == "/dev/null" && is_replaced(own))
}
