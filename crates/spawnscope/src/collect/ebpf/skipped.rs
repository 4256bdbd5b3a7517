//! Calls of programs that the kernel skipped, since the program had not ended on that CPU: an interrupt's wake-up within a wake-up,
//! or another thread's event where threads can lose the CPU within programs. There a spare takes the event (`spare.h`).

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::Object;

/// What the names of a program's spare and of its check end with.
const ENDINGS: [&str; 2] = ["_spare", "_check"];

/// The program that this one is a spare or a check of.
pub(super) fn spared(program: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|ending| program.strip_suffix(ending))
}

/// Calls of programs without a spare. Where a program has one, its check counts the events that both missed. It can be skipped as well, at the
/// very event that both missed or at the one before: each of the three is skipped about once in a thousand events of an
/// emulated, overloaded machine, so all three together are not counted.
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

/// Of a loaded program. Unknown before Linux 5.12.
fn recursion_misses(program: &libbpf_rs::Program<'_>) -> Option<u64> {
    if !program.autoload() {
        return None;
    }
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = u32::try_from(size_of_val(&info)).ok()?;
    // SAFETY: the descriptor is an open program's, and `info` has `bytes` bytes to be filled.
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
