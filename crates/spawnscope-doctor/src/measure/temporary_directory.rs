//! A directory for test programs, on a file system that allows programs to be executed. A separate
//! process, the keeper, creates the directory, and removes it when the doctor finishes or dies. The
//! doctor itself never accesses it, because file systems, and scanners that watch them, can hang.

use std::ffi::{CStr, CString, c_int};
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::c_path;
use super::launches::Image;
use crate::machine::{Machine, Mount, containing_mount, has_room};
use spawnscope_system::launch_timing::isolated_child::IsolatedChild;
use spawnscope_system::launch_timing::keeper::{ignore_requests_to_end, remove_when_closed};

/// The time limit for creating the temporary directory in one of the candidates.
pub(super) const DIRECTORY_TIMEOUT: Duration = Duration::from_millis(250);
pub(super) const TOTAL_TIMEOUT: Duration = Duration::from_millis(400);
/// How long the doctor waits for the removal, before it leaves the keeper to finish it alone.
pub(super) const REMOVAL_TIMEOUT: Duration = Duration::from_millis(100);
pub(super) const PROGRAMS: usize = 16;
/// The free space that is needed: the size of all programs together, with a margin.
const NEEDED_BYTES: u64 = 1 << 20;
/// How many times the keeper tries to remove the directory. Processes that write to it die with the
/// doctor, but on a busy machine only seconds later.
const MAX_REMOVALS: usize = 2000;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(5);

pub(super) struct TemporaryDirectory {
    path: PathBuf,
    /// The keeper, and our end of the connection, which it watches: it removes the directory when
    /// we close our end. `None` after that.
    keeper: Option<(IsolatedChild, UnixStream)>,
}

impl TemporaryDirectory {
    pub(super) fn create<'p>(mut directories: impl Iterator<Item = &'p Path>) -> Option<TemporaryDirectory> {
        let until = Instant::now() + TOTAL_TIMEOUT;
        directories.find_map(|directory| {
            let left = until.saturating_duration_since(Instant::now());
            // A read timeout of zero would mean no timeout.
            (!left.is_zero()).then(|| TemporaryDirectory::create_in(directory, left.min(DIRECTORY_TIMEOUT)))?
        })
    }

    fn create_in(directory: &Path, limit: Duration) -> Option<TemporaryDirectory> {
        let random = RandomState::new().hash_one(std::process::id());
        let path = directory.join(format!("spawnscope-{random:016x}"));
        let name = c_path(&path)?;
        let programs = (0..PROGRAMS).map(|number| c_path(&program(&path, number)));
        let programs = programs.collect::<Option<Vec<CString>>>()?;
        let (mut doctor_end, keeper_end) = UnixStream::pair().ok()?;
        let doctor_fd = doctor_end.as_raw_fd();
        let child = IsolatedChild::fork(Some(keeper_end.as_fd()), || run_keeper(&name, &programs, doctor_fd)).ok()?;
        drop(keeper_end);
        doctor_end.set_read_timeout(Some(limit)).ok()?;
        let is_created = doctor_end.read_exact(&mut [0]).is_ok();
        let mut created = TemporaryDirectory { path, keeper: Some((child, doctor_end)) };
        if !is_created {
            // If the keeper creates the directory later, it notices the closed connection and
            // removes the directory.
            if let Some((keeper, _)) = created.keeper.take() {
                keeper.leave_running();
            }
            return None;
        }
        Some(created)
    }

    /// Returns one of the directory's programs; its file need not exist yet. It runs with the
    /// environment of `machine`, or with an empty one.
    pub(super) fn program(&self, number: usize, machine: Option<&Machine>) -> Option<Image> {
        let path = program(&self.path, number);
        match machine {
            Some(machine) => Image::new(&path, machine.environment()),
            None => Image::new(&path, std::iter::empty()),
        }
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Some((keeper, connection)) = self.keeper.take() {
            drop(connection);
            if !keeper.has_ended_by(Instant::now() + REMOVAL_TIMEOUT) {
                keeper.leave_running();
            }
        }
    }
}

/// Returns the existing directories in which a directory for test programs may be created: those on
/// local file systems, in order of preference, and those that another machine or process serves.
pub(super) fn usable_directories(machine: &Machine) -> [Vec<PathBuf>; 2] {
    let mounts = machine.mounts();
    let mut usable = [Vec::new(), Vec::new()];
    for directory in candidates(machine).into_iter().filter_map(|directory| machine.canonical(directory)) {
        let mount = containing_mount(&mounts, &directory);
        if mount.is_some_and(|mount| mount.has_option("noexec")) {
            continue;
        }
        let is_remote = mount.and_then(Mount::remote_description).is_some();
        let (group, directory) = (&mut usable[usize::from(is_remote)], machine.path(directory));
        if !group.contains(&directory) {
            group.push(directory);
        }
    }
    usable
}

pub(super) fn candidates(machine: &Machine) -> [PathBuf; 4] {
    [machine.temporary_directory(), "/var/tmp".into(), "/dev/shm".into(), "/tmp".into()]
}

fn program(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("program-{number}"))
}

/// Does the keeper's work, with system calls only. The keeper must close its copy of the doctor's
/// end, or it would wait for itself. It starts a session of its own, so that signals of the
/// terminal or to the doctor's process group do not reach it.
fn run_keeper(directory: &CStr, programs: &[CString], doctor_fd: c_int) {
    ignore_requests_to_end();
    // SAFETY: plain system calls; the strings end with NUL, and the sent byte is static. Standard
    // input is the keeper's end of the connection.
    let connection = unsafe {
        libc::close(doctor_fd);
        libc::setsid();
        if libc::mkdir(directory.as_ptr(), 0o700) != 0 {
            return;
        }
        if !has_room(directory, NEEDED_BYTES, PROGRAMS as u64) {
            libc::rmdir(directory.as_ptr());
            return;
        }
        libc::send(0, c"+".as_ptr().cast(), 1, libc::MSG_NOSIGNAL);
        BorrowedFd::borrow_raw(0)
    };
    remove_when_closed(connection, MAX_REMOVALS, REMOVAL_INTERVAL, || {
        // SAFETY: plain system calls; the strings end with NUL.
        unsafe {
            for program in programs {
                libc::unlink(program.as_ptr());
            }
            libc::rmdir(directory.as_ptr()) == 0
        }
    });
}
