//! Counts program calls that the kernel skipped because the same program was still running on that
//! CPU. This happens if an interrupt during a wake-up causes another wake-up. On kernels where a
//! thread can lose the CPU while a program runs, it also happens at another thread's event; a spare
//! then handles that event (`spare.h`).

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::Object;

/// Name suffixes of a program's spare and check.
const ENDINGS: [&str; 2] = ["_spare", "_check"];

/// Returns the name of the program whose spare or check this program is; `None` if it is neither.
pub(super) fn main_program(program: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|ending| program.strip_suffix(ending))
}

/// Returns the number of skipped calls of programs without a spare. For a program with a spare, its
/// check counts the events that both missed. The kernel can skip the check, too: on an emulated,
/// overloaded machine, each of the three programs is skipped about once in a thousand events. If
/// all three are skipped at the same event, that event is not counted.
pub(super) fn skipped_calls(object: &Object) -> u64 {
    let programs = object.progs();
    let calls = programs.filter_map(|program| {
        let name = program.name().to_str()?.to_owned();
        Some((name, recursion_misses(&program)?))
    });
    skipped_without_spare(&calls.collect::<Vec<_>>())
}

fn skipped_without_spare(skipped: &[(String, u64)]) -> u64 {
    let with_spare: Vec<&str> = skipped.iter().filter_map(|(name, _)| main_program(name)).collect();
    let alone = skipped.iter().filter(|(name, _)| main_program(name).is_none() && !with_spare.contains(&name.as_str()));
    alone.map(|(_, calls)| calls).sum()
}

/// Returns the number of skipped calls of a loaded program. It is 0 before Linux 5.12, which does
/// not count them.
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
    fn skipped_calls_of_programs_with_a_spare_do_not_count() {
        let calls = [("on_exit", 30), ("on_exit_spare", 4), ("on_exit_check", 3), ("on_waking", 2)];
        let calls = calls.map(|(name, calls)| (name.to_owned(), calls));
        assert_eq!(skipped_without_spare(&[calls[0].clone(), calls[3].clone()]), 32);
        assert_eq!(skipped_without_spare(&calls), 2);
    }
}
