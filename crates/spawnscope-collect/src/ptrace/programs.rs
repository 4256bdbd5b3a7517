//! Recognizes programs that do not work while they are traced because they gain privilege from their file, and programs that execute
//! another one. `spawnscope_system::ptrace` recognizes programs that trace processes.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spawnscope_data::event::Pid;
use spawnscope_system::procfs;

use crate::scripts::path_as_seen_by;

/// Programs that execute another one, and do little before that exec.
const EXECUTORS: [&[u8]; 12] = [
    b"env", b"nice", b"nohup", b"setsid", b"stdbuf", b"taskset", b"ionice", b"chrt", b"chroot", b"setpriv", b"unshare",
    b"nsenter",
];

/// Whether the program executes another one in its place.
pub(super) fn is_executor(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    EXECUTORS.contains(&name)
}

/// Whether a file gives privilege to the process that executes it: set-user-ID, set-group-ID, or file capabilities.
pub(super) fn gives_privilege(process: Pid, path: &[u8]) -> bool {
    file_gives_privilege(&path_as_seen_by(process, path))
}

/// Whether the program of a process would have given the process privilege if it were not traced.
pub(super) fn has_lost_privilege(process: Pid) -> bool {
    file_gives_privilege(&executable_of(process))
}

/// Whether a process has executed the file that it sees at this path.
pub(super) fn is_executed_at(process: Pid, path: &[u8]) -> bool {
    let files = [path_as_seen_by(process, path), executable_of(process)].map(|path| std::fs::metadata(path).ok());
    let [at_path, executed] = files.map(|file| file.map(|file| (file.dev(), file.ino())));
    at_path.is_some() && at_path == executed
}

fn executable_of(process: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}/exe", process.0))
}

fn file_gives_privilege(path: &Path) -> bool {
    let Ok(file) = std::fs::metadata(path) else {
        return false;
    };
    if !file.is_file() {
        return false;
    }
    let by_group = libc::S_ISGID | libc::S_IXGRP;
    file.mode() & libc::S_ISUID != 0 || file.mode() & by_group == by_group || has_capabilities(path)
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both strings end with NUL. With a size of 0, nothing is written.
    let size = unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    size > 0
}

/// Whether the kernel gives programs the privilege of their file even if they are traced. It does so if the tracer has CAP_SYS_PTRACE.
pub(super) fn traced_programs_keep_privilege() -> bool {
    const CAP_SYS_PTRACE: u64 = 19;
    let effective = procfs::status_field(Pid(std::process::id().cast_signed()), "CapEff:");
    let effective = effective.and_then(|digits| u64::from_str_radix(&digits, 16).ok());
    effective.is_some_and(|capabilities| capabilities & 1 << CAP_SYS_PTRACE != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn set_id_files_give_privilege() {
        let own = Pid(std::process::id().cast_signed());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        std::fs::write(&file, "").unwrap();
        for (mode, gives) in [(0o755, false), (0o4755, true), (0o2755, true), (0o2745, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(gives_privilege(own, file.as_os_str().as_bytes()), gives, "{mode:o}");
        }
        assert!(!gives_privilege(own, b"/no/such/file"));
        assert!(!gives_privilege(own, b"/"), "a directory");
    }

    #[test]
    fn executors_are_recognized_by_their_name() {
        assert!(is_executor(b"/usr/bin/env") && !is_executor(b"/env/sh"));
    }
}
