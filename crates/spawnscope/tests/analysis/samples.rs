//! Samples: each belongs to the launch and the phase at its instant, and its whole time is in one
//! box of the flame graph.

use proptest::prelude::*;
use spawnscope::analyze::model::phases::Phase;
use spawnscope::analyze::model::samples::{Sample, assign_phases};
use spawnscope::analyze::path::flame::{FlameOptions, Stacking, Weight, sampled};
use spawnscope::event::TaskId;
use spawnscope::present::flame::folded;
use spawnscope::record::reader::{Origin, SampleRow, StackId, ThreadRow};

use crate::prelude::*;

const ON_CPU: FlameOptions = FlameOptions { weight: Weight::OnCpu, stacking: Stacking::Tree, phase: None };
const THREAD: TaskId = TaskId(500);
const START: u64 = 10_000_000;

fn thread_of(launch: LaunchId) -> ThreadRow {
    ThreadRow { task: THREAD, launch, creator: None, tid: Pid(500), created: Nanos(START), ended: None, cpu: None }
}

fn sample(task: TaskId, at: u64, stack: StackId) -> SampleRow {
    SampleRow { task, at: Nanos(at), span: Nanos(1_000_000), is_waiting: false, stack }
}

/// Returns a recording in which make runs git, the launch of git, and a stack of a git function
/// that calls the kernel.
fn building() -> (Builder, LaunchId, StackId) {
    let mut builder = Builder::command("/usr/bin/make", &["make"], 100_000_000);
    let git = builder.launch(ROOT, START, &Spans::USUAL, Some(("/usr/bin/git", &["git"])));
    let mut kernel = builder.code("", "path_openat", 0xffff_0000);
    (kernel.language, kernel.module) = (Language::Kernel, None);
    let function = builder.code("/usr/bin/git", "read_index", 0x10);
    let stack = builder.set_call_chain(git, &[kernel, function]);
    (builder, git, stack)
}

fn assigned(recording: &Recording, rows: &[SampleRow], threads: &[ThreadRow]) -> Vec<Sample> {
    assign_phases(&Forest::build(recording), threads, rows)
}

#[test]
fn a_sample_is_in_the_phase_of_its_own_launch_at_that_instant() {
    let (builder, git, stack) = building();
    let spans = Spans::USUAL;
    let loading = START + spans.create + spans.queue + spans.setup + spans.exec;
    for (at, phase) in [
        (START + 1, Some(Phase::Create)),
        (loading - 1, Some(Phase::Exec)),
        (loading, Some(Phase::Load)),
        (loading + spans.load, Some(Phase::Run)),
        (START + spans.total(), None),
    ] {
        let rows = [sample(TaskId(git.0), at, stack)];
        let found = assigned(&builder.recording, &rows, &[]);
        assert_eq!(found.iter().map(|sample| sample.phase).collect::<Vec<_>>(), [phase], "{at}");
    }
}

#[test]
fn a_thread_belongs_to_its_process_and_an_unknown_one_to_none() {
    let (builder, git, stack) = building();
    let rows = [THREAD, TaskId(501)].map(|task| sample(task, START + 1, stack));
    let assigned = assigned(&builder.recording, &rows, &[thread_of(git)]);
    assert_eq!(assigned.iter().map(|sample| sample.launch).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_process_that_existed_before_is_drawn_too() {
    let (mut builder, _, stack) = building();
    let old = LaunchId(3);
    let mut row = blank(old, None, Origin::Existed);
    row.created = Some(Nanos(0));
    row.name = Some(builder.text(b"daemon"));
    builder.recording.launches.push(row);
    let recording = builder.recording;
    let forest = Forest::build(&recording);
    let samples = assign_phases(&forest, &[], &[sample(TaskId(3), START, stack)]);
    let drawn = folded(&sampled(&forest, &samples, ON_CPU).unwrap());
    assert_eq!(drawn, "daemon;run;read_index;path_openat_[k] 1000\n");
}

#[test]
fn waits_and_work_are_separate_graphs_and_a_function_is_one_box() {
    let (mut builder, git, first) = building();
    let mut elsewhere = builder.code("/usr/bin/git", "read_index", 0x20);
    elsewhere.line = Some(7);
    let second = builder.set_call_chain(git, &[elsewhere]);
    let run = START + Spans::USUAL.total() - 100_000;
    let wait = SampleRow { is_waiting: true, ..sample(TaskId(git.0), run, first) };
    let rows = [wait, sample(TaskId(git.0), run, second), sample(TaskId(git.0), run, first)];
    let recording = builder.recording;
    let forest = Forest::build(&recording);
    let samples = assign_phases(&forest, &[], &rows);
    let kernel = "make;git;run;read_index;path_openat_[k] 1000\n";
    let work = format!("make;git;run;read_index 1000\n{kernel}");
    for (weight, expected) in [(Weight::OffCpu, kernel), (Weight::OnCpu, &work)] {
        let wanted = FlameOptions { weight, ..ON_CPU };
        assert_eq!(folded(&sampled(&forest, &samples, wanted).unwrap()), expected);
    }
    let by_command = sampled(&forest, &samples, FlameOptions { stacking: Stacking::Command, ..ON_CPU }).unwrap();
    assert!(folded(&by_command).starts_with("git;run;read_index 1000\n"));
}

proptest! {
    #[test]
    fn every_sample_is_in_one_box(instants in proptest::collection::vec((1u64..4, 0u64..200_000_000), 1..50)) {
        let (builder, _, stack) = building();
        let rows: Vec<_> = instants.iter().map(|(task, at)| sample(TaskId(*task), *at, stack)).collect();
        let forest = Forest::build(&builder.recording);
        let samples = assign_phases(&forest, &[], &rows);
        let known = rows.iter().filter(|row| row.task.0 < 3).count() as u64;
        match sampled(&forest, &samples, ON_CPU) {
            Ok(flame) => prop_assert_eq!(flame.total, known * 1_000_000),
            Err(_) => prop_assert_eq!(known, 0),
        }
    }
}
