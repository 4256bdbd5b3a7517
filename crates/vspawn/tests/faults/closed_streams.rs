//! A parent without some of its standard streams. Pipes and other descriptors then get the numbers
//! 0 to 2, which the child's standard streams need too.

use std::io::{Read, Write};

use tempfile::TempDir;
use vspawn::{Command, Stdio};

use crate::support::needs::Need;
use crate::support::state::open_files;
use crate::support::{Test, helper, kernel, shell, test};

pub fn tests() -> Vec<Test> {
    (0..8u32)
        .map(|closed| {
            let numbers: String = (0..3).filter(|fd| closed & (1 << fd) != 0).map(|fd| format!("{fd}_")).collect();
            let numbers = if closed == 0 { "nothing_" } else { &numbers };
            let name = format!("with_{numbers}closed_each_stream_of_a_child_is_as_requested");
            test(name, move || check(closed)).needs(&[Need::Cc])
        })
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Request {
    Inherit,
    Null,
    Piped,
}

impl Request {
    fn stdio(self) -> Stdio {
        match self {
            Request::Inherit => Stdio::inherit(),
            Request::Null => Stdio::null(),
            Request::Piped => Stdio::piped(),
        }
    }
}

/// Checks all combinations of requests. Each bit of `closed` stands for a stream that the parent
/// has closed.
fn check(closed: u32) {
    let directory = TempDir::new().unwrap();
    // Copies of the streams stay open at higher numbers, to restore the streams for the message of
    // a failed assertion.
    let copies = [0, 1, 2].map(|fd| kernel::copy_above(fd, 50).unwrap());
    (0..3).filter(|fd| closed & (1 << fd) != 0).for_each(kernel::close);
    let outcome = std::panic::catch_unwind(|| {
        let requests = [Request::Inherit, Request::Null, Request::Piped];
        for index in 0..27usize {
            let requested = [requests[index / 9], requests[index / 3 % 3], requests[index % 3]];
            for close_others in [false, true] {
                check_streams(requested, close_others, directory.path());
            }
            check_contents(requested, index % 2 == 0);
        }
    });
    for (fd, copy) in copies.iter().enumerate() {
        if closed & (1 << fd) != 0 {
            std::mem::forget(kernel::copy_to(std::os::fd::AsRawFd::as_raw_fd(copy), fd as i32));
        }
    }
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Checks that the child's three descriptors have the right targets, and that no other descriptor
/// is open in it.
fn check_streams(requested: [Request; 3], close_others: bool, directory: &std::path::Path) {
    let before = open_files();
    let mut command = Command::new(helper::path());
    let [stdin, stdout, stderr] = requested.map(Request::stdio);
    command.stdin(stdin).stdout(stdout).stderr(stderr).close_others(close_others);
    let found = helper::run_and_list_descriptors(&mut command, &directory.join("report"));
    for (fd, request) in (0..).zip(requested) {
        let found = found.get(&fd);
        match request {
            Request::Inherit => assert_eq!(found, before.get(&fd), "{fd} of {requested:?}"),
            Request::Null => assert_eq!(found.unwrap(), "/dev/null", "{fd} of {requested:?}"),
            Request::Piped => assert!(found.unwrap().starts_with("pipe:"), "{fd} of {requested:?}"),
        }
    }
    let others: Vec<_> = found.keys().filter(|fd| **fd > 2 && (close_others || **fd >= 50)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(before, open_files());
}

/// Checks that data written at one end arrives at the other, and nowhere else.
fn check_contents(requested: [Request; 3], close_others: bool) {
    if requested[0] == Request::Inherit || requested[1] != Request::Piped {
        return;
    }
    let mut command = shell("read line; echo \"out $line\"; [ ! -p /dev/fd/2 ] || echo \"err $line\" >&2");
    let [stdin, stdout, stderr] = requested.map(Request::stdio);
    command.stdin(stdin).stdout(stdout).stderr(stderr).close_others(close_others);
    let mut child = command.spawn().unwrap();
    let sent = if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(b"hello\n").unwrap();
        "hello"
    } else {
        ""
    };
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, format!("out {sent}\n"), "{requested:?}");
    if let Some(mut stderr) = child.stderr.take() {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("err {sent}\n"), "{requested:?}");
    }
    child.wait().unwrap();
}
