//! Runs whose launches slow down, runs whose launches only seem to slow down, and the memory of a
//! growing parent.

use proptest::prelude::*;
use spawnscope_analyze::explain::drift::{Drift, drifts};

use crate::prelude::*;
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

/// Returns the usual phases, except that these two depend on the memory of a parent of `megabytes`:
/// 16 us and 20 us per megabyte, to copy and to free its page tables.
fn with_page_tables(number: u64, megabytes: u64) -> (Spans, u64) {
    let noise_ns = (noise(number) * 30_000.0) as u64;
    let [create, freed] = [60_000 + megabytes * 16_000, 40_000 + megabytes * 20_000].map(|ns| ns + noise_ns);
    (Spans { create, exec: freed, ..Spans::USUAL }, megabytes * 1_000_000)
}

#[test]
fn memory_is_the_cause_if_copying_and_freeing_grow_with_it() {
    const MB: u64 = 1_000_000;
    let grown = |number| 16 + number * 271 / 300;
    let leak = |number| {
        let create = 120_000 + number * 63_000 + (noise(number) * 100_000.0) as u64;
        (Spans { create, ..Spans::USUAL }, (10 + number) * MB)
    };
    let freed_at_exit = |number| {
        let (spans, rss_bytes) = with_page_tables(number, grown(number));
        (Spans { exec: Spans::USUAL.exec, teardown: spans.exec, ..spans }, rss_bytes)
    };
    let scanned = |number| {
        let spans = Spans { create: 60_000 + number * 100, exec: 300_000 + number * 50_000, ..Spans::USUAL };
        (spans, 16 * MB + number * 100_000)
    };
    let loading = |number| Spans { load: 400_000 + number * 10_000, ..Spans::USUAL };
    let shrinking = |number, rise| {
        let (spans, rss_bytes) = with_page_tables(number, 300 - number);
        (Spans { load: 400_000 + number * rise, ..spans }, rss_bytes)
    };
    for (what, recording, ns_per_mb, phase) in [
        ("a leak", storm(200, leak), Some(63_000.0), None),
        ("a copy that exit frees", storm_of(None, 300, freed_at_exit), Some(36_000.0), None),
        ("a copy that exec frees", storm(300, |number| with_page_tables(number, grown(number))), Some(36_000.0), None),
        ("a scanner beside a growing parent", storm(300, scanned), None, Some(Phase::Exec)),
        ("constant memory", storm(300, |number| (with_page_tables(number, number).0, 100 * MB)), None, None),
        ("a slow loader", storm(100, |number| (loading(number), 10 * MB)), None, Some(Phase::Load)),
        (
            "a slow loader below a growing parent",
            storm(100, |number| (loading(number), (10 + number) * MB)),
            None,
            None,
        ),
        ("a slow loader below a shrinking parent", storm(300, |number| shrinking(number, 200_000)), None, None),
    ] {
        let found = drifts_of(&recording);
        assert_eq!((found.len(), found[0].children), (1, recording.launches.len() as u64 - 1), "{what}");
        assert_eq!(found[0].memory.is_some(), ns_per_mb.is_some(), "{what}: {found:?}");
        let off = found[0].memory.zip(ns_per_mb).map_or(0.0, |(growth, expected)| (growth.ns_per_mb - expected).abs());
        assert!(off < 2_000.0 && found[0].segments.len() == 10, "{what}: {found:?}");
        let is_named = |phase| found[0].rise.is_some_and(|rise| rise.phase == phase && rise.share > 0.9);
        assert!(phase.is_none_or(is_named), "{what}: {found:?}");
    }
    assert_eq!(drifts_of(&storm(300, |number| shrinking(number, 0))), [], "a shrinking parent alone");
}

#[test]
fn noise_a_late_reaper_and_one_slow_stretch_are_not_drift() {
    let noisy = |number| {
        let spans = with_page_tables(number, (noise(number + 7) * 40.0) as u64).0;
        (spans, 16_000_000 + number * 1_000_000)
    };
    let slow_at_the_end = |number| {
        let queue = if number < 180 { 20_000 } else { 3_000_000 } + (noise(number) * 20_000.0) as u64;
        (Spans { queue, ..Spans::USUAL }, 10_000_000)
    };
    assert_eq!(drifts_of(&storm(300, noisy)), [], "whatever the memory");
    assert_eq!(drifts_of(&storm(200, slow_at_the_end)), []);
    let reaped_late = storm(100, |number| (Spans { reap: number * 1_000_000, ..Spans::USUAL }, 10_000_000));
    assert_eq!(drifts_of(&reaped_late), []);
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
