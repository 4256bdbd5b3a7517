//! The processes and threads of a log. Each line belongs to a thread, and changes its state. This
//! file completes calls, and reports ends; `creations` has the creation of threads and processes,
//! and `effects` what other calls do.

use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use spawnscope_data::event::{
    Chain, Event, EventKind, Executed, Exited, LaunchId, Launched, LeftCpu, Loaded, Nanos, Pid, Slice, TaskId,
};

use super::call::Call;
use super::creations::{Held, ended_child};
use super::descriptors::{Descriptors, Pipe};
use super::effects::{is_creation, is_exec, is_wait, matters};
use super::line::{What, status_of_siginfo, what};
use super::loader::{Loading, begins_program};
use super::pace::{LastLine, Pace};
use super::work::Work;

/// Maximum number of threads that are being created at the same time, and of those whose lines are
/// held back.
const MAX_PENDING: usize = 256;
/// Number of children that a process may have before those that have ended are forgotten, because
/// it reaps none.
pub const MAX_CHILDREN: usize = 10_000;

/// A call that has not returned, or whose end is not known yet.
#[derive(Debug)]
pub struct Begun {
    pub start: Nanos,
    pub text: Vec<u8>,
}

#[derive(Debug)]
pub struct Task {
    pub id: TaskId,
    pub launch: LaunchId,
    /// The latest instant of this thread. Its events are in order, even if its stamps are not
    /// precise enough.
    pub now: Nanos,
    /// The end of its call before the last one.
    pub idle_since: Nanos,
    /// When its last call began or, if that is known, returned.
    pub called: Nanos,
    /// The call that it is in.
    pub unfinished: Option<Begun>,
    /// A call that has returned at an unknown time, no later than the thread's next line.
    pub returned: Option<Begun>,
    last_line: Option<LastLine>,
    /// What the tracer has added to its time since its last wait.
    pub traced_ns: u64,
}

/// A child that has not been reaped.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    pub tid: i32,
    pub task: TaskId,
    pub ended: Option<Nanos>,
}

#[derive(Debug, Default)]
pub struct Process {
    pub tid: i32,
    pub parent: Option<(LaunchId, i64)>,
    /// The report of its creation, until it is known when that was.
    pub launched: Option<Launched>,
    pub threads: u32,
    pub cwd: Option<Rc<[u8]>>,
    pub descriptors: Descriptors,
    /// Its children, by the numbers that its wait calls return.
    pub children: HashMap<i64, Child>,
    /// Its last exec, until it is known whether the program is a script.
    pub exec: Option<(Nanos, Executed)>,
    pub loading: Option<Loading>,
    /// What is known about the loader, until `exec` is reported.
    pub loaded: Option<Loaded>,
    /// When its program begins its work.
    pub work: Option<Work>,
    /// The call site of what it launches, if it is a shell that runs one line (`sh -c`).
    pub line: Option<Arc<Chain>>,
    /// The calls of close since the creation, and their time. `None` after the first exec.
    pub closes: Option<(u32, Option<Nanos>)>,
    /// When the whole process began to exit, and the status that it passed.
    pub exit: Option<(Nanos, i32)>,
    /// The threads that woke others, by the address of the futex.
    pub futexes: HashMap<i64, (TaskId, Nanos)>,
    pub has_launched: bool,
}

#[derive(Debug, Default)]
pub struct Tracker {
    pub events: Vec<Event>,
    pub tasks: HashMap<i32, Task>,
    pub processes: HashMap<LaunchId, Process>,
    pub held: HashMap<i32, Held>,
    /// The threads that are in a call that creates another one.
    pub creating: Vec<i32>,
    last_id: u64,
    /// The launch of the command, if the log has it.
    pub root: Option<LaunchId>,
    /// When the root ended.
    pub root_ended: Option<Nanos>,
    /// The pipes whose inodes the log contains (`-y`).
    pub pipes: HashMap<u64, Weak<Pipe>>,
    /// The number of these above which closed ones are forgotten.
    pub forget_pipes_above: usize,
    pub last_inode: u64,
    /// Whether the log has calls that create threads or processes.
    has_creations: bool,
    /// Whether a process was added whose creation the log leaves out.
    pub has_unseen_creations: bool,
    /// Whether the log has calls of loaders.
    pub has_loader_calls: bool,
    /// Whether the log has calls that read.
    pub has_reads: bool,
    /// The CPUs that a program of the log was allowed to use, as far as it asked.
    pub allowed_cpus: Option<u32>,
    /// Whether a time so far has a fraction of a second.
    pub is_precise: bool,
    pub command: Vec<Vec<u8>>,
    pub pace: Pace,
}

impl Tracker {
    /// Adds the rest of a line, after what stands in front. Returns whether it was understood.
    pub fn add(&mut self, tid: i32, at: Nanos, rest: &[u8]) -> bool {
        let Some(what) = what(rest) else {
            return false;
        };
        if what == What::Message {
            return true;
        }
        let name = match what {
            What::Call { name, .. } | What::Unfinished { name, .. } | What::Resumed { name, .. } => Some(name),
            _ => None,
        };
        self.has_creations |= name.is_some_and(is_creation);
        if !self.tasks.contains_key(&tid) {
            // Without calls that create processes (`-e trace=execve`), the signal of its end says
            // whose child a process was.
            let is_unseen = self.root.is_some() && !self.has_creations;
            let can_hold = is_unseen || !self.creating.is_empty();
            if self.held.contains_key(&tid) || can_hold && self.held.len() < MAX_PENDING {
                if !is_unseen || name.is_none_or(is_exec) {
                    self.hold(tid, at, rest, what);
                }
                return true;
            }
            // Otherwise it has ended before, or nothing else is known of it.
            let Some(name) = name else { return true };
            self.begin(tid, at, is_exec(name));
        }
        self.apply(tid, at, what)
    }

    pub fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub fn ids(&self, tid: i32) -> Option<(LaunchId, TaskId)> {
        self.tasks.get(&tid).map(|task| (task.launch, task.id))
    }

    pub fn report(&mut self, at: Nanos, launch: LaunchId, task: TaskId, kind: EventKind) {
        self.events.push(Event { at, launch, task, kind });
    }

    /// Begins a process whose creation is not in the log. The first one is the command if its first
    /// call executes a program.
    pub fn begin(&mut self, tid: i32, at: Nanos, executes: bool) {
        let launch = LaunchId(self.new_id());
        let pid = Pid(tid.max(0));
        let kind = if executes && launch.0 == 1 {
            self.root = Some(launch);
            EventKind::Released { pid }
        } else {
            EventKind::Adopted { pid, name: Vec::new() }
        };
        self.report(at, launch, TaskId(launch.0), kind);
        self.insert(tid, launch, TaskId(launch.0), at, true);
        self.processes.insert(launch, Process { tid, threads: 1, ..Process::default() });
    }

    pub fn insert(&mut self, tid: i32, launch: LaunchId, id: TaskId, now: Nanos, is_seen: bool) {
        let (idle_since, called) = (now, now);
        let last_line = is_seen.then(|| self.pace.line(now));
        let task =
            Task { id, launch, now, idle_since, called, unfinished: None, returned: None, last_line, traced_ns: 0 };
        self.tasks.insert(tid, task);
    }

    pub fn apply(&mut self, tid: i32, at: Nanos, what: What<'_>) -> bool {
        let others = (self.tasks.len() as u64).saturating_sub(1);
        let Some(task) = self.tasks.get_mut(&tid) else { return true };
        let is_first = task.last_line.is_none();
        task.traced_ns += self.pace.add_line(&mut task.last_line, at, &what, others);
        task.now = task.now.max(at);
        let (at, launch) = (task.now, task.launch);
        if let What::Call { name, .. } | What::Unfinished { name, .. } = what {
            (task.idle_since, task.called) = (task.called, at);
            self.has_reads |= name == b"read";
        }
        if is_first {
            self.report_launched(launch, at);
        }
        match what {
            What::Call { name, text } => {
                self.finish_returned(tid, at, begins_program(name));
                return self.whole(tid, at, name, text);
            }
            What::Unfinished { name, text } => {
                self.finish_returned(tid, at, begins_program(name));
                self.begin_call(tid, at, name, text);
            }
            What::Resumed { name, text } => return self.resume(tid, at, name, text),
            What::Exited(status) => {
                self.finish_returned(tid, at, false);
                self.end(tid, at, Some(status));
            }
            What::Superseded { by } => self.supersede(tid, at, by),
            What::Signal(text) => self.signal(tid, launch, at, text),
            What::Message => {}
        }
        true
    }

    /// Whether a call of this thread must be parsed.
    fn is_needed(&self, tid: i32, name: &[u8], text: &[u8]) -> bool {
        let process = self.tasks.get(&tid).and_then(|task| self.processes.get(&task.launch));
        process.is_some_and(|process| {
            let is_start_up = || process.work.as_ref().is_some_and(|work| work.needs(name, text));
            process.loading.is_some() || matters(process, name, text) || is_start_up()
        })
    }

    fn whole(&mut self, tid: i32, start: Nanos, name: &[u8], text: &[u8]) -> bool {
        if !self.is_needed(tid, name, text) {
            return true;
        }
        let Some(call) = Call::parse(text) else {
            return false;
        };
        self.begin_effect(tid, &call, start);
        let end = call.duration.map(|duration| Nanos(start.0.saturating_add(duration)));
        // If its own line does not say when it returned, the next line of the thread does.
        if end.is_none() && (is_exec(name) || is_wait(name)) {
            if let Some(task) = self.tasks.get_mut(&tid) {
                task.returned = Some(Begun { start, text: text.to_vec() });
            }
            return true;
        }
        self.complete(tid, &call, start, end);
        true
    }

    fn begin_call(&mut self, tid: i32, start: Nanos, name: &[u8], text: &[u8]) {
        if !self.is_needed(tid, name, text) {
            return;
        }
        if is_creation(name) && self.creating.len() < MAX_PENDING {
            self.creating.push(tid);
        }
        if let Some(call) = Call::parse(&[text, b") = ?"].concat()) {
            self.begin_effect(tid, &call, start);
        }
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.unfinished = Some(Begun { start, text: text.to_vec() });
        }
    }

    fn resume(&mut self, tid: i32, at: Nanos, name: &[u8], text: &[u8]) -> bool {
        let begun = self.tasks.get_mut(&tid).and_then(|task| task.unfinished.take());
        let Some(Begun { start, text: mut whole }) = begun.filter(|begun| begun.text.starts_with(name)) else {
            // The log begins within the call, or the call does not matter.
            return true;
        };
        whole.extend_from_slice(text);
        match Call::parse(&whole) {
            Some(call) => {
                // A whole second may be much earlier than the beginning of the call.
                let duration = call.duration.filter(|_| self.is_precise);
                let end = duration.map_or(at, |duration| Nanos(start.0.saturating_add(duration)).min(at));
                self.complete(tid, &call, start, Some(end));
                true
            }
            None => {
                self.give_up_creating(tid);
                false
            }
        }
    }

    /// Completes the call that returned before the next line of its thread. `is_near`: that line
    /// followed at once.
    fn finish_returned(&mut self, tid: i32, at: Nanos, is_near: bool) {
        let Some(Begun { start, text }) = self.tasks.get_mut(&tid).and_then(|task| task.returned.take()) else {
            return;
        };
        if let Some(call) = Call::parse(&text) {
            let end = (is_near || !is_exec(call.name)).then_some(at);
            self.complete(tid, &call, start, end);
        }
    }

    /// Handles a call that has returned, at `end` if that is known.
    fn complete(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Option<Nanos>) {
        if let (Some(task), Some(end)) = (self.tasks.get_mut(&tid), end) {
            task.now = task.now.max(end);
            task.called = task.called.max(end);
        }
        self.load(tid, call, start, end.unwrap_or(start));
        if is_creation(call.name) {
            self.create(tid, call, start, end);
        } else {
            self.take_effect(tid, call, start, end);
        }
    }

    /// Forgets a thread whose number is used again, so that its end is not in the log.
    pub fn remove_lost(&mut self, tid: i32, at: Nanos) {
        if let Some(task) = self.tasks.get(&tid) {
            let exit = self.processes.get(&task.launch).and_then(|process| process.exit);
            self.end(tid, at, exit.map(|(_, status)| status));
        }
    }

    /// Reports the creation of a process, unless it was reported before.
    pub fn report_launched(&mut self, launch: LaunchId, at: Nanos) {
        let Some(process) = self.processes.get_mut(&launch) else { return };
        let (launched, line) = (process.launched.take(), process.line.clone());
        if let Some(launched) = launched {
            self.report(at, launch, TaskId(launch.0), EventKind::Launched(launched));
            line.into_iter().for_each(|line| self.report(at, launch, TaskId(launch.0), EventKind::Called(line)));
        }
    }

    /// Reports the last exec of a process, unless it was reported before.
    pub fn report_exec(&mut self, launch: LaunchId) {
        let Some(process) = self.processes.get_mut(&launch) else { return };
        let Some((at, executed)) = process.exec.take() else { return };
        let (loading, loaded) = (process.loading.take(), process.loaded.take());
        let unfinished = || loading.filter(|loading| loading.returned.is_some()).map(|loading| loading.finish());
        let loaded = loaded.or_else(unfinished);
        self.report(at, launch, TaskId(launch.0), EventKind::Executed(executed));
        if let Some(loaded) = loaded {
            let end = loaded.load_end.unwrap_or(loaded.returned);
            self.report(end, launch, TaskId(launch.0), EventKind::Loaded(loaded));
        }
    }

    /// Ends a thread and, if it was the last one, its process. Without a status, its end is not in
    /// the log.
    pub fn end(&mut self, tid: i32, at: Nanos, status: Option<i32>) {
        self.give_up_creating(tid);
        let Some(task) = self.tasks.remove(&tid) else { return };
        let Some(process) = self.processes.get_mut(&task.launch) else { return };
        process.threads = process.threads.saturating_sub(1);
        let last_thread = process.threads == 0;
        let exit = process.exit.filter(|_| last_thread).map(|(at, _)| at);
        let work_cpu = process.work.as_ref().and_then(|work| work.start_up);
        if last_thread {
            self.report_launched(task.launch, at);
            self.report_exec(task.launch);
        }
        if status.is_some() {
            let exited =
                Exited { exit_group_entered: exit, last_thread, wait_status: status, work_cpu, ..Exited::default() };
            self.report(exit.unwrap_or(at), task.launch, task.id, EventKind::Exited(exited));
            if let Some(calls) = self.pace.calls(task.traced_ns) {
                let slice = Slice { calls: Some(calls), ..Slice::new(at, LeftCpu::Ended) };
                self.report(at, task.launch, task.id, EventKind::Slice(slice));
            }
            let gone = EventKind::Gone { zombie: last_thread.then_some(at), auto_reaped: false, cpu: None };
            self.report(at, task.launch, task.id, gone);
        }
        if last_thread {
            self.end_process(task.launch, at, task.id);
        }
    }

    fn end_process(&mut self, launch: LaunchId, at: Nanos, task: TaskId) {
        let Some(mut process) = self.processes.remove(&launch) else { return };
        process.descriptors.close_range(0, i64::MAX, (task, at));
        if self.root == Some(launch) {
            self.root_ended = Some(at);
        }
        if let Some((parent, pid)) = process.parent
            && let Some(child) = self.processes.get_mut(&parent).and_then(|parent| parent.children.get_mut(&pid))
        {
            child.ended = Some(at);
        }
    }

    /// Handles that a thread has executed a program in place of its process's first thread, whose
    /// number it now has.
    fn supersede(&mut self, tid: i32, at: Nanos, by: i32) {
        let Some(other) = self.tasks.get_mut(&by) else { return };
        let (unfinished, launch) = (other.unfinished.take(), other.launch);
        if self.tasks.get(&tid).is_none_or(|task| task.launch != launch) {
            return;
        }
        self.end_other_thread(by, at);
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.unfinished = unfinished;
        }
    }

    /// Ends a thread whose process goes on.
    fn end_other_thread(&mut self, tid: i32, at: Nanos) {
        let Some(task) = self.tasks.remove(&tid) else { return };
        if let Some(process) = self.processes.get_mut(&task.launch) {
            process.threads = process.threads.saturating_sub(1).max(1);
        }
        let gone = EventKind::Gone { zombie: None, auto_reaped: false, cpu: None };
        self.report(at, task.launch, task.id, gone);
    }

    /// Ends all threads of a process but one, which has executed a program.
    pub fn end_other_threads(&mut self, launch: LaunchId, except: i32, at: Nanos) {
        if self.processes.get(&launch).is_none_or(|process| process.threads <= 1) {
            return;
        }
        let others = self.tasks.iter().filter(|(tid, task)| task.launch == launch && **tid != except);
        let mut others: Vec<i32> = others.map(|(tid, _)| *tid).collect();
        others.sort_unstable();
        others.into_iter().for_each(|tid| self.end_other_thread(tid, at));
    }

    /// Handles a signal. SIGCHLD says how a child ended, which matters if strace did not follow the
    /// child.
    fn signal(&mut self, tid: i32, launch: LaunchId, at: Nanos, text: &[u8]) {
        let Some(pid) = ended_child(text) else { return };
        if !self.has_creations && self.held.contains_key(&pid) {
            return self.add_unseen_child(tid, pid, at);
        }
        let child = self.processes.get(&launch).and_then(|process| process.children.get(&i64::from(pid)).copied());
        if let Some(child) =
            child.filter(|child| self.tasks.get(&child.tid).is_some_and(|task| task.last_line.is_none()))
            && let Some(status) = status_of_siginfo(text)
        {
            self.end(child.tid, at, Some(status));
        }
    }

    /// Reports what is still held back, at the end of the log.
    pub fn finish(&mut self) {
        let mut held: Vec<i32> = self.held.keys().copied().collect();
        held.sort_unstable();
        held.into_iter().for_each(|tid| self.adopt_held(tid));
        let mut tids: Vec<i32> = self.tasks.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            let Some(now) = self.tasks.get(&tid).map(|task| task.now) else { continue };
            self.finish_returned(tid, now, false);
            let Some(launch) = self.tasks.get(&tid).map(|task| task.launch) else { continue };
            self.report_launched(launch, now);
            self.report_exec(launch);
            // Without its last line (`--quiet=exit`), the process ended soon after it began to
            // exit.
            if let Some((exit, status)) = self.processes.get(&launch).and_then(|process| process.exit) {
                self.end(tid, now.max(exit), Some(status));
            }
        }
    }
}
