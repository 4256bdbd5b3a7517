//! The columns of the table `runs`.

use std::borrow::Cow;

use serde_json::{Map, json};

use super::super::column::Column;
use super::super::column::Getter::{Instant, Int, Long, Real, Text};
use super::super::rows::RunRow;
use super::{RUN, exit_code, int, long, span};
use crate::analyze::{Report, Scope};
use crate::present::text;

fn label<'r>(report: &'r Report, key: &str) -> Option<Cow<'r, str>> {
    let label = report.info.labels.iter().find(|label| label.key == key)?;
    Some(Cow::Borrowed(&label.value))
}

pub(in super::super) fn runs<'a>() -> Vec<Column<RunRow<'a>>> {
    let required = Column::<RunRow<'a>>::required;
    let optional = Column::<RunRow<'a>>::optional;
    vec![
        required("run", Text(|row| Some(row.0.run.into())), RUN),
        required(
            "started",
            Instant(|row| Some(row.0.forest.started_unix_ns.div_euclid(1_000))),
            "when the recording began, UTC",
        ),
        optional("commit", Text(|row| label(row.0.report, "commit")), "label `commit`"),
        optional("branch", Text(|row| label(row.0.report, "branch")), "label `branch`"),
        optional("ci_run", Text(|row| label(row.0.report, "run")), "label `run`: the run's number in the CI service"),
        optional("attempt", Text(|row| label(row.0.report, "attempt")), "label `attempt`, from 1"),
        optional("host", Text(|row| label(row.0.report, "host")), "label `host`: `uname -n`"),
        optional("kernel", Text(|row| label(row.0.report, "kernel")), "label `kernel`: `uname -r`"),
        optional("arch", Text(|row| label(row.0.report, "arch")), "label `arch`: `uname -m`"),
        optional("cpu", Text(|row| label(row.0.report, "cpu")), "label `cpu`: the processor's model"),
        optional("image", Text(|row| label(row.0.report, "image")), "label `image`: the container's image"),
        required(
            "labels",
            Text(|row| {
                let labels = row.0.report.info.labels.iter();
                let object: Map<_, _> = labels.map(|label| (label.key.clone(), json!(label.value))).collect();
                Some(serde_json::Value::Object(object).to_string().into())
            }),
            "all labels, as a JSON object",
        ),
        optional(
            "command",
            Text(|row| {
                let command = &row.0.report.info.command;
                (!command.is_empty()).then(|| text::command_line(command.iter().map(Vec::as_slice), None).into())
            }),
            "the command, quoted for a shell; NULL without one (-p, -a)",
        ),
        required(
            "scope",
            Text(|row| {
                Some(Cow::Borrowed(match row.0.report.info.scope {
                    Scope::Command => "command",
                    Scope::Process => "process",
                    Scope::System => "system",
                }))
            }),
            "`command`, `process` (-p) or `system` (-a)",
        ),
        required(
            "collector",
            Text(|row| Some(row.0.report.info.collector.as_str().into())),
            "`ebpf`, `ptrace` or `perf`",
        ),
        required(
            "recorder",
            Text(|row| Some(row.0.recorder.into())),
            "the version of spawnscope that made the recording",
        ),
        required("cpus", Int(|row| Some(int(row.0.report.info.cpus))), "number of CPUs online at the start"),
        optional(
            "allowed_cpus",
            Real(|row| row.0.report.info.allowed_cpus),
            "number of CPUs that the command was allowed to use",
        ),
        required(
            "wall_ns",
            Long(|row| span(Some(row.0.report.wall))),
            "from the start to the end of the command or of the recording",
        ),
        optional(
            "ended",
            Text(|row| row.0.report.info.ended.as_deref().map(Cow::from)),
            "`exited`, `interrupted`, `duration`, `failed: WHY`; NULL: the recorder was killed",
        ),
        optional(
            "exit_code",
            Int(|row| row.0.report.exit.and_then(exit_code)),
            "exit code of the command; NULL if unknown or if a signal killed it",
        ),
        required("launches", Long(|row| Some(long(row.0.report.all.count))), "number of launches"),
        required("failed_execs", Long(|row| Some(long(row.0.report.all.failed_execs))), "number of failed execs"),
        required(
            "forks_without_exec",
            Long(|row| Some(long(row.0.report.all.forks_without_exec))),
            "number of forks without exec",
        ),
        optional("tax_ns", Long(|row| span(row.0.report.all.tax)), "launch tax, summed over launches"),
        optional("critical_tax_ns", Long(|row| span(row.0.report.all.critical_tax)), "launch tax on the critical path"),
        optional("replay_error", Real(|row| row.0.report.replay_error), "error of the replay, as a share of the wall"),
        required(
            "lost_events",
            Long(|row| Some(long(row.0.report.lost_events()))),
            "events that were lost: counts and times are too low if not 0",
        ),
    ]
}
