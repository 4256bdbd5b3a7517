//! Uncertain wakers. If the recorder could not tell whether a thread or an interrupt on its CPU
//! ended a wait, the wait is attributed to no launch.

use crate::prelude::*;
use crate::whatif::LAUNCH;

const WALL: u64 = 10_000_000;
const WAITED: u64 = 3_000_000;
const POLL: u16 = 7;
const RECVFROM: u16 = 45;

/// Builds a recording of a command that launches a child and then waits in the system call `call`.
/// `certain` is whether the recorder knows that `waker` ended the wait.
fn waiting(call: u16, waker: WakerRow, certain: bool) -> ((Recording, Vec<SliceRow>), LaunchId) {
    let mut builder = Builder::command("/bin/server", &["server"], WALL);
    let spans = Spans { run: 7_000_000, ..Spans::USUAL };
    let child = builder.launch(ROOT, 1_000_000, &spans, Some(("/bin/true", &["true"])));
    builder.recording.launches[1].parent_task = Some(TaskId(ROOT.0));
    let wait = SliceRow { is_waker_certain: Some(certain), ..slice(1, 0, 2_000_000, [WAITED, 0], call, Some(waker)) };
    let slices = vec![
        wait,
        ended(1, 5_000_000, WALL),
        created(child.0, 1_120_000, spans.queue),
        ended(child.0, 1_140_000, 9_000_000),
    ];
    ((builder.recording, slices), child)
}

fn by_child() -> WakerRow {
    WakerRow::Task(TaskId(2))
}

fn external_wait(call: u16, waker: WakerRow, certain: bool) -> Option<(ExternalWait, Nanos)> {
    let ((recording, slices), _) = waiting(call, waker, certain);
    let forest = Forest::build(&recording);
    let timelines = timelines(&forest, &slices);
    let path = critical_path(&forest, &timelines, Nanos(WALL)).unwrap();
    assert_eq!(path.sum(), Nanos(WALL));
    let attribution = attributed_waits(&recording, &forest, &timelines);
    let mut others = path.external_wait.into_iter().filter(|(what, _)| *what != ExternalWait::Recorder);
    let found = others.next();
    let is_charged = found.is_none_or(|(what, _)| matches!(what, ExternalWait::Process(_)));
    assert_eq!(!attribution.is_empty(), is_charged, "an external wait is attributed to no launch: {attribution:?}");
    found
}

#[test]
fn an_uncertain_waker_is_not_followed() {
    let waited = Nanos(WAITED);
    assert_eq!(external_wait(POLL, by_child(), true), None);
    assert_eq!(external_wait(POLL, by_child(), false), Some((ExternalWait::Timer, waited)));
    assert_eq!(external_wait(RECVFROM, by_child(), false), Some((ExternalWait::Network, waited)));
}

#[test]
fn an_uncertain_process_is_not_named() {
    let waker = WakerRow::Other(Pid(7), None);
    let waited = Nanos(WAITED);
    assert_eq!(external_wait(POLL, waker, true), Some((ExternalWait::Process(None), waited)));
    assert_eq!(external_wait(POLL, waker, false), Some((ExternalWait::Timer, waited)));
}

#[test]
fn removing_a_launch_that_an_interrupt_may_have_hit_does_not_shorten_the_wait() {
    let [certain, uncertain] = [true, false].map(|certain| {
        let (recorded, child) = waiting(POLL, by_child(), certain);
        let prediction = predict(&recorded, &Constants::default(), &[(Change::Remove, &[child])]);
        prediction.wall.since(prediction.predicted).0
    });
    assert!(certain > WAITED, "it is removed with its waker");
    assert!(uncertain <= Spans::USUAL.create, "{uncertain}");
}

#[test]
fn a_terminal_that_a_kernel_worker_serves_is_a_wait_for_the_writer() {
    for (name, is_terminal) in [(&b"kworker/u8:0"[..], true), (b"scand", false)] {
        let mut serial = Serial::new();
        (0..4).for_each(|_| {
            serial.launch_waiting(&Spans::USUAL, DIRNAME, READ);
        });
        let worker = WakerRow::Other(Pid(7), Some(serial.builder.text(name)));
        let (recording, mut slices) = serial.finish();
        // The worker wakes the reader a little after the writer has ended.
        for slice in slices.iter_mut().filter(|slice| slice.task.0 == 1 && slice.syscall == Some(READ)) {
            let later = slice.wake_span.map(|span| Nanos(span.0 + 5_000));
            *slice = SliceRow { waker: Some(worker), wake_span: later, ..*slice };
        }
        let forest = Forest::build(&recording);
        let path = critical_path(&forest, &timelines(&forest, &slices), recording.info.wall.unwrap()).unwrap();
        let launches: u64 = path.launches[1..].iter().map(|charges| charges.total().0).sum();
        let all = 4 * LAUNCH;
        assert_eq!(launches > all * 9 / 10, is_terminal, "{launches} of {all} is charged to the writers");
    }
}
