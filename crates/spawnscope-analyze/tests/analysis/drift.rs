//! Runs whose launches slow down, runs whose launches only seem to slow down, and the memory of a
//! growing parent.

use proptest::prelude::*;
use spawnscope_analyze::Forest;
use spawnscope_analyze::explain::drift::{Drift, drifts};
use spawnscope_analyze::model::phases::Phase;
use spawnscope_data::event::Mechanism;
use spawnscope_data::rows::Recording;

use crate::builder::{Builder, ROOT, Spans};
use crate::recordings::{storm, storm_of};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]
    // The noise around a constant has a heavy tail, and with few children it most resembles drift.
    // The seed is fixed because false alarms are rare but possible.
    #[test]
    fn noise_alone_is_not_drift(exponents in proptest::collection::vec(0.0f64..2.0, 20..60)) {
        let recording = storm(exponents.len() as u64, |number| {
            let exec = (100_000.0 * 10f64.powf(exponents[number as usize])) as u64;
            (Spans { exec, ..Spans::USUAL }, 10_000_000)
        });
        prop_assert_eq!(drifts_of(&recording), []);
    }
}

fn drifts_of(recording: &Recording) -> Vec<Drift> {
    drifts(&Forest::build(recording))
}

/// Returns deterministic noise between 0 and 1.
fn noise(number: u64) -> f64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1u64 << 24) as f64
}

#[test]
fn launches_that_slow_as_the_parents_memory_grows_are_reported_as_a_leak() {
    let recording = storm(200, |number| {
        let create = 120_000 + number * 63_000 + (noise(number) * 100_000.0) as u64;
        (Spans { create, ..Spans::USUAL }, 10_000_000 + number * 1_000_000)
    });
    let found = drifts_of(&recording);
    let growth = found[0].memory.expect("memory is the cause");
    assert!((growth.ns_per_mb - 63_000.0).abs() < 2_000.0, "{growth:?}");
    assert_eq!((found.len(), found[0].children, found[0].segments.len()), (1, 200, 10));
}

#[test]
fn launches_that_become_slower_without_memory_have_no_cause() {
    let recording = storm(100, |number| (Spans { load: 400_000 + number * 10_000, ..Spans::USUAL }, 10_000_000));
    let found = drifts_of(&recording);
    assert_eq!((found.len(), found[0].memory), (1, None));
    let rise = found[0].rise.unwrap();
    assert_eq!(rise.phase, Phase::Load);
    assert!(rise.share > 0.9, "{rise:?}");
}

/// Returns the times to copy and to free the page tables of a parent of `megabytes`, in
/// nanoseconds: 16 us and 20 us per megabyte.
fn page_table_costs(number: u64, megabytes: u64) -> (u64, u64) {
    let noise_ns = (noise(number) * 30_000.0) as u64;
    (60_000 + megabytes * 16_000 + noise_ns, 40_000 + megabytes * 20_000 + noise_ns)
}

#[test]
fn a_copy_torn_down_by_the_childs_exit_is_part_of_what_memory_costs() {
    let recording = storm_of(None, 300, |number| {
        let megabytes = 16 + number * 271 / 300;
        let (create, teardown) = page_table_costs(number, megabytes);
        let spans = Spans { create, teardown, ..Spans::USUAL };
        (spans, megabytes * 1_000_000)
    });
    let growth = drifts_of(&recording)[0].memory.expect("memory is the cause");
    assert!((growth.ns_per_mb - 36_000.0).abs() < 2_000.0, "{growth:?}");
}

#[test]
fn a_copy_torn_down_by_the_childs_exec_is_part_of_what_memory_costs() {
    let recording = storm(300, |number| {
        let megabytes = 16 + number * 271 / 300;
        let (create, exec) = page_table_costs(number, megabytes);
        let spans = Spans { create, exec, ..Spans::USUAL };
        (spans, megabytes * 1_000_000)
    });
    let growth = drifts_of(&recording)[0].memory.expect("memory is the cause");
    assert!((growth.ns_per_mb - 36_000.0).abs() < 2_000.0, "{growth:?}");
}

#[test]
fn a_scanner_that_slows_exec_while_the_parent_grows_is_not_blamed_on_memory() {
    let recording = storm(300, |number| {
        let spans = Spans { create: 60_000 + number * 100, exec: 300_000 + number * 50_000, ..Spans::USUAL };
        (spans, 16_000_000 + number * 100_000)
    });
    let found = drifts_of(&recording);
    assert_eq!(found[0].memory, None);
    assert_eq!(found[0].rise.map(|rise| rise.phase), Some(Phase::Exec));
}

#[test]
fn a_parent_of_constant_memory_is_not_blamed() {
    let recording = storm(300, |number| {
        let (create, exec) = page_table_costs(number, number);
        let spans = Spans { create, exec, ..Spans::USUAL };
        (spans, 100_000_000)
    });
    let found = drifts_of(&recording);
    assert_eq!((found.len(), found[0].memory), (1, None));
}

#[test]
fn a_shrinking_parent_has_no_drift_and_causes_no_other_rise() {
    let [steady, slower] = [0, 200_000].map(|rise| {
        storm(300, |number| {
            let megabytes = 300 - number;
            let (create, exec) = page_table_costs(number, megabytes);
            let load = 400_000 + number * rise;
            let spans = Spans { create, exec, load, ..Spans::USUAL };
            (spans, megabytes * 1_000_000)
        })
    });
    assert_eq!(drifts_of(&steady), []);
    let found = drifts_of(&slower);
    assert_eq!((found.len(), found[0].memory), (1, None));
}

#[test]
fn a_steady_run_with_heavy_noise_has_no_drift_with_any_memory() {
    let recording = storm(300, |number| {
        let (create, exec) = page_table_costs(number, (noise(number + 7) * 40.0) as u64);
        let spans = Spans { create, exec, ..Spans::USUAL };
        (spans, 16_000_000 + number * 1_000_000)
    });
    assert_eq!(drifts_of(&recording), []);
}

#[test]
fn memory_that_grows_while_the_loader_slows_is_not_blamed() {
    let recording = storm(100, |number| {
        (Spans { load: 400_000 + number * 10_000, ..Spans::USUAL }, 10_000_000 + number * 1_000_000)
    });
    assert_eq!(drifts_of(&recording)[0].memory, None);
}

#[test]
fn a_late_reaper_is_not_drift() {
    let recording = storm(100, |number| (Spans { reap: number * 1_000_000, ..Spans::USUAL }, 10_000_000));
    assert_eq!(drifts_of(&recording), []);
}

#[test]
fn one_slow_stretch_at_the_end_is_not_a_trend() {
    let recording = storm(200, |number| {
        let queue = if number < 180 { 20_000 } else { 3_000_000 } + (noise(number) * 20_000.0) as u64;
        (Spans { queue, ..Spans::USUAL }, 10_000_000)
    });
    assert_eq!(drifts_of(&recording), []);
}

#[test]
fn more_expensive_programs_later_are_not_drift() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 100_000_000_000);
    for number in 0..100 {
        let load = 400_000 + (noise(number) * 50_000.0) as u64;
        let (load, program) = if number < 50 { (load, "/bin/cat") } else { (load * 20, "/usr/bin/python3") };
        let id = builder.launch(ROOT, number * 20_000_000, &Spans { load, ..Spans::USUAL }, Some((program, &["x"])));
        builder.row(id).parent_rss_bytes = Some(5_000_000);
    }
    assert_eq!(drifts_of(&builder.recording), []);
}

#[test]
fn a_change_of_mechanism_is_not_drift() {
    let mut builder = Builder::command("/usr/bin/python3", &["python3"], 100_000_000_000);
    for number in 0..100 {
        let spans = Spans { create: if number < 50 { 40_000 } else { 900_000 } + number * 10, ..Spans::USUAL };
        let id = builder.launch(ROOT, number * 20_000_000, &spans, Some(("/bin/true", &["true"])));
        builder.row(id).mechanism = Some(if number < 50 { Mechanism::Vfork } else { Mechanism::Fork });
    }
    assert_eq!(drifts_of(&builder.recording), []);
}

#[test]
fn successive_parents_of_one_program_are_judged_separately() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 100_000_000_000);
    for generation in 0..10u64 {
        let start_ns = generation * 1_000_000_000;
        let parent =
            builder.launch(ROOT, start_ns, &Spans { run: 900_000_000, ..Spans::USUAL }, Some(("/bin/p", &["p"])));
        for number in 0..30 {
            let create = 100_000 * (generation + 1) + (noise(number) * 20_000.0) as u64;
            let spans = Spans { create, ..Spans::USUAL };
            let id = builder.launch(
                parent,
                start_ns + 1_000_000 + number * 20_000_000,
                &spans,
                Some(("/bin/true", &["true"])),
            );
            builder.row(id).parent_rss_bytes = Some(10_000_000 * (generation + 1));
        }
    }
    assert_eq!(drifts_of(&builder.recording), []);
}

#[test]
fn drift_is_not_judged_from_fewer_than_twenty_children() {
    for (children, drifts) in [(19, 0), (20, 1)] {
        let leaking = storm(children, |number| {
            (Spans { create: 100_000 * (number + 1), ..Spans::USUAL }, 10_000_000 * (number + 1))
        });
        assert_eq!(drifts_of(&leaking).len(), drifts, "{children}");
    }
}
