//! Names and numbers of system calls. A recording stores the numbers of the architecture that it
//! was made on. Its reader translates them, and all later code uses x86-64's numbers only. No other
//! file contains a number: Rust code asks for the number of a name, which the compiler computes,
//! and the BPF programs get a header that is generated from these tables.

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

/// Returns the name of the system call with this x86-64 number; `None` if it is newer than this
/// table.
pub fn name(number: u16) -> Option<&'static str> {
    let (names, position) = match number.checked_sub(FIRST_COMMON) {
        Some(position) => (COMMON, position),
        None => (x86_64::NAMES, number),
    };
    names.split(' ').nth(position as usize)
}

/// The x86-64 numbers of the system calls that create a process or thread. The parent of a vfork
/// sleeps in the call until its child's exec.
pub const CREATIONS: [u16; 4] = numbers(["clone", "fork", "vfork", "clone3"]);

/// Returns the x86-64 numbers of system calls.
///
/// # Panics
/// If no system call has one of the names. In a constant, this is an error of the compiler.
pub const fn numbers<const N: usize>(names: [&str; N]) -> [u16; N] {
    let mut numbers = [0; N];
    let mut index = 0;
    while index < N {
        numbers[index] = number(names[index]);
        index += 1;
    }
    numbers
}

/// Returns the x86-64 number of a system call.
///
/// # Panics
/// If no system call has the name. In a constant, this is an error of the compiler.
pub const fn number(name: &str) -> u16 {
    match (position(name, x86_64::NAMES), position(name, COMMON)) {
        (Some(position), _) => position,
        (None, Some(position)) => FIRST_COMMON + position,
        (None, None) => panic!("there is no system call of this name"),
    }
}

/// Returns every system call with its number on a machine, given the name that `uname -m` prints.
/// `None` if the machine lacks the call.
pub fn all_on(machine: &str) -> impl Iterator<Item = (&'static str, Option<u16>)> {
    let own = if machine == "aarch64" { aarch64::NAMES } else { x86_64::NAMES };
    let common = COMMON.split(' ').zip(FIRST_COMMON..).map(|(name, number)| (name, Some(number)));
    x86_64::NAMES.split(' ').filter(|name| *name != "-").map(move |name| (name, position(name, own))).chain(common)
}

/// Returns the position of a name among names that are separated by spaces.
const fn position(name: &str, names: &str) -> Option<u16> {
    let (name, names) = (name.as_bytes(), names.as_bytes());
    let (mut at, mut position) = (0, 0);
    while at < names.len() {
        let mut length = 0;
        let mut is_equal = true;
        while at + length < names.len() && names[at + length] != b' ' {
            is_equal = is_equal && length < name.len() && names[at + length] == name[length];
            length += 1;
        }
        if is_equal && length == name.len() {
            return Some(position);
        }
        at += length + 1;
        position += 1;
    }
    None
}

/// Translates the numbers of one architecture to those of x86-64.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// The x86-64 numbers, indexed by the architecture's own numbers below `FIRST_COMMON`. `None`
    /// for x86-64 itself.
    table: Option<Vec<Option<u16>>>,
}

impl Numbers {
    /// Returns the translation for the machine name that `uname -m` prints. For an unknown name,
    /// x86-64's numbers are assumed.
    pub fn for_machine(machine: &str) -> Numbers {
        let table = (machine == "aarch64")
            .then(|| aarch64::NAMES.split(' ').map(|name| position(name, x86_64::NAMES)).collect());
        Numbers { table }
    }

    /// Returns the x86-64 number of one of the architecture's numbers; `None` if x86-64 has no such
    /// system call.
    pub fn x86_64(&self, number: u16) -> Option<u16> {
        match &self.table {
            Some(table) if number < FIRST_COMMON => table.get(usize::from(number)).copied().flatten(),
            _ => Some(number),
        }
    }
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
    fn each_name_has_its_number_on_each_machine() {
        assert_eq!(numbers(["read", "wait4", "clone3", "futex_wait"]), [0, 61, 435, 455]);
        for (machine, read, open) in [("x86_64", Some(0), Some(2)), ("aarch64", Some(63), None)] {
            let found = |wanted| all_on(machine).find(|(name, _)| *name == wanted).unwrap().1;
            assert_eq!((found("read"), found("open"), found("clone3")), (read, open, Some(435)), "{machine}");
        }
    }

    #[test]
    fn numbers_of_x86_64_stay_as_they_are() {
        let numbers = Numbers::for_machine("x86_64");
        assert_eq!([0, 61, 335, 500].map(|number| numbers.x86_64(number)), [0, 61, 335, 500].map(Some));
    }
}
