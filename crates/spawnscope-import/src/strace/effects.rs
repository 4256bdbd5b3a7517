//! What calls do, other than those that create processes: execs, waits, and changes of descriptors
//! and directories. Calls that change nothing here are not even parsed (`matters`).

use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::LazyLock;

use nix::errno::Errno;
use spawnscope_data::event::variables::select_allowed;
use spawnscope_data::event::{EventKind, Executed, LaunchId, Nanos, Object, ObjectKind, TaskId, Waker};

use super::call::{Call, Text, string, strings};
use super::descriptors::{Awaited, File, Pipe};
use super::loader::Loading;
use super::processes::{Process, Tracker};
use super::script;
use super::work::Work;
use crate::text::{after, find, integer, number, skip_spaces};

/// What a call does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Creation,
    Exec,
    Read,
    Write,
    /// It may wait for a process, or for time to pass, as reading and writing may.
    Wait,
    /// It changes what is known of a process.
    Change,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Creation, "clone clone3 fork vfork"),
    (Kind::Exec, "execve execveat"),
    (Kind::Read, "read readv recvfrom recvmsg"),
    (Kind::Write, "write writev sendto sendmsg splice"),
    (
        Kind::Wait,
        "wait4 waitid waitpid poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 futex nanosleep \
         clock_nanosleep pause rt_sigsuspend rt_sigtimedwait flock accept accept4 connect msgrcv semop semtimedop",
    ),
    (
        Kind::Change,
        "exit_group exit pipe pipe2 socketpair dup dup2 dup3 fcntl fcntl64 close close_range open openat openat2 chdir fchdir \
         getcwd sched_getaffinity",
    ),
];

/// Returns what a call does. `None` if it does not matter.
pub fn kind(name: &[u8]) -> Option<Kind> {
    static ALL: LazyLock<HashMap<&[u8], Kind>> = LazyLock::new(|| {
        let all = KINDS.iter().flat_map(|(kind, names)| names.split(' ').map(|name| (name.as_bytes(), *kind)));
        all.collect()
    });
    ALL.get(name).copied()
}

pub fn is_creation(name: &[u8]) -> bool {
    kind(name) == Some(Kind::Creation)
}

pub fn is_exec(name: &[u8]) -> bool {
    kind(name) == Some(Kind::Exec)
}

pub fn is_wait(name: &[u8]) -> bool {
    matches!(kind(name), Some(Kind::Wait | Kind::Read | Kind::Write))
}

/// Whether a call of a process may change what is known, or may be a wait.
pub fn matters(process: &Process, name: &[u8], text: &[u8]) -> bool {
    let kind = kind(name);
    if !matches!(kind, Some(Kind::Read | Kind::Write)) {
        return kind.is_some();
    }
    let descriptor = text.get(name.len() + 1..).and_then(integer);
    let is_file = descriptor.is_some_and(|descriptor| process.descriptors.is_other(descriptor));
    !is_file || process.exec.is_some() && find(text, b"#!").is_some()
}

impl Tracker {
    /// Applies a call that has returned, at `end` if that is known.
    pub fn take_effect(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Option<Nanos>) {
        let Some(launch) = self.tasks.get(&tid).map(|task| task.launch) else { return };
        let until = end.unwrap_or(start);
        if let Some(directory) = call.file(0).filter(|_| call.argument(0).starts_with(b"AT_FDCWD"))
            && let Some(process) = self.processes.get_mut(&launch)
        {
            process.cwd = Some(directory.into());
        }
        match call.name {
            b"execve" => self.execute(tid, call, 0, start, end),
            b"execveat" => self.execute(tid, call, 1, start, end),
            b"wait4" | b"waitpid" | b"waitid" => self.wait_for_child(tid, call, start, until),
            b"futex" => self.futex(tid, call, start, until),
            b"nanosleep" | b"clock_nanosleep" => {
                self.wait_until(tid, call, start, until, None, Some((Waker::Interrupt, until)));
            }
            b"sched_getaffinity" => self.allowed_cpus = self.allowed_cpus.or_else(|| cpus_in(call.argument(2))),
            name => match kind(name) {
                Some(Kind::Read | Kind::Write) => self.transfer(tid, call, start, until),
                Some(Kind::Wait) => self.wait_for_any(tid, call, start, until),
                _ => self.change_files(tid, call, start, end),
            },
        }
    }

    /// Applies what a call does when it begins: whom it wakes may return before.
    pub fn begin_effect(&mut self, tid: i32, call: &Call<'_>, start: Nanos) {
        let Some((launch, id)) = self.ids(tid) else { return };
        let Some(process) = self.processes.get_mut(&launch) else { return };
        let pipe = call.number(0).and_then(|descriptor| process.descriptors.pipe(descriptor));
        match call.name {
            b"close" => pipe.into_iter().for_each(|pipe| pipe.closed.set(Some((id, start)))),
            b"exit_group" | b"exit" => process.exit(call, (id, start)),
            b"execve" | b"execveat" => process.descriptors.begin_exec((id, start)),
            b"futex" if call.argument(1).starts_with(b"FUTEX_WAKE") => self.futex(tid, call, start, start),
            name if kind(name) == Some(Kind::Write) => {
                pipe.into_iter().for_each(|pipe| pipe.written.set(Some((id, start))));
            }
            _ => {}
        }
    }

    fn execute(&mut self, tid: i32, call: &Call<'_>, path_index: usize, start: Nanos, end: Option<Nanos>) {
        let Some((launch, id)) = self.ids(tid) else { return };
        let Some(path) = self.executed_path(tid, call, path_index) else { return };
        let at = end.unwrap_or(start);
        if let Some(errno) = call.error.and_then(errno) {
            self.report_launched(launch, start);
            return self.report(at, launch, id, EventKind::ExecFailed { enter: start, path, errno });
        }
        if call.result != Some(0) {
            return;
        }
        let (argv, is_whole) = strings(call.argument(path_index + 1)).unwrap_or_default();
        self.end_other_threads(launch, tid, at);
        if self.root == Some(launch) && self.command.is_empty() {
            self.command = argv.iter().map(|argument| argument.bytes.clone()).collect();
        }
        let Some(process) = self.processes.get_mut(&launch) else { return };
        let before = process.exec.as_mut().filter(|_| !process.has_launched);
        before.into_iter().for_each(|(_, executed)| script::find_env(executed, &argv));
        self.report_exec(launch);
        let Some(process) = self.processes.get_mut(&launch) else { return };
        process.descriptors.exec((id, at));
        process.work = Some(Work::new(&path, &argv));
        process.line = script::line_of(&path, &argv);
        let environment = strings(call.argument(path_index + 2));
        process.execute(Executed { enter: Some(start), path, ..executed(&argv, is_whole, environment) }, at, end);
    }

    /// Returns the file that a call executes.
    fn executed_path(&self, tid: i32, call: &Call<'_>, path_index: usize) -> Option<Vec<u8>> {
        let path = string(call.argument(path_index))?.bytes;
        if path_index == 0 || path.starts_with(b"/") || call.argument(0).starts_with(b"AT_FDCWD") {
            return Some(path);
        }
        let descriptor = call.number(0)?;
        let process = self.tasks.get(&tid).and_then(|task| self.processes.get(&task.launch));
        let directory = call.file(0).or_else(|| process?.descriptors.directory(descriptor).map(Rc::as_ref));
        Some(match (directory, path.is_empty()) {
            (Some(directory), true) => directory.to_vec(),
            (Some(directory), false) => [directory, b"/", &path].concat(),
            (None, true) => format!("/dev/fd/{descriptor}").into_bytes(),
            (None, false) => [format!("/dev/fd/{descriptor}/").as_bytes(), &path].concat(),
        })
    }

    pub fn pipe(&mut self, tid: i32, descriptor: i64, file: Option<&[u8]>) -> Option<Rc<Pipe>> {
        let launch = self.tasks.get(&tid)?.launch;
        let process = self.processes.get_mut(&launch)?;
        if let Some(pipe) = process.descriptors.pipe(descriptor) {
            return Some(Rc::clone(pipe));
        }
        let (inode, _) = number(file?.strip_prefix(b"pipe:[")?)?;
        let known = self.pipes.get(&inode).and_then(Weak::upgrade);
        let pipe = known.unwrap_or_else(|| Rc::new(Pipe { inode, ..Pipe::default() }));
        self.keep_pipe(&pipe);
        let process = self.processes.get_mut(&launch)?;
        process.descriptors.open(descriptor, File::Pipe(Rc::clone(&pipe)), false);
        Some(pipe)
    }

    /// Keeps a pipe as long as a process has it open.
    fn keep_pipe(&mut self, pipe: &Rc<Pipe>) {
        if self.pipes.len() > self.forget_pipes_above {
            self.pipes.retain(|_, pipe| pipe.strong_count() > 0);
            self.forget_pipes_above = 64.max(2 * self.pipes.len());
        }
        self.pipes.insert(pipe.inode, Rc::downgrade(pipe));
    }

    fn transfer(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Nanos) {
        let Some((launch, id)) = self.ids(tid) else { return };
        let Some(descriptor) = call.number(0) else { return };
        let is_read = kind(call.name) == Some(Kind::Read);
        if is_read
            && let Some(process) = self.processes.get_mut(&launch)
            && process.descriptors.may_be_program(descriptor)
            && let Some((_, executed)) = &mut process.exec
        {
            script::find_interpreter(executed, call);
        }
        let is_file = call.file(0).is_some_and(|file| file.starts_with(b"/") && !file.starts_with(b"/dev/"));
        let pipe = self.pipe(tid, descriptor, call.file(0));
        let awaited = match (is_read, call.result) {
            (true, Some(1..)) => Awaited::Written,
            (true, Some(0)) => Awaited::Closed,
            (false, Some(1..)) => Awaited::Read,
            _ => Awaited::Any,
        };
        let woken = pipe.as_ref().and_then(|pipe| pipe.waker(start, end, id, awaited));
        if let Some(pipe) = pipe.as_ref().filter(|_| is_read && call.succeeded()) {
            pipe.read.set(Some((id, end)));
        }
        let is_known_file = self.processes.get(&launch).is_some_and(|process| process.descriptors.is_other(descriptor));
        if !is_file && !is_known_file {
            let waker = woken.map(|(task, at)| (Waker::Task(task), at));
            self.wait_until(tid, call, start, end, pipe.as_deref().and_then(object_of), waker);
        }
    }

    /// Applies calls on descriptors and directories.
    fn change_files(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Option<Nanos>) {
        let Some((launch, id)) = self.ids(tid) else { return };
        if matches!(call.name, b"pipe" | b"pipe2" | b"socketpair") {
            return self.open_pipe(launch, call);
        }
        let Some(process) = self.processes.get_mut(&launch) else { return };
        if call.name.starts_with(b"close")
            && let Some((count, span)) = &mut process.closes
        {
            *count += 1;
            *span = span.zip(end).map(|(span, end)| Nanos(span.0 + end.since(start).0));
        }
        if call.succeeded() && !process.change_directory(call) {
            process.change_descriptors(call, (id, start));
        }
    }

    fn open_pipe(&mut self, launch: LaunchId, call: &Call<'_>) {
        let is_socket = call.name == b"socketpair";
        let text = call.argument(if is_socket { 3 } else { 0 });
        let Some((first, rest)) = text.strip_prefix(b"[").and_then(number) else { return };
        let second = after(rest, b",").map(skip_spaces).and_then(number);
        let Some((second, _)) = second.filter(|_| call.succeeded()) else { return };
        let inode = after(rest, b"pipe:[").and_then(number).map(|(inode, _)| inode);
        let inode = inode.unwrap_or_else(|| {
            self.last_inode += 1;
            self.last_inode
        });
        let pipe = Rc::new(Pipe { inode, is_socket, ..Pipe::default() });
        if !is_socket && text.contains(&b'<') {
            self.keep_pipe(&pipe);
        }
        let Some(process) = self.processes.get_mut(&launch) else { return };
        for descriptor in [first, second] {
            let cloexec = call.has(b"O_CLOEXEC") || call.has(b"SOCK_CLOEXEC");
            process.descriptors.open(descriptor as i64, File::Pipe(Rc::clone(&pipe)), cloexec);
        }
    }
}

impl Process {
    fn execute(&mut self, executed: Executed, at: Nanos, end: Option<Nanos>) {
        let (setup_closes, setup_close_span) =
            self.closes.take().map_or((None, None), |(count, span)| (Some(count), span));
        let cwd = self.cwd.as_deref().map(<[u8]>::to_vec);
        self.exec = Some((at, Executed { cwd, setup_closes, setup_close_span, ..executed }));
        self.loading = Some(Loading::after(end));
        self.has_launched = false;
        self.futexes.clear();
    }

    fn exit(&mut self, call: &Call<'_>, act: (TaskId, Nanos)) {
        let status = (call.number(0).unwrap_or_default() as i32 & 0xff) << 8;
        if call.name == b"exit_group" || self.threads == 1 {
            self.exit.get_or_insert((act.1, status));
            self.descriptors.close_range(0, i64::MAX, act);
        }
    }

    /// Applies a call on the working directory. Returns whether it is one.
    fn change_directory(&mut self, call: &Call<'_>) -> bool {
        let named = || string(call.argument(0)).map(|path| path.bytes);
        let known = || self.descriptors.directory(call.number(0)?).cloned();
        self.cwd = match call.name {
            b"chdir" => named().and_then(|path| self.absolute(&path)),
            b"fchdir" => call.file(0).map(Rc::from).or_else(known),
            b"getcwd" => named().map(Rc::from),
            _ => return false,
        };
        true
    }

    fn change_descriptors(&mut self, call: &Call<'_>, act: (TaskId, Nanos)) {
        let (cloexec, result) = (call.has(b"O_CLOEXEC"), call.result.unwrap_or_default());
        match (call.name, call.argument(1), call.number(0)) {
            (b"open", ..) => self.open(call, 0, result),
            (b"openat" | b"openat2", ..) => self.open(call, 1, result),
            (b"dup", _, Some(from)) => self.descriptors.duplicate(from, result, false, act),
            (b"dup2" | b"dup3", _, Some(from)) => self.descriptors.duplicate(from, result, cloexec, act),
            (b"fcntl" | b"fcntl64", b"F_DUPFD", Some(from)) => self.descriptors.duplicate(from, result, false, act),
            (b"fcntl" | b"fcntl64", b"F_DUPFD_CLOEXEC", Some(from)) => {
                self.descriptors.duplicate(from, result, true, act);
            }
            (b"fcntl" | b"fcntl64", b"F_SETFD", Some(descriptor)) => {
                self.descriptors.set_closes_at_exec(descriptor, call.argument(2) == b"FD_CLOEXEC");
            }
            (b"close", _, Some(descriptor)) => self.descriptors.close(descriptor, act),
            (b"close_range", _, Some(first)) if call.argument(2) == b"0" => {
                self.descriptors.close_range(first, call.number(1).unwrap_or(i64::MAX), act);
            }
            _ => {}
        }
    }

    /// Keeps what a call has opened.
    fn open(&mut self, call: &Call<'_>, path_index: usize, descriptor: i64) {
        let path = string(call.argument(path_index)).unwrap_or_default().bytes;
        let file = match call.has(b"O_DIRECTORY") || call.has(b"O_PATH") {
            true => self.absolute(&path).map(File::Directory),
            false if self.is_program(&path) => Some(File::Program),
            // A terminal or a named pipe may wait.
            false => (!path.starts_with(b"/dev/")).then_some(File::Other),
        };
        if let Some(file) = file {
            self.descriptors.open(descriptor, file, call.has(b"O_CLOEXEC"));
        }
    }

    /// Whether a path is that of the executed file. Python opens `/home/./script` for `./script`.
    fn is_program(&self, path: &[u8]) -> bool {
        let Some((_, executed)) = &self.exec else { return false };
        let relative = executed.path.strip_prefix(b"./").unwrap_or(&executed.path);
        let ends_alike = || path.strip_suffix(relative).is_some_and(|directory| directory.ends_with(b"/"));
        executed.path == path || path.starts_with(b"/") && !relative.starts_with(b"/") && ends_alike()
    }

    /// Returns a path relative to the working directory as an absolute one. `None` if that
    /// directory is unknown.
    fn absolute(&self, path: &[u8]) -> Option<Rc<[u8]>> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let base: &[u8] = if path.starts_with(b"/") { b"" } else { self.cwd.as_deref()? };
        for part in base.split(|byte| *byte == b'/').chain(path.split(|byte| *byte == b'/')) {
            match part {
                b"" | b"." => {}
                b".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        Some([&b"/"[..], &parts.join(&b'/')].concat().into())
    }
}

pub fn object_of(pipe: &Pipe) -> Option<Object> {
    (!pipe.is_socket).then_some(Object { kind: ObjectKind::Pipe, device: 0, inode: pipe.inode })
}

fn executed(argv: &[Text], is_whole: bool, environment: Option<(Vec<Text>, bool)>) -> Executed {
    let cut = u64::from(!is_whole || argv.iter().any(|argument| argument.is_cut));
    let variables = environment.map(|(variables, _)| select_allowed(&joined(&variables))).unwrap_or_default();
    let argv = joined(argv);
    Executed { argv_bytes: argv.len() as u64 + cut, argv, variables, ..Executed::default() }
}

/// Returns strings, each NUL-terminated. A cut string ends with an ellipsis.
fn joined(texts: &[Text]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&text.bytes);
        bytes.extend_from_slice(if text.is_cut { b"...\0" } else { b"\0" });
    }
    bytes
}

/// Returns the number of an error.
fn errno(name: &[u8]) -> Option<i32> {
    (1..=133).find(|number| format!("{:?}", Errno::from_raw(*number)).as_bytes() == name)
}

/// Returns the number of CPUs in a set such as `[0 1 4-7]`.
fn cpus_in(set: &[u8]) -> Option<u32> {
    let inside = set.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let ranges = inside.split(|byte| matches!(byte, b' ' | b',')).filter(|range| !range.is_empty());
    let counts = ranges.map(|range| {
        let (first, rest) = number(range)?;
        let last = rest.strip_prefix(b"-").map_or(Some(first), |last| Some(number(last)?.0))?;
        u32::try_from(last.checked_sub(first)? + 1).ok()
    });
    counts.sum::<Option<u32>>().filter(|count| (1..=65_536).contains(count))
}
