//! Pipelines: each command reads the previous one's output, each status is returned, and no process is left if a command fails to start.

use std::io::Write;

use vspawn::{Command, Pipeline, Stage, Stdio};

use crate::support::{Test, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_pipeline_passes_data_on_and_returns_each_status", statuses),
        test("if_a_command_fails_to_start_the_earlier_ones_are_killed_and_waited_for", failure),
        test("a_pipeline_ends_when_its_last_command_stops_reading", ends_early),
        test("a_pipelines_input_may_be_piped", piped_input),
        test("an_empty_pipeline_is_refused", empty),
    ]
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn statuses() {
    let pipeline =
        Pipeline::new().then(shell("echo b; echo a; exit 3")).then(shell("sort; exit 4")).then(Command::new("cat"));
    let (statuses, output) = pipeline.output().unwrap();
    assert_eq!(output, b"a\nb\n");
    assert_eq!(statuses.iter().map(|status| status.code().unwrap()).collect::<Vec<_>>(), [3, 4, 0]);
}

fn failure() {
    for position in 0..4 {
        let mut programs = ["/bin/cat"; 4];
        programs[position] = "/nowhere";
        let mut commands = programs.map(Command::new);
        commands[0].stdin(Stdio::piped());
        let pipeline = commands.into_iter().fold(Pipeline::new(), Pipeline::then);
        let error = pipeline.spawn().unwrap_err();
        assert_eq!((error.stage(), error.raw_os_error()), (Stage::Exec, libc::ENOENT));
        assert_eq!(pipeline.output().unwrap_err(), error);
    }
}

fn ends_early() {
    let pipeline = Pipeline::new().then(shell("exec cat /dev/zero")).then(shell("head -c 10"));
    let (statuses, output) = pipeline.output().unwrap();
    assert_eq!(output, [0; 10]);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&statuses[0]), Some(libc::SIGPIPE));
    assert!(statuses[1].success());
}

fn piped_input() {
    let mut first = Command::new("cat");
    first.stdin(Stdio::piped());
    let mut last = Command::new("cat");
    last.stdout(Stdio::piped());
    let mut running = Pipeline::new().then(first).then(last).spawn().unwrap();
    running.take_stdin().unwrap().write_all(b"through both").unwrap();
    let mut output = String::new();
    std::io::Read::read_to_string(&mut running.take_stdout().unwrap(), &mut output).unwrap();
    assert_eq!(output, "through both");
    assert!(running.wait().unwrap().iter().all(std::process::ExitStatus::success));
}

fn empty() {
    let error = Pipeline::new().spawn().unwrap_err();
    assert_eq!((error.stage(), error.raw_os_error()), (Stage::Prepare, libc::EINVAL));
}
