//! Advice about forks of a shell that never exec.

use spawnscope_analyze::explain::advice::{Advice, AdviceList};
use spawnscope_data::event::{Language, LeftCpu, Nanos};

use crate::builder::Spans;
use crate::serial::{READ, Serial, WAIT4, advices, is_silent, only};

const COUNT: u64 = 60;

fn advice_on_forks(parent: &str, spans: &Spans) -> AdviceList {
    advice_on_awaited_forks(parent, spans, READ)
}

fn advice_on_awaited_forks(parent: &str, spans: &Spans, call: u16) -> AdviceList {
    let mut serial = Serial::with_command(parent, &[parent, "script"]);
    for _ in 0..COUNT {
        serial.launch_waiting(spans, None, call);
    }
    advices(&serial.finish())
}

/// Returns the duration of a fork without exec, with the usual phases.
fn fork_duration() -> u64 {
    let spans = Spans::USUAL;
    spans.create + spans.queue + spans.run + spans.teardown + spans.reap
}

#[test]
fn substitutions_that_run_no_program_can_do_without_a_fork() {
    for (shell, snippet) in
        [("/bin/bash", "printf -v x"), ("/bin/dash", "x=$REPLY"), ("/bin/mksh", "x=${ function arg; }")]
    {
        let advice = only(&advice_on_forks(shell, &Spans::USUAL), "bare-forks");
        assert_eq!(advice.finding.launches.len() as u64, COUNT);
        assert_eq!(advice.saving[0], Nanos(COUNT * fork_duration()), "{shell}");
        assert!(advice.finding.fix.concat().contains(snippet), "{shell}: {:?}", advice.finding.fix);
        assert!(advice.finding.evidence[1].contains("all of them are `$( )`"), "{advice:?}");
        assert!(!advice.finding.fix.concat().contains(" | program"), "{shell}: {:?}", advice.finding.fix);
    }
    let advice = only(&advice_on_forks("/bin/bash", &Spans::USUAL), "bare-forks");
    assert_eq!(advice.finding.whatif, "'--remove=(bash),parent=bash'");
}

#[test]
fn the_evidence_states_that_the_output_of_no_fork_is_read() {
    let advice = only(&advice_on_awaited_forks("/bin/bash", &Spans::USUAL, WAIT4), "bare-forks");
    assert!(advice.finding.evidence[1].contains("none of them is a `$( )`"), "{advice:?}");
    assert!(!advice.finding.fix.concat().contains("x=$("), "{:?}", advice.finding.fix);
}

#[test]
fn workers_are_not_bare_forks() {
    for parent in ["/usr/bin/python3", "/usr/bin/perl", "/usr/sbin/apache2"] {
        assert!(is_silent(&advice_on_forks(parent, &Spans::USUAL), "bare-forks"), "{parent}");
    }
}

#[test]
fn a_subshell_with_enough_work_gets_no_advice() {
    let busy = Spans { run: 30_000_000, ..Spans::USUAL };
    assert!(is_silent(&advice_on_forks("/bin/bash", &busy), "bare-forks"));
}

#[test]
fn a_fork_that_had_to_wait_for_a_cpu_counts_like_the_others() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "script"]);
    for _ in 0..COUNT {
        serial.launch_without_cpu(&Spans::USUAL, None, 5_000_000, LeftCpu::Preempted);
    }
    let advice = only(&advices(&serial.finish()), "bare-forks");
    assert_eq!(advice.finding.launches.len() as u64, COUNT);
}

/// Returns the advice on bare forks at line 3 of a script that also forks subshells, at `line`,
/// that launch a program with real work.
fn advice_on_bare_forks_and_subshells(line: u32) -> Advice {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "script"]);
    let busy = Spans { run: 30_000_000, ..Spans::USUAL };
    for _ in 0..COUNT {
        let bare = serial.launch_waiting(&Spans::USUAL, None, READ);
        let subshell = serial.launch_waiting(&busy, None, READ);
        let begin = serial.builder.row(subshell).first_run.unwrap().0;
        let gcc = serial.builder.launch(subshell, begin, &Spans::USUAL, Some(("/usr/bin/gcc", &["gcc"])));
        for (launch, line) in [(bare, 3), (subshell, line), (gcc, line)] {
            let frame = serial.builder.line(Language::Bash, "/home/user/script", line, "");
            serial.builder.set_call_chain(launch, &[frame]);
        }
    }
    only(&advices(&serial.finish()), "bare-forks")
}

#[test]
fn a_whatif_is_given_only_if_the_line_distinguishes_the_forks() {
    let finding = advice_on_bare_forks_and_subshells(7).finding;
    assert_eq!(finding.launches.len() as u64, COUNT);
    assert_eq!(finding.whatif, "'--remove=(bash),parent=bash,line=script:3'");
    let at_one_line = advice_on_bare_forks_and_subshells(3).finding;
    assert_eq!(at_one_line.whatif, "", "one line requested both: {at_one_line:?}");
}
