//! One line of strace's output: who printed it, when, and what kind of line it is. Options of
//! strace decide which of the parts in front are there (`-f` and `-o` the pid, `-Y` the name, `-t`,
//! `-tt`, `-ttt` and `-r` the time), so all of them are recognized by their own shape. Arguments
//! are not examined here (`call` does that), because most lines belong to calls that do not matter.

use nix::sys::signal::Signal;

use crate::text::{after, find, fraction, integer, number, skip_spaces, split_at_any};

/// The time in front of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Nanoseconds since 1970 (`-ttt`).
    Unix(u64),
    /// Nanoseconds since midnight (`-t`, `-tt`).
    OfDay(u64),
    /// Nanoseconds since the line before (`-r`).
    Since(u64),
}

/// What stands in front of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Front<'l> {
    pub tid: Option<i32>,
    /// The name of the thread.
    pub name: Option<&'l [u8]>,
    pub stamp: Option<Stamp>,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'l> {
    /// A whole call: its name, and the line from the name on.
    Call { name: &'l [u8], text: &'l [u8] },
    /// The beginning of a call that has not returned: its name, and the line up to the mark.
    Unfinished { name: &'l [u8], text: &'l [u8] },
    /// The end of such a call: what follows the mark.
    Resumed { name: &'l [u8], text: &'l [u8] },
    /// The thread ended, with this status as `wait(2)` encodes it.
    Exited(i32),
    /// Another thread of the process executed a program, and has this thread's number from now on.
    Superseded { by: i32 },
    /// A signal was delivered: what is known of it.
    Signal(&'l [u8]),
    /// A message by strace that says nothing of launches.
    Message,
}

/// Highest number of a thread: the kernel's limit of pid_max. A larger number at the beginning of a
/// line is a time.
const MAX_TID: u64 = 1 << 22;
/// Earliest time of `-ttt`, in seconds: 1973. Smaller numbers with a fraction are times since the
/// line before.
const MIN_UNIX_SECONDS: u64 = 100_000_000;
/// What ends the beginning of a call.
const UNFINISHED: &[u8] = b"<unfinished ...>";

/// Divides a line into what stands in front and the rest.
pub fn front(line: &[u8]) -> (Front<'_>, &[u8]) {
    let mut front = Front::default();
    let mut rest = skip_spaces(line);
    if let Some(inside) = rest.strip_prefix(b"[pid")
        && let Some((inside, after)) = split_at_any(inside, b"]")
    {
        (front.tid, front.name) = thread(skip_spaces(inside));
        rest = skip_spaces(after);
    } else if let Some(end) = end_of_thread(rest) {
        (front.tid, front.name) = thread(&rest[..end]);
        rest = skip_spaces(&rest[end..]);
    }
    (front.stamp, rest) = stamp(rest);
    // With -r and another time, the time since the line before follows in parentheses.
    if let Some(inside) = rest.strip_prefix(b"(+")
        && let Some((_, after)) = split_at_any(inside, b")")
    {
        rest = skip_spaces(after);
    }
    // Of the call: its number (-n) and the instruction pointer (-i).
    while let Some(inside) = rest.strip_prefix(b"[")
        && let Some((inside, after)) = split_at_any(inside, b"]")
        && inside.iter().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b' ' | b'?'))
    {
        rest = skip_spaces(after);
    }
    (front, rest)
}

/// Returns where a thread's number and name end, if the line begins with a number that is not a
/// time.
fn end_of_thread(line: &[u8]) -> Option<usize> {
    let (value, after) = number(line)?;
    let end = line.len() - after.len();
    match after.first()? {
        b' ' if value <= MAX_TID => Some(end),
        b'<' => find(after, b"> ").map(|name| end + name + 1),
        _ => None,
    }
}

fn thread(text: &[u8]) -> (Option<i32>, Option<&[u8]>) {
    let Some((value, after)) = number(text) else {
        return (None, None);
    };
    let tid = i32::try_from(value).ok().filter(|_| (1..=MAX_TID).contains(&value));
    (tid, after.strip_prefix(b"<").and_then(|name| name.strip_suffix(b">")))
}

/// Returns the time at the beginning of a text, and what follows it.
fn stamp(text: &[u8]) -> (Option<Stamp>, &[u8]) {
    let parsed = (|| {
        let (first, after) = number(text)?;
        if let Some(after) = after.strip_prefix(b":") {
            let (minutes, after) = number(after)?;
            let (seconds, after) = number(after.strip_prefix(b":")?)?;
            let (fraction, after) = fraction(after)?;
            let seconds =
                (first < 24 && minutes < 60 && seconds < 61).then(|| first * 3600 + minutes * 60 + seconds)?;
            return Some((Stamp::OfDay(seconds * NANOS + fraction), after));
        }
        let has_fraction = after.starts_with(b".");
        let (fraction, after) = fraction(after)?;
        let at = first.checked_mul(NANOS)?.checked_add(fraction)?;
        match first {
            MIN_UNIX_SECONDS.. => Some((Stamp::Unix(at), after)),
            _ => has_fraction.then_some((Stamp::Since(at), after)),
        }
    })();
    match parsed {
        Some((stamp, after)) if after.starts_with(b" ") => (Some(stamp), skip_spaces(after)),
        _ => (None, text),
    }
}

const NANOS: u64 = 1_000_000_000;

/// Examines the rest of a line. `None` if strace writes no such line.
pub fn what(rest: &[u8]) -> Option<What<'_>> {
    let rest = rest.trim_ascii_end();
    match rest.first()? {
        b'+' => ended(rest.strip_prefix(b"+++ ")?.strip_suffix(b" +++")?),
        b'-' => Some(What::Signal(rest.strip_prefix(b"--- ")?.strip_suffix(b" ---")?)),
        b'<' => {
            let (name, text) = split_at_any(rest.strip_prefix(b"<... ")?, b" ")?;
            let text = text.strip_prefix(b"resumed")?;
            Some(What::Resumed { name, text: text.strip_prefix(b">")? })
        }
        _ => call(rest).or_else(|| message(rest)),
    }
}

fn call(rest: &[u8]) -> Option<What<'_>> {
    let (name, _) = split_at_any(rest, b"(")?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'?');
    if name.is_empty() || !name.iter().all(is_name) {
        return None;
    }
    Some(match rest.strip_suffix(UNFINISHED) {
        Some(text) => What::Unfinished { name, text },
        None => What::Call { name, text: rest },
    })
}

fn ended(text: &[u8]) -> Option<What<'_>> {
    if let Some(status) = text.strip_prefix(b"exited with ") {
        let (status, _) = number(status)?;
        return Some(What::Exited(i32::try_from(status).ok()?.checked_mul(256)?));
    }
    if let Some(by) = text.strip_prefix(b"superseded by execve in pid ") {
        return Some(What::Superseded { by: i32::try_from(number(by)?.0).ok()? });
    }
    let killed = text.strip_prefix(b"killed by ")?;
    let (signal, dumped) = match killed.strip_suffix(b" (core dumped)") {
        Some(signal) => (signal, 128),
        None => (killed, 0),
    };
    Some(What::Exited(signal_number(signal)? + dumped))
}

/// Returns the number of a signal, as on x86-64.
pub fn signal_number(name: &[u8]) -> Option<i32> {
    let name = std::str::from_utf8(name).ok()?;
    match name.strip_prefix("SIGRT") {
        Some("MIN") => Some(32),
        Some(number) => Some(32 + number.trim_start_matches('_').parse::<u8>().ok().map(i32::from)?),
        None => name.parse::<Signal>().ok().map(|signal| signal as i32),
    }
}

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

fn message(rest: &[u8]) -> Option<What<'_>> {
    // The stack of a call (-k).
    let is_frame = rest.starts_with(b"> ") && rest.ends_with(b"]") && find(rest, b" [0x").is_some();
    if rest.starts_with(b"[ Process PID=") || is_frame {
        return Some(What::Message);
    }
    // A path is in front if strace was started by one.
    let at = find(rest, b"strace: ").filter(|at| *at == 0 || rest[0] == b'/' && !rest[..*at].contains(&b' '));
    let own = at.map(|at| &rest[at + b"strace: ".len()..]);
    let Some(process) = own.unwrap_or(rest).strip_prefix(b"Process ") else {
        return own.map(|_| What::Message);
    };
    number(process).map(|_| What::Message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &str) -> (Option<i32>, Option<Stamp>, &str) {
        let (front, rest) = front(line.as_bytes());
        (front.tid, front.stamp, std::str::from_utf8(rest).unwrap())
    }

    #[test]
    fn each_form_of_pid_and_time_is_recognized() {
        let unix = Some(Stamp::Unix(1_795_837_965_011_397_000));
        let day = Some(Stamp::OfDay(13_966_192_763_000));
        for (line, expected) in [
            ("close(3) = 0", (None, None)),
            ("12 close(3) = 0", (Some(12), None)),
            ("[pid  1163] close(3) = 0", (Some(1163), None)),
            ("1795837965.011397 close(3) = 0", (None, unix)),
            ("1111  1795837965.011397 close(3) = 0", (Some(1111), unix)),
            ("1795837965 close(3) = 0", (None, Some(Stamp::Unix(1_795_837_965_000_000_000)))),
            ("03:52:46.192763 close(3) = 0", (None, day)),
            ("[pid 7] 03:52:46 close(3) = 0", (Some(7), Some(Stamp::OfDay(13_966_000_000_000)))),
            ("     0.005757 close(3) = 0", (None, Some(Stamp::Since(5_757_000)))),
            ("1264       0.000017 close(3) = 0", (Some(1264), Some(Stamp::Since(17_000)))),
            ("1275  03:52:46.192763 (+     0.000225) close(3) = 0", (Some(1275), day)),
            ("1111  1795837965.011397 [   3] [00007fb2e857ead7] close(3) = 0", (Some(1111), unix)),
            ("[????????????????] close(3) = 0", (None, None)),
        ] {
            assert_eq!(at(line), (expected.0, expected.1, "close(3) = 0"), "{line}");
        }
    }

    #[test]
    fn names_of_threads_may_contain_anything() {
        for (line, name) in [("1270<sh> 03:52:48 x()", "sh"), ("[pid  1270<a> b>] 03:52:48 x()", "a> b")] {
            let (front, rest) = front(line.as_bytes());
            assert_eq!((front.tid, front.name, rest), (Some(1270), Some(name.as_bytes()), &b"x()"[..]), "{line}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_no_pids_and_no_times() {
        assert_eq!(at("99999999999999999999999 x()").0, None);
        assert_eq!(at("[pid 99999999999] x()").0, None);
        assert_eq!(at("25:00:00 x()").1, None);
        assert_eq!(at("99999999999999999.5 x()").1, None);
        assert_eq!(at("1795837965.0123456789 x()").1, None);
    }

    #[test]
    fn each_kind_of_line_is_recognized() {
        let call = |text: &'static str| What::Call { name: b"wait4", text: text.as_bytes() };
        for (line, expected) in [
            ("wait4(-1, NULL) = 5", call("wait4(-1, NULL) = 5")),
            ("wait4(-1,  <unfinished ...>", What::Unfinished { name: b"wait4", text: b"wait4(-1,  " }),
            ("<... wait4 resumed>NULL) = 5", What::Resumed { name: b"wait4", text: b"NULL) = 5" }),
            ("<... wait4 resumed> NULL) = 5", What::Resumed { name: b"wait4", text: b" NULL) = 5" }),
            ("+++ exited with 3 +++", What::Exited(3 << 8)),
            ("+++ killed by SIGKILL +++", What::Exited(9)),
            ("+++ killed by SIGSEGV (core dumped) +++", What::Exited(11 + 128)),
            ("+++ killed by SIGRT_3 +++", What::Exited(35)),
            ("+++ superseded by execve in pid 77 +++", What::Superseded { by: 77 }),
            ("--- SIGCHLD {si_signo=SIGCHLD} ---", What::Signal(b"SIGCHLD {si_signo=SIGCHLD}")),
            ("--- stopped by SIGTTIN ---", What::Signal(b"stopped by SIGTTIN")),
            ("strace: Process 12 attached", What::Message),
            ("/usr/bin/strace: Process 12 attached", What::Message),
            ("Process 12 attached", What::Message),
            ("strace: Process 12 detached", What::Message),
            ("[ Process PID=5 runs in 32 bit mode. ]", What::Message),
            ("> /lib/ld-linux-x86-64.so.2(_dl_catch_error+0x26f0) [0x1ab70]", What::Message),
        ] {
            assert_eq!(what(line.as_bytes()), Some(expected), "{line}");
        }
        for line in ["", "hello", "make: *** [all] Error 1", "a b(c) = 0", "+++ exited with x +++", "(x)", "--- SIG"] {
            assert_eq!(what(line.as_bytes()), None, "{line}");
        }
    }
}
