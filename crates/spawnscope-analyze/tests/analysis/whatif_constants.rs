//! Predictions with constants of the machine: the time to identify the CPU, the overhead of
//! recording, and the faults after a fork.

use crate::prelude::*;
use crate::whatif::{LAUNCH, dirnames, saved};

#[test]
fn less_knowledge_of_cpu_identification_widens_the_interval() {
    let (recorded, launches) = dirnames(20);
    let rows = [(Constant::Cpuid, 4_000.0), (Constant::Identify, 160_000.0)];
    let rows = rows.map(|(what, ns)| Calibration { what, ns, low_ns: Some(0.98 * ns), high_ns: Some(1.02 * ns) });
    let [counted, timed, unknown] = [&rows[..], &rows[..1], &[]].map(|rows| {
        let mut recording = recorded.0.clone();
        recording.calibration = rows.to_vec();
        let constants = Constants::of(&recording, &Forest::build(&recording));
        predict(&recorded, &constants, &[(Change::Static, &launches)]).saving_margin.0
    });
    assert!(counted < timed / 2 && counted < unknown / 2, "{counted}, {timed}, {unknown}");
}

#[test]
fn faults_after_the_last_fork_belong_to_it_up_to_what_it_shared() {
    for (faults, grown, expected) in [
        (60, Some(0), 12_000),
        // New pages are the parent's own.
        (60, Some(10), 10_000),
        // No more than the pages that were shared.
        (5_000, None, 20_000),
    ] {
        let mut serial = Serial::new();
        let launch = serial.launch(&Spans::USUAL, DIRNAME);
        serial.builder.row(launch).parent_rss_bytes = Some(100 * 4096);
        let row = serial.builder.row(ROOT);
        row.exit_faults = Some(faults);
        row.exit_rss_bytes = grown.map(|pages: u64| (100 + pages) * 4096);
        serial.builder.recording.calibration =
            vec![Calibration { what: Constant::ReuseFault, ns: 200.0, low_ns: None, high_ns: None }];
        assert_eq!(saved(&serial.finish(), &[(Change::Remove, &[launch])]), LAUNCH + expected, "{faults}, {grown:?}");
    }
}

#[test]
fn the_overhead_of_recording_launches_is_not_part_of_predictions() {
    let mut serial = Serial::new();
    let launches: Vec<LaunchId> = (0..3).map(|_| serial.launch(&Spans::USUAL, DIRNAME)).collect();
    for (what, ns) in [(Constant::RecordedLaunch, 10_000.0), (Constant::RecordedExec, 15_000.0)] {
        serial.builder.recording.calibration.push(Calibration { what, ns, low_ns: None, high_ns: None });
    }
    let recorded = serial.finish();
    let unchanged = predict(&recorded, &Constants::default(), &[]);
    let overhead = unchanged.wall.since(unchanged.unrecorded).0;
    // The recorder itself created the command, so that only the command's exec and end cost
    // recording time.
    assert!(overhead.abs_diff(3 * 25_000 + 15_000 + 5_000) < 100, "{overhead}");
    let removed = predict(&recorded, &Constants::default(), &[(Change::Remove, &launches[..1])]);
    let [saving, ..] = removed.saving();
    assert!(saving.0.abs_diff(LAUNCH - 25_000) < 100, "{saving:?}");
}

#[test]
fn start_ups_tell_how_well_the_machine_repeats_itself() {
    let repeatability = |count: u64, is_slow: fn(u64) -> bool| {
        let mut serial = Serial::new();
        for number in 0..count {
            let load = if is_slow(number) { 600_000 } else { 400_000 };
            serial.launch(&Spans { load, ..Spans::USUAL }, DIRNAME);
        }
        let (recording, _) = serial.finish();
        Constants::of(&recording, &Forest::build(&recording)).repeatability
    };
    let equal = repeatability(80, |_| false);
    assert!(equal.is_some_and(|equal| equal < 0.04), "{equal:?}");
    assert_eq!(repeatability(80, |number| number % 3 == 0), equal, "single start-ups may differ");
    let slower = repeatability(80, |number| number >= 40).unwrap();
    assert!((0.12..0.14).contains(&slower), "half of the time, all start-ups take 29 % longer: {slower}");
    assert_eq!(repeatability(39, |_| false), None, "too few");
}
