//! Wording that several outputs share: what a launch ran, and how it ended.

use nix::errno::Errno;
use nix::sys::signal::Signal;

use super::text;
use crate::analyze::Origin;
use crate::analyze::model::launch::{Launch, Outcome};
use crate::analyze::model::phases::Phase;
use crate::analyze::path::groups::THE_RECORDER;
use crate::event::syscalls;

/// Returns the name of a signal, such as `SIGKILL`. Real-time signals have only numbers.
pub fn signal_name(number: u8) -> String {
    Signal::try_from(i32::from(number)).map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned())
}

/// Describes how a process ended. Returns an empty string for success.
pub(super) fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Running => "running".to_owned(),
        Outcome::Code(0) => String::new(),
        Outcome::Code(code) => format!("exit {code}"),
        Outcome::Signal { number, core_dumped: true } => format!("{} (core dumped)", signal_name(number)),
        Outcome::Signal { number, core_dumped: false } => signal_name(number),
        Outcome::Unknown => "exit -".to_owned(),
    }
}

/// Returns a mark for a launch that entered the recording in an unusual way.
pub(super) fn origin_mark(origin: Origin) -> Option<&'static str> {
    match origin {
        Origin::Launched | Origin::Command => None,
        Origin::Existed => Some("[existed before]"),
        Origin::Orphan => Some("[creation not recorded]"),
    }
}

/// Returns the name of a system call, or `system call 999` if it has no known name.
pub(super) fn syscall_name(number: u16) -> String {
    syscalls::name(number).map_or_else(|| format!("system call {number}"), str::to_owned)
}

pub(super) fn errno_name(errno: i32) -> String {
    match Errno::from_raw(errno) {
        Errno::UnknownErrno => format!("errno {errno}"),
        known => format!("{known:?}"),
    }
}

/// Describes an `execve` error. Replaces the system's text where it would mislead.
pub(super) fn errno_meaning(errno: i32) -> String {
    match errno {
        libc::ENOENT => "no such file, or no such interpreter".to_owned(),
        libc::EACCES => "permission denied".to_owned(),
        libc::ENOEXEC => "not an executable format".to_owned(),
        libc::ETXTBSY => "open for writing".to_owned(),
        libc::E2BIG => "arguments too long".to_owned(),
        _ => Errno::from_raw(errno).desc().to_lowercase(),
    }
}

/// Describes the usual reasons for a long phase.
pub(super) fn phase_causes(phase: Phase) -> &'static str {
    match phase {
        Phase::Create => "the parent's call itself",
        Phase::Queue => "too few CPUs",
        Phase::Setup => "closing files, signals, failed execs",
        Phase::Exec => "permission scanners, a cold disk, chains of #!",
        Phase::Load => "libraries, relocations",
        Phase::Run => "the work itself",
        Phase::Teardown => "a large address space",
        Phase::Reap => "a parent that reaps late",
    }
}

/// Describes what a launch ran, as one escaped line: its chain of programs, and the arguments of
/// the last one.
pub(super) fn program(launch: &Launch<'_>, width_limit: Option<usize>) -> String {
    let Some((last, earlier)) = launch.execs.split_last() else {
        return text::escape(&launch.command.label());
    };
    let mut chain = String::new();
    for exec in earlier {
        chain.push_str(&text::escape(exec.file_name()));
        chain.push_str(" → ");
    }
    let width_left = width_limit.map(|limit| limit.saturating_sub(text::width(&chain)));
    // argv[0] can be anything, even empty.
    if last.arguments().next().is_some_and(|own| !own.is_empty()) {
        chain.push_str(&text::command_line(last.arguments(), width_left));
    } else {
        let arguments = std::iter::once(last.file_name()).chain(last.arguments().skip(1));
        chain.push_str(&text::command_line(arguments, width_left));
    }
    if last.argv_cut {
        chain.push_str(" …");
    }
    chain
}

/// Explains the names in parentheses that a table shows: forks, with the first one as an example,
/// and the recorder.
pub(super) fn explain_parentheses<'a>(labels: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let (mut fork, mut recorder) = (None, None);
    for label in labels {
        if label == THE_RECORDER {
            recorder.get_or_insert_with(|| "(recorder): spawnscope, which started the command".to_owned());
        } else if let Some(name) = label.strip_prefix(b"(").and_then(|label| label.strip_suffix(b")")) {
            fork.get_or_insert_with(|| {
                let name = text::escape(name);
                format!("({name}): a fork of {name} that runs no other program")
            });
        }
    }
    fork.into_iter().chain(recorder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_name_is_a_number() {
        assert_eq!(syscall_name(0), "read");
        assert_eq!(syscall_name(999), "system call 999");
    }
}
