//! Advice about parents that copy large page tables, close descriptors one by one, or sleep past
//! the end of a child.

use spawnscope_data::event::{Calibration, Constant, LaunchId, Mechanism, Nanos};
use spawnscope_data::rows::{Recording, SliceRow};

use crate::builder::Spans;
use crate::serial::{CLOCK_NANOSLEEP, Serial, advices, is_silent, only};
use crate::slices::slice;

const TRUE: Option<(&str, &[&str])> = Some(("/bin/true", &["true"]));
const SMALL: u64 = 100_000;
const VFORK: u64 = 20_000;

pub(crate) fn calibrated(program: &str) -> Serial {
    let mut serial = Serial::with_command(program, &[program, "script"]);
    let constants = [
        (Constant::ForkCreate, SMALL as f64),
        (Constant::VforkCreate, VFORK as f64),
        (Constant::PageCopy, 10_000.0),
        (Constant::PageFree, 5_000.0),
    ];
    serial.builder.recording.calibration =
        constants.map(|(what, ns)| Calibration { what, ns, low_ns: Some(ns * 0.9), high_ns: Some(ns * 1.1) }).to_vec();
    serial
}

/// Builds a recording of `count` launches. `costs` returns, for the number of a launch, the
/// duration of `create` and the parent's memory in bytes.
fn from_parent(
    program: &str,
    count: u64,
    launched: Option<(&str, &[&str])>,
    costs: impl Fn(u64) -> (u64, u64),
) -> (Recording, Vec<SliceRow>) {
    let mut serial = calibrated(program);
    for number in 0..count {
        let (create, bytes) = costs(number);
        let spans = Spans { create, exec: 2_000_000, teardown: 4_000_000, ..Spans::USUAL };
        let launch = serial.launch(&spans, launched);
        serial.builder.row(launch).parent_rss_bytes = Some(bytes);
    }
    serial.finish()
}

#[test]
fn a_large_python_gets_advice_not_to_fork() {
    let create = 3_000_000;
    let recorded = from_parent("/usr/bin/python3.11", 20, TRUE, |_| (create, 300_000_000));
    let advice = only(&advices(&recorded), "large-parent");
    assert_eq!(advice.finding.launches.len(), 20);
    // Each launch saves the time by which its `create` exceeds a vfork. It also saves the time by
    // which its exec exceeds the command's own exec, because it need not free the copy.
    let of_command = 300_000;
    let expected = 20 * (create - VFORK + 2_000_000 - of_command);
    assert!(advice.saving[0].0.abs_diff(expected) < expected / 1000, "{:?} of {expected}", advice.saving);
    assert!(advice.saving[1] < advice.saving[0], "{:?}", advice.saving);
    assert!(advice.finding.fix[0].contains("preexec_fn"), "{advice:?}");
    assert!(
        advice.finding.evidence[0].contains("300 MB resident took 60.0 ms in all, a median of 3.00 ms"),
        "{advice:?}"
    );
    assert!(advice.finding.evidence[1].contains("frees its copy"), "{advice:?}");
    assert_eq!(advice.finding.whatif, "--vfork=parent=python3.11");
}

#[test]
fn advice_names_the_call_of_each_runtime() {
    for (program, call) in [
        ("/usr/bin/java", "launchMechanism=POSIX_SPAWN"),
        ("/usr/bin/perl", "Proc::FastSpawn"),
        ("/opt/server", "posix_spawn()"),
    ] {
        let recorded = from_parent(program, 20, TRUE, |_| (3_000_000, 300_000_000));
        let fix = only(&advices(&recorded), "large-parent").finding.fix.concat();
        assert!(fix.contains(call), "{fix}");
    }
}

#[test]
fn forks_without_exec_and_those_of_shells_get_advice_on_huge_pages() {
    let python: [&str; 2] = ["forkserver", "glibc.malloc.hugetlb=1"];
    for (program, launched, parts) in [("/usr/bin/python3", None, &python[..]), ("/bin/bash", TRUE, &["unset arrays"])]
    {
        let recorded = from_parent(program, 20, launched, |_| (3_000_000, 300_000_000));
        let found = advices(&recorded);
        assert!(is_silent(&found, "large-parent"), "{found:?}");
        let fix = only(&found, "large-parent-pages").finding.fix.concat();
        assert!(parts.iter().all(|part| fix.contains(part)), "{fix}");
    }
}

#[test]
fn small_parents_and_vfork_are_left_alone() {
    let small = from_parent("/usr/bin/python3", 40, TRUE, |_| (SMALL * 3 / 2, 300_000_000));
    // With so little memory, something else must make these forks slow.
    let slow = from_parent("/usr/bin/python3", 40, TRUE, |_| (3_000_000, 4_000_000));
    let mut vfork = from_parent("/usr/bin/python3", 40, TRUE, |_| (3_000_000, 300_000_000));
    for row in &mut vfork.0.launches {
        row.mechanism = row.mechanism.map(|_| Mechanism::Vfork);
    }
    for recorded in [small, slow, vfork] {
        let found = advices(&recorded);
        assert!(is_silent(&found, "large-parent") && is_silent(&found, "large-parent-pages"), "{found:?}");
    }
}

#[test]
fn a_growing_parent_is_compared_with_its_first_launches() {
    let recorded =
        from_parent("/usr/bin/python3", 60, None, |number| (SMALL + number * 50_000, 20_000_000 + number * 5_000_000));
    let advice = only(&advices(&recorded), "growing-parent");
    assert_eq!(advice.finding.launches.len(), 60);
    // The first six launches are the standard: on average, 125,000 ns more than `SMALL`. Freeing a
    // copy takes half as long as making it.
    let at_first = 125_000;
    let saved: u64 = (0..60_u64).map(|number| (number * 50_000).saturating_sub(at_first)).sum();
    let expected = saved * 3 / 2;
    assert!(advice.saving[0].0.abs_diff(expected) < expected / 100, "{:?} of {expected}", advice.saving);
    assert!(advice.finding.evidence[1].contains("per additional MB"), "{advice:?}");
    assert!(advice.finding.fix[0].contains("tracemalloc"), "{advice:?}");
}

#[test]
fn a_large_parent_of_constant_size_is_not_reported_as_growing() {
    let recorded = from_parent("/usr/bin/python3", 60, TRUE, |_| (3_000_000, 300_000_000));
    assert!(is_silent(&advices(&recorded), "growing-parent"));
}

fn launch_closing(serial: &mut Serial, program: Option<(&str, &[&str])>, closes: u32, span: u64) {
    let launch = serial.launch(&Spans { setup: 40_000 + span, ..Spans::USUAL }, program);
    let row = serial.builder.row(launch);
    (row.setup_closes, row.setup_close_span) = (Some(closes), Some(Nanos(span)));
}

fn closing(closes: u32, span: u64) -> (Recording, Vec<SliceRow>) {
    let mut serial = calibrated("/usr/bin/server");
    for _ in 0..20 {
        launch_closing(&mut serial, TRUE, closes, span);
    }
    serial.finish()
}

#[test]
fn a_loop_of_closes_becomes_one_call() {
    let advice = only(&advices(&closing(1_000, 1_000_000)), "close-loop");
    // One call remains of a thousand.
    assert!(advice.saving[0].0.abs_diff(20 * 999_000) < 1_000, "{:?}", advice.saving);
    assert!(advice.finding.fix.concat().contains("close_range(3, ~0U, CLOSE_RANGE_CLOEXEC)"), "{advice:?}");
    assert!(advice.finding.evidence[0].contains("a median of 1,000 `close` calls"), "{advice:?}");
}

#[test]
fn a_few_closes_are_not_a_loop() {
    assert!(is_silent(&advices(&closing(10, 1_000_000)), "close-loop"));
    assert!(is_silent(&advices(&closing(1_000, 2_000)), "close-loop"), "too small to report");
}

#[test]
fn a_loop_of_closes_comes_before_a_guess_that_saves_twice_as_much() {
    let mut serial = calibrated("/opt/starter");
    for number in 0..20 {
        launch_closing(&mut serial, Some(("/opt/work", &["work", &number.to_string()])), 1_000, 800_000);
    }
    // `work` may take several numbers, which would save 36 ms.
    let advice = &advices(&serial.finish()).worth[0];
    assert_eq!(advice.finding.rule, "close-loop");
    assert!(advice.saving[0].0 < 17_000_000, "{:?}", advice.saving);
}

/// Adds a launch by a parent that polls: it looks for the child's end after each sleep of
/// `every_ns`.
fn launch_polled(serial: &mut Serial, every_ns: u64) -> LaunchId {
    let launch = serial.launch(&Spans::USUAL, Some(("/bin/job", &["job"])));
    // Replaces the wait by sleeps. The last one ends after the child.
    let wait = serial.slices.pop().unwrap();
    let (off, on) = (wait.off.0, wait.off.0 - wait.on_span.unwrap().0);
    let zombie = serial.builder.row(launch).zombie.unwrap().0;
    let (mut at, mut since) = (off, on);
    loop {
        serial.slices.push(slice(1, since, at, [every_ns, 0], CLOCK_NANOSLEEP, None));
        since = at + every_ns;
        if since > zombie {
            break;
        }
        at = since + 5_000;
    }
    serial.builder.row(launch).reaped = Some(Nanos(since));
    serial.resume_shell_at(since);
    launch
}

#[test]
fn a_polling_parent_gets_advice_to_wait() {
    let mut serial = calibrated("/usr/bin/python3");
    let launches: Vec<LaunchId> = (0..60).map(|_| launch_polled(&mut serial, 700_000)).collect();
    let rows = launches.iter().map(|launch| &serial.builder.recording.launches[launch.0 as usize - 1]);
    let late: u64 = rows.map(|row| row.reaped.unwrap().since(row.zombie.unwrap()).0).sum();
    let advice = only(&advices(&serial.finish()), "late-reaping");
    assert_eq!(advice.finding.launches.len(), 60);
    assert!(advice.saving[0].0.abs_diff(late) < late / 100, "{:?} of {late}", advice.saving);
    assert!(advice.finding.fix[0].contains("process.wait()"), "{advice:?}");
}

#[test]
fn sleeping_once_and_waiting_is_not_polling() {
    let mut serial = calibrated("/opt/starter");
    serial.launch_sleeping(&Spans::USUAL, ("/bin/job", &["job"]), 500_000_000);
    assert!(is_silent(&advices(&serial.finish()), "late-reaping"));
    let mut serial = calibrated("/opt/starter");
    for _ in 0..20 {
        serial.launch(&Spans::USUAL, TRUE);
    }
    assert!(is_silent(&advices(&serial.finish()), "late-reaping"));
}
