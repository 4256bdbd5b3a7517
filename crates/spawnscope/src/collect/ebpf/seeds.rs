//! The first threads that the programs follow: put into the map of tasks from outside, by pidfd, so that no pid can be mistaken.
//! The recorder's own entry stands there too: ignored, or followed for a moment, to measure what that costs.

use std::os::fd::AsRawFd;

use libbpf_rs::{Map, MapCore, MapFlags, Object};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::wire::{TASK_IGNORED, WireHeader, WireTask};
use super::{failed, map};
use crate::collect::{CollectError, Follow, ROOT, now, pidfd};
use crate::event::{Event, EventKind, Pid, TaskId};

/// The number of the recorder's own launch and thread, which nothing else has.
const RECORDER: u64 = 0;

/// Begins to follow; gives what there is to be told of those that existed before.
pub(super) fn plant(object: &Object, follow: Follow) -> Result<Option<Event>, CollectError> {
    let tasks = map(object, "tasks")?;
    if is_in_sight(follow) {
        insert(&tasks, own_pid(), TASK_IGNORED, RECORDER)?;
    }
    match follow {
        Follow::Command(pid) | Follow::System(Some(pid)) => insert(&tasks, pid, 0, ROOT.0).map(|()| None),
        Follow::System(None) => Ok(None),
        Follow::Process(pid) => {
            insert(&tasks, pid, 0, ROOT.0)?;
            let name = std::fs::read(format!("/proc/{}/comm", pid.0)).unwrap_or_default();
            let kind = EventKind::Adopted {
                pid,
                name: name.trim_ascii_end().to_vec(),
            };
            Ok(Some(Event {
                at: now(),
                launch: ROOT,
                task: TaskId(ROOT.0),
                kind,
            }))
        }
    }
}

/// Runs `act` with the recorder's first thread followed as those of the command are.
pub(super) fn as_followed(object: &Object, follow: Follow, act: &mut dyn FnMut()) -> Result<(), CollectError> {
    let tasks = map(object, "tasks")?;
    insert(&tasks, own_pid(), 0, RECORDER)?;
    act();
    if is_in_sight(follow) {
        return insert(&tasks, own_pid(), TASK_IGNORED, RECORDER);
    }
    let own = pidfd(own_pid()).map_err(|error| no_process(own_pid(), &error))?;
    tasks
        .delete(&own.as_raw_fd().to_ne_bytes())
        .map_err(|error| failed("leave the recorder alone", &error))
}

/// Whether a record tells of the recorder.
pub(super) fn is_of_recorder(record: &[u8]) -> bool {
    WireHeader::read_from_prefix(record).is_ok_and(|(header, _)| header.launch == RECORDER)
}

/// Whether the recorder is left out only when it is told to be.
fn is_in_sight(follow: Follow) -> bool {
    matches!(follow, Follow::System(_))
}

fn own_pid() -> Pid {
    Pid(rustix::process::getpid().as_raw_pid())
}

fn insert(tasks: &Map<'_>, pid: Pid, flags: u32, id: u64) -> Result<(), CollectError> {
    let pidfd = pidfd(pid).map_err(|error| no_process(pid, &error))?;
    let mut task = WireTask::new_zeroed();
    (task.task, task.launch, task.flags, task.syscall, task.cache_fd) = (id, id, flags, -1, -1);
    tasks
        .update(&pidfd.as_raw_fd().to_ne_bytes(), task.as_bytes(), MapFlags::ANY)
        .map_err(|error| failed("follow the first process", &error))
}

fn no_process(pid: Pid, error: &std::io::Error) -> CollectError {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.0)).unwrap_or_default();
    let of_process = status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))
        .map(str::trim);
    let reason = match of_process {
        Some(process) if process != pid.0.to_string() => {
            format!("it is a thread of process {process}; use -p {process}")
        }
        _ if error.raw_os_error() == Some(libc::ESRCH) => "there is no such process".to_owned(),
        _ => error.to_string(),
    };
    CollectError::NoProcess { pid: pid.0, reason }
}
