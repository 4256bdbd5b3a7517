//! The columns of the table `execs`.

use super::super::column::Column;
use super::super::column::Getter::{Bool, Int, Long, Text};
use super::super::rows::{ExecAttempt, ExecRow};
use super::{RUN, int, long, lossy, span};
use crate::analyze::launch::Exec;
use crate::present::text;

impl<'a> ExecRow<'a> {
    fn succeeded(&self) -> Option<&'a Exec<'a>> {
        match self.exec {
            ExecAttempt::Succeeded(exec) => Some(exec),
            ExecAttempt::Failed(_) => None,
        }
    }
}

pub(in super::super) fn execs<'a>() -> Vec<Column<ExecRow<'a>>> {
    let required = Column::<ExecRow<'a>>::required;
    let optional = Column::<ExecRow<'a>>::optional;
    vec![
        required("run", Text(|row| Some(row.run.into())), RUN),
        required(
            "launch",
            Long(|row| Some(long(row.launch))),
            "the process, as in `launches.launch`; its successful execs come first, in order, then the failed ones",
        ),
        required(
            "path",
            Text(|row| {
                Some(lossy(match &row.exec {
                    ExecAttempt::Succeeded(exec) => exec.path(),
                    ExecAttempt::Failed(failed) => failed.path,
                }))
            }),
            "the file as given",
        ),
        optional(
            "command_line",
            Text(|row| match &row.exec {
                ExecAttempt::Succeeded(exec) => Some(text::command_line(exec.arguments(), None).into()),
                ExecAttempt::Failed(_) => None,
            }),
            "the arguments, quoted for a shell, secrets masked; NULL if it failed",
        ),
        optional(
            "command_line_cut",
            Bool(|row| row.succeeded().map(|exec| exec.argv_cut)),
            "whether the arguments were too long to be recorded completely",
        ),
        optional(
            "interpreter",
            Text(|row| row.succeeded().and_then(|exec| exec.interpreter()).map(lossy)),
            "interpreter of a `#!` script",
        ),
        optional("cwd", Text(|row| row.succeeded().and_then(|exec| exec.cwd()).map(lossy)), "working directory"),
        optional(
            "enter_ns",
            Long(|row| match &row.exec {
                ExecAttempt::Succeeded(exec) => span(exec.enter.get()),
                ExecAttempt::Failed(failed) => span(Some(failed.enter)),
            }),
            "time of the call, since the recording began",
        ),
        optional(
            "exec_ns",
            Long(|row| match &row.exec {
                ExecAttempt::Succeeded(exec) => {
                    span(exec.enter.get().and_then(|enter| Some(exec.returned.get()?.since(enter))))
                }
                ExecAttempt::Failed(failed) => span(Some(failed.cost())),
            }),
            "time within the call",
        ),
        optional(
            "load_ns",
            Long(|row| span(row.succeeded().and_then(|exec| exec.load()))),
            "time in the dynamic loader; 0 for a static program",
        ),
        optional(
            "load_opens",
            Int(|row| row.succeeded().and_then(|exec| exec.load_opens).map(int)),
            "files that the loader opened",
        ),
        optional(
            "load_failed_opens",
            Int(|row| row.succeeded().and_then(|exec| exec.load_failed_opens).map(int)),
            "look-ups by the loader that found no file",
        ),
        optional(
            "errno",
            Int(|row| match &row.exec {
                ExecAttempt::Succeeded(_) => None,
                ExecAttempt::Failed(failed) => Some(failed.errno),
            }),
            "error number of a failed exec; NULL if it succeeded",
        ),
    ]
}
