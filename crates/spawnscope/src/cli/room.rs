//! Checks whether the limits on open files and on control group memory leave enough room for the recorder. A shortage is reported before
//! the command starts. If less memory is enough, the recorder takes less. If the kernel killed the recorder, there would be no recording,
//! and its caller would not get the command's exit status.

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::args::RecordArguments;
use crate::lab::memory::group_limit;
use crate::record::Memory;
use crate::units;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// File descriptors that recording needs. On 2 CPUs, 58 were the fewest with which nothing was missing, and 60 with `--stacks`
/// (`ulimit -n N; spawnscope record -- true`, Linux 6.18). A few more files are opened briefly.
const DESCRIPTORS: u64 = 96;
/// Additional descriptors per CPU with `--sample`, which needed 70 on that machine.
const DESCRIPTORS_A_CPU: u64 = 4;

/// Size of the kernel buffer without `--buffer`.
const USUAL_BUFFER_KIB: u32 = 16 * 1024;
/// The smallest buffer that is chosen automatically.
const SMALLEST_BUFFER_KIB: u32 = 1024;

/// Memory for everything but buffers. In a control group of its own, `record -- true` was not killed with 12 MiB and a buffer of 256 KiB,
/// 16 MiB and 4 MiB, or 32 MiB and 16 MiB (docs/design/trust.md lists the commands).
const PROGRAMS: u64 = 14 * MIB;
/// Additional memory with `--stacks`, for tables of programs and libraries.
const STACKS: u64 = 24 * MIB;
/// Additional memory with `--sample`, for tables of threads.
const SAMPLES: u64 = 20 * MIB;
/// Memory for a report. A report of 10,000 launches took 53 MB for a file of 3.5 MB.
const REPORT: u64 = 16 * MIB;
const REPORT_A_BYTE: u64 = 16;

/// How much memory the recorder may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The size of the kernel buffer.
    pub buffer_kib: u32,
    /// The memory of the writer.
    pub memory: Memory,
}

/// Checks the limits, and calls `notify` if the recorder uses less memory than usual.
///
/// # Errors
/// When recording needs more than the limits allow.
pub fn find(arguments: &RecordArguments, notify: impl FnOnce(&str)) -> Result<Room> {
    open_files(arguments)?;
    let usual = Room {
        buffer_kib: arguments.buffer.unwrap_or(USUAL_BUFFER_KIB),
        memory: Memory::Plenty,
    };
    let Some(limit) = group_limit() else { return Ok(usual) };
    let Some(room) = fitting(arguments, limit.left, usual) else {
        bail!(
            "recording needs {} of memory, and the control group {} has {} left: raise its limit, or record outside it",
            units::bytes(least(arguments)),
            limit.directory.display(),
            units::bytes(limit.left),
        )
    };
    if room != usual {
        notify(&format!(
            "the control group {} has {} of memory left: the recorder uses at most {} of it, with a kernel buffer of {} KiB",
            limit.directory.display(),
            units::bytes(limit.left),
            units::bytes(need(arguments, room)),
            room.buffer_kib
        ));
    }
    Ok(room)
}

/// Checks whether a report on a file of this size fits into memory. Returns the reason if it does not.
pub fn lacks_room_to_report(bytes: u64) -> Option<String> {
    let limit = group_limit()?;
    let need = REPORT + bytes.saturating_mul(REPORT_A_BYTE);
    (need > limit.left).then(|| {
        format!(
            "it may need {} of memory, and the control group {} has {} left: run `spawnscope report` outside it",
            units::bytes(need),
            limit.directory.display(),
            units::bytes(limit.left)
        )
    })
}

/// Returns the first configuration that fits.
fn fitting(arguments: &RecordArguments, left: u64, usual: Room) -> Option<Room> {
    let fits = |room: &Room| need(arguments, *room) <= left;
    let halves = std::iter::successors(Some(usual.buffer_kib), |kib| Some(kib / 2));
    let least = arguments.buffer.unwrap_or(SMALLEST_BUFFER_KIB);
    let scarce = halves.take_while(|kib| *kib >= least).map(|buffer_kib| Room {
        buffer_kib,
        memory: Memory::Scarce,
    });
    std::iter::once(usual).chain(scarce).find(fits)
}

/// Returns the memory that the smallest configuration needs.
fn least(arguments: &RecordArguments) -> u64 {
    need(
        arguments,
        Room {
            buffer_kib: arguments.buffer.unwrap_or(SMALLEST_BUFFER_KIB),
            memory: Memory::Scarce,
        },
    )
}

fn need(arguments: &RecordArguments, room: Room) -> u64 {
    let copies_stacks = arguments.stacks || arguments.sample.is_some();
    let buffers = u64::from(room.buffer_kib) * KIB * if copies_stacks { 2 } else { 1 };
    // The kernel also keeps a table of the buffer's pages.
    let buffers = buffers + buffers / 16;
    let stacks = if copies_stacks { STACKS } else { 0 };
    let samples = if arguments.sample.is_some() { SAMPLES } else { 0 };
    PROGRAMS + buffers + stacks + samples + room.memory.bytes()
}

/// Raises the soft limit on open files, for the recorder only: the command's process exists already.
fn open_files(arguments: &RecordArguments) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("failed to look up the limit on open files")?;
    let cpus = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_CONF)
        .ok()
        .flatten();
    let cpus = cpus.and_then(|cpus| u64::try_from(cpus).ok()).unwrap_or(1);
    let need = DESCRIPTORS + arguments.sample.map_or(0, |_| DESCRIPTORS_A_CPU * cpus);
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
    use crate::cli::args::{Arguments, Verb};

    fn arguments(typed: &[&str]) -> RecordArguments {
        let words = ["spawnscope", "record"].iter().chain(typed);
        match Arguments::try_parse_from(words).unwrap().verb {
            Verb::Record(arguments) => arguments,
            _ => panic!("another verb"),
        }
    }

    fn fitting_in(typed: &[&str], mib: u64) -> Option<(u32, Memory)> {
        let arguments = arguments(typed);
        let usual = Room {
            buffer_kib: arguments.buffer.unwrap_or(USUAL_BUFFER_KIB),
            memory: Memory::Plenty,
        };
        fitting(&arguments, mib * MIB, usual).map(|room| (room.buffer_kib, room.memory))
    }

    #[test]
    fn the_buffer_gets_smaller_until_it_fits_unless_somebody_said_how_large() {
        assert_eq!(fitting_in(&["-a"], 100), Some((16384, Memory::Plenty)));
        assert_eq!(fitting_in(&["-a"], 48), Some((16384, Memory::Scarce)));
        assert_eq!(fitting_in(&["-a"], 32), Some((4096, Memory::Scarce)));
        assert_eq!(fitting_in(&["-a"], 20), None);
        assert_eq!(fitting_in(&["-a", "--buffer", "16384"], 32), None);
        assert_eq!(fitting_in(&["-a", "--buffer", "256"], 27), Some((256, Memory::Scarce)));
        assert_eq!(fitting_in(&["-a", "--stacks"], 40), None);
    }

    #[test]
    fn the_required_limit_is_enough() {
        for typed in [
            &["-a"][..],
            &["-a", "--stacks"],
            &["-a", "--sample", "99"],
            &["-a", "--buffer", "9000"],
        ] {
            let arguments = arguments(typed);
            let mib = least(&arguments).div_ceil(MIB);
            assert!(
                fitting_in(typed, mib).is_some() && fitting_in(typed, mib - 2).is_none(),
                "{typed:?}"
            );
        }
    }
}
