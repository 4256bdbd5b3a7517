//! `spawnscope hold`: holds a new process before its first instruction, and prints how to attach
//! and how to continue it.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueHint};

use super::args::parse_seconds;
use super::exit::Status;
use super::identity::{self, IdentityArguments};
use super::output::{print_message, width};
use crate::event::Pid;
use crate::hold::{self, ATTACH_TIMEOUT, ContinuedBy, HoldError, LaunchSelector, Notice, Request, Run};
use crate::present::text;
use crate::record::Redaction;
use crate::signals::Signals;
use crate::units;

pub fn run(arguments: &HoldArguments) -> Result<Status> {
    let signals = Signals::catch().context("failed to catch signals")?;
    let decision = identity::decide(&arguments.identity)?;
    if let Some(notice) = &decision.notice {
        print_message(notice);
    }
    let request = Request {
        command: &arguments.command,
        identity: decision.identity,
        selector: arguments
            .pattern
            .as_ref()
            .map(|pattern| {
                LaunchSelector::new(pattern, arguments.nth)
                    .with_context(|| format!("failed to read the pattern '{pattern}'"))
            })
            .transpose()?,
        run: arguments.run.as_deref().map(|text| Run { text, grace: arguments.grace }),
    };
    match hold::run(request, &signals, &mut |notice| print_message(&message_for(arguments, &notice))) {
        Ok(status) => Ok(Status::of_command(status)),
        // `exit::status_of_failure` derives the exit status from the type of this error.
        Err(HoldError::Start(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

const TRACER: &str = "this program, or its leak sanitizer, traces processes, and a process can have only one tracer: \
                      launches of this program are not held";
const LOST_PRIVILEGE: &str = "this program is set-user-id or set-group-id, and runs without that privilege because it is \
                              traced; run spawnscope as root to keep it";

fn message_for(arguments: &HoldArguments, notice: &Notice) -> String {
    match notice {
        Notice::Stopped { pid: Pid(pid), arguments, continued_by, needs_root } => {
            let sudo = if *needs_root { "sudo " } else { "" };
            format!(
                "process {pid} is stopped before its first instruction: {}{}",
                command_line(arguments),
                how_to_attach_and_continue(*pid, *continued_by, sudo)
            )
        }
        Notice::Attached(Pid(pid)) => format!("attached: continuing process {pid}"),
        Notice::AttachTimedOut(Pid(pid)) => format!(
            "the --run command did not attach within {} s: continuing process {pid} anyway",
            ATTACH_TIMEOUT.as_secs()
        ),
        Notice::EndedBeforeAttach(Pid(pid), status) => {
            format!("the --run command ended ({}): continuing process {pid}", outcome(*status))
        }
        Notice::ToolNotStarted(Pid(pid), why) => {
            format!("failed to start the --run command ({why}): continuing process {pid}")
        }
        Notice::ToolFailed(status) => format!("the --run command ended ({})", outcome(*status)),
        Notice::Sending(signal) => format!("the --run command is still running: sending {signal}"),
        Notice::ToolLeftRunning(Pid(pid)) => {
            format!("the --run command is still running after all signals: process {pid} is left running")
        }
        Notice::Continued(Pid(pid)) => format!("process {pid} was continued by another process"),
        Notice::Ended(Pid(pid), Some(status)) => format!("process {pid} ended while held ({})", outcome(*status)),
        Notice::Ended(Pid(pid), None) => {
            format!("process {pid} ended while held, or soon after it was continued")
        }
        Notice::NoMatch { count } => no_match_message(arguments, *count),
        Notice::Tracer { arguments } => format!("{TRACER}: {}", command_line(arguments)),
        Notice::LostPrivilege { arguments } => format!("{LOST_PRIVILEGE}: {}", command_line(arguments)),
    }
}

fn how_to_attach_and_continue(pid: i32, continued_by: ContinuedBy, sudo: &str) -> String {
    // Without the `handle` command, gdb would stop at the SIGCONT that continues the process.
    let gdb = format!("{sudo}gdb -p {pid} -ex 'handle SIGCONT nostop noprint'");
    let attach = format!("\n  perf record -g -p {pid}\n  {gdb}\n  {sudo}strace -f -p {pid}\n");
    match continued_by {
        ContinuedBy::RunCommand => String::new(),
        ContinuedBy::Enter => format!("{attach}Press Enter to continue it."),
        ContinuedBy::Signal => {
            format!("{attach}There is no terminal to read Enter from: continue it with `kill -CONT {pid}`.")
        }
    }
}

fn no_match_message(arguments: &HoldArguments, count: u32) -> String {
    let pattern = text::quote(arguments.pattern.as_deref().unwrap_or_default().as_bytes());
    match count {
        0 => format!("no launch matched {pattern}: nothing was held"),
        _ => format!(
            "--nth {} was given, but only {} matched {pattern}: nothing was held",
            arguments.nth,
            units::counted(u64::from(count), "launch", "launches")
        ),
    }
}

fn outcome(status: i32) -> String {
    if libc::WIFSIGNALED(status) {
        let number = libc::WTERMSIG(status);
        let signal = nix::sys::signal::Signal::try_from(number);
        signal.map_or_else(|_| format!("signal {number}"), |signal| signal.to_string())
    } else {
        format!("exit status {}", libc::WEXITSTATUS(status))
    }
}

/// Formats a command line with its secrets masked, as in a recording.
fn command_line(arguments: &[Vec<u8>]) -> String {
    let argv: Vec<u8> = arguments.iter().flat_map(|argument| [argument, &b"\0"[..]].concat()).collect();
    let masked = Redaction::Mask.apply(&argv);
    let shown = masked.split_inclusive(|byte| *byte == 0).map(|argument| &argument[..argument.len() - 1]);
    text::command_line(shown, Some(width(&std::io::stderr())))
}

pub(super) const USAGE: &str = "spawnscope hold [OPTIONS] -- <CMD>...";

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope hold -- ./server --port 8080
  spawnscope hold --match '*/cc1 *slow.c*' -- make
  spawnscope hold --match python3 --nth 3 -- ./build.sh
  spawnscope hold --run 'perf record -g -p {pid}' -- ./server
  spawnscope hold --run 'strace -f -o log -p {pid}' --match git -- make

The command keeps its standard input; spawnscope reads Enter from the terminal.
Without a terminal, continue the process with `kill -CONT PID`. Ctrl-C reaches
the command and everything it launched, as usual; the held process is continued
so that it receives the signal.

With --run, the process is continued once a tracer has attached to it, or once
the --run command has opened perf events and sleeps. If neither happens within
10 s, it is continued anyway.

No privilege is needed. But set-user-id programs that run before the process is
held lack their privilege, unless spawnscope runs as root. A shell with job
control, or another parent that watches for stopped children, notices the stop.
Under sudo, the command and the --run command run as the user who called sudo.
A sudoers entry for spawnscope still amounts to full root access (see
SECURITY.md).

Exit status: that of the command, as with `record`.";

#[derive(Debug, Args)]
pub struct HoldArguments {
    /// Hold a launch if its program's base name, or its arguments joined by spaces, match GLOB
    #[arg(long = "match", value_name = "GLOB", value_hint = ValueHint::Other)]
    pub pattern: Option<String>,
    /// Hold the N-th matching launch, counted from 1
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, default_value_t = 1, requires = "pattern", value_parser = clap::value_parser!(u32).range(1..))]
    pub nth: u32,
    /// Instead of waiting for Enter, run CMD in a shell to attach. `{pid}` in it stands for the
    /// pid. It runs as the same user as the command
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub run: Option<OsString>,
    /// When the process has ended, wait S seconds before sending SIGINT to the --run command, and S
    /// more before SIGTERM
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, default_value = "5", requires = "run", value_parser = parse_seconds)]
    pub grace: Duration,
    #[command(flatten)]
    pub identity: IdentityArguments,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::verbs::{Arguments, Verb};

    fn message(command: &[&str], notice: &Notice) -> String {
        let words_typed = ["spawnscope", "hold"].iter().chain(command);
        let Verb::Hold(arguments) = Arguments::try_parse_from(words_typed).unwrap().verb else { panic!("not hold") };
        message_for(&arguments, notice)
    }

    #[test]
    fn printed_debugger_commands_use_sudo_if_only_root_may_attach() {
        let [plain, restricted] = [false, true].map(|needs_root| {
            let stopped = Notice::Stopped {
                pid: Pid(7),
                arguments: vec![b"a b".to_vec(), b"\x1b[2J".to_vec()],
                continued_by: ContinuedBy::Signal,
                needs_root,
            };
            message(&["true"], &stopped)
        });
        assert!(plain.contains("\n  gdb -p 7 ") && plain.contains("\n  strace -f -p 7\n"), "{plain}");
        assert!(plain.contains("kill -CONT 7") && !plain.contains('\x1b'), "{plain}");
        assert!(restricted.contains("\n  sudo gdb -p 7 ") && restricted.contains("\n  sudo strace"), "{restricted}");
        assert!(restricted.contains("\n  perf record"), "{restricted}");
    }

    #[test]
    fn secrets_of_the_held_process_are_not_shown() {
        let stopped = Notice::Stopped {
            pid: Pid(7),
            arguments: ["mysql", "-uroot", "-phunter2"].map(|word| word.as_bytes().to_vec()).to_vec(),
            continued_by: ContinuedBy::RunCommand,
            needs_root: false,
        };
        let shown = message(&["true"], &stopped);
        assert!(shown.ends_with("mysql -uroot '-p***'"), "{shown}");
    }

    #[test]
    fn the_message_without_a_match_quotes_the_pattern() {
        let none = message(&["--match", "a *", "true"], &Notice::NoMatch { count: 0 });
        assert_eq!(none, "no launch matched 'a *': nothing was held");
        let few = message(&["--match", "a", "--nth", "3", "true"], &Notice::NoMatch { count: 2 });
        assert_eq!(few, "--nth 3 was given, but only 2 launches matched a: nothing was held");
    }
}
