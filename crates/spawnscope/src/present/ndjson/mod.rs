//! A line with a JSON object for each launch, in order of creation. Waits are serialized one by one while they are written, because the root of
//! a recording may have a million of them. See `json` for bytes that are not UTF-8. Instants are nanoseconds since the start of the recording.

mod caller;

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::json::hex;
use super::words::signal_name;
use crate::analyze::callers::{CallSite, Callers, Detail};
use crate::analyze::launch::{Exec, FailedExec, Outcome};
use crate::analyze::phases::{Phase, PhaseTimes};
use crate::analyze::waits::{Wait, WaitedObject, Waker};
use crate::analyze::{Forest, Origin, Waits};
use crate::event::{LeftCpu, Nanos};
use caller::CallerObject;

/// Writes every launch. Processes that existed before the recording are not launches.
pub fn write(out: &mut dyn Write, forest: &Forest<'_>, waits: &Waits<'_>) -> io::Result<()> {
    let callers = Callers::find(forest, Detail::Line);
    for index in (0..forest.launches.len()).filter(|index| forest.launches[*index].is_launch()) {
        write_launch(out, forest, waits, callers.call_site_of(index), index)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_launch(
    out: &mut dyn Write,
    forest: &Forest<'_>,
    waits: &Waits<'_>,
    call_site: Option<&CallSite>,
    index: usize,
) -> io::Result<()> {
    let launch = &forest.launches[index];
    let label = launch.command.label();
    let line = LaunchLine {
        id: launch.id.0,
        parent: launch.parent.get().map(|parent| parent.0),
        pid: launch.pid.map(|pid| pid.0),
        command: lossy(&label),
        command_hex: hex_unless_text(&label),
        origin: origin_name(launch.origin),
        start_ns: nanos(launch.start()),
        end_ns: nanos(launch.end()),
        mechanism: launch.mechanism.map(|mechanism| mechanism.name()),
        parent_rss_bytes: launch.parent_rss_bytes.get(),
        execs: LazyArray(launch.execs.iter().map(ExecObject::new)),
        failed_execs: LazyArray(forest.failed_execs(index).map(FailedExecObject::new)),
        phases: PhasesObject(&launch.phases),
        cpu_ns: nanos(launch.cpu.get()),
        cpu_phases: PhasesObject(&launch.cpu_phases),
        setup_closes: launch.setup_closes,
        setup_close_ns: nanos(launch.setup_close_span.get()),
        waits: LazyArray(waits.of_launch(index).map(|wait| WaitObject::new(forest, &wait))),
        exit: ExitObject::new(launch.outcome),
        caller: CallerObject::new(forest, launch, call_site),
    };
    Ok(serde_json::to_writer(out, &line)?)
}

/// An array whose objects are created one by one while they are written.
struct LazyArray<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for LazyArray<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

#[derive(Serialize)]
struct LaunchLine<'a, Execs, FailedExecs, Waits> {
    id: u64,
    parent: Option<u64>,
    pid: Option<i32>,
    command: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_hex: Option<String>,
    origin: &'static str,
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    mechanism: Option<&'static str>,
    parent_rss_bytes: Option<u64>,
    execs: Execs,
    failed_execs: FailedExecs,
    phases: PhasesObject<'a>,
    cpu_ns: Option<u64>,
    cpu_phases: PhasesObject<'a>,
    setup_closes: Option<u32>,
    setup_close_ns: Option<u64>,
    waits: Waits,
    exit: Option<ExitObject>,
    caller: Option<CallerObject<'a>>,
}

#[derive(Serialize)]
struct ExecObject<'a> {
    path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    argv: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv_hex: Option<Vec<String>>,
    argv_cut: bool,
    cwd: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd_hex: Option<String>,
    interpreter: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter_hex: Option<String>,
    enter_ns: Option<u64>,
    return_ns: Option<u64>,
    load_ns: Option<u64>,
    load_opens: Option<u32>,
    load_failed_opens: Option<u32>,
    load_cache: Option<bool>,
}

impl<'a> ExecObject<'a> {
    fn new(exec: &Exec<'a>) -> ExecObject<'a> {
        let is_text = exec.arguments().all(|argument| std::str::from_utf8(argument).is_ok());
        ExecObject {
            path: lossy(exec.path()),
            path_hex: hex_unless_text(exec.path()),
            argv: exec.arguments().map(lossy).collect(),
            argv_hex: (!is_text).then(|| exec.arguments().map(hex).collect()),
            argv_cut: exec.argv_cut,
            cwd: exec.cwd().map(lossy),
            cwd_hex: exec.cwd().and_then(hex_unless_text),
            interpreter: exec.interpreter().map(lossy),
            interpreter_hex: exec.interpreter().and_then(hex_unless_text),
            enter_ns: nanos(exec.enter.get()),
            return_ns: nanos(exec.returned.get()),
            load_ns: nanos(exec.loaded.get()),
            load_opens: exec.load_opens,
            load_failed_opens: exec.load_failed_opens,
            load_cache: exec.load_cache,
        }
    }
}

#[derive(Serialize)]
struct FailedExecObject<'a> {
    path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    errno: i32,
    enter_ns: u64,
    return_ns: u64,
}

impl<'a> FailedExecObject<'a> {
    fn new(failed: FailedExec<'a>) -> FailedExecObject<'a> {
        FailedExecObject {
            path: lossy(failed.path),
            path_hex: hex_unless_text(failed.path),
            errno: failed.errno,
            enter_ns: failed.enter.0,
            return_ns: failed.returned.0,
        }
    }
}

struct PhasesObject<'a>(&'a PhaseTimes);

impl Serialize for PhasesObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(phase, span): (Phase, _)| (phase.name(), nanos(span))))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ExitObject {
    Code { code: i32, signal: () },
    Signal { code: (), signal: String, number: i32, core_dumped: bool },
}

impl ExitObject {
    pub(super) fn new(outcome: Outcome) -> Option<ExitObject> {
        match outcome {
            Outcome::Running | Outcome::Unknown => None,
            Outcome::Code(code) => Some(ExitObject::Code { code, signal: () }),
            Outcome::Signal { number, core_dumped } => {
                Some(ExitObject::Signal { code: (), signal: signal_name(number), number, core_dumped })
            }
        }
    }
}

#[derive(Serialize)]
struct WaitObject<'a> {
    task: u64,
    start_ns: u64,
    end_ns: Option<u64>,
    woken_ns: Option<u64>,
    reason: &'static str,
    syscall: Option<u16>,
    /// Signed, as in the schema: `wait4(-1)` reads as -1, and JSON readers do not round it.
    argument: Option<i64>,
    object: Option<WaitedOnObject<'a>>,
    waker: Option<WakerObject<'a>>,
    /// Present only if an interrupt may have woken the thread instead of this waker.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    waker_in_doubt: bool,
}

impl<'a> WaitObject<'a> {
    fn new(forest: &Forest<'_>, wait: &Wait<'a>) -> WaitObject<'a> {
        WaitObject {
            task: wait.task.0,
            start_ns: wait.start.0,
            end_ns: nanos(wait.end),
            woken_ns: nanos(wait.woken),
            reason: reason_name(wait.reason),
            syscall: wait.syscall,
            argument: wait.argument.map(u64::cast_signed),
            object: wait.object.map(WaitedOnObject::new),
            waker: wait.waker.map(|waker| WakerObject::new(forest, waker)),
            waker_in_doubt: !wait.is_waker_certain,
        }
    }
}

#[derive(Serialize)]
struct WaitedOnObject<'a> {
    kind: &'static str,
    device: u32,
    inode: u64,
    path: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

impl<'a> WaitedOnObject<'a> {
    fn new(object: WaitedObject<'a>) -> WaitedOnObject<'a> {
        WaitedOnObject {
            kind: object.kind.name(),
            device: object.device,
            inode: object.inode,
            path: object.path.map(lossy),
            path_hex: object.path.and_then(hex_unless_text),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum WakerObject<'a> {
    Task {
        task: u64,
        launch: Option<u64>,
    },
    Other {
        pid: i32,
        name: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name_hex: Option<String>,
    },
    Interrupt,
}

impl<'a> WakerObject<'a> {
    fn new(forest: &Forest<'_>, waker: Waker<'a>) -> WakerObject<'a> {
        match waker {
            Waker::Task { task, launch } => {
                WakerObject::Task { task: task.0, launch: launch.map(|index| forest.launches[index].id.0) }
            }
            Waker::Other { pid, name } => {
                WakerObject::Other { pid: pid.0, name: name.map(lossy), name_hex: name.and_then(hex_unless_text) }
            }
            Waker::Interrupt => WakerObject::Interrupt,
        }
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn hex_unless_text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).is_err().then(|| hex(bytes))
}

fn nanos(value: Option<Nanos>) -> Option<u64> {
    value.map(|value| value.0)
}

pub(super) fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Launched => "launched",
        Origin::Command => "command",
        Origin::Existed => "existed",
        Origin::Orphan => "orphan",
    }
}

fn reason_name(reason: LeftCpu) -> &'static str {
    match reason {
        LeftCpu::Created => "created",
        LeftCpu::Preempted => "preempted",
        LeftCpu::Interruptible => "interruptible",
        LeftCpu::Uninterruptible => "uninterruptible",
        LeftCpu::Stopped => "stopped",
        LeftCpu::Ended => "ended",
    }
}
