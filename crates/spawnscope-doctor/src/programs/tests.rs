//! Programs that end, fail, hang or leave processes behind: what the doctor measures of them, and that it ends them.

use std::fs;

use super::attempts::{best_of_three, ok_if};
use super::*;

fn within(time: Duration) -> Programs {
    Programs::of_check(Instant::now() + time, 1)
}

const LONG: Duration = Duration::from_secs(20);

fn shell(script: &str, directory: &tempfile::TempDir) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(directory.path());
    shell
}

#[test]
fn no_program_is_started_when_the_time_for_it_is_up() {
    let late = within(Duration::ZERO);
    let program = || Command::new("true");
    assert_eq!(late.run(program(), Reads::Nothing).err(), Some(Unknown::NoTime));
    assert_eq!(late.count_launches(program()), None);
    assert!(
        within(LONG)
            .run(program(), Reads::Nothing)
            .is_ok_and(|ran| ran.succeeded)
    );
}

#[test]
fn only_the_output_that_is_wanted_is_read_and_not_without_end() {
    let directory = tempfile::tempdir().unwrap();
    let both = "echo answer; echo warning >&2";
    let said = |script: &str, reads| within(LONG).run(shell(script, &directory), reads).unwrap().output;
    assert_eq!(said(both, Reads::Output), "answer\n");
    assert_eq!(said(both, Reads::Errors), "warning\n");
    assert_eq!(said(both, Reads::Nothing), "");
    let flood = said("head -c 9000000 /dev/zero", Reads::Output);
    assert!((1_000_000..2_000_000).contains(&flood.len()), "{}", flood.len());
}

#[test]
fn a_program_that_takes_too_long_may_tidy_up_before_it_is_ended() {
    let script = "touch lock; trap 'rm lock; exit' TERM; touch began; sleep 60 & wait";
    // On a busy machine, it may not reach its trap.
    best_of_three(|| {
        let directory = tempfile::tempdir().unwrap();
        let took = within(Duration::from_secs(1))
            .shortest(3, || shell(script, &directory))
            .unwrap();
        assert!(took.is_lower_bound && took.time.0 >= 400_000_000, "{took}");
        let [began, lock] = ["began", "lock"].map(|name| directory.path().join(name).exists());
        ok_if(began && !lock, || format!("began: {began}, lock: {lock}"))
    });
}

#[test]
fn nothing_of_its_session_outlives_it_not_even_what_heeds_no_signal() {
    let directory = tempfile::tempdir().unwrap();
    let stubborn = "(trap '' TERM HUP; echo $$; while :; do sleep 60; done) & exec sleep 60";
    within(Duration::from_millis(200))
        .shortest(1, || shell(stubborn, &directory))
        .unwrap();
    let left = "sleep 60 & echo $!";
    let ran = within(LONG).run(shell(left, &directory), Reads::Output).unwrap();
    // A process that has ended may not have been reaped.
    let command_line = fs::read(format!("/proc/{}/cmdline", ran.output.trim()));
    assert!(command_line.unwrap_or_default().is_empty());
}

#[test]
fn a_program_that_kills_its_supervisor_is_ended_all_the_same() {
    // Killed while the program runs, and when only a background job of it is left.
    for script in [
        "echo $$ >left; kill -9 $PPID; trap '' HUP TERM; sleep 60",
        "supervisor=$PPID; (trap '' HUP TERM; sleep 0.05; kill -9 $supervisor; exec sleep 60) & echo $! >left",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ran = within(LONG).run(shell(script, &directory), Reads::Nothing);
        assert_eq!(ran.err(), Some(Unknown::SupervisorKilled));
        let left = fs::read_to_string(directory.path().join("left")).unwrap();
        let command_line = fs::read(format!("/proc/{}/cmdline", left.trim()));
        assert!(command_line.unwrap_or_default().is_empty(), "{script}");
    }
}

#[test]
fn differences_within_the_noise_are_not_reported() {
    let took = |time| RunTime {
        time: Nanos(time),
        is_lower_bound: false,
    };
    let beyond = |time, other| took(time).beyond_noise(Nanos(other)).map(|more| more.time.0);
    assert_eq!(beyond(1_302_000, 1_000_000), None);
    assert_eq!(beyond(3_000_000, 1_000_000), Some(2_000_000));
    assert_eq!(beyond(205_000_000, 200_000_000), None);
}

#[test]
fn a_job_in_the_background_that_ends_soon_comes_to_its_end() {
    let script = "(sleep 0.05; touch done) &";
    // On a busy machine, 0.05 s may take too long.
    best_of_three(|| {
        let directory = tempfile::tempdir().unwrap();
        within(LONG).run(shell(script, &directory), Reads::Nothing).unwrap();
        ok_if(directory.path().join("done").exists(), || "not done".to_owned())
    });
    best_of_three(|| {
        let directory = tempfile::tempdir().unwrap();
        assert!(within(LONG).count_launches(shell(script, &directory)).is_some());
        ok_if(directory.path().join("done").exists(), || "not done".to_owned())
    });
}

#[test]
fn processes_are_counted_and_threads_are_not() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "(:); (: | :); true"]);
    // A subshell, another one, and two in its pipeline.
    let launches = within(LONG).count_launches(shell).unwrap();
    assert_eq!(launches.to_string(), "4 processes");
}

#[test]
fn counts_of_a_program_that_does_not_end_are_lower_bounds() {
    let directory = tempfile::tempdir().unwrap();
    best_of_three(|| {
        let script = "(:); (:); sleep 60 & wait";
        let launches = within(Duration::from_secs(2)).count_launches(shell(script, &directory));
        let counted = launches.map(|launches| launches.to_string());
        ok_if(counted.as_deref() == Some("at least 3 processes"), || {
            format!("{counted:?}")
        })
    });
    let few = Launches {
        number: 3,
        is_lower_bound: false,
    };
    let cut = |number| Launches {
        number,
        is_lower_bound: true,
    };
    assert_eq!(cut(5).beyond(few), Some(cut(2)));
    // A difference from a truncated count is unknown.
    assert_eq!(cut(3).beyond(few), None);
    assert_eq!(few.beyond(cut(1)), None);
}
