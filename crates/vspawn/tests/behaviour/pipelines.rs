//! Pipelines: each command reads the previous one's output, each has a status, and after a failure in the middle no process is left.

use std::io::Write;

use vspawn::{Command, Pipeline, Stage, Stdio};

use crate::support::{Test, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_row_passes_data_along_and_has_each_status", statuses),
        test("a_failure_in_the_middle_kills_and_reaps_those_before", failure),
        test("a_row_ends_when_its_last_has_enough", ends_early),
        test("a_rows_input_may_be_piped", piped_input),
        test("an_empty_row_is_refused", empty),
    ]
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn statuses() {
    let row = Pipeline::new()
        .then(shell("echo b; echo a; exit 3"))
        .then(shell("sort; exit 4"))
        .then(Command::new("cat"));
    let (statuses, output) = row.output().unwrap();
    assert_eq!(output, b"a\nb\n");
    assert_eq!(
        statuses.iter().map(|status| status.code().unwrap()).collect::<Vec<_>>(),
        [3, 4, 0]
    );
}

fn failure() {
    for position in 0..4 {
        let command = |index| {
            if index == position {
                Command::new("/nowhere")
            } else {
                Command::new("/bin/cat")
            }
        };
        let mut first = command(0);
        first.stdin(Stdio::piped());
        let row = (1..4).fold(Pipeline::new().then(first), |row, index| row.then(command(index)));
        let error = row.spawn().unwrap_err();
        assert_eq!((error.stage(), error.raw_os_error()), (Stage::Exec, libc::ENOENT));
        assert_eq!(row.output().unwrap_err(), error);
    }
}

fn ends_early() {
    let row = Pipeline::new()
        .then(shell("exec cat /dev/zero"))
        .then(shell("head -c 10"));
    let (statuses, output) = row.output().unwrap();
    assert_eq!(output, [0; 10]);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&statuses[0]),
        Some(libc::SIGPIPE)
    );
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
