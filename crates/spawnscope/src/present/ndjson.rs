//! One JSON object a line for each launch, in order of creation. Written as it goes; see `json` for bytes that are
//! not UTF-8. Instants are nanoseconds since the recording began.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::json::{append, insert_arguments, insert_text, nanos, phase_times};
use super::words::signal_name;
use crate::analyze::launch::{Exec, FailedExec, Launch, Outcome};
use crate::analyze::waits::{Wait, Waker};
use crate::analyze::{Forest, Origin, Waits};
use crate::event::LeftCpu;

/// Writes every launch; processes that existed before are not launches.
pub fn write(out: &mut dyn Write, forest: &Forest<'_>, waits: &Waits<'_>) -> io::Result<()> {
    for (index, launch) in forest
        .launches
        .iter()
        .enumerate()
        .filter(|(_, launch)| launch.is_launch())
    {
        let line = launch_value(forest, launch, waits.of(index));
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn launch_value(forest: &Forest<'_>, launch: &Launch<'_>, waits: &[Wait<'_>]) -> Value {
    let mut object = Map::new();
    append(
        &mut object,
        json!({"id": launch.id.0, "parent": launch.parent.map(|parent| parent.0), "pid": launch.pid.map(|pid| pid.0)}),
    );
    insert_text(&mut object, "command", &launch.command.label());
    let rest = json!({
        "origin": origin_name(launch.origin),
        "start_ns": nanos(launch.start()),
        "end_ns": nanos(launch.end()),
        "mechanism": launch.mechanism.map(|mechanism| mechanism.name()),
        "parent_rss_bytes": launch.parent_rss_bytes,
        "execs": launch.execs.iter().map(exec_value).collect::<Vec<_>>(),
        "failed_execs": launch.failed_execs.iter().map(failed_exec_value).collect::<Vec<_>>(),
        "phases": phase_times(&launch.phases),
        "cpu_ns": nanos(launch.cpu),
        "cpu_phases": phase_times(&launch.cpu_phases),
        "waits": waits.iter().map(|wait| wait_value(forest, wait)).collect::<Vec<_>>(),
        "exit": exit_value(launch.outcome),
        "caller": null,
    });
    append(&mut object, rest);
    Value::Object(object)
}

fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Launched => "launched",
        Origin::Command => "command",
        Origin::Existed => "existed",
        Origin::Orphan => "orphan",
    }
}

fn exec_value(exec: &Exec<'_>) -> Value {
    let mut object = Map::new();
    insert_text(&mut object, "path", exec.path);
    insert_arguments(&mut object, "argv", exec.arguments().collect::<Vec<_>>().into_iter());
    object.insert("argv_cut".into(), exec.argv_cut.into());
    insert_known_text(&mut object, "cwd", exec.cwd);
    insert_known_text(&mut object, "interpreter", exec.interpreter);
    append(
        &mut object,
        json!({"enter_ns": nanos(exec.enter), "return_ns": nanos(exec.returned), "load_ns": nanos(exec.loaded)}),
    );
    Value::Object(object)
}

fn insert_known_text(object: &mut Map<String, Value>, key: &str, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => insert_text(object, key, bytes),
        None => append(object, json!({key: null})),
    }
}

fn failed_exec_value(failed: &FailedExec<'_>) -> Value {
    let mut object = Map::new();
    insert_text(&mut object, "path", failed.path);
    append(
        &mut object,
        json!({"errno": failed.errno, "enter_ns": failed.enter.0, "return_ns": failed.returned.0}),
    );
    Value::Object(object)
}

fn exit_value(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Running | Outcome::Unknown => Value::Null,
        Outcome::Code(code) => json!({"code": code, "signal": null}),
        Outcome::Signal { number, core_dumped } => {
            json!({"code": null, "signal": signal_name(number), "number": number, "core_dumped": core_dumped})
        }
    }
}

fn wait_value(forest: &Forest<'_>, wait: &Wait<'_>) -> Value {
    json!({
        "task": wait.task.0,
        "start_ns": wait.start.0,
        "end_ns": nanos(wait.end),
        "woken_ns": nanos(wait.woken),
        "reason": reason_name(wait.reason),
        "syscall": wait.syscall,
        // As the schema has it: `wait4(-1)` reads as -1, and no JSON reader rounds it.
        "argument": wait.argument.map(u64::cast_signed),
        "waker": wait.waker.map(|waker| waker_value(forest, waker)),
    })
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

fn waker_value(forest: &Forest<'_>, waker: Waker<'_>) -> Value {
    match waker {
        Waker::Task { task, launch } => {
            let launch = launch.map(|index| forest.launches[index].id.0);
            json!({"kind": "task", "task": task.0, "launch": launch})
        }
        Waker::Other { pid, name } => {
            let mut object = Map::new();
            append(&mut object, json!({"kind": "other", "pid": pid.0}));
            insert_known_text(&mut object, "name", name);
            Value::Object(object)
        }
        Waker::Interrupt => json!({"kind": "interrupt"}),
    }
}
