//! The columns of each table, with their meaning. `docs/guide/parquet.md` has the same tables, which a test compares. Columns are added at
//! the end; one that changes its meaning or goes raises `DATASET_VERSION`.

use std::borrow::Cow;

use serde_json::{Map, json};

use super::column::Column;
use super::column::Get::{Instant, Int, Long, Real, Text, Truth};
use super::lines::{AdviceLine, CallerLine, ExecLine, LaunchLine, RunLine, Tried, WaitLine};
use crate::analyze::build_labels::BuildLabel;
use crate::analyze::launch::Outcome;
use crate::analyze::phases::Phase;
use crate::analyze::waits::attribution::{WaitedFor, Who};
use crate::analyze::{Report, Scope};
use crate::event::{Nanos, syscalls};
use crate::present::{ndjson, text};

const RUN: &str = "the recording: a hash of its contents";

fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn int(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

fn span(time: Option<Nanos>) -> Option<i64> {
    time.map(|time| long(time.0))
}

/// Names are bytes, and columns are UTF-8: other bytes become U+FFFD.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn label<'r>(report: &'r Report, key: &str) -> Option<Cow<'r, str>> {
    let label = report.labels.iter().find(|label| label.key == key)?;
    Some(Cow::Borrowed(&label.value))
}

fn code(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Code(code) => Some(code),
        _ => None,
    }
}

fn signal(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Signal { number, .. } => Some(number),
        _ => None,
    }
}

pub(super) fn runs<'a>() -> Vec<Column<RunLine<'a>>> {
    let required = Column::<RunLine<'a>>::required;
    let optional = Column::<RunLine<'a>>::optional;
    vec![
        required("run", Text(|line| Some(line.0.run.into())), RUN),
        required(
            "started",
            Instant(|line| Some(line.0.forest.started_unix_ns.div_euclid(1_000))),
            "when the recording began, UTC",
        ),
        optional("commit", Text(|line| label(line.0.report, "commit")), "label `commit`"),
        optional("branch", Text(|line| label(line.0.report, "branch")), "label `branch`"),
        optional(
            "ci_run",
            Text(|line| label(line.0.report, "run")),
            "label `run`: the number of the CI service",
        ),
        optional(
            "attempt",
            Text(|line| label(line.0.report, "attempt")),
            "label `attempt`, from 1",
        ),
        optional(
            "host",
            Text(|line| label(line.0.report, "host")),
            "label `host`: `uname -n`",
        ),
        optional(
            "kernel",
            Text(|line| label(line.0.report, "kernel")),
            "label `kernel`: `uname -r`",
        ),
        optional(
            "arch",
            Text(|line| label(line.0.report, "arch")),
            "label `arch`: `uname -m`",
        ),
        optional(
            "cpu",
            Text(|line| label(line.0.report, "cpu")),
            "label `cpu`: the processor's model",
        ),
        optional(
            "image",
            Text(|line| label(line.0.report, "image")),
            "label `image`: of the container",
        ),
        required(
            "labels",
            Text(|line| {
                let labels = line.0.report.labels.iter();
                let object: Map<_, _> = labels.map(|label| (label.key.clone(), json!(label.value))).collect();
                Some(serde_json::Value::Object(object).to_string().into())
            }),
            "all labels, as a JSON object",
        ),
        optional(
            "command",
            Text(|line| {
                let command = &line.0.report.command;
                let shown = || text::command_line(command.iter().map(Vec::as_slice), None).into();
                (!command.is_empty()).then(shown)
            }),
            "the command, quoted for a shell; NULL without one (-p, -a)",
        ),
        required(
            "scope",
            Text(|line| {
                Some(Cow::Borrowed(match line.0.report.scope {
                    Scope::Command => "command",
                    Scope::Process => "process",
                    Scope::System => "system",
                }))
            }),
            "`command`, `process` (-p) or `system` (-a)",
        ),
        required(
            "collector",
            Text(|line| Some(line.0.report.collector.as_str().into())),
            "`ebpf`, `ptrace` or `perf`",
        ),
        required(
            "recorder",
            Text(|line| Some(line.0.recorder.into())),
            "the version of spawnscope that recorded",
        ),
        required(
            "cpus",
            Int(|line| Some(int(line.0.report.cpus))),
            "CPUs online at the start",
        ),
        optional(
            "allowed_cpus",
            Real(|line| line.0.report.allowed_cpus),
            "CPUs that the command might use",
        ),
        required(
            "wall_ns",
            Long(|line| span(Some(line.0.report.wall))),
            "from the start to the end of the command or of the recording",
        ),
        optional(
            "ended",
            Text(|line| line.0.report.ended.as_deref().map(Cow::from)),
            "`exited`, `interrupted`, `duration`, `failed: WHY`; NULL: the recorder was killed",
        ),
        optional(
            "exit_code",
            Int(|line| line.0.report.exit.and_then(code)),
            "of the command; NULL also if a signal killed it",
        ),
        required(
            "launches",
            Long(|line| Some(long(line.0.report.all.count))),
            "number of launches",
        ),
        required(
            "failed_execs",
            Long(|line| Some(long(line.0.report.all.failed_execs))),
            "number of failed execs",
        ),
        required(
            "forks_without_exec",
            Long(|line| Some(long(line.0.report.all.forks_without_exec))),
            "number of forks that never exec",
        ),
        optional(
            "tax_ns",
            Long(|line| span(line.0.report.all.tax)),
            "launch tax, summed over launches",
        ),
        optional(
            "critical_tax_ns",
            Long(|line| span(line.0.report.all.critical_tax)),
            "launch tax on the critical path",
        ),
        optional(
            "replay_error",
            Real(|line| line.0.report.replay_error),
            "error of the replay, as a share of the wall",
        ),
        required(
            "lost_events",
            Long(|line| Some(long(line.0.report.lost_events()))),
            "events that were lost: counts and times are too low if not 0",
        ),
    ]
}

pub(super) fn launches<'a>() -> Vec<Column<LaunchLine<'a>>> {
    let required = Column::<LaunchLine<'a>>::required;
    let optional = Column::<LaunchLine<'a>>::optional;
    vec![
        required("run", Text(|line| Some(line.run.into())), RUN),
        required(
            "launch",
            Long(|line| Some(long(line.launch.id.0))),
            "its number in the recording, in order of creation",
        ),
        optional(
            "parent",
            Long(|line| line.launch.parent.get().map(|id| long(id.0))),
            "`launch` of the process that requested it",
        ),
        optional("pid", Int(|line| line.launch.pid.map(|pid| pid.0)), "its pid"),
        required(
            "depth",
            Int(|line| Some(int(line.launch.depth))),
            "its depth in the tree",
        ),
        required(
            "origin",
            Text(|line| Some(Cow::Borrowed(ndjson::origin_name(line.launch.origin)))),
            "`launched`, `command` (the recorded command) or `orphan` (its creation was lost)",
        ),
        optional(
            "mechanism",
            Text(|line| line.launch.mechanism.map(|mechanism| mechanism.name().into())),
            "`fork`, `vfork`, `posix_spawn`, `clone` or `clone3`",
        ),
        required(
            "command",
            Text(|line| {
                Some(
                    String::from_utf8_lossy(&line.launch.command.label())
                        .into_owned()
                        .into(),
                )
            }),
            "base name of its last program; in parentheses if it never executed one",
        ),
        optional(
            "caller",
            Int(|line| line.caller),
            "`caller` of its call site in `callers`",
        ),
        optional(
            "start_ns",
            Long(|line| span(line.launch.start())),
            "when its parent called for it, since the recording began",
        ),
        optional(
            "total_ns",
            Long(|line| span(line.launch.end().and(line.launch.total(line.forest.end)))),
            "from there to its reaping; NULL: it had not ended",
        ),
        optional(
            "create_ns",
            Long(|line| span(line.launch.phases.get(Phase::Create))),
            "phase create: from the parent's call until the process exists",
        ),
        optional(
            "queue_ns",
            Long(|line| span(line.launch.phases.get(Phase::Queue))),
            "phase queue: waiting for the first CPU",
        ),
        optional(
            "setup_ns",
            Long(|line| span(line.launch.phases.get(Phase::Setup))),
            "phase setup: until the exec",
        ),
        optional(
            "exec_ns",
            Long(|line| span(line.launch.phases.get(Phase::Exec))),
            "phase exec: within successful execs",
        ),
        optional(
            "load_ns",
            Long(|line| span(line.launch.phases.get(Phase::Load))),
            "phase load: the dynamic loader",
        ),
        optional(
            "run_ns",
            Long(|line| span(line.launch.phases.get(Phase::Run))),
            "phase run: the program's own work",
        ),
        optional(
            "teardown_ns",
            Long(|line| span(line.launch.phases.get(Phase::Teardown))),
            "phase teardown: from the start of its exit",
        ),
        optional(
            "reap_ns",
            Long(|line| span(line.launch.phases.get(Phase::Reap))),
            "phase reap: until the parent's wait returned",
        ),
        optional(
            "cpu_ns",
            Long(|line| span(line.launch.cpu.get())),
            "CPU time of its threads",
        ),
        optional(
            "critical_ns",
            Long(|line| span(line.critical())),
            "its time on the critical path",
        ),
        optional(
            "critical_tax_ns",
            Long(|line| span(line.critical_tax())),
            "its launch tax on the critical path",
        ),
        optional(
            "exit_code",
            Int(|line| code(line.launch.outcome)),
            "how it exited; NULL also if a signal killed it",
        ),
        optional(
            "exit_signal",
            Int(|line| signal(line.launch.outcome)),
            "the signal that killed it",
        ),
        optional(
            "parent_rss_bytes",
            Long(|line| line.launch.parent_rss_bytes.get().map(long)),
            "resident memory of the parent at its creation",
        ),
        optional(
            "target",
            Text(|line| line.label(BuildLabel::Target)),
            "label `target`: the file that a compiler, linker or archiver above it makes",
        ),
        optional(
            "crate",
            Text(|line| line.label(BuildLabel::Crate)),
            "label `crate`: the crate that cargo builds, runs the build script of, or tests",
        ),
        optional(
            "directory",
            Text(|line| line.label(BuildLabel::Directory)),
            "label `directory`: where the make or ninja above it works, relative to the directory of the command",
        ),
    ]
}

pub(super) fn execs<'a>() -> Vec<Column<ExecLine<'a>>> {
    let required = Column::<ExecLine<'a>>::required;
    let optional = Column::<ExecLine<'a>>::optional;
    vec![
        required("run", Text(|line| Some(line.run.into())), RUN),
        required(
            "launch",
            Long(|line| Some(long(line.launch))),
            "`launch` of the process; its successful execs are in order, then those that failed",
        ),
        required(
            "path",
            Text(|line| {
                Some(lossy(match &line.exec {
                    Tried::Done(exec) => exec.path(),
                    Tried::Failed(failed) => failed.path,
                }))
            }),
            "the file as given",
        ),
        optional(
            "command_line",
            Text(|line| match &line.exec {
                Tried::Done(exec) => Some(text::command_line(exec.arguments(), None).into()),
                Tried::Failed(_) => None,
            }),
            "the arguments, quoted for a shell, secrets masked; NULL if it failed",
        ),
        optional(
            "command_line_cut",
            Truth(|line| line.done().map(|exec| exec.argv_cut)),
            "whether the arguments were too long to be recorded whole",
        ),
        optional(
            "interpreter",
            Text(|line| line.done().and_then(|exec| exec.interpreter()).map(lossy)),
            "interpreter of a `#!` script",
        ),
        optional(
            "cwd",
            Text(|line| line.done().and_then(|exec| exec.cwd()).map(lossy)),
            "working directory",
        ),
        optional(
            "enter_ns",
            Long(|line| match &line.exec {
                Tried::Done(exec) => span(exec.enter.get()),
                Tried::Failed(failed) => span(Some(failed.enter)),
            }),
            "when it was called, since the recording began",
        ),
        optional(
            "exec_ns",
            Long(|line| match &line.exec {
                Tried::Done(exec) => span(
                    exec.enter
                        .get()
                        .and_then(|enter| Some(exec.returned.get()?.since(enter))),
                ),
                Tried::Failed(failed) => span(Some(failed.cost())),
            }),
            "time within the call",
        ),
        optional(
            "load_ns",
            Long(|line| span(line.done().and_then(|exec| exec.load()))),
            "time in the dynamic loader; 0 for a static program",
        ),
        optional(
            "load_opens",
            Int(|line| line.done().and_then(|exec| exec.load_opens).map(int)),
            "files that the loader opened",
        ),
        optional(
            "load_failed_opens",
            Int(|line| line.done().and_then(|exec| exec.load_failed_opens).map(int)),
            "its look-ups without success",
        ),
        optional(
            "errno",
            Int(|line| match &line.exec {
                Tried::Done(_) => None,
                Tried::Failed(failed) => Some(failed.errno),
            }),
            "why it failed; NULL: it did not",
        ),
    ]
}

pub(super) fn callers<'a>() -> Vec<Column<CallerLine<'a>>> {
    let required = Column::<CallerLine<'a>>::required;
    let optional = Column::<CallerLine<'a>>::optional;
    vec![
        required("run", Text(|line| Some(line.run.into())), RUN),
        required(
            "caller",
            Int(|line| Some(line.number)),
            "its number in the recording, which `launches.caller` refers to",
        ),
        required(
            "language",
            Text(|line| Some(line.site.language.name().into())),
            "`native`, `bash`, `dash`, `python`, ...",
        ),
        optional("file", Text(|line| line.site.file.as_deref().map(lossy)), "source file"),
        optional("line", Int(|line| line.site.line.map(int)), "line in it, from 1"),
        optional(
            "function",
            Text(|line| line.site.function.as_deref().map(lossy)),
            "function; NULL also outside of all functions",
        ),
        optional(
            "module",
            Text(|line| line.site.module.as_deref().map(lossy)),
            "ELF file with the machine code",
        ),
        optional(
            "program",
            Text(|line| line.site.program.as_deref().map(lossy)),
            "the program that ran the script, where no file is known",
        ),
        optional(
            "text",
            Text(|line| line.site.text.as_deref().map(lossy)),
            "the line of a script given with -c",
        ),
        required(
            "launches",
            Long(|line| Some(long(line.launches))),
            "launches that it requested",
        ),
        optional("total_ns", Long(|line| span(line.total)), "their wall time, summed"),
        optional("tax_ns", Long(|line| span(line.tax)), "their launch tax, summed"),
        optional(
            "critical_ns",
            Long(|line| span(line.critical)),
            "their time on the critical path, summed",
        ),
    ]
}

pub(super) fn waits<'a>() -> Vec<Column<WaitLine<'a>>> {
    let required = Column::<WaitLine<'a>>::required;
    let optional = Column::<WaitLine<'a>>::optional;
    vec![
        required("run", Text(|line| Some(line.run.into())), RUN),
        required(
            "command",
            Text(|line| Some(lossy(&line.waits.command))),
            "the program that waited",
        ),
        optional(
            "syscall",
            Text(|line| line.waits.syscall.and_then(syscalls::name).map(Cow::from)),
            "the system call",
        ),
        optional(
            "object",
            Text(|line| line.waits.object.as_ref().map(|object| object.kind.name().into())),
            "the kind of object",
        ),
        optional(
            "object_path",
            Text(|line| Some(lossy(line.waits.object.as_ref()?.only.as_ref()?.path.as_deref()?))),
            "its path, if all waits were for the same object",
        ),
        optional(
            "on",
            Text(|line| line.most().map(|most| kind(&most.who).into())),
            "what ended most of the waits: `launch`, `process` (not recorded) or `scanner`",
        ),
        optional(
            "on_name",
            Text(|line| line.most().and_then(|most| name(&most.who)).map(lossy)),
            "its program",
        ),
        required("count", Long(|line| Some(long(line.waits.count))), "number of waits"),
        required(
            "total_ns",
            Long(|line| span(Some(line.waits.parts.total()))),
            "their sum",
        ),
        required(
            "tax_ns",
            Long(|line| span(Some(line.waits.parts.tax))),
            "of it, launch tax",
        ),
        required(
            "run_ns",
            Long(|line| span(Some(line.waits.parts.run))),
            "of it, phase run",
        ),
        required(
            "run_waiting_ns",
            Long(|line| span(Some(line.waits.parts.run_waiting))),
            "of the phase run, waits",
        ),
        required(
            "reap_ns",
            Long(|line| span(Some(line.waits.parts.reap))),
            "of it, late reaping",
        ),
        required(
            "queue_ns",
            Long(|line| span(Some(line.waits.parts.queue))),
            "of it, waiting for a CPU",
        ),
        required(
            "other_ns",
            Long(|line| span(Some(line.waits.parts.other))),
            "of it, all else",
        ),
    ]
}

impl<'a> ExecLine<'a> {
    fn done(&self) -> Option<&'a crate::analyze::launch::Exec<'a>> {
        match self.exec {
            Tried::Done(exec) => Some(exec),
            Tried::Failed(_) => None,
        }
    }
}

impl WaitLine<'_> {
    fn most(&self) -> Option<&WaitedFor> {
        self.waits.on.first()
    }
}

fn kind(who: &Who) -> &'static str {
    match who {
        Who::Launches { .. } => "launch",
        Who::Process(_) => "process",
        Who::Scanner(_) => "scanner",
    }
}

fn name(who: &Who) -> Option<&[u8]> {
    match who {
        Who::Launches { command, .. } => Some(command),
        Who::Process(name) | Who::Scanner(name) => name.as_deref(),
    }
}

pub(super) fn advice<'a>() -> Vec<Column<AdviceLine<'a>>> {
    let required = Column::<AdviceLine<'a>>::required;
    let optional = Column::<AdviceLine<'a>>::optional;
    vec![
        required("run", Text(|line| Some(line.run.into())), RUN),
        required(
            "rule",
            Text(|line| Some(line.advice.finding.rule.into())),
            "the rule that found it; the same finding has the same rule in all runs",
        ),
        required(
            "title",
            Text(|line| Some(line.advice.finding.title.as_str().into())),
            "the problem",
        ),
        required(
            "saving_ns",
            Long(|line| span(Some(line.advice.saving[0]))),
            "wall that the fix saves, as predicted",
        ),
        required(
            "saving_low_ns",
            Long(|line| span(Some(line.advice.saving[1]))),
            "lower end of its confidence interval",
        ),
        required(
            "saving_high_ns",
            Long(|line| span(Some(line.advice.saving[2]))),
            "upper end",
        ),
        required(
            "launches",
            Long(|line| Some(long(line.advice.finding.launches.len() as u64))),
            "number of launches it affects",
        ),
        optional(
            "file",
            Text(|line| Some(lossy(line.advice.callers.most.first()?.0.file.as_deref()?))),
            "file of the call site with most of them",
        ),
        optional(
            "line",
            Int(|line| line.advice.callers.most.first()?.0.line.map(int)),
            "line in it",
        ),
        required(
            "fix",
            Text(|line| Some(line.advice.finding.fix.join("\n").into())),
            "what to do",
        ),
        required(
            "is_foreign",
            Truth(|line| Some(line.advice.foreign.is_some())),
            "whether that code is generated, or somebody else's",
        ),
    ]
}
