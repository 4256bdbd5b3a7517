//! Describes a wait status in words.

use nix::sys::signal::Signal;

/// Returns a description such as `exit status 127` or `signal 5 (SIGTRAP)`.
pub fn describe(wait_status: i32) -> String {
    if libc::WIFEXITED(wait_status) {
        return format!("exit status {}", libc::WEXITSTATUS(wait_status));
    }
    if !libc::WIFSIGNALED(wait_status) {
        return format!("wait status {wait_status:#x}");
    }
    let number = libc::WTERMSIG(wait_status);
    match Signal::try_from(number) {
        Ok(signal) => format!("signal {number} ({signal})"),
        // Real-time signals have no names.
        Err(_) => format!("signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_signals_and_other_statuses_are_described() {
        assert_eq!(describe(0x7f00), "exit status 127");
        assert_eq!(describe(0), "exit status 0");
        assert_eq!(describe(5), "signal 5 (SIGTRAP)");
        assert_eq!(describe(0x80 | 11), "signal 11 (SIGSEGV)", "and a core");
        assert_eq!(describe(40), "signal 40");
        assert_eq!(describe(0x137f), "wait status 0x137f", "stopped");
    }
}
