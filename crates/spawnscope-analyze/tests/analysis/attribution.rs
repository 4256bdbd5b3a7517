//! Attribution of waits: to which process, through which chain, and how a wait divides. The parts
//! always sum to the wait.

use proptest::prelude::*;
use spawnscope_analyze::waits::attribution::{AttributedWaits, Parts, WaitTarget, WaitTargets};

use crate::prelude::*;
use crate::recordings::{EMACS_WALL as WALL, attribution, emacs, object, with_git, woken_by};
use crate::slices::any_slice;

proptest! {
    /// For any slices, the parts of a wait sum to the wait.
    #[test]
    fn the_parts_sum_to_the_waits(slices in proptest::collection::vec(any_slice(WALL), 0..200)) {
        let mut builder = emacs();
        let spans = &Spans::USUAL;
        let child = builder.launch(ROOT, 1_000_000, spans, Some(("/bin/true", &["true"])));
        builder.launch(child, 1_500_000, spans, None);
        builder.launch(ROOT, 4_000_000, spans, Some(("/bin/true", &["true"])));

        // Each slice is attributed alone, since some waits are not counted at all.
        for slice in slices {
            let blocked = matches!(slice.reason, LeftCpu::Interruptible | LeftCpu::Uninterruptible);
            let waited = slice.off_span.unwrap_or_else(|| Nanos(WALL).since(slice.off)).0;
            let expected = if blocked { waited } else { 0 };
            let sum: u64 = attribution(&builder.recording, &[slice]).iter().map(|waits| waits.parts.total().0).sum();
            prop_assert!(sum == 0 || sum == expected);
        }
    }

    /// Whatever the slices of a child say, the parts of its parent's wait sum to that wait.
    #[test]
    fn a_child_with_odd_slices_does_not_lengthen_its_parents_wait(
        slices in proptest::collection::vec(any_slice(WALL), 0..200),
        start in 0..WALL, span in 0..WALL, woken in 0..WALL,
    ) {
        let mut builder = emacs();
        let child = builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
        let mut slices: Vec<SliceRow> = slices
            .into_iter()
            .map(|slice| SliceRow { task: TaskId(child.0), waker: None, ..slice })
            .collect();
        let woken = woken.min(span);
        slices.push(slice(1, start, start, [woken, span - woken], WAIT4, woken_by(child)));
        let all = attribution(&builder.recording, &slices);
        let of_root: Vec<_> = all.iter().filter(|waits| waits.command == b"emacs").collect();
        prop_assert_eq!(of_root[0].parts.total(), Nanos(span));
    }
}

const VFORK: u16 = 58;
const EXECVE: u16 = 59;

#[track_caller]
fn only(recording: &Recording, slices: &[SliceRow]) -> AttributedWaits {
    let mut all = attribution(recording, slices);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn launches(command: &[u8], through: Option<&[u8]>, count: u64) -> WaitTargets {
    let (command, through) = (command.to_vec(), through.map(<[u8]>::to_vec));
    WaitTargets { target: WaitTarget::Launches { command, through }, count }
}

#[test]
fn a_wait_for_a_child_divides_by_its_phases() {
    let (builder, git) = with_git();
    let waits = only(
        &builder.recording,
        &[
            // The wait lasts from before the child's first run to its end. The parent then waits
            // another 30 us for a CPU.
            slice(1, 0, 1_130_000, [1_010_000, 30_000], WAIT4, woken_by(git)),
            created(git.0, 1_120_000, 20_000),
            // The child is preempted for 50 us during its run.
            SliceRow {
                reason: LeftCpu::Preempted,
                wake_span: None,
                ..slice(git.0, 1_140_000, 2_000_000, [50_000, 0], READ, None)
            },
            ended(git.0, 2_050_000, 2_140_000),
        ],
    );
    let parts = Parts {
        // The wait begins in the middle of `queue`, which counts as launch tax here as everywhere.
        tax: Nanos(10_000 + 40_000 + 300_000 + 400_000 + 60_000),
        run: Nanos(150_000),
        run_waiting: Nanos(0),
        reap: Nanos(0),
        queue: Nanos(50_000 + 30_000),
        other: Nanos(0),
    };
    assert_eq!(waits.parts, parts);
    assert_eq!((waits.command.as_slice(), waits.syscall), (b"emacs".as_slice(), Some(WAIT4)));
    assert_eq!((waits.count, waits.targets), (1, vec![launches(b"git", None, 1)]));
}

#[test]
fn time_before_the_child_is_not_part_of_it() {
    let (builder, git) = with_git();
    let waits = only(&builder.recording, &[slice(1, 0, 600_000, [1_300_000, 0], READ, woken_by(git))]);
    assert_eq!(waits.parts.other, Nanos(400_000), "until it was created");
    assert_eq!(waits.parts.total(), Nanos(1_300_000));
}

#[test]
fn a_wait_for_a_childs_descendant_is_attributed_to_the_child() {
    let mut builder = emacs();
    let shell = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/bin/sh", &["sh"])));
    let copy = builder.launch(shell, 100_000, &Spans::USUAL, None);
    let git = builder.launch(copy, 200_000, &Spans::USUAL, Some(("/usr/bin/git", &["git"])));
    let pipe = object(&mut builder, ObjectKind::Pipe, None);
    let read = SliceRow { object: pipe, ..slice(1, 0, 500_000, [300_000, 0], READ, woken_by(git)) };
    let waits = only(&builder.recording, &[read]);
    assert_eq!(waits.targets, [launches(b"sh", Some(b"git"), 1)]);
    let identity = waits.object.unwrap().identity.unwrap();
    assert_eq!((identity.device, identity.inode), (15, 4242));
}

#[test]
fn waits_for_siblings_and_parents_are_attributed_to_them() {
    let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
    let seq = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/seq", &["seq"])));
    let sort = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/sort", &["sort"])));
    let on_neighbour = slice(sort.0, 900_000, 950_000, [100_000, 0], READ, woken_by(seq));
    let on_parent = slice(seq.0, 900_000, 950_000, [200_000, 0], READ, woken_by(ROOT));
    let all = attribution(&builder.recording, &[on_neighbour, on_parent]);
    assert_eq!(all[0].targets, [launches(b"bash", None, 1)]);
    assert_eq!(all[1].targets, [launches(b"seq", None, 1)]);
}

#[test]
fn a_program_waits_under_the_name_that_it_had_then() {
    let (mut builder, git) = with_git();
    builder.exec_at(ROOT, b"/usr/bin/vi", &[b"vi"], [3_000_000, 3_100_000, 3_200_000]);
    let earlier = slice(1, 0, 1_130_000, [100_000, 0], WAIT4, woken_by(git));
    let later = slice(1, 3_300_000, 3_400_000, [200_000, 0], WAIT4, woken_by(git));
    let all = attribution(&builder.recording, &[earlier, later]);
    let commands: Vec<_> = all.iter().map(|waits| waits.command.as_slice()).collect();
    assert_eq!(commands, [b"vi".as_slice(), b"emacs"]);
}

#[test]
fn the_parent_of_a_vfork_waits_for_its_childs_setup_and_exec() {
    let (builder, git) = with_git();
    let suspended =
        SliceRow { reason: LeftCpu::Uninterruptible, ..slice(1, 0, 1_120_000, [300_000, 0], VFORK, woken_by(git)) };
    let waits = only(&builder.recording, &[suspended]);
    assert_eq!((waits.parts.tax, waits.parts.queue), (Nanos(300_000), Nanos(0)));
}

#[test]
fn a_parent_that_polls_waits_for_its_dead_child() {
    let spans = Spans { reap: 3_000_000, ..Spans::USUAL };
    let mut builder = emacs();
    builder.launch(ROOT, 1_000_000, &spans, Some(("/usr/bin/git", &["git"])));
    // The first sleep ends before the child does, and is attributed to no launch. The child ends
    // during the second sleep, and is a zombie throughout the third.
    let sleeps = [1_100_000, 2_100_000, 3_100_000]
        .map(|off| slice(1, off - 1_000, off, [1_000_000, 0], CLOCK_NANOSLEEP, Some(WakerRow::Interrupt)));
    let waits = only(&builder.recording, &sleeps);
    assert_eq!((waits.count, waits.targets), (2, vec![launches(b"git", None, 1)]));
    assert_eq!(waits.parts.reap, Nanos(960_000 + 1_000_000));
    assert_eq!(waits.parts.tax, Nanos(40_000), "the teardown before");
}

#[test]
fn a_scanner_is_named_and_its_time_belongs_to_no_phase() {
    let (mut builder, git) = with_git();
    let permission = object(&mut builder, ObjectKind::Permission, None);
    let name = builder.text(b"clamd");
    // The scanner's reply to another thread wakes it first, so that there are two slices for one
    // wait.
    let scanned = [1_200_000, 1_310_000].map(|off| SliceRow {
        object: permission,
        reason: LeftCpu::Uninterruptible,
        ..slice(git.0, off - 5_000, off, [100_000, 5_000], EXECVE, Some(WakerRow::Other(Pid(7), Some(name))))
    });
    let waits = only(&builder.recording, &scanned);
    let scanner = WaitTargets { target: WaitTarget::Scanner(Some(b"clamd".to_vec())), count: 1 };
    assert_eq!((waits.count, waits.targets), (2, vec![scanner]));
    assert_eq!((waits.parts.other, waits.parts.queue), (Nanos(200_000), Nanos(10_000)));
    assert_eq!(waits.object.unwrap().identity, None);
}

#[test]
fn waits_for_timers_disks_and_own_threads_are_not_attributed() {
    let (builder, _) = with_git();
    let disk = SliceRow {
        reason: LeftCpu::Uninterruptible,
        ..slice(1, 0, 1_000_000, [100_000, 0], READ, Some(WakerRow::Interrupt))
    };
    let timer = slice(1, 2_999_000, 3_000_000, [100_000, 0], CLOCK_NANOSLEEP, Some(WakerRow::Interrupt));
    let itself = slice(1, 3_999_000, 4_000_000, [100_000, 0], 202, woken_by(ROOT));
    assert_eq!(attribution(&builder.recording, &[disk, timer, itself]), []);
}

/// Sums are cached for launches with many slices. They must give the same result.
#[test]
fn time_without_a_cpu_is_the_same_for_few_and_for_many_slices() {
    for preemptions in [20u64, 100] {
        let mut builder = emacs();
        let spans = Spans { run: 5_000_000, ..Spans::USUAL };
        let git = builder.launch(ROOT, 0, &spans, Some(("/usr/bin/git", &["git"])));
        let begins = spans.total() - spans.run - spans.teardown - spans.reap;
        let mut slices: Vec<SliceRow> = (0..preemptions)
            .map(|number| SliceRow {
                reason: LeftCpu::Preempted,
                wake_span: None,
                ..slice(git.0, begins + number * 40_000, begins + number * 40_000 + 10_000, [1_000, 0], 0, None)
            })
            .collect();
        // The wait starts during the first preemption and ends during the last one.
        let last = begins + (preemptions - 1) * 40_000 + 10_000;
        let start = begins + 10_400;
        slices.push(slice(1, 0, start, [last + 700 - start, 0], READ, woken_by(git)));
        let waits = only(&builder.recording, &slices);
        assert_eq!(waits.parts.queue.0, 600 + (preemptions - 2) * 1_000 + 700, "{preemptions}");
        assert_eq!(waits.parts.run.0 + waits.parts.queue.0, last + 700 - start);
    }
}
