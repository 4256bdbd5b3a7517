//! The state of a shell process that is not in its memory: where it was forked, and whether its
//! call site has been reported.

use zerocopy::FromZeros;

use crate::wire::*;

/// The state of a shell since its creation by another shell, or since its exec: these fields of
/// `WireTask`.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::ptrace) struct Shell {
    flags: u32,
    line: u32,
    function: u32,
    input: u32,
    name: u64,
    string_lines: u32,
    min_line: u32,
    /// Whether the shell will stop when it begins its first command.
    pub(super) awaits_command: bool,
}

impl Shell {
    pub(super) fn of(task: &WireTask) -> Shell {
        Shell {
            flags: task.flags,
            line: task.script_line,
            function: task.script_function,
            input: task.script_input,
            name: task.script_name,
            string_lines: task.script_string_lines,
            min_line: task.script_min_line,
            awaits_command: false,
        }
    }

    pub(super) fn task(&self) -> WireTask {
        WireTask {
            flags: self.flags,
            script_line: self.line,
            script_function: self.function,
            script_input: self.input,
            script_name: self.name,
            script_string_lines: self.string_lines,
            script_min_line: self.min_line,
            ..WireTask::new_zeroed()
        }
    }

    /// Whether the shell's call site has not been reported yet.
    pub(in crate::ptrace) fn is_pending(&self) -> bool {
        self.flags & TASK_CALL_PENDING != 0
    }

    /// Whether the shell's system calls must be observed to find its call site.
    pub(in crate::ptrace) fn has_traced_calls(&self) -> bool {
        self.is_pending() && !self.awaits_command
    }

    /// Makes the shell's own line its call site.
    pub(super) fn use_own_line(&mut self) {
        self.flags |= TASK_OWN_LINE;
    }

    pub(super) fn end_setup(&mut self) {
        self.flags &= !(TASK_CALL_PENDING | TASK_OWN_LINE);
    }
}

/// What a system call says about the setup of a forked dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellSetup {
    /// The call belongs to the setup.
    Continues,
    /// The shell closes its standard input, so it is in the background, and its own line is the
    /// call site.
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
