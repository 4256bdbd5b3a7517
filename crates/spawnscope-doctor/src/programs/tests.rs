//! Tests with programs that end, fail, hang or leave processes behind: the doctor measures them
//! correctly, and ends all their processes.

use std::fs;

use super::attempts::{best_of_three, ok_if};
use super::*;

fn programs_with(time: Duration) -> Programs {
    Programs::for_check(Instant::now() + time, 1)
}

const LONG: Duration = Duration::from_secs(20);

fn shell(script: &str, directory: &tempfile::TempDir) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(directory.path());
    shell
}

#[test]
fn no_program_is_started_when_the_time_for_it_is_up() {
    let late = programs_with(Duration::ZERO);
    assert_eq!(late.run(Command::new("true"), Capture::Nothing).err(), Some(RunError::NoTime));
    assert!(programs_with(LONG).run(Command::new("true"), Capture::Nothing).is_ok_and(|ran| ran.succeeded));
}

#[test]
fn only_the_requested_output_is_read_and_its_size_is_limited() {
    let directory = tempfile::tempdir().unwrap();
    let both = "echo answer; echo warning >&2";
    assert_eq!(output(both, Capture::Stdout, &directory), "answer\n");
    assert_eq!(output(both, Capture::Stderr, &directory), "warning\n");
    assert_eq!(output(both, Capture::Nothing, &directory), "");
    let flood = output("head -c 9000000 /dev/zero", Capture::Stdout, &directory);
    assert!((1_000_000..2_000_000).contains(&flood.len()), "{}", flood.len());
}

fn output(script: &str, capture: Capture, directory: &tempfile::TempDir) -> String {
    programs_with(LONG).run(shell(script, directory), capture).unwrap().output
}

#[test]
fn a_program_that_takes_too_long_can_clean_up_before_it_is_killed() {
    let script = "touch lock; trap 'rm lock; exit' TERM; touch began; sleep 60 & wait";
    // On a busy machine, the script may not reach its trap in time.
    best_of_three(|| {
        let directory = tempfile::tempdir().unwrap();
        let took = programs_with(Duration::from_secs(1)).shortest(3, || shell(script, &directory)).unwrap();
        assert!(took.is_lower_bound && took.time.0 >= 400_000_000, "{took}");
        let [began, lock] = ["began", "lock"].map(|name| directory.path().join(name).exists());
        ok_if(began && !lock, || format!("began: {began}, lock: {lock}"))
    });
}

#[test]
fn no_process_outlives_its_session_even_if_it_ignores_signals() {
    let directory = tempfile::tempdir().unwrap();
    let stubborn = "(trap '' TERM HUP; echo $$; while :; do sleep 60; done) & exec sleep 60";
    programs_with(Duration::from_millis(200)).shortest(1, || shell(stubborn, &directory)).unwrap();
    let left = "sleep 60 & echo $!";
    let ran = programs_with(LONG).run(shell(left, &directory), Capture::Stdout).unwrap();
    // The command line of a process that has ended, but was not reaped, is empty.
    let command_line = fs::read(format!("/proc/{}/cmdline", ran.output.trim()));
    assert!(command_line.unwrap_or_default().is_empty());
}

#[test]
fn a_program_that_kills_its_supervisor_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let script = "echo $$ >left; kill -9 $PPID; trap '' HUP TERM; exec sleep 60";
    let ran = programs_with(LONG).run(shell(script, &directory), Capture::Nothing);
    assert_eq!(ran.err(), Some(RunError::SupervisorKilled));
    let left = fs::read_to_string(directory.path().join("left")).unwrap();
    let has_ended = || fs::read(format!("/proc/{}/cmdline", left.trim())).unwrap_or_default().is_empty();
    best_of_three(|| ok_if(has_ended(), || left.clone()));
}

/// A supervisor whose program hangs in the kernel does not answer either.
#[test]
fn a_supervisor_that_does_not_answer_is_waited_for_with_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let script = "echo $PPID >supervisor; kill -STOP $PPID; exec sleep 60";
    let limit = Duration::from_millis(200);
    let began = Instant::now();
    let ran = programs_with(limit * 2).run(shell(script, &directory), Capture::Nothing);
    assert!(matches!(ran.err(), Some(RunError::DidNotEnd(_))), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // It ends its program as soon as it runs, since the connection to the doctor is closed.
    let supervisor = fs::read_to_string(directory.path().join("supervisor")).unwrap();
    let supervisor = nix::unistd::Pid::from_raw(supervisor.trim().parse().unwrap());
    nix::sys::signal::kill(supervisor, nix::sys::signal::Signal::SIGCONT).unwrap();
}

#[test]
fn differences_within_the_noise_are_not_reported() {
    assert_eq!(excess(1_302_000, 1_000_000), None);
    assert_eq!(excess(3_000_000, 1_000_000), Some(2_000_000));
    assert_eq!(excess(205_000_000, 200_000_000), None);
}

fn excess(time: u64, other: u64) -> Option<u64> {
    let time = RunTime { time: Nanos(time), is_lower_bound: false };
    time.beyond_noise(Nanos(other)).map(|excess| excess.time.0)
}

#[test]
fn a_background_job_that_ends_soon_is_not_killed() {
    let script = "(sleep 0.05; touch done) &";
    // On a busy machine, the job may take longer than the grace period.
    best_of_three(|| {
        let directory = tempfile::tempdir().unwrap();
        programs_with(LONG).run(shell(script, &directory), Capture::Nothing).unwrap();
        ok_if(directory.path().join("done").exists(), || "not done".to_owned())
    });
}
