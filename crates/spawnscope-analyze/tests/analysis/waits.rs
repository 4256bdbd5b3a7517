//! Waits of launches, from slices.

use spawnscope_analyze::waits::Waker;
use spawnscope_analyze::{Forest, WaitCollection};
use spawnscope_data::event::{LeftCpu, Nanos, Pid, TaskId};
use spawnscope_data::rows::{SliceRow, ThreadRow, WakerRow};

use crate::builder::{Builder, ROOT, Spans};

fn slice(task: u64, off_ns: u64, reason: LeftCpu, waker: Option<WakerRow>) -> SliceRow {
    let spans = (Some(Nanos(500)), Some(Nanos(300)));
    SliceRow {
        task: TaskId(task),
        off: Nanos(off_ns),
        on_span: None,
        off_span: spans.0,
        wake_span: spans.1,
        reason,
        syscall: Some(61),
        argument: None,
        waker,
        is_waker_certain: None,
        object: None,
        calls: Some(0),
    }
}

#[test]
fn blocked_stretches_are_grouped_by_launch_through_its_threads() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, None);
    let recording = builder.recording;
    let forest = Forest::build(&recording);
    let thread = ThreadRow {
        task: TaskId(50),
        launch: ROOT,
        creator: None,
        tid: Pid(9),
        created: Nanos(0),
        ended: None,
        cpu: None,
    };
    let slices = [
        slice(50, 9_000, LeftCpu::Interruptible, Some(WakerRow::Task(TaskId(2)))),
        slice(1, 4_000, LeftCpu::Uninterruptible, Some(WakerRow::Interrupt)),
        slice(1, 6_000, LeftCpu::Preempted, None),
        slice(77, 1_000, LeftCpu::Interruptible, None),
    ];
    let mut waits = WaitCollection::new(&recording, &forest, &[thread]);
    for slice in slices {
        waits.push(slice);
    }
    let waits = waits.finish();
    let of_root: Vec<_> = waits.of_launch(0).collect();
    let starts: Vec<u64> = of_root.iter().map(|wait| wait.start.0).collect();
    assert_eq!(starts, [4_000, 9_000]);
    assert_eq!(
        of_root[1].waker,
        Some(Waker::Task {
            task: TaskId(2),
            launch: Some(1)
        })
    );
    assert_eq!(
        (of_root[1].woken, of_root[1].end),
        (Some(Nanos(9_300)), Some(Nanos(9_500)))
    );
    assert_eq!(waits.of_launch(1).len(), 0);
}
