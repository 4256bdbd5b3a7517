//! The rows of a recording as plain data, one type per table. Columns and units are those of `schema.sql` in the crate that stores and reads
//! them. No SQL here.

use std::num::NonZeroU32;

use crate::event::{
    Calibration, Language, LaunchId, LeftCpu, Loss, Mechanism, Missing, Nanos, ObjectKind, Pid, TaskId,
};

use crate::contradictions::Contradictions;

/// A whole recording except its slices and samples, which are read separately because they are many.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What was recorded, and how the recording ended.
    pub info: Info,
    /// Every process, in order of creation (ascending id).
    pub launches: Vec<LaunchRow>,
    /// Every successful `execve`, in order of time.
    pub execs: Vec<ExecRow>,
    /// Every failed `execve`, in order of time.
    pub failed_execs: Vec<FailedExecRow>,
    /// Objects that threads waited for.
    pub objects: Vec<ObjectRow>,
    /// Frames of call chains.
    pub frames: Vec<FrameRow>,
    /// Call chains made of these frames. Each follows the chain of its caller.
    pub stacks: Vec<StackRow>,
    /// The strings that rows refer to.
    pub texts: Texts,
    /// Constants of the machine, measured before the recording. Missing ones are unknown.
    pub calibration: Vec<Calibration>,
}

/// What was recorded, and how the recording ended.
#[derive(Clone, Debug)]
pub struct Info {
    /// The version of spawnscope that wrote it.
    pub version: String,
    /// The name of the collector.
    pub collector: String,
    /// What was followed.
    pub scope: Scope,
    /// The command's argv; empty if there was no command.
    pub command: Vec<Vec<u8>>,
    /// The number of online CPUs at the start.
    pub cpus: u32,
    /// `uname -m` of the recorded machine. The file has the system call numbers of this architecture.
    pub arch: String,
    /// Wall-clock time at time zero, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// The launch of the command.
    pub root: Option<LaunchId>,
    /// The time of the latest event stored.
    pub last: Nanos,
    /// The time from start to end; `None` if the recorder did not finish.
    pub wall: Option<Nanos>,
    /// Whether a recorder is still writing it.
    pub is_live: bool,
    /// Why the recording ended; `None` if the recorder did not finish.
    pub ended: Option<String>,
    /// What the collector could not see on this machine.
    pub missing: Vec<Missing>,
    /// Lost events, by kind.
    pub lost: Vec<Loss>,
    /// Rows that cannot all be true. Contradictions of slices are found when slices are read.
    pub contradictions: Contradictions,
}

/// What was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A command and all its descendants.
    Command,
    /// A process that existed before, and its future children.
    Process,
    /// The whole machine.
    System,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 3] = [Scope::Command, Scope::Process, Scope::System];

    /// Returns the word for this scope in a recording.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::Command => "command",
            Scope::Process => "process",
            Scope::System => "system",
        }
    }
}

/// How a process entered the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A followed process launched it.
    Launched,
    /// It is the recorded command.
    Command,
    /// It existed before the recording, so it is not a launch.
    Existed,
    /// The event of its creation was lost.
    Orphan,
}

impl Origin {
    /// Every origin, in the order of their numbers in a recording.
    pub const ALL: [Origin; 4] = [Origin::Launched, Origin::Command, Origin::Existed, Origin::Orphan];
}

/// Refers to a string in `Texts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

/// Refers to a frame of a recording by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Refers to a call chain of a recording by its position from 1, so that an `Option` of it is not larger. Each launch has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(NonZeroU32);

impl StackId {
    /// Returns the chain at an index, which counts from 0.
    #[must_use]
    pub fn at(place: u32) -> StackId {
        StackId(NonZeroU32::MIN.saturating_add(place))
    }

    /// Returns the index, which counts from 0.
    #[must_use]
    pub fn place(self) -> u32 {
        self.0.get() - 1
    }
}

/// A frame: a function or line in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct FrameRow {
    pub language: Language,
    pub function: Option<TextId>,
    pub file: Option<TextId>,
    pub line: Option<u32>,
    pub module: Option<TextId>,
    pub address: Option<u64>,
    pub is_inlined: bool,
}

/// A frame and the chain that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct StackRow {
    pub frame: FrameId,
    pub caller: Option<StackId>,
    pub is_truncated: bool,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct LaunchRow {
    pub id: LaunchId,
    pub parent: Option<LaunchId>,
    pub parent_task: Option<TaskId>,
    pub pid: Option<Pid>,
    pub origin: Origin,
    pub mechanism: Option<Mechanism>,
    pub create: Option<Nanos>,
    pub created: Option<Nanos>,
    pub first_run: Option<Nanos>,
    pub exit: Option<Nanos>,
    pub zombie: Option<Nanos>,
    pub reaped: Option<Nanos>,
    pub wait_status: Option<i32>,
    pub parent_rss_bytes: Option<u64>,
    pub parent_table_bytes: Option<u64>,
    pub exit_cpu: Option<Nanos>,
    pub cpu: Option<Nanos>,
    pub name: Option<TextId>,
    pub setup_closes: Option<u32>,
    pub setup_close_span: Option<Nanos>,
    pub prepare: Option<Nanos>,
    pub parent_tidied: Option<Nanos>,
    pub parent_faults: Option<u32>,
    pub script_stack: Option<StackId>,
    pub native_stack: Option<StackId>,
}

/// One successful `execve`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct ExecRow {
    pub launch: LaunchId,
    pub enter: Option<Nanos>,
    pub returned: Option<Nanos>,
    pub load_end: Option<Nanos>,
    pub has_loader: Option<bool>,
    pub enter_cpu: Option<Nanos>,
    pub return_cpu: Option<Nanos>,
    pub load_cpu: Option<Nanos>,
    pub path: TextId,
    pub interpreter: Option<TextId>,
    pub argv: TextId,
    pub argv_bytes: u64,
    pub cwd: Option<TextId>,
    pub load_opens: Option<u32>,
    pub load_failed_opens: Option<u32>,
    pub load_cache: Option<bool>,
}

/// One failed `execve`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct FailedExecRow {
    pub launch: LaunchId,
    pub enter: Nanos,
    pub returned: Nanos,
    pub path: TextId,
    pub errno: i32,
}

/// A thread other than the first of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct ThreadRow {
    pub task: TaskId,
    pub launch: LaunchId,
    pub creator: Option<TaskId>,
    pub tid: Pid,
    pub created: Nanos,
    pub ended: Option<Nanos>,
    pub cpu: Option<Nanos>,
}

/// A stretch of a thread on a CPU, and the stretch off it that followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct SliceRow {
    pub task: TaskId,
    pub off: Nanos,
    pub on_span: Option<Nanos>,
    pub off_span: Option<Nanos>,
    pub wake_span: Option<Nanos>,
    pub reason: LeftCpu,
    /// The number on x86-64, regardless of the machine: see `event::syscalls`.
    pub syscall: Option<u16>,
    pub argument: Option<u64>,
    pub waker: Option<WakerRow>,
    /// Also true if certainty was not recorded.
    pub is_waker_certain: bool,
    pub object: Option<ObjectRef>,
    /// Also 0 if calls were not counted.
    pub calls: u32,
}

impl SliceRow {
    /// Whether the thread was still off the CPU when the recording ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.off_span.is_none() && self.reason != LeftCpu::Ended
    }

    /// Whether the thread was still waiting when the recording ended.
    #[must_use]
    pub fn is_open_wait(&self) -> bool {
        let waits = !matches!(self.reason, LeftCpu::Created | LeftCpu::Preempted);
        self.is_open() && waits && self.wake_span.is_none()
    }
}

/// What a thread did at an instant, or what it started to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct SampleRow {
    pub task: TaskId,
    pub at: Nanos,
    pub span: Nanos,
    pub is_waiting: bool,
    pub stack: StackId,
}

/// An object that threads waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "schema.sql documents the columns")]
pub struct ObjectRow {
    pub kind: ObjectKind,
    pub device: u32,
    pub inode: u64,
    pub path: Option<TextId>,
}

/// Refers to one of a recording's objects and includes its kind, which is needed for every slice. A recording may have millions of these
/// references, so both share one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef(NonZeroU32);

impl ObjectRef {
    const KIND_BITS: u32 = 5;
    /// The maximum number of distinct objects.
    const MOST: usize = 1 << (u32::BITS - Self::KIND_BITS);

    /// Returns the reference to the object at an index, or `None` if there are too many objects.
    #[must_use]
    pub fn new(kind: ObjectKind, place: usize) -> Option<ObjectRef> {
        let place = u32::try_from(place)
            .ok()
            .filter(|place| (*place as usize) < Self::MOST)?;
        NonZeroU32::new(place << Self::KIND_BITS | (kind as u32 + 1)).map(ObjectRef)
    }

    /// Returns the kind of the object.
    #[must_use]
    pub fn kind(self) -> ObjectKind {
        let number = (self.0.get() & ((1 << Self::KIND_BITS) - 1)) - 1;
        ObjectKind::ALL[number as usize]
    }

    /// Returns the index among the recording's objects.
    #[must_use]
    pub fn place(self) -> usize {
        (self.0.get() >> Self::KIND_BITS) as usize
    }
}

/// What woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakerRow {
    /// A followed thread.
    Task(TaskId),
    /// A thread that is not followed, with its name. The pid is 0 if it is not visible in the recorder's pid namespace.
    Other(Pid, Option<TextId>),
    /// An interrupt.
    Interrupt,
}

/// The strings of a recording, in one allocation.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Adds a string and returns the reference to it.
    pub fn push(&mut self, text: &[u8]) -> TextId {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        TextId(u32::try_from(self.ends.len() - 1).unwrap_or(u32::MAX))
    }

    /// Returns the string; empty if the reference is invalid.
    #[must_use]
    pub fn get(&self, id: TextId) -> &[u8] {
        let index = id.0 as usize;
        let Some(&end) = self.ends.get(index) else { return &[] };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_holds_place_and_kind() {
        for kind in ObjectKind::ALL {
            for place in [0, 1, ObjectRef::MOST - 1] {
                let object = ObjectRef::new(kind, place).unwrap();
                assert_eq!((object.kind(), object.place()), (kind, place));
            }
        }
        assert_eq!(ObjectRef::new(ObjectKind::Pipe, ObjectRef::MOST), None);
    }

    #[test]
    fn a_slice_stays_small() {
        assert_eq!(size_of::<SliceRow>(), 112);
    }
}
