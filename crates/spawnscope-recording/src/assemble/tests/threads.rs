//! Tests of the instants at which processes with several threads begin to exit and become zombies.

use super::*;

/// Returns the exit of a thread. `group` is when the thread called `exit_group`, if it did.
fn thread_exit(at: u64, task: u64, group: Option<u64>, last_thread: bool) -> Event {
    let kind = EventKind::Exited(Exited {
        exit_group_entered: group.map(instant),
        last_thread,
        wait_status: Some(0x700),
        cpu: Some(Nanos(task * 10)),
        ..Exited::default()
    });
    Event { task: TaskId(task), ..event(at, CHILD, kind) }
}

fn thread_started(at: u64, task: u64) -> Event {
    let kind = EventKind::ThreadStarted { tid: Pid(1_000), creator: TaskId(2) };
    Event { task: TaskId(task), ..event(at, CHILD, kind) }
}

#[test]
fn exit_begins_with_the_first_exit_group_of_any_thread() {
    let events = [thread_started(100, 7), thread_exit(400, 2, Some(390), false), thread_exit(410, 7, Some(380), true)];
    let row = &launches(&events)[&CHILD];
    assert_eq!((row.exit, row.wait_status), (Some(Nanos(380)), Some(0x700)));
    assert_eq!((row.cpu, row.exit_cpu), (None, Some(Nanos(90))));
    let one_gone = [&events[..], &[gone(500, CHILD)]].concat();
    let both_gone = [&one_gone[..], &[gone(510, CHILD)]].concat();
    assert_eq!([one_gone, both_gone].map(|events| launches(&events)[&CHILD].cpu), [None, Some(Nanos(200))]);
}

#[test]
fn without_exit_group_the_exit_begins_with_that_of_the_last_thread() {
    let row = &launches(&[thread_started(100, 7), thread_exit(200, 2, None, false)])[&CHILD];
    assert_eq!((row.exit, row.wait_status), (None, None), "the first thread alone does not end the process");
    let events = [thread_started(100, 7), thread_exit(200, 2, None, false), thread_exit(500, 7, None, true)];
    let row = &launches(&events)[&CHILD];
    assert_eq!((row.exit, row.wait_status), (Some(Nanos(500)), Some(0x700)));
}

#[test]
fn an_exec_by_another_thread_ends_the_first_thread_but_not_the_process() {
    let exec = Event { task: TaskId(7), ..executed(300, CHILD, "x") };
    let mut events = vec![thread_started(100, 7), thread_exit(290, 2, None, false), exec];
    let row = &launches(&events)[&CHILD];
    assert_eq!((row.exit, row.exit_cpu), (None, None));
    events.push(thread_exit(500, 7, Some(490), true));
    let row = &launches(&events)[&CHILD];
    assert_eq!((row.exit, row.exit_cpu), (Some(Nanos(490)), Some(Nanos(90))));
}

#[test]
fn a_thread_row_is_completed_by_its_exit() {
    let mut assembler = assembler();
    assembler.apply(&thread_started(100, 7));
    assembler.apply(&thread_exit(400, 7, None, false));
    let threads = assembler.take_batch().threads;
    assert_eq!((threads[0].created, threads[0].ended), (Nanos(100), None));
    assert_eq!((threads[1].ended, threads[1].cpu, threads[1].launch), (Some(Nanos(400)), Some(Nanos(70)), CHILD));
}

#[test]
fn the_process_becomes_a_zombie_when_its_last_thread_does() {
    let row = &launches(&[exited(100, CHILD), gone(200, CHILD), gone(150, CHILD)])[&CHILD];
    assert_eq!(row.zombie, Some(Nanos(195)));
}
