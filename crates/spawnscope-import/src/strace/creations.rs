//! The creation of threads and processes. The first lines of a new thread may come before the call
//! that created it has returned, and only the number that the call returns says whose child it is.
//! Until then, its lines are held back.

use spawnscope_data::event::{Event, EventKind, LaunchId, Launched, Mechanism, Nanos, Pid, TaskId, Waker};

use super::call::Call;
use super::line::{What, status_of_siginfo, what};
use super::processes::{Child, MAX_CHILDREN, Process, Tracker};
use crate::text::{after, integer, number};

/// Maximum number of lines that are held back for one thread. If there are more, the thread's
/// creation is assumed to be lost.
const MAX_HELD_LINES: usize = 2_000;

/// The lines of a thread whose creator is not known yet.
#[derive(Debug)]
pub struct Held {
    pub lines: Vec<(Nanos, Vec<u8>)>,
    /// The earliest line of the thread, or of a child that ended meanwhile.
    pub began: Nanos,
    /// The threads that were creating others when it appeared.
    pub creators: Vec<i32>,
}

impl Tracker {
    /// Returns the only running thread. `None` if there are several.
    pub fn only_task(&self) -> Option<i32> {
        let has_ended = |held: &Held| {
            let last = held.lines.last().and_then(|(_, line)| what(line));
            matches!(last, Some(What::Exited(_)))
        };
        let mut tids = self.tasks.keys();
        tids.next().copied().filter(|_| tids.next().is_none() && self.held.values().all(has_ended))
    }

    pub fn hold(&mut self, tid: i32, at: Nanos, rest: &[u8], what: What<'_>) {
        let ended = if let What::Signal(text) = what { ended_child(text) } else { None };
        let began = ended.and_then(|child| self.held.get(&child)).map_or(at, |child| child.began.min(at));
        let creators = &self.creating;
        let new = || Held { lines: Vec::new(), began, creators: creators.clone() };
        let held = self.held.entry(tid).or_insert_with(new);
        held.began = held.began.min(began);
        held.lines.push((at, rest.to_vec()));
        if held.lines.len() > MAX_HELD_LINES {
            self.adopt_held(tid);
        }
    }

    /// Gives a thread its number, which the first lines of the log lacked.
    pub fn rename(&mut self, from: i32, to: i32) {
        let Some(task) = self.tasks.remove(&from) else { return };
        let launch = task.launch;
        if let Some(process) = self.processes.get_mut(&launch).filter(|process| process.tid == from) {
            process.tid = to;
            let kind = if self.root == Some(launch) {
                EventKind::Released { pid: Pid(to) }
            } else {
                EventKind::Adopted { pid: Pid(to), name: Vec::new() }
            };
            let created = self.events.first().map_or(task.now, |event| event.at).min(task.now);
            self.events.push(Event { at: created, launch, task: task.id, kind });
        }
        let creators = self.held.values_mut().flat_map(|held| &mut held.creators);
        creators.chain(&mut self.creating).filter(|tid| **tid == from).for_each(|tid| *tid = to);
        self.tasks.insert(to, task);
    }

    /// Handles the end of a call that creates a thread or process.
    pub fn create(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Option<Nanos>) {
        self.stop_creating(tid);
        let created = call.result.filter(|_| call.succeeded()).and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = created.filter(|pid| *pid > 0) {
            let child = self.tid_of_child(tid, pid, call.remark);
            let first = self.held.get(&child).and_then(|held| held.lines.first()).map(|(at, _)| *at);
            let at = end.into_iter().chain(first).min();
            if flags(call).any(|flag| flag == b"CLONE_THREAD") {
                self.add_thread(tid, child, at.unwrap_or(start));
            } else {
                self.add_process(tid, child, i64::from(pid), Some(call), start, at);
                self.wait_for_exec(tid, call, child, at, end);
            }
            let lines = self.held.remove(&child).map(|held| held.lines).unwrap_or_default();
            self.add_lines(child, lines);
        }
        self.adopt_without_creators(tid);
    }

    /// Reports that a process waited for the exec or the end of a child that uses its memory.
    fn wait_for_exec(&mut self, tid: i32, call: &Call<'_>, child: i32, created: Option<Nanos>, end: Option<Nanos>) {
        let is_shared = matches!(mechanism(call), Mechanism::Vfork | Mechanism::PosixSpawn);
        let (Some(created), Some(end)) = (created.filter(|_| is_shared), end) else { return };
        let ended = self
            .held
            .get(&child)
            .and_then(|held| held.lines.iter().find(|(_, line)| matches!(what(line), Some(What::Exited(_)))));
        let until = ended.map_or(end, |(at, _)| *at);
        let child = self.tasks.get(&child).map(|task| Waker::Task(task.id));
        self.wait_until(tid, call, created, end, None, child.map(|child| (child, until)));
    }

    fn stop_creating(&mut self, tid: i32) {
        self.creating.retain(|creator| *creator != tid);
    }

    /// Call when a thread does not return from a call that creates a thread.
    pub fn give_up_creating(&mut self, tid: i32) {
        if self.creating.contains(&tid) {
            self.stop_creating(tid);
            self.adopt_without_creators(tid);
        }
    }

    /// Returns the number that strace uses for a new thread. In a pid namespace, the creator gets
    /// another number.
    fn tid_of_child(&self, creator: i32, pid: i32, remark: &[u8]) -> i32 {
        if after(remark, b"in strace's PID NS").is_some()
            && let Some((tid, _)) = after(remark, b"/* ").and_then(number)
            && let Ok(tid) = i32::try_from(tid)
        {
            return tid;
        }
        if self.held.contains_key(&pid) {
            return pid;
        }
        let only = self.held.iter().filter(|(_, held)| held.creators == [creator]).map(|(tid, _)| *tid);
        only.min().unwrap_or(pid)
    }

    /// Adopts the held threads that only this thread could have created. It did not create them, so
    /// the log lacks their creation.
    fn adopt_without_creators(&mut self, creator: i32) {
        let mut orphans = Vec::new();
        for (tid, held) in &mut self.held {
            held.creators.retain(|other| *other != creator);
            if held.creators.is_empty() {
                orphans.push(*tid);
            }
        }
        orphans.sort_unstable();
        orphans.into_iter().for_each(|tid| self.adopt_held(tid));
    }

    pub fn adopt_held(&mut self, tid: i32) {
        let Some(held) = self.held.remove(&tid) else { return };
        if let Some((at, _)) = held.lines.first() {
            self.begin(tid, *at, false);
        }
        self.add_lines(tid, held.lines);
    }

    fn add_lines(&mut self, tid: i32, lines: Vec<(Nanos, Vec<u8>)>) {
        for (at, rest) in lines {
            self.add(tid, at, &rest);
        }
    }

    fn add_thread(&mut self, creator: i32, tid: i32, at: Nanos) {
        self.remove_lost(tid, at);
        let Some((launch, creator)) = self.ids(creator) else { return };
        let id = TaskId(self.new_id());
        if let Some(process) = self.processes.get_mut(&launch) {
            process.threads += 1;
        }
        self.report(at, launch, id, EventKind::ThreadStarted { tid: Pid(tid), creator });
        self.insert(tid, launch, id, at, true);
    }

    /// Adds a process whose creation the log leaves out, when its parent gets the signal of its
    /// end.
    pub fn add_unseen_child(&mut self, parent: i32, tid: i32, ended: Nanos) {
        let Some(held) = self.held.remove(&tid) else { return };
        self.has_unseen_creations = true;
        self.add_process(parent, tid, i64::from(tid), None, held.began, Some(held.began));
        self.add_lines(tid, held.lines);
        self.assume_wait(parent, tid, held.began, ended);
    }

    fn add_process(
        &mut self,
        creator: i32,
        tid: i32,
        pid: i64,
        call: Option<&Call<'_>>,
        start: Nanos,
        at: Option<Nanos>,
    ) {
        self.remove_lost(tid, at.unwrap_or(start));
        let Some((parent, parent_task)) = self.ids(creator) else { return };
        self.report_exec(parent);
        let launch = LaunchId(self.new_id());
        let Some(creator) = self.processes.get_mut(&parent) else { return };
        creator.add_child(pid, Child { tid, task: TaskId(launch.0), ended: None });
        let launched = Launched {
            parent,
            parent_task,
            pid: Pid(tid),
            reaper: call.is_none_or(|call| flags(call).all(|flag| flag != b"CLONE_PARENT")).then_some(parent),
            pid_for_reaper: Pid(pid as i32),
            mechanism: call.map(mechanism),
            create: call.map(|_| start),
            ..Launched::default()
        };
        let process = Process {
            parent: Some((parent, pid)),
            launched: Some(launched),
            closes: call.map(|_| (0, Some(Nanos(0)))),
            ..creator.forked(tid)
        };
        self.processes.insert(launch, process);
        self.insert(tid, launch, TaskId(launch.0), at.unwrap_or(start), false);
        if let Some(at) = at {
            self.report_launched(launch, at);
        }
    }
}

impl Process {
    fn add_child(&mut self, pid: i64, child: Child) {
        self.has_launched = true;
        if self.children.len() >= MAX_CHILDREN {
            self.children.retain(|_, child| child.ended.is_none());
        }
        if self.children.len() >= MAX_CHILDREN {
            self.children.clear();
        }
        self.children.insert(pid, child);
    }

    /// Returns what a child inherits.
    fn forked(&self, tid: i32) -> Process {
        let (cwd, descriptors, line) = (self.cwd.clone(), self.descriptors.clone(), self.line.clone());
        Process { tid, threads: 1, cwd, descriptors, line, ..Process::default() }
    }
}

/// Returns the flags of `clone` or `clone3`.
fn flags<'l>(call: &Call<'l>) -> impl Iterator<Item = &'l [u8]> {
    let flags = call.arguments.iter().find_map(|argument| after(argument, b"flags=")).unwrap_or_default();
    let end = flags.iter().position(|byte| matches!(byte, b',' | b'}'));
    flags[..end.unwrap_or(flags.len())].split(|byte| *byte == b'|')
}

/// Returns how a call creates a process.
fn mechanism(call: &Call<'_>) -> Mechanism {
    let has = |wanted: &[u8]| flags(call).any(|flag| flag == wanted);
    // The flags that libc's fork passes, and the signal of the child's end.
    let is_of_fork = |flag: &[u8]| {
        flag.starts_with(b"CLONE_CHILD_") || flag == b"CLONE_PARENT_SETTID" || !flag.starts_with(b"CLONE_")
    };
    match call.name {
        b"fork" => Mechanism::Fork,
        b"vfork" => Mechanism::Vfork,
        _ if has(b"CLONE_VM") && has(b"CLONE_VFORK") => Mechanism::PosixSpawn,
        b"clone3" => Mechanism::Clone3,
        _ if flags(call).all(is_of_fork) => Mechanism::Fork,
        _ => Mechanism::Clone,
    }
}

/// Returns the child whose end a signal reports.
pub fn ended_child(signal: &[u8]) -> Option<i32> {
    let pid = signal.starts_with(b"SIGCHLD").then(|| after(signal, b"si_pid="))?.and_then(integer)?;
    i32::try_from(pid).ok().filter(|_| status_of_siginfo(signal).is_some())
}
