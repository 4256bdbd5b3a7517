//! Tests of the files after an orderly end, after a kill, on a full disk, and with interference by
//! other programs.

mod edges;
mod killed;

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;

use super::*;
use crate::Memory;
use crate::reader::{ObjectRow, Origin, Recording, RecordingFile, StackId};
use crate::test_events::*;
use spawnscope_data::event::{Loss, Nanos, ObjectKind, Pid, TaskId};
use spawnscope_data::rows::Scope;

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Directory(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("spawnscope.db")
    }
}

fn read(path: &Path) -> Recording {
    RecordingFile::open(path).unwrap().read().unwrap()
}

/// Waits until another thread or process has made `condition` true. `what` describes the condition.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the events of child `number` of the root.
fn life(number: u64) -> Vec<Event> {
    whole_life(1_000_000 + number * 10_000, LaunchId(2 + number), 1_000 + i32::try_from(number % 30_000).unwrap())
}

#[test]
fn recorded_rows_are_read_back() {
    let directory = Directory::new();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(vec![released()]);
    recorder.set_root(ROOT);
    recorder.send(life(0));
    let stopped = EventKind::Stopped { since: instant(3_000) };
    recorder
        .send(vec![peer_found(4_000), Event { at: instant(4_000), launch: ROOT, task: TaskId(ROOT.0), kind: stopped }]);
    let lost = vec![Loss { kind: "slice".into(), events: 3 }, Loss { kind: "slice".into(), events: 4 }];
    recorder.finish(Ending { lost, ..ending() }).unwrap();

    let file = RecordingFile::open(&directory.path()).unwrap();
    let recording = file.read().unwrap();
    let Recording { info, launches, execs, failed_execs, stops, objects, peers, edges, frames, stacks, .. } =
        &recording;
    let (texts, calibration) = (&recording.texts, &recording.calibration);
    assert_eq!(
        stops.iter().map(|row| (row.task, row.at, row.span)).collect::<Vec<_>>(),
        [(TaskId(1), Nanos(3_000), Nanos(1_000))]
    );
    assert_eq!(*calibration, header().calibration);
    let found: Vec<_> = peers.iter().map(|peer| (peer.device, peer.inode, peer.pid, texts.get(peer.name))).collect();
    assert_eq!(found, [(8, 4_711, Pid(77), b"sccache".as_slice())]);
    assert!(edges.is_empty(), "no launch is by ninja");
    assert_eq!(info.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (info.collector.as_str(), info.scope, info.arch.as_str(), info.cpus),
        ("ebpf", Scope::Command, "x86_64", 2)
    );
    assert_eq!(info.command, [b"./unpack.sh".as_slice(), b"", b"--password=***"]);
    assert_eq!((info.root, info.wall, info.ended.as_deref()), (Some(ROOT), Some(Nanos(5_000)), Some("exited")));
    assert_eq!((info.last_event, info.started_unix_ns), (Nanos(1_001_400), header().started_unix_ns));
    assert_eq!(info.missing, header().missing);
    assert_eq!(info.lost, [Loss { kind: "slice".into(), events: 7 }]);
    let origins: Vec<_> = launches.iter().map(|row| (row.id, row.origin, row.parent)).collect();
    assert_eq!(origins, [(ROOT, Origin::Command, None), (LaunchId(2), Origin::Launched, Some(ROOT))]);
    assert_eq!(launches[1].reaped, Some(Nanos(1_001_400)));
    assert_eq!(
        frames.iter().map(|frame| (frame.line, frame.function.map(|name| texts.get(name)))).collect::<Vec<_>>(),
        [(Some(30), None), (Some(14), Some(b"relocate".as_slice()))]
    );
    assert_eq!(stacks.iter().map(|row| row.caller).collect::<Vec<_>>(), [None, Some(StackId::from_index(0))]);
    assert_eq!((launches[1].script_stack, launches[1].native_stack), (Some(StackId::from_index(1)), None));
    assert_eq!(texts.get(execs[0].path), b"/usr/bin/dirname");
    assert_eq!(texts.get(execs[0].argv), b"dirname\0--zero\0./usr/share/doc/000001000000\0");
    assert_eq!(execs[0].cwd.map(|cwd| texts.get(cwd)), Some(b"/work".as_slice()));
    assert_eq!(failed_execs.iter().map(|row| row.errno).collect::<Vec<_>>(), [2, 2]);
    let mut slices = Vec::new();
    file.slices(&mut |row| slices.push(row)).unwrap();
    assert_eq!(slices.len(), 8);
    assert_eq!((slices[1].argument, slices[1].calls), (Some(u64::MAX), Some(7)));
    assert!(slices.iter().all(|row| row.object == slices[0].object));
    let fifo = ObjectRow { kind: ObjectKind::Fifo, device: 42, inode: 4_242, path: objects[0].path };
    assert_eq!(slices[0].object.map(|object| object.index()), Some(0));
    assert_eq!(*objects, [fifo], "the same object is stored once");
    assert_eq!(objects[0].path.map(|path| texts.get(path)), Some(b"/tmp/fifo".as_slice()));
}

#[test]
fn three_thousand_launches_take_less_than_a_kibibyte_each() {
    let directory = Directory::new();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(vec![released(), released()]);
    for number in 0..3_000 {
        recorder.send(life(number).into_iter().map(at_real_pace).collect());
    }
    wait_until("all launches are counted", || recorder.launches_so_far() == 3_001);
    recorder.finish(ending()).unwrap();
    assert_eq!(read(&directory.path()).launches.len(), 3_001);
    let bytes_each = fs::metadata(directory.path()).unwrap().len() / 3_000;
    assert!(bytes_each <= 1_024, "{bytes_each}");
}

#[test]
fn a_recording_can_be_read_while_it_grows() {
    let directory = Directory::new();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(vec![released()]);
    recorder.send(life(0));
    wait_until("the batch is written", || read(&directory.path()).launches.len() == 2);
    let info = read(&directory.path()).info;
    assert_eq!((info.wall, info.ended), (None, None), "as if the recorder had been killed");
    recorder.send(life(1));
    recorder.finish(ending()).unwrap();
    assert_eq!(read(&directory.path()).launches.len(), 3);
}

#[test]
fn a_dropped_recorder_writes_all_events_that_were_sent() {
    let directory = Directory::new();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(life(0));
    drop(recorder);
    let recording = read(&directory.path());
    assert_eq!((recording.launches.len(), recording.info.ended), (2, None));
}

#[test]
fn on_a_full_disk_the_recording_ends_with_the_last_complete_batch() {
    let directory = Directory::new();
    let mut store = Store::create(&directory.path(), &header(), Redaction::Mask, Memory::Plenty).unwrap();
    store.limit_pages(200);
    let mut assembler = Assembler::new(ORIGIN, Redaction::Mask);
    life(0).iter().for_each(|event| assembler.apply(event));
    store.write(&assembler.take_batch()).unwrap();
    let recorder = Recorder::start(store, assembler, &WriterOptions::default()).unwrap();

    recorder.send((1..3_000).flat_map(life).collect());
    wait_until("the recorder fails", || recorder.failure().is_some());
    assert!(matches!(*recorder.failure().unwrap(), RecordError::Full { .. }));
    recorder.send(life(4_000));
    let error = recorder.finish(ending()).unwrap_err();
    assert!(error.to_string().contains("no space is left for recording"), "{error}");

    let recording = read(&directory.path());
    assert_eq!(recording.launches.len(), 2, "only the complete batch");
    assert!(recording.info.ended.unwrap().starts_with("failed: no space is left"));
    assert_eq!(recording.info.wall, None);
}

#[test]
fn events_after_a_failure_are_counted() {
    let directory = Directory::new();
    let store = Store::create(&directory.path(), &header(), Redaction::Mask, Memory::Plenty).unwrap();
    store.limit_pages(10);
    let recorder = Recorder::start(store, Assembler::new(ORIGIN, Redaction::Mask), &WriterOptions::default()).unwrap();
    let flood: Vec<Event> = (0..3_000).flat_map(life).collect();
    let events = flood.len() as u64;
    recorder.send(flood);
    recorder.send(life(4_000));
    wait_until("all events are dropped", || recorder.dropped_events() == events + life(4_000).len() as u64);
}

#[test]
fn the_recorder_of_a_moved_recording_does_not_harm_a_new_one_at_its_path() {
    let directory = Directory::new();
    let first = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    std::fs::rename(directory.path(), directory.path().with_extension("moved")).unwrap();
    let second = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    first.send(life(0));
    let error = first.finish(ending()).unwrap_err();
    assert!(matches!(error, RecordError::Moved { .. }), "{error}");
    second.send(life(1));
    second.finish(ending()).unwrap();
    assert_eq!(read(&directory.path()).launches.len(), 2);
}

#[test]
fn a_second_recorder_refuses_a_recording_that_is_being_written() {
    let directory = Directory::new();
    let first = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    let second = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default());
    assert!(matches!(second, Err(RecordError::BeingRecorded { .. })));
    assert!(read(&directory.path()).info.is_live);
    first.send(life(0));
    first.finish(ending()).unwrap();
    assert!(!read(&directory.path()).info.is_live);
}

#[test]
fn discarding_a_recording_restores_the_earlier_one() {
    let directory = Directory::new();
    let earlier = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    earlier.send(life(0));
    earlier.finish(ending()).unwrap();
    let launches = read(&directory.path()).launches.len();
    Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default())
        .unwrap()
        .discard()
        .unwrap();
    assert_eq!(read(&directory.path()).launches.len(), launches);
    assert!(!directory.path().with_extension("db.old").exists());
}

/// Prevents other programs from writing to a recording until the connection is dropped.
fn lock(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[test]
fn events_are_kept_while_another_program_holds_a_lock() {
    let directory = Directory::new();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    let other = lock(&directory.path());
    recorder.send(vec![released()]);
    for number in 0..20 {
        recorder.send(life(number));
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(read(&directory.path()).launches.len(), 0, "nothing is written yet");
    assert!(recorder.failure().is_none());
    drop(other);
    wait_until("all launches are written", || read(&directory.path()).launches.len() == 21);
    assert_eq!(recorder.finish(ending()).unwrap(), FinishedFiles::Whole);
    assert_eq!(read(&directory.path()).info.lost, []);
}

#[test]
fn events_that_cannot_be_kept_while_a_lock_is_held_are_counted_as_lost() {
    let directory = Directory::new();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    let other = lock(&directory.path());
    recorder.send(vec![released()]);
    let lives = 2 * MAX_BATCH_EVENTS as u64 / 10;
    (0..lives).for_each(|number| recorder.send(life(number)));
    let progress = Arc::clone(&recorder.progress);
    wait_until("some events are lost", || progress.locked_out.load(Ordering::Relaxed) > 0);
    drop(other);
    assert_eq!(recorder.finish(ending()).unwrap(), FinishedFiles::Whole);
    let recording = read(&directory.path());
    let lost = &recording.info.lost[0];
    assert_eq!((lost.kind.as_str(), recording.info.ended.as_deref()), (LOST_TO_A_LOCK, Some("exited")));
    let events_of_a_life = life(0).len() as u64;
    assert!(lost.events > 0 && lost.events.is_multiple_of(events_of_a_life), "{lost:?}");
    let kept = recording.launches.len() as u64 - 1;
    assert_eq!(kept + lost.events / events_of_a_life, lives);
}

#[test]
fn samples_are_kept_with_their_stacks() {
    let directory = Directory::new();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    // A wait is reported when it is over.
    let events = vec![released(), sampled(900, 10, false, "path_openat"), sampled(100, 700, true, "do_wait")];
    recorder.send(events);
    recorder.finish(ending()).unwrap();
    let file = RecordingFile::open(&directory.path()).unwrap();
    let Recording { frames, stacks, texts, .. } = file.read().unwrap();
    let mut samples = Vec::new();
    file.samples(&mut |row| {
        let stack = stacks[row.stack.index() as usize];
        let function = frames[stack.frame.0 as usize].function.unwrap();
        let function = String::from_utf8(texts.get(function).to_vec()).unwrap();
        assert_eq!(stack.caller, Some(StackId::from_index(0)), "main called both functions");
        samples.push((row.task.0, row.at.0, row.span.0, row.is_waiting, function));
    })
    .unwrap();
    let expected = [(ROOT.0, 900, 10, false, "path_openat".to_owned()), (ROOT.0, 100, 700, true, "do_wait".to_owned())];
    assert_eq!(samples, expected);
}
