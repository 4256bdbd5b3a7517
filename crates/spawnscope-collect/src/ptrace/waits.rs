//! Waits of launching threads for their children. When a child has ended, its parent gets SIGCHLD
//! and stops for it. The parent's registers then show the call in which it waited, and the child
//! that this call has reaped. The scheduler's counters (schedstat) show how long the thread was off
//! its CPU since it launched, and how often. A wait is reported only if it was the only one,
//! because the lengths and causes of several waits are unknown.
//!
//! Some parents do not stop for SIGCHLD, and each write of a child ends a read of the child's
//! output. Therefore the parent is also examined when a child begins to exit. If it is then blocked
//! in a call that the end of the child ends, it waits until the child has ended. All its waits
//! since its last stop are reported as one if it has hardly run in between. In the same way, a
//! parent may wait for the exec of its child: it reads a pipe that the exec closes.
//!
//! A parent that sleeps when a child ends sleeps on after its stop. Its sleep is reported at its
//! next stop.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;

use spawnscope_data::event::{LeftCpu, Nanos, Pid, Slice, Syscall, TaskId, Wake, Waker};
use spawnscope_system::ids::IdMap;

use super::blocked::{self, EndedBy};
use super::counters::{Counters, read_counters};
use super::filters;
use super::idle::{EndedWriters, Pipes};

/// Minimum length of a wait that is reported, in nanoseconds. A shorter one cannot be distinguished
/// from the stops of the thread.
pub(super) const MIN_OFF_NS: u64 = 100_000;
/// Maximum number of threads whose counters are read, each through a file that stays open.
const MAX_THREADS: usize = 64;
/// A wait is assumed to end at the stop if, since its last stop, the thread was running or runnable
/// for at most this long, or for at most 1/`RUNNABLE_DIVISOR` of the time since the wait began.
const MAX_RUNNABLE_NS: u64 = 500_000;
const RUNNABLE_DIVISOR: u64 = 20;

#[derive(Debug)]
struct LaunchingThread {
    schedstat: File,
    /// The counters at the current stop, once they were read.
    at_this_stop: Cell<Option<Counters>>,
    at_last_stop: Counters,
    /// The vfork children created since the last stop that have not yet executed a program, with
    /// the times of their creation.
    vfork_children: HashMap<Pid, Nanos>,
    /// Total length of the thread's waits for such children since the last stop.
    vfork_wait_ns: u64,
    vfork_waits: u64,
    /// How long the tracer has stopped the thread since the beginning of its last stop.
    stopped_ns: u64,
    /// The call that the thread is blocked in (/proc/PID/task/TID/syscall).
    call: Option<File>,
    /// Its status, once this was read.
    status: Option<File>,
    /// Whether its process handles SIGCHLD, once this has been examined.
    handles_signal: Option<bool>,
    /// The children that have begun to exit since the last stop, while the thread was waiting for
    /// them.
    awaited: Vec<AwaitedChild>,
    /// The child that has begun to execute a program while the thread was reading a pipe. If the
    /// child closes its output before it exits, the thread then waits for the exit.
    reading: Option<AwaitedChild>,
    sleep: Option<Sleep>,
    /// The children that have ended since the last stop and may not have been reaped.
    ended: Vec<Pid>,
}

/// A child that has begun to exit or to execute a program while its parent was waiting for that.
#[derive(Clone, Copy, Debug)]
struct AwaitedChild {
    child: Pid,
    call: Option<Syscall>,
    ended_by: EndedBy,
    counters: Counters,
}

/// A sleep during which a child has ended.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    call: Syscall,
    /// How often the thread has got a CPU since the last stop, only to stop for the ends of
    /// children.
    interruptions: u64,
}

#[derive(Debug, Default)]
pub(super) struct Waits {
    threads: IdMap<Pid, LaunchingThread>,
    /// The creator of each vfork child that has not yet executed a program.
    creators: IdMap<Pid, Pid>,
    /// The process and the thread that have created each running process.
    parents: IdMap<Pid, (Pid, Pid)>,
    pub(super) ended_writers: EndedWriters,
    /// The thread whose stop is being handled, and since when it would have continued without the
    /// tracer.
    pub(super) stopped: Option<(Pid, Nanos)>,
}

impl Waits {
    /// Call when a thread is stopped because it has created a process. Returns its CPU time since
    /// its last stop, if it is known.
    pub(super) fn on_launch(&mut self, process: Pid, thread: Pid, child: Pid, is_spawn: bool) -> Option<Nanos> {
        let before = self.threads.get(&thread).map(|watched| watched.at_last_stop.ran);
        let watched = self.restart(process, thread)?;
        let worked = before.map(|before| Nanos(watched.at_last_stop.ran.saturating_sub(before)));
        if is_spawn {
            watched.vfork_children.insert(child, watched.at_last_stop.at);
            self.creators.insert(child, thread);
        }
        self.parents.insert(child, (process, thread));
        worked
    }

    /// Call when a process has executed a program or ended, so that a parent that is blocked in
    /// vfork continues.
    pub(super) fn on_parent_released(&mut self, child: Pid, at: Nanos) {
        let Some(creator) = self.creators.remove(&child) else {
            return;
        };
        if let Some(watched) = self.threads.get_mut(&creator)
            && let Some(since) = watched.vfork_children.remove(&child)
        {
            watched.vfork_wait_ns += at.since(since).0;
            watched.vfork_waits += 1;
        }
    }

    /// Call when a thread continues that was stopped for `span`.
    pub(super) fn on_resumed(&mut self, thread: Pid, at: Nanos, span: Nanos) {
        if let Some(watched) = self.threads.get_mut(&thread) {
            watched.stopped_ns += span.0;
            watched.vfork_children.values_mut().for_each(|since| *since = at);
        }
    }

    /// Reads the counters of a thread. They do not change while it is stopped, so that those of a
    /// stopped thread are from the beginning of its stop.
    fn read(&self, thread: Pid) -> Option<Counters> {
        let counters = self.threads.get(&thread)?.counters()?;
        Some(counters.at_beginning_of(self.stopped.filter(|(stopped, _)| *stopped == thread)))
    }

    /// Call when a process with these pipes begins to exit, before it closes its files.
    pub(super) fn on_exiting(&mut self, child: Pid, pipes: impl FnOnce() -> Pipes) {
        let awaited = self.blocked_parent(child, |watched, call, process| {
            let handles_signal = &mut watched.handles_signal;
            let handles = || *handles_signal.get_or_insert_with(|| blocked::handles(process, libc::SIGCHLD));
            blocked::ended_by(call, process, child, pipes, handles)
        });
        if let Some((watched, awaited)) = awaited {
            watched.awaited.push(awaited);
        }
    }

    /// Call when a thread is stopped, before its counters are read.
    pub(super) fn on_stop(&mut self, thread: Pid) {
        if let Some(watched) = self.threads.get_mut(&thread) {
            watched.at_this_stop.take();
        }
    }

    /// Call when a process enters an exec. `pipes`: its pipes, if they are known.
    pub(super) fn on_exec_entered(&mut self, child: Pid, pipes: Option<Pipes>) {
        if self.creators.contains_key(&child) {
            // Its parent waits in vfork.
            return;
        }
        let awaited = self.blocked_parent(child, |watched, call, process| {
            let is_known = watched.reading.is_some_and(|reading| reading.child == child);
            let pipes = || pipes.unwrap_or_else(|| Pipes::of(child));
            let reads_output = if is_known { None } else { blocked::reads_output(call, process, pipes) };
            reads_output.map(|is_output| if is_output { EndedBy::Output } else { EndedBy::Exec })
        });
        if let Some((watched, awaited)) = awaited {
            watched.reading = Some(awaited);
        }
    }

    /// Returns the thread that has created a process, and the call that it is blocked in, if
    /// `ended_by` returns how the call will end.
    fn blocked_parent(
        &mut self,
        child: Pid,
        ended_by: impl FnOnce(&mut LaunchingThread, blocked::Call, Pid) -> Option<EndedBy>,
    ) -> Option<(&mut LaunchingThread, AwaitedChild)> {
        let (process, thread) = *self.parents.get(&child)?;
        let watched = self.threads.get_mut(&thread)?;
        let call = watched.call.as_ref().and_then(blocked::call)?;
        let ended_by = ended_by(watched, call, process)?;
        let counters = read_counters(&watched.schedstat)?;
        let number = u32::try_from(call.0).ok();
        let call = number.map(|number| Syscall { number, argument: call.1[0] });
        Some((watched, AwaitedChild { child, call, ended_by, counters }))
    }

    /// Call when a process has executed a program. Returns the thread that has waited for that, and
    /// the slice of this wait.
    pub(super) fn on_executed(&mut self, child: Pid, task: TaskId, at: Nanos) -> Option<(Pid, Slice)> {
        let (_, thread) = *self.parents.get(&child)?;
        let watched = self.threads.get_mut(&thread)?;
        let awaited = watched.reading.take_if(|reading| reading.child == child && reading.ended_by == EndedBy::Exec)?;
        let still_blocked = watched.call.as_ref().and_then(blocked::call).is_some()
            && read_counters(&watched.schedstat)?.arrivals == awaited.counters.arrivals;
        let slice = if still_blocked { None } else { watched.end_wait(awaited, task, at) };
        Some((thread, slice?))
    }

    /// Call when a process has ended. Returns the thread that has waited for it, and the slice of
    /// this wait.
    pub(super) fn on_end(&mut self, child: Pid, task: Option<TaskId>, at: Nanos) -> Option<(Pid, Slice)> {
        let (_, thread) = self.parents.remove(&child)?;
        let watched = self.threads.get_mut(&thread)?;
        let awaited = watched.awaited.iter().find(|awaited| awaited.child == child).copied();
        let slice = awaited.and_then(|awaited| watched.end_wait(awaited, task?, at));
        watched.ended.push(child);
        Some((thread, slice?))
    }

    /// Whether the thread that has created a running process has another seccomp filter than the
    /// recorder. The thread is stopped.
    pub(super) fn is_creator_filtered(&mut self, child: Pid) -> bool {
        let creator = self.parents.get(&child).and_then(|creator| Some((creator, self.threads.get_mut(&creator.1)?)));
        let Some(((process, thread), watched)) = creator else { return filters::has_own(child) };
        let open = || File::open(format!("/proc/{}/task/{}/status", process.0, thread.0)).ok();
        watched.status = watched.status.take().or_else(open);
        watched.status.as_ref().is_none_or(filters::are_own_in)
    }

    /// Returns the process that has created a running process.
    pub(super) fn creator_of(&self, child: Pid) -> Option<Pid> {
        self.parents.get(&child).map(|(process, _)| *process)
    }

    /// Returns the running processes that a process has created.
    pub(super) fn children_of(&self, process: Pid) -> impl Iterator<Item = Pid> {
        self.parents.iter().filter(move |(_, (creator, _))| *creator == process).map(|(child, _)| *child)
    }

    pub(super) fn on_exec(&mut self, thread: Pid) {
        self.threads.remove(&thread);
    }

    /// Call when a thread has ended, or is no longer traced.
    pub(super) fn forget(&mut self, thread: Pid) {
        self.threads.remove(&thread);
        self.parents.remove(&thread);
    }

    /// Reads the counters of a stopped thread. The length of its next wait is measured from then
    /// on.
    fn restart(&mut self, process: Pid, thread: Pid) -> Option<&mut LaunchingThread> {
        let is_full = self.threads.len() >= MAX_THREADS;
        let stopped = self.stopped.filter(|(stopped, _)| *stopped == thread);
        match self.threads.entry(thread) {
            Entry::Occupied(entry) => {
                let watched = entry.into_mut();
                watched.restart(watched.counters()?.at_beginning_of(stopped));
                Some(watched)
            }
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(entry) => {
                let [schedstat, call] = ["schedstat", "syscall"]
                    .map(|name| File::open(format!("/proc/{}/task/{}/{name}", process.0, thread.0)).ok());
                let schedstat = schedstat?;
                let last = read_counters(&schedstat)?.at_beginning_of(stopped);
                Some(entry.insert(LaunchingThread { call, ..LaunchingThread::new(schedstat, last) }))
            }
        }
    }

    /// Returns the slice of a stopped thread's wait if there was exactly one since its last stop,
    /// whether the wait certainly ended just before this stop, and the time of this stop.
    pub(super) fn wait_since_last_stop(&mut self, thread: Pid) -> Option<(Slice, bool, Nanos)> {
        let now = self.read(thread)?;
        let watched = self.threads.get_mut(&thread)?;
        let slice = watched.single_wait(&now);
        let runnable = (now.ran + now.delayed).saturating_sub(watched.at_last_stop.ran + watched.at_last_stop.delayed);
        watched.restart(now);
        let slice = slice?;
        let has_just_ended = is_short(runnable, now.at.since(slice.off).0);
        Some((slice, has_just_ended, now.at))
    }

    /// Call when a thread is stopped because a child has ended during a sleep of the thread.
    pub(super) fn on_interrupted_sleep(&mut self, thread: Pid, call: Syscall) {
        let now = self.read(thread);
        let Some((now, watched)) = now.zip(self.threads.get_mut(&thread)) else {
            return;
        };
        let known = watched.sleep.map(|sleep| Sleep { interruptions: sleep.interruptions + 2, ..sleep });
        // The whole sleep is known only if it is the only wait since the last stop.
        let whole = watched.single_wait(&now).map(|_| Sleep { call, interruptions: 2 });
        let sleep = known.or(whole);
        if sleep.is_none() {
            let ended = std::mem::take(&mut watched.ended);
            watched.restart(now);
            watched.ended = ended;
        }
        watched.sleep = sleep.or(Some(Sleep { call, interruptions: 0 }));
    }

    /// Returns the slice of a stopped thread's sleep since its last stop, when it ended, and the
    /// children that were reaped after it.
    pub(super) fn sleep_since_last_stop(&self, thread: Pid) -> Option<(Slice, Nanos, Vec<Pid>)> {
        let watched = self.threads.get(&thread)?;
        let sleep = watched.sleep?;
        let now = self.read(thread)?;
        let (slice, arrivals, ran) = watched.time_off(&now)?;
        let is_single = arrivals == 2 + sleep.interruptions;
        // The thread has run before and after the sleep.
        let shift = ran / 2;
        let slice = is_single.then(|| Slice {
            syscall: Some(sleep.call),
            on: slice.on,
            ..Slice::new(Nanos(slice.off.0.saturating_sub(shift)), LeftCpu::Interruptible)
        });
        let gone = watched.ended.iter().filter(|child| !std::path::Path::new(&format!("/proc/{}", child.0)).exists());
        Some((slice?, Nanos(now.at.0.saturating_sub(shift)), gone.copied().collect()))
    }

    /// Returns the time off the CPU of a stopped thread since its last stop as one wait; `None` if
    /// the thread has launched nothing yet.
    pub(super) fn time_off_since_last_stop(&self, thread: Pid) -> Option<Option<Slice>> {
        let watched = self.threads.get(&thread)?;
        Some(self.read(thread).and_then(|now| watched.time_off(&now)).map(|(slice, ..)| slice))
    }
}

impl LaunchingThread {
    fn new(schedstat: File, at_last_stop: Counters) -> LaunchingThread {
        LaunchingThread {
            schedstat,
            at_this_stop: Cell::default(),
            at_last_stop,
            vfork_children: HashMap::new(),
            vfork_wait_ns: 0,
            vfork_waits: 0,
            stopped_ns: 0,
            call: None,
            status: None,
            handles_signal: None,
            awaited: Vec::new(),
            reading: None,
            sleep: None,
            ended: Vec::new(),
        }
    }

    /// Returns the counters of the thread at its current stop (`Waits::on_stop`).
    fn counters(&self) -> Option<Counters> {
        let now = self.at_this_stop.get().or_else(|| read_counters(&self.schedstat));
        self.at_this_stop.set(now);
        now
    }

    fn restart(&mut self, now: Counters) {
        (self.at_last_stop, self.vfork_wait_ns, self.vfork_waits, self.stopped_ns) = (now, 0, 0, 0);
        (self.reading, self.sleep) = (None, None);
        self.awaited.clear();
        self.ended.clear();
    }

    /// Returns the slice of a wait that a child has ended, if the thread has hardly run since its
    /// last stop. Its next wait is measured from then on.
    fn end_wait(&mut self, awaited: AwaitedChild, task: TaskId, at: Nanos) -> Option<Slice> {
        let now = Counters { at, ..awaited.counters };
        let first = self.reading.filter(|reading| reading.child == awaited.child).unwrap_or(awaited);
        let slice = self.wait_for_child(&now);
        self.restart(now);
        let is_read = matches!(first.ended_by, EndedBy::Output | EndedBy::Exec);
        let wake = is_read.then_some(Wake { at, by: Waker::Task(task), is_certain: true });
        Some(Slice { syscall: first.call, wake, ..slice? })
    }

    /// Returns the wait between the last stop and this one, if it was the only one apart from waits
    /// for vfork children.
    fn single_wait(&self, now: &Counters) -> Option<Slice> {
        // The thread gets a CPU once when the tracer resumes it, and once after each wait.
        let (slice, arrivals, _) = self.time_off(now)?;
        (arrivals == 2).then_some(slice)
    }

    /// Returns the wait between the last stop and the end of a child, for which the thread is still
    /// waiting.
    fn wait_for_child(&self, now: &Counters) -> Option<Slice> {
        let (slice, arrivals, ran) = self.time_off(now)?;
        (arrivals <= 1 || is_short(ran, now.at.since(slice.off).0)).then_some(slice)
    }

    /// Returns all time off the CPU since the last stop as one wait at the end, how often the
    /// thread got a CPU, and how long it ran.
    fn time_off(&self, now: &Counters) -> Option<(Slice, u64, u64)> {
        let arrivals = now.arrivals.checked_sub(self.at_last_stop.arrivals + self.vfork_waits)?;
        let ran = now.ran.checked_sub(self.at_last_stop.ran)?;
        let delayed = now.delayed.checked_sub(self.at_last_stop.delayed)?;
        let others = ran + delayed + self.vfork_wait_ns + self.stopped_ns;
        let off = now.at.since(self.at_last_stop.at).0.checked_sub(others)?;
        if off < MIN_OFF_NS {
            return None;
        }
        let left = Nanos(now.at.0 - off - delayed);
        let slice = Slice {
            on: Some(Nanos(left.0.saturating_sub(ran)).max(self.at_last_stop.at)),
            ..Slice::new(left, LeftCpu::Interruptible)
        };
        Some((slice, arrivals, ran))
    }
}

/// Whether a time on CPUs or in the run queue is short, compared with a wait. Both are in
/// nanoseconds.
fn is_short(runnable: u64, wait: u64) -> bool {
    runnable <= MAX_RUNNABLE_NS.max(wait / RUNNABLE_DIVISOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(at: u64, ran: u64, delayed: u64, arrivals: u64) -> Counters {
        Counters { at: Nanos(at), ran, delayed, arrivals }
    }

    fn watched() -> LaunchingThread {
        let own = File::open("/proc/thread-self/schedstat").unwrap();
        LaunchingThread::new(own, counters(1_000_000, 500_000, 0, 7))
    }

    #[test]
    fn a_single_wait_is_the_time_neither_on_a_cpu_nor_in_the_run_queue() {
        let slice = watched().single_wait(&counters(9_000_000, 800_000, 200_000, 9)).unwrap();
        // 8 ms minus 0.3 ms of work and 0.2 ms in the run queue.
        assert_eq!((slice.off, slice.on), (Nanos(1_300_000), Some(Nanos(1_000_000))));
        assert_eq!(9_000_000 - slice.off.0 - 200_000, 7_500_000);
    }

    #[test]
    fn several_waits_no_wait_and_a_short_wait_are_not_reported() {
        let watched = watched();
        for now in [
            counters(9_000_000, 800_000, 0, 10),
            counters(9_000_000, 800_000, 0, 8),
            counters(1_350_000, 800_000, 0, 9),
            // The counters of another thread.
            counters(9_000_000, 400_000, 0, 9),
        ] {
            assert_eq!(watched.single_wait(&now), None, "{now:?}");
        }
    }

    #[test]
    fn several_waits_for_one_child_are_one_wait() {
        let mut waits = Waits::default();
        for (child, ran, ended_by, is_read) in [
            (7, 800_000, EndedBy::Exit, false),
            (8, 3_000_000, EndedBy::Exit, false),
            (9, 800_000, EndedBy::Output, true),
            // It read the output, which the child closed before it exited.
            (10, 800_000, EndedBy::Exit, true),
        ] {
            let counters = counters(8_000_000, ran, 200_000, 12);
            let awaited = AwaitedChild { child: Pid(child), call: None, ended_by, counters };
            let reading = is_read.then_some(AwaitedChild { ended_by: EndedBy::Output, ..awaited });
            waits.threads.insert(Pid(1), LaunchingThread { awaited: vec![awaited], reading, ..watched() });
            waits.parents.insert(Pid(child), (Pid(1), Pid(1)));
            let task = Some(TaskId(3));
            assert_eq!(waits.on_end(Pid(6), task, Nanos(8_500_000)), None, "another child");
            let slice = waits.on_end(Pid(child), task, Nanos(9_000_000)).map(|(_, slice)| slice);
            // The second thread has worked meanwhile.
            let expected = (ran == 800_000).then_some((Nanos(1_300_000), Some(Nanos(1_000_000))));
            assert_eq!(slice.as_ref().map(|slice| (slice.off, slice.on)), expected);
            let waker = slice.and_then(|slice| slice.wake).map(|wake| wake.by);
            assert_eq!(waker, is_read.then_some(Waker::Task(TaskId(3))));
            assert_eq!(waits.threads[&Pid(1)].at_last_stop.at, Nanos(9_000_000));
        }
    }

    #[test]
    fn the_wait_for_the_exec_of_a_vfork_child_is_subtracted() {
        let mut waits = Waits::default();
        waits.threads.insert(Pid(1), watched());
        waits.creators.insert(Pid(2), Pid(1));
        let parent = waits.threads.get_mut(&Pid(1)).unwrap();
        parent.vfork_children.insert(Pid(2), Nanos(1_000_000));
        waits.on_parent_released(Pid(2), Nanos(3_000_000));
        let parent = &waits.threads[&Pid(1)];
        let slice = parent.single_wait(&counters(9_000_000, 800_000, 0, 10)).unwrap();
        assert_eq!(9_000_000 - slice.off.0, 8_000_000 - 300_000 - 2_000_000);
    }
}
