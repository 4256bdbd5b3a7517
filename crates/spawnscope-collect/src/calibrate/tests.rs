//! Tests the calibration with this machine's constants and with synthetic rounds.

use super::shared_results::{Life, MOST_ROUNDS};
use super::*;

/// Rounds in which the fastest life takes 1 unit and the slowest `rounds` units. In the large process, each MiB adds 100 ns to
/// creation and 50 ns to freeing.
fn results(rounds: u64) -> Shared<SharedResults> {
    let results = Shared::<SharedResults>::map().unwrap();
    let mebibytes = (rounds::LARGE_BYTES >> 20) as u64;
    // Not in ascending order.
    for scale in (1..=rounds).map(|number| 1 + number * 2 % rounds) {
        let life = |created, reaped| Life { created, reaped };
        results.small.add(life(100 * scale, 200 * scale));
        results.cold.add(life(0, 350 * scale));
        results.vfork.add(life(20 * scale, 30 * scale));
        results.large.add(life(300 + 100 * mebibytes, 600 + 150 * mebibytes));
        results.faults.add(life(0, 1_000 * scale * u64::from(rounds::FAULTS)));
        results.reuses.add(life(0, 400 * scale * u64::from(rounds::FAULTS)));
        results
            .identifications
            .add(life(0, 30 * scale * u64::from(rounds::IDENTIFICATIONS)));
    }
    results
}

#[test]
fn constants_are_medians_between_their_quartiles() {
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
        (Constant::Cpuid, 60.0, 90.0, 120.0),
    ];
    assert_eq!(
        found,
        expected.map(|(what, low, ns, high)| (what, Some(low), ns, Some(high)))
    );
}

#[test]
fn few_rounds_and_impossible_costs_are_unknown() {
    assert_eq!(constants(&results(4)), []);
    let results = results(5);
    for _ in 0..11 {
        results.large.add(Life {
            created: 50,
            reaped: 5_000,
        });
    }
    let found = constants(&results);
    let names: Vec<_> = found.iter().map(|constant| constant.what.name()).collect();
    assert!(
        !names.contains(&"page_copy") && names.contains(&"page_free"),
        "{found:?}"
    );
    // `recorded_call` is measured elsewhere.
    assert_eq!(found.len(), Constant::ALL.len() - 2);
}

#[test]
fn a_board_holds_no_more_than_it_has_room_for() {
    let results = results(20);
    assert_eq!(results.small.lives().len(), MOST_ROUNDS);
    assert_eq!(
        results.small.lives()[0],
        Life {
            created: 300,
            reaped: 600
        }
    );
    assert_eq!(Shared::<SharedResults>::map().unwrap().small.lives(), []);
}

#[test]
fn the_measuring_process_is_gone_afterwards() {
    let is_gone = |pid: Pid| {
        // SAFETY: queries a child of ours.
        let waited = unsafe { libc::waitpid(pid.0, std::ptr::null_mut(), libc::WNOHANG) };
        waited == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD)
    };
    let finished = Calibrator::start().unwrap();
    let pid = finished.process.0;
    let _ = finished.finish();
    assert!(is_gone(pid));
    let dropped = Calibrator::start().unwrap();
    let pid = dropped.process.0;
    drop(dropped);
    assert!(is_gone(pid));
}
