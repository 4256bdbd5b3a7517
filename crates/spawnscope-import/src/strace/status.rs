//! The status of an ended child, as calls and signals describe it.

use super::line::signal_number;
use crate::text::{after, find, integer};

/// Returns the status in the second argument of `wait4`; `None` if the child has not ended.
pub fn wait_status(argument: &[u8]) -> Option<i32> {
    if let Some(code) = after(argument, b"WEXITSTATUS(s) == ") {
        return Some((integer(code)? as i32 & 0xff) << 8);
    }
    let signal = after(argument, b"WTERMSIG(s) == ")?;
    let end = signal.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    let dumped = if find(argument, b"WCOREDUMP(s)").is_some() { 128 } else { 0 };
    Some(signal_number(&signal[..end.unwrap_or(signal.len())])? + dumped)
}

/// Returns the wait status that a siginfo of SIGCHLD or of `waitid` describes; `None` if the child
/// has not ended.
pub fn status_of_siginfo(text: &[u8]) -> Option<i32> {
    let code = after(text, b"si_code=")?;
    let status = after(text, b"si_status=")?;
    if code.starts_with(b"CLD_EXITED") {
        return Some((integer(status)? as i32) << 8);
    }
    let name = status.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    let signal = signal_number(&status[..name.unwrap_or(status.len())])?;
    match () {
        () if code.starts_with(b"CLD_KILLED") => Some(signal),
        () if code.starts_with(b"CLD_DUMPED") => Some(signal + 128),
        () => None,
    }
}
