//! The followed processes and threads. Turns records, in chronological order, into events. `programs` does this for execs, `ends` for exits.

use std::collections::HashMap;

use crate::perf::kernel::{Record, RecordKind};
use spawnscope_data::event::{Event, EventKind, Exited, LaunchId, Launched, Nanos, Pid, TaskId};

use super::cpu_time::CpuTime;
use super::image::Image;
use super::program_details::ProgramDetails;
use crate::ROOT;
use crate::untraced::UntracedProcesses;

#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) process: Pid,
    pub(super) launch: LaunchId,
    pub(super) task: TaskId,
    pub(super) cpu: CpuTime,
}

/// A process with at least one thread that has not ended.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) launch: LaunchId,
    /// Number of threads that have not ended.
    pub(super) threads: usize,
    pub(super) first_run: Option<Nanos>,
    /// The process's program, until the loader is done.
    pub(super) image: Option<Image>,
}

/// How the command ended: when its parent could reap it, and its wait status.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandEnd {
    pub(super) at: Nanos,
    pub(super) status: Option<i32>,
}

/// Counts that are reported to the user.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Number of programs that were executed.
    pub(super) programs: u64,
    /// Number of programs whose arguments could not be read in time.
    pub(super) without_arguments: u64,
    /// Number of records that the kernel dropped, according to its records of lost records.
    pub(super) lost: u64,
}

/// All followed processes, and the events that have not been taken yet.
#[derive(Debug)]
pub(super) struct FollowedProcesses {
    pub(super) threads: HashMap<Pid, Thread>,
    pub(super) processes: HashMap<Pid, Process>,
    /// Running processes that the kernel no longer reports on.
    pub(super) unfollowed: UntracedProcesses,
    pub(super) counts: Counts,
    pub(super) events: Vec<Event>,
    pub(super) notices: Vec<String>,
    /// The exit of the command, until the command's status is known.
    pub(super) pending_exit: Option<(Nanos, TaskId, Exited)>,
    pub(super) command_end: Option<CommandEnd>,
    next_id: u64,
}

impl FollowedProcesses {
    pub(super) fn new(command: Pid) -> FollowedProcesses {
        let mut followed = FollowedProcesses {
            threads: HashMap::new(),
            processes: HashMap::new(),
            unfollowed: UntracedProcesses::default(),
            counts: Counts::default(),
            events: Vec::new(),
            notices: Vec::new(),
            pending_exit: None,
            command_end: None,
            next_id: ROOT.0 + 1,
        };
        followed.add_process(command, ROOT, CpuTime::unseen());
        followed
    }

    /// Applies a record. `details`: what was read about the program, if the record is that of an exec.
    pub(super) fn apply(&mut self, record: Record, details: Option<ProgramDetails>) {
        let Record { at, pid, tid, kind } = record;
        if let RecordKind::Lost(records) = kind {
            self.counts.lost += records;
            return;
        }
        self.adopt(pid, tid);
        match kind {
            RecordKind::Forked { pid: child, tid: new } => self.handle_fork(at, (pid, tid), child, new),
            RecordKind::Executed { name } => self.handle_exec(at, pid, tid, Image::new(name, details)),
            RecordKind::Mapped { file, protection, name } => {
                self.handle_mapping(at, pid, tid, (file, protection, &name));
            }
            RecordKind::GotCpu => self.handle_switch_in(at, tid),
            RecordKind::LeftCpu { is_preempted } => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.cpu.left_cpu(at, is_preempted);
                }
            }
            RecordKind::Exited => self.handle_exit(at, pid, tid),
            RecordKind::Lost(_) => {}
        }
    }

    pub(super) fn report(&mut self, at: Nanos, launch: LaunchId, task: TaskId, kind: EventKind) {
        self.events.push(Event { at, launch, task, kind });
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn add_process(&mut self, pid: Pid, launch: LaunchId, cpu: CpuTime) {
        let process = Process { launch, threads: 0, first_run: None, image: None };
        self.processes.insert(pid, process);
        self.add_thread(pid, pid, launch, TaskId(launch.0), cpu);
    }

    fn add_thread(&mut self, tid: Pid, process: Pid, launch: LaunchId, task: TaskId, cpu: CpuTime) {
        let thread = Thread { process, launch, task, cpu };
        if self.threads.insert(tid, thread).is_none_or(|before| before.process != process)
            && let Some(process) = self.processes.get_mut(&process)
        {
            process.threads += 1;
        }
    }

    /// Adds the process of a record if the record of its creation was lost; the recording then shows it as an orphan. Also adds its first
    /// thread, which usually exists as long as the process.
    fn adopt(&mut self, pid: Pid, tid: Pid) {
        if !self.processes.contains_key(&pid) {
            let launch = LaunchId(self.new_id());
            self.add_process(pid, launch, CpuTime::lost());
            if tid != pid {
                let task = TaskId(self.new_id());
                self.add_thread(tid, pid, launch, task, CpuTime::lost());
            }
        }
    }

    fn handle_fork(&mut self, at: Nanos, creator: (Pid, Pid), child: Pid, tid: Pid) {
        let (Some(process), Some(thread)) = (self.processes.get(&creator.0), self.threads.get(&creator.1)) else {
            return;
        };
        let (parent, parent_task) = (process.launch, thread.task);
        let id = self.new_id();
        if child == creator.0 {
            self.add_thread(tid, child, parent, TaskId(id), CpuTime::created(at));
            let started = EventKind::ThreadStarted { tid, creator: parent_task };
            return self.report(at, parent, TaskId(id), started);
        }
        self.add_process(child, LaunchId(id), CpuTime::created(at));
        let launched = Launched { parent, parent_task, pid: child, pid_for_reaper: child, ..Launched::default() };
        self.report(at, LaunchId(id), TaskId(id), EventKind::Launched(launched));
    }

    fn handle_switch_in(&mut self, at: Nanos, tid: Pid) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let is_first = thread.cpu.is_new();
        let slice = thread.cpu.got_cpu(at);
        let (launch, task, pid) = (thread.launch, thread.task, thread.process);
        if is_first
            && tid == pid
            && let Some(process) = self.processes.get_mut(&pid)
        {
            process.first_run = Some(at);
        }
        if let Some(slice) = slice {
            self.report(at, launch, task, EventKind::Slice(slice));
        }
    }
}
