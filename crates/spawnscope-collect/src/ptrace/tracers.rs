//! Recognizes programs that trace processes. A process can have only one tracer, so these programs do not work while spawnscope traces
//! them or what they launch. They are recognized by their name, or by what they import: ptrace, or a sanitizer whose leak check traces its own
//! process.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use spawnscope_data::event::Pid;

use crate::callers;

/// Names of tracers that may be linked statically, or that import ptrace only in one of their libraries.
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

/// Names of programs that import ptrace, but do not trace what they launch.
const EXCEPTIONS: [&[u8]; 1] = [b"perf"];

/// Symbols whose import makes a program a tracer.
const IMPORTS: [&str; 3] = ["ptrace", "__asan_init", "__lsan_init"];
/// Symbols that programs built with a sanitizer export.
const EXPORTS: [&str; 2] = ["__asan_init", "__lsan_init"];

/// Whether each executable examined so far is a tracer, by device, inode and time of the last change.
#[derive(Debug, Default)]
pub(super) struct Tracers(HashMap<(u64, u64, i64), bool>);

impl Tracers {
    /// Whether the file that a process has just executed is a tracer.
    pub(super) fn is_tracer(&mut self, process: Pid, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        NAMES.contains(&name) || !EXCEPTIONS.contains(&name) && self.has_tracer_symbols(process).unwrap_or(false)
    }

    fn has_tracer_symbols(&mut self, process: Pid) -> Option<bool> {
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
    fn tracers_are_recognized_by_name_or_import() {
        let own = Pid(std::process::id().cast_signed());
        let mut tracers = Tracers::default();
        assert!(tracers.is_tracer(own, b"/usr/bin/strace"));
        // Make this test's own executable import ptrace.
        std::hint::black_box(libc::ptrace as *const ());
        assert!(tracers.is_tracer(own, b"/opt/anything"));
        assert!(!tracers.is_tracer(own, b"/usr/bin/perf"));
        let mut other = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let sleep = Pid(other.id().cast_signed());
        // When `spawn` returns, the child has executed its program.
        assert!(!tracers.is_tracer(sleep, b"/opt/strace/sleep"));
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
