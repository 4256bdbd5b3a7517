//! Names of system calls. A recording stores the numbers of the architecture that it was made on. Its reader translates them, and all later
//! code uses x86-64's numbers only.

mod aarch64;
mod x86_64;

/// Names of the system calls whose numbers are the same on all architectures, in order.
const COMMON: &str = "\
    pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig \
    fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 \
    mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret \
    process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake \
    futex_wait futex_requeue";
/// The number of the first name in `COMMON`.
const FIRST_COMMON: u16 = 424;

/// Returns the name of the system call with this x86-64 number; `None` if it is newer than this table.
#[must_use]
pub fn name(number: u16) -> Option<&'static str> {
    let (names, position) = match number.checked_sub(FIRST_COMMON) {
        Some(position) => (COMMON, position),
        None => (x86_64::NAMES, number),
    };
    names.split(' ').nth(position as usize)
}

/// Translates the numbers of one architecture to those of x86-64.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// The x86-64 numbers, indexed by the architecture's own numbers below `FIRST_COMMON`. `None` for x86-64 itself.
    table: Option<Vec<Option<u16>>>,
}

impl Numbers {
    /// Returns the translation for the machine name that `uname -m` prints. For an unknown name, x86-64's numbers are assumed.
    #[must_use]
    pub fn for_machine(machine: &str) -> Numbers {
        let table = (machine == "aarch64").then(|| aarch64::NAMES.split(' ').map(x86_64_number).collect());
        Numbers { table }
    }

    /// Returns the x86-64 number of one of the architecture's numbers; `None` if x86-64 has no such system call.
    #[must_use]
    pub fn x86_64(&self, number: u16) -> Option<u16> {
        match &self.table {
            Some(table) if number < FIRST_COMMON => table.get(usize::from(number)).copied().flatten(),
            _ => Some(number),
        }
    }
}

fn x86_64_number(name: &str) -> Option<u16> {
    let position = x86_64::NAMES.split(' ').position(|other| other == name)?;
    u16::try_from(position).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the numbers of the architecture that runs the test.
    #[test]
    fn numbers_and_names_agree_with_libc() {
        let numbers = Numbers::for_machine(std::env::consts::ARCH);
        for (number, expected) in [
            (libc::SYS_read, "read"),
            (libc::SYS_fcntl, "fcntl"),
            (libc::SYS_execve, "execve"),
            (libc::SYS_newfstatat, "newfstatat"),
            (libc::SYS_mmap, "mmap"),
            (libc::SYS_wait4, "wait4"),
            (libc::SYS_futex, "futex"),
            (libc::SYS_waitid, "waitid"),
            (libc::SYS_ppoll, "ppoll"),
            (libc::SYS_clock_nanosleep, "clock_nanosleep"),
            (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
            (libc::SYS_rseq, "rseq"),
            (libc::SYS_pidfd_send_signal, "pidfd_send_signal"),
            (libc::SYS_clone3, "clone3"),
            (libc::SYS_futex_waitv, "futex_waitv"),
        ] {
            let number = numbers.x86_64(u16::try_from(number).unwrap());
            assert_eq!(number.and_then(name), Some(expected));
        }
        for unknown in [335, 423, 999] {
            assert_eq!(name(unknown), None);
        }
    }

    #[test]
    fn every_aarch64_number_is_translated_to_the_x86_64_number_of_the_same_call() {
        let numbers = Numbers::for_machine("aarch64");
        for (number, name_here) in (0..).zip(aarch64::NAMES.split(' ')) {
            let expected = (name_here != "-").then_some(name_here);
            assert_eq!(numbers.x86_64(number).and_then(name), expected, "{number}");
        }
        assert_eq!(numbers.x86_64(300), None);
        // wait4, clone, execve, read.
        let translated = [260, 220, 221, 63].map(|number| numbers.x86_64(number));
        assert_eq!(translated, [61, 56, 59, 0].map(Some));
    }

    #[test]
    fn numbers_of_x86_64_stay_as_they_are() {
        let numbers = Numbers::for_machine("x86_64");
        assert_eq!([0, 61, 335, 500].map(|number| numbers.x86_64(number)), [0, 61, 335, 500].map(Some));
    }
}
