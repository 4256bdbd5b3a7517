//! Which processes have a seccomp filter that the recorder does not have. Such a filter may kill a
//! process for a system call that its program never makes, and instructions of ours make some. So
//! they must not run where a filter is, or may be set. A filter holds for all descendants, too.
//!
//! Reading /proc/PID/status takes tens of microseconds. So it is read only where a filter may be
//! new: after a child has asked for no new privileges, which an ordinary user must do first; when a
//! program executes another one in its place; and at launches of programs that are neither a shell
//! nor make.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use spawnscope_data::event::Pid;
use spawnscope_system::procfs;

/// The mode, and the number of filters, which kernels before Linux 5.9 do not show.
type Filters = [Option<String>; 2];

/// Whether a filter may be set by this call, or after it.
pub(super) fn may_follow(number: libc::c_long, arguments: &[u64; 6]) -> bool {
    // The upper half of the register does not belong to the option.
    let is_option = |option: libc::c_int| arguments[0] as libc::c_int == option;
    number == libc::SYS_seccomp
        || number == libc::SYS_prctl && (is_option(libc::PR_SET_NO_NEW_PRIVS) || is_option(libc::PR_SET_SECCOMP))
}

/// Whether a process has other filters than the recorder.
pub(super) fn has_own(process: Pid) -> bool {
    filters_of(process) != *RECORDERS
}

/// Whether the thread with this status (/proc/PID/task/TID/status) has other filters than the
/// recorder.
pub(super) fn are_own_in(status: &File) -> bool {
    let mut bytes = [0; 4096];
    let length = status.read_at(&mut bytes, 0).ok();
    length.and_then(|length| filters_in(bytes.get(..length)?)) != *RECORDERS
}

static RECORDERS: LazyLock<Option<Filters>> = LazyLock::new(|| filters_of(Pid(std::process::id().cast_signed())));

fn filters_of(process: Pid) -> Option<Filters> {
    filters_in(&procfs::contents(process, "status").ok()?)
}

fn filters_in(status: &[u8]) -> Option<Filters> {
    let status = String::from_utf8_lossy(status);
    Some(["Seccomp", "Seccomp_filters"].map(|name| procfs::field(&status, name).map(str::to_owned)))
}
