//! A command that ptrace records behaves as it does untraced: signals, stops, threads, tracers
//! among its processes, and the end of a killed recorder.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::support::recording::{launches, read, report};
use crate::support::run::{Record, Running, await_some, run};
use crate::support::workloads::build_go;
use crate::support::{apply, live_test};

#[apply(live_test)]
fn signals_reach_handlers_and_have_their_default_effects() {
    let script =
        "trap 'echo caught' USR1; kill -USR1 $$; trap '' TERM; kill -TERM $$; kill -URG $$; kill -TRAP $$; exit 1";
    let record = Record::new().flags(&["-q"]);
    let finished = record.run(["sh", "-c", script]).expect_signal(libc::SIGTRAP);
    assert_eq!(finished.output(), "caught\n");
    assert_eq!(launches(&record.file()).root().exit_signal(), Some("SIGTRAP"));
}

#[apply(live_test)]
fn a_stopped_process_stays_stopped_until_it_is_continued() {
    let script = "sh -c 'kill -STOP $$; echo continued' & child=$!; sleep 0.3; \
                  grep -c '^State:.*stop' /proc/$child/status; kill -CONT $child; wait $child; exit $?";
    let finished = Record::new().flags(&["-q"]).run(["sh", "-c", script]).expect_code(0);
    assert_eq!(finished.output(), "1\ncontinued\n");
}

#[apply(live_test)]
#[needs(Python)]
fn concurrent_launches_of_many_threads_are_recorded() {
    let script = "import os, subprocess, threading\n\
                  work = lambda: subprocess.run(['/bin/true'], check=True)\n\
                  threads = [threading.Thread(target=work) for _ in range(100)]\n\
                  [thread.start() for thread in threads]; [thread.join() for thread in threads]\n";
    let record = Record::new().flags(&["-q"]).recorded(["/usr/bin/python3", "-S", "-c", script]);
    let all = launches(&record.file());
    assert_eq!(all.all(|launch| launch.command() == "true").len(), 100);
}

/// A stop is a voluntary context switch, and an exec does not reset their number. glibc makes some
/// 130 system calls before the exec, and Python makes some 80.
#[apply(live_test)]
#[needs(Python)]
fn a_spawned_process_has_few_stops_before_its_exec() {
    let script = "import os, subprocess\n\
                  argv = ['/usr/bin/grep', '^voluntary', '/proc/self/status']\n\
                  for _ in range(3):\n\
                  \x20   os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)\n\
                  for _ in range(3):\n\
                  \x20   subprocess.run(argv)\n";
    let switches = switches_of(&["/usr/bin/python3", "-S", "-c", script]);
    // The first child of subprocess shows which calls precede the exec.
    assert!(switches.len() == 6 && [0, 1, 2, 4, 5].iter().all(|at| switches[*at] < 30), "{switches:?}");
}

/// How often each launched grep was switched off its CPU because it stopped or waited. Each
/// searches its own status for that.
fn switches_of(command: &[&str]) -> Vec<u32> {
    let finished = Record::new().flags(&["-q"]).run(command).expect_code(0);
    let output = finished.output();
    let switches = output.lines().map(|line| line.split_whitespace().last().and_then(|number| number.parse().ok()));
    switches.map(|number| number.expect("a number")).collect()
}

/// The first launch shows how the program executes others, so that the next ones stop only there.
fn assert_few_stops(command: &[&str], most: u32) {
    let switches = switches_of(command);
    assert!(switches.len() == 4 && switches[1..].iter().all(|switches| *switches < most), "{switches:?}");
}

/// bash makes some 10 calls in a fork before its exec.
#[apply(live_test)]
fn a_forked_process_has_few_stops_before_its_exec() {
    let script =
        "for i in 1 2 3; do grep ^voluntary /proc/self/status; done; x=$(grep ^voluntary /proc/self/status); echo $x";
    assert_few_stops(&["bash", "-c", script], 12);
}

/// Before its exec, the call site of such a process is determined, too.
#[apply(live_test)]
fn a_process_of_a_pipeline_has_few_stops_before_its_exec() {
    let script = "for i in 1 2 3 4; do grep ^voluntary /proc/self/status | cat; done";
    assert_few_stops(&["dash", "-c", script], 12);
}

/// env and nice make some 80 calls each before they execute the next program. Two stops at each
/// would be more than 300.
#[apply(live_test)]
fn a_program_that_executes_another_one_has_few_stops() {
    let script = "for i in 1 2 3 4; do env nice grep ^voluntary /proc/self/status; done";
    assert_few_stops(&["dash", "-c", script], 80);
}

/// Most directories of PATH lack the program: one stop each.
#[apply(live_test)]
#[needs(Python)]
fn a_search_in_path_has_few_stops() {
    let script = "import os\n\
                  os.environ['PATH'] = ':'.join(f'/missing/{n}' for n in range(10)) + ':/usr/bin'\n\
                  for _ in range(4):\n\
                  \x20   argv = ['grep', '^voluntary', '/proc/self/status']\n\
                  \x20   os.waitpid(os.posix_spawnp(argv[0], argv, os.environ), 0)\n";
    assert_few_stops(&["/usr/bin/python3", "-S", "-c", script], 20);
}

/// Node blocks only some signals, and has several threads. A child makes some 40 calls, and waits
/// for memory that it shares.
#[apply(live_test)]
#[needs(Node)]
fn a_process_of_node_has_few_stops_before_its_exec() {
    let script = "for (let i = 0; i < 4; i++) require('child_process').execFileSync(\
                  'grep', ['^voluntary', '/proc/self/status'], {stdio: 'inherit'});";
    assert_few_stops(&["/usr/bin/node", "-e", script], 40);
}

/// In Go, one function makes all system calls. A child makes some 20, in the memory of its creator,
/// which has several threads.
#[apply(live_test)]
#[needs(Go)]
fn a_process_of_go_has_few_stops_before_its_exec() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = "package main\nimport (\"os\"; \"os/exec\")\nfunc main() {\n\tfor i := 0; i < 4; i++ {\n\
                  \t\tcommand := exec.Command(\"grep\", \"^voluntary\", \"/proc/self/status\")\n\
                  \t\tcommand.Stdout = os.Stdout\n\t\tcommand.Run()\n\t}\n}\n";
    assert_few_stops(&[&build_go(directory.path(), source)], 20);
}

/// Python code that launches programs by fork in several ways. Signals have handlers, or are
/// blocked before or after the fork, and an exec fails or takes a descriptor. A handler that runs
/// prints.
const FORKS: &str = "\
import os, signal, time\n\
argv = ['grep', '-E', '^(Sig[PBIC]|Shd)', '/proc/self/status']\n\
def launch(path, how, pause=0):\n\
\x20   pid = os.fork()\n\
\x20   if pid == 0:\n\
\x20       signal.signal(signal.SIGURG, lambda *_: print('caught', flush=True))\n\
\x20       time.sleep(pause)\n\
\x20       signal.pthread_sigmask(how, [signal.SIGURG])\n\
\x20       try: os.execve(path, argv, os.environ)\n\
\x20       except OSError: print('failed', flush=True)\n\
\x20       os._exit(3)\n\
\x20   print(os.waitpid(pid, 0)[1], flush=True)\n";

#[apply(live_test)]
#[needs(Python)]
fn a_forked_process_has_the_same_signals() {
    let calls = "for path in '/usr/bin/grep', '/usr/bin/grep', '/nonexistent', '/usr/bin/grep':\n\
                 \x20   launch(path, signal.SIG_UNBLOCK)\n\
                 for how in signal.SIG_BLOCK, signal.SIG_UNBLOCK:\n\
                 \x20   launch('/usr/bin/grep', how)\n\
                 \x20   launch('/nonexistent', how)\n\
                 signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])\n\
                 launch('/usr/bin/grep', signal.SIG_BLOCK)\n\
                 launch(os.open('/usr/bin/grep', os.O_RDONLY), signal.SIG_UNBLOCK)\n\
                 launch('/usr/bin/grep', signal.SIG_UNBLOCK)\n";
    let output = assert_same_signals(&format!("{FORKS}{calls}"));
    assert!(!output.contains("caught"), "{output}");
}

/// Compares what a Python program that shows signals prints without and with the recorder. Returns
/// that.
#[track_caller]
fn assert_same_signals(script: &str) -> String {
    let words = ["/usr/bin/python3", "-S", "-c", script];
    let plain = run(std::process::Command::new(words[0]).args(&words[1..])).output();
    let recorded = Record::new().flags(&["-q"]).run(words).expect_code(0);
    assert!(plain.contains("SigPnd"), "{plain}");
    assert_eq!(recorded.output(), plain);
    plain
}

/// A fork that is released before its exec executes the instructions of its program.
#[apply(live_test)]
#[needs(Python)]
fn a_forked_process_that_is_released_gets_no_signal() {
    let calls = "launch('/usr/bin/true', signal.SIG_UNBLOCK)\nlaunch('/nonexistent', signal.SIG_UNBLOCK, 1)\n";
    let record = Record::new().flags(&["-q", "--duration", "0.5"]);
    let script = format!("{FORKS}{calls}");
    let finished = record.run(["/usr/bin/python3", "-S", "-c", &script]).expect_code(0);
    assert_eq!(finished.output(), "0\nfailed\n768\n");
    assert_eq!(report(&record.file())["ended"], "duration");
}

/// All signals stay blocked, so the tracer's own signal must not stay pending.
#[apply(live_test)]
#[needs(Python)]
fn a_process_spawned_with_blocked_signals_has_the_same_signals() {
    let script = "import os, signal\n\
                  signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n\
                  argv = ['/usr/bin/grep', '-E', '^(Sig[PBIC]|Shd)', '/proc/self/status']\n\
                  for _ in range(3):\n\
                  \x20   os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)\n\
                  for path in 'grep', '/nonexistent':\n\
                  \x20   os.spawnvp(os.P_WAIT, path, ['grep', *argv[1:]])\n";
    assert_same_signals(script);
}

#[apply(live_test)]
#[needs(Strace)]
fn a_tracer_among_the_launches_works_and_is_reported() {
    let script = "strace -f -o /dev/null sh -c 'exit 5'; exit $?";
    let finished = Record::new().run(["sh", "-c", script]).expect_code(5);
    finished.expect_errors(["traces processes itself"]);
}

/// The recorder is killed at 17 different moments, at which the command does different things. It
/// launches all the time, and often a child is in its loader. dash launches by vfork, bash by fork.
#[apply(live_test)]
fn a_killed_recorder_leaves_the_command_running_and_the_recording_readable() {
    for round in 0..17 {
        let record = Record::new().flags(&["-q"]);
        let marks = ["begun", "failed", "done"].map(|mark| record.directory().join(mark));
        let [begun, failed, done] = marks.each_ref().map(|mark| mark.display().to_string());
        let script = format!(
            "echo > {begun}; i=0; while [ $i -lt 60 ]; do /bin/true || echo $? >> {failed}; i=$((i+1)); done; echo > {done}"
        );
        let running = Running::start(&mut record.command([["sh", "bash"][round as usize % 2], "-c", &script]));
        await_some("the command's start", || marks[0].exists().then_some(()));
        sleep(Duration::from_micros(5_000 * round));
        kill(running.pid(), Signal::SIGKILL).expect("kill the recorder");
        running.finish();
        await_some("the command's end", || marks[2].exists().then_some(()));
        assert_eq!(fs::read_to_string(&marks[1]).unwrap_or_default(), "", "round {round}");
        read(&["report"], &record.file());
    }
}

#[apply(live_test)]
fn after_the_duration_the_command_continues_untraced() {
    let record = Record::new().flags(&["-q", "--duration", "0.3"]);
    let script = "sleep 1; grep -c '^TracerPid:.0$' /proc/self/status; exit 3";
    let finished = record.run(["sh", "-c", script]).expect_code(3);
    assert_eq!(finished.output(), "1\n");
    assert_eq!(report(&record.file())["ended"], "duration");
}
