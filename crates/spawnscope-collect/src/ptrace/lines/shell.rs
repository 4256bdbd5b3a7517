//! What is known about a process that runs a script, besides its memory.

/// Where a dash reads its commands from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reads {
    /// A string, or standard input.
    #[default]
    Nothing,
    Script,
    /// A file that the script reads.
    File,
}

/// The state of a shell since its creation by another shell, or since its exec (`WireTask` has the same fields).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::ptrace) struct Shell {
    /// Whether it, or one of its ancestors, was created at an unknown line.
    pub(super) has_doubt: bool,
    /// Whether it was forked by another dash; what it executes is at `line` or later.
    pub(super) is_subshell: bool,
    /// Whether its call site is still to be reported.
    pub(super) is_pending: bool,
    /// Whether its own position is the call site, not that of the shell that forked it.
    pub(super) has_own_line: bool,
    /// The line that it was forked for (0: unknown), and the line of the head of the enclosing function.
    pub(super) line: u32,
    pub(super) function_line: u32,
    pub(super) reads: Reads,
    /// The largest line count of the strings being evaluated.
    pub(super) counted: u32,
    /// The smallest line that its own position can have, until it is reported.
    pub(super) bound: u32,
}

/// What a new dash does before its first own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preparation {
    /// A call that belongs to its setup.
    Continues,
    /// It closes its standard input: it is a shell in the background, whose own position counts.
    IsInBackground,
    /// The setup is over.
    Ends,
}

impl Preparation {
    /// By the system call that is entered, and its first argument.
    pub(super) fn of(number: libc::c_long, first: u64) -> Preparation {
        #[cfg(target_arch = "x86_64")]
        if matches!(number, libc::SYS_open | libc::SYS_pipe | libc::SYS_dup2) {
            return Preparation::Continues;
        }
        match number {
            libc::SYS_close if first == 0 => Preparation::IsInBackground,
            libc::SYS_openat
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_brk
            | libc::SYS_getpid
            | libc::SYS_set_robust_list
            | libc::SYS_rseq
            | libc::SYS_close
            | libc::SYS_close_range
            | libc::SYS_rt_sigaction
            | libc::SYS_rt_sigprocmask
            | libc::SYS_rt_sigreturn
            | libc::SYS_ioctl
            | libc::SYS_pipe2
            | libc::SYS_dup
            | libc::SYS_dup3
            | libc::SYS_fcntl
            | libc::SYS_setpgid
            | libc::SYS_wait4
            | libc::SYS_waitid => Preparation::Continues,
            _ => Preparation::Ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_prepares_until_a_call_of_its_own() {
        assert_eq!(Preparation::of(libc::SYS_close, 3), Preparation::Continues);
        assert_eq!(Preparation::of(libc::SYS_close, 0), Preparation::IsInBackground);
        for number in [libc::SYS_execve, libc::SYS_clone, libc::SYS_exit_group, libc::SYS_write] {
            assert_eq!(Preparation::of(number, 0), Preparation::Ends);
        }
    }
}
