//! The waits of threads, and what ended each: the end of a child, what another thread did to a pipe
//! or a futex, or time.

use std::collections::HashMap;
use std::sync::LazyLock;

use spawnscope_data::event::syscalls::all_on;
use spawnscope_data::event::{EventKind, LeftCpu, Nanos, Object, Pid, Slice, Syscall, TaskId, Wake, Waker};

use super::call::Call;
use super::descriptors::{Awaited, MAX_CLOSING};
use super::effects::object_of;
use super::line::{status_of_siginfo, wait_status};
use super::processes::{Child, Tracker};
use crate::text::{after, integer};

/// Minimum length of a wait that is reported. Each stop for the tracer takes some ten microseconds,
/// so a shorter one may be no wait.
const MIN_WAIT_NS: u64 = 100_000;
/// Maximum number of futexes of a process whose wakers are kept.
const MAX_FUTEXES: usize = 1_024;

impl Tracker {
    /// Reports a wait that its waker ended, at the instant with it, unless it is too short.
    pub fn wait_until(
        &mut self,
        tid: i32,
        call: &Call<'_>,
        start: Nanos,
        end: Nanos,
        object: Option<Object>,
        waker: Option<(Waker, Nanos)>,
    ) {
        let Some(task) = self.tasks.get_mut(&tid).filter(|_| end.since(start).0 >= MIN_WAIT_NS) else { return };
        let (launch, id, calls) = (task.launch, task.id, self.pace.calls(std::mem::take(&mut task.traced_ns)));
        let own = self.processes.get_mut(&launch).filter(|process| process.tid == tid);
        own.and_then(|process| process.work.as_mut()).into_iter().for_each(|work| work.wait(end.since(start)));
        let argument = call.number(0).unwrap_or_default().cast_unsigned();
        let wake = waker.map(|(by, at)| Wake { at: at.clamp(start, end), by, is_certain: true });
        let slice = Slice {
            syscall: number_of(call.name).map(|number| Syscall { number, argument }),
            object,
            wake,
            calls,
            ..Slice::new(start, LeftCpu::Interruptible)
        };
        self.report(end, launch, id, EventKind::Slice(slice));
    }

    pub fn wait_for_child(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Nanos) {
        let Some(launch) = self.tasks.get(&tid).map(|task| task.launch) else { return };
        let is_waitid = call.name == b"waitid";
        let status = if is_waitid { status_of_siginfo(call.argument(2)) } else { wait_status(call.argument(1)) };
        let pid = match is_waitid {
            true => after(call.argument(2), b"si_pid=").and_then(integer),
            false => call.result,
        };
        let pid = pid.filter(|pid| call.succeeded() && *pid > 0);
        let child = pid.and_then(|pid| self.processes.get(&launch)?.children.get(&pid).copied());
        if let (Some(child), Some(status)) = (child, status)
            && child.ended.is_none()
        {
            // Its last line is missing or later than that of its parent.
            let now = self.tasks.get(&child.tid).map_or(end, |task| task.now);
            self.end(child.tid, now.min(end), Some(status));
        }
        if let Some(child) = child.filter(|_| !self.has_reads) {
            self.assume_read(tid, child, start);
        }
        let waker = child.map(|child| (Waker::Task(child.task), child.ended.unwrap_or(end)));
        self.wait_until(tid, call, start, end, None, waker);
        let (Some(pid), Some(_)) = (pid, status) else { return };
        if call.has(b"WNOWAIT") {
            return;
        }
        if let Some(process) = self.processes.get_mut(&launch) {
            process.children.remove(&pid);
        }
        self.report(end, launch, TaskId(launch.0), EventKind::Reaped { pid: Pid(pid as i32) });
    }

    /// Reports a wait in `read` that the log leaves out (`strace -e trace=process`): the thread did
    /// nothing until it reaped a child that was just ending, so it waited for the end of its
    /// output.
    fn assume_read(&mut self, tid: i32, child: Child, reap: Nanos) {
        let (Some(task), Some(ended)) = (self.tasks.get(&tid), child.ended) else { return };
        let (start, idle) = (task.idle_since, reap.since(task.idle_since).0);
        if ended.0.abs_diff(reap.0) < MAX_CLOSING.0.min(idle / 4) {
            self.assume(tid, "read", start, reap, child);
        }
    }

    /// Reports that a process waited for the end of a child, and reaped it, if the log has neither
    /// waits nor creations.
    pub fn assume_wait(&mut self, tid: i32, pid: i32, began: Nanos, ended: Nanos) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let (launch, start) = (task.launch, began.max(task.idle_since).max(task.called));
        task.idle_since = ended;
        let child = self.processes.get_mut(&launch).and_then(|process| process.children.remove(&i64::from(pid)));
        if let Some(child) = child {
            self.assume(tid, "wait4", start, ended, child);
            self.report(ended, launch, TaskId(launch.0), EventKind::Reaped { pid: Pid(pid) });
        }
    }

    /// Reports a wait for a child in a call that the log leaves out.
    fn assume(&mut self, tid: i32, call: &str, start: Nanos, end: Nanos, child: Child) {
        let Some(task) = self.tasks.get(&tid).filter(|_| end.since(start).0 >= MIN_WAIT_NS) else { return };
        let (launch, id) = (task.launch, task.id);
        let wake = Wake { at: end, by: Waker::Task(child.task), is_certain: false };
        let number = number_of(call.as_bytes()).unwrap_or_default();
        let syscall = Some(Syscall { number, argument: u64::MAX });
        let slice = Slice { syscall, wake: Some(wake), ..Slice::new(start, LeftCpu::Interruptible) };
        self.report(end, launch, id, EventKind::Slice(slice));
    }

    pub fn futex(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Nanos) {
        let Some((launch, id)) = self.ids(tid) else { return };
        let (Some(address), operation) = (call.number(0), call.argument(1)) else { return };
        let Some(process) = self.processes.get_mut(&launch) else { return };
        if operation.starts_with(b"FUTEX_WAKE") {
            if process.futexes.len() >= MAX_FUTEXES {
                process.futexes.clear();
            }
            process.futexes.insert(address, (id, start));
        } else {
            let woken = process.futexes.get(&address).filter(|(_, at)| (start..=end).contains(at)).copied();
            let timed_out = (call.error == Some(b"ETIMEDOUT")).then_some((Waker::Interrupt, end));
            let waker = timed_out.or(woken.map(|(task, at)| (Waker::Task(task), at)));
            self.wait_until(tid, call, start, end, None, waker);
        }
    }

    /// Handles a wait for one of several things.
    pub fn wait_for_any(&mut self, tid: i32, call: &Call<'_>, start: Nanos, end: Nanos) {
        let has_timed_out =
            call.result == Some(0) && call.name != b"flock" && call.name != b"connect" || call.error == Some(b"EAGAIN");
        if has_timed_out {
            return self.wait_until(tid, call, start, end, None, Some((Waker::Interrupt, end)));
        }
        let ready = [&b"fd="[..], b"in [", b"out ["].into_iter().find_map(|before| after(call.remark, before));
        // Programs with an event loop use the descriptor as the data of epoll.
        let ready = ready.or_else(|| after(call.argument(1), b"u32="));
        let pipe = ready.and_then(integer).and_then(|descriptor| self.pipe(tid, descriptor, None));
        let id = self.tasks.get(&tid).map(|task| task.id).unwrap_or_default();
        let woken = pipe.as_ref().and_then(|pipe| pipe.waker(start, end, id, Awaited::Any));
        let waker = woken.map(|(task, at)| (Waker::Task(task), at));
        self.wait_until(tid, call, start, end, pipe.as_deref().and_then(object_of), waker);
    }
}

/// Returns the number of a system call on x86-64.
fn number_of(name: &[u8]) -> Option<u32> {
    static ALL: LazyLock<HashMap<&str, u32>> =
        LazyLock::new(|| all_on("x86_64").filter_map(|(name, number)| Some((name, u32::from(number?)))).collect());
    ALL.get(std::str::from_utf8(name).ok()?).copied()
}
