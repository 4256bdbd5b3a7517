//! Waits on tokio's reactor, and their cancellation.

use std::time::Duration;

use vspawn::{Command, Stage, Stdio};

use crate::support::{Test, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("many_async_waits_run_concurrently", || run(many())),
        test("a_child_can_be_waited_for_after_a_cancelled_async_wait", || run(cancelled())),
        test("an_async_wait_reports_a_failed_start", || run(failed_start())),
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
    let error = child.wait_async().await.unwrap_err();
    assert_eq!((error.stage(), error.raw_os_error()), (Stage::Exec, libc::ENOENT));
}
