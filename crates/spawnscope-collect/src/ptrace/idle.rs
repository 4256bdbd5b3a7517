//! Why a process was off its CPU before it launches or exits, if neither its stops for children nor
//! its calls show it: it slept, or it waited for the process that writes to its standard input, as
//! in a pipeline.

use std::collections::{HashMap, VecDeque};

use spawnscope_data::event::{EventKind, LeftCpu, Nanos, Pid, Slice, TaskId, Wake, Waker};

use super::blocked::pipe_behind;
use super::counters::counters_of;
use super::processes::Thread;
use super::tracing::Tracing;
use super::waits::MIN_OFF_NS;

/// Maximum number of pipes whose last writer is known. The oldest are forgotten.
const MAX_PIPES: usize = 256;

/// The processes that have ended last of those whose standard output was a pipe, by pipe, and when
/// they began to exit.
#[derive(Debug, Default)]
pub(super) struct EndedWriters {
    by_pipe: HashMap<u64, (TaskId, Nanos)>,
    in_order: VecDeque<u64>,
}

impl EndedWriters {
    fn add(&mut self, pipe: u64, writer: TaskId, at: Nanos) {
        if self.by_pipe.insert(pipe, (writer, at)).is_none() {
            self.in_order.push_back(pipe);
        }
        if self.in_order.len() > MAX_PIPES
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.by_pipe.remove(&oldest);
        }
    }
}

/// The pipes behind the standard input, output and error of a process. Many programs close them
/// themselves at their end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipes(pub(super) [Option<u64>; 3]);

impl Pipes {
    pub(super) fn of(process: Pid) -> Pipes {
        Pipes([0, 1, 2].map(|fd| pipe_behind(process, fd)))
    }

    pub(super) fn input(self) -> Option<u64> {
        self.0[0]
    }

    pub(super) fn is_written(self, pipe: u64) -> bool {
        self.0[1..].contains(&Some(pipe))
    }
}

impl Tracing {
    /// Call when a process begins to exit, before the kernel closes its files.
    pub(super) fn note_output(&mut self, pid: Pid, thread: Thread, at: Nanos) {
        let known = self.processes.process(thread.launch).and_then(|process| process.pipes);
        if let Some(pipe) = known.map_or_else(|| pipe_behind(pid, 1), |Pipes([_, output, _])| output) {
            self.waits.ended_writers.add(pipe, thread.task, at);
        }
    }

    /// Returns the pipes of a running process: those of its program or, since a fork of a shell
    /// changes its files, the present ones.
    fn pipes_of(&mut self, pid: Pid) -> Pipes {
        let known = self.processes.process_of(pid).and_then(|process| process.pipes);
        known.unwrap_or_else(|| Pipes::of(pid))
    }

    /// Reports what a thread has waited for since its last stop, if it is known. The thread is
    /// stopped because it launches or exits. `cpu`: the CPU time of its process, if it was read.
    pub(super) fn report_idle(&mut self, tid: Pid, thread: Thread, at: Nanos, cpu: Option<Nanos>) {
        if self.launchers.is_watched(tid) {
            return;
        }
        if let Some((slice, ended, reaped)) = self.waits.sleep_since_last_stop(tid) {
            self.report(ended, thread.launch, thread.task, EventKind::Slice(slice));
            // The thread has reaped these children after the sleep.
            for pid in reaped {
                self.report(Nanos(ended.0 + 1), thread.launch, thread.task, EventKind::Reaped { pid });
            }
            return;
        }
        let Some((from, idle)) = self.time_off(tid, thread, at, cpu) else {
            return;
        };
        if let Some((writer, until)) = self.input_writer(tid, from, at) {
            let off = Nanos(until.0.saturating_sub(idle)).max(from);
            let slice = Slice {
                on: Some(from),
                wake: Some(Wake { at: until, by: Waker::Task(writer), is_certain: true }),
                ..Slice::new(off, LeftCpu::Interruptible)
            };
            self.report(until, thread.launch, thread.task, EventKind::Slice(slice));
        }
    }

    /// Returns how long a process was off its CPU since its last stop or since its program has
    /// begun, in nanoseconds, and when that was, without its waits for a CPU. `None` if it was
    /// hardly. Reports waits for a CPU of a program that has launched nothing.
    fn time_off(&mut self, tid: Pid, thread: Thread, at: Nanos, cpu: Option<Nanos>) -> Option<(Nanos, u64)> {
        let process = self.processes.process(thread.launch);
        let process = process.filter(|process| process.pid == tid && !process.had_threads)?;
        let begun = process.begun;
        let (from, idle) = if let Some(slice) = self.waits.time_off_since_last_stop(tid) {
            let slice = slice?;
            (slice.on?, at.since(slice.off).0)
        } else {
            let (from, cpu_before) = begun?;
            let off = at.since(from).since(cpu.or_else(|| self.stop_times.cpu_time_of(tid))?.since(cpu_before));
            if off.0 < MIN_OFF_NS {
                return None;
            }
            // Before the program has begun, the process waited as well, but hardly as long.
            let delayed = off.min(Nanos(counters_of(tid).map_or(0, |counters| counters.delayed)));
            if delayed.0 >= MIN_OFF_NS {
                let slice = Slice::new(Nanos(at.0 - delayed.0), LeftCpu::Preempted);
                self.report(at, thread.launch, thread.task, EventKind::Slice(slice));
            }
            (from, off.since(delayed).0)
        };
        (idle >= MIN_OFF_NS).then_some((from, idle))
    }

    /// Returns the process that has written the standard input of another one since `from`, and
    /// when it ended or, if it still runs, `at`.
    fn input_writer(&mut self, reader: Pid, from: Nanos, at: Nanos) -> Option<(TaskId, Nanos)> {
        let pipe = self.pipes_of(reader).input()?;
        let creator = self.waits.creator_of(reader)?;
        // A process that inherits its input seldom reads it.
        if self.pipes_of(creator).input() == Some(pipe) {
            return None;
        }
        let running = self.waits.children_of(creator).chain(self.waits.children_of(reader));
        let running: Vec<Pid> = running.filter(|other| *other != reader).collect();
        if let Some(writer) = running.into_iter().find(|other| self.pipes_of(*other).0[1] == Some(pipe)) {
            return Some((self.processes.thread(writer)?.task, at));
        }
        let ended = self.waits.ended_writers.by_pipe.get(&pipe).copied();
        ended.filter(|(_, ended)| *ended > from && *ended <= at)
    }
}
