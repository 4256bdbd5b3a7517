//! The state of each thread of a log of the scheduler, from which the events come. The kernel does
//! not say whether a new thread is a process of its own. Until that is known, events are held back:
//! a process executes a program, or wakes its creator when it ends, and a thread does neither.

use std::collections::{BTreeMap, HashMap, VecDeque};

use spawnscope_data::event::{
    Event, EventKind, Executed, Exited, LaunchId, Launched, LeftCpu, Nanos, Pid, Slice, TaskId, Wake, Waker,
};

use super::line::{Line, Scheduling};

/// Maximum number of events that are held back. Then the oldest new thread is taken as a thread.
const MAX_HELD: usize = 200_000;
/// Maximum number of processes whose numbers are kept from before the log.
const MAX_KNOWN: usize = 1 << 22;

#[derive(Debug)]
struct Task {
    id: TaskId,
    /// Its process; that of a new thread is its own until it is known to be one.
    launch: LaunchId,
    creator: Option<LaunchId>,
    /// The event that reports its creation, while it is not known whether it is a process.
    undecided: Option<u64>,
    /// When it last got a CPU, if that is known.
    on: Option<Nanos>,
    /// When and why it left the CPU, if it has.
    off: Option<(Nanos, LeftCpu)>,
    wake: Option<Wake>,
    cpu: Option<Nanos>,
    first_run: Option<Nanos>,
    /// When it began to exit, and whether it was the last one of its process.
    exit: Option<(Nanos, bool)>,
}

/// All threads.
#[derive(Debug, Default)]
pub struct Tasks {
    tasks: HashMap<i32, Task>,
    /// The command's first thread, until it executes the command. Without, all threads are
    /// followed.
    awaited: Option<i32>,
    follows_all: bool,
    /// The processes of threads that existed before.
    processes: HashMap<i32, i32>,
    /// The events that are held back, and the number of those before.
    held: VecDeque<Event>,
    passed: u64,
    /// The events that can be taken.
    pub ready: Vec<Event>,
    /// The events that report threads of which it is not known whether they are processes.
    undecided: BTreeMap<u64, i32>,
    /// The processes of new threads, by the numbers that they would have as processes.
    owners: HashMap<LaunchId, LaunchId>,
    next_id: u64,
    pub root: Option<LaunchId>,
    /// When the root executed the command. The tool may have begun long before.
    pub root_began: Option<Nanos>,
    pub root_ended: Option<Nanos>,
    pub now: Nanos,
    pub has_switches: bool,
    /// Whether the log has the files that are executed. Otherwise, only new names of threads show
    /// execs.
    has_execs: bool,
    /// Whether the log says which exits are the last ones of processes.
    says_last: bool,
}

impl Tasks {
    /// Follows a command, or the whole machine.
    pub fn new(command: Option<i32>, has_execs: bool) -> Tasks {
        Tasks { awaited: command, follows_all: command.is_none(), has_execs, next_id: 1, ..Tasks::default() }
    }

    /// Takes what a line says of a thread that existed before.
    pub fn learn(&mut self, event: Option<Scheduling<'_>>) {
        if let Some(Scheduling::Fork { child, tgid: Some(tgid), .. }) = event
            && self.processes.len() < MAX_KNOWN
        {
            self.processes.insert(child, tgid);
        }
    }

    pub fn add(&mut self, line: &Line<'_>) {
        self.now = self.now.max(Nanos(line.at));
        let at = self.now;
        if self.follows_all {
            self.adopt(line.tid, line.name, line.tgid);
        }
        if let Some(tgid) = line.tgid {
            self.decide(line.tid, tgid != line.tid);
        }
        if let Scheduling::Switch { .. } = line.event {
            self.has_switches = true;
        }
        self.run(line.tid, at);
        match line.event {
            Scheduling::Fork { parent, child, tgid } => self.fork(parent, child, tgid, at),
            Scheduling::Exec { tid, old_tid, path } => self.exec(tid, old_tid, path, at),
            Scheduling::Exit { tid, is_last } => self.exit(tid, is_last, at),
            Scheduling::Switch { previous, reason, next, next_name } => {
                self.leave(previous, reason, at);
                if self.follows_all {
                    self.adopt(next, next_name, None);
                }
                self.run(next, at);
            }
            Scheduling::Waking { tid } => self.wake(tid, line, at),
            Scheduling::Named { tid, name, by_exec: true } if !self.has_execs => self.exec(tid, tid, name, at),
            Scheduling::Named { .. } | Scheduling::Other => {}
        }
        if self.held.len() > MAX_HELD
            && let Some((_, tid)) = self.undecided.first_key_value()
        {
            self.decide(*tid, true);
        }
        self.pass();
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn report(&mut self, at: Nanos, launch: LaunchId, task: TaskId, kind: EventKind) {
        self.held.push_back(Event { at, launch, task, kind });
    }

    fn insert(&mut self, tid: i32, id: TaskId, launch: LaunchId, creator: Option<LaunchId>) -> &mut Task {
        let (on, off, wake, cpu, first_run, exit) = (None, None, None, None, None, None);
        let task = Task { id, launch, creator, undecided: None, on, off, wake, cpu, first_run, exit };
        self.tasks.entry(tid).insert_entry(task).into_mut()
    }

    /// Follows a thread that existed before.
    fn adopt(&mut self, tid: i32, name: &[u8], tgid: Option<i32>) {
        if tid == 0 || self.tasks.contains_key(&tid) {
            return;
        }
        let tgid = tgid.or_else(|| self.processes.get(&tid).copied()).unwrap_or(tid);
        let leader = self.tasks.get(&tgid).map(|leader| (leader.launch, leader.id));
        let id = self.new_id();
        let (launch, kind) = match leader {
            Some((launch, creator)) => (launch, EventKind::ThreadStarted { tid: Pid(tid), creator }),
            None => (LaunchId(id), EventKind::Adopted { pid: Pid(tgid), name: name.to_vec() }),
        };
        self.report(self.now, launch, TaskId(id), kind);
        self.insert(tid, TaskId(id), launch, None);
    }

    fn fork(&mut self, parent: i32, child: i32, tgid: Option<i32>, at: Nanos) {
        let Some(Task { id: parent_task, launch: parent, .. }) = self.tasks.get(&parent) else { return };
        let (parent_task, parent) = (*parent_task, *parent);
        if let Some(known) = self.tasks.get(&child) {
            // perf and the kernel both report the creation.
            if known.exit.is_none() && known.first_run.is_none() && known.creator == Some(parent) {
                return;
            }
            self.end(child, at);
        }
        let id = self.new_id();
        let launched = Launched {
            parent,
            parent_task,
            pid: Pid(child),
            reaper: Some(parent),
            pid_for_reaper: Pid(child),
            ..Launched::default()
        };
        let index = self.passed + self.held.len() as u64;
        self.report(at, LaunchId(id), TaskId(id), EventKind::Launched(launched));
        let task = self.insert(child, TaskId(id), LaunchId(id), Some(parent));
        (task.undecided, task.off, task.cpu) = (Some(index), Some((at, LeftCpu::Created)), Some(Nanos(0)));
        self.undecided.insert(index, child);
        if let Some(tgid) = tgid {
            self.decide(child, tgid != child);
        }
    }

    /// Decides whether a new thread is one of its creator's process.
    fn decide(&mut self, tid: i32, is_thread: bool) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let Some(index) = task.undecided.take() else { return };
        self.undecided.remove(&index);
        if let (true, Some(creator)) = (is_thread, task.creator) {
            let launch = task.launch;
            self.owners.insert(launch, self.owner(creator));
        }
    }

    fn exec(&mut self, tid: i32, old_tid: i32, path: &[u8], at: Nanos) {
        if self.awaited == Some(tid) {
            self.awaited = None;
            let id = self.new_id();
            (self.root, self.root_began) = (Some(LaunchId(id)), Some(at));
            self.report(at, LaunchId(id), TaskId(id), EventKind::Released { pid: Pid(tid) });
            let task = self.insert(tid, TaskId(id), LaunchId(id), None);
            (task.on, task.first_run, task.cpu) = (Some(at), Some(at), Some(Nanos(0)));
        } else if old_tid != tid && self.tasks.contains_key(&old_tid) {
            // The other threads have ended, and the calling one got the number of the first one.
            self.end(tid, at);
            self.decide(old_tid, true);
            if let Some(task) = self.tasks.remove(&old_tid) {
                self.tasks.insert(tid, task);
            }
        }
        self.decide(tid, false);
        let Some(task) = self.tasks.get(&tid) else { return };
        let (launch, id) = (task.launch, task.id);
        // Only the first argument is known, and it is assumed. The others are marked as cut.
        let argv = [path, b"\0"].concat();
        let (first_run, argv_bytes) = (task.first_run, argv.len() as u64 + 1);
        let executed = Executed { first_run, path: path.to_vec(), argv, argv_bytes, ..Executed::default() };
        self.report(at, launch, id, EventKind::Executed(executed));
    }

    fn exit(&mut self, tid: i32, is_last: Option<bool>, at: Nanos) {
        self.says_last |= is_last.is_some();
        if let Some(is_last) = is_last {
            self.decide(tid, !is_last);
        }
        let Some(task) = self.tasks.get_mut(&tid).filter(|task| task.exit.is_none()) else { return };
        let last_thread = is_last.unwrap_or(task.id.0 == task.launch.0);
        task.exit = Some((at, last_thread));
        let running = task.on.filter(|_| task.off.is_none()).map_or(Nanos(0), |on| at.since(on));
        let cpu = task.cpu.map(|cpu| Nanos(cpu.0 + running.0));
        let exited = Exited { first_run: task.first_run, last_thread, cpu, ..Exited::default() };
        let (launch, id) = (task.launch, task.id);
        self.report(at, launch, id, EventKind::Exited(exited));
    }

    /// Ends a thread: it left the CPU for the last time, or its number is used again.
    fn end(&mut self, tid: i32, at: Nanos) {
        // A process wakes its creator when it exits. This one did not.
        self.decide(tid, true);
        let Some(task) = self.tasks.remove(&tid) else { return };
        let Some((exit, is_last)) = task.exit else { return };
        let zombie = is_last.then_some(at.max(exit));
        if self.root == Some(self.owner(task.launch)) && is_last {
            self.root_ended = Some(at);
        }
        let gone = EventKind::Gone { zombie, auto_reaped: false, cpu: task.cpu };
        self.report(at, task.launch, task.id, gone);
    }

    /// A thread is on a CPU.
    fn run(&mut self, tid: i32, at: Nanos) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let Some((off, reason)) = task.off.take() else { return };
        let slice = Slice { on: task.on, wake: task.wake.take(), ..Slice::new(off, reason) };
        task.on = Some(at);
        task.first_run.get_or_insert(at);
        let (launch, id) = (task.launch, task.id);
        self.report(at, launch, id, EventKind::Slice(slice));
    }

    /// A thread left its CPU.
    fn leave(&mut self, tid: i32, reason: LeftCpu, at: Nanos) {
        let Some(task) = self.tasks.get_mut(&tid).filter(|task| task.off.is_none()) else { return };
        let ran = task.on.map(|on| at.since(on));
        task.cpu = task.cpu.zip(ran).map(|(cpu, ran)| Nanos(cpu.0 + ran.0));
        if reason == LeftCpu::Ended {
            let slice = Slice { on: task.on, ..Slice::new(at, reason) };
            let (launch, id) = (task.launch, task.id);
            self.report(at, launch, id, EventKind::Slice(slice));
            self.end(tid, at);
        } else {
            task.off = Some((at, reason));
        }
    }

    fn wake(&mut self, tid: i32, line: &Line<'_>, at: Nanos) {
        let waker = self.tasks.get(&line.tid);
        let by = match waker {
            _ if line.in_interrupt || line.tid == 0 => Waker::Interrupt,
            Some(waker) => Waker::Task(waker.id),
            None => Waker::Other { pid: Pid(line.tid), name: line.name.to_vec() },
        };
        let creator = waker.filter(|waker| waker.exit.is_some()).and_then(|waker| waker.creator);
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        if matches!(task.off, Some((_, reason)) if !matches!(reason, LeftCpu::Created | LeftCpu::Preempted)) {
            task.wake.get_or_insert(Wake { at, by, is_certain: true });
        }
        let woken = task.launch;
        if creator.is_some_and(|creator| self.owner(creator) == self.owner(woken)) {
            self.decide(line.tid, false);
        }
    }

    /// Returns the process of a thread, as far as it is known.
    fn owner(&self, mut launch: LaunchId) -> LaunchId {
        while let Some(owner) = self.owners.get(&launch) {
            launch = *owner;
        }
        launch
    }

    /// Passes on the events before the first one that is held back.
    fn pass(&mut self) {
        let until = self.undecided.first_key_value().map_or(u64::MAX, |(index, _)| *index);
        while self.passed < until
            && let Some(mut event) = self.held.pop_front()
        {
            self.passed += 1;
            let own = event.launch;
            event.launch = self.owner(own);
            let is_thread = event.launch != own;
            match &mut event.kind {
                EventKind::Launched(launched) if is_thread => {
                    event.kind = EventKind::ThreadStarted { tid: launched.pid, creator: launched.parent_task };
                }
                EventKind::Launched(launched) => {
                    launched.parent = self.owner(launched.parent);
                    launched.reaper = Some(launched.parent);
                }
                EventKind::Exited(exited) if is_thread && !self.says_last => exited.last_thread = false,
                EventKind::Gone { zombie, .. } if is_thread && !self.says_last => *zombie = None,
                _ => {}
            }
            self.ready.push(event);
        }
    }

    /// Reports what is known at the end of the log.
    pub fn finish(&mut self) {
        let mut tids: Vec<i32> = self.tasks.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            self.decide(tid, true);
            let Some(task) = self.tasks.get(&tid) else { continue };
            // The log of a command does not contain how its threads left the CPU at last.
            if let Some((exit, _)) = task.exit {
                self.end(tid, exit);
                continue;
            }
            let (launch, id) = (task.launch, task.id);
            let (off, reason) = task.off.unwrap_or((self.now, LeftCpu::Preempted));
            let slice = Slice { on: task.on, wake: task.wake.clone(), ..Slice::new(off, reason) };
            self.report(self.now, launch, id, EventKind::LastSeen(slice));
        }
        self.pass();
    }
}
