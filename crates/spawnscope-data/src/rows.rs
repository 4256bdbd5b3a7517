//! The rows of a recording as plain data: each table with its columns and the type of its rows.
//! `schema.sql` in the crate `spawnscope-recording`, which stores and reads the rows, documents the
//! columns and their units.

mod label;
mod references;

use std::sync::Arc;

use crate::event::{
    Calibration, Constant, Language, LaunchId, LeftCpu, Loss, Mechanism, Missing, Nanos, ObjectKind, Pid, TaskId,
};

use crate::contradictions::Contradictions;
use crate::table;
use crate::table::{Bits, Bytes, Count, CpuTime};
pub use label::{BadLabel, Label};
pub use references::{FrameId, ObjectRef, StackId, TextId, Texts};

/// A whole recording except its slices, threads and samples, which are read separately because
/// there are many of them.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub info: Info,
    /// Every process, in order of creation (ascending id).
    pub launches: Vec<LaunchRow>,
    /// Every successful `execve`, in chronological order.
    pub execs: Vec<ExecRow>,
    /// Every failed `execve`, in chronological order.
    pub failed_execs: Vec<FailedExecRow>,
    /// The times in which the collector stopped a thread. Those of one thread are in chronological
    /// order.
    pub stops: Vec<StopRow>,
    pub objects: Vec<ObjectRow>,
    /// Processes at the other end of sockets in `objects`.
    pub peers: Vec<PeerRow>,
    pub edges: Vec<EdgeRow>,
    pub frames: Vec<FrameRow>,
    /// Call chains made of these frames. Each chain comes after the chain of its caller.
    pub stacks: Vec<StackRow>,
    pub texts: Texts,
    /// Constants of the machine, measured before the recording. A constant without an entry is
    /// unknown.
    pub calibration: Vec<Calibration>,
}

/// The rows that a recorder has just written: those of one transaction, without slices, samples and
/// call chains. Live views and metrics are computed from them, so that they agree with later
/// reports.
#[derive(Clone, Debug, Default)]
pub struct NewRows {
    /// The number of the recording, if a recorder writes several consecutive ones. Ids of strings
    /// and of execs start anew in each.
    pub recording: u32,
    /// New strings, which these and later rows refer to.
    pub texts: Vec<(TextId, Arc<[u8]>)>,
    /// The oldest string that later rows may refer to.
    pub oldest_text: TextId,
    pub launches: Vec<LaunchRow>,
    /// New and changed execs, each with its rowid in the table of execs.
    pub execs: Vec<(i64, ExecRow)>,
    /// Launches for which no more events are expected.
    pub finished: Vec<LaunchId>,
    /// The time of the latest event of the recording so far.
    pub last_event: Nanos,
}

#[derive(Clone, Debug, Default)]
pub struct Info {
    pub version: String,
    pub collector: String,
    pub scope: Scope,
    /// The command's argv; empty if there was no command.
    pub command: Vec<Vec<u8>>,
    /// What the run is about: labels that the user gave, and those that the recorder found itself.
    /// Keys are unique and sorted.
    pub labels: Vec<Label>,
    /// The number of online CPUs at the start; 0 if it is unknown.
    pub cpus: u32,
    /// The number of CPUs that the command was allowed to use; not a whole number if a CPU quota is
    /// not one. `None` if unknown.
    pub allowed_cpus: Option<f64>,
    /// `uname -m` of the recorded machine. The file contains the system call numbers of this
    /// architecture.
    pub arch: String,
    /// The wall-clock time at time zero of the recording, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    pub root: Option<LaunchId>,
    pub last_event: Nanos,
    /// The time from start to end; `None` if the recorder did not finish.
    pub wall: Option<Nanos>,
    /// Whether a recorder is still writing the recording.
    pub is_live: bool,
    /// Why the recording ended; `None` if the recorder did not finish.
    pub ended: Option<String>,
    pub missing: Vec<Missing>,
    pub lost: Vec<Loss>,
    /// Rows that cannot all be true, except slices, whose contradictions are found when they are
    /// read.
    pub contradictions: Contradictions,
}

/// On an idle machine, strace made launches by Python's subprocess 20 times as long, those of
/// shells, Perl and git 10 to 12 times; on a busy one, 4 to 9 times
/// (`benchmarks/import_agreement.py`).
const MAX_SLOWDOWN: f64 = 20.0;
/// The same, without the cost of each call that a log shows: after a stop, caches are cold. In 34
/// programs, CPU times were up to 1.6 times as long as in recordings.
const MAX_SLOWDOWN_OF_WORK: f64 = 1.5;

impl Recording {
    /// Returns how many times as long as without the recorder launches may have taken, besides what
    /// is known of its cost.
    pub fn max_slowdown(&self) -> f64 {
        match (self.info.slowed_by(), self.measured(Constant::RecordedCall)) {
            (None, _) => 1.0,
            (Some(_), None) => MAX_SLOWDOWN,
            (Some(_), Some(_)) => MAX_SLOWDOWN_OF_WORK,
        }
    }

    /// Returns a constant of the machine; `None` if it is unknown.
    pub fn measured(&self, what: Constant) -> Option<&Calibration> {
        self.calibration.iter().find(|row| row.what == what)
    }

    pub fn measured_ns(&self, what: Constant) -> Option<f64> {
        self.measured(what).map(|row| row.ns)
    }
}

impl Info {
    /// Returns the number of CPUs on which the command could run at the same time: those that it
    /// was allowed to use, or all if that is unknown.
    pub fn usable_cpus(&self) -> u32 {
        let allowed = self.allowed_cpus.filter(|allowed| *allowed > 0.0).map(|allowed| allowed.ceil() as u32);
        let all = Some(self.cpus).filter(|cpus| *cpus > 0);
        allowed.into_iter().chain(all).min().unwrap_or(1).max(1)
    }

    /// Whether the collector saw when threads ran and what woke them. If not, waits, the critical
    /// path and the replay are unknown.
    pub fn sees_scheduler(&self) -> bool {
        self.missing.iter().all(|missing| missing.what != Missing::SCHEDULER)
    }

    /// Returns why the times are not those without the recorder; `None` if they nearly are.
    pub fn slowed_by(&self) -> Option<&str> {
        let missing = self.missing.iter().find(|missing| missing.what == Missing::UNTRACED_TIMES)?;
        Some(&missing.effect)
    }

    /// Whether a new process did nothing but wait for a CPU between its creation and its first
    /// instruction. If not, the tracer may also have stopped the process during that time.
    pub fn sees_first_waits(&self) -> bool {
        self.missing.iter().all(|missing| missing.what != Missing::FIRST_WAITS)
    }
}

crate::named_enum! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Scope {
        /// A command and all its descendants.
        #[default]
        Command = "command",
        /// A process that existed before, and its future descendants.
        Process = "process",
        System = "system",
    }
}

crate::named_enum! {
    /// How a process entered the recording.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Origin {
        /// A followed process launched the process.
        Launched = "launched",
        Command = "command",
        /// The process existed before the recording, so it is not a launch.
        Existed = "existed",
        /// The event of the creation was lost.
        #[default]
        Orphan = "orphan",
    }
}

table! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LaunchRow in launch {
        since 1 {
            id: LaunchId,
            parent: Option<LaunchId>,
            parent_task: Option<TaskId>,
            pid: Option<Pid>,
            origin: Origin,
            mechanism: Option<Mechanism>,
            create: Option<Nanos> as create_ns,
            created: Option<Nanos> as created_ns,
            first_run: Option<Nanos> as first_run_ns,
            exit: Option<Nanos> as exit_ns,
            zombie: Option<Nanos> as zombie_ns,
            reaped: Option<Nanos> as reaped_ns,
            wait_status: Option<i32>,
            parent_rss_bytes: Option<u64> = Bytes,
            parent_table_bytes: Option<u64> = Bytes,
            exit_cpu: Option<Nanos> = CpuTime as exit_cpu_ns,
            cpu: Option<Nanos> = CpuTime as cpu_ns,
            name: Option<TextId> as name_text,
        }
        since 2 {
            setup_closes: Option<u32> = Count,
            setup_close_span: Option<Nanos>,
        }
        since 4 {
            prepare: Option<Nanos> as prepare_ns,
            parent_tidied: Option<Nanos> as parent_tidied_ns,
            parent_faults: Option<u32> = Count,
        }
        since 5 {
            script_stack: Option<StackId>,
            native_stack: Option<StackId>,
        }
        since 9 {
            work_cpu: Option<Nanos> = CpuTime as work_cpu_ns,
        }
        since 10 {
            exit_faults: Option<u32> = Count,
            exit_rss_bytes: Option<u64> = Bytes,
        }
    }
}

table! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ExecRow in exec {
        since 1 {
            launch: LaunchId,
            enter: Option<Nanos> as enter_ns,
            returned: Option<Nanos> as return_ns,
            load_end: Option<Nanos> as load_ns,
            has_loader: Option<bool>,
            enter_cpu: Option<Nanos> = CpuTime as enter_cpu_ns,
            return_cpu: Option<Nanos> = CpuTime as return_cpu_ns,
            load_cpu: Option<Nanos> = CpuTime as load_cpu_ns,
            path: TextId as path_text,
            interpreter: Option<TextId> as interpreter_text,
            argv: TextId as argv_text,
            argv_bytes: u64 = Bytes,
            cwd: Option<TextId> as cwd_text,
        }
        since 2 {
            load_opens: Option<u32> = Count,
            load_failed_opens: Option<u32> = Count,
            load_cache: Option<bool>,
        }
        since 10 {
            variables: Option<TextId> as variables_text,
        }
    }
}

table! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FailedExecRow in failed_exec {
        since 1 {
            launch: LaunchId,
            enter: Nanos as enter_ns,
            returned: Nanos as return_ns,
            path: TextId as path_text,
            errno: i32,
        }
    }
}

table! {
    /// A time in which the collector stopped a thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StopRow in stop {
        since 13 {
            launch: LaunchId,
            task: TaskId,
            at: Nanos as at_ns,
            span: Nanos as span_ns,
        }
    }
}

table! {
    /// A thread other than the first of its process.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ThreadRow in thread {
        since 1 {
            task: TaskId,
            launch: LaunchId,
            creator: Option<TaskId>,
            tid: Pid,
            created: Nanos as created_ns,
            ended: Option<Nanos> as ended_ns,
            cpu: Option<Nanos> = CpuTime as cpu_ns,
        }
    }
}

table! {
    /// A frame: a function or line in a program.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct FrameRow in frame {
        since 5, key id {
            language: Language,
            function: Option<TextId> as function_text,
            file: Option<TextId> as file_text,
            line: Option<u32>,
            module: Option<TextId> as module_text,
            address: Option<u64> = Bits,
            is_inlined: bool,
        }
    }
}

table! {
    /// A frame and the chain that called it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct StackRow in stack {
        since 5, key id {
            frame: FrameId,
            caller: Option<StackId>,
            is_truncated: bool,
        }
    }
}

table! {
    /// An object that threads waited for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ObjectRow in object {
        since 3, key id {
            kind: ObjectKind,
            device: u32,
            inode: u64 = Bits,
            path: Option<TextId> as path_text,
        }
    }
}

table! {
    /// The process that listens at the other end of a socket.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PeerRow in peer {
        since 11 {
            device: u32,
            inode: u64 = Bits,
            pid: Pid,
            name: TextId as name_text,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildStep {
    /// When it began, since any instant that is the same for all steps of the build.
    pub from: Nanos,
    pub to: Nanos,
    /// What it made.
    pub name: Vec<u8>,
}

table! {
    /// An output of the ninja edge that a launch belongs to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct EdgeRow in edge {
        since 12 {
            launch: LaunchId,
            output: TextId as output_text,
        }
    }
}

table! {
    /// A stretch of a thread on a CPU, and the stretch off it that followed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SliceRow in slice {
        since 1 {
            task: TaskId,
            off: Nanos as off_ns,
            on_span: Option<Nanos>,
            off_span: Option<Nanos>,
            wake_span: Option<Nanos>,
            reason: LeftCpu,
            /// The file contains the recorded machine's number; the reader returns the number on
            /// x86-64 (see `event::syscalls`).
            syscall: Option<u16>,
            argument: Option<u64> = Bits,
            waker: Option<WakerRow> as waker + waker_text,
        }
        since 3 {
            object: Option<ObjectRef>,
        }
        since 5 {
            /// `None` if calls were not counted.
            calls: Option<u32> = Count,
        }
        since 7 {
            /// `None` if there is no waker, or if certainty was not recorded; the waker is then
            /// treated as certain.
            is_waker_certain: Option<bool> as waker_certain,
        }
    }
}

table! {
    /// What a thread did at an instant, or what it started to wait for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SampleRow in sample {
        since 5 {
            task: TaskId,
            at: Nanos as at_ns,
            span: Nanos as span_ns,
            is_waiting: bool,
            stack: StackId,
        }
    }
}

impl SliceRow {
    /// Whether the thread was still off the CPU when the recording ended.
    pub fn is_open(&self) -> bool {
        self.off_span.is_none() && self.reason != LeftCpu::Ended
    }

    /// Whether the thread was still waiting when the recording ended.
    pub fn is_open_wait(&self) -> bool {
        let waits = !matches!(self.reason, LeftCpu::Created | LeftCpu::Preempted);
        self.is_open() && waits && self.wake_span.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakerRow {
    Task(TaskId),
    /// A thread that is not followed, with its name. The pid is 0 if it is not visible in the
    /// recorder's pid namespace.
    Other(Pid, Option<TextId>),
    Interrupt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_row_takes_120_bytes() {
        assert_eq!(size_of::<SliceRow>(), 120);
    }
}
