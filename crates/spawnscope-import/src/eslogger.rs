//! Logs of macOS's `eslogger exec fork exit`: a JSON object on each line. The tool's manual says
//! that its format may change, so only what is needed is read, and everything else, such as the
//! environment, is skipped. A process is identified by its number and the version of that number,
//! which each exec increases. `posix_spawn` may show no fork, and ends may be missing.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::Deserialize;
use spawnscope_data::event::syscalls::numbers;
use spawnscope_data::event::{
    Event, EventKind, Executed, Exited, LaunchId, Launched, LeftCpu, Loaded, Mechanism, Missing, Nanos, Object,
    ObjectKind, Pid, Slice, Syscall, TaskId, Wake, Waker,
};
use spawnscope_data::rows::Scope;

use crate::input::{Count, Lines};
use crate::scans::Scans;
use crate::text::{self, MAX_STEP_NS};
use crate::{About, BATCH, ImportError, Source};

const EXECVE: [u16; 1] = numbers(["execve"]);

#[derive(Deserialize)]
struct Message {
    time: String,
    /// The number of the message, of all kinds.
    global_seq_num: Option<u64>,
    process: Process,
    event: Payload,
}

/// Which one of these there is says what happened: the number of the kind differs between versions.
#[derive(Deserialize)]
struct Payload {
    exec: Option<Exec>,
    fork: Option<Fork>,
    exit: Option<Exit>,
}

#[derive(Deserialize)]
struct Fork {
    child: Process,
}

#[derive(Deserialize)]
struct Exec {
    target: Process,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<File>,
    script: Option<File>,
}

#[derive(Deserialize)]
struct Exit {
    stat: i32,
}

#[derive(Deserialize)]
struct Process {
    audit_token: Token,
    parent_audit_token: Option<Token>,
    ppid: Option<i32>,
    executable: Option<File>,
    start_time: Option<String>,
}

#[derive(Deserialize)]
struct File {
    path: String,
}

/// An object until version 9 of the messages, then an array.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Token {
    Object { pid: i32, pidversion: i64 },
    Array([i64; 8]),
}

impl Token {
    /// The number of the process, and the version of that number.
    fn key(self) -> (i32, i64) {
        match self {
            Token::Object { pid, pidversion } => (pid, pidversion),
            Token::Array([.., pid, _, version]) => (i32::try_from(pid).unwrap_or_default(), version),
        }
    }
}

/// What a process did last, and its last child that has ended since.
struct Acts {
    last: Nanos,
    ended: Option<(Nanos, LaunchId, Pid)>,
}

/// A log that is being read.
pub struct Log {
    lines: Lines,
    count: Count,
    events: Vec<Event>,
    /// The processes that exist, by number, each with the version of that number.
    processes: HashMap<i32, (i64, LaunchId)>,
    /// The processes that have launched others.
    launchers: HashMap<LaunchId, Acts>,
    /// The parents of processes, and when they were created.
    parents: HashMap<LaunchId, (LaunchId, Nanos)>,
    /// The scans of files before their first launch, if there is a log of them.
    scans: Option<Scans>,
    /// The first message, which was read to know the origin.
    first: Option<Message>,
    origin: Nanos,
    now: Nanos,
    next_id: u64,
    last_number: Option<u64>,
    lost: u64,
}

impl Log {
    pub fn of_one(lines: Lines, scans: Option<Scans>) -> Result<Log, ImportError> {
        let mut log = Log {
            lines,
            count: Count::default(),
            events: Vec::new(),
            processes: HashMap::new(),
            launchers: HashMap::new(),
            parents: HashMap::new(),
            scans,
            first: None,
            origin: Nanos(0),
            now: Nanos(0),
            next_id: 1,
            last_number: None,
            lost: 0,
        };
        log.first = log.next()?;
        let Some(at) = log.first.as_ref().and_then(|first| instant(&first.time)) else {
            return Err(log.lines.not_of("eslogger"));
        };
        // What existed before is older than the first message.
        (log.origin, log.now) = (Nanos(at.0.saturating_sub(1)), at);
        Ok(log)
    }

    /// Reads the next message that can be read.
    fn next(&mut self) -> Result<Option<Message>, ImportError> {
        let mut line = Vec::new();
        while self.lines.next(&mut line)? {
            self.count.lines += 1;
            match serde_json::from_slice::<Message>(&line) {
                Ok(message) if self.can_be_now(&message) => return Ok(Some(message)),
                _ if line.trim_ascii().is_empty() => {}
                _ => self.count.refuse(&self.lines.path, self.lines.number, &line),
            }
        }
        Ok(None)
    }

    /// Whether a message has a time that can belong to this log.
    fn can_be_now(&self, message: &Message) -> bool {
        let step = instant(&message.time).map(|at| at.0.abs_diff(self.now.0));
        step.is_some_and(|step| self.now == Nanos(0) || step < MAX_STEP_NS)
    }

    fn add(&mut self, message: &Message) {
        self.now = self.now.max(instant(&message.time).unwrap_or_default());
        if let Some(number) = message.global_seq_num {
            let expected = self.last_number.map_or(number, |last| last.saturating_add(1));
            self.lost = self.lost.saturating_add(number.saturating_sub(expected));
            self.last_number = Some(number);
        }
        let process = &message.process;
        match &message.event {
            Payload { fork: Some(fork), .. } => {
                let parent = self.known_or_adopted(process);
                self.launch(parent, fork.child.audit_token.key(), self.now, Mechanism::Fork);
            }
            Payload { exec: Some(exec), .. } => self.exec(process, exec),
            Payload { exit: Some(exit), .. } => self.exit(process.audit_token.key(), exit.stat),
            _ => {}
        }
    }

    fn report(&mut self, at: Nanos, launch: LaunchId, kind: EventKind) {
        self.events.push(Event { at, launch, task: TaskId(launch.0), kind });
    }

    fn insert(&mut self, (pid, version): (i32, i64)) -> LaunchId {
        let launch = LaunchId(self.next_id);
        self.next_id += 1;
        self.processes.insert(pid, (version, launch));
        launch
    }

    /// Returns a process, if its creation or an earlier event is in the log.
    fn known(&self, (pid, version): (i32, i64)) -> Option<LaunchId> {
        self.processes.get(&pid).filter(|(own, _)| *own == version).map(|(_, launch)| *launch)
    }

    /// Returns a process, which existed before if nothing is known of it.
    fn known_or_adopted(&mut self, process: &Process) -> LaunchId {
        let key = process.audit_token.key();
        self.known(key).unwrap_or_else(|| {
            let path = process.executable.as_ref().map_or("", |file| file.path.as_str());
            self.adopt(key, path)
        })
    }

    fn adopt(&mut self, key: (i32, i64), path: &str) -> LaunchId {
        let launch = self.insert(key);
        let name = path.rsplit('/').next().unwrap_or_default().as_bytes().to_vec();
        self.report(Nanos(self.now.0.saturating_sub(1)), launch, EventKind::Adopted { pid: Pid(key.0), name });
        launch
    }

    fn launch(&mut self, parent: LaunchId, key: (i32, i64), at: Nanos, mechanism: Mechanism) -> LaunchId {
        let launch = self.insert(key);
        self.assume_wait(parent, at);
        self.launchers.entry(parent).or_insert(Acts { last: at, ended: None });
        self.parents.insert(launch, (parent, at));
        let launched = Launched {
            parent,
            parent_task: TaskId(parent.0),
            pid: Pid(key.0),
            reaper: Some(parent),
            pid_for_reaper: Pid(key.0),
            mechanism: Some(mechanism),
            ..Launched::default()
        };
        self.report(at, launch, EventKind::Launched(launched));
        launch
    }

    fn exec(&mut self, process: &Process, exec: &Exec) {
        let launch = self.known(process.audit_token.key()).unwrap_or_else(|| self.begin(process, &exec.target));
        self.assume_wait(launch, self.now);
        let key = exec.target.audit_token.key();
        self.processes.insert(key.0, (key.1, launch));
        let program = exec.target.executable.as_ref().map_or("", |file| file.path.as_str());
        let script = exec.script.as_ref().map(|script| script.path.as_bytes().to_vec());
        let interpreter = script.as_ref().map(|_| program.as_bytes().to_vec());
        let mut argv = Vec::new();
        for argument in &exec.args {
            argv.extend(argument.bytes().filter(|byte| *byte != 0));
            argv.push(0);
        }
        let scan = self.scan(launch, program.as_bytes());
        let executed = Executed {
            enter: scan.as_ref().map(|scan| scan.off),
            path: script.unwrap_or_else(|| program.as_bytes().to_vec()),
            interpreter,
            argv_bytes: argv.len() as u64,
            argv,
            cwd: exec.cwd.as_ref().map(|cwd| cwd.path.as_bytes().to_vec()),
            ..Executed::default()
        };
        // macOS reports an exec when the new image is in place. A scan may end later, but before
        // the program runs.
        let scanned = scan.as_ref().and_then(|scan| scan.wake.as_ref()).map_or(self.now, |wake| wake.at.max(self.now));
        self.report(scanned, launch, EventKind::Executed(executed));
        let loaded = Loaded { returned: scanned, has_loader: true, ..Loaded::default() };
        self.report(scanned, launch, EventKind::Loaded(loaded));
        scan.into_iter().for_each(|scan| self.report(scanned, launch, EventKind::Slice(scan)));
    }

    /// Returns the wait of a process that executes a file, for the scan of that file: since its
    /// creation, or since now if the scan ends later. That includes the scans of other files before
    /// it.
    fn scan(&mut self, launch: LaunchId, program: &[u8]) -> Option<Slice> {
        let created = self.parents.get(&launch).map(|(_, created)| *created);
        let scan = self.scans.as_mut()?.take(program, created.unwrap_or(self.now), self.now)?;
        let from = if scan.to > self.now { self.now } else { created.unwrap_or(scan.from).min(scan.to) };
        let by = Waker::Other { pid: Pid(0), name: b"syspolicyd".to_vec() };
        Some(Slice {
            syscall: Some(Syscall { number: EXECVE[0].into(), argument: 0 }),
            object: Some(Object { kind: ObjectKind::Permission, device: 0, inode: 0 }),
            wake: Some(Wake { at: scan.to, by, is_certain: true }),
            ..Slice::new(from, LeftCpu::Interruptible)
        })
    }

    /// Returns a process whose first event is its exec: `posix_spawn` created it, unless it is
    /// older than the log.
    fn begin(&mut self, process: &Process, target: &Process) -> LaunchId {
        let start = target.start_time.as_deref().and_then(instant).unwrap_or(self.now);
        if start < self.origin {
            return self.known_or_adopted(process);
        }
        let parent = target.parent_audit_token.map(Token::key);
        let known = parent.and_then(|parent| self.known(parent));
        let known = known.or_else(|| Some(self.processes.get(&target.ppid?)?.1));
        let parent = known.unwrap_or_else(|| self.adopt(parent.unwrap_or((target.ppid.unwrap_or_default(), 0)), ""));
        self.launch(parent, target.audit_token.key(), start.min(self.now), Mechanism::PosixSpawn)
    }

    fn exit(&mut self, key: (i32, i64), status: i32) {
        let Some(launch) = self.known(key) else { return };
        self.processes.remove(&key.0);
        self.assume_wait(launch, self.now);
        self.launchers.remove(&launch);
        if let Some((parent, _)) = self.parents.remove(&launch)
            && let Some(acts) = self.launchers.get_mut(&parent)
        {
            acts.ended = Some((self.now, launch, Pid(key.0)));
        }
        let exited = Exited { last_thread: true, wait_status: Some(status), ..Exited::default() };
        self.report(self.now, launch, EventKind::Exited(exited));
        let gone = EventKind::Gone { zombie: Some(self.now), auto_reaped: false, cpu: None };
        self.report(self.now, launch, gone);
    }
}

impl Log {
    /// A process acts. Reports that it waited for a child, if it did nothing else before the child
    /// ended, and acts soon after. Such a log has no waits. `posix_spawn` is known later than it
    /// happens, when the child executes.
    fn assume_wait(&mut self, launch: LaunchId, at: Nanos) {
        let Some(acts) = self.launchers.get_mut(&launch) else { return };
        let last = acts.last;
        acts.last = last.max(at);
        let Some((ended, child, pid)) = acts.ended.take_if(|(ended, ..)| *ended <= at) else { return };
        if at.since(ended).0 <= ended.since(last).0 / 4 {
            self.report_wait(launch, last, ended, child, pid);
        }
    }

    fn report_wait(&mut self, launch: LaunchId, from: Nanos, ended: Nanos, child: LaunchId, pid: Pid) {
        let wake = Wake { at: ended, by: Waker::Task(TaskId(child.0)), is_certain: false };
        let slice = Slice { wake: Some(wake), ..Slice::new(from, LeftCpu::Interruptible) };
        self.report(ended, launch, EventKind::Slice(slice));
        self.report(ended, launch, EventKind::Reaped { pid });
    }

    /// Reports what processes did at the end of the log: one that has launched others waits, for
    /// the last of them to end, and then for something else.
    fn report_last(&mut self) {
        let mut alive: Vec<LaunchId> = self.processes.values().map(|(_, launch)| *launch).collect();
        alive.sort_unstable();
        for launch in alive {
            let slice = match self.launchers.remove(&launch) {
                Some(Acts { last, ended: Some((ended, child, pid)) }) => {
                    self.report_wait(launch, last, ended, child, pid);
                    Slice::new(ended, LeftCpu::Interruptible)
                }
                Some(Acts { last, ended: None }) => Slice::new(last, LeftCpu::Interruptible),
                None => Slice::new(self.now, LeftCpu::Preempted),
            };
            self.report(self.now, launch, EventKind::LastSeen(slice));
        }
    }
}

impl Source for Log {
    fn read(&mut self) -> Result<bool, ImportError> {
        while self.events.len() < BATCH {
            let first = self.first.take();
            let Some(message) = first.map_or_else(|| self.next(), |first| Ok(Some(first)))? else {
                return Ok(false);
            };
            self.add(&message);
        }
        Ok(true)
    }

    fn finish(&mut self) {
        self.report_last();
    }

    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn count(&self) -> &Count {
        &self.count
    }

    fn about(&self) -> About {
        let mut missing = vec![
            (Missing::SCHEDULER, "CPU times, waits for a CPU, and what ends waits"),
            (Missing::FIRST_WAITS, "queue"),
            ("system calls", "create, exec, load, reap, and failed execs"),
        ];
        if self.scans.is_none() {
            missing.push((Missing::SCANS, "which launches waited until macOS had checked a new file (import --scans)"));
        }
        About {
            tool: "eslogger",
            scope: Scope::System,
            origin: self.origin,
            started_unix_ns: i64::try_from(self.origin.0).unwrap_or_default(),
            end: self.now,
            scans: self.scans.as_ref().map(|scans| (scans.tied, scans.count)),
            missing,
            lost: self.lost,
            ..About::default()
        }
    }
}

/// Returns the nanoseconds since 1970 of a time such as `2026-11-28T08:00:00.123456789Z`.
fn instant(text: &str) -> Option<Nanos> {
    text::instant(text.as_bytes(), b'T').filter(|(_, after)| *after == b"Z").map(|(at, _)| at)
}
