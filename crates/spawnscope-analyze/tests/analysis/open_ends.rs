//! Activity that is not over when the recording ends. Open waits keep their cause, time on a CPU is
//! work, and time without evidence is unknown rather than work, launching or a sleep.

use spawnscope_analyze::CriticalPath;
use spawnscope_data::rows::{ObjectRef, ObjectRow, ThreadRow};

use crate::prelude::*;
use crate::recordings::{SHELL_WALL as WALL, attribution, causes, open_wait, shell_with, sleeping_child};

/// When the loader of the command ends, in nanoseconds, as in the builder.
const LOADED: u64 = 720_000;
const POLL: u16 = 7;
const WAITID: u16 = 247;
const VFORK: u16 = 58;
/// The first argument of a wait4 for any child.
const ANY: u64 = u32::MAX as u64;

/// Returns the slice of a thread that is on a CPU from `on` to the end of the recording.
fn running_at_end(task: u64, on: u64) -> SliceRow {
    SliceRow { reason: LeftCpu::Preempted, syscall: None, ..open_wait(task, on, WALL, 0, 0) }
}

fn path(recording: &Recording, slices: &[SliceRow]) -> CriticalPath {
    let path = causes(recording, slices).path;
    assert_eq!(path.sum(), Nanos(WALL));
    path
}

fn external_wait_ns(path: &CriticalPath, what: ExternalWait) -> u64 {
    path.external_wait.get(&what).copied().unwrap_or_default().0
}

#[test]
fn a_launch_that_is_waited_for_to_the_end_can_be_removed() {
    let builder = shell_with(1);
    let waits = open_wait(1, 0, 1_500_000, WAIT4, ANY);
    let recorded = (builder.recording, [&[waits][..], &sleeping_child(2)].concat());
    let unchanged = predict(&recorded, &Default::default(), &[]);
    assert!(unchanged.replay_error.abs() < 0.001, "{unchanged:?}");
    let removed = predict(&recorded, &Default::default(), &[(Change::Remove, &[LaunchId(2)])]);
    assert!(removed.saving()[0].0 > WALL - 3_000_000, "{removed:?}");
}

/// Returns the child that a wait of the shell is attributed to, if any. Lets one child after
/// another sleep while the others work. If the sleep is on the critical path, the wait is for that
/// child.
fn awaited_child(mut waits: SliceRow, children: u64) -> Option<u64> {
    let mut builder = shell_with(children);
    if waits.syscall == Some(READ) {
        builder.recording.objects.push(ObjectRow { kind: ObjectKind::Pipe, device: 15, inode: 7, path: None });
        waits.object = ObjectRef::new(ObjectKind::Pipe, 0);
    }
    let last = 1_000_000 * (children + 1);
    (waits.off, waits.on_span) = (Nanos(last), Some(Nanos(last)));
    let found = (2..2 + children).find(|sleeper| {
        let mut slices = vec![waits];
        for child in 2..2 + children {
            let [made, asleep] = sleeping_child(child);
            let on = asleep.off.0 - asleep.on_span.unwrap().0;
            slices.extend([made, if child == *sleeper { asleep } else { running_at_end(child, on) }]);
        }
        external_wait_ns(&path(&builder.recording, &slices), ExternalWait::Timer) > WALL / 2
    });
    if found.is_none() {
        let slices: Vec<SliceRow> = (2..2 + children).flat_map(sleeping_child).chain([waits]).collect();
        let path = path(&builder.recording, &slices);
        assert!(external_wait_ns(&path, ExternalWait::Unknown) > WALL / 2, "{path:?}");
    }
    found
}

#[test]
fn the_awaited_child_is_taken_from_the_arguments_of_the_call() {
    let pid_of_third = 4003;
    assert_eq!(awaited_child(open_wait(1, 0, 0, WAIT4, pid_of_third), 3), Some(3), "by its pid");
    assert_eq!(awaited_child(open_wait(1, 0, 0, WAIT4, ANY), 3), Some(4), "the last one created");
    assert_eq!(awaited_child(open_wait(1, 0, 0, WAITID, 0), 3), Some(4), "any child");
    assert_eq!(awaited_child(open_wait(1, 0, 0, WAITID, 1), 3), None, "one of them, but it is unknown which");
    assert_eq!(awaited_child(open_wait(1, 0, 0, WAITID, 1), 1), Some(2), "there is only one");
    assert_eq!(awaited_child(open_wait(1, 0, 0, WAIT4, 77), 1), Some(2), "of another pid namespace");
    assert_eq!(awaited_child(open_wait(1, 0, 0, READ, 3), 1), Some(2), "a substitution");
    assert_eq!(awaited_child(open_wait(1, 0, 0, READ, 3), 2), None, "it is unknown which child writes");
    assert_eq!(awaited_child(open_wait(1, 0, 0, POLL, 3), 1), None, "for any event");
    let suspended = SliceRow { reason: LeftCpu::Uninterruptible, ..open_wait(1, 0, 0, VFORK, 0) };
    assert_eq!(awaited_child(suspended, 2), Some(3), "the child it just created");
}

#[test]
fn a_thread_on_a_cpu_at_the_end_was_running() {
    let builder = shell_with(0);
    let path = path(&builder.recording, &[running_at_end(1, 0)]);
    assert_eq!(path.launches[0].get(Phase::Run), Nanos(WALL - LOADED));
}

#[test]
fn a_runnable_thread_at_the_end_waited_for_a_cpu() {
    let builder = shell_with(0);
    let queued = SliceRow { off: Nanos(WALL / 2), on_span: Some(Nanos(WALL / 2)), ..running_at_end(1, 0) };
    assert_eq!(path(&builder.recording, &[queued]).launches[0].run_queue(), Nanos(WALL / 2));
    let woken = SliceRow { wake_span: Some(Nanos(WALL / 4)), ..open_wait(1, 0, WALL / 2, CLOCK_NANOSLEEP, 0) };
    let path = path(&builder.recording, &[woken]);
    assert_eq!(path.launches[0].run_queue(), Nanos(WALL / 4));
    assert_eq!(external_wait_ns(&path, ExternalWait::Timer), WALL / 4);
}

/// Slices at the end are missing on a kernel without an iterator over threads, and in recordings
/// before version 6 of the format.
#[test]
fn without_slices_instants_show_launching_and_all_other_time_is_unknown() {
    let builder = shell_with(0);
    let path = path(&builder.recording, &[]);
    let charged = [Phase::Queue, Phase::Exec, Phase::Load, Phase::Run].map(|phase| path.launches[0].get(phase).0);
    assert_eq!(charged, [0, 300_000, 400_000, 0]);
    assert_eq!(external_wait_ns(&path, ExternalWait::Unknown), WALL - LOADED);
}

#[test]
fn time_after_the_last_slice_of_a_running_thread_is_unknown() {
    let builder = shell_with(0);
    let back = slice(1, 0, 10_000_000, [1_000_000, 0], CLOCK_NANOSLEEP, None);
    let path = path(&builder.recording, &[back]);
    assert_eq!(external_wait_ns(&path, ExternalWait::Unknown), WALL - 11_000_000);
    assert_eq!(path.launches[0].get(Phase::Run), Nanos(10_000_000 - LOADED));
}

#[test]
fn waiting_of_a_child_with_several_threads_is_unknown() {
    let mut builder = Builder::command("/bin/sh", &["sh"], WALL);
    let spans = Spans { run: 5_000_000, ..Spans::USUAL };
    let child = builder.launch(ROOT, 0, &spans, Some(("/bin/sleep", &["sleep"])));
    let sleeps = slice(child.0, 140_000, 2_000_000, [1_000_000, 0], CLOCK_NANOSLEEP, None);
    let by = Some(spawnscope_data::rows::WakerRow::Task(TaskId(child.0)));
    let waits = slice(1, 0, 200_000, [4_000_000, 0], WAIT4, by);
    let slices = [waits, sleeps, ended(child.0, 3_000_000, 5_900_000)];
    let parts = attribution(&builder.recording, &slices)[0].parts;
    assert_eq!(parts.run_waiting, Nanos(1_000_000));

    let forest = Forest::build(&builder.recording);
    let timelines = timelines_with(&forest, &slices, &[thread(90, child, 2_000_000)]);
    let parts = attributed_waits(&builder.recording, &forest, &timelines)[0].parts;
    assert_eq!((parts.run_waiting, parts.run.0 > 3_000_000), (Nanos(0), true));
}

#[test]
fn an_ended_thread_does_not_show_what_its_process_waits_for() {
    let mut builder = shell_with(0);
    builder.row(ROOT).parent_task = None;
    let forest = Forest::build(&builder.recording);
    let thread = ThreadRow { ended: Some(Nanos(900_000_000)), ..thread(90, ROOT, 1_000_000) };
    let slices = [open_wait(1, 0, 2_000_000, CLOCK_NANOSLEEP, 0), ended(90, 890_000_000, 900_000_000)];
    let timelines = timelines_with(&forest, &slices, &[thread]);
    let causes = Causes::find(&builder.recording, &forest, &timelines).expect("a command");
    assert!(external_wait_ns(&causes.path, ExternalWait::Timer) > WALL - 3_000_000, "{:?}", causes.path);
}
