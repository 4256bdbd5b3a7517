//! Waits for children that the slices do not show as such: a parent that is runnable but gets no
//! CPU until its child has left it, and a reap that did not block.

use spawnscope_analyze::path::critical_path::CriticalPath;

use crate::prelude::*;
use crate::recordings::{lifetime, object, woken_by};

const VFORK: u16 = 58;
const MILLI: u64 = 1_000_000;
const WALL: u64 = 10 * MILLI;
const SH: LaunchId = LaunchId(2);
const TRUE: LaunchId = LaunchId(3);

/// Builds a recording in which `bash` launches `sh -c /bin/true`, and `sh` launches `true` with
/// vfork. `sh` is woken when `true` has called exec, but gets a CPU only after the end of `true`.
/// It then works for `work`, and reaps `true` without blocking.
fn vforking_shell(work: u64) -> (Recording, Vec<SliceRow>) {
    let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
    let spans = Spans { run: 6 * MILLI, ..Spans::USUAL };
    let of_sh: &[&str] = &["sh", "-c", "/bin/true"];
    builder.launch(ROOT, MILLI, &spans, Some(("/bin/sh", of_sh)));
    builder.row(SH).parent_task = Some(TaskId(ROOT.0));
    let (sh_created, sh_zombie) = lifetime(&mut builder, SH);
    builder.launch(SH, 3 * MILLI, &Spans { run: 2 * MILLI, ..Spans::USUAL }, Some(("/bin/true", &["/bin/true"])));
    let row = builder.row(TRUE);
    (row.parent_task, row.mechanism) = (Some(TaskId(SH.0)), Some(Mechanism::Vfork));
    let (true_created, true_zombie) = lifetime(&mut builder, TRUE);
    let back = true_zombie + 10_000;
    builder.row(TRUE).reaped = Some(Nanos(back + work));
    let execed = true_created + Spans::USUAL.queue + Spans::USUAL.setup + Spans::USUAL.exec;

    let slices = vec![
        slice(ROOT.0, 0, sh_created, [sh_zombie - sh_created, 10_000], WAIT4, woken_by(SH)),
        ended(ROOT.0, sh_zombie + 10_000, WALL),
        created(SH.0, sh_created, 20_000),
        SliceRow {
            reason: LeftCpu::Uninterruptible,
            ..slice(
                SH.0,
                sh_created + 20_000,
                true_created,
                [execed - true_created, back - execed],
                VFORK,
                woken_by(TRUE),
            )
        },
        ended(SH.0, back, sh_zombie),
        created(TRUE.0, true_created, 20_000),
        ended(TRUE.0, true_created + 20_000, true_zombie),
    ];
    (builder.recording, slices)
}

fn path((recording, slices): &(Recording, Vec<SliceRow>)) -> CriticalPath {
    let forest = Forest::build(recording);
    critical_path(&forest, &timelines(&forest, slices), Nanos(WALL)).expect("a command")
}

#[test]
fn a_parent_that_is_runnable_until_its_child_is_gone_waits_for_the_child() {
    let recorded = vforking_shell(20_000);
    let path = path(&recorded);
    let [sh, child] = [SH, TRUE].map(|launch| &path.launches[launch.0 as usize - 1]);
    assert_eq!(sh.run_queue(), Nanos(0), "{path:?}");
    // The child is charged from the call that creates it to the shell's return to a CPU.
    let (created, zombie) = (&recorded.0.launches[2].create, &recorded.0.launches[2].zombie);
    let whole = zombie.unwrap().since(created.unwrap()).0 + 10_000;
    assert_eq!(child.total(), Nanos(whole), "{path:?}");
    assert_eq!(path.sum(), Nanos(WALL));
}

#[test]
fn the_wait_of_a_runnable_parent_is_the_childs_work_and_not_a_wait_for_a_cpu() {
    let (recording, slices) = vforking_shell(20_000);
    let forest = Forest::build(&recording);
    let waits = attributed_waits(&recording, &forest, &timelines(&forest, &slices));
    let of_sh = waits.iter().find(|waits| waits.command == b"sh").expect("a wait");
    assert_eq!(of_sh.parts.run, Nanos(2 * MILLI), "{of_sh:?}");
    assert_eq!(of_sh.parts.queue, Nanos(10_000), "after the child's end: {of_sh:?}");
}

#[test]
fn without_the_shell_the_program_still_runs_and_is_set_up_by_the_shells_parent() {
    let recorded = vforking_shell(20_000);
    let prediction = predict(&recorded, &Constants::default(), &[(Change::NoShell, &[SH])]);
    let predicted = prediction.predicted.0;
    // What remains is the command's own time, the creation and setup of the shell, and the program
    // from its exec to its end.
    let usual = Spans::USUAL;
    let own = WALL - (recorded.0.launches[1].zombie.unwrap().0 - MILLI);
    let shell = usual.create + usual.queue + usual.setup;
    let program = usual.exec + usual.load + 2 * MILLI + usual.teardown;
    let expected = own + shell + program;
    assert!(predicted.abs_diff(expected) < 50_000, "{predicted} instead of {expected}");

    // The exec of the shell was shorter. That of a program that the shell forks also frees what
    // both shared.
    let with_forks = |by_parent, by_shell| {
        let (mut recording, slices) = vforking_shell(20_000);
        recording.execs[1].returned = recording.execs[1].returned.map(|at| at.since(Nanos(100_000)));
        [1, 2]
            .into_iter()
            .zip([by_parent, by_shell])
            .for_each(|(launch, by)| recording.launches[launch].mechanism = by);
        predict(&(recording, slices), &Constants::default(), &[(Change::NoShell, &[SH])]).predicted.0
    };
    let [fork, vfork] = [Mechanism::Fork, Mechanism::Vfork].map(Some);
    assert_eq!(with_forks(vfork, vfork) - with_forks(vfork, fork), 100_000);
    assert_eq!(with_forks(fork, fork), with_forks(vfork, vfork));
}

#[test]
fn a_parent_whose_work_exceeds_its_wait_waited_for_a_cpu() {
    let busy = vforking_shell(3 * MILLI);
    let sh = &path(&busy).launches[SH.0 as usize - 1];
    assert!(sh.run_queue() > Nanos(MILLI), "{sh:?}");
}

/// The child writes to a pipe 60 us before its end. That wakes the parent on the child's CPU, where
/// it runs after the child's end.
#[test]
fn a_long_wait_for_a_childs_output_stays_a_wait_on_the_pipe() {
    let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
    let run = 6 * MILLI;
    let child = builder.launch(ROOT, MILLI, &Spans { run, ..Spans::USUAL }, None);
    builder.row(child).parent_task = Some(TaskId(ROOT.0));
    let (created_at, zombie) = lifetime(&mut builder, child);
    let (written, back) = (zombie - 60_000, zombie + 10_000);
    builder.row(child).reaped = Some(Nanos(back + 20_000));
    let pipe = object(&mut builder, ObjectKind::Pipe, None);
    let waker = woken_by(child);
    let read = slice(ROOT.0, 0, created_at, [written - created_at, back - written], READ, waker);
    let slices = [
        SliceRow { object: pipe, ..read },
        ended(ROOT.0, back, WALL),
        created(child.0, created_at, Spans::USUAL.queue),
        ended(child.0, created_at + Spans::USUAL.queue, zombie),
    ];
    let forest = Forest::build(&builder.recording);
    let waits = attributed_waits(&builder.recording, &forest, &timelines(&forest, &slices));
    let kinds: Vec<_> = waits.iter().map(|waits| waits.object.as_ref().map(|each| each.kind)).collect();
    assert_eq!(kinds, [Some(ObjectKind::Pipe)], "{waits:?}");
}

/// Builds a recording of a command that launches two children that work for `long` and `longer`. It
/// waits for the second, and then reaps the first without blocking.
fn two_children(long: u64, longer: u64) -> (Recording, Vec<SliceRow>) {
    let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
    builder.recording.info.cpus = 4;
    let mut slices = Vec::new();
    for (start, run) in [(MILLI, long), (2 * MILLI, longer)] {
        let child = builder.launch(ROOT, start, &Spans { run, ..Spans::USUAL }, None);
        builder.row(child).parent_task = Some(TaskId(ROOT.0));
        let (created_at, zombie) = lifetime(&mut builder, child);
        slices.push(created(child.0, created_at, Spans::USUAL.queue));
        slices.push(ended(child.0, created_at + Spans::USUAL.queue, zombie));
    }
    let (_, end) = lifetime(&mut builder, LaunchId(3));
    builder.row(LaunchId(2)).reaped = Some(Nanos(end + 200_000));
    let (asleep, back) = (2 * MILLI + 200_000, end + 10_000);
    let waker = Some(WakerRow::Task(TaskId(3)));
    slices.push(slice(ROOT.0, 0, asleep, [end - asleep, back - end], WAIT4, waker));
    slices.push(ended(ROOT.0, back, WALL));
    (builder.recording, slices)
}

#[test]
fn a_reap_that_did_not_block_waits_for_the_child_when_nothing_else_does() {
    let recorded = two_children(5 * MILLI, 6 * MILLI);
    let wall = predict(&recorded, &Constants::default(), &[]).predicted;
    assert_eq!(wall, Nanos(WALL), "the wait that is added costs nothing without a change");
    let [shorter, longer] = [2, 3].map(|launch| {
        let change = (Change::Remove, &[LaunchId(launch)][..]);
        WALL - predict(&recorded, &Constants::default(), &[change]).predicted.0
    });
    // The longer one started 1 ms later and ran 1 ms longer.
    assert!(longer > MILLI && longer < 3 * MILLI, "{longer}");
    assert_eq!(shorter, Spans::USUAL.create, "the shorter one costs its creation");
}
