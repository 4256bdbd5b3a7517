//! The report as JSON, schema version 1. Unknown values are `null`, never zero.

use serde_json::{Map, Value, json};

use super::groupings::grouping_of;
use super::json_values::{
    self, append, call_site_value, exit, insert_arguments, insert_callers, insert_or_null, insert_text, nanos,
    spent_value, with_text,
};
use super::{advice, headline, text, verdict};
use crate::analyze::explain::drift::Drift;
use crate::analyze::explain::report::{GroupBy, Report};
use crate::analyze::explain::tool_calls::{Reason, ToolCalls};
use crate::analyze::model::phases::Phase;
use crate::analyze::model::window::{Episode, WindowTitle};
use crate::analyze::path::groups::{Group, Repeat};
use crate::analyze::path::summary::PhaseSums;
use crate::analyze::predict::dependence::Dependence;
use crate::analyze::waits::attribution::{AttributedObject, AttributedWaits, WaitTarget, WaitTargets};
use crate::analyze::waits::failed_execs::{Failure, Fault, PathSearches};
use crate::event::{Nanos, Pid};

/// The `schema_version` of the report. It is raised when a key changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

pub fn render(report: &Report) -> String {
    json_values::text(&value(report))
}

pub fn value(report: &Report) -> Value {
    let mut object = recorded(report);
    append(&mut object, found(report));
    if !report.tool_calls.is_empty() {
        object.insert("tool_calls".into(), tool_calls(&report.tool_calls).into());
    }
    Value::Object(object)
}

fn recorded(report: &Report) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("schema_version".into(), json!(SCHEMA_VERSION));
    let command = text::command_line(report.info.command.iter().map(Vec::as_slice), None);
    object.insert("command".into(), if report.info.command.is_empty() { Value::Null } else { command.into() });
    insert_arguments(&mut object, "argv", report.info.command.iter().map(Vec::as_slice));
    let rest = json!({
        "wall_ns": report.wall.0,
        "cpus": report.info.cpus,
        "allowed_cpus": report.info.allowed_cpus,
        "labels": labels(report),
        "collector": report.info.collector,
        "ended": report.info.ended,
        "exit": report.exit.map(exit),
        "is_live": report.info.is_live,
        "lost_events": report.lost_events(),
        "lost": report.info.lost.iter().map(|loss| (loss.kind.clone(), json!(loss.events))).collect::<Map<_, _>>(),
        "missing": report.info.missing.iter()
            .map(|missing| json!({"what": missing.what, "effect": missing.effect})).collect::<Vec<_>>(),
        "contradictions": report.info.contradictions.0.iter()
            .map(|kind| json!({"what": kind.what, "rows": kind.rows, "first": kind.first_id})).collect::<Vec<_>>(),
    });
    append(&mut object, rest);
    object
}

fn found(report: &Report) -> Value {
    let all = &report.all;
    json!({
        "launches": all.count,
        "unfinished": all.unfinished,
        "still_running": report.still_running.iter()
            .map(|(command, count)| json!({"command": String::from_utf8_lossy(command), "count": count})).collect::<Vec<_>>(),
        "orphans": all.orphans,
        "failed_execs": all.failed_execs,
        "forks_without_exec": all.forks_without_exec,
        "launch_tax_ns": nanos(all.tax),
        "critical_tax_ns": nanos(all.critical_tax),
        "critical_path": report.where_the_wall_went.iter().map(spent_value).collect::<Vec<_>>(),
        "replay_error": report.replay_error,
        "waits_reconstructed": report.is_reconstructed,
        "waits": report.waits.iter().map(waits).collect::<Vec<_>>(),
        "cpu_ns": nanos(all.cpu),
        "phases": phase_sums(&all.phases),
        "cpu_phases": phase_sums(&all.cpu_phases),
        "phases_unknown": phases_unknown(&all.phases),
        "by": grouping_of(report.group_by).name,
        "commands": report.groups.iter().map(|each| group(each, report.group_by)).collect::<Vec<_>>(),
        "repeats": report.repeats.iter().map(repeat).collect::<Vec<_>>(),
        "failed_execs_by_errno": report.failures.iter().map(failure).collect::<Vec<_>>(),
        "depends_on": report.dependence.iter().map(dependence).collect::<Vec<_>>(),
        "path_search": path_searches(&report.path_searches),
        "drift": report.drifts.iter().map(drift).collect::<Vec<_>>(),
        "advice": advice::values(&headline::report_to_explain(report).advices),
        "window": report.window.as_ref().map(window),
        "episodes": episodes(&report.episodes),
        "principal_cause": verdict::verdict(report),
    })
}

pub(super) fn labels(report: &Report) -> Value {
    report.info.labels.iter().map(|label| (label.key.clone(), json!(label.value))).collect::<Map<_, _>>().into()
}

/// Returns the saving that is predicted for a removal of all launches of a command.
fn dependence(dependence: &Dependence) -> Value {
    let [expected, low, high] = dependence.saving;
    let rest = json!({
        "count": dependence.count,
        "saving_ns": expected.0,
        "saving_low_ns": low.0,
        "saving_high_ns": high.0,
        "is_wrapper": dependence.is_wrapper,
    });
    with_text("command", &dependence.label, rest).into()
}

fn repeat(repeat: &Repeat) -> Value {
    let rest = json!({"count": repeat.count, "total_ns": repeat.total.0});
    with_text("command_line", &repeat.label, rest).into()
}

fn group(group: &Group, group_by: GroupBy) -> Value {
    let sums = &group.sums;
    let rest = json!({
        "count": sums.count,
        "total_ns": nanos((sums.timed > 0).then_some(sums.total)),
        "mean_ns": nanos(sums.mean()),
        "tax_ns": nanos(sums.tax),
        "critical_ns": nanos(sums.critical),
        "depends_ns": nanos(group.depends),
        "cpu_ns": nanos(sums.cpu),
        "phases": phase_sums(&sums.phases),
        "cpu_phases": phase_sums(&sums.cpu_phases),
        "phases_unknown": phases_unknown(&sums.phases),
        "failed_execs": sums.failed_execs,
        "forks_without_exec": sums.forks_without_exec,
        "unfinished": sums.unfinished,
    });
    let mut object = with_text("command", &group.label, rest);
    insert_callers(&mut object, &group.callers);
    if matches!(group_by, GroupBy::Line | GroupBy::Caller) {
        object.insert("caller".into(), group.call_site.as_ref().map(call_site_value).into());
        object.insert("launched".into(), group.launched.iter().map(launched).collect());
        object.insert("inclusive_total_ns".into(), group.inclusive.total.0.into());
        object.insert("inclusive_critical_ns".into(), nanos(group.inclusive.critical));
    }
    Value::Object(object)
}

fn launched((command, count): &(Vec<u8>, u64)) -> Value {
    with_text("command", command, json!({ "count": count })).into()
}

fn waits(waits: &AttributedWaits) -> Value {
    let parts = &waits.parts;
    let rest = json!({
        "syscall": waits.syscall.and_then(crate::event::syscalls::name),
        "syscall_number": waits.syscall,
        "object": waits.object.as_ref().map(waited_object),
        "on": waits.targets.iter().map(wait_target).collect::<Vec<_>>(),
        "count": waits.count,
        "total_ns": parts.total().0,
        "tax_ns": parts.tax.0,
        "run_ns": parts.run.0,
        "run_waiting_ns": parts.run_waiting.0,
        "reap_ns": parts.reap.0,
        "queue_ns": parts.queue.0,
        "other_ns": parts.other.0,
    });
    with_text("command", &waits.command, rest).into()
}

/// Returns the object that was waited for. `device` and `inode` are present if all waits were for
/// the same object, `path` if all were for the same path or address.
fn waited_object(waited: &AttributedObject) -> Value {
    let mut object = Map::new();
    object.insert("kind".into(), waited.kind.name().into());
    if let Some(identity) = &waited.identity {
        object.insert("device".into(), identity.device.into());
        object.insert("inode".into(), identity.inode.into());
    }
    if let Some(path) = &waited.path {
        insert_text(&mut object, "path", path);
    }
    Value::Object(object)
}

/// Returns what was waited for: a launch, a permission scanner, or another process that is not
/// recorded. A name of `null` is unknown.
fn wait_target(each: &WaitTargets) -> Value {
    let mut object = Map::new();
    match &each.target {
        WaitTarget::Launches { command, through } => {
            insert_text(&mut object, "command", command);
            if let Some(through) = through {
                insert_text(&mut object, "through", through);
            }
        }
        WaitTarget::Process(name) => insert_or_null(&mut object, "process", name.as_deref()),
        WaitTarget::Scanner(name) => insert_or_null(&mut object, "scanner", name.as_deref()),
    }
    object.insert("count".into(), each.count.into());
    Value::Object(object)
}

fn path_searches(found: &PathSearches) -> Value {
    json!({
        "searches": found.searches,
        "misses": found.misses,
        "cost_ns": found.cost.0,
        "directories": found.directories.iter().map(|each| fault("directory", each)).collect::<Vec<_>>(),
        "not_found": found.not_found.iter().map(|each| fault("program", each)).collect::<Vec<_>>(),
    })
}

fn fault(key: &str, fault: &Fault) -> Value {
    let rest = json!({
        "searches": fault.searches,
        "misses": fault.misses,
        "cost_ns": fault.cost.0,
        "errno": fault.errno,
    });
    with_text(key, &fault.name, rest).into()
}

fn failure(failure: &Failure) -> Value {
    let mut object = Map::new();
    object.insert("errno".into(), failure.errno.into());
    object.insert("count".into(), failure.count.into());
    object.insert("files".into(), failure.files.into());
    insert_text(&mut object, "path", &failure.path);
    Value::Object(object)
}

fn drift(drift: &Drift) -> Value {
    let segments = drift.segments.iter().map(|segment| {
        json!({
            "launches": segment.children,
            "cost_ns": segment.cost.0,
            "create_ns": nanos(segment.phase(Phase::Create)),
            "parent_rss_bytes": segment.parent_rss_bytes,
        })
    });
    let rest = json!({
        "id": drift.parent.0,
        "pid": drift.pid.map(|pid| pid.0),
        "launches": drift.children,
        "ratio": drift.ratio(),
        "cause": drift.memory.map(|_| "parent_memory"),
        "rose_most": drift.rise.map(|rise| rise.phase.name()),
        "ns_per_mb": drift.memory.map(|growth| growth.ns_per_mb),
        "segments": segments.collect::<Vec<_>>(),
    });
    with_text("parent", &drift.label, rest).into()
}

fn phase_sums(sums: &PhaseSums) -> Value {
    by_phase(|phase| nanos(sums.get(phase).time))
}

fn phases_unknown(sums: &PhaseSums) -> Value {
    by_phase(|phase| sums.get(phase).unknown.into())
}

fn by_phase(value_of: impl Fn(Phase) -> Value) -> Value {
    Phase::ALL.into_iter().map(|phase| (phase.name().to_owned(), value_of(phase))).collect::<Map<_, _>>().into()
}

/// Returns all kinds for JSON.
fn tool_calls(kinds: &[ToolCalls]) -> Vec<Value> {
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let values = kinds.iter().map(|kind| {
        let causes = kind.causes.iter().map(|cause| {
            let reason = match cause.reason {
                Reason::StartUp => "start-up",
                Reason::Wrapper => "wrapper",
                Reason::Shim => "shim",
                Reason::Hook => "hook",
            };
            json!({ "reason": reason, "label": name(&cause.label), "commands": cause.calls, "time_ns": cause.time.0 })
        });
        json!({
            "caller": name(&kind.caller),
            "shape": kind.shape,
            "is_login": kind.is_login,
            "commands": kind.count,
            "delay_ns": { "median": kind.delay[0].0, "p95": kind.delay[1].0, "max": kind.delay[2].0 },
            "causes": causes.collect::<Vec<_>>(),
        })
    });
    values.collect()
}

fn episodes(episodes: &[Episode]) -> Vec<Value> {
    let values = (1..).zip(episodes).map(|(number, episode)| {
        let mut object = Map::from_iter([("episode".to_owned(), Value::from(number))]);
        insert_text(&mut object, "process", &episode.label);
        append(&mut object, json!({ "launches": episode.launches, "launch_tax_ns": nanos(episode.tax) }));
        append(&mut object, span(episode.pid, episode.span.from, episode.span.to));
        Value::Object(object)
    });
    values.collect()
}

fn window(window: &WindowTitle) -> Value {
    with_text("process", &window.label, span(window.pid, window.from, window.to)).into()
}

fn span(pid: Option<Pid>, Nanos(from): Nanos, Nanos(to): Nanos) -> Value {
    json!({ "pid": pid.map(|pid| pid.0), "from_ns": from, "to_ns": to })
}
