//! Counts program calls that the kernel skipped because the program was still running on that CPU: a wake-up in an interrupt within
//! a wake-up, or another thread's event, where threads can lose the CPU within programs. In the latter case, a spare handles the
//! event (`spare.h`).

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::Object;

/// Name suffixes of a program's spare and check.
const ENDINGS: [&str; 2] = ["_spare", "_check"];

/// The program of which this one is the spare or check.
pub(super) fn spared(program: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|ending| program.strip_suffix(ending))
}

/// Skipped calls of programs without a spare. For a program with a spare, its check counts the events that both missed. The check
/// can be skipped too, at the event that both missed or at the one before: on an emulated, overloaded machine each of the three is
/// skipped about once in a thousand events. The case that all three are skipped together is not counted.
pub(super) fn events(object: &Object) -> u64 {
    let programs = object.progs();
    let calls = programs.filter_map(|program| {
        let name = program.name().to_str()?.to_owned();
        Some((name, recursion_misses(&program)?))
    });
    without_spare(&calls.collect::<Vec<_>>())
}

fn without_spare(skipped: &[(String, u64)]) -> u64 {
    let has_spare = |name: &str| skipped.iter().any(|(other, _)| spared(other) == Some(name));
    let alone = skipped
        .iter()
        .filter(|(name, _)| spared(name).is_none() && !has_spare(name));
    alone.map(|(_, calls)| calls).sum()
}

/// Skipped calls of a loaded program. Unknown before Linux 5.12.
fn recursion_misses(program: &libbpf_rs::Program<'_>) -> Option<u64> {
    if !program.autoload() {
        return None;
    }
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = u32::try_from(size_of_val(&info)).ok()?;
    // SAFETY: the descriptor belongs to an open program, and `info` has room for `bytes` bytes.
    let outcome =
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), &raw mut info, &raw mut bytes) };
    (outcome == 0).then_some(info.recursion_misses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_only_where_no_spare_took_them() {
        let calls = [
            ("on_exit", 30),
            ("on_exit_spare", 4),
            ("on_exit_check", 3),
            ("on_waking", 2),
        ];
        let counts = |names: &[&str]| {
            let counted = calls.iter().filter(|(name, _)| names.contains(name));
            without_spare(
                &counted
                    .map(|(name, calls)| ((*name).to_owned(), *calls))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(counts(&["on_exit", "on_waking"]), 32);
        assert_eq!(counts(&["on_exit", "on_exit_spare", "on_exit_check", "on_waking"]), 2);
    }
}
