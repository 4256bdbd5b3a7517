//! Whether limits leave the recorder room: open files, and the memory of its control groups. What is short is told before the command
//! starts; where less memory will do, the recorder takes less. A recorder that the kernel killed would leave the command without a
//! recording, and whoever started it without the command's exit status.

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::args::RecordArguments;
use crate::lab::memory::group_limit;
use crate::record::Memory;
use crate::units;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Descriptors that recording takes. On 2 CPUs 58 were the least with which nothing was missing, and 60 with `--stacks`
/// (`ulimit -n N; spawnscope record -- true`, Linux 6.18); files are opened for a moment besides.
const DESCRIPTORS: u64 = 96;
/// With `--sample`: 70 there, and some for each CPU.
const DESCRIPTORS_A_CPU: u64 = 4;

/// Kernel buffer where nobody said how large.
const USUAL_BUFFER_KIB: u32 = 16 * 1024;
/// The least that is tried by itself.
const SMALLEST_BUFFER_KIB: u32 = 1024;

/// Memory besides buffers. In a group of its own, `record -- true` was not killed with 12 MiB and a buffer of 256 KiB, 16 and 4 MiB, 32 and
/// 16 MiB (docs/design/trust.md has the commands).
const PROGRAMS: u64 = 14 * MIB;
/// More with `--stacks`, for what is known of each program and library.
const STACKS: u64 = 24 * MIB;
/// More with `--sample`, for what is known of each thread.
const SAMPLES: u64 = 20 * MIB;
/// A report of 10,000 launches took 53 MB, of a file of 3.5 MB.
const REPORT: u64 = 16 * MIB;
const REPORT_A_BYTE: u64 = 16;

/// How much may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Of the kernel's buffer.
    pub buffer_kib: u32,
    /// By the writer.
    pub memory: Memory,
}

/// Finds out, and says what is taken less of.
///
/// # Errors
/// When recording needs more than there is.
pub fn find(arguments: &RecordArguments, tell: impl FnOnce(&str)) -> Result<Room> {
    open_files(arguments)?;
    let usual = Room {
        buffer_kib: arguments.buffer.unwrap_or(USUAL_BUFFER_KIB),
        memory: Memory::Plenty,
    };
    let Some(limit) = group_limit() else { return Ok(usual) };
    let Some(room) = fitting(arguments, limit.left, usual) else {
        bail!(
            "recording needs {} of memory, and the control group {} leaves {}: raise its limit, or record outside of it",
            units::bytes(least(arguments)),
            limit.folder.display(),
            units::bytes(limit.left),
        )
    };
    if room != usual {
        tell(&format!(
            "the control group {} leaves {} of memory: the recorder takes {} of it at most, with a kernel buffer of {} KiB",
            limit.folder.display(),
            units::bytes(limit.left),
            units::bytes(need(arguments, room)),
            room.buffer_kib
        ));
    }
    Ok(room)
}

/// Whether a report on so large a file has room; in words, why not.
pub fn lacks_room_to_report(bytes: u64) -> Option<String> {
    let limit = group_limit()?;
    let need = REPORT + bytes.saturating_mul(REPORT_A_BYTE);
    (need > limit.left).then(|| {
        format!(
            "it may need {} of memory, and the control group {} leaves {}: run `spawnscope report` outside of it",
            units::bytes(need),
            limit.folder.display(),
            units::bytes(limit.left)
        )
    })
}

/// The first of what can be done that fits.
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

/// What the least takes.
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
    // The kernel keeps a table of a buffer's pages besides.
    let buffers = buffers + buffers / 16;
    let stacks = if copies_stacks { STACKS } else { 0 };
    let samples = if arguments.sample.is_some() { SAMPLES } else { 0 };
    PROGRAMS + buffers + stacks + samples + room.memory.bytes()
}

/// Raises the limit of open files as far as it goes, for the recorder alone: the command's process is there already.
fn open_files(arguments: &RecordArguments) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("failed to look up the limit of open files")?;
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
            "the limit of open files is {hard} (RLIMIT_NOFILE, `ulimit -Hn`), and recording needs {need}: raise it, as with `ulimit -n {need}` \
             in a root shell"
        );
    }
    setrlimit(Resource::RLIMIT_NOFILE, need, hard)
        .with_context(|| format!("failed to raise the limit of open files to {need}"))
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
    fn what_is_told_to_be_needed_is_enough() {
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
