//! Puts the first threads that the programs follow into the map of tasks. User space does this by
//! pidfd, so that a process that reuses the pid is not followed instead. In the build where the map
//! is a hash, a kernel iterator over all threads does it (`seeds.h`). This file also sets the
//! recorder's own entry: the recorder is ignored, or followed for a moment to measure the overhead.

use std::collections::HashSet;
use std::os::fd::AsRawFd;

use libbpf_rs::{Map, MapCore, MapFlags, MapType, Object};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::{failed, last, map, parts, set_variable};
use crate::wire::{KIND_LAUNCH, LEFT_INTERRUPTIBLE, TASK_IGNORED, WireHeader, WireLaunch, WireSeed, WireTask};
use crate::{CollectError, Follow, ROOT};
use spawnscope_data::event::{Event, EventKind, LaunchId, Pid, TaskId};
use spawnscope_system::clock::now;
use spawnscope_system::process::pidfd;
use spawnscope_system::procfs::{self, Status};

/// The launch and thread id of the recorder itself, which no other process has.
const RECORDER: u64 = 0;
/// The variable with the input and the result of the program that puts threads into a hash.
const SEED_VARIABLE: &str = ".data.seed";

/// Starts to follow what `follow` selects, and the processes in `with`, whose launch ids come after
/// the command's. Returns an event for each process that already exists.
pub(super) fn start_following(object: &Object, follow: Follow, with: &[Pid]) -> Result<Vec<Event>, CollectError> {
    if follows_recorder_by_default(follow) {
        insert_thread(object, own_pid(), TASK_IGNORED, RECORDER)?;
    }
    let mut existing = Vec::new();
    match follow {
        Follow::Command(pid) | Follow::System(Some(pid)) => insert_thread(object, pid, 0, ROOT.0)?,
        Follow::System(None) => {}
        Follow::Process(pid) => {
            insert_thread(object, pid, 0, ROOT.0)?;
            existing.push(adopted(pid, ROOT));
        }
    }
    for (id, pid) in (ROOT.0 + 1..).zip(with) {
        let id = LaunchId(id);
        match insert_task(object, *pid, daemon_task(*pid, id)) {
            // A daemon or one of its workers may end before it is followed.
            Err(CollectError::NoProcess { .. }) => {}
            inserted => {
                inserted?;
                existing.push(adopted(*pid, id));
            }
        }
    }
    Ok(existing)
}

/// Returns the event of a process that is already running.
fn adopted(pid: Pid, launch: LaunchId) -> Event {
    let name = procfs::name(pid).unwrap_or_default();
    Event { at: now(), launch, task: TaskId(launch.0), kind: EventKind::Adopted { pid, name } }
}

/// Returns the map entry of a daemon's main thread. If the thread is asleep, its wait starts now,
/// so that the wake-up by the first request ends a known wait.
fn daemon_task(pid: Pid, launch: LaunchId) -> WireTask {
    let mut task = new_task(launch.0, 0);
    if Status::read(pid).is_some_and(|status| status.is_asleep()) {
        (task.off, task.reason) = (now().0, LEFT_INTERRUPTIBLE);
    }
    task
}

/// Runs `act` while the recorder's main thread is followed like a thread of the command.
pub(super) fn as_followed(object: &Object, follow: Follow, act: &mut dyn FnMut()) -> Result<(), CollectError> {
    insert_thread(object, own_pid(), 0, RECORDER)?;
    act();
    if follows_recorder_by_default(follow) {
        return insert_thread(object, own_pid(), TASK_IGNORED, RECORDER);
    }
    let tasks = map(object, "tasks")?;
    if is_hash(&tasks) {
        return set_entry_by_iterator(object, own_pid(), None);
    }
    let own = pidfd(own_pid()).map_err(|error| no_process(own_pid(), &error))?;
    tasks.delete(&own.as_raw_fd().to_ne_bytes()).map_err(|error| failed("stop following the recorder", &error))
}

/// The launches that the recorder itself makes in order to measure the overhead (`as_followed`).
#[derive(Debug, Default)]
pub(super) struct OwnLaunches(HashSet<u64>);

impl OwnLaunches {
    /// Whether a record is about the recorder or one of its launches. The record of a launch
    /// precedes all other records about it.
    pub(super) fn is_own_record(&mut self, record: &[u8]) -> bool {
        let Ok((header, _)) = WireHeader::read_from_prefix(record) else { return false };
        if header.kind == KIND_LAUNCH
            && WireLaunch::read_from_prefix(record).is_ok_and(|(launch, _)| launch.parent == RECORDER)
        {
            self.0.insert(header.launch);
        }
        header.launch == RECORDER || self.0.contains(&header.launch)
    }
}

/// Whether the recorder would be followed if it were not explicitly ignored.
fn follows_recorder_by_default(follow: Follow) -> bool {
    matches!(follow, Follow::System(_))
}

fn own_pid() -> Pid {
    Pid(rustix::process::getpid().as_raw_pid())
}

fn is_hash(tasks: &Map<'_>) -> bool {
    tasks.map_type() == MapType::Hash
}

/// Makes the kernel set the hash entry of the thread `pid` to `task`, or, with `None`, remove the
/// entry.
fn set_entry_by_iterator(object: &Object, pid: Pid, task: Option<WireTask>) -> Result<(), CollectError> {
    let mut seed = WireSeed::new_zeroed();
    (seed.pid, seed.remove) = (pid.0.unsigned_abs(), u32::from(task.is_none()));
    seed.task = task.unwrap_or_else(WireTask::new_zeroed);
    set_variable(object, SEED_VARIABLE, seed.as_bytes())?;
    let mut programs = object.progs_mut();
    let seeder = programs.find(|program| program.name() == parts::SEEDER);
    let seeder = seeder.ok_or_else(|| cannot_seed("the BPF object has no program for it".to_owned()))?;
    let link = seeder.attach().map_err(|error| cannot_seed(error.to_string()))?;
    last::report_threads(&link).map_err(|error| cannot_seed(error.to_string()))?;
    let value = map(object, SEED_VARIABLE)?
        .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| cannot_seed(error.to_string()))?;
    let answer = value.and_then(|value| Some(WireSeed::read_from_prefix(&value).ok()?.0));
    match answer {
        Some(answer) if answer.found != 0 && answer.failed == 0 => Ok(()),
        Some(answer) if answer.found != 0 => {
            Err(cannot_seed(std::io::Error::from_raw_os_error(-answer.failed).to_string()))
        }
        _ => Err(no_process(pid, &std::io::Error::from_raw_os_error(libc::ESRCH))),
    }
}

fn cannot_seed(detail: String) -> CollectError {
    CollectError::Failed { action: "follow the first process", detail }
}

fn new_task(id: u64, flags: u32) -> WireTask {
    let mut task = WireTask::new_zeroed();
    (task.task, task.launch, task.flags, task.syscall, task.cache_fd) = (id, id, flags, -1, -1);
    task
}

fn insert_thread(object: &Object, pid: Pid, flags: u32, id: u64) -> Result<(), CollectError> {
    insert_task(object, pid, new_task(id, flags))
}

fn insert_task(object: &Object, pid: Pid, task: WireTask) -> Result<(), CollectError> {
    let tasks = map(object, "tasks")?;
    let pidfd = pidfd(pid).map_err(|error| no_process(pid, &error))?;
    if is_hash(&tasks) {
        return set_entry_by_iterator(object, pid, Some(task));
    }
    tasks
        .update(&pidfd.as_raw_fd().to_ne_bytes(), task.as_bytes(), MapFlags::ANY)
        .map_err(|error| failed("follow the first process", &error))
}

fn no_process(pid: Pid, error: &std::io::Error) -> CollectError {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.0)).unwrap_or_default();
    let tgid = status.lines().find_map(|line| line.strip_prefix("Tgid:")).map(str::trim);
    let reason = match tgid {
        Some(process) if process != pid.0.to_string() => {
            format!("it is a thread of process {process}; give {process} instead")
        }
        _ if error.raw_os_error() == Some(libc::ESRCH) => "no such process".to_owned(),
        _ => error.to_string(),
    };
    CollectError::NoProcess { pid: pid.0, reason }
}
