//! `--match` and `--nth`: which launch is held, and that all other processes run as if they were
//! not traced.

use std::ffi::OsString;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::holding::{await_held, hold, hold_and_continue, hold_command, parent, run_hold, send, state, tracer};

use crate::support::prelude::*;

#[apply(live_test)]
fn the_first_launch_that_matches_is_held() {
    let script = "env printf one; env printf two; exit 4";
    let (held, finished) = hold_and_continue(["--match", "printf*", "sh", "-c", script]);
    // `env printf one` is the same launch, but does not match.
    assert_eq!(held, "printf one");
    assert_eq!(finished.output(), "onetwo");
    let errors = finished.expect_code(4).errors();
    assert_eq!(errors.matches("is stopped").count(), 1, "{errors}");

    let (held, finished) = hold_and_continue(["--match", "sh", "sh", "-c", "exit 3"]);
    assert_eq!(held, "sh -c exit 3", "the command is a launch too");
    finished.expect_code(3);
}

#[apply(live_test)]
fn the_nth_launch_that_matches_is_held() {
    let tiny = path("tiny");
    let script = "for i in 1 2 3 4; do \"$0\" $i; sleep 0; done; exit 6";
    let command_line = ["sh", "-c", script, tiny.to_str().expect("text")];
    for (pattern, nth, expected) in [("tiny", "3", "tiny 3"), ("* [24]", "2", "tiny 4")] {
        let flags = ["--match", pattern, "--nth", nth];
        let (held, finished) = hold_and_continue(flags.iter().chain(&command_line));
        assert!(held.ends_with(expected), "{held}");
        finished.expect_code(6);
    }
}

/// The workload makes 1009 launches, by fork, vfork, posix_spawn, clone and clone3.
#[apply(live_test)]
fn every_way_to_launch_is_counted_once() {
    let errors = run_hold(arguments_with_nth("1010")).expect_code(0).errors();
    let expected = "--nth 1010 was given, but only 1,009 launches matched tiny";
    assert_contains(&errors, [expected]);
    // The 300th is a vfork: its parent sleeps until the exec, and cannot be interrupted.
    for nth in ["300", "1009"] {
        let (running, pid) = hold(arguments_with_nth(nth));
        let parent = parent(pid);
        await_some("the release of its parent", || (tracer(parent) == Some(0)).then_some(()));
        send(pid, Signal::SIGCONT);
        let truth = Truth::new(&running.finish().expect_code(0).stdout);
        assert_eq!(truth.one("vfork"), 197);
    }
}

fn arguments_with_nth(nth: &str) -> Vec<OsString> {
    let flags = ["--match", "tiny", "--nth", nth].map(OsString::from);
    flags.into_iter().chain([path("mechanisms").into(), path("tiny").into()]).collect()
}

#[apply(live_test)]
fn a_script_is_matched_by_its_own_name() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = directory.path().join("own-name");
    write_program(&script, "#!/bin/sh\nexit 8\n");
    let (held, finished) = hold_and_continue(["--match".as_ref(), "own-name".as_ref(), script.as_os_str()]);
    assert!(held.starts_with("/bin/sh "), "{held}");
    finished.expect_code(8);
}

#[apply(live_test)]
fn a_missing_match_is_reported_and_changes_nothing() {
    let script = "echo out; sleep 0; kill -TERM $$";
    let finished = run_hold(["--match", "no such thing", "sh", "-c", script]).expect_code(128 + 15);
    assert_eq!(finished.output(), "out\n");
    let message = "spawnscope: no launch matched 'no such thing': nothing was held";
    assert_eq!(finished.errors().trim(), message);
}

/// The behavior of these programs could change under ptrace: they have stops that a parent
/// observes, threads that call exec, real-time signals, ignored signals, and children that are
/// stopped and killed.
#[apply(live_test)]
fn followed_programs_behave_as_without_a_tracer() {
    let real_time = "trap 'echo got it' RTMIN+3; kill -RTMIN+3 $$; (exit 4); echo $?";
    let ignoring =
        "trap '' TERM; kill -TERM $$; sleep 0; echo survived; kill -TSTP $$ & sleep 0.2; kill -CONT $$; wait; echo on";
    let stopping = "sleep 60 & kill -STOP $!; kill $!; kill -CONT $!; wait $!; echo $?";
    let programs: [&[&str]; 5] = [
        &[&word("stopped_child")],
        &[&word("thread_exec"), &word("tiny")],
        &["bash", "-c", real_time],
        &["bash", "-c", ignoring],
        &["sh", "-c", stopping],
    ];
    for program in programs {
        let plain = run(Command::new("setsid").arg("--wait").args(program));
        let followed = run_hold(["--match", "nothing*"].iter().chain(program));
        assert_eq!(followed.code(), plain.code(), "{program:?}: {}", followed.errors());
        // Pids and times differ.
        let [followed, plain] =
            [followed, plain].map(|finished| finished.output().replace(|c: char| c.is_ascii_digit(), ""));
        assert_eq!(followed, plain, "{program:?}");
    }
}

#[apply(live_test)]
#[needs(Strace, Gdb)]
fn programs_that_trace_others_are_let_go_with_their_targets() {
    let finished = run_hold(["--match".into(), "nothing".into(), "sh".into(), script("attaches.sh").into_os_string()]);
    let finished = finished.expect_code(0);
    assert_eq!(finished.output(), "strace 130\n0\nstrace -f 4\n", "{}", finished.errors());
    assert!(finished.message().contains("launches of this program are not held: strace"), "{}", finished.errors());
}

#[apply(live_test)]
fn other_processes_continue_unharmed_while_one_is_held() {
    let mut command = hold_command(["--match", "tiny", "sh"]);
    let running = Running::start(command.arg(script("held_neighbours.sh")).arg(path("tiny")));
    let pid = await_held(&running);
    await_some("the trap of the busy process", || {
        String::from_utf8_lossy(&running.stdout_so_far()).into_owned().contains("ready").then_some(())
    });
    let truth = String::from_utf8_lossy(&running.stdout_so_far()).into_owned();
    let [stopped, busy] = ["stopped", "busy"].map(|key| {
        let value = truth.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        Pid::from_raw(value.expect("a neighbour").parse().expect("a pid"))
    });
    await_some("the release of all processes", || {
        [parent(pid), stopped, busy].iter().all(|pid| tracer(*pid) == Some(0)).then_some(())
    });
    // `hold` may detach from this process just before the process stops itself. A SIGCONT before
    // that stop would be lost.
    await_some("the stop of the stopped process", || (state(stopped) == Some('T')).then_some(()));
    send(busy, Signal::SIGUSR1);
    send(stopped, Signal::SIGCONT);
    send(pid, Signal::SIGCONT);
    let output = running.finish().expect_code(0).output();
    for wanted in ["stopped one continued", "busy one signalled"] {
        assert!(output.contains(wanted), "no '{wanted}' in: {output}");
    }
}
