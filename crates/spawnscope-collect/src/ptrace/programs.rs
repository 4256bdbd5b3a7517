//! Recognizes programs that do not work while they are traced because they gain privilege from
//! their file, and programs that execute another one. `spawnscope_system::ptrace` recognizes
//! programs that trace processes.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::thread::{CapabilitySet, capabilities};
use spawnscope_data::event::Pid;
use spawnscope_system::files;
use spawnscope_system::ptrace::{ExecFacts, FileVersion};

use crate::scripts::path_as_seen_by;

/// Programs that execute another one, and do little before that exec.
const EXECUTORS: [&[u8]; 12] = [
    b"env", b"nice", b"nohup", b"setsid", b"stdbuf", b"taskset", b"ionice", b"chrt", b"chroot", b"setpriv", b"unshare",
    b"nsenter",
];

pub(super) fn is_executor(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    EXECUTORS.contains(&name)
}

/// Whether files give privilege to the process that executes them: set-user-ID, set-group-ID, or
/// file capabilities.
#[derive(Debug, Default)]
pub(super) struct Privileges(HashMap<FileVersion, bool>);

impl Privileges {
    pub(super) fn are_given(&mut self, process: Pid, path: &[u8], facts: Option<&ExecFacts>) -> bool {
        let examine = || files::gives_privilege(&path_as_seen_by(process, path));
        facts.map_or_else(examine, |facts| *self.0.entry(facts.file).or_insert_with(examine))
    }
}

/// Whether the program of a process would have given the process privilege if it were not traced.
pub(super) fn has_lost_privilege(process: Pid) -> bool {
    files::gives_privilege(&executable_of(process))
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

/// Whether the kernel gives programs the privilege of their file even if they are traced. It does
/// so if the tracer has CAP_SYS_PTRACE.
pub(super) fn traced_programs_keep_privilege() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_PTRACE))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
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
            let path = file.as_os_str().as_bytes();
            assert_eq!(Privileges::default().are_given(own, path, None), gives, "{mode:o}");
        }
        assert!(!Privileges::default().are_given(own, b"/no/such/file", None));
        assert!(!Privileges::default().are_given(own, b"/", None), "a directory");
    }

    #[test]
    fn executors_are_recognized_by_their_name() {
        assert!(is_executor(b"/usr/bin/env") && !is_executor(b"/env/sh"));
    }
}
