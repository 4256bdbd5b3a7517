//! Waits on tokio's reactor, and their cancellation.

use std::time::Duration;

use vspawn::{AsyncChild, Command, Stage, Stdio};

use crate::support::{Test, expect_error, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("many_async_waits_run_concurrently", || run(many())),
        test("a_child_can_be_waited_for_after_a_cancelled_async_wait", || run(cancelled())),
        test("an_async_wait_reports_a_failed_start", || run(failed_start())),
        test("large_outputs_are_read_at_the_same_time_asynchronously", || run(large_outputs())),
        test("a_child_is_killed_and_waited_for_when_its_future_is_dropped", || run(dropped())),
        test("a_child_outlives_a_handle_without_kill_on_drop", || run(kept())),
    ]
}

fn run(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future);
}

async fn many() {
    tokio::join!(expect_exit(1), expect_exit(5), expect_exit(3), expect_exit(4));
}

async fn expect_exit(code: i32) {
    let mut command = Command::new("/bin/sh");
    let mut child = command.args(["-c", &format!("sleep 0.0{code}; exit {code}")]).spawn_nowait().unwrap();
    for _ in 0..2 {
        assert_eq!(child.wait_async().await.unwrap().code(), Some(code));
    }
}

async fn cancelled() {
    let mut child = Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    for _ in 0..20 {
        let waited = tokio::time::timeout(Duration::from_millis(2), child.wait_async()).await;
        assert!(waited.is_err());
    }
    assert_eq!(child.try_wait().unwrap(), None);
    child.kill().unwrap();
    assert!(!child.wait_async().await.unwrap().success());
}

async fn failed_start() {
    let mut child = Command::new("/nowhere").spawn_nowait().unwrap();
    expect_error(child.wait_async().await, Stage::Exec, libc::ENOENT);
}

async fn large_outputs() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "head -c 300000 /dev/zero >&2; head -c 200000 /dev/zero; head -c 300000 /dev/zero >&2"]);
    let output = command.output_async().await.unwrap();
    assert_eq!((output.stdout.len(), output.stderr.len()), (200_000, 600_000));
    assert!(output.status.success());
}

async fn dropped() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo $$ >&7; exec sleep 1000"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.fd(7, writer);
    assert!(tokio::time::timeout(Duration::from_millis(200), command.output_async()).await.is_err());
    drop(command);
    let mut pid = String::new();
    std::io::Read::read_to_string(&mut reader, &mut pid).unwrap();
    for _ in 0..500 {
        if !std::fs::exists(format!("/proc/{}", pid.trim())).unwrap() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} is still there");
}

async fn kept() {
    let child = Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id() as i32;
    drop(AsyncChild::new(child).unwrap());
    // SAFETY: the pid of a child that was not waited for; a NULL status.
    unsafe {
        assert_eq!(libc::kill(pid, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
    }
}
