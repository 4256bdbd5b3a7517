//! Waits of launches, from slices.

use spawnscope_analyze::Waits;
use spawnscope_analyze::model::timeline::{returned_at, woken_at};

use crate::prelude::*;

fn wait(task: u64, off: u64, reason: LeftCpu, waker: Option<WakerRow>) -> SliceRow {
    SliceRow { on_span: None, reason, ..slice(task, off, off, [300, 200], WAIT4, waker) }
}

#[test]
fn blocked_stretches_are_grouped_by_launch_through_its_threads() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, None);
    let recording = builder.recording;
    let forest = Forest::build(&recording);
    let slices = [
        wait(50, 9_000, LeftCpu::Interruptible, Some(WakerRow::Task(TaskId(2)))),
        wait(1, 4_000, LeftCpu::Uninterruptible, Some(WakerRow::Interrupt)),
        wait(1, 6_000, LeftCpu::Preempted, None),
        wait(77, 1_000, LeftCpu::Interruptible, None),
    ];
    let mut waits = Waits::new(&forest, &[thread(50, ROOT, 0)]);
    for slice in slices {
        waits.push(slice);
    }
    waits.sort();
    let of_root: Vec<_> = waits.of_launch(0).collect();
    let starts: Vec<u64> = of_root.iter().map(|wait| wait.off.0).collect();
    assert_eq!(starts, [4_000, 9_000]);
    assert_eq!(waits.launch_of(TaskId(2)), Some(1));
    assert_eq!((woken_at(of_root[1]), returned_at(of_root[1])), (Some(Nanos(9_300)), Some(Nanos(9_500))));
    assert_eq!(waits.of_launch(1).len(), 0);
}
