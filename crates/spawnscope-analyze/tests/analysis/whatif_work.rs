//! Predictions in which the work of launches moves: into the parent, into one process, into
//! parallel jobs, or into another program. Also which launches a selector selects in a `#!` script.

use spawnscope_analyze::predict::whatif::Prediction;
use spawnscope_analyze::sites::select::Selector;

use crate::prelude::*;
use crate::recordings::substitution_recording;
use crate::serial::SHELL;

#[test]
fn work_done_in_process_keeps_no_launch() {
    let (recorded, launches) = loop_of(20, &Spans { run: 5_000_000, ..Spans::USUAL });
    let predicted = predict(&recorded, &Default::default(), &[(Change::InProcess, &launches)]);
    let gone = 20 * (Spans::USUAL.total() - Spans::USUAL.run);
    let saving = predicted.wall.since(predicted.predicted).0;
    // 8 % of equal runs that are longer than their exec and load are assumed to be work.
    assert_eq!(saving, gone + 20 * 4_600_000, "{predicted:?}");
    assert!(predicted.saving()[1].0 < saving / 2, "the start-up is uncertain: {predicted:?}");
}

#[test]
fn a_coprocess_starts_once() {
    let (recorded, launches) = loop_of(20, &Spans::USUAL);
    let predicted = predict(&recorded, &Default::default(), &[(Change::Coprocess, &launches)]);
    let saving = predicted.wall.since(predicted.predicted).0;
    let run = Spans::USUAL.run * 15 / 100 + 30_000;
    let each = Spans::USUAL.total() - run;
    assert!(saving.abs_diff(19 * each) < 1_000, "{saving} of 19 x {each}");
}

#[test]
fn a_coprocess_needs_no_forks_of_the_shell() {
    let recorded = substitution_recording("/bin/bash", 20, None, &["sed", "s/a/b/"]);
    let forest = Forest::build(&recorded.0);
    let ids = |is_chosen: fn(&Forest<'_>, usize) -> bool| {
        let chosen = (0..forest.launches.len()).filter(|index| is_chosen(&forest, *index));
        chosen.map(|index| forest.launches[index].id).collect::<Vec<_>>()
    };
    let seds = ids(|forest, index| forest.launches[index].command.name == b"sed");
    let subshells = ids(|forest, index| forest.parent(index) == Some(0));
    assert_eq!([seds.len(), subshells.len()], [20; 2]);
    let saved = |change: Change, launches: &[LaunchId]| {
        let predicted = predict(&recorded, &Default::default(), &[(change, launches)]);
        predicted.wall.since(predicted.predicted).0
    };
    let [coprocess, all] = [(Change::Coprocess, &seds[..]), (Change::Remove, &subshells[1..])]
        .map(|(change, launches)| saved(change, launches));
    assert!(coprocess < all, "the work of sed remains: {coprocess} of {all}");
    assert!(coprocess > all / 2, "{coprocess} of {all}");
}

/// A command that closes its output and then ends was seldom seen to be read.
#[test]
fn one_read_tells_that_a_line_captures_all_its_launches() {
    let saved = |reads: usize| {
        let mut serial = Serial::new();
        let calls = (0..40).map(|number| if number < reads { READ } else { WAIT4 });
        let launches: Vec<LaunchId> = calls.map(|call| serial.launch_waiting(&Spans::USUAL, DIRNAME, call)).collect();
        let line = serial.builder.line(Language::Bash, "/src/script.sh", 3, "");
        let stack = serial.builder.set_call_chain(launches[0], &[line]);
        launches.iter().for_each(|launch| serial.builder.row(*launch).script_stack = Some(stack));
        let predicted = predict(&serial.finish(), &Default::default(), &[(Change::Builtin, &launches)]);
        predicted.wall.since(predicted.predicted).0
    };
    assert_eq!(saved(1), saved(40), "all forks remain");
    assert!(saved(0) > saved(1), "no fork remains");
}

#[test]
fn one_recording_has_the_interval_of_its_prediction() {
    let (recorded, launches) = loop_of(20, &Spans::USUAL);
    let mut prediction = predict(&recorded, &Default::default(), &[(Change::Remove, &launches)]);
    let ends = |prediction: &Prediction| [prediction.low, prediction.high];
    for low in [prediction.low, Nanos(0)] {
        prediction.low = low;
        let combined = Prediction::of_several(std::slice::from_ref(&prediction)).unwrap();
        assert_eq!(ends(&combined), ends(&prediction));
    }
}

#[test]
fn another_program_runs_for_its_share_of_the_time() {
    let (recorded, launches) = loop_of(20, &Spans { run: 4_000_000, ..Spans::USUAL });
    let halved = predict(&recorded, &Default::default(), &[(Change::Replace(500), &launches)]);
    assert_eq!(halved.wall.since(halved.predicted).0, 20 * 2_000_000);
    let doubled = predict(&recorded, &Default::default(), &[(Change::Replace(2000), &launches)]);
    assert_eq!(doubled.predicted.since(doubled.wall).0, 20 * 4_000_000);
    assert_eq!(doubled.saving()[0].0, 0, "a slower program saves nothing");
}

#[test]
fn a_serial_loop_runs_several_jobs_at_a_time() {
    let spans = Spans { run: 9_000_000, ..Spans::USUAL };
    let (mut recorded, launches) = loop_of(20, &spans);
    let half = 20 * spans.total() / 2;
    // The launches only compute, and there are two CPUs.
    for (jobs, tolerance) in [(2, half / 50), (8, half / 20)] {
        for _ in 0..2 {
            let predicted = predict(&recorded, &Default::default(), &[(Change::Jobs(jobs), &launches)]);
            let saving = predicted.wall.since(predicted.predicted).0;
            assert!(saving.abs_diff(half) < tolerance, "{jobs} jobs: {saving} of {half}");
            // A collector may know the CPU time only up to the exit.
            recorded.0.launches.iter_mut().for_each(|row| row.cpu = None);
        }
    }
}

/// Builds a recording of a shell whose launches each wait `lost` nanoseconds for a CPU that another
/// program holds.
fn busy_loop_of(count: u64, lost: u64) -> ((Recording, Vec<SliceRow>), Vec<LaunchId>) {
    let mut serial = Serial::new();
    let launches = (0..count).map(|_| {
        serial.launch_without_cpu(&Spans { run: 9_000_000, ..Spans::USUAL }, DIRNAME, lost, LeftCpu::Preempted)
    });
    let launches = launches.collect();
    (serial.finish(), launches)
}

#[test]
fn other_programs_may_hold_any_number_of_more_cpus() {
    const LOST: u64 = 10_000_000;
    let (recorded, _) = busy_loop_of(5, LOST);
    let more = predict(&recorded, &Default::default(), &[(Change::Cpus(8), &[])]);
    let [expected, low, high] = more.saving().map(|time| time.0);
    assert!(expected.abs_diff(5 * LOST * 3 / 4) < 500_000, "two of eight CPUs are held as before: {more:?}");
    assert_eq!(low, 0, "they may hold all");
    assert!(high >= 5 * LOST - 500_000, "or none: {high}");
    let fewer = predict(&recorded, &Default::default(), &[(Change::Cpus(1), &[])]);
    assert_eq!(fewer.held_by_others, None);
    let (idle, _) = loop_of(5, &Spans::USUAL);
    assert_eq!(predict(&idle, &Default::default(), &[(Change::Cpus(8), &[])]).held_by_others, None);
}

#[test]
fn a_recorder_held_cpus_for_a_part_of_the_time_that_the_command_used() {
    let overhead = |lost| {
        let ((mut recording, slices), _) = busy_loop_of(20, lost);
        let cost = Calibration { what: Constant::RecordedCall, ns: 0.001, low_ns: None, high_ns: None };
        recording.calibration.push(cost);
        let unchanged = predict(&(recording, slices), &Default::default(), &[]);
        unchanged.wall.since(unchanged.unrecorded).0
    };
    let [latency, little, much] = [100_000, 1_000_000, 9_000_000].map(overhead);
    assert!(latency < 1_000, "a thread that wakes up is not on a CPU at once: {latency}");
    assert!(little.abs_diff(20_000_000) < 200_000, "{little}");
    assert!((36_000_000..72_000_000).contains(&much), "other programs held them, too: {much}");
}

#[test]
fn several_jobs_at_a_time_leave_other_programs_their_share_of_the_cpus() {
    let share_saved = |lost| {
        let (recorded, launches) = busy_loop_of(20, lost);
        let predicted = predict(&recorded, &Default::default(), &[(Change::Jobs(2), &launches)]);
        let [expected, low, _] = predicted.saving().map(|time| time.0 as f64 / predicted.wall.0 as f64);
        (expected, low)
    };
    let (idle, busy) = (share_saved(0), share_saved(9_000_000));
    assert!(idle.0 > 0.4 && busy.0 < 0.9 * idle.0, "{idle:?} {busy:?}");
    assert!(idle.1 > 0.2 && busy.1 < 0.5 * idle.1, "{idle:?} {busy:?}");
}

/// Builds a recording of a shell that launches `dirname` `count` times in a row.
fn loop_of(count: u64, spans: &Spans) -> ((Recording, Vec<SliceRow>), Vec<LaunchId>) {
    let mut serial = Serial::new();
    let launches = (0..count).map(|_| serial.launch(spans, DIRNAME)).collect();
    (serial.finish(), launches)
}

#[test]
fn forks_of_a_script_are_selected_by_its_interpreter() {
    let mut serial = Serial::with_command("/home/user/run.sh", &["/bin/bash", "run.sh"]);
    let bash = serial.builder.text(b"/bin/bash");
    serial.builder.recording.execs[0].interpreter = Some(bash);
    let fork = serial.launch(&Spans::USUAL, None);
    let program = serial.launch(&Spans::USUAL, DIRNAME);
    let (recording, _) = serial.finish();
    let forest = Forest::build(&recording);
    let [fork, program] = [fork, program].map(|launch| launch.0 as u32 - 1);
    for (text, selected) in [
        ("(bash)", &[fork][..]),
        ("(run.sh)", &[fork]),
        ("dirname,parent=bash", &[program]),
        ("parent=run.sh", &[fork, program]),
        ("(dash)", &[]),
    ] {
        assert_eq!(Selector::parse(text).unwrap().select(&forest).unwrap(), selected, "{text}");
    }
}

/// Two children run at the same time. The command works after it has created the second, after each
/// has ended, and, as long again, after it has reaped each.
#[test]
fn work_for_children_that_run_at_the_same_time_goes_with_them() {
    const FOR_CHILD: u64 = 400_000;
    let mut serial = Serial::new();
    serial.builder.recording.info.cpus = 4;
    let begin = serial.now();
    let children: [LaunchId; 2] = [(0, 5_000_000), (FOR_CHILD, 8_000_000)].map(|(later, run)| {
        let child = serial.builder.launch(ROOT, begin + later, &Spans { run, ..Spans::USUAL }, DIRNAME);
        let row = serial.builder.row(child);
        row.parent_task = Some(TaskId(ROOT.0));
        let [born, gone] = [row.created.unwrap().0, row.zombie.unwrap().0];
        row.reaped = Some(Nanos(gone + FOR_CHILD));
        serial.slices.extend([created(child.0, born, 20_000), ended(child.0, born + 20_000, gone)]);
        child
    });
    // It loses its CPU for a moment between the creations.
    let (mut on, mut off) = (begin + FOR_CHILD / 2, begin + FOR_CHILD + Spans::USUAL.create + FOR_CHILD);
    serial.slices.push(SliceRow { reason: LeftCpu::Preempted, ..slice(ROOT.0, 0, on, [0, 0], READ, None) });
    for child in children {
        let gone = serial.builder.row(child).zombie.unwrap().0;
        let waker = Some(WakerRow::Task(TaskId(child.0)));
        serial.slices.push(slice(ROOT.0, on, off, [gone - off, 0], READ, waker));
        (on, off) = (gone, gone + 2 * FOR_CHILD);
    }
    serial.resume_shell_at(on);
    serial.run_shell_until(off);
    let recorded = serial.finish();
    let predicted = predict(&recorded, &Default::default(), &[(Change::Remove, &children)]);
    assert_eq!(predicted.replay_error, 0.0);
    // What is left: the work before and between the creations, after each reaping, and at the end.
    let left = 2 * SHELL + 3 * FOR_CHILD - Spans::USUAL.create;
    assert_eq!(predicted.predicted.0, left, "{predicted:?}");
}
