//! The C library's version, which determines how its posix_spawn, system and popen create processes.

use super::{Check, Run};
use crate::{Effect, Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;

pub(super) const CHECK: Check = Check {
    id: "c-library",
    examines: "glibc's version: how posix_spawn, system and popen launch",
    run: Run::Reading(run),
};

const LIBRARY_FILES: [&str; 8] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/usr/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
    "/lib/libc.so.6",
];
/// The text before the version in `GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.`
const BANNER: &[u8] = b"release version 2.";
/// The first minor version of glibc 2 whose posix_spawn uses CLONE_VM and CLONE_VFORK on Linux.
const POSIX_SPAWN_CLONES_SINCE: u32 = 24;
/// The first minor version of glibc 2 whose system and popen use posix_spawn (glibc commits 5fb7fc9635 and 14d0e87d9b).
const SYSTEM_SPAWNS_SINCE: u32 = 29;
/// The number of signals that posix_spawn queries and resets one by one, with two system calls each.
const RESET_SIGNALS: u64 = 61;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some((file, minor)) = version(examination.machine) else {
        return;
    };
    let evidence = format!("{file} is glibc 2.{minor}");
    if minor < SYSTEM_SPAWNS_SINCE {
        findings.add(forking_finding(minor, &evidence));
    }
    if (POSIX_SPAWN_CLONES_SINCE..38).contains(&minor) {
        let call = examination.measured.system_call;
        findings.add(
            Finding::note("this C library's posix_spawn resets signal dispositions one at a time")
                .evidence(format!("{evidence}; since 2.38, one flag of clone3 resets them all"))
                .effect(call.map(|call| Effect::modelled(Nanos(call.0 * 2 * RESET_SIGNALS), "each posix_spawn")))
                .fix("use a newer C library; programs that launch thousands of processes can use a library that calls clone3 itself, such as vspawn")
                .fix_cost("a newer system, or a change to those programs"),
        );
    }
    if (36..42).contains(&minor) {
        findings.add(
            Finding::note("popen in one thread and fork in another can deadlock")
                .evidence(format!("{evidence}; seen with 2.36, fixed in 2.42"))
                .fix("in multi-threaded programs, guard both calls with one lock, or launch by posix_spawn")
                .fix_cost("a change to programs that use both; others are not affected"),
        );
    }
}

fn forking_finding(minor: u32, evidence: &str) -> Finding {
    let (functions, since) = if minor < POSIX_SPAWN_CLONES_SINCE {
        ("posix_spawn, system and popen", "since 2.24, posix_spawn shares")
    } else {
        ("system and popen", "since 2.29, both share")
    };
    Finding::problem(format!("this C library's {functions} fork"))
        .evidence(evidence)
        .evidence(format!("each launch copies the parent's page tables; {since} the parent's memory until the exec"))
        .fix("use a newer C library, or vfork and exec")
        .fix_cost("a newer system")
}

/// Returns the path of the C library.
pub(crate) fn library_file(machine: &Machine) -> Option<&'static str> {
    LIBRARY_FILES.into_iter().find(|file| machine.exists(file))
}

/// Returns the path of the C library, and its minor version.
pub(crate) fn version(machine: &Machine) -> Option<(&'static str, u32)> {
    let file = library_file(machine)?;
    let bytes = machine.bytes(file).ok()?;
    let banner = bytes.windows(BANNER.len()).position(|part| part == BANNER)?;
    let digits = bytes[banner + BANNER.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let digits: String = digits.map(|byte| char::from(*byte)).collect();
    Some((file, digits.parse().ok()?))
}
