//! Pipelines: each command reads the previous one's output, each status is returned, and no process is left if a command fails to start.

use vspawn::{Command, Pipeline, Stage, Stdio};

use crate::support::{Test, shell, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_pipeline_passes_data_on_and_returns_each_status", statuses),
        test("if_a_command_fails_to_start_the_earlier_ones_are_killed_and_waited_for", failure),
        test("a_pipeline_ends_when_its_last_command_stops_reading", ends_early),
    ]
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
