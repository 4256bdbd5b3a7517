//! Tests datasets in an object store: queries have the same answers as on a dataset in a directory. The store is moto's, which
//! scripts/python-environment.sh installs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// A store on the loopback device. Its server ends when this process closes the server's standard input.
struct Store {
    server: Child,
    port: String,
}

impl Store {
    fn start() -> Store {
        let package = Path::new(PACKAGE);
        let python = package.parent().unwrap().join("target/venv/bin/python");
        let mut server = Command::new(python)
            .arg(package.join("tests/store.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the interpreter of scripts/python-environment.sh");
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let port = port.trim().to_owned();
        assert!(!port.is_empty(), "the store did not start");
        Store { server, port }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        command(&self.port, arguments)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn printed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

fn command(port: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope-fleet"));
    command.args(arguments).env_clear();
    let address = format!("http://127.0.0.1:{port}");
    command.envs([
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT_URL", &address),
    ]);
    command
}

fn base() -> String {
    format!("{PACKAGE}/tests/base")
}

const REMOTE: &str = "s3://builds/all/fleet";

#[test]
fn answers_from_a_store_and_a_directory_are_equal_and_files_are_pushed_once() {
    let (store, base) = (Store::start(), base());
    let pushed = store.printed(&["push", &base, REMOTE]);
    assert!(pushed.starts_with("copied ") && pushed.ends_with("; 0 more were already there\n"), "{pushed}");
    let again = store.printed(&["push", &base, REMOTE]);
    assert!(again.contains("already"), "{again}");
    for question in [&["top"][..], &["top", "--by", "command"], &["machines"], &["advice"], &["trend"]] {
        let [local, remote] = [&*base, REMOTE].map(|dataset| store.printed(&[question, &[dataset, "--json"]].concat()));
        assert_eq!(local, remote, "{question:?}");
    }
    let query = "SELECT job, date, COUNT(*) FROM launches GROUP BY 1, 2 ORDER BY 1, 2";
    let [local, remote] = [&*base, REMOTE].map(|dataset| store.printed(&["sql", dataset, query, "--json"]));
    assert_eq!(local, remote);
}

#[test]
fn concurrent_pushes_make_one_dataset() {
    let (store, base) = (Store::start(), base());
    let pushing: Vec<Child> =
        (0..3).map(|_| store.command(&["push", &base, REMOTE]).stdout(Stdio::null()).spawn().unwrap()).collect();
    for mut child in pushing {
        assert!(child.wait().unwrap().success());
    }
    // Push back into a directory that does not exist yet.
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy");
    let copy = copy.to_str().unwrap();
    store.printed(&["push", REMOTE, copy]);
    let [original, pushed, copied] =
        [&*base, REMOTE, copy].map(|dataset| store.printed(&["sql", dataset, "SELECT COUNT(*) FROM execs", "--json"]));
    assert_eq!([&pushed, &copied], [&original; 2]);
    let first = fs::read_dir(format!("{copy}/runs")).unwrap().next();
    assert!(first.unwrap().unwrap().file_name().to_str().unwrap().starts_with("date="));
}

#[test]
fn errors_of_a_store_name_the_dataset() {
    let store = Store::start();
    expect_failure(&store.run(&["top", "s3://missing/fleet"]), "s3://missing/fleet");
    expect_failure(&store.run(&["top", "s3://builds/nothing"]), "no recording yet");
    expect_failure(&store.run(&["top", "ftp://builds/nothing"]), "s3://BUCKET/PREFIX");
    let port = store.port.clone();
    drop(store);
    expect_failure(&command(&port, &["push", &base(), REMOTE]).output().unwrap(), REMOTE);
}

fn expect_failure(output: &Output, part: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains(part), "{message}");
}
