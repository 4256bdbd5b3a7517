//! Logs of macOS's `eslogger exec fork exit`: a JSON object on each line. The tool's manual says
//! that its format may change, so only what is needed is read, and everything else, such as the
//! environment, is skipped. A process is identified by its number and the version of that number,
//! which each exec increases. `posix_spawn` may show no fork, and ends may be missing.

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
use crate::{About, BATCH, ImportError, Source, text};

const EXECVE: [u16; 1] = numbers(["execve"]);
/// A time that differs by more from the one before does not belong to the log.
const MAX_STEP_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;

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

/// A child of a process that has done nothing else since.
struct Child {
    launch: LaunchId,
    pid: i32,
    created: Nanos,
    ended: Option<Nanos>,
}

/// A log that is being read.
pub struct Log {
    lines: Lines,
    count: Count,
    events: Vec<Event>,
    /// The processes that exist, by number, each with the version of that number.
    processes: HashMap<i32, (i64, LaunchId)>,
    /// The last child of each process, until the process does something else.
    children: HashMap<LaunchId, Child>,
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
            children: HashMap::new(),
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
        (log.origin, log.now) = (at, at);
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
        self.report(self.now, launch, EventKind::Adopted { pid: Pid(key.0), name });
        launch
    }

    fn launch(&mut self, parent: LaunchId, key: (i32, i64), at: Nanos, mechanism: Mechanism) -> LaunchId {
        let launch = self.insert(key);
        self.assume_wait(parent);
        self.children.insert(parent, Child { launch, pid: key.0, created: at, ended: None });
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
        self.assume_wait(launch);
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
        self.assume_wait(launch);
        if let Some((parent, _)) = self.parents.remove(&launch)
            && let Some(child) = self.children.get_mut(&parent).filter(|child| child.launch == launch)
        {
            child.ended = Some(self.now);
        }
        let exited = Exited { last_thread: true, wait_status: Some(status), ..Exited::default() };
        self.report(self.now, launch, EventKind::Exited(exited));
        let gone = EventKind::Gone { zombie: Some(self.now), auto_reaped: false, cpu: None };
        self.report(self.now, launch, gone);
    }
}

impl Log {
    /// Reports that a process waited for its last child, if it did nothing while that child
    /// existed, and did something soon after its end. Such a log has no waits.
    fn assume_wait(&mut self, parent: LaunchId) {
        let Some(child) = self.children.remove(&parent) else { return };
        let Some(ended) = child.ended else { return };
        if self.now.since(ended).0 > ended.since(child.created).0 / 4 {
            return;
        }
        let wake = Wake { at: ended, by: Waker::Task(TaskId(child.launch.0)), is_certain: false };
        let slice = Slice { wake: Some(wake), ..Slice::new(child.created, LeftCpu::Interruptible) };
        self.report(ended, parent, EventKind::Slice(slice));
        self.report(ended, parent, EventKind::Reaped { pid: Pid(child.pid) });
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

    fn finish(&mut self) {}

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
            root: None,
            command: Vec::new(),
            origin: self.origin,
            started_unix_ns: i64::try_from(self.origin.0).unwrap_or_default(),
            end: self.now,
            has_ended: false,
            cpus: 0,
            allowed_cpus: None,
            scans: self.scans.as_ref().map(|scans| (scans.tied, scans.count)),
            missing,
            lost: self.lost,
        }
    }
}

/// Returns the nanoseconds since 1970 of a time such as `2026-11-28T08:00:00.123456789Z`.
fn instant(text: &str) -> Option<Nanos> {
    text::instant(text.as_bytes(), b'T').filter(|(_, after)| *after == b"Z").map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:01Z", Some(951_825_601)),
            ("2026-11-28T08:00:00.000000000Z", Some(1_795_852_800)),
            ("2026-13-28T08:00:00Z", None),
            ("2026-11-28 08:00:00", None),
        ] {
            assert_eq!(instant(text).map(|at| at.0 / 1_000_000_000), seconds, "{text}");
        }
    }

    fn read(text: &str) -> Log {
        let mut log = Log::of_one(Lines::of_text(text.as_bytes()), None).unwrap();
        while log.read().unwrap() {}
        log
    }

    fn line(number: u64, token: &str, event: &str) -> String {
        let time = format!("2026-11-28T08:00:0{number}.5Z");
        format!(r#"{{"time":"{time}","global_seq_num":{number},"process":{{"audit_token":{token}}},"event":{event}}}"#)
            + "\n"
    }

    #[test]
    fn both_shapes_of_tokens_are_read_and_gaps_are_counted() {
        let object = |pid: i32, version: i32| format!(r#"{{"pid":{pid},"pidversion":{version},"euid":0}}"#);
        let array = |pid: i32, version: i32| format!("[501,501,20,501,20,{pid},100,{version}]");
        for token in [&object as &dyn Fn(i32, i32) -> String, &array] {
            let fork = format!(r#"{{"fork":{{"child":{{"audit_token":{}}}}}}}"#, token(8, 80));
            let exec = format!(
                r#"{{"exec":{{"target":{{"audit_token":{},"executable":{{"path":"/bin/a"}}}},"args":["a","b c"],"env":["KEY=secret"]}}}}"#,
                token(8, 81)
            );
            let log = read(
                &[
                    line(1, &token(7, 70), &fork),
                    line(2, &token(8, 80), &exec),
                    line(5, &token(8, 81), r#"{"exit":{"stat":256}}"#),
                    line(6, &token(9, 90), r#"{"exit":{"stat":0}}"#),
                    "{\"time\":1}\n".to_owned(),
                ]
                .concat(),
            );
            let kinds: Vec<_> = log.events.iter().map(|event| (event.launch.0, &event.kind)).collect();
            assert!(matches!(kinds[0], (1, EventKind::Adopted { pid: Pid(7), .. })), "{kinds:?}");
            assert!(matches!(kinds[1], (2, EventKind::Launched(launched)) if launched.parent.0 == 1), "{kinds:?}");
            assert!(
                matches!(kinds[2], (2, EventKind::Executed(executed)) if executed.argv == b"a\0b c\0"),
                "{kinds:?}"
            );
            assert!(matches!(kinds[4], (2, EventKind::Exited(exited)) if exited.wait_status == Some(256)), "{kinds:?}");
            assert_eq!((kinds.len(), log.lost, log.count.refused.as_ref().unwrap().count), (6, 2, 1));
            assert!(!format!("{:?}", log.events).contains("secret"));
        }
    }

    #[test]
    fn a_process_that_begins_with_an_exec_was_spawned_or_is_older_than_the_log() {
        let exec = |start: &str| {
            format!(
                r#"{{"exec":{{"target":{{"audit_token":[0,0,0,0,0,8,0,81],"parent_audit_token":[0,0,0,0,0,7,0,70],"start_time":"{start}"}}}}}}"#
            )
        };
        let spawned = read(&line(1, "[0,0,0,0,0,8,0,80]", &exec("2026-11-28T08:00:01.6Z")));
        assert!(matches!(
            &spawned.events[1].kind,
            EventKind::Launched(Launched { mechanism: Some(Mechanism::PosixSpawn), .. })
        ));
        let older = read(&line(1, "[0,0,0,0,0,8,0,80]", &exec("2026-11-28T07:00:00.5Z")));
        assert!(matches!(&older.events[0].kind, EventKind::Adopted { pid: Pid(8), .. }), "{:?}", older.events);
    }

    #[test]
    fn a_process_that_acts_when_its_child_has_ended_is_assumed_to_have_waited() {
        let fork = |pid: i32| format!(r#"{{"fork":{{"child":{{"audit_token":[0,0,0,0,0,{pid},0,1]}}}}}}"#);
        let (parent, child) = ("[0,0,0,0,0,7,0,1]", "[0,0,0,0,0,8,0,1]");
        let waited = |end: u64| {
            let exit = r#"{"exit":{"stat":0}}"#;
            let text = [line(1, parent, &fork(8)), line(end, child, exit), line(9, parent, &fork(9))].concat();
            let log = read(&text);
            let waits = log.events.iter().filter(|event| matches!(event.kind, EventKind::Slice(_)));
            waits.map(|event| (event.launch.0, event.at.since(log.origin).0 / 1_000_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(waited(8), [(1, 7)]);
        assert_eq!(waited(4), [], "the parent did something else for longer");
    }
}
