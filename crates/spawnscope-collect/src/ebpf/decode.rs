//! Converts records of the ring buffer to events: each record becomes up to two events. Equal call
//! chains are shared. Decoding has no side effects, except that makefiles are read in order to find
//! lines in them.

mod waker;

use std::collections::HashMap;
use std::sync::Arc;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::callers::Files;
use crate::callers::chains::{self, join_components};
use crate::callers::sources::Place;
use crate::clone_call::CloneCall;
use crate::wire::*;
use spawnscope_data::event::{
    Chain, Event, EventKind, Executed, Exited, LaunchId, Launched, LeftCpu, Loaded, Mechanism, Nanos, Object,
    ObjectKind, Pid, Slice, Syscall, TaskId, variables,
};

/// The chains decoded so far. Most launches have the call site of an earlier one.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Chains by the bytes of their records.
    decoded: HashMap<Box<[u8]>, Arc<Chain>>,
    files: Files,
    /// The call sites that threads of Node.js have announced for their next launch, by task id.
    announced: HashMap<u64, Arc<Chain>>,
}

impl Chains {
    const MAX_DECODED: usize = 4096;
    const MAX_ANNOUNCED: usize = 65_536;

    /// Stores the call site of a thread's next launch. Returns `None` if the record is malformed.
    fn announce(&mut self, task: u64, record: &[u8]) -> Option<()> {
        let (call_site, rest): (WireNodeCallSite, _) = read(record)?;
        let Some(chain) = chains::node::chain(rest.get(..call_site.bytes as usize)?) else { return Some(()) };
        // Entries accumulate only for threads that ended before they launched.
        if self.announced.len() >= Self::MAX_ANNOUNCED {
            self.announced.clear();
        }
        self.announced.insert(task, Arc::new(chain));
        Some(())
    }

    /// Returns the chain in the record of a script's call. Decodes it if it is new.
    fn of_script(&mut self, record: &[u8]) -> Option<Arc<Chain>> {
        let bytes = record.get(size_of::<WireHeader>()..)?;
        if let Some(chain) = self.decoded.get(bytes) {
            return Some(Arc::clone(chain));
        }
        if self.decoded.len() >= Self::MAX_DECODED {
            self.decoded.clear();
        }
        let (called, rest): (WireScriptCalled, _) = read(record)?;
        let chain = Arc::new(match called.interpreter {
            INTERPRETER_MAKE => chains::make::chain(&called, rest, None, &mut self.files),
            INTERPRETER_DASH => {
                let place = || Place::in_record(&called, b"").with_directory();
                chains::script::dash(&called, rest, place, &mut self.files)
            }
            _ => chains::script::chain(&called, rest),
        }?);
        // The file of a function of dash may be found later.
        let has_file = || chain.frames.first().is_none_or(|frame| frame.file.is_some() || frame.function.is_none());
        if called.interpreter != INTERPRETER_DASH || has_file() {
            self.decoded.insert(bytes.into(), Arc::clone(&chain));
        }
        Some(chain)
    }
}

/// Converts a record into events, in order. `page_bytes` is the machine's page size. Returns `None`
/// if the bytes are not a record of this format.
pub(super) fn decode(bytes: &[u8], page_bytes: u64, chains: &mut Chains, events: &mut Vec<Event>) -> Option<()> {
    let header = read::<WireHeader>(bytes)?.0;
    let kind = match header.kind {
        KIND_LAUNCH => {
            let launch: WireLaunch = read(bytes)?.0;
            events.push(event(&header, EventKind::Launched(decode_launched(&launch, page_bytes))));
            let Some(chain) = chains.announced.remove(&launch.parent_task) else { return Some(()) };
            EventKind::Called(chain)
        }
        KIND_NODE_CALL_SITE => return chains.announce(header.task, bytes),
        KIND_THREAD => decode_thread_started(&read(bytes)?.0),
        KIND_ADOPTED => decode_adopted(&read(bytes)?.0),
        KIND_EXEC_FAILED => with_rest(bytes, decode_exec_failed)?,
        KIND_EXECUTED => EventKind::Executed(with_rest(bytes, decode_executed)?),
        KIND_LOADED => EventKind::Loaded(decode_loaded(&read(bytes)?.0)),
        KIND_EXITED => EventKind::Exited(decode_exited(&read(bytes)?.0, page_bytes)),
        KIND_GONE => {
            let gone: WireGone = read(bytes)?.0;
            events.push(event(&header, last_slice(&gone)));
            let (zombie, auto_reaped) = (observed(gone.zombie), gone.auto_reaped != 0);
            EventKind::Gone { zombie, auto_reaped, cpu: Some(Nanos(gone.cpu)) }
        }
        KIND_REAPED => EventKind::Reaped { pid: pid(read::<WireReaped>(bytes)?.0.pid) },
        KIND_SLICE => EventKind::Slice(slice(&read(bytes)?.0)?),
        KIND_LAST_SEEN => EventKind::LastSeen(slice(&read(bytes)?.0)?),
        KIND_FILE_NAMED => with_rest(bytes, decode_file_named)?,
        KIND_SCRIPT_CALLED => {
            let chain = chains.of_script(bytes)?;
            if chain.frames.is_empty() {
                return Some(());
            }
            EventKind::Called(chain)
        }
        // Not stored in `chains`: the records contain line tables and would take too much memory.
        KIND_PYTHON_CALLED => EventKind::Called(Arc::new(with_rest(bytes, chains::python::chain)?)),
        _ => return None,
    };
    events.push(event(&header, kind));
    Some(())
}

/// Decodes the record of an executable that has not been examined yet; this record does not become
/// an event. Returns `None` for other kinds of records.
pub(super) fn new_executable(bytes: &[u8]) -> Option<WireNewExecutable> {
    let header = read::<WireHeader>(bytes)?.0;
    (header.kind == KIND_NEW_EXECUTABLE).then(|| read(bytes))?.map(|(executable, _)| executable)
}

fn read<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Option<(T, &[u8])> {
    T::read_from_prefix(bytes).ok()
}

/// Decodes a record and the bytes after it.
fn with_rest<T: FromBytes + KnownLayout + Immutable, R>(
    bytes: &[u8],
    decode: impl FnOnce(&T, &[u8]) -> Option<R>,
) -> Option<R> {
    let (record, rest) = read(bytes)?;
    decode(&record, rest)
}

fn event(header: &WireHeader, kind: EventKind) -> Event {
    Event { at: Nanos(header.at), launch: LaunchId(header.launch), task: TaskId(header.task), kind }
}

fn observed(instant: u64) -> Option<Nanos> {
    (instant != 0).then_some(Nanos(instant))
}

fn known(count: u32) -> Option<u32> {
    (count != UNKNOWN_COUNT).then_some(count)
}

pub(super) fn pid(number: u32) -> Pid {
    Pid(i32::try_from(number).unwrap_or(0))
}

fn until_nul(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
}

fn mechanism(launch: &WireLaunch) -> Option<Mechanism> {
    let call = CloneCall {
        number: libc::c_long::from(launch.syscall),
        flags: launch.flags & !CLONE_ON_OWN_STACK,
        shares_stack: launch.flags & CLONE_ON_OWN_STACK != 0,
    };
    call.mechanism()
}

fn decode_launched(launch: &WireLaunch, page_bytes: u64) -> Launched {
    let has_memory = launch.parent_table_bytes != 0;
    Launched {
        parent: LaunchId(launch.parent),
        parent_task: TaskId(launch.parent_task),
        reaper: (launch.reaper != 0).then_some(LaunchId(launch.reaper)),
        pid: pid(launch.pid),
        pid_for_reaper: pid(launch.pid_for_reaper),
        mechanism: mechanism(launch),
        create: observed(launch.create),
        prepare: observed(launch.prepare),
        parent_tidied: observed(launch.parent_tidied),
        parent_faults: known(launch.parent_faults),
        parent_rss_bytes: has_memory.then_some(launch.parent_rss_pages.saturating_mul(page_bytes)),
        parent_table_bytes: has_memory.then_some(launch.parent_table_bytes),
    }
}

fn decode_thread_started(thread: &WireThread) -> EventKind {
    EventKind::ThreadStarted { tid: pid(thread.tid), creator: TaskId(thread.creator) }
}

fn decode_adopted(adopted: &WireAdopted) -> EventKind {
    EventKind::Adopted { pid: pid(adopted.pid), name: until_nul(&adopted.comm) }
}

fn decode_exec_failed(failed: &WireExecFailed, rest: &[u8]) -> Option<EventKind> {
    let path = until_nul(rest.get(..failed.path_bytes as usize)?);
    Some(EventKind::ExecFailed { enter: Nanos(failed.enter), path, errno: failed.errno })
}

fn decode_executed(executed: &WireExecuted, rest: &[u8]) -> Option<Executed> {
    let (path, rest) = rest.split_at_checked(executed.path_bytes as usize)?;
    let (interpreter, rest) = rest.split_at_checked(executed.interpreter_bytes as usize)?;
    let (argv, rest) = rest.split_at_checked(executed.copied_argv_bytes as usize)?;
    let (cwd, rest) = rest.split_at_checked(executed.cwd_bytes as usize)?;
    let (beginning, rest) = rest.split_at_checked(executed.environment_bytes as usize)?;
    let (end, _) = rest.split_at_checked(executed.environment_end_bytes as usize)?;
    Some(Executed {
        first_run: observed(executed.first_run),
        enter: observed(executed.enter),
        enter_cpu: observed(executed.enter).map(|_| Nanos(executed.enter_cpu)),
        path: until_nul(path),
        interpreter: (!interpreter.is_empty()).then(|| until_nul(interpreter)),
        argv: argv.to_vec(),
        argv_bytes: executed.argv_bytes,
        cwd: (executed.cwd_complete != 0).then(|| join_components(cwd)),
        variables: allowed_variables(beginning, end),
        setup_closes: known(executed.setup_closes),
        setup_close_span: known(executed.setup_closes).map(|_| Nanos(executed.setup_close_span)),
    })
}

fn allowed_variables(beginning: &[u8], end: &[u8]) -> Vec<u8> {
    // If the end is shorter than the maximum, it follows the beginning without a gap.
    if end.len() < VARIABLES_BYTES as usize {
        variables::select_allowed(&[beginning, end].concat())
    } else {
        variables::select_allowed_in_parts(beginning, end)
    }
}

fn decode_loaded(loaded: &WireLoaded) -> Loaded {
    let is_end_known = loaded.loader == LOADER_DONE;
    Loaded {
        returned: Nanos(loaded.returned),
        return_cpu: Some(Nanos(loaded.return_cpu)),
        has_loader: loaded.loader != LOADER_NONE,
        load_end: is_end_known.then_some(Nanos(loaded.load_end)),
        load_cpu: is_end_known.then_some(Nanos(loaded.load_cpu)),
        load_opens: is_end_known.then_some(loaded.load_opens),
        load_failed_opens: is_end_known.then_some(loaded.load_failed_opens),
        load_cache: match loaded.load_cache {
            CACHE_OPENED if is_end_known => Some(true),
            CACHE_FAILED if is_end_known => Some(false),
            _ => None,
        },
    }
}

fn decode_exited(exited: &WireExited, page_bytes: u64) -> Exited {
    Exited {
        first_run: observed(exited.first_run),
        exit_group_entered: observed(exited.exit_group_entered),
        last_thread: exited.last_thread != 0,
        wait_status: Some(exited.wait_status),
        cpu: Some(Nanos(exited.cpu)),
        work_cpu: observed(exited.work_cpu),
        exit_faults: known(exited.exit_faults),
        exit_rss_bytes: (exited.exit_rss_pages > 0).then_some(exited.exit_rss_pages.saturating_mul(page_bytes)),
    }
}

fn last_slice(gone: &WireGone) -> EventKind {
    let ended = Slice::new(Nanos(gone.header.at), LeftCpu::Ended);
    EventKind::Slice(Slice { on: observed(gone.on), calls: Some(gone.calls), ..ended })
}

/// Joins the components of a path. If the walk did not reach the root, the path begins with `...`:
/// a partial path is better than none.
pub(super) fn path_of_components(innermost_first: &[u8], is_complete: bool) -> Vec<u8> {
    let mut path = join_components(innermost_first);
    if !is_complete {
        path.splice(..1, *b".../");
    }
    path
}

fn decode_file_named(named: &WireFileNamed, rest: &[u8]) -> Option<EventKind> {
    let path = path_of_components(rest.get(..named.path_bytes as usize)?, named.complete != 0);
    Some(EventKind::FileNamed { device: named.device, inode: named.inode, path })
}

/// Returns what a thread waited for; `None` if it is unknown.
fn object(slice: &WireSlice) -> Option<Object> {
    let (kind, inode) = match slice.object_kind & !OBJECT_UNLESS_THREAD {
        OBJECT_ANONYMOUS => (anonymous_kind(slice.object_inode.to_ne_bytes()), 0),
        kind => (*ObjectKind::ALL.get(kind.checked_sub(1)? as usize)?, slice.object_inode),
    };
    waker::was_waited_for(slice, kind).then_some(Object { kind, device: slice.object_device, inode })
}

/// Returns the kind of an anonymous inode, given the first eight bytes of its name in the kernel.
fn anonymous_kind(name: [u8; 8]) -> ObjectKind {
    match &name {
        b"[eventpo" => ObjectKind::Epoll,
        b"[eventfd" => ObjectKind::Eventfd,
        b"[signalf" => ObjectKind::Signalfd,
        b"[timerfd" => ObjectKind::Timerfd,
        b"[pidfd]\0" => ObjectKind::Pidfd,
        _ => ObjectKind::Anonymous,
    }
}

fn slice(slice: &WireSlice) -> Option<Slice> {
    let reason = match slice.reason {
        LEFT_CREATED => LeftCpu::Created,
        LEFT_PREEMPTED => LeftCpu::Preempted,
        LEFT_INTERRUPTIBLE => LeftCpu::Interruptible,
        LEFT_UNINTERRUPTIBLE => LeftCpu::Uninterruptible,
        LEFT_STOPPED => LeftCpu::Stopped,
        _ => return None,
    };
    let object = object(slice);
    Some(Slice {
        on: observed(slice.on),
        off: Nanos(slice.off),
        reason,
        syscall: u32::try_from(slice.syscall).ok().map(|number| Syscall { number, argument: slice.argument }),
        calls: Some(slice.calls),
        object,
        wake: waker::wake(slice, object.map(|object| object.kind)),
    })
}

#[cfg(test)]
mod tests;
