//! `spawnscope record`: prepares collector, recorder and command, runs the session, prints the report.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::args::RecordArguments;
use super::progress::{self, Progress};
use super::session::{Command, Outcome, Session};
use super::signals::Signals;
use super::{exit, identity, report};
use crate::collect::ebpf::{self, EbpfCollector};
use crate::collect::held::HeldCommand;
use crate::collect::{CollectError, Collector, Follow, Settings};
use crate::event::{Event, EventKind, Nanos, Pid, TaskId};
use crate::record::Redaction;
use crate::record::reader::Scope;
use crate::record::writer::{Ending, Header, Recorder};

/// Runs the verb.
///
/// # Errors
/// When spawnscope itself fails; what the command does is no error of ours.
pub fn run(arguments: &RecordArguments) -> Result<ExitCode> {
    if arguments.command.is_empty() && arguments.pid.is_none() && !arguments.all {
        bail!("nothing to record: name a command (`spawnscope record -- CMD`), a process (-p PID) or the machine (-a)");
    }
    let signals = Signals::catch()?;
    let identity = identity::behind_sudo()?;
    let held = match arguments.command.is_empty() {
        true => None,
        false => Some(HeldCommand::start(
            &arguments.command,
            identity.clone(),
            signals.inherited_mask(),
        )?),
    };
    let terminal = progress::terminal(arguments.quiet);
    let settings = Settings {
        buffer_bytes: arguments.buffer * 1024,
        terminal,
    };
    let mut collector = EbpfCollector::attach(follow(arguments, held.as_ref()), &settings).map_err(explain)?;
    let origin = ebpf::now();
    let recorder = Recorder::create(
        &arguments.output,
        &header(arguments, &collector, origin)?,
        redaction(arguments),
    )
    .context("failed to begin the recording")?;
    if let Some(identity) = &identity {
        identity::give(&arguments.output, identity)?;
    }
    say_missing(&collector, arguments.quiet);
    let (process, command, started) = release(held, arguments, &recorder)?;
    let mut session = Session {
        collector: &mut collector,
        recorder: &recorder,
        signals: &signals,
        progress: Progress::new(terminal.is_some()),
        process,
        command,
        deadline: arguments.duration.map(|duration| Instant::now() + duration),
    };
    let outcome = session.run()?;
    finish(arguments, recorder, &outcome, started)
}

fn follow(arguments: &RecordArguments, held: Option<&HeldCommand>) -> Follow {
    match (arguments.all, arguments.pid, held.map(HeldCommand::pid)) {
        (true, _, command) => Follow::System(command),
        (false, Some(pid), _) => Follow::Process(Pid(pid)),
        (false, None, command) => Follow::Command(command.unwrap_or(Pid(0))),
    }
}

fn redaction(arguments: &RecordArguments) -> Redaction {
    if arguments.no_redact {
        Redaction::Keep
    } else {
        Redaction::Mask
    }
}

fn explain(error: CollectError) -> anyhow::Error {
    anyhow::Error::new(error).context("failed to collect with eBPF")
}

fn say_missing(collector: &dyn Collector, quiet: bool) {
    for missing in collector.missing().iter().filter(|_| !quiet) {
        eprintln!(
            "spawnscope: this kernel does not take {}: unknown is {}",
            missing.what, missing.effect
        );
    }
}

fn header(arguments: &RecordArguments, collector: &dyn Collector, origin: Nanos) -> Result<Header> {
    let machine = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let cpus = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN)
        .ok()
        .flatten()
        .unwrap_or(1);
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("the clock is before 1970")?;
    let now = ebpf::now();
    let cwd = std::env::current_dir()
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .unwrap_or_default();
    Ok(Header {
        collector: collector.name().to_owned(),
        scope: match (arguments.all, arguments.pid) {
            (true, _) => Scope::System,
            (false, Some(_)) => Scope::Process,
            (false, None) => Scope::Command,
        },
        command: arguments
            .command
            .iter()
            .map(|argument| argument.as_bytes().to_vec())
            .collect(),
        cwd,
        kernel: text(machine.release()),
        arch: text(machine.machine()),
        hostname: text(machine.nodename()),
        cpus: u32::try_from(cpus).unwrap_or(1),
        started_unix_ns: i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX) - now.since(origin).0 as i64,
        origin,
        missing: collector.missing().to_vec(),
    })
}

/// Lets the command go. From here on it must not be harmed.
fn release(
    held: Option<HeldCommand>,
    arguments: &RecordArguments,
    recorder: &Recorder,
) -> Result<(Option<OwnedFd>, Option<Command>, Nanos)> {
    let Some(held) = held else {
        let process = arguments.pid.map(pidfd).transpose()?;
        return Ok((process, None, ebpf::now()));
    };
    let command = Command {
        pid: held.pid(),
        launch: ebpf::ROOT,
    };
    recorder.note_root(ebpf::ROOT);
    let started = ebpf::now();
    let kind = EventKind::Released { pid: command.pid };
    recorder.send(vec![Event {
        at: started,
        launch: ebpf::ROOT,
        task: TaskId(ebpf::ROOT.0),
        kind,
    }]);
    Ok((Some(held.release()?), Some(command), started))
}

fn pidfd(pid: i32) -> Result<OwnedFd> {
    rustix::process::Pid::from_raw(pid)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()))
        .with_context(|| format!("failed to watch process {pid}"))
}

/// Closes the recording, prints the report, and gives the command's exit status. Our own failures are told, but do
/// not replace a command's status.
fn finish(arguments: &RecordArguments, recorder: Recorder, outcome: &Outcome, started: Nanos) -> Result<ExitCode> {
    let end = outcome
        .command_ended
        .filter(|_| outcome.ended == "exited")
        .unwrap_or_else(ebpf::now);
    let ended = outcome
        .collector_failure
        .as_ref()
        .map(|error| format!("failed: {error}"));
    let written = recorder.finish(Ending {
        wall: Some(end.since(started)),
        ended: ended.unwrap_or_else(|| outcome.ended.to_owned()),
        lost: outcome.lost.clone(),
    });
    let mut failed = outcome.collector_failure.is_some();
    if let Some(error) = &outcome.collector_failure {
        eprintln!("spawnscope: the recording ends early: failed to {error}");
    }
    if let Err(error) = written {
        let error = anyhow::Error::new(error);
        eprintln!("spawnscope: the recording ends early: {error:#}; the command was not affected");
        failed = true;
    }
    if !arguments.quiet {
        print_report(arguments).unwrap_or_else(|error| {
            eprintln!("spawnscope: no report: {error:#}");
            failed = true;
        });
    }
    Ok(match (outcome.wait_status, failed) {
        (Some(status), _) => exit::of_command(status),
        (None, true) => ExitCode::from(exit::FAILED),
        (None, false) if outcome.ended == "interrupted" && !arguments.command.is_empty() => ExitCode::from(130),
        (None, false) => ExitCode::SUCCESS,
    })
}

fn print_report(arguments: &RecordArguments) -> Result<()> {
    let mut out = anstream::stderr().lock();
    report::print_after_recording(&arguments.output, arguments.json, &mut out)?;
    out.flush().context("failed to write the report")
}
