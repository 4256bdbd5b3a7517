//! Programs that trace processes. A process has one tracer, so these do not work while they and what they launch are traced. A program is
//! recognized by its name, or by what it imports: ptrace, or a sanitizer whose search for leaks traces its own process.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use spawnscope_data::event::Pid;

use crate::callers;

/// Those that may be linked statically, or import ptrace in a library of their own.
const NAMES: [&[u8]; 10] = [
    b"strace",
    b"ltrace",
    b"gdb",
    b"gdbserver",
    b"lldb-server",
    b"rr",
    b"perf-trace",
    b"uftrace",
    b"tracexec",
    b"spawnscope",
];

/// Those that import ptrace, but do not trace what they launch.
const OTHERS: [&[u8]; 1] = [b"perf"];

const IMPORTS: [&str; 3] = ["ptrace", "__asan_init", "__lsan_init"];
/// Symbols that programs built with a sanitizer export.
const EXPORTS: [&str; 2] = ["__asan_init", "__lsan_init"];

/// The executables seen so far, by device, inode and time of their last change.
#[derive(Debug, Default)]
pub(super) struct Tracers(HashMap<(u64, u64, i64), bool>);

impl Tracers {
    /// Whether a process that has just executed this file traces others.
    pub(super) fn include(&mut self, process: Pid, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        NAMES.contains(&name) || !OTHERS.contains(&name) && self.imports(process).unwrap_or(false)
    }

    fn imports(&mut self, process: Pid) -> Option<bool> {
        let path = format!("/proc/{}/exe", process.0);
        let found = fs::metadata(&path).ok()?;
        let known = self.0.entry((found.dev(), found.ino(), found.ctime()));
        Some(*known.or_insert_with(|| {
            File::open(path).is_ok_and(|file| callers::has_dynamic_symbol(&file, &IMPORTS, &EXPORTS))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracers_are_known_by_name_or_import() {
        let own = Pid(std::process::id().cast_signed());
        let mut tracers = Tracers::default();
        assert!(tracers.include(own, b"/usr/bin/strace"));
        // So that this test's own program imports it.
        std::hint::black_box(libc::ptrace as *const ());
        assert!(tracers.include(own, b"/opt/anything"));
        assert!(!tracers.include(own, b"/usr/bin/perf"));
        let mut other = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let sleep = Pid(other.id().cast_signed());
        // It has executed its program when `spawn` returns.
        assert!(!tracers.include(sleep, b"/opt/strace/sleep"));
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
