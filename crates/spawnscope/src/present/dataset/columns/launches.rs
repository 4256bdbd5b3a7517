//! The columns of the table `launches`.

use std::borrow::Cow;

use super::super::column::Column;
use super::super::column::Getter::{Int, Long, Text};
use super::super::rows::LaunchRow;
use super::{RUN, exit_code, int, long, span};
use crate::analyze::build_labels::BuildLabel;
use crate::analyze::launch::Outcome;
use crate::analyze::phases::Phase;
use crate::present::ndjson;

fn exit_signal(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Signal { number, .. } => Some(number),
        _ => None,
    }
}

pub(in super::super) fn launches<'a>() -> Vec<Column<LaunchRow<'a>>> {
    let required = Column::<LaunchRow<'a>>::required;
    let optional = Column::<LaunchRow<'a>>::optional;
    vec![
        required("run", Text(|row| Some(row.run.into())), RUN),
        required(
            "launch",
            Long(|row| Some(long(row.launch.id.0))),
            "its number in the recording, in order of creation",
        ),
        optional(
            "parent",
            Long(|row| row.launch.parent.get().map(|id| long(id.0))),
            "the process that requested it, as in `launch`",
        ),
        optional("pid", Int(|row| row.launch.pid.map(|pid| pid.0)), "its pid"),
        required("depth", Int(|row| Some(int(row.launch.depth))), "its depth in the tree"),
        required(
            "origin",
            Text(|row| Some(Cow::Borrowed(ndjson::origin_name(row.launch.origin)))),
            "`launched`, `command` (the recorded command) or `orphan` (its creation was lost)",
        ),
        optional(
            "mechanism",
            Text(|row| row.launch.mechanism.map(|mechanism| mechanism.name().into())),
            "`fork`, `vfork`, `posix_spawn`, `clone` or `clone3`",
        ),
        required(
            "command",
            Text(|row| Some(String::from_utf8_lossy(&row.launch.command.label()).into_owned().into())),
            "base name of its last program; in parentheses if it never executed one",
        ),
        optional("caller", Int(|row| row.caller), "its call site, as in `callers.caller`"),
        optional(
            "start_ns",
            Long(|row| span(row.launch.start())),
            "start of the parent's fork call, since the recording began",
        ),
        optional(
            "total_ns",
            Long(|row| span(row.launch.end().and(row.launch.total(row.forest.end)))),
            "from start_ns to its reaping; NULL if it had not ended when the recording did",
        ),
        optional(
            "create_ns",
            Long(|row| span(row.launch.phases.get(Phase::Create))),
            "phase create: from the parent's call until the process exists",
        ),
        optional(
            "queue_ns",
            Long(|row| span(row.launch.phases.get(Phase::Queue))),
            "phase queue: waiting for the first CPU",
        ),
        optional(
            "setup_ns",
            Long(|row| span(row.launch.phases.get(Phase::Setup))),
            "phase setup: from its first moment on a CPU, or from the end of the last process that it launched before its exec, until the exec; before version 2 of the dataset, always from its first moment on a CPU",
        ),
        optional(
            "exec_ns",
            Long(|row| span(row.launch.phases.get(Phase::Exec))),
            "phase exec: within successful execs",
        ),
        optional("load_ns", Long(|row| span(row.launch.phases.get(Phase::Load))), "phase load: the dynamic loader"),
        optional("run_ns", Long(|row| span(row.launch.phases.get(Phase::Run))), "phase run: the program's own work"),
        optional(
            "teardown_ns",
            Long(|row| span(row.launch.phases.get(Phase::Teardown))),
            "phase teardown: from the start of its exit until the parent can reap it",
        ),
        optional(
            "reap_ns",
            Long(|row| span(row.launch.phases.get(Phase::Reap))),
            "phase reap: from then until the parent's wait returned",
        ),
        optional("cpu_ns", Long(|row| span(row.launch.cpu.get())), "CPU time of its threads"),
        optional("critical_ns", Long(|row| span(row.critical())), "its time on the critical path"),
        optional("critical_tax_ns", Long(|row| span(row.critical_tax())), "its launch tax on the critical path"),
        optional(
            "exit_code",
            Int(|row| exit_code(row.launch.outcome)),
            "its exit code; NULL if unknown or if a signal killed it",
        ),
        optional("exit_signal", Int(|row| exit_signal(row.launch.outcome)), "the signal that killed it"),
        optional(
            "parent_rss_bytes",
            Long(|row| row.launch.parent_rss_bytes.get().map(long)),
            "resident memory of the parent at its creation",
        ),
        optional(
            "target",
            Text(|row| row.label(BuildLabel::Target)),
            "label `target`: output of the ninja edge that it belongs to, or the file that the compiler, linker or archiver among its ancestors makes",
        ),
        optional(
            "crate",
            Text(|row| row.label(BuildLabel::Crate)),
            "label `crate`: the crate that cargo builds or tests, or whose build script it runs",
        ),
        optional(
            "directory",
            Text(|row| row.label(BuildLabel::Directory)),
            "label `directory`: directory of the make or ninja that it descends from, relative to the directory of the command",
        ),
        optional(
            "package",
            Text(|row| row.label(BuildLabel::Package)),
            "label `package`: the cargo package, or the npm package and script",
        ),
        optional("test", Text(|row| row.label(BuildLabel::Test)), "label `test`: the pytest or cargo-nextest test"),
        optional("cmake_target", Text(|row| row.label(BuildLabel::Cmake)), "label `cmake`: the CMake target"),
    ]
}
