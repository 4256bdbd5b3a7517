//! The state of a shell process that is not in its memory: where it was forked, and whether its call site has been reported.

/// Where a dash reads its commands from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InputKind {
    /// A string, or standard input.
    #[default]
    NoFile,
    Script,
    /// A file that the script sources.
    File,
}

/// The state of a shell since its creation by another shell, or since its exec (`WireTask` has the same fields).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::ptrace) struct Shell {
    /// Whether the shell, or one of its ancestors, was forked at an unknown line.
    pub(super) has_uncertain_line: bool,
    /// Whether another dash forked the shell; its commands are at `line` or later.
    pub(super) is_subshell: bool,
    /// Whether the shell's call site has not been reported yet.
    pub(super) is_pending: bool,
    /// Whether the call site is the shell's own line, not that of the shell that forked it.
    pub(super) has_own_line: bool,
    /// The line that the shell was forked for; 0: unknown.
    pub(super) line: u32,
    /// The line where the enclosing function begins; 0: none.
    pub(super) function_line: u32,
    pub(super) input_kind: InputKind,
    /// The largest line count of the strings being evaluated when the shell was forked.
    pub(super) string_lines: u32,
    /// The smallest line that the shell can be at, until its call site is reported.
    pub(super) min_line: u32,
}

/// What a system call says about the setup of a forked dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellSetup {
    /// The call belongs to the setup.
    Continues,
    /// The shell closes its standard input, so it is in the background, and its own line is the call site.
    IsInBackground,
    /// The setup is over.
    Ends,
}

impl ShellSetup {
    /// Classifies the system call that the shell enters, by its number and first argument.
    pub(super) fn classify(number: libc::c_long, first_argument: u64) -> ShellSetup {
        #[cfg(target_arch = "x86_64")]
        if matches!(number, libc::SYS_open | libc::SYS_pipe | libc::SYS_dup2) {
            return ShellSetup::Continues;
        }
        match number {
            libc::SYS_close if first_argument == 0 => ShellSetup::IsInBackground,
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
            | libc::SYS_waitid => ShellSetup::Continues,
            _ => ShellSetup::Ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setup_of_a_shell_ends_with_the_first_call_that_does_not_belong_to_it() {
        assert_eq!(ShellSetup::classify(libc::SYS_close, 3), ShellSetup::Continues);
        assert_eq!(ShellSetup::classify(libc::SYS_close, 0), ShellSetup::IsInBackground);
        for number in [libc::SYS_execve, libc::SYS_clone, libc::SYS_exit_group, libc::SYS_write] {
            assert_eq!(ShellSetup::classify(number, 0), ShellSetup::Ends);
        }
    }
}
