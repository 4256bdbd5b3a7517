//! Tests of batches: their contents, and that neither their size nor lost events make a recording
//! inconsistent.

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::*;
use crate::RecordingFile;
use crate::store::{create_schema, write_batch};
use spawnscope_data::event::{Syscall, Wake};

#[test]
fn unfinished_launches_are_bounded_by_pid_reuse_and_orphans_by_a_limit() {
    let mut assembler = assembler();
    for number in 0..1_000 {
        assembler.apply(&launched(number, ROOT, LaunchId(2 + number), i32::try_from(1 + number % 10).unwrap()));
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
fn a_batch_contains_only_what_has_changed() {
    let mut assembler = assembler();
    assembler.apply(&released());
    assembler.apply(&launched(10, ROOT, CHILD, 200));
    assert_eq!(assembler.take_batch().launches.len(), 2);
    assembler.apply(&slice(100, CHILD, LeftCpu::Interruptible));
    let batch = assembler.take_batch();
    assert!(batch.launches.is_empty() && batch.slices.len() == 1 && batch.referenced.is_empty());
    assert_eq!(assembler.take_batch().last_event, Nanos(100), "the latest event is remembered");
}

#[test]
fn a_slice_is_stored_as_spans() {
    let mut assembler = assembler();
    let pid = Pid(77);
    for (reason, by) in [
        (LeftCpu::Interruptible, Waker::Task(TaskId(9))),
        (LeftCpu::Stopped, Waker::Other { pid, name: b"kworker".to_vec() }),
        (LeftCpu::Uninterruptible, Waker::Other { pid: Pid(0), name: b"scanner".to_vec() }),
        (LeftCpu::Ended, Waker::Interrupt),
    ] {
        let kind = EventKind::Slice(Slice {
            on: Some(Nanos(ORIGIN.0 - 10)),
            off: instant(40),
            reason,
            syscall: Some(Syscall { number: 0, argument: 3 }),
            calls: Some(1),
            object: None,
            wake: Some(Wake { at: instant(70), is_certain: by != Waker::Task(TaskId(9)), by }),
        });
        assembler.apply(&event(100, CHILD, kind));
    }
    let batch = assembler.take_batch();
    let first = &batch.slices[0];
    assert_eq!((first.on_span, first.off, first.off_span), (Some(Nanos(40)), Nanos(40), Some(Nanos(60))));
    assert_eq!((first.wake_span, first.waker), (Some(Nanos(30)), Some(WakerRow::Task(TaskId(9)))));
    assert_eq!((first.is_waker_certain, batch.slices[1].is_waker_certain), (Some(false), Some(true)));
    assert!(matches!(batch.slices[1].waker, Some(WakerRow::Other(found, Some(_))) if found == pid));
    assert!(
        matches!(batch.slices[2].waker, Some(WakerRow::Other(Pid(0), Some(_)))),
        "outside the recorder's pid namespace"
    );
    assert_eq!(batch.slices[3].waker, Some(WakerRow::Interrupt));
    assert_eq!(batch.slices[3].off_span, None, "the thread ended");
    assert_eq!(batch.referenced, HashSet::from([CHILD]));
}

#[test]
fn closing_that_began_before_the_recording_begins_with_it() {
    let mut assembler = assembler();
    let closes = with_kind(executed(100, CHILD, "x"), |kind| {
        if let EventKind::Executed(executed) = kind {
            executed.setup_close_span = Some(Nanos(400));
        }
    });
    assembler.apply(&closes);
    let batch = assembler.take_batch();
    assert_eq!(batch.launches[0].setup_close_span, Some(Nanos(90)), "until the exec was called");
}

#[test]
fn a_thread_off_the_cpu_when_the_recording_ends_has_an_open_slice() {
    let mut assembler = assembler();
    let waits = Slice {
        on: Some(instant(20)),
        off: instant(40),
        reason: LeftCpu::Interruptible,
        syscall: None,
        calls: Some(0),
        object: None,
        wake: None,
    };
    let never_ran = Slice { on: None, reason: LeftCpu::Created, ..waits.clone() };
    assembler.apply(&event(100, CHILD, EventKind::LastSeen(waits)));
    assembler.apply(&event(100, CHILD, EventKind::LastSeen(never_ran)));
    let batch = assembler.take_batch();
    let spans: Vec<_> = batch.slices.iter().map(|slice| (slice.on_span, slice.off_span)).collect();
    assert_eq!(spans, [(Some(Nanos(20)), None), (None, None)]);
    assert!(batch.slices[0].is_open_wait() && batch.slices[1].is_open());
    assert_eq!(batch.last_event, Nanos(100), "the time of the last event");
    assert!(batch.launches.is_empty(), "an open slice does not change a launch");
}

/// Writes events in batches of the given size, and returns the database. The reader compares each
/// table with its checksum.
fn write_in_batches(events: &[Event], batch_events: usize) -> Connection {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut connection = Connection::open(file.path()).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
    let mut sums = create_schema(&mut connection, &header(), Redaction::Mask).unwrap();
    let mut assembler = assembler();
    for batch in events.chunks(batch_events) {
        batch.iter().for_each(|event| assembler.apply(event));
        sums = write_batch(&mut connection, sums, &assembler.take_batch()).unwrap();
    }
    let recording = RecordingFile::open(file.path()).unwrap();
    recording.read().unwrap();
    recording.slices(&mut |_| {}).unwrap();
    recording.samples(&mut |_| {}).unwrap();
    connection
}

fn number(connection: &Connection, query: &str) -> i64 {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_late_event_adds_values_to_a_row_and_removes_none() {
    let mut events = vec![released()];
    events.extend(whole_life(1_000, CHILD, 200));
    events.push(with_kind(gone(2_500, CHILD), |_| {}));
    events.push(slice(2_600, CHILD, LeftCpu::Ended));
    let connection = write_in_batches(&events, 1);
    let kept =
        "SELECT count(*) FROM launch WHERE id = 2 AND origin = 0 AND parent = 1 AND pid = 200 AND reaped_ns = 2400";
    assert_eq!(number(&connection, kept), 1);
    assert_eq!(number(&connection, "SELECT zombie_ns FROM launch WHERE id = 2"), 2_495);
}

/// Queries that count inconsistent rows. Most of them look for references to rows that do not
/// exist.
const INCONSISTENCY_QUERIES: [&str; 6] = [
    "SELECT count(*) FROM launch WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM launch)",
    "SELECT count(*) FROM exec WHERE launch NOT IN (SELECT id FROM launch)",
    "SELECT count(*) FROM failed_exec WHERE launch NOT IN (SELECT id FROM launch)",
    "SELECT count(*) FROM exec WHERE argv_text NOT IN (SELECT id FROM text)",
    "SELECT count(*) FROM slice WHERE task NOT IN (SELECT id FROM launch) AND task NOT IN (SELECT task FROM thread)",
    "SELECT count(*) FROM launch WHERE origin = 0 AND (pid IS NULL OR created_ns IS NULL)",
];

/// Builds a valid history from a list of choices: a few processes that launch each other, reuse
/// pids, execute programs, wait and exit.
fn history(choices: &[(u8, u8)]) -> Vec<Event> {
    let mut events = vec![released()];
    let mut alive = vec![(ROOT, 100)];
    let mut free_pids: Vec<i32> = (200..206).collect();
    let mut next_id = 2;
    for (step, &(choice, process)) in choices.iter().enumerate() {
        let at = 1_000 + step as u64 * 1_000;
        let chosen = usize::from(process) % alive.len();
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
                EventKind::ExecFailed { enter: instant(at - 5), path: b"/x".to_vec(), errno: 2 },
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

fn launch_rows(connection: &Connection) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare("SELECT * FROM launch ORDER BY id").unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
    rows.unwrap().map(Result::unwrap).collect()
}

proptest! {
    #[test]
    fn a_recording_with_lost_events_is_consistent(
        choices in prop::collection::vec(any::<(u8, u8)>(), 0..60),
        kept in prop::collection::vec(prop::bool::weighted(0.7), 200),
        batch_events in 1_usize..40,
    ) {
        let all = history(&choices);
        let some = all.iter().zip(kept.iter().cycle()).filter(|(_, kept)| **kept);
        let some: Vec<Event> = some.map(|(event, _)| event.clone()).collect();
        let connection = write_in_batches(&some, batch_events);
        for query in INCONSISTENCY_QUERIES {
            prop_assert_eq!(number(&connection, query), 0, "{}", query);
        }
        let launches = some.iter().filter(|event| matches!(event.kind, EventKind::Launched(_))).count();
        prop_assert_eq!(number(&connection, "SELECT count(*) FROM launch WHERE origin = 0"), i64::try_from(launches).unwrap());
    }

    #[test]
    fn the_rows_do_not_depend_on_the_size_of_batches(
        choices in prop::collection::vec(any::<(u8, u8)>(), 0..60),
        batch_events in 1_usize..40,
    ) {
        let events = history(&choices);
        let in_one_batch = launch_rows(&write_in_batches(&events, usize::MAX));
        prop_assert_eq!(launch_rows(&write_in_batches(&events, batch_events)), in_one_batch);
    }
}
