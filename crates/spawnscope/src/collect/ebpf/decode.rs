//! From the bytes of the ring buffer to events. Pure: a record in, one or two events out.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::wire::*;
use crate::event::{
    Closing, Event, EventKind, Executed, Exited, LaunchId, Launched, LeftCpu, LibrarySearch, Loaded, Loader, Mechanism,
    Nanos, ParentMemory, Pid, Slice, Syscall, TaskId, Wake, Waker,
};

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
/// What libc's fork passes: the exit signal, and where to store the child's tid.
const FORK_FLAGS: u64 = 0xff | 0x0100_0000 | 0x0020_0000 | 0x0010_0000;

/// Turns a record into events, in order. `page_bytes` is the machine's page size. `None`: not a record of this format.
pub(super) fn decode(bytes: &[u8], page_bytes: u64, events: &mut Vec<Event>) -> Option<()> {
    let header = read::<WireHeader>(bytes)?.0;
    let kind = match header.kind {
        KIND_LAUNCH => EventKind::Launched(launched(&read(bytes)?.0, page_bytes)),
        KIND_THREAD => thread_started(&read(bytes)?.0),
        KIND_ADOPTED => adopted(&read(bytes)?.0),
        KIND_EXEC_FAILED => {
            let (failed, rest) = read(bytes)?;
            exec_failed(&failed, rest)?
        }
        KIND_EXECUTED => {
            let (executed, rest) = read(bytes)?;
            EventKind::Executed(decode_executed(&executed, rest)?)
        }
        KIND_LOADED => EventKind::Loaded(loaded(&read(bytes)?.0)),
        KIND_EXITED => EventKind::Exited(exited(&read(bytes)?.0)),
        KIND_GONE => {
            let gone: WireGone = read(bytes)?.0;
            events.push(event(&header, last_slice(&gone)));
            EventKind::Gone {
                zombie: seen(gone.zombie),
                auto_reaped: gone.released != 0,
                cpu: Nanos(gone.cpu),
            }
        }
        KIND_REAPED => EventKind::Reaped {
            pid: pid(read::<WireReaped>(bytes)?.0.pid),
        },
        KIND_SLICE => EventKind::Slice(slice(&read(bytes)?.0)?),
        _ => return None,
    };
    events.push(event(&header, kind));
    Some(())
}

fn read<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Option<(T, &[u8])> {
    T::read_from_prefix(bytes).ok()
}

fn event(header: &WireHeader, kind: EventKind) -> Event {
    Event {
        at: Nanos(header.at),
        launch: LaunchId(header.launch),
        task: TaskId(header.task),
        kind,
    }
}

fn seen(instant: u64) -> Option<Nanos> {
    (instant != 0).then_some(Nanos(instant))
}

fn pid(number: u32) -> Pid {
    Pid(i32::try_from(number).unwrap_or(0))
}

fn until_nul(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
}

fn mechanism(launch: &WireLaunch) -> Option<Mechanism> {
    const VFORK: i32 = 58;
    const FORK: i32 = 57;
    const CLONE: i32 = 56;
    const CLONE3: i32 = 435;
    let spawns = launch.flags & (CLONE_VM | CLONE_VFORK) == CLONE_VM | CLONE_VFORK;
    Some(match launch.syscall {
        FORK => Mechanism::Fork,
        VFORK => Mechanism::Vfork,
        _ if spawns => Mechanism::PosixSpawn,
        CLONE if launch.flags & !FORK_FLAGS == 0 => Mechanism::Fork,
        CLONE => Mechanism::Clone,
        CLONE3 => Mechanism::Clone3,
        _ => return None,
    })
}

fn launched(launch: &WireLaunch, page_bytes: u64) -> Launched {
    Launched {
        parent: LaunchId(launch.parent),
        parent_task: TaskId(launch.parent_task),
        reaper: (launch.reaper != 0).then_some(LaunchId(launch.reaper)),
        pid: pid(launch.pid),
        pid_for_reaper: pid(launch.pid_for_reaper),
        mechanism: mechanism(launch),
        entered: seen(launch.entered),
        parent_memory: (launch.parent_table_bytes != 0).then_some(ParentMemory {
            rss_bytes: launch.parent_rss_pages * page_bytes,
            page_table_bytes: launch.parent_table_bytes,
        }),
    }
}

fn thread_started(thread: &WireThread) -> EventKind {
    EventKind::ThreadStarted {
        tid: pid(thread.tid),
        creator: TaskId(thread.creator),
    }
}

fn adopted(adopted: &WireAdopted) -> EventKind {
    EventKind::Adopted {
        pid: pid(adopted.pid),
        name: until_nul(&adopted.comm),
    }
}

fn exec_failed(failed: &WireExecFailed, rest: &[u8]) -> Option<EventKind> {
    let path = until_nul(rest.get(..failed.path_bytes as usize)?);
    Some(EventKind::ExecFailed {
        entered: Nanos(failed.entered),
        path,
        errno: failed.errno,
    })
}

fn decode_executed(executed: &WireExecuted, rest: &[u8]) -> Option<Executed> {
    let (path, rest) = rest.split_at_checked(executed.path_bytes as usize)?;
    let (interpreter, rest) = rest.split_at_checked(executed.interpreter_bytes as usize)?;
    let (argv, rest) = rest.split_at_checked(executed.argv_bytes as usize)?;
    let (cwd, _) = rest.split_at_checked(executed.cwd_bytes as usize)?;
    Some(Executed {
        first_run: seen(executed.first_run),
        entered: seen(executed.entered),
        cpu_at_entry: Nanos(executed.cpu_at_entry),
        path: until_nul(path),
        interpreter: (!interpreter.is_empty()).then(|| until_nul(interpreter)),
        argv: argv.to_vec(),
        argv_bytes: executed.argv_total,
        cwd: (executed.cwd_complete != 0).then(|| join_components(cwd)),
        closing: (executed.setup_closes != NOT_COUNTED).then_some(Closing {
            calls: executed.setup_closes,
            span: Nanos(executed.setup_close_span),
        }),
    })
}

/// `c\0b\0a\0` is /a/b/c.
fn join_components(innermost_first: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(innermost_first.len() + 1);
    for component in innermost_first
        .split(|&byte| byte == 0)
        .rev()
        .filter(|component| !component.is_empty())
    {
        path.push(b'/');
        path.extend_from_slice(component);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}

fn loaded(loaded: &WireLoaded) -> Loaded {
    Loaded {
        exec_returned: Nanos(loaded.exec_returned),
        cpu_at_return: Nanos(loaded.cpu_at_return),
        loader: match loaded.loader {
            LOADER_NONE => Loader::None,
            LOADER_DONE => Loader::Done {
                at: Nanos(loaded.load_end),
                cpu: Nanos(loaded.cpu_at_load_end),
                search: LibrarySearch {
                    opens: loaded.opens,
                    failed_opens: loaded.failed_opens,
                    cache: match loaded.cache {
                        CACHE_OPENED => Some(true),
                        CACHE_FAILED => Some(false),
                        _ => None,
                    },
                },
            },
            _ => Loader::Unknown,
        },
    }
}

fn exited(exited: &WireExited) -> Exited {
    Exited {
        first_run: seen(exited.first_run),
        exit_group_entered: seen(exited.exit_group_entered),
        last_thread: exited.last_thread != 0,
        wait_status: exited.wait_status,
        cpu: Nanos(exited.cpu),
    }
}

fn last_slice(gone: &WireGone) -> EventKind {
    let off = Nanos(gone.header.at);
    EventKind::Slice(Slice {
        on: seen(gone.on),
        off,
        left: LeftCpu::Ended,
        syscall: None,
        wake: None,
    })
}

fn slice(slice: &WireSlice) -> Option<Slice> {
    let left = match slice.left {
        LEFT_CREATED => LeftCpu::Created,
        LEFT_PREEMPTED => LeftCpu::Preempted,
        LEFT_INTERRUPTIBLE => LeftCpu::Interruptible,
        LEFT_UNINTERRUPTIBLE => LeftCpu::Uninterruptible,
        LEFT_STOPPED => LeftCpu::Stopped,
        _ => return None,
    };
    let by = match slice.waker_kind {
        WAKER_TASK => Some(Waker::Task(TaskId(slice.waker_task))),
        WAKER_OTHER => Some(Waker::Other {
            pid: pid(slice.waker_pid),
            name: until_nul(&slice.waker_comm),
        }),
        WAKER_INTERRUPT => Some(Waker::Interrupt),
        _ => None,
    };
    Some(Slice {
        on: seen(slice.on),
        off: Nanos(slice.off),
        left,
        syscall: u32::try_from(slice.syscall).ok().map(|number| Syscall {
            number,
            argument: slice.argument,
        }),
        wake: by.and_then(|by| {
            Some(Wake {
                at: seen(slice.woken)?,
                by,
            })
        }),
    })
}

#[cfg(test)]
mod tests {
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;

    fn header(kind: u32) -> WireHeader {
        WireHeader {
            at: 1000,
            launch: 7,
            task: 8,
            kind,
            reserved: 0,
        }
    }

    fn decoded(bytes: &[u8]) -> Option<Vec<EventKind>> {
        let mut events = Vec::new();
        decode(bytes, 4096, &mut events)?;
        assert!(
            events
                .iter()
                .all(|event| (event.at, event.launch, event.task) == (Nanos(1000), LaunchId(7), TaskId(8)))
        );
        Some(events.into_iter().map(|event| event.kind).collect())
    }

    fn launch(syscall: i32, flags: u64) -> Option<Mechanism> {
        let mut record = WireLaunch::new_zeroed();
        (record.header, record.syscall, record.flags) = (header(KIND_LAUNCH), syscall, flags);
        let events = decoded(record.as_bytes()).unwrap();
        let [EventKind::Launched(launched)] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!((launched.entered, launched.parent_memory), (None, None), "0 is unknown");
        launched.mechanism
    }

    #[test]
    fn mechanisms_are_told_by_call_and_flags() {
        let child_tid = 0x0120_0011; // CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD: glibc's fork
        assert_eq!(launch(57, 0), Some(Mechanism::Fork));
        assert_eq!(launch(56, child_tid), Some(Mechanism::Fork));
        assert_eq!(launch(58, 0), Some(Mechanism::Vfork));
        assert_eq!(launch(56, CLONE_VM | CLONE_VFORK | 17), Some(Mechanism::PosixSpawn));
        assert_eq!(launch(435, CLONE_VM | CLONE_VFORK), Some(Mechanism::PosixSpawn));
        assert_eq!(launch(56, CLONE_VM | 17), Some(Mechanism::Clone));
        assert_eq!(launch(56, 0x2000_0000 | 17), Some(Mechanism::Clone), "CLONE_NEWPID");
        assert_eq!(launch(435, 0), Some(Mechanism::Clone3));
        assert_eq!(launch(-1, 0), None, "a 32-bit system call");
    }

    fn executed(texts: [&[u8]; 4], complete: bool) -> Vec<u8> {
        let mut record = WireExecuted::new_zeroed();
        record.header = header(KIND_EXECUTED);
        [
            record.path_bytes,
            record.interpreter_bytes,
            record.argv_bytes,
            record.cwd_bytes,
        ] = texts.map(|text| text.len() as u32);
        record.argv_total = 99;
        record.cwd_complete = u32::from(complete);
        [record.as_bytes(), &texts.concat()].concat()
    }

    #[test]
    fn an_exec_carries_its_strings_byte_for_byte() {
        let bytes = executed([b"/bin/x\0", b"", b"a\0\xff\x1b[m\0", b"c d\0b\0"], true);
        let events = decoded(&bytes).unwrap();
        let [EventKind::Executed(executed)] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!(executed.path, b"/bin/x");
        assert_eq!(executed.interpreter, None);
        assert_eq!(executed.argv, b"a\0\xff\x1b[m\0");
        assert_eq!(executed.argv_bytes, 99);
        assert_eq!(executed.cwd.as_deref(), Some(&b"/b/c d"[..]));
    }

    #[test]
    fn a_working_directory_is_the_root_or_unknown_when_the_walk_ended_early() {
        let cwd = |bytes: &[u8]| match &decoded(bytes).unwrap()[0] {
            EventKind::Executed(executed) => executed.cwd.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            cwd(&executed([b"x\0", b"/bin/sh\0", b"", b""], true)),
            Some(b"/".to_vec())
        );
        assert_eq!(cwd(&executed([b"x\0", b"/bin/sh\0", b"", b"a\0"], false)), None);
    }

    #[test]
    fn closes_are_known_for_a_first_exec_only_and_none_is_not_unknown() {
        let closing = |closes: u32, span: u64| {
            let mut record = WireExecuted::new_zeroed();
            (record.header, record.setup_closes, record.setup_close_span) = (header(KIND_EXECUTED), closes, span);
            match decoded(record.as_bytes()).unwrap().remove(0) {
                EventKind::Executed(executed) => executed.closing.map(|closing| (closing.calls, closing.span)),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(closing(0, 0), Some((0, Nanos(0))));
        assert_eq!(closing(3, 70), Some((3, Nanos(70))));
        assert_eq!(closing(NOT_COUNTED, 0), None);
    }

    #[test]
    fn a_cache_that_nobody_asked_for_is_neither_there_nor_missing() {
        let cache = |cache: u32| {
            let mut record = WireLoaded::new_zeroed();
            (record.header, record.loader, record.cache) = (header(KIND_LOADED), LOADER_DONE, cache);
            (record.opens, record.failed_opens) = (4, 9);
            match decoded(record.as_bytes()).unwrap().remove(0) {
                EventKind::Loaded(Loaded {
                    loader: Loader::Done { search, .. },
                    ..
                }) => {
                    assert_eq!((search.opens, search.failed_opens), (4, 9));
                    search.cache
                }
                other => panic!("{other:?}"),
            }
        };
        let of = [CACHE_OPENED, CACHE_FAILED, CACHE_NOT_ASKED_FOR].map(cache);
        assert_eq!(of, [Some(true), Some(false), None]);
    }

    #[test]
    fn a_record_cut_short_or_of_no_kind_is_refused() {
        let bytes = executed([b"/bin/x\0", b"", b"a\0", b"b\0"], true);
        for length in 0..bytes.len() {
            assert_eq!(decoded(&bytes[..length]), None, "{length}");
        }
        assert_eq!(decoded(header(KIND_END).as_bytes()), None);
        assert_eq!(decoded(header(0).as_bytes()), None);
    }

    #[test]
    fn the_end_of_a_thread_is_its_last_slice_and_its_going() {
        let mut record = WireGone::new_zeroed();
        (record.header, record.on, record.zombie, record.cpu) = (header(KIND_GONE), 900, 990, 70);
        let last = Slice {
            on: Some(Nanos(900)),
            off: Nanos(1000),
            left: LeftCpu::Ended,
            syscall: None,
            wake: None,
        };
        let gone = EventKind::Gone {
            zombie: Some(Nanos(990)),
            auto_reaped: false,
            cpu: Nanos(70),
        };
        assert_eq!(decoded(record.as_bytes()), Some(vec![EventKind::Slice(last), gone]));
    }

    #[test]
    fn a_waker_is_a_followed_thread_another_one_or_an_interrupt() {
        let wake = |kind: u32, woken: u64| {
            let mut record = WireSlice::new_zeroed();
            (record.header, record.left, record.syscall) = (header(KIND_SLICE), LEFT_INTERRUPTIBLE, -1);
            (record.waker_kind, record.woken, record.waker_task, record.waker_pid) = (kind, woken, 5, 42);
            record.waker_comm[..4].copy_from_slice(b"cron");
            match decoded(record.as_bytes()).unwrap().remove(0) {
                EventKind::Slice(slice) => slice.wake.map(|wake| wake.by),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wake(WAKER_TASK, 1), Some(Waker::Task(TaskId(5))));
        assert_eq!(
            wake(WAKER_OTHER, 1),
            Some(Waker::Other {
                pid: Pid(42),
                name: b"cron".to_vec()
            })
        );
        assert_eq!(wake(WAKER_INTERRUPT, 1), Some(Waker::Interrupt));
        assert_eq!(wake(WAKER_UNKNOWN, 1), None);
        assert_eq!(wake(WAKER_TASK, 0), None);
    }
}
