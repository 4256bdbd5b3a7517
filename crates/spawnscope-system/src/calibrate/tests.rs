//! Tests the calibration with this machine's constants and with synthetic rounds.

use super::shared_results::MAX_ROUNDS;
use super::*;
use crate::launch_timing::shared::SharedMapping;
use crate::process::reap;

/// Returns the results of rounds that take from 1 to `rounds` times as long as the fastest one. In
/// the large process, each MiB adds 100 ns to creation and 50 ns to freeing.
fn results(rounds: u64) -> SharedMapping<SharedResults> {
    let results = SharedMapping::<SharedResults>::map().unwrap();
    results.instructions_at_start.add([50]);
    let mebibytes = (rounds::LARGE_BYTES >> 20) as u64;
    // The scales are not in ascending order.
    for scale in (1..=rounds).map(|number| 1 + number * 2 % rounds) {
        results.small.add([100 * scale, 200 * scale]);
        results.cold.add([0, 350 * scale]);
        results.vfork.add([20 * scale, 30 * scale]);
        results.large.add([300 + 100 * mebibytes, 600 + 150 * mebibytes]);
        results.faults.add([1_000 * scale * u64::from(rounds::FAULTS)]);
        results.reuses.add([400 * scale * u64::from(rounds::FAULTS)]);
        results.identifications.add([30 * scale * u64::from(rounds::IDENTIFICATIONS)]);
        results.opens.add([600 * scale * u64::from(rounds::OPENS)]);
    }
    results
}

#[test]
fn constants_are_medians_with_their_quartiles() {
    let found: Vec<_> = constants(&results(5))
        .into_iter()
        .map(|constant| (constant.what, constant.low_ns, constant.ns, constant.high_ns))
        .collect();
    let expected = [
        (Constant::ForkCreate, 200.0, 300.0, 400.0),
        (Constant::ForkExit, 400.0, 600.0, 800.0),
        (Constant::ColdForkExit, 700.0, 1_050.0, 1_400.0),
        (Constant::VforkCreate, 40.0, 60.0, 80.0),
        (Constant::VforkExit, 60.0, 90.0, 120.0),
        (Constant::PageCopy, 100.0, 100.0, 100.0),
        (Constant::PageFree, 50.0, 50.0, 50.0),
        (Constant::CowFault, 2_000.0, 3_000.0, 4_000.0),
        (Constant::ReuseFault, 800.0, 1_200.0, 1_600.0),
        (Constant::FailedOpen, 1_200.0, 1_800.0, 2_400.0),
        (Constant::Cpuid, 60.0, 90.0, 120.0),
        (Constant::Identify, 3_000.0, 4_500.0, 6_000.0),
    ];
    assert_eq!(found, expected.map(|(what, low, ns, high)| (what, Some(low), ns, Some(high))));
}

#[test]
fn constants_with_few_rounds_or_a_negative_median_are_unknown() {
    assert_eq!(constants(&results(4)), []);
    let results = results(5);
    for _ in 0..11 {
        results.large.add([50, 5_000]);
    }
    let found = constants(&results);
    let names: Vec<_> = found.iter().map(|constant| constant.what.name()).collect();
    assert!(!names.contains(&"page_copy") && names.contains(&"page_free"), "{found:?}");
    // `page_copy` is unknown, and the four `recorded_*` constants are measured elsewhere.
    assert_eq!(found.len(), Constant::ALL.len() - 5);
}

#[test]
fn rounds_beyond_the_capacity_are_dropped() {
    let lives: Vec<_> = results(20).small.rows().collect();
    assert_eq!((lives.len(), lives[0]), (MAX_ROUNDS, [300, 600]));
}

fn is_gone(process: libc::c_int) -> bool {
    reap(process).is_err_and(|error| error.raw_os_error() == Some(libc::ECHILD))
}

#[test]
fn the_measuring_process_is_gone_afterwards() {
    // The limit is long enough for a busy machine. The process ends after its last round.
    let finished = Calibrator::start_for(Duration::from_secs(60)).unwrap();
    let pid = finished.process.pid();
    let found = finished.finish();
    assert!(is_gone(pid));
    for what in [Constant::ForkExit, Constant::VforkExit, Constant::CowFault] {
        assert!(found.iter().any(|constant| constant.what == what), "{found:?}");
    }
    let dropped = Calibrator::start().unwrap();
    let pid = dropped.process.pid();
    drop(dropped);
    assert!(is_gone(pid));
}

#[test]
fn the_needed_rounds_are_made_even_if_there_is_no_time_for_more() {
    let found = Calibrator::start_until(Duration::ZERO, Duration::from_secs(60));
    let found = found.unwrap().finish();
    // Not PageCopy: it is a difference of times, and unknown if a busy machine makes it negative.
    for what in [Constant::ForkCreate, Constant::ColdForkExit, Constant::ReuseFault] {
        assert!(found.iter().any(|constant| constant.what == what), "{what:?}: {found:?}");
    }
}
