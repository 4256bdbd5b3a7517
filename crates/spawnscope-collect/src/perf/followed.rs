//! The followed processes and threads. Turns records, in the order of time, into events.

use std::collections::HashMap;

use spawnscope_data::event::{
    Event, EventKind, Executed, Exited, LaunchId, Launched, Loaded, Loader, Nanos, Pid, TaskId,
};
use spawnscope_system::clock;
use spawnscope_system::perf_events::{File, Kind, Record};

use super::image::{Image, Step};
use super::on_cpu::OnCpu;
use super::seen::Seen;
use crate::ROOT;
use crate::untraced::Untraced;

/// A thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    process: Pid,
    launch: LaunchId,
    task: TaskId,
    cpu: OnCpu,
}

/// A process with at least one thread that has not ended.
#[derive(Debug)]
struct Process {
    launch: LaunchId,
    threads: usize,
    first_run: Option<Nanos>,
    image: Option<Image>,
}

/// How the command ended: when its parent could reap it, and its wait status.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandEnd {
    pub(super) at: Nanos,
    pub(super) status: Option<i32>,
}

/// Numbers for the user.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Programs that were executed.
    pub(super) programs: u64,
    /// Those whose arguments could not be read in time.
    pub(super) without_arguments: u64,
    /// Records that the kernel dropped, as other records say.
    pub(super) lost: u64,
}

/// All followed processes, and the events that have not been taken yet.
#[derive(Debug)]
pub(super) struct Followed {
    threads: HashMap<Pid, Thread>,
    processes: HashMap<Pid, Process>,
    /// Processes that the kernel does not report on any more, and that still run.
    pub(super) unfollowed: Untraced,
    pub(super) counts: Counts,
    pub(super) events: Vec<Event>,
    pub(super) notices: Vec<String>,
    /// The exit of the command, until its status is known.
    held_exit: Option<(Nanos, TaskId, Exited)>,
    command_end: Option<CommandEnd>,
    next_id: u64,
}

impl Followed {
    pub(super) fn new(command: Pid) -> Followed {
        let mut followed = Followed {
            threads: HashMap::new(),
            processes: HashMap::new(),
            unfollowed: Untraced::default(),
            counts: Counts::default(),
            events: Vec::new(),
            notices: Vec::new(),
            held_exit: None,
            command_end: None,
            next_id: ROOT.0 + 1,
        };
        followed.add_process(command, ROOT, OnCpu::unseen());
        followed
    }

    /// Applies a record. `seen` is what /proc said about the program of an exec.
    pub(super) fn apply(&mut self, record: Record, seen: Option<Seen>) {
        let Record { at, pid, tid, kind } = record;
        if let Kind::Lost(records) = kind {
            self.counts.lost += records;
            return;
        }
        self.adopt(pid, tid);
        match kind {
            Kind::Forked { pid: child, tid: new } => self.forked(at, (pid, tid), child, new),
            Kind::Executed { name } => self.executed(at, pid, tid, Image::new(name, seen)),
            Kind::Mapped { file, protection, name } => self.mapped(at, pid, tid, (file, protection, &name)),
            Kind::Got => self.got(at, tid),
            Kind::Left { is_preempted } => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.cpu.left(at, is_preempted);
                }
            }
            Kind::Exited => self.exited(at, pid, tid),
            Kind::Lost(_) => {}
        }
    }

    /// Notes how the command ended.
    pub(super) fn command_ended(&mut self, end: CommandEnd) {
        self.command_end = Some(end);
        self.report_end_of_command();
    }

    /// Reports what is left when the recording ends.
    pub(super) fn finish(&mut self, end: Nanos) {
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        for pid in pids {
            self.report_image(end, pid, Loader::Unknown);
        }
        for thread in std::mem::take(&mut self.threads).into_values() {
            if let Some(slice) = thread.cpu.last_seen(end) {
                self.report(end, thread.launch, thread.task, EventKind::LastSeen(slice));
            }
        }
        self.processes.clear();
        // The command ended, but not before the recorder looked for the last time.
        if let Some((at, task, exited)) = self.held_exit.take() {
            self.report_exit(at, ROOT, task, exited, None);
        }
    }

    /// Reports the ends of processes that the kernel does not report on.
    pub(super) fn report_unfollowed(&mut self) {
        for (launch, at) in self.unfollowed.ended() {
            self.report_end_of_unfollowed(launch, at);
        }
    }

    fn report_end_of_unfollowed(&mut self, launch: LaunchId, at: Nanos) {
        let gone = EventKind::Gone {
            zombie: Some(at),
            auto_reaped: false,
            cpu: None,
        };
        self.report(at, launch, TaskId(launch.0), gone);
    }

    fn report(&mut self, at: Nanos, launch: LaunchId, task: TaskId, kind: EventKind) {
        self.events.push(Event { at, launch, task, kind });
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn add_process(&mut self, pid: Pid, launch: LaunchId, cpu: OnCpu) {
        let process = Process {
            launch,
            threads: 0,
            first_run: None,
            image: None,
        };
        self.processes.insert(pid, process);
        self.add_thread(pid, pid, launch, TaskId(launch.0), cpu);
    }

    fn add_thread(&mut self, tid: Pid, process: Pid, launch: LaunchId, task: TaskId, cpu: OnCpu) {
        let thread = Thread {
            process,
            launch,
            task,
            cpu,
        };
        if self
            .threads
            .insert(tid, thread)
            .is_none_or(|before| before.process != process)
            && let Some(process) = self.processes.get_mut(&process)
        {
            process.threads += 1;
        }
    }

    /// Adds the process of a record if its creation was lost. The recording has it as an orphan.
    fn adopt(&mut self, pid: Pid, tid: Pid) {
        if !self.processes.contains_key(&pid) {
            let launch = LaunchId(self.new_id());
            self.add_process(pid, launch, OnCpu::lost());
            if tid != pid {
                let task = TaskId(self.new_id());
                self.threads.remove(&pid);
                self.add_thread(tid, pid, launch, task, OnCpu::lost());
            }
        }
    }

    fn forked(&mut self, at: Nanos, creator: (Pid, Pid), child: Pid, tid: Pid) {
        let (Some(process), Some(thread)) = (self.processes.get(&creator.0), self.threads.get(&creator.1)) else {
            return;
        };
        let (parent, parent_task) = (process.launch, thread.task);
        let id = self.new_id();
        if child == creator.0 {
            self.add_thread(tid, child, parent, TaskId(id), OnCpu::created(at));
            let started = EventKind::ThreadStarted {
                tid,
                creator: parent_task,
            };
            return self.report(at, parent, TaskId(id), started);
        }
        self.add_process(child, LaunchId(id), OnCpu::created(at));
        let launched = Launched {
            parent,
            parent_task,
            pid: child,
            reaper: None,
            pid_for_reaper: child,
            mechanism: None,
            entered: None,
            prepared: None,
            parent_tidied: None,
            parent_faults: None,
            parent_memory: None,
        };
        self.report(at, LaunchId(id), TaskId(id), EventKind::Launched(launched));
    }

    fn got(&mut self, at: Nanos, tid: Pid) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let is_first = thread.cpu.is_new();
        let slice = thread.cpu.got(at);
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

    /// A process has executed a program. If it had several threads, only the one that executed is left, as the first one.
    fn executed(&mut self, at: Nanos, pid: Pid, tid: Pid, image: Image) {
        self.report_image(at, pid, Loader::Unknown);
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        process.threads = 1;
        process.image = Some(image);
        let launch = process.launch;
        let others: Vec<(Pid, Thread)> = self
            .threads
            .extract_if(|other, thread| thread.process == pid && *other != tid)
            .collect();
        for (_, other) in &others {
            let gone = EventKind::Gone {
                zombie: None,
                auto_reaped: false,
                cpu: None,
            };
            self.report(at, launch, other.task, gone);
        }
        // The kernel gave the thread that executed the id of the process before it wrote the record.
        if !self.threads.contains_key(&pid) {
            let cpu = others.first().map_or_else(OnCpu::lost, |(_, other)| other.cpu);
            let task = TaskId(launch.0);
            let process = pid;
            self.threads.insert(
                pid,
                Thread {
                    process,
                    launch,
                    task,
                    cpu,
                },
            );
        }
    }

    fn mapped(&mut self, at: Nanos, pid: Pid, tid: Pid, (file, protection, name): (File, u32, &[u8])) {
        let Some(image) = self.processes.get_mut(&pid).and_then(|process| process.image.as_mut()) else {
            return;
        };
        let cpu = self.threads.get(&tid).and_then(|thread| thread.cpu.used_until(at));
        match image.mapped(file, protection, name) {
            Step::Nothing => {}
            Step::Returns { has_loader } => {
                image.returned = Some((at, cpu));
                self.report_exec(at, pid);
                if !has_loader {
                    self.report_image(at, pid, Loader::None);
                }
            }
            Step::Loaded => {
                let loader = cpu.map_or(Loader::Unknown, |cpu| Loader::Done { at, cpu, search: None });
                self.report_image(at, pid, loader);
            }
        }
    }

    /// Reports the exec of a process, unless that was reported.
    fn report_exec(&mut self, at: Nanos, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let launch = process.launch;
        let Some(image) = process.image.as_mut().filter(|image| !image.is_reported) else {
            return;
        };
        image.is_reported = true;
        let path = image.path();
        let seen = image.seen.take();
        self.counts.programs += 1;
        self.counts.without_arguments += u64::from(seen.is_none());
        let (argv, argv_bytes, interpreter, cwd) = match seen {
            Some(seen) => (seen.argv, seen.argv_bytes, seen.interpreter, seen.cwd),
            // Cut before their first byte: every program has at least an empty argument.
            None => (Vec::new(), 1, None, None),
        };
        let executed = Executed {
            first_run: process.first_run,
            entered: None,
            cpu_at_entry: Nanos(0),
            path,
            interpreter,
            argv,
            argv_bytes,
            cwd,
            closing: None,
        };
        self.report(at, launch, TaskId(launch.0), EventKind::Executed(executed));
    }

    /// Reports what is known of the program of a process, and forgets it.
    fn report_image(&mut self, at: Nanos, pid: Pid, loader: Loader) {
        self.report_exec(at, pid);
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let launch = process.launch;
        let returned = process.image.take().and_then(|image| image.returned);
        if let Some((exec_returned, Some(cpu_at_return))) = returned {
            let loaded = Loaded {
                exec_returned,
                cpu_at_return,
                loader,
            };
            self.report(at, launch, TaskId(launch.0), EventKind::Loaded(loaded));
        }
    }

    fn exited(&mut self, at: Nanos, pid: Pid, tid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if process.image.as_ref().is_some_and(Image::is_untouched) {
            return self.unfollow(at, pid);
        }
        let Some(mut thread) = self.threads.remove(&tid) else {
            return;
        };
        process.threads = process.threads.saturating_sub(1);
        let (last_thread, first_run) = (process.threads == 0, process.first_run);
        let cpu = thread.cpu.used_until(at);
        let slice = thread.cpu.ended(at);
        if last_thread {
            self.report_image(at, pid, Loader::Unknown);
            self.processes.remove(&pid);
        }
        self.report(at, thread.launch, thread.task, EventKind::Slice(slice));
        let exited = Exited {
            first_run,
            exit_group_entered: None,
            last_thread,
            wait_status: None,
            cpu,
            work_cpu: None,
        };
        if last_thread && thread.launch == ROOT {
            self.held_exit = Some((at, thread.task, exited));
            self.report_end_of_command();
        } else {
            self.report_exit(at, thread.launch, thread.task, exited, None);
        }
    }

    fn report_exit(&mut self, at: Nanos, launch: LaunchId, task: TaskId, exited: Exited, zombie: Option<Nanos>) {
        self.report(at, launch, task, EventKind::Exited(exited));
        let gone = EventKind::Gone {
            zombie,
            auto_reaped: false,
            cpu: None,
        };
        self.report(zombie.unwrap_or(at), launch, task, gone);
    }

    fn report_end_of_command(&mut self) {
        let Some(end) = self.command_end else { return };
        if let Some((at, task, exited)) = self.held_exit.take() {
            let exited = Exited {
                wait_status: end.status,
                ..exited
            };
            self.report_exit(at, ROOT, task, exited, Some(end.at));
        }
    }

    /// The kernel has removed the events of a process right after its exec, because the program has privilege.
    fn unfollow(&mut self, at: Nanos, pid: Pid) {
        let path = self
            .processes
            .get(&pid)
            .and_then(|process| Some(process.image.as_ref()?.path()));
        self.report_exec(at, pid);
        self.threads.retain(|_, thread| thread.process != pid);
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        if !self.unfollowed.add(pid, process.launch) {
            self.report_end_of_unfollowed(process.launch, clock::now());
        }
        let name = String::from_utf8_lossy(&path.unwrap_or_default()).into_owned();
        let notice = format!(
            "{name} runs with privilege or cannot be read, so perf events end at its exec: of it and of what it launches, only its start and \
             end are recorded (record with eBPF: run spawnscope with sudo)"
        );
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }
}
