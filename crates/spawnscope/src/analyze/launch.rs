//! One launch with everything known of it joined together: rows of several tables become one value.
//! Owns what a single launch can say of itself; how launches relate is `tree`'s, how time divides is `phases`'.

use std::sync::Arc;

use super::Origin;
pub use super::known::Known;
use super::phases::{Phase, PhaseTimes};
use crate::event::{LaunchId, Mechanism, Nanos, Pid, TaskId};
use crate::record::reader::{StackId, TextId, Texts};

/// One process of the recording and what became of it.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Its number in the recording.
    pub id: LaunchId,
    /// The process that asked for it, even when the recording does not hold that one.
    pub parent: Known<LaunchId>,
    /// The thread that asked for it.
    pub creator: Known<TaskId>,
    /// Steps from the top of its tree.
    pub depth: u32,
    /// As the recorder's pid namespace names it.
    pub pid: Option<Pid>,
    /// How it came into the recording.
    pub origin: Origin,
    /// The call that created it.
    pub mechanism: Option<Mechanism>,
    /// The program it was born as: its parent's at that time.
    pub birth_command: Arc<Command<'a>>,
    /// The program it became: of its last successful `execve`, or the one it was born as.
    pub command: Arc<Command<'a>>,
    /// The parent's resident set when it was created.
    pub parent_rss_bytes: Known<u64>,
    /// The instants that bound its phases.
    pub instants: Instants,
    /// Its successful `execve` calls in order.
    pub execs: Box<[Exec<'a>]>,
    /// Wall time by phase.
    pub phases: PhaseTimes,
    /// CPU time by phase.
    pub cpu_phases: PhaseTimes,
    /// CPU time of all its ended threads.
    pub cpu: Known,
    /// Calls of `close` and `close_range` before its first exec.
    pub setup_closes: Option<u32>,
    /// Page faults of its parent since that one launched or reaped before.
    pub parent_faults: Known<u32>,
    /// Time in those calls, and between two of them with no other system call between.
    pub setup_close_span: Known,
    /// Where in a script its parent asked for it.
    pub script_stack: Option<StackId>,
    /// Where in its parent's machine code.
    pub native_stack: Option<StackId>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Launch<'_> {
    /// Whether it is a launch at all: a process that existed before is not.
    #[must_use]
    pub fn is_launch(&self) -> bool {
        self.origin != Origin::Existed
    }

    /// Whether it was launched to do its parent's work in parallel or apart, without a program of its own.
    #[must_use]
    pub fn is_fork_without_exec(&self) -> bool {
        self.origin == Origin::Launched && self.execs.is_empty()
    }

    /// Whether it was still running when the recording ended.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.outcome == Outcome::Running
    }

    /// The earliest known instant that belongs to it. The command begins when the recorder lets it go.
    #[must_use]
    pub fn start(&self) -> Option<Nanos> {
        let at = &self.instants;
        if matches!(self.origin, Origin::Command | Origin::Existed) {
            return at.created.get();
        }
        let first_exec = || {
            self.execs
                .first()
                .and_then(|exec| exec.enter.get().or(exec.returned.get()))
        };
        at.create
            .get()
            .or(at.created.get())
            .or(at.first_run.get())
            .or_else(first_exec)
    }

    /// Which of its execs, from 0, was the last one entered by an instant; 0 also before the first.
    #[must_use]
    pub fn exec_at(&self, at: Nanos) -> usize {
        let entered = |exec: &Exec<'_>| exec.enter.get().is_none_or(|enter| enter <= at);
        self.execs.partition_point(entered).saturating_sub(1)
    }

    /// The latest known instant that belongs to it; `None` while it runs. The recorder's reaping of the command does not.
    #[must_use]
    pub fn end(&self) -> Option<Nanos> {
        let reaped = self.instants.reaped.get().filter(|_| self.origin != Origin::Command);
        reaped.or(self.instants.zombie.get()).or(self.instants.exit.get())
    }

    /// Wall time from the parent's call to the reaping; up to the recording's end for one that was still running.
    #[must_use]
    pub fn total(&self, recording_end: Nanos) -> Option<Nanos> {
        let end = if self.is_unfinished() {
            Some(recording_end)
        } else {
            self.end()
        };
        Some(end?.since(self.start()?))
    }

    /// What it takes to launch, waiting aside: how long it waits for a CPU and for its parent has nothing to do with its size.
    #[must_use]
    pub fn launching(&self) -> Option<Nanos> {
        let of_its_own = [Phase::Create, Phase::Setup, Phase::Exec, Phase::Load, Phase::Teardown];
        self.phases.sum(of_its_own)
    }

    /// Everything but `run`; `None` when no such phase is known.
    #[must_use]
    pub fn tax(&self) -> Option<Nanos> {
        self.phases.sum(Phase::TAX)
    }
}

/// The instants that bound a launch's phases, those of its execs apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instants {
    /// The parent began the system calls that go before the launch.
    pub prepare: Known,
    /// The parent was done with those that went after its last reaping before this launch.
    pub parent_tidied: Known,
    /// The parent entered the call.
    pub create: Known,
    /// The process existed.
    pub created: Known,
    /// It first got a CPU.
    pub first_run: Known,
    /// Its exit began.
    pub exit: Known,
    /// Its parent may reap it.
    pub zombie: Known,
    /// Its parent's wait returned.
    pub reaped: Known,
}

/// The name under which launches are counted: a program's base name, and whether it is only a copy of that program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Command<'a> {
    /// Base name of the program's file.
    pub name: &'a [u8],
    /// A fork that never ran a program of its own; shown in parentheses.
    pub forked: bool,
}

impl Command<'_> {
    /// The name as people see it, `(bash)` for a fork of bash; bytes, because file names are.
    #[must_use]
    pub fn label(&self) -> Vec<u8> {
        if self.forked {
            [b"(", self.name, b")"].concat()
        } else {
            self.name.to_vec()
        }
    }
}

/// One successful `execve`.
#[derive(Clone, Debug)]
pub struct Exec<'a> {
    /// It was entered.
    pub enter: Known,
    /// It returned to user space.
    pub returned: Known,
    /// The dynamic loader was done; equals `returned` for a static program.
    pub loaded: Known,
    /// Whether the program has a dynamic loader.
    pub has_loader: Option<bool>,
    /// Whether the recording keeps only the beginning of the arguments.
    pub argv_cut: bool,
    /// Files that the dynamic loader opened, its cache apart.
    pub load_opens: Option<u32>,
    /// Looks of the loader for a file that failed; glibc's for `/etc/ld.so.preload` is one.
    pub load_failed_opens: Option<u32>,
    /// Whether the loader could open `/etc/ld.so.cache`; `None` also when it did not try.
    pub load_cache: Option<bool>,
    pub(super) texts: &'a Texts,
    pub(super) path: TextId,
    pub(super) argv: TextId,
    pub(super) interpreter: Known<TextId>,
    pub(super) cwd: Known<TextId>,
}

impl<'a> Exec<'a> {
    /// The file as given.
    #[must_use]
    pub fn path(&self) -> &'a [u8] {
        self.texts.get(self.path)
    }

    /// The interpreter of a `#!` script.
    #[must_use]
    pub fn interpreter(&self) -> Option<&'a [u8]> {
        self.interpreter.get().map(|id| self.texts.get(id))
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(&self) -> Option<&'a [u8]> {
        self.cwd.get().map(|id| self.texts.get(id))
    }

    /// Time in its dynamic loader.
    #[must_use]
    pub fn load(&self) -> Option<Nanos> {
        Some(self.loaded.get()?.since(self.returned.get()?))
    }

    /// Its arguments, each ended by NUL.
    #[must_use]
    pub fn argv(&self) -> &'a [u8] {
        self.texts.get(self.argv)
    }

    /// Its arguments one by one.
    pub fn arguments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let argv = self.argv();
        let bytes = argv.strip_suffix(b"\0").unwrap_or(argv);
        let none = argv.is_empty();
        bytes.split(|byte| *byte == 0).filter(move |_| !none)
    }
}

/// One failed `execve`.
#[derive(Clone, Copy, Debug)]
pub struct FailedExec<'a> {
    /// It was entered.
    pub enter: Nanos,
    /// It returned.
    pub returned: Nanos,
    /// The file as given.
    pub path: &'a [u8],
    /// Why it failed.
    pub errno: i32,
}

impl FailedExec<'_> {
    /// Time inside the call.
    #[must_use]
    pub fn cost(&self) -> Nanos {
        self.returned.since(self.enter)
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not yet, when the recording ended.
    Running,
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal {
        /// The signal.
        number: i32,
        /// Whether it left a core dump.
        core_dumped: bool,
    },
    /// It ended, but how was not seen.
    Unknown,
}

impl Outcome {
    /// Takes a status apart as wait(2) encodes it.
    #[must_use]
    pub fn of_wait_status(status: i32) -> Outcome {
        match status & 0x7f {
            0 => Outcome::Code((status >> 8) & 0xff),
            number => Outcome::Signal {
                number,
                core_dumped: status & 0x80 != 0,
            },
        }
    }
}

/// The part of a path behind its last slash.
#[must_use]
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/')
        .find(|part| !part.is_empty())
        .unwrap_or(path)
}
