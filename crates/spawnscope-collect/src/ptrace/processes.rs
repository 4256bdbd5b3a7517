//! The traced threads and processes.

use std::collections::HashSet;

use spawnscope_data::event::{Chain, LaunchId, Launched, Nanos, Pid, TaskId};
use spawnscope_system::ids::IdMap;
use spawnscope_system::ptrace::unblocking::BlockedSignals;
use spawnscope_system::ptrace::{CallStop, EntryDetour};

use super::filters;
use super::first_stop::FirstStop;
use super::idle::Pipes;
use super::lines::{Program, Shell};
use super::programs;
use super::setup::{ExecStops, Setup};
use crate::callers::Files;

#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) launch: LaunchId,
    pub(super) task: TaskId,
    pub(super) is_new: bool,
    pub(super) has_exited: bool,
}

impl Thread {
    pub(super) fn new(launch: LaunchId, task: TaskId) -> Thread {
        Thread { launch, task, is_new: true, has_exited: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// Number of threads that have not begun to exit.
    pub(super) thread_count: usize,
    pub(super) had_threads: bool,
    pub(super) is_native: bool,
    /// The process's creation, until it is reported.
    pub(super) created: Option<(Nanos, Launched)>,
    /// The process's first stop, until its second stop.
    pub(super) first_stop: Option<FirstStop>,
    /// The pipes behind its standard input, output and error when it executed its program.
    pub(super) pipes: Option<Pipes>,
    /// When the process was created or has executed its program, and its CPU time at that moment.
    pub(super) begun: Option<(Nanos, Nanos)>,
    /// When the process first ran, until this is reported.
    pub(super) first_run: Option<Nanos>,
    pub(super) setup: Option<Setup>,
    /// Whether the last stop was the entry of a system call of no interest, so that the next stop
    /// is the exit of that call.
    pub(super) is_in_call: bool,
    /// The first system call of a child that shares this process's memory, if such children are
    /// known to make no call until they unblock their signals that discards a pending signal.
    pub(super) child_keeps_signal: Option<libc::c_long>,
    /// The signals that the process blocks, while a signal of the tracer is delivered to it.
    pub(super) blocked_signals: Option<BlockedSignals>,
    /// The process that has created this one, until this one executes a program. `None` if both run
    /// in the same memory at the same time.
    pub(super) creator: Option<LaunchId>,
    /// Whether the process uses its creator's memory, while the creator waits for its exec.
    pub(super) shares_memory: bool,
    /// How children of the process stop before their exec.
    pub(super) execs: ExecStops,
    /// Whether the process has a seccomp filter that the recorder does not have, or may set one.
    pub(super) is_filtered: bool,
    /// Whether the process's program may execute another one, until it has begun.
    pub(super) executes: Executes,
    pub(super) loading: Option<Loading>,
    pub(super) program: Program,
    pub(super) shell: Shell,
}

/// Whether a program executes another one in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Executes {
    #[default]
    Unlikely,
    /// It has done so before.
    Possibly,
    /// It does so soon after it has begun, so it may stop at all its system calls until then.
    Soon,
}

impl Executes {
    /// Returns what to expect of a program. The first name is the path that was executed; the
    /// second is the same, or the interpreter of a script. `replaced`: the programs that have
    /// executed another one.
    pub(super) fn of(names: [&Vec<u8>; 2], replaced: &HashSet<Vec<u8>>) -> Executes {
        if names.iter().any(|name| programs::is_executor(name)) {
            Executes::Soon
        } else if replaced.contains(names[1]) {
            Executes::Possibly
        } else {
            Executes::Unlikely
        }
    }
}

/// A program whose dynamic loader was running when it was last examined.
#[derive(Debug)]
pub(super) struct Loading {
    /// The path of the program, or of the interpreter of a script.
    pub(super) program: Vec<u8>,
    pub(super) detour: EntryDetour,
    pub(super) returned: Nanos,
    pub(super) return_cpu: Nanos,
    /// The part of it that the stops have used.
    pub(super) cpu_of_stops: Nanos,
}

impl Process {
    pub(super) fn new(pid: Pid) -> Process {
        Process { pid, thread_count: 1, is_native: true, ..Process::default() }
    }

    /// Handles a stop of the process's first thread at a system call. Returns the call site of the
    /// process's launch, if it becomes known at this stop.
    pub(super) fn call_site_at(&mut self, stop: CallStop, files: &mut Files) -> Option<Chain> {
        let CallStop::Enters(number, arguments) = stop else {
            return None;
        };
        let number = libc::c_long::try_from(number).ok()?;
        self.shell.call_site_at_entry(self.pid, &self.program, number, arguments[0], files)
    }

    /// Call when the process has executed a file, with this entry point if it is known.
    pub(super) fn begin_image(&mut self, is_native: bool, entry_point: Option<u64>) {
        (self.is_native, self.is_in_call) = (is_native, false);
        self.program =
            entry_point.map_or(Program::Other, |entry_point| Program::Unexamined { entry_point, file: None });
        let may_be_new = self.is_filtered || self.creator.is_none();
        self.is_filtered = may_be_new && filters::has_own(self.pid);
        if self.is_filtered {
            // Lines of some shells need instructions of ours.
            self.program = Program::Other;
        }
        self.shell = Shell::default();
    }

    pub(super) fn has_traced_calls(&self) -> bool {
        self.setup.as_ref().is_some_and(Setup::has_traced_calls) || self.shell.has_traced_calls()
    }
}

/// All traced threads by thread id, and all traced processes by launch. Both are removed when they
/// end, so the tables stay small.
#[derive(Debug, Default)]
pub(super) struct Processes {
    threads: IdMap<Pid, Thread>,
    processes: IdMap<LaunchId, Process>,
}

impl Processes {
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    pub(super) fn add_process(&mut self, launch: LaunchId, process: Process) {
        self.threads.insert(process.pid, Thread::new(launch, TaskId(launch.0)));
        self.processes.insert(launch, process);
    }

    pub(super) fn add_thread(&mut self, tid: Pid, launch: LaunchId, task: TaskId) {
        self.threads.insert(tid, Thread::new(launch, task));
        if let Some(process) = self.processes.get_mut(&launch) {
            process.thread_count += 1;
            process.had_threads = true;
        }
    }

    pub(super) fn thread(&self, tid: Pid) -> Option<Thread> {
        self.threads.get(&tid).copied()
    }

    pub(super) fn thread_mut(&mut self, tid: Pid) -> Option<&mut Thread> {
        self.threads.get_mut(&tid)
    }

    pub(super) fn process(&mut self, launch: LaunchId) -> Option<&mut Process> {
        self.processes.get_mut(&launch)
    }

    /// Returns the number of processes that use the memory of their creator, up to their exec. Only
    /// these may be about to execute its instructions for an exec: its other threads do that at
    /// most once, to replace it.
    pub(super) fn count_in_memory_of(&self, creator: LaunchId) -> usize {
        self.processes.values().filter(|process| process.shares_memory && process.creator == Some(creator)).count()
    }

    pub(super) fn launches(&self) -> Vec<LaunchId> {
        self.processes.keys().copied().collect()
    }

    pub(super) fn process_of(&mut self, tid: Pid) -> Option<&mut Process> {
        let launch = self.threads.get(&tid)?.launch;
        self.processes.get_mut(&launch)
    }

    /// Removes a thread, and its process if it is the first thread, which ends last.
    pub(super) fn remove(&mut self, tid: Pid) -> Option<(Thread, Option<Process>)> {
        let thread = self.threads.remove(&tid)?;
        let is_last = self.processes.get(&thread.launch).is_some_and(|process| process.pid == tid);
        let process = is_last.then(|| self.processes.remove(&thread.launch)).flatten();
        Some((thread, process))
    }

    /// Removes all threads of a process except the first, as an exec does. Returns the removed
    /// threads.
    pub(super) fn remove_other_threads(&mut self, launch: LaunchId) -> Vec<Thread> {
        let Some(process) = self.processes.get_mut(&launch) else {
            return Vec::new();
        };
        process.thread_count = 1;
        if !process.had_threads {
            return Vec::new();
        }
        let first = process.pid;
        let others = self.threads.extract_if(|tid, thread| thread.launch == launch && *tid != first);
        others.map(|(_, thread)| thread).collect()
    }
}
