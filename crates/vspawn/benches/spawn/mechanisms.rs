//! The mechanisms whose figures are in `docs/guide/costs.md`; `spawnscope bench mechanisms`
//! compares more. Each starts the child once and waits for it; `call` is the time inside the
//! starting call.

use std::ffi::{CString, c_char};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use vspawn::{Command, Prepared, Stdio};

use crate::raw::{Raw, wait_pid, wait_pidfd};

/// The data that the mechanisms need, created once.
pub struct Fixture {
    pub child: String,
    child_c: CString,
    pub raw: Raw,
    pub prepared: Prepared,
    prepared_close_others: Prepared,
    prepared_piped: Prepared,
}

impl Fixture {
    pub fn new(child: &str) -> Fixture {
        let prepared = Command::new(child).prepare();
        let close_others = Command::new(child).close_others(true).prepare();
        let piped = Command::new(child).stdout(Stdio::piped()).prepare();
        Fixture {
            child: child.to_owned(),
            child_c: CString::new(child).expect("a path"),
            raw: Raw::new(child),
            prepared: prepared.expect("a valid command"),
            prepared_close_others: close_others.expect("a valid command"),
            prepared_piped: piped.expect("a valid command"),
        }
    }
}

pub type Mechanism = fn(&mut Fixture) -> Duration;

/// All mechanisms, with their names. Each starts one child, waits for its end, and returns the time
/// inside the starting call.
pub const MECHANISMS: &[(&str, Mechanism)] = &[
    ("raw_clone3", raw_clone3),
    ("raw_clone", raw_clone),
    ("vspawn", vspawn_prepared),
    ("vspawn_close_others", vspawn_close_others),
    ("raw_clone_nowait", raw_clone_nowait),
    ("vspawn_nowait", vspawn_nowait),
    ("posix_spawn", posix_spawn),
    ("std_process", std_process),
    ("system", system),
    ("raw_clone_pipe", raw_clone_pipe),
    ("vspawn_pipe", vspawn_pipe),
    ("popen", popen),
];

fn timed<T>(start: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let started = start();
    (started, begin.elapsed())
}

fn raw_clone3(fixture: &mut Fixture) -> Duration {
    let (pidfd, call) = timed(|| fixture.raw.clone3());
    wait_pidfd(pidfd);
    call
}

fn raw_clone(fixture: &mut Fixture) -> Duration {
    let (pid, call) = timed(|| fixture.raw.clone());
    wait_pid(pid);
    call
}

fn vspawn_prepared(fixture: &mut Fixture) -> Duration {
    let (child, call) = timed(|| fixture.prepared.spawn());
    child.expect("a child").wait().expect("its status");
    call
}

fn vspawn_close_others(fixture: &mut Fixture) -> Duration {
    let (child, call) = timed(|| fixture.prepared_close_others.spawn());
    child.expect("a child").wait().expect("its status");
    call
}

fn raw_clone_nowait(fixture: &mut Fixture) -> Duration {
    let (pid, call) = timed(|| fixture.raw.clone_nowait());
    wait_pid(pid);
    call
}

fn vspawn_nowait(fixture: &mut Fixture) -> Duration {
    let (child, call) = timed(|| fixture.prepared.spawn_nowait());
    child.expect("a child").wait().expect("its status");
    call
}

fn std_process(fixture: &mut Fixture) -> Duration {
    let (child, call) = timed(|| std::process::Command::new(&fixture.child).spawn());
    child.expect("a child").wait().expect("its status");
    call
}

fn posix_spawn(fixture: &mut Fixture) -> Duration {
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    let path = fixture.child_c.as_ptr();
    let argv = [path.cast_mut(), std::ptr::null_mut()];
    let mut pid = 0;
    // SAFETY: valid strings and arrays; no actions and no attributes.
    let (result, call) = timed(|| unsafe {
        libc::posix_spawn(&raw mut pid, path, std::ptr::null(), std::ptr::null(), argv.as_ptr(), environ)
    });
    assert_eq!(result, 0, "posix_spawn");
    wait_pid(pid);
    call
}

fn system(fixture: &mut Fixture) -> Duration {
    // SAFETY: a valid string.
    let (status, call) = timed(|| unsafe { libc::system(fixture.child_c.as_ptr()) });
    assert_eq!(status, 0);
    call
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors, which are ours.
    unsafe {
        assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    }
}

fn read_to_end(fd: OwnedFd) {
    let mut buffer = [0u8; 4096];
    let mut file = std::fs::File::from(fd);
    while file.read(&mut buffer).expect("readable") > 0 {}
}

fn raw_clone_pipe(fixture: &mut Fixture) -> Duration {
    let ((reader, pid), call) = timed(|| {
        let (reader, writer) = pipe();
        fixture.raw.set_output(writer.as_raw_fd());
        (reader, fixture.raw.clone())
    });
    fixture.raw.set_output(-1);
    read_to_end(reader);
    wait_pid(pid);
    call
}

fn vspawn_pipe(fixture: &mut Fixture) -> Duration {
    let (child, call) = timed(|| fixture.prepared_piped.spawn());
    let mut child = child.expect("a child");
    read_to_end(child.stdout.take().expect("a pipe").into());
    child.wait().expect("its status");
    call
}

fn popen(fixture: &mut Fixture) -> Duration {
    // SAFETY: valid strings; the stream is read to its end and closed once.
    unsafe {
        let (stream, call) = timed(|| libc::popen(fixture.child_c.as_ptr(), c"r".as_ptr()));
        assert!(!stream.is_null(), "popen");
        let mut buffer = [0u8; 4096];
        while libc::fread(buffer.as_mut_ptr().cast(), 1, buffer.len(), stream) > 0 {}
        libc::pclose(stream);
        call
    }
}
