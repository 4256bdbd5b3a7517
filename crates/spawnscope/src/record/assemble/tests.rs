//! What events become: whole lives, awkward ones, and any subset of them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::event::{Mechanism, ParentMemory, Syscall, Wake};
use crate::record::sample::*;
use crate::record::store::write_batch;

const CHILD: LaunchId = LaunchId(2);

fn assembler() -> Assembler {
    Assembler::new(ORIGIN, Redaction::Mask)
}

/// The launch rows that events give, the last state of each.
fn launches(events: &[Event]) -> BTreeMap<LaunchId, LaunchRow> {
    let mut assembler = assembler();
    events.iter().for_each(|event| assembler.apply(event));
    assembler
        .take_batch()
        .launches
        .into_iter()
        .map(|row| (row.id, row))
        .collect()
}

fn with_kind(mut event: Event, change: impl FnOnce(&mut EventKind)) -> Event {
    change(&mut event.kind);
    event
}

#[test]
fn a_whole_life_becomes_one_row_with_every_instant() {
    let mut events = vec![released()];
    events.extend(whole_life(1_000, CHILD, 200));
    let row = &launches(&events)[&CHILD];
    let expected = LaunchRow {
        id: CHILD,
        parent: Some(ROOT),
        parent_task: Some(TaskId(1)),
        pid: Some(Pid(200)),
        origin: Origin::Launched,
        mechanism: Some(Mechanism::Fork),
        create: Some(Nanos(1_050)),
        created: Some(Nanos(1_100)),
        first_run: Some(Nanos(1_200)),
        exit: Some(Nanos(2_195)),
        zombie: Some(Nanos(2_295)),
        reaped: Some(Nanos(2_400)),
        wait_status: Some(0),
        parent_rss_bytes: Some(4_000_000),
        parent_table_bytes: Some(80_000),
        exit_cpu: Some(Nanos(90)),
        cpu: Some(Nanos(100)),
        name: None,
    };
    assert_eq!(*row, expected);
}

#[test]
fn an_exec_carries_its_loader_and_a_chain_keeps_each() {
    let mut assembler = assembler();
    for event in [
        released(),
        launched(10, ROOT, CHILD, 200),
        executed(100, CHILD, "env bash"),
        executed(200, CHILD, "bash"),
    ] {
        assembler.apply(&event);
    }
    let first = assembler.take_batch();
    assembler.apply(&loaded(300, CHILD));
    let second = assembler.take_batch();

    let ordinals = |batch: &Batch| batch.execs.iter().map(|exec| exec.ordinal).collect::<Vec<_>>();
    assert_eq!(
        (ordinals(&first), ordinals(&second)),
        (vec![1, 2], vec![2]),
        "the loaded one is written again"
    );
    let row = &second.execs[0].row;
    assert_eq!(
        (row.enter, row.returned, row.load_end),
        (Some(Nanos(190)), Some(Nanos(295)), Some(Nanos(300)))
    );
    assert_eq!(row.has_loader, Some(true));
    assert_eq!(
        (row.enter_cpu, row.return_cpu, row.load_cpu),
        (Some(Nanos(10)), Some(Nanos(20)), Some(Nanos(40)))
    );
    assert_eq!(
        first.execs[0].row.has_loader, None,
        "unknown, since it execed again before"
    );
}

#[test]
fn a_static_image_has_no_loader_and_an_unseen_end_is_unknown() {
    for (loader, has_loader) in [(Loader::None, false), (Loader::Unknown, true)] {
        let mut assembler = assembler();
        assembler.apply(&executed(100, CHILD, "x"));
        assembler.apply(&with_kind(loaded(200, CHILD), |kind| {
            if let EventKind::Loaded(loaded) = kind {
                loaded.loader = loader;
            }
        }));
        let row = assembler.take_batch().execs.remove(0).row;
        assert_eq!((row.has_loader, row.load_end), (Some(has_loader), None));
    }
}

#[test]
fn masking_a_secret_does_not_make_an_argv_look_cut() {
    let mut assembler = assembler();
    assembler.apply(&executed(100, CHILD, "x --password hunter2hunter2"));
    assembler.apply(&with_kind(executed(200, CHILD, "x --password hunter2"), |kind| {
        if let EventKind::Executed(executed) = kind {
            executed.argv_bytes += 1_000;
        }
    }));
    let batch = assembler.take_batch();
    let stored = b"x\0--password\0***\0".len() as u64;
    let argv_bytes: Vec<u64> = batch.execs.iter().map(|exec| exec.row.argv_bytes).collect();
    assert_eq!(argv_bytes, [stored, stored + 1_000]);
    assert!(
        !batch
            .texts
            .iter()
            .any(|text| text.bytes.windows(7).any(|part| part == b"hunter2"))
    );
}

#[test]
fn the_command_ran_before_it_was_let_go_and_that_is_not_its_set_up() {
    let late = Event {
        at: instant(500),
        ..released()
    };
    let rows = launches(&[late, executed(600, ROOT, "x"), with_kind(exited(900, ROOT), |_| {})]);
    assert_eq!(rows[&ROOT].origin, Origin::Command);
    assert_eq!(
        (rows[&ROOT].created, rows[&ROOT].create, rows[&ROOT].mechanism),
        (Some(Nanos(500)), None, None)
    );
    assert_eq!(rows[&ROOT].first_run, Some(Nanos(580)));
    let early = launches(&[
        Event {
            at: instant(590),
            ..released()
        },
        executed(600, ROOT, "x"),
    ]);
    assert_eq!(early[&ROOT].first_run, Some(Nanos(590)));
}

#[test]
fn a_process_that_was_there_before_is_no_launch() {
    let adopted = event(
        0,
        ROOT,
        EventKind::Adopted {
            pid: Pid(100),
            name: b"make".to_vec(),
        },
    );
    let row = &launches(&[adopted])[&ROOT];
    assert_eq!(
        (row.origin, row.pid, row.parent, row.created),
        (Origin::Existed, Some(Pid(100)), None, Some(Nanos(0)))
    );
    assert!(row.name.is_some());
}

/// Exit of a thread: its task, whether it called `exit_group` and when, whether it is the last.
fn thread_exit(at: u64, task: u64, group: Option<u64>, last_thread: bool) -> Event {
    let kind = EventKind::Exited(Exited {
        first_run: None,
        exit_group_entered: group.map(instant),
        last_thread,
        wait_status: 0x700,
        cpu: Nanos(task * 10),
    });
    Event {
        task: TaskId(task),
        ..event(at, CHILD, kind)
    }
}

fn thread_started(at: u64, task: u64) -> Event {
    let kind = EventKind::ThreadStarted {
        tid: Pid(1_000),
        creator: TaskId(2),
    };
    Event {
        task: TaskId(task),
        ..event(at, CHILD, kind)
    }
}

#[test]
fn exit_begins_with_the_first_exit_group_of_any_thread() {
    let events = [
        thread_started(100, 7),
        thread_exit(400, 2, Some(390), false),
        thread_exit(410, 7, Some(380), true),
    ];
    let row = &launches(&events)[&CHILD];
    assert_eq!((row.exit, row.wait_status), (Some(Nanos(380)), Some(0x700)));
    assert_eq!((row.cpu, row.exit_cpu), (None, Some(Nanos(90))));
    let both_gone = [&events[..], &[gone(500, CHILD), gone(510, CHILD)]].concat();
    assert_eq!(launches(&both_gone)[&CHILD].cpu, Some(Nanos(200)));
}

#[test]
fn without_exit_group_exit_begins_with_the_last_thread() {
    let row = &launches(&[thread_started(100, 7), thread_exit(200, 2, None, false)])[&CHILD];
    assert_eq!(
        (row.exit, row.wait_status),
        (None, None),
        "the first thread alone ends no process"
    );
    let events = [
        thread_started(100, 7),
        thread_exit(200, 2, None, false),
        thread_exit(500, 7, None, true),
    ];
    let row = &launches(&events)[&CHILD];
    assert_eq!((row.exit, row.wait_status), (Some(Nanos(500)), Some(0x700)));
}

#[test]
fn an_exec_by_another_thread_ends_the_first_but_not_the_process() {
    let exec = Event {
        task: TaskId(7),
        ..executed(300, CHILD, "x")
    };
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
    assert_eq!(
        (threads[1].ended, threads[1].cpu, threads[1].launch),
        (Some(Nanos(400)), Some(Nanos(70)), CHILD)
    );
}

#[test]
fn the_process_is_a_zombie_with_the_last_of_its_threads() {
    let row = &launches(&[exited(100, CHILD), gone(200, CHILD), gone(150, CHILD)])[&CHILD];
    assert_eq!(row.zombie, Some(Nanos(195)));
}

#[test]
fn a_wait_for_a_stopped_child_is_no_reaping() {
    let alive = [released(), launched(10, ROOT, CHILD, 200), reaped(100, ROOT, 200)];
    assert_eq!(launches(&alive)[&CHILD].reaped, None);
    let mut dead = alive.to_vec();
    dead.extend([exited(200, CHILD), reaped(300, ROOT, 200), gone(310, CHILD)]);
    assert_eq!(launches(&dead)[&CHILD].reaped, Some(Nanos(300)));
}

#[test]
fn a_child_that_reaps_itself_is_reaped_as_a_zombie_unless_a_wait_says_otherwise() {
    let auto = event(
        300,
        CHILD,
        EventKind::Gone {
            zombie: Some(instant(290)),
            auto_reaped: true,
            cpu: Nanos(100),
        },
    );
    let mut events = vec![released(), launched(10, ROOT, CHILD, 200), exited(200, CHILD), auto];
    assert_eq!(launches(&events)[&CHILD].reaped, Some(Nanos(290)));
    let mut waited = assembler();
    events.iter().for_each(|event| waited.apply(event));
    waited.take_batch();
    waited.apply(&reaped(400, ROOT, 200));
    let late = waited
        .take_batch()
        .launches
        .into_iter()
        .find(|row| row.id == CHILD)
        .unwrap();
    assert_eq!(late.reaped, Some(Nanos(400)), "even when it had left memory");

    events.insert(3, reaped(250, ROOT, 200));
    assert_eq!(
        launches(&events)[&CHILD].reaped,
        Some(Nanos(250)),
        "the reaper may be faster than the last step"
    );
}

#[test]
fn a_child_whose_parent_died_is_reaped_by_the_subreaper() {
    let grandchild = LaunchId(3);
    let mut events = vec![
        released(),
        launched(10, ROOT, CHILD, 200),
        launched(20, CHILD, grandchild, 300),
    ];
    events.extend([exited(100, grandchild), gone(110, grandchild), reaped(150, ROOT, 300)]);
    assert_eq!(
        launches(&events)[&grandchild].reaped,
        None,
        "a tracer's wait: the parent lives and will reap it"
    );
    events.extend([exited(200, CHILD), reaped(250, ROOT, 300)]);
    assert_eq!(launches(&events)[&grandchild].reaped, Some(Nanos(250)));
}

#[test]
fn a_pid_that_is_used_again_belongs_to_the_new_launch() {
    let second = LaunchId(3);
    let events = [
        released(),
        launched(10, ROOT, CHILD, 200),
        exited(100, CHILD),
        gone(110, CHILD),
        launched(200, ROOT, second, 200),
        exited(300, second),
        gone(310, second),
        reaped(400, ROOT, 200),
    ];
    let rows = launches(&events);
    assert_eq!(rows[&second].reaped, Some(Nanos(400)));
    assert_eq!(rows[&CHILD].reaped, None, "its reaping was lost");
}

#[test]
fn finished_launches_leave_memory() {
    let mut assembler = assembler();
    assembler.apply(&released());
    for number in 0..100 {
        whole_life(number * 2_000, LaunchId(2 + number), 200)
            .iter()
            .for_each(|event| assembler.apply(event));
        assembler.take_batch();
    }
    assert_eq!(assembler.unfinished.keys().collect::<Vec<_>>(), [&ROOT]);
    assert_eq!(assembler.by_pid.len(), 1);
    assert!(assembler.unfinished[&ROOT].awaited.is_empty());
}

#[test]
fn launches_whose_end_was_lost_are_bounded_by_the_pids_and_orphans_by_number() {
    let mut assembler = assembler();
    for number in 0..1_000 {
        assembler.apply(&launched(
            number,
            ROOT,
            LaunchId(2 + number),
            i32::try_from(1 + number % 10).unwrap(),
        ));
    }
    assembler.take_batch();
    assert_eq!(assembler.unfinished.len(), 11);

    for number in 0..=Assembler::MANY_UNFINISHED as u64 {
        assembler.apply(&executed(2_000 + number, LaunchId(5_000 + number), "x"));
    }
    assembler.take_batch();
    assert_eq!(assembler.unfinished.len(), 10);
}

#[test]
fn a_batch_holds_only_what_changed() {
    let mut assembler = assembler();
    assembler.apply(&released());
    assembler.apply(&launched(10, ROOT, CHILD, 200));
    assert_eq!(assembler.take_batch().launches.len(), 2);
    assembler.apply(&slice(100, CHILD, LeftCpu::Interruptible));
    let batch = assembler.take_batch();
    assert!(batch.launches.is_empty() && batch.slices.len() == 1 && batch.mentioned.is_empty());
    assert_eq!(
        assembler.take_batch().last,
        Nanos(100),
        "the latest event is remembered"
    );
}

#[test]
fn a_slice_is_stored_as_spans() {
    let mut assembler = assembler();
    let pid = Pid(77);
    for (left, by) in [
        (LeftCpu::Interruptible, Waker::Task(TaskId(9))),
        (
            LeftCpu::Stopped,
            Waker::Other {
                pid,
                name: b"kworker".to_vec(),
            },
        ),
        (
            LeftCpu::Uninterruptible,
            Waker::Other {
                pid: Pid(0),
                name: b"scanner".to_vec(),
            },
        ),
        (LeftCpu::Ended, Waker::Interrupt),
    ] {
        let kind = EventKind::Slice(Slice {
            on: Some(Nanos(ORIGIN.0 - 10)),
            off: instant(40),
            left,
            syscall: Some(Syscall { number: 0, argument: 3 }),
            wake: Some(Wake { at: instant(70), by }),
        });
        assembler.apply(&event(100, CHILD, kind));
    }
    let batch = assembler.take_batch();
    let first = &batch.slices[0];
    assert_eq!(
        (first.on_span, first.off, first.off_span),
        (Some(Nanos(50)), Nanos(40), Some(Nanos(60)))
    );
    assert_eq!(
        (first.wake_span, first.waker),
        (Some(Nanos(30)), Some(WakerRow::Task(TaskId(9))))
    );
    assert!(matches!(batch.slices[1].waker, Some(WakerRow::Other(found, Some(_))) if found == pid));
    assert!(
        matches!(batch.slices[2].waker, Some(WakerRow::Other(Pid(0), Some(_)))),
        "outside the recorder's pid namespace"
    );
    assert_eq!(batch.slices[3].waker, Some(WakerRow::Interrupt));
    assert_eq!(batch.slices[3].off_span, None, "it ended");
    assert_eq!(batch.mentioned, HashSet::from([CHILD]));
}

#[test]
fn a_launch_that_is_killed_before_it_ran_has_no_instants_it_did_not_reach() {
    let killed = with_kind(exited(100, CHILD), |kind| {
        if let EventKind::Exited(exited) = kind {
            (exited.exit_group_entered, exited.wait_status) = (None, 9);
        }
    });
    let row = &launches(&[released(), launched(10, ROOT, CHILD, 200), killed, gone(150, CHILD)])[&CHILD];
    assert_eq!(
        (row.first_run, row.exit, row.wait_status),
        (None, Some(Nanos(100)), Some(9))
    );
    assert_eq!((row.zombie, row.reaped), (Some(Nanos(145)), None));
}

/// Writes events in batches of some size, and gives the file back.
fn written(events: &[Event], batch_events: usize) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("../schema.sql")).unwrap();
    let mut assembler = assembler();
    for batch in events.chunks(batch_events) {
        batch.iter().for_each(|event| assembler.apply(event));
        write_batch(&mut connection, &assembler.take_batch()).unwrap();
    }
    connection
}

fn number(connection: &Connection, query: &str) -> i64 {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_late_event_adds_to_a_row_and_takes_nothing_from_it() {
    let mut events = vec![released()];
    events.extend(whole_life(1_000, CHILD, 200));
    events.push(with_kind(gone(2_500, CHILD), |_| {}));
    events.push(slice(2_600, CHILD, LeftCpu::Ended));
    let connection = written(&events, 1);
    let kept =
        "SELECT count(*) FROM launch WHERE id = 2 AND origin = 0 AND parent = 1 AND pid = 200 AND reaped_ns = 2400";
    assert_eq!(number(&connection, kept), 1);
    assert_eq!(number(&connection, "SELECT zombie_ns FROM launch WHERE id = 2"), 2_495);
}

const DANGLING: [&str; 6] = [
    "SELECT count(*) FROM launch WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM launch)",
    "SELECT count(*) FROM exec WHERE launch NOT IN (SELECT id FROM launch)",
    "SELECT count(*) FROM failed_exec WHERE launch NOT IN (SELECT id FROM launch)",
    "SELECT count(*) FROM exec WHERE argv_text NOT IN (SELECT id FROM text)",
    "SELECT count(*) FROM slice WHERE task NOT IN (SELECT id FROM launch) AND task NOT IN (SELECT task FROM thread)",
    "SELECT count(*) FROM launch WHERE origin = 0 AND (pid IS NULL OR created_ns IS NULL)",
];

/// A valid history of a few processes that launch each other, reuse pids, thread and die, from a list of choices.
fn history(choices: &[(u8, u8)]) -> Vec<Event> {
    let mut events = vec![released()];
    let mut alive = vec![(ROOT, 100)];
    let mut free_pids: Vec<i32> = (200..206).collect();
    let mut next_id = 2;
    for (step, &(choice, whom)) in choices.iter().enumerate() {
        let at = 1_000 + step as u64 * 1_000;
        let chosen = usize::from(whom) % alive.len();
        let (launch, pid) = alive[chosen];
        match choice % 6 {
            0 | 1 => {
                let Some(pid) = free_pids.pop() else { continue };
                let id = LaunchId(next_id);
                next_id += 1;
                alive.push((id, pid));
                events.push(launched(at, launch, id, pid));
                events.push(slice(at + 100, id, LeftCpu::Created));
            }
            2 => events.extend([executed(at, launch, "dirname x"), loaded(at + 100, launch)]),
            3 => events.push(slice(at, launch, LeftCpu::Interruptible)),
            4 => events.push(event(
                at,
                launch,
                EventKind::ExecFailed {
                    entered: instant(at - 5),
                    path: b"/x".to_vec(),
                    errno: 2,
                },
            )),
            _ if launch == ROOT => {}
            _ => {
                alive.remove(chosen);
                free_pids.push(pid);
                events.extend([exited(at, launch), gone(at + 10, launch), reaped(at + 20, ROOT, pid)]);
            }
        }
    }
    events
}

proptest! {
    #[test]
    fn lost_events_leave_a_consistent_tree(
        choices in prop::collection::vec(any::<(u8, u8)>(), 0..60),
        kept in prop::collection::vec(prop::bool::weighted(0.7), 200),
        batch_events in 1_usize..40,
    ) {
        let all = history(&choices);
        let some: Vec<Event> = all.iter().zip(kept.iter().cycle()).filter(|(_, kept)| **kept).map(|(event, _)| event.clone()).collect();
        let connection = written(&some, batch_events);
        for query in DANGLING {
            prop_assert_eq!(number(&connection, query), 0, "{}", query);
        }
        let launches = some.iter().filter(|event| matches!(event.kind, EventKind::Launched(_))).count();
        prop_assert_eq!(number(&connection, "SELECT count(*) FROM launch WHERE origin = 0"), i64::try_from(launches).unwrap());
    }

    #[test]
    fn how_events_are_cut_into_batches_changes_nothing(
        choices in prop::collection::vec(any::<(u8, u8)>(), 0..60),
        batch_events in 1_usize..40,
    ) {
        let events = history(&choices);
        let rows = |connection: &Connection| {
            let mut statement = connection.prepare("SELECT * FROM launch ORDER BY id").unwrap();
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| (0..columns).map(|column| row.get::<_, rusqlite::types::Value>(column)).collect::<Result<Vec<_>, _>>());
            rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
        };
        prop_assert_eq!(rows(&written(&events, batch_events)), rows(&written(&events, usize::MAX)));
    }
}

#[test]
fn the_parent_may_have_weighed_an_unknown_amount() {
    let light = with_kind(launched(10, ROOT, CHILD, 200), |kind| {
        if let EventKind::Launched(launched) = kind {
            (launched.parent_memory, launched.entered) = (None::<ParentMemory>, None);
        }
    });
    let row = &launches(&[released(), light])[&CHILD];
    assert_eq!(
        (row.parent_rss_bytes, row.parent_table_bytes, row.create),
        (None, None, None)
    );
}
