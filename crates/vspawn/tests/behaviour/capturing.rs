//! Running a command or a pipeline for its output: nothing blocks, nothing is lost, limits of size
//! and time work, and no process is left.

use std::time::{Duration, Instant};

use vspawn::{Command, Pipeline, Stage, Stdio};

use crate::support::{Test, expect_error, kernel, shell, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("output_and_error_are_captured_separately", separate_outputs),
        test("large_input_and_output_do_not_block_each_other", large_data),
        test("it_is_no_error_if_a_child_does_not_read_its_input", unread_input),
        test("with_sigpipe_at_its_default_an_unread_input_does_not_kill_the_parent", sigpipe_default)
            .changes_its_process(),
        test("an_output_above_the_limit_is_truncated_and_its_child_killed", limit),
        test("a_child_is_killed_at_the_timeout", timeout),
        test("a_grandchild_that_keeps_the_pipe_open_does_not_delay_the_timeout", grandchild),
        test("the_timeout_applies_to_a_child_that_has_closed_its_streams", closed_streams),
        test("streams_that_the_command_sets_are_not_captured", streams_set_by_the_command),
        test("if_a_command_of_a_pipeline_fails_to_start_the_earlier_ones_are_killed_and_waited_for", pipeline_fails),
        test("a_pipeline_ends_when_its_last_command_stops_reading", pipeline_ends_early),
    ]
}

fn separate_outputs() {
    let output = shell("echo out; echo err >&2; exit 3").output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(output.status.code(), Some(3));
}

fn large_data() {
    let input: Vec<u8> = (0..5_000_000u32).map(|number| (number % 251) as u8).collect();
    let output = shell("tee /dev/stderr").capture().input(&input).run().unwrap();
    assert!(output.stdout == input && output.stderr == input);
}

fn unread_input() {
    let input = vec![0; 2_000_000];
    let output = shell("echo done; exit 5").capture().input(&input).run().unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"done\n"[..], Some(5)));
    // This child reads a little, and leaves more unread than a pipe holds.
    let output = shell("head -c 10 > /dev/null; exec 0<&-; sleep 0.05").capture().input(&input).run().unwrap();
    assert!(output.status.success());
    assert!(Command::new("/bin/cat").capture().input(b"").run().unwrap().stdout.is_empty());
    assert!(Command::new("/bin/cat").output().unwrap().stdout.is_empty());
}

fn sigpipe_default() {
    kernel::set_handler(libc::SIGPIPE, libc::SIG_DFL);
    (0..20).for_each(|_| unread_input());
}

fn limit() {
    for script in ["cat /dev/zero", "cat /dev/zero >&2"] {
        let begin = Instant::now();
        let captured = shell(script).capture().limit(100_000).run_to_any_end().unwrap();
        let cut = captured.cut.unwrap();
        assert_eq!((cut.stage(), cut.raw_os_error()), (Stage::Limit, libc::EMSGSIZE));
        assert_eq!(captured.stdout.len().max(captured.stderr.len()), 100_000);
        assert!(!captured.status.success());
        assert!(begin.elapsed() < Duration::from_secs(100));
        let error = shell(script).process_group(0).capture().limit(0).run().unwrap_err();
        assert_eq!(error.stage(), Stage::Limit);
    }
    let output = shell("echo 12345").capture().limit(6).run().unwrap();
    assert_eq!(output.stdout, b"12345\n");
}

fn timeout() {
    let error =
        expect_error(shell("exec sleep 1000").capture().timeout(Duration::ZERO).run(), Stage::Timeout, libc::ETIMEDOUT);
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(shell("echo in time").capture().timeout(Duration::MAX).run().is_ok());
}

fn grandchild() {
    // If the child has its own group, the grandchild is killed with it. Otherwise, the test has to
    // kill it.
    let script = "sleep 1000 & echo $!; exec sleep 1000";
    let captured = shell(script).process_group(0).capture().timeout(Duration::from_millis(200)).run_to_any_end();
    assert!(captured.unwrap().timed_out());
    // Longer than a shell takes to start on a busy machine, since its output is kept.
    let captured = shell(script).capture().timeout(Duration::from_secs(2)).run_to_any_end().unwrap();
    assert!(captured.timed_out());
    let orphan: i32 = String::from_utf8(captured.stdout).unwrap().trim().parse().unwrap();
    kernel::kill(orphan, libc::SIGKILL);
}

fn closed_streams() {
    let command = shell("exec >&- 2>&-; exec sleep 1000");
    let captured = command.capture().timeout(Duration::from_millis(200)).run_to_any_end().unwrap();
    assert!(captured.timed_out() && !captured.status.success());
}

fn streams_set_by_the_command() {
    let output = shell("echo out; echo err >&2").stderr(Stdio::null()).output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b""[..]));
}

fn pipeline_fails() {
    for position in 0..4 {
        let mut programs = ["/bin/cat"; 4];
        programs[position] = "/nowhere";
        let mut commands = programs.map(Command::new);
        commands[0].stdin(Stdio::piped());
        let pipeline = commands.into_iter().fold(Pipeline::new(), Pipeline::then);
        let error = expect_error(pipeline.spawn(), Stage::Exec, libc::ENOENT);
        assert_eq!(pipeline.output().unwrap_err(), error);
    }
}

fn pipeline_ends_early() {
    let pipeline = Pipeline::new().then(shell("exec cat /dev/zero")).then(shell("head -c 10"));
    let (statuses, output) = pipeline.output().unwrap();
    assert_eq!(output, [0; 10]);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&statuses[0]), Some(libc::SIGPIPE));
    assert!(statuses[1].success());
}
