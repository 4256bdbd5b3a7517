//! Checks whether the limits on open files and on control group memory are sufficient for the
//! recorder, and plans how much memory it uses. A shortage is reported before the command starts:
//! if the kernel killed the recorder, there would be no recording, and the caller would not get the
//! command's exit status.

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::args::RecordArguments;
use crate::lab::machine::group_limit;
use crate::record::Memory;
use crate::units;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Number of file descriptors that recording needs. On 2 CPUs, a complete recording needed at least
/// 58, and 60 with `--stacks` (`ulimit -n N; spawnscope record -- true`, Linux 6.18). A few more
/// files are opened briefly.
const DESCRIPTORS: u64 = 96;
/// Number of additional descriptors per CPU with `--sample`. On that machine, recording with
/// `--sample` needed 68 in total, and 70 with `--stacks` as well.
const DESCRIPTORS_PER_CPU: u64 = 4;

const DEFAULT_BUFFER_KIB: u32 = 16 * 1024;
const MIN_BUFFER_KIB: u32 = 1024;

/// Memory for everything but buffers. In a control group without other processes, `record -- true`
/// was not killed with these limits and buffers: 12 MiB and 256 KiB, 16 MiB and 4 MiB, 32 MiB and
/// 16 MiB (`record -q --buffer KIB -- true`, release build, control groups of version 1). The
/// kernel charges its buffer to the group.
const BASE_BYTES: u64 = 14 * MIB;
/// Additional memory with `--stacks` or `--sample`, for tables of programs and libraries.
const STACKS_BYTES: u64 = 24 * MIB;
/// Additional memory with `--sample`, for tables of threads.
const SAMPLES_BYTES: u64 = 20 * MIB;
/// Memory for a report, apart from REPORT_BYTES_PER_FILE_BYTE.
const REPORT_BASE_BYTES: u64 = 16 * MIB;
/// Memory for a report, per byte of the recording. A report of 10,000 launches took 53 MB for a
/// file of 3.5 MB.
const REPORT_BYTES_PER_FILE_BYTE: u64 = 16;

/// How much memory the recorder may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    pub buffer_kib: u32,
    pub memory: Memory,
}

/// Checks the limits, and returns how much memory the recorder uses. Calls `notify` if that is less
/// than usual.
pub fn check(arguments: &RecordArguments, notify: impl FnOnce(&str)) -> Result<MemoryPlan> {
    raise_open_files_limit(arguments)?;
    let usual = usual(arguments);
    if usual.memory == Memory::Scarce {
        share_freed_memory();
    }
    let Some(limit) = group_limit() else { return Ok(usual) };
    let Some(plan) = first_fitting(arguments, limit.left, usual) else {
        bail!(
            "recording needs {} of memory, and the control group {} has {} left: raise its limit, or record outside it",
            units::bytes(minimum_memory(arguments)),
            limit.directory.display(),
            units::bytes(limit.left),
        )
    };
    if plan != usual {
        notify(&format!(
            "the control group {} has {} of memory left: the recorder uses at most {} of it, with a kernel buffer of {} KiB",
            limit.directory.display(),
            units::bytes(limit.left),
            units::bytes(required_memory(arguments, plan)),
            plan.buffer_kib
        ));
    }
    Ok(plan)
}

/// Returns how much memory the recorder uses without a limit. What records a machine or a process
/// runs for days, so it takes little.
fn usual(arguments: &RecordArguments) -> MemoryPlan {
    let memory = if arguments.command.is_empty() { Memory::Scarce } else { Memory::Plenty };
    MemoryPlan { buffer_kib: arguments.buffer.unwrap_or(DEFAULT_BUFFER_KIB), memory }
}

/// Makes memory that a thread has freed available to the others, and returns large blocks to the
/// system. Otherwise, glibc keeps memory for later threads, although each file of a ring is written
/// by a new one, and after a large block was freed, it keeps up to twice its size: 66 of 967 MiB in
/// a report on a million launches.
pub fn share_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function only sets parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        // glibc's first value, which it would raise otherwise.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Returns why a report on a recording of this size does not fit into memory. `None` if it fits.
pub fn why_report_does_not_fit(bytes: u64) -> Option<String> {
    let limit = group_limit()?;
    let need = REPORT_BASE_BYTES + bytes.saturating_mul(REPORT_BYTES_PER_FILE_BYTE);
    (need > limit.left).then(|| {
        format!(
            "it may need {} of memory, and the control group {} has {} left: run `spawnscope report` outside it",
            units::bytes(need),
            limit.directory.display(),
            units::bytes(limit.left)
        )
    })
}

/// Returns the first plan that fits into the memory that is left: the usual one, or one with less
/// memory for the writer and the largest kernel buffer that then fits, halving it until it does.
fn first_fitting(arguments: &RecordArguments, left: u64, usual: MemoryPlan) -> Option<MemoryPlan> {
    let halves = std::iter::successors(Some(usual.buffer_kib), |kib| Some(kib / 2));
    let least = arguments.buffer.unwrap_or(MIN_BUFFER_KIB);
    let scarce =
        halves.take_while(|kib| *kib >= least).map(|buffer_kib| MemoryPlan { buffer_kib, memory: Memory::Scarce });
    std::iter::once(usual).chain(scarce).find(|plan| required_memory(arguments, *plan) <= left)
}

fn minimum_memory(arguments: &RecordArguments) -> u64 {
    required_memory(
        arguments,
        MemoryPlan { buffer_kib: arguments.buffer.unwrap_or(MIN_BUFFER_KIB), memory: Memory::Scarce },
    )
}

fn required_memory(arguments: &RecordArguments, plan: MemoryPlan) -> u64 {
    let copies_stacks = arguments.stacks || arguments.sample.is_some();
    let buffers = u64::from(plan.buffer_kib) * KIB * if copies_stacks { 2 } else { 1 };
    // The kernel also keeps a table of the buffer's pages.
    let buffers = buffers + buffers / 16;
    let stacks = if copies_stacks { STACKS_BYTES } else { 0 };
    let samples = if arguments.sample.is_some() { SAMPLES_BYTES } else { 0 };
    BASE_BYTES + buffers + stacks + samples + plan.memory.bytes()
}

/// Raises the soft limit on open files if necessary. This affects only the recorder: the command's
/// process already exists.
fn raise_open_files_limit(arguments: &RecordArguments) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("failed to look up the limit on open files")?;
    let cpus = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_CONF).ok().flatten();
    let cpus = cpus.and_then(|cpus| u64::try_from(cpus).ok()).unwrap_or(1);
    let need = DESCRIPTORS + arguments.sample.map_or(0, |_| DESCRIPTORS_PER_CPU * cpus);
    if soft >= need {
        return Ok(());
    }
    if hard < need {
        bail!(
            "the limit on open files is {hard} (RLIMIT_NOFILE, `ulimit -Hn`), but recording needs {need}: raise it with `ulimit -n {need}` \
             in a root shell"
        );
    }
    setrlimit(Resource::RLIMIT_NOFILE, need, hard)
        .with_context(|| format!("failed to raise the limit on open files to {need}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::verbs::{Arguments, Verb};

    fn arguments(typed: &[&str]) -> RecordArguments {
        let words = ["spawnscope", "record"].iter().chain(typed);
        match Arguments::try_parse_from(words).unwrap().verb {
            Verb::Record(arguments) => arguments,
            _ => panic!("another verb"),
        }
    }

    fn fitting_in(typed: &[&str], mib: u64) -> Option<(u32, Memory)> {
        let arguments = arguments(typed);
        first_fitting(&arguments, mib * MIB, usual(&arguments)).map(|plan| (plan.buffer_kib, plan.memory))
    }

    #[test]
    fn the_buffer_is_halved_until_it_fits_unless_its_size_was_given() {
        assert_eq!(fitting_in(&["true"], 100), Some((16384, Memory::Plenty)));
        assert_eq!(fitting_in(&["true"], 48), Some((16384, Memory::Scarce)));
        assert_eq!(fitting_in(&["-a"], 100), Some((16384, Memory::Scarce)));
        assert_eq!(fitting_in(&["-a"], 32), Some((4096, Memory::Scarce)));
        assert_eq!(fitting_in(&["-a"], 20), None);
        assert_eq!(fitting_in(&["-a", "--buffer", "16384"], 32), None);
        assert_eq!(fitting_in(&["-a", "--buffer", "256"], 27), Some((256, Memory::Scarce)));
        assert_eq!(fitting_in(&["-a", "--stacks"], 40), None);
    }

    #[test]
    fn the_memory_that_the_error_asks_for_is_enough() {
        for typed in [&["-a"][..], &["-a", "--stacks"], &["-a", "--sample", "99"], &["-a", "--buffer", "9000"]] {
            let arguments = arguments(typed);
            let mib = minimum_memory(&arguments).div_ceil(MIB);
            assert!(fitting_in(typed, mib).is_some() && fitting_in(typed, mib - 2).is_none(), "{typed:?}");
        }
    }
}
