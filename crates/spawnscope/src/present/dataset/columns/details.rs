//! The columns of the tables that summarize a recording: `callers`, `waits` and `advice`.

use std::borrow::Cow;

use super::super::column::Column;
use super::super::column::Getter::{Bool, Int, Long, Text};
use super::super::rows::{AdviceRow, CallerRow, WaitRow};
use super::{RUN, int, long, lossy, span};
use crate::analyze::waits::attribution::{WaitTarget, WaitTargets};
use crate::event::syscalls;

pub(in super::super) fn callers<'a>() -> Vec<Column<CallerRow<'a>>> {
    let required = Column::<CallerRow<'a>>::required;
    let optional = Column::<CallerRow<'a>>::optional;
    vec![
        required("run", Text(|row| Some(row.run.into())), RUN),
        required(
            "caller",
            Int(|row| Some(row.number)),
            "its number in the recording, which `launches.caller` refers to",
        ),
        required(
            "language",
            Text(|row| Some(row.site.language.name().into())),
            "`native`, `bash`, `dash`, `python`, `perl`, `make`, `node`, ...",
        ),
        optional("file", Text(|row| row.site.file.as_deref().map(lossy)), "source file"),
        optional("line", Int(|row| row.site.line.map(int)), "line in the file, from 1"),
        optional(
            "function",
            Text(|row| row.site.function.as_deref().map(lossy)),
            "function, or target of make; also NULL outside of functions",
        ),
        optional(
            "module",
            Text(|row| row.site.module.as_deref().map(lossy)),
            "ELF file with the machine code, or template of a generated makefile",
        ),
        optional(
            "program",
            Text(|row| row.site.program.as_deref().map(lossy)),
            "the program that ran the script, if no file is known",
        ),
        optional("text", Text(|row| row.site.text.as_deref().map(lossy)), "the line of a script given with -c"),
        required("launches", Long(|row| Some(long(row.launches))), "number of launches that it requested"),
        optional("total_ns", Long(|row| span(row.total)), "sum of their wall times"),
        optional("tax_ns", Long(|row| span(row.tax)), "sum of their launch tax"),
        optional("critical_ns", Long(|row| span(row.critical)), "sum of their times on the critical path"),
    ]
}

pub(in super::super) fn waits<'a>() -> Vec<Column<WaitRow<'a>>> {
    let required = Column::<WaitRow<'a>>::required;
    let optional = Column::<WaitRow<'a>>::optional;
    vec![
        required("run", Text(|row| Some(row.run.into())), RUN),
        required("command", Text(|row| Some(lossy(&row.waits.command))), "the program that waited"),
        optional("syscall", Text(|row| row.waits.syscall.and_then(syscalls::name).map(Cow::from)), "the system call"),
        optional(
            "object",
            Text(|row| row.waits.object.as_ref().map(|object| object.kind.name().into())),
            "the kind of object that was waited for",
        ),
        optional(
            "object_path",
            Text(|row| Some(lossy(row.waits.object.as_ref()?.path.as_deref()?))),
            "its path, or the address of a socket's peer, if all waits were for the same object",
        ),
        optional(
            "on",
            Text(|row| row.main_target().map(|targets| target_kind(&targets.target).into())),
            "what ended most of the waits: `launch`, `process` (not recorded) or `scanner`",
        ),
        optional(
            "on_name",
            Text(|row| row.main_target().and_then(|targets| target_name(&targets.target)).map(lossy)),
            "the program of the launch, process or scanner",
        ),
        required("count", Long(|row| Some(long(row.waits.count))), "number of waits"),
        required("total_ns", Long(|row| span(Some(row.waits.parts.total()))), "sum of the times of these waits"),
        required("tax_ns", Long(|row| span(Some(row.waits.parts.tax))), "the part that is launch tax"),
        required("run_ns", Long(|row| span(Some(row.waits.parts.run))), "the part that is phase run"),
        required(
            "run_waiting_ns",
            Long(|row| span(Some(row.waits.parts.run_waiting))),
            "the part of phase run during which the launched processes waited",
        ),
        required("reap_ns", Long(|row| span(Some(row.waits.parts.reap))), "the part that is late reaping"),
        required("queue_ns", Long(|row| span(Some(row.waits.parts.queue))), "the part that is waiting for a CPU"),
        required("other_ns", Long(|row| span(Some(row.waits.parts.other))), "the part that is not attributed"),
    ]
}

impl WaitRow<'_> {
    /// Returns the target of most of the waits.
    fn main_target(&self) -> Option<&WaitTargets> {
        self.waits.targets.first()
    }
}

fn target_kind(target: &WaitTarget) -> &'static str {
    match target {
        WaitTarget::Launches { .. } => "launch",
        WaitTarget::Process(_) => "process",
        WaitTarget::Scanner(_) => "scanner",
    }
}

fn target_name(target: &WaitTarget) -> Option<&[u8]> {
    match target {
        WaitTarget::Launches { command, .. } => Some(command),
        WaitTarget::Process(name) | WaitTarget::Scanner(name) => name.as_deref(),
    }
}

pub(in super::super) fn advice<'a>() -> Vec<Column<AdviceRow<'a>>> {
    let required = Column::<AdviceRow<'a>>::required;
    let optional = Column::<AdviceRow<'a>>::optional;
    vec![
        required("run", Text(|row| Some(row.run.into())), RUN),
        required(
            "rule",
            Text(|row| Some(row.advice.finding.rule.into())),
            "the rule that found it; the same finding has the same rule in all runs",
        ),
        required("title", Text(|row| Some(row.advice.finding.title.as_str().into())), "the problem"),
        required("saving_ns", Long(|row| span(Some(row.advice.saving[0]))), "predicted saving of wall time"),
        required("saving_low_ns", Long(|row| span(Some(row.advice.saving[1]))), "lower end of the confidence interval"),
        required(
            "saving_high_ns",
            Long(|row| span(Some(row.advice.saving[2]))),
            "upper end of the confidence interval",
        ),
        required(
            "launches",
            Long(|row| Some(long(row.advice.finding.launches.len() as u64))),
            "number of launches that the fix affects",
        ),
        optional(
            "file",
            Text(|row| Some(lossy(row.advice.callers.largest.first()?.0.file.as_deref()?))),
            "file of the call site with most of these launches",
        ),
        optional("line", Int(|row| row.advice.callers.largest.first()?.0.line.map(int)), "line in this file"),
        required("fix", Text(|row| Some(row.advice.finding.fix.join("\n").into())), "what to do"),
        required(
            "is_foreign",
            Bool(|row| Some(row.advice.foreign.is_some())),
            "whether the code of this call site is generated or third-party",
        ),
    ]
}
