//! Turns hand-made records into events.

use crate::perf::kernel::{File, Record, RecordKind, VDSO};
use spawnscope_data::event::{Event, EventKind, Loaded, Nanos, Pid, TaskId};

use super::followed::{CommandEnd, FollowedProcesses};
use crate::ROOT;

const COMMAND: i32 = 10;
/// A pid above the kernel's maximum, so that no process of this machine is watched.
const CHILD: i32 = 1 << 23;

struct Recording(FollowedProcesses);

impl Recording {
    fn new() -> Recording {
        Recording(FollowedProcesses::new(Pid(COMMAND)))
    }

    fn add(&mut self, at: u64, pid: i32, tid: i32, kind: RecordKind) -> &mut Recording {
        let (at, pid, tid) = (Nanos(at), Pid(pid), Pid(tid));
        self.0.apply(Record { at, pid, tid, kind }, None);
        self
    }

    fn forks(&mut self, at: u64, pid: i32, new: (i32, i32)) -> &mut Recording {
        let (child, tid) = (Pid(new.0), Pid(new.1));
        self.add(at, pid, pid, RecordKind::Forked { pid: child, tid })
    }

    fn executes(&mut self, at: u64, pid: i32) -> &mut Recording {
        let name = b"true".to_vec();
        self.add(at, pid, pid, RecordKind::Executed { name })
    }

    fn maps(&mut self, at: u64, pid: i32, inode: u64, name: &[u8]) -> &mut Recording {
        let mapped = RecordKind::Mapped { file: File { device: (8, 1), inode }, protection: 1, name: name.to_vec() };
        self.add(at, pid, pid, mapped)
    }

    fn events_of(&self, launch: u64) -> impl Iterator<Item = &Event> {
        self.0.events.iter().filter(move |event| event.launch.0 == launch)
    }
}

#[test]
fn the_phases_and_the_program_of_a_launch_are_reported() {
    let mut recording = Recording::new();
    recording.forks(100, COMMAND, (CHILD, CHILD)).add(130, CHILD, CHILD, RecordKind::GotCpu);
    recording.executes(150, CHILD).maps(151, CHILD, 1, b"/bin/true");
    recording.maps(152, CHILD, 2, b"/lib/ld.so").maps(160, CHILD, 0, VDSO);
    recording.maps(180, CHILD, 2, b"/lib/ld.so").add(200, CHILD, CHILD, RecordKind::Exited);
    let kinds: Vec<&EventKind> = recording.events_of(2).map(|event| &event.kind).collect();
    let [
        EventKind::Launched(launched),
        EventKind::Slice(_),
        EventKind::Executed(executed),
        EventKind::Loaded(loaded),
        EventKind::Slice(_),
        EventKind::Exited(exited),
        EventKind::Gone { zombie: None, .. },
    ] = kinds[..]
    else {
        panic!("{kinds:?}");
    };
    assert_eq!((launched.parent, launched.mechanism), (ROOT, None));
    assert_eq!((executed.first_run, executed.path.as_slice()), (Some(Nanos(130)), &b"/bin/true"[..]));
    assert_eq!((executed.argv.len(), executed.argv_bytes, &executed.cwd), (0, 1, &None));
    assert_eq!((loaded.returned, loaded.return_cpu), (Nanos(160), Some(Nanos(30))));
    let end = Loaded::by_loader(Some((Nanos(180), Nanos(50))));
    assert_eq!(*loaded, Loaded { returned: loaded.returned, return_cpu: loaded.return_cpu, ..end });
    assert_eq!((exited.last_thread, exited.wait_status, exited.cpu), (true, None, Some(Nanos(70))));
    assert_eq!((recording.0.counts.programs, recording.0.counts.without_arguments), (1, 1));
}

/// Returns the threads of launch 2 that have ended, and whether each was the last one.
fn ended_threads(recording: &Recording) -> Vec<(TaskId, bool)> {
    let exits = recording.events_of(2).filter_map(|event| match &event.kind {
        EventKind::Exited(exited) => Some((event.task, exited.last_thread)),
        _ => None,
    });
    exits.collect()
}

#[test]
fn a_process_ends_with_its_last_thread_and_an_exec_ends_all_other_threads() {
    let mut recording = Recording::new();
    recording.forks(100, COMMAND, (20, 20)).forks(110, 20, (20, 21)).forks(111, 20, (20, 22));
    recording.add(120, 20, 20, RecordKind::Exited).add(121, 20, 21, RecordKind::Exited);
    assert_eq!(ended_threads(&recording), [(TaskId(2), false), (TaskId(3), false)]);
    // Thread 22 calls exec, and becomes the first thread.
    recording.add(125, 20, 22, RecordKind::GotCpu).executes(130, 20).maps(131, 20, 1, b"/bin/true");
    let gone =
        recording.events_of(2).any(|event| event.task == TaskId(4) && matches!(event.kind, EventKind::Gone { .. }));
    assert!(gone);
    recording.add(140, 20, 20, RecordKind::Exited);
    assert_eq!(ended_threads(&recording).last(), Some(&(TaskId(2), true)));
}

/// Returns when the command exited, and its status.
fn command_exit(recording: &Recording) -> Option<(Nanos, Option<i32>)> {
    recording.events_of(ROOT.0).find_map(|event| match &event.kind {
        EventKind::Exited(exited) => Some((event.at, exited.wait_status)),
        _ => None,
    })
}

#[test]
fn the_exit_of_the_command_has_its_status_whichever_becomes_known_first() {
    let end = CommandEnd { at: Nanos(500), status: Some(7 << 8) };
    for is_first in [true, false] {
        let mut recording = Recording::new();
        if is_first {
            recording.0.set_command_end(end);
        }
        recording.add(400, COMMAND, COMMAND, RecordKind::Exited);
        if !is_first {
            assert_eq!(command_exit(&recording), None);
            recording.0.set_command_end(end);
        }
        assert_eq!(command_exit(&recording), Some((Nanos(400), Some(7 << 8))));
    }
}

#[test]
fn a_process_that_exits_after_its_exec_without_a_mapping_runs_a_program_with_privilege() {
    let mut recording = Recording::new();
    recording.forks(100, COMMAND, (CHILD, CHILD)).executes(150, CHILD).add(151, CHILD, CHILD, RecordKind::Exited);
    assert!(recording.0.notices[0].contains("true runs with privilege"), "{:?}", recording.0.notices);
    let kinds: Vec<&EventKind> = recording.events_of(2).map(|event| &event.kind).collect();
    assert!(matches!(
        kinds[..],
        [EventKind::Launched(_), EventKind::Executed(_), EventKind::Gone { zombie: Some(_), .. }]
    ));
}

#[test]
fn after_lost_records_processes_are_orphans_and_nothing_is_invented() {
    let mut recording = Recording::new();
    recording.add(90, COMMAND, COMMAND, RecordKind::Lost(5)).add(100, 30, 31, RecordKind::GotCpu);
    recording.add(110, 30, 31, RecordKind::Exited).add(112, 30, 30, RecordKind::Exited);
    assert_eq!(recording.0.counts.lost, 5);
    let exits = recording.events_of(2).filter_map(|event| match &event.kind {
        EventKind::Exited(exited) => Some((exited.last_thread, exited.cpu)),
        _ => None,
    });
    assert_eq!(exits.collect::<Vec<_>>(), [(false, None), (true, None)]);
    assert!(!recording.events_of(2).any(|event| matches!(event.kind, EventKind::Launched(_))));
    recording.forks(120, COMMAND, (40, 40)).add(130, 40, 40, RecordKind::GotCpu);
    recording.0.finish(Nanos(200));
    let last = recording.events_of(4).last().expect("the running process");
    assert!(
        matches!(&last.kind, EventKind::LastSeen(slice) if slice.on == Some(Nanos(130)) && slice.off == Nanos(200))
    );
}
