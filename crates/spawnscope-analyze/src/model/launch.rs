//! One launch, joined from the rows of several tables. `tree` relates launches, `phases` divides
//! their time.

use std::cell::RefCell;
use std::ops::Deref;
use std::slice;
use std::sync::Arc;

pub use crate::model::known::MaybeKnown;
use crate::model::names::NamedExec;
use crate::model::phases::{Phase, PhaseTimes};
use spawnscope_data::event::{LaunchId, Mechanism, Nanos, Pid, TaskId};
use spawnscope_data::rows::{LaunchRow, Origin, StackId, TextId, Texts};

#[derive(Clone, Debug)]
pub struct Launch<'a> {
    pub id: LaunchId,
    /// The process that requested it, even if that process is not recorded.
    pub parent: MaybeKnown<LaunchId>,
    pub parent_task: MaybeKnown<TaskId>,
    pub depth: u32,
    /// Pid in the pid namespace of the recorder.
    pub pid: MaybeKnown<Pid>,
    pub origin: Origin,
    pub mechanism: Option<Mechanism>,
    /// The program it started as, which is the program that its parent ran at that time.
    pub birth_command: Arc<Command<'a>>,
    /// The program of its last successful `execve`, otherwise `birth_command`.
    pub command: Arc<Command<'a>>,
    /// The parent's resident set when it was created.
    pub parent_rss_bytes: MaybeKnown<u64>,
    pub instants: Instants,
    pub execs: Execs<'a>,
    /// Wall time by phase, without what recording has measurably added to each of them.
    pub phases: PhaseTimes,
    pub cpu_phases: PhaseTimes,
    /// CPU time of the run of its last program. Known even if that of an earlier program is not.
    pub last_run_cpu: MaybeKnown,
    /// CPU time of all its threads that have ended.
    pub cpu: MaybeKnown,
    /// CPU time between the loading of its last program and the first time that this program opened
    /// a file from its arguments or read its input.
    pub start_up: MaybeKnown,
    /// What the collector counted while it was created, set up and ended.
    pub counts: Counts,
    pub script_stack: Option<StackId>,
    pub native_stack: Option<StackId>,
    pub outcome: Outcome,
}

impl<'a> Launch<'a> {
    /// Whether it is a launch. A process that existed before the recording is not.
    pub fn is_launch(&self) -> bool {
        self.origin != Origin::Existed
    }

    /// Whether it started as a copy of its parent and executed a program later.
    pub(crate) fn may_work_before_exec(&self) -> bool {
        matches!(self.origin, Origin::Launched | Origin::Orphan) && !self.execs.is_empty()
    }

    /// Whether it is a fork that never executed a program, such as a subshell or a worker.
    pub fn is_fork_without_exec(&self) -> bool {
        self.origin == Origin::Launched && self.execs.is_empty()
    }

    pub fn is_unfinished(&self) -> bool {
        self.outcome == Outcome::Running
    }

    /// Returns its earliest known instant. The command starts when the recorder releases it.
    pub fn start(&self) -> Option<Nanos> {
        let at = &self.instants;
        if matches!(self.origin, Origin::Command | Origin::Existed) {
            return at.created.get();
        }
        self.birth().or(at.first_run.get()).or_else(|| self.execs.first().and_then(Exec::entered))
    }

    /// Returns when its parent began the fork call or, if that is unknown, when the process
    /// existed.
    pub(crate) fn birth(&self) -> Option<Nanos> {
        self.instants.create.get().or(self.instants.created.get())
    }

    /// Returns the index of the last exec that it had entered at an instant, or 0 if there is none.
    pub fn exec_at(&self, at: Nanos) -> usize {
        self.execs_until(at).len().saturating_sub(1)
    }

    /// Returns the execs that it had entered at an instant. An exec at an unknown time counts as
    /// entered.
    pub(crate) fn execs_until(&self, at: Nanos) -> &[Exec<'a>] {
        // Binary search, since a program may exec as often as it forks.
        let entered = self.execs.partition_point(|exec| exec.entered().is_none_or(|entered| entered <= at));
        &self.execs[..entered]
    }

    /// Whether it existed at some instant between `from` and `to`, as far as is known.
    pub(crate) fn existed_between(&self, from: Nanos, to: Nanos) -> bool {
        self.start().is_none_or(|start| start < to) && self.end().is_none_or(|end| end > from)
    }

    /// Returns its latest known instant. `None` while it runs. The reaping of the command by the
    /// recorder does not count.
    pub fn end(&self) -> Option<Nanos> {
        let reaped = self.instants.reaped.get().filter(|_| self.origin != Origin::Command);
        reaped.or(self.instants.zombie.get()).or(self.instants.exit.get())
    }

    /// Returns the start and the end: from the parent's call to the reaping, or to the end of the
    /// recording for an unfinished launch.
    pub fn lifetime(&self, recording_end: Nanos) -> Option<(Nanos, Nanos)> {
        let start = self.start()?;
        let end = if self.is_unfinished() { recording_end } else { self.end()? };
        Some((start, end.max(start)))
    }

    /// Returns the wall time of the lifetime.
    pub fn total(&self, recording_end: Nanos) -> Option<Nanos> {
        self.lifetime(recording_end).map(|(start, end)| end.since(start))
    }

    /// Returns the launch cost without the waits for a CPU and for the parent, which do not depend
    /// on the program.
    pub fn launch_cost(&self) -> Option<Nanos> {
        self.phases.sum(Phase::COST)
    }

    /// Returns the launch tax: all phases except `run`. `None` when no such phase is known.
    pub fn tax(&self) -> Option<Nanos> {
        self.phases.sum(Phase::TAX)
    }

    /// Returns the more useful call chain: lines of a script rather than machine code of its
    /// interpreter.
    pub fn best_stack(&self) -> Option<StackId> {
        self.script_stack.or(self.native_stack)
    }

    pub(crate) fn copies_page_tables(&self) -> bool {
        matches!(self.mechanism, Some(Mechanism::Fork | Mechanism::Clone | Mechanism::Clone3))
    }
}

/// Columns of a launch's row that no computation changes. A new column of this kind is added here
/// only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Number of `close` and `close_range` calls before its first exec.
    pub setup_closes: Option<u32>,
    /// Time in these calls, and between two of them that directly follow each other.
    pub setup_close_span: MaybeKnown,
    /// Page faults of its parent since the parent's previous launch or reaping.
    pub parent_faults: MaybeKnown<u32>,
    /// Page faults of its first thread between its last launch or reaping and its exit.
    pub exit_faults: MaybeKnown<u32>,
    pub exit_rss_bytes: MaybeKnown<u64>,
}

impl Counts {
    pub(crate) fn of(row: &LaunchRow) -> Counts {
        Counts {
            setup_closes: row.setup_closes,
            setup_close_span: row.setup_close_span.into(),
            parent_faults: row.parent_faults.into(),
            exit_faults: row.exit_faults.into(),
            exit_rss_bytes: row.exit_rss_bytes.into(),
        }
    }
}

/// The instants that bound a launch's phases, without those of its execs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instants {
    /// The parent started the system calls that precede the launch.
    pub prepare: MaybeKnown,
    /// The parent completed the system calls that followed its previous reaping.
    pub parent_tidied: MaybeKnown,
    pub create: MaybeKnown,
    /// The process existed (the fork call had created it).
    pub created: MaybeKnown,
    /// It was first on a CPU.
    pub first_run: MaybeKnown,
    /// For a process that launched others before its first exec: it finished with them. It had
    /// reaped the last of them, or created it if it did not reap it.
    pub worked_until: MaybeKnown,
    /// Whether the collector stopped the process before its first instruction, so that the time
    /// until its first run is not only a wait for a CPU.
    pub was_stopped_at_birth: bool,
    pub exit: MaybeKnown,
    /// It became a zombie, which its parent can reap.
    pub zombie: MaybeKnown,
    /// Its parent's wait returned.
    pub reaped: MaybeKnown,
}

/// The name that launches are counted under (`names`), and whether the launch is only a fork of
/// that program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Command<'a> {
    pub name: &'a [u8],
    /// Whether it is a fork without an exec, shown in parentheses.
    pub forked: bool,
}

impl Command<'_> {
    /// Returns the display name, `(bash)` for a fork of bash. Bytes, since file names are bytes.
    pub fn label(&self) -> Vec<u8> {
        if self.forked { [b"(", self.name, b")"].concat() } else { self.name.to_vec() }
    }
}

/// The execs of a launch. Most launches have one, which needs no allocation of its own.
#[derive(Clone, Debug)]
pub enum Execs<'a> {
    One(Exec<'a>),
    Others(Box<[Exec<'a>]>),
}

impl<'a> Deref for Execs<'a> {
    type Target = [Exec<'a>];

    fn deref(&self) -> &[Exec<'a>] {
        match self {
            Execs::One(exec) => slice::from_ref(exec),
            Execs::Others(execs) => execs,
        }
    }
}

impl<'e, 'a> IntoIterator for &'e Execs<'a> {
    type Item = &'e Exec<'a>;
    type IntoIter = slice::Iter<'e, Exec<'a>>;

    fn into_iter(self) -> slice::Iter<'e, Exec<'a>> {
        self.iter()
    }
}

#[derive(Clone, Debug)]
pub struct Exec<'a> {
    pub enter: MaybeKnown,
    /// When it returned to user space.
    pub returned: MaybeKnown,
    /// When the dynamic loader was done. Equals `returned` for a static program.
    pub load_end: MaybeKnown,
    pub has_loader: Option<bool>,
    /// Whether the recorded arguments are truncated.
    pub argv_cut: bool,
    /// Number of files that the dynamic loader opened, without its cache.
    pub load_opens: MaybeKnown<u32>,
    /// Number of files that the loader failed to open, including `/etc/ld.so.preload`, which glibc
    /// always tries.
    pub load_failed_opens: MaybeKnown<u32>,
    /// Whether the loader could open `/etc/ld.so.cache`. `None` if that is unknown or it did not
    /// try.
    pub load_cache: Option<bool>,
    pub(crate) texts: &'a Texts,
    pub(crate) path: TextId,
    pub(crate) argv: TextId,
    pub(crate) interpreter: MaybeKnown<TextId>,
    pub(crate) cwd: MaybeKnown<TextId>,
    pub(crate) variables: MaybeKnown<TextId>,
}

impl<'a> Exec<'a> {
    pub fn path(&self) -> &'a [u8] {
        self.texts.get(self.path)
    }

    /// Returns the name of the file, as a launch is named by it.
    pub fn file_name(&self) -> &'a [u8] {
        self.named().file_name()
    }

    /// Returns the ids of the texts that it consists of. Execs with equal ids have equal command
    /// lines.
    pub(crate) fn texts(&self) -> [Option<TextId>; 3] {
        [Some(self.path), Some(self.argv), self.interpreter.get()]
    }

    pub(crate) fn named(&self) -> NamedExec<'a> {
        NamedExec { path: self.path(), argv: self.argv(), is_script: self.interpreter().is_some() }
    }

    /// Returns when the call was entered or, if that is unknown, when it returned.
    pub(crate) fn entered(&self) -> Option<Nanos> {
        self.enter.get().or(self.returned.get())
    }

    /// Returns the name of the program that really runs: the interpreter of a `#!` script,
    /// otherwise the file itself.
    pub(crate) fn program_name(&self) -> &'a [u8] {
        base_name(self.interpreter().unwrap_or(self.path()))
    }

    pub fn interpreter(&self) -> Option<&'a [u8]> {
        self.interpreter.get().map(|id| self.texts.get(id))
    }

    pub fn cwd(&self) -> Option<&'a [u8]> {
        self.cwd.get().map(|id| self.texts.get(id))
    }

    /// Returns the value of an environment variable, if it is one of the few that are recorded.
    pub(crate) fn variable(&self, name: &[u8]) -> Option<&'a [u8]> {
        let mut variables = self.texts.get(self.variables.get()?).split(|byte| *byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name)?.strip_prefix(b"="))
    }

    pub fn load(&self) -> Option<Nanos> {
        Some(self.load_end.get()?.since(self.returned.get()?))
    }

    pub fn argv(&self) -> &'a [u8] {
        self.texts.get(self.argv)
    }

    pub fn arguments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let argv = self.argv();
        let bytes = argv.strip_suffix(b"\0").unwrap_or(argv);
        let is_empty = argv.is_empty();
        bytes.split(|byte| *byte == 0).filter(move |_| !is_empty)
    }
}

/// Number of command lines that [`remembered`] keeps: those of a loop with several commands.
const REMEMBERED: usize = 64;

/// Returns a function with the same results as one that depends only on a command line and its
/// directory. It remembers the last ones, since most launches repeat the command line of another.
pub(crate) fn remembered<'a, T: Clone>(function: impl Fn(&Exec<'a>) -> T) -> impl Fn(&Exec<'a>) -> T {
    let known = RefCell::new(vec![None; REMEMBERED]);
    move |exec| {
        let key = (exec.texts(), exec.cwd.get());
        let known = &mut known.borrow_mut()[exec.argv.0 as usize % REMEMBERED];
        match known {
            Some((line, result)) if *line == key => T::clone(result),
            _ => known.insert((key, function(exec))).1.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FailedExec<'a> {
    pub enter: Nanos,
    pub returned: Nanos,
    pub path: &'a [u8],
    pub errno: i32,
}

impl FailedExec<'_> {
    pub fn cost(&self) -> Nanos {
        self.returned.since(self.enter)
    }
}

/// How a shell ends the process of a program that it does not find.
pub(crate) const NOT_FOUND: Outcome = Outcome::Code(127);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was still running when the recording ended.
    Running,
    Code(u8),
    Signal {
        number: u8,
        core_dumped: bool,
    },
    Unknown,
}

impl Outcome {
    /// Decodes a status in the encoding of wait(2).
    pub fn of_wait_status(status: i32) -> Outcome {
        match status & 0x7f {
            0 => Outcome::Code((status >> 8) as u8),
            number => Outcome::Signal { number: number as u8, core_dumped: status & 0x80 != 0 },
        }
    }
}

/// Returns the part of a path after its last slash.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// Returns the part of a path after a directory that it is below.
pub(crate) fn path_below<'p>(directory: Option<&[u8]>, path: &'p [u8]) -> Option<&'p [u8]> {
    path.strip_prefix(directory?)?.strip_prefix(b"/")
}

/// Whether `name` is `program` with an optional version: `python3` and `python3.11` are `python`,
/// `pythonista` is not.
pub(crate) fn is_version_of(name: &[u8], program: &[u8]) -> bool {
    // Most names differ in the first byte, which can be compared without a function call.
    if program.first().is_some_and(|first| name.first() != Some(first)) {
        return false;
    }
    let rest = name.strip_prefix(program);
    rest.is_some_and(|rest| rest.iter().all(|byte| byte.is_ascii_digit() || b".-".contains(byte)))
}
