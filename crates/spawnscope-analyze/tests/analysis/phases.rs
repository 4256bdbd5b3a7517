//! Phases tile a launch, even with unknown boundaries.

use proptest::prelude::*;
use spawnscope_analyze::model::launch::Outcome;
use spawnscope_analyze::model::phases::{Phase, PhaseTimes};

use crate::prelude::*;

fn phases_of(recording: &Recording, index: usize) -> PhaseTimes {
    Forest::build(recording).launches[index].phases.clone()
}

fn nanoseconds(times: &PhaseTimes) -> Vec<Option<u64>> {
    times.iter().map(|(_, time)| time.map(|time| time.0)).collect()
}

#[test]
fn each_phase_lies_between_its_own_boundaries() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    let spans = [120_000, 20_000, 40_000, 300_000, 400_000, 200_000, 60_000, 10_000].map(Some);
    assert_eq!(nanoseconds(&phases_of(&builder.recording, 1)), spans);
}

#[test]
fn stops_by_the_collector_count_as_no_phase() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let launch = builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    // setup begins at 1.14 ms, exec at 1.18, load at 1.48, run at 1.88, teardown at 2.08, reap at
    // 2.14.
    builder.stops(
        launch,
        &[[1_140_000, 1_150_000], [1_170_000, 1_185_000], [1_880_000, 1_890_000], [2_070_000, 2_090_000]],
    );
    builder.stops(ROOT, &[[1_000_000, 1_010_000], [2_142_000, 2_160_000]]);
    // Only exec's CPU time is known: 298 us.
    (builder.row(launch).exit_cpu, builder.row(launch).cpu) = (None, None);
    let exec = builder.recording.execs.last_mut().unwrap();
    (exec.return_cpu, exec.load_cpu) = (exec.enter_cpu.map(|cpu| Nanos(cpu.0 + 298_000)), None);
    let spans = [110_000, 20_000, 20_000, 298_000, 400_000, 180_000, 50_000, 2_000].map(Some);
    assert_eq!(nanoseconds(&phases_of(&builder.recording, 1)), spans);
}

#[test]
fn execs_divide_the_cpu_time_of_a_launch_into_phases() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    let cpu = Forest::build(&builder.recording).launches[1].cpu_phases.clone();
    assert_eq!(
        nanoseconds(&cpu),
        [None, None, Some(40_000), Some(300_000), Some(400_000), Some(200_000), Some(60_000), None]
    );
}

#[test]
fn a_fork_without_exec_has_no_setup_and_works_from_its_first_run() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 1_000_000, &Spans::USUAL, None);
    let spans = [120_000, 20_000, 0, 0, 0, 200_000, 60_000, 10_000].map(Some);
    assert_eq!(nanoseconds(&phases_of(&builder.recording, 1)), spans);
}

/// In `(make; touch done)`, bash forks a subshell that launches make and then execs touch.
#[test]
fn what_a_fork_launches_before_its_exec_is_its_work() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let spans = Spans { setup: 50_000_000, ..Spans::USUAL };
    let fork = builder.launch(ROOT, 1_000_000, &spans, Some(("/bin/touch", &["touch"])));
    let first_run = builder.row(fork).first_run.unwrap().0;
    let make = builder.launch(fork, first_run + 100_000, &Spans::USUAL, Some(("/usr/bin/make", &["make"])));
    let reaped = builder.row(make).reaped.unwrap().0;
    let times = phases_of(&builder.recording, 1);
    assert_eq!(times.get(Phase::Setup), Some(Nanos(50_000_000 - (reaped - first_run))));
    assert_eq!(times.get(Phase::Run), Some(Nanos(200_000 + reaped - first_run)));
    let cpu = Forest::build(&builder.recording).launches[1].cpu_phases.clone();
    assert_eq!(cpu.get(Phase::Setup), None);
    assert_eq!(cpu.get(Phase::Run), Some(Nanos(50_000_000 + 200_000)), "the CPU time of the setup is included");
    // If the fork does not wait for make, only the launching of make counts as its work.
    builder.row(make).reaped = Some(Nanos(900_000_000));
    let created = builder.row(make).created.unwrap().0;
    let times = phases_of(&builder.recording, 1);
    assert_eq!(times.get(Phase::Run), Some(Nanos(200_000 + created - first_run)));
}

#[test]
fn a_static_program_has_a_load_of_zero() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 1_000_000, &Spans { load: 0, ..Spans::USUAL }, Some(("/bin/static", &["static"])));
    let exec = builder.recording.execs.last_mut().unwrap();
    (exec.has_loader, exec.load_end) = (Some(false), None);
    let times = phases_of(&builder.recording, 1);
    assert_eq!(times.get(Phase::Load), Some(Nanos(0)));
    assert_eq!(times.get(Phase::Run), Some(Nanos(200_000)));
}

#[test]
fn an_unseen_loader_leaves_only_load_and_run_unknown() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    builder.recording.execs.last_mut().unwrap().load_end = None;
    let times = phases_of(&builder.recording, 1);
    let unknown: Vec<Phase> = times.iter().filter(|(_, time)| time.is_none()).map(|(phase, _)| phase).collect();
    assert_eq!(unknown, [Phase::Load, Phase::Run]);
    let launch = &Forest::build(&builder.recording).launches[1];
    assert_eq!(launch.total(Nanos(0)), Some(Nanos(Spans::USUAL.total())), "the total is still known");
}

#[test]
fn execs_of_a_chain_are_summed_and_the_time_between_them_is_run() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let env =
        builder.launch(ROOT, 0, &Spans { run: 10_000_000, ..Spans::USUAL }, Some(("/usr/bin/env", &["env", "x"])));
    builder.exec_at(env, b"/usr/bin/x", &[b"x"], [1_000_000, 1_500_000, 1_700_000]);
    let times = phases_of(&builder.recording, 1);
    assert_eq!(times.get(Phase::Setup), Some(Nanos(40_000)));
    assert_eq!(times.get(Phase::Exec), Some(Nanos(300_000 + 500_000)));
    assert_eq!(times.get(Phase::Load), Some(Nanos(400_000 + 200_000)));
    // Run is the time from the end of the first load (880,000) to the second exec (1,000,000), and
    // from the end of the second load (1,700,000) to the exit (10,880,000).
    assert_eq!(times.get(Phase::Run), Some(Nanos(120_000 + 9_180_000)));
}

#[test]
fn the_command_has_no_create_queue_setup_or_reap_phase() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    // The command is held after its creation, so that it first ran long before its release.
    let row = builder.row(ROOT);
    (row.create, row.first_run, row.reaped) = (Some(Nanos(0)), Some(Nanos(0)), Some(Nanos(1_000_500_000)));
    row.created = Some(Nanos(5_000));
    let launch = &Forest::build(&builder.recording).launches[0];
    for phase in [Phase::Create, Phase::Queue, Phase::Setup, Phase::Reap] {
        assert_eq!(launch.phases.get(phase), None, "{}", phase.name());
    }
    assert_eq!(launch.phases.get(Phase::Exec), Some(Nanos(300_000)));
    let from_release_to_exec_ns = 15_000;
    let own_ns = launch.phases.sum(Phase::ALL).map(|span| span.0);
    assert_eq!(launch.total(Nanos(0)).map(|total| total.0 - from_release_to_exec_ns), own_ns);
}

#[test]
fn a_running_launch_is_counted_up_to_the_end_of_the_recording() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let server = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/bin/server", &["server"])));
    builder.leave_running(server);
    let forest = Forest::build(&builder.recording);
    let launch = &forest.launches[1];
    assert_eq!(launch.outcome, Outcome::Running);
    assert_eq!(launch.phases.get(Phase::Run), Some(Nanos(1_000_000_000 - 880_000)));
    assert_eq!((launch.phases.get(Phase::Teardown), launch.phases.get(Phase::Reap)), (None, None));
    assert_eq!(launch.total(forest.end), Some(Nanos(1_000_000_000)));
}

#[test]
fn wait_statuses_are_decoded() {
    assert_eq!(Outcome::of_wait_status(3 << 8), Outcome::Code(3));
    assert_eq!(Outcome::of_wait_status(9), Outcome::Signal { number: 9, core_dumped: false });
    assert_eq!(Outcome::of_wait_status(11 | 0x80), Outcome::Signal { number: 11, core_dumped: true });
}

prop_compose! {
    /// Builds a recording of a launch with all boundaries known. In half of the cases they are in
    /// random order.
    fn any_boundaries()(
        mut at in proptest::collection::vec(0u64..50, 9),
        in_order in any::<bool>(),
        is_static in any::<bool>(),
        execs in 0usize..3,
    ) -> Recording {
        if in_order {
            at.sort_unstable();
        }
        let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
        let id = builder.launch(ROOT, 0, &Spans::USUAL, None);
        let row = builder.row(id);
        (row.create, row.created, row.first_run) = (Some(Nanos(at[0])), Some(Nanos(at[1])), Some(Nanos(at[2])));
        (row.exit, row.zombie, row.reaped) = (Some(Nanos(at[6])), Some(Nanos(at[7])), Some(Nanos(at[8])));
        for _ in 0..execs {
            builder.exec_at(id, b"/bin/x", &[b"x"], [at[3], at[4], at[5]]);
            let exec = builder.recording.execs.last_mut().unwrap();
            if is_static {
                (exec.has_loader, exec.load_end) = (Some(false), None);
            }
        }
        builder.recording
    }
}

proptest! {
    #[test]
    fn phases_tile_a_launch_whatever_the_order_of_its_boundaries(recording in any_boundaries()) {
        let forest = Forest::build(&recording);
        let launch = &forest.launches[1];
        prop_assert_eq!(launch.phases.sum(Phase::ALL), launch.total(forest.end));
        prop_assert!(launch.phases.iter().all(|(_, time)| time.is_some()));
    }

    #[test]
    fn an_unknown_boundary_does_not_lengthen_the_launch(recording in any_boundaries(), hidden in 0usize..6) {
        let full = phases_of(&recording, 1);
        let mut partial = recording.clone();
        let row = &mut partial.launches[1];
        let boundary = [
            &mut row.create, &mut row.created, &mut row.first_run, &mut row.exit, &mut row.zombie, &mut row.reaped,
        ].into_iter().nth(hidden).unwrap();
        *boundary = None;
        let sum = phases_of(&partial, 1).sum(Phase::ALL).unwrap_or_default();
        let row = &recording.launches[1];
        let execs = recording.execs.iter().filter(|exec| exec.launch == row.id);
        let mut at = vec![row.create, row.created, row.first_run];
        at.extend(execs.flat_map(|exec| [exec.enter, exec.returned, exec.load_end]));
        at.extend([row.exit, row.zombie, row.reaped]);
        let is_ordered = at.iter().flatten().is_sorted();
        // If the boundaries are in order, hiding one can only remove time. Otherwise it can also
        // move the limits that clamp the others.
        prop_assert!(!is_ordered || sum <= full.sum(Phase::ALL).unwrap_or_default());
    }
}
