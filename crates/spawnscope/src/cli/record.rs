//! `spawnscope record`: prepares the collector, the recorder and the command, runs the session, and
//! prints the report.

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::args::{DEFAULT_FILE, RecordArguments};
use super::exit::{self, Status};
use super::metrics::{self, Publisher};
use super::node_hook::NodeHook;
use super::output::{escape_line, print_failure, print_message};
use super::output_file::OutputFile;
use super::recordings::{RecordingSettings, Recordings, as_in_command, unix_ns_now};
use super::resources::{self, MemoryPlan};
use super::ring::Ring;
use super::session::{Outcome, RunningProcesses, Session, TracedCommand, Watcher};
use super::{collectors, git_exclude, identity, labels, report};
use crate::allowed_cpus::allowed_cpus;
use crate::calibrate::{Calibrator, UnrecordedCall, recorded_launches};
use crate::collect::{Collector, Follow, ROOT, Settings};
use crate::event::{Calibration, Event, EventKind, Nanos, Pid, TaskId};
use crate::held::{HeldCommand, Identity};
use crate::owner::{Owner, act_as};
use crate::process::pidfd;
use crate::record::reader::Scope;
use crate::record::{Ending, FinishedFiles, Header, RecordError, Recorder, Redaction, WriterOptions, numbered_file};
use crate::signals::Signals;
use crate::{clock, units};

pub fn run(arguments: &RecordArguments) -> Result<Status> {
    // Signals are caught once for all runs, because catching blocks them: the next run would take
    // them for signals that the caller of spawnscope blocked, and the command would inherit that.
    let signals = Signals::catch().context("failed to catch signals")?;
    match arguments.runs {
        Some(runs) => record_runs(arguments, runs, &signals),
        None => record_watched(arguments, &signals, None),
    }
}

/// Records the command several times (`--runs`), each time to a separate file, so that `diff` and
/// `check` can distinguish change from noise. If the command fails in a run, there are no further
/// runs, because that run did not do the same work as the others.
fn record_runs(arguments: &RecordArguments, runs: u32, signals: &Signals) -> Result<Status> {
    for run in 1..=runs {
        let run_arguments =
            RecordArguments { output: numbered_file(&arguments.output, run.into()), quiet: true, ..arguments.clone() };
        let status = record_watched(&run_arguments, signals, None)?;
        if !arguments.quiet {
            print_message(&format!("recorded run {run} of {runs} to {}", escape_line(run_arguments.output.display())));
        }
        if status != Status::SUCCESS {
            if run < runs && !arguments.quiet {
                print_message("the command failed: no further runs");
            }
            return Ok(status);
        }
    }
    Ok(Status::SUCCESS)
}

/// What a recording needs before the command starts.
struct Prepared {
    json: Option<OutputFile>,
    hook: Option<NodeHook>,
    held: Option<HeldCommand>,
    collector: Box<dyn Collector>,
    publisher: Option<Publisher>,
    ring: Option<Ring>,
    file: PathBuf,
    recorder: Recorder,
    settings: RecordingSettings,
}

fn prepare(arguments: &RecordArguments, signals: &Signals, watcher: &mut Option<&mut dyn Watcher>) -> Result<Prepared> {
    if arguments.command.is_empty() && arguments.pid.is_none() && !arguments.all {
        bail!("nothing to record: give a command (`spawnscope record -- CMD`), a process (-p PID) or the machine (-a)");
    }
    labels::check(&arguments.labels)?;
    let json = json_file(arguments)?;
    let metrics_file = metrics::claim(arguments)?;
    let identity = identity_of_command(arguments)?;
    let hook = arguments.node_lines.then(NodeHook::create).transpose()?;
    let held = hold_command(arguments, identity.clone(), hook.as_ref(), signals)?;
    let memory_plan = resources::check(arguments, |notice| {
        if !arguments.quiet {
            print_message(notice);
        }
    })?;
    let Calibrated { collector, calibration, overhead } = attach_and_calibrate(arguments, held.as_ref(), memory_plan)?;
    let options = WriterOptions {
        owner: identity.as_ref().map(identity::owner),
        memory: memory_plan.memory,
        is_elsewhere: false,
    };
    let followed = held.as_ref().map(HeldCommand::pid).or(arguments.pid.map(Pid));
    let header = Header { calibration, ..header(arguments, collector.as_ref(), followed)? };
    let ring = open_ring(arguments, options.owner.as_ref())?;
    let file = ring.as_ref().map_or_else(|| arguments.output.clone(), Ring::current);
    let recorder = create_recorder(arguments, &file, &header, &options)?;
    let publishing = metrics_file.map(|file| Publisher::start(file, arguments.metrics_commands, &header));
    let (publisher, follower) = publishing.transpose()?.unzip();
    let follower = watcher.as_mut().map(|watcher| watcher.follower(&header)).or(follower);
    if let Some(follower) = &follower {
        recorder.follow(follower.clone());
    }
    keep_out_of_git(arguments, options.owner.as_ref());
    print_missing(collector.as_ref(), arguments.quiet);
    let settings = RecordingSettings { header, overhead, redaction: redaction(arguments), options, follower };
    Ok(Prepared { json, hook, held, collector, publisher, ring, file, recorder, settings })
}

/// Records the command once. The watcher, if there is one, gets the rows and may end the recording.
pub fn record_watched(
    arguments: &RecordArguments,
    signals: &Signals,
    mut watcher: Option<&mut dyn Watcher>,
) -> Result<Status> {
    let prepared = prepare(arguments, signals, &mut watcher)?;
    let Prepared { json, hook, held, mut collector, publisher, ring, file, recorder, settings } = prepared;
    let (recorder, process, command, started) = release(held, arguments, recorder)?;
    if let Some(watcher) = &mut watcher {
        watcher.begin()?;
    }
    if command.is_none() && !arguments.quiet {
        print_message("recording; Ctrl-C ends the recording");
    }
    let (owner, overhead) = (settings.options.owner.clone(), settings.overhead.clone());
    let mut recordings = Recordings::new(recorder, &file, started, ring, settings);
    let mut session = Session {
        collector: collector.as_mut(),
        recordings: &mut recordings,
        signals,
        publisher: publisher.as_ref(),
        losses_due: Instant::now(),
        watcher: watcher.as_deref(),
        process,
        command,
        deadline: arguments.duration.map(|duration| Instant::now() + duration),
        waits_for_all: arguments.wait_for_all,
        is_quiet: arguments.quiet,
        running: RunningProcesses::default(),
    };
    let outcome = session.run()?;
    if let Some(hook) = hook.filter(|_| outcome.wait_status.is_none() || session.running.process_count() > 0) {
        hook.keep();
    }
    let overhead = as_in_command(&overhead, collector.as_ref());
    // The collector's buffers are not needed any more, and the report needs memory.
    drop(collector);
    let end = End { outcome: &outcome, json, publisher, overhead };
    finish(arguments, recordings, end, owner.as_ref())
}

/// Checks the file of `--json`. This happens before the command starts, so that no run is wasted if
/// the name is bad.
fn json_file(arguments: &RecordArguments) -> Result<Option<OutputFile>> {
    if arguments.json.as_ref() == Some(&arguments.output) {
        bail!("--json and -o name the same file, {}", arguments.output.display());
    }
    arguments.json.as_deref().map(OutputFile::claim).transpose()
}

fn identity_of_command(arguments: &RecordArguments) -> Result<Option<Identity>> {
    let decision = identity::decide(&arguments.identity)?;
    if let Some(notice) = decision.notice.filter(|_| !arguments.quiet && !arguments.command.is_empty()) {
        print_message(&notice);
    }
    Ok(decision.identity)
}

fn hold_command(
    arguments: &RecordArguments,
    identity: Option<Identity>,
    hook: Option<&NodeHook>,
    signals: &Signals,
) -> Result<Option<HeldCommand>> {
    if arguments.command.is_empty() {
        return Ok(None);
    }
    let variables: Vec<_> = hook.map(NodeHook::variable).into_iter().collect();
    let mask = signals.inherited_mask();
    let held = HeldCommand::start(&arguments.command, identity, &variables, mask)?;
    Ok(Some(held))
}

/// The attached collector, the constants of the machine, and what recording adds to operations.
struct Calibrated {
    collector: Box<dyn Collector>,
    calibration: Vec<Calibration>,
    overhead: Vec<Calibration>,
}

/// Attaches the collector. The machine's constants are measured meanwhile. With `--all`, they are
/// measured before, because the collector would record the measurement.
fn attach_and_calibrate(
    arguments: &RecordArguments,
    held: Option<&HeldCommand>,
    memory_plan: MemoryPlan,
) -> Result<Calibrated> {
    // Failures are ignored here: what cannot be measured is unknown, and the rest of the recording
    // is not affected.
    let mut calibrator = Calibrator::start().ok();
    let before = calibrator.take_if(|_| arguments.all).map(Calibrator::finish);
    let unrecorded = UnrecordedCall::measure();
    let collector = attach(arguments, held, memory_plan)?;
    let meanwhile = calibrator.map(Calibrator::finish);
    let calibration = before.or(meanwhile).unwrap_or_default();
    let mut overhead = Vec::new();
    let _ = collector.as_followed(&mut || overhead.extend(unrecorded.compare()));
    overhead.extend(recorded_launches(|launch| collector.as_followed(launch).is_ok()));
    Ok(Calibrated { collector, calibration, overhead })
}

fn attach(
    arguments: &RecordArguments,
    held: Option<&HeldCommand>,
    memory_plan: MemoryPlan,
) -> Result<Box<dyn Collector>> {
    let follow = match (arguments.all, arguments.pid, held.map(HeldCommand::pid)) {
        (true, _, command) => Follow::System(command),
        (false, Some(pid), _) => Follow::Process(Pid(pid)),
        (false, None, command) => Follow::Command(command.unwrap_or(Pid(0))),
    };
    let settings = Settings {
        buffer_bytes: memory_plan.buffer_kib * 1024,
        script_lines: !arguments.no_lines,
        command: held.map(|held| held.path().to_owned()),
        with: collectors::processes_with(&arguments.with)?,
        stacks: arguments.stacks,
        sample: arguments.sample,
        failed_execs: !arguments.no_failed_execs,
        launcher_calls: arguments.launcher_calls,
        node_lines: arguments.node_lines,
    };
    collectors::attach(arguments, follow, &settings)
}

fn create_recorder(
    arguments: &RecordArguments,
    file: &Path,
    header: &Header,
    options: &WriterOptions,
) -> Result<Recorder> {
    let created = Recorder::create(file, header, redaction(arguments), options);
    // The error names the file and what failed.
    let Some(user) = options.owner.as_ref().map(|owner| owner.uid) else { return Ok(created?) };
    created.with_context(|| {
        format!(
            "failed to create the recording as user {user}, which the command runs as (choose another path with -o)"
        )
    })
}

fn redaction(arguments: &RecordArguments) -> Redaction {
    if arguments.no_redact { Redaction::Keep } else { Redaction::Mask }
}

/// Opens the ring of `--keep`, and deletes old recordings that exceed its size.
fn open_ring(arguments: &RecordArguments, owner: Option<&Owner>) -> Result<Option<Ring>> {
    let Some(keep) = arguments.keep else { return Ok(None) };
    let _owner_guard = act_as(owner).context("failed to switch to the ids of the recordings' owner")?;
    let ring = Ring::open(&arguments.output, keep)?;
    ring.trim()?;
    Ok(Some(ring))
}

/// Makes git ignore a recording with the default name. Failures are not reported.
fn keep_out_of_git(arguments: &RecordArguments, owner: Option<&Owner>) {
    let default = Path::new(DEFAULT_FILE);
    let pattern = match arguments.runs {
        // A ring is numbered like several runs.
        None if arguments.output == default && arguments.keep.is_some() => git_exclude::SEVERAL_RUNS_PATTERN,
        None if arguments.output == default => git_exclude::ONE_RUN_PATTERN,
        Some(runs) if (1..=runs).any(|run| arguments.output == numbered_file(default, run.into())) => {
            git_exclude::SEVERAL_RUNS_PATTERN
        }
        _ => return,
    };
    let changed =
        act_as(owner).and_then(|_owner_guard| git_exclude::add_default_recording(&std::env::current_dir()?, pattern));
    if let Ok(Some(list)) = changed
        && !arguments.quiet
    {
        print_message(&format!("added {pattern} to {}, so that git ignores the recording", list.display()));
    }
}

fn print_missing(collector: &dyn Collector, quiet: bool) {
    if quiet || collectors::prints_notice(collector) {
        return;
    }
    for missing in collector.missing() {
        print_message(&missing.to_string());
    }
}

fn header(arguments: &RecordArguments, collector: &dyn Collector, followed: Option<Pid>) -> Result<Header> {
    let machine = rustix::system::uname();
    let cpus = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN).ok().flatten().unwrap_or(1);
    let cwd = std::env::current_dir().map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default();
    Ok(Header {
        collector: collector.name().to_owned(),
        scope: match (arguments.all, arguments.pid) {
            (true, _) => Scope::System,
            (false, Some(_)) => Scope::Process,
            (false, None) => Scope::Command,
        },
        command: arguments.command.iter().map(|argument| argument.as_bytes().to_vec()).collect(),
        cwd,
        kernel: machine.release().to_string_lossy().into_owned(),
        arch: machine.machine().to_string_lossy().into_owned(),
        hostname: machine.nodename().to_string_lossy().into_owned(),
        labels: labels::collect(&arguments.labels),
        cpus: u32::try_from(cpus).unwrap_or(1),
        allowed_cpus: followed.and_then(allowed_cpus),
        started_unix_ns: unix_ns_now()?,
        origin: clock::now(),
        missing: collector.missing().to_vec(),
        calibration: Vec::new(),
    })
}

/// Releases the held command. From here on, a failure of spawnscope must not affect the command. If
/// the command cannot be executed, the earlier recording is restored.
fn release(
    held: Option<HeldCommand>,
    arguments: &RecordArguments,
    recorder: Recorder,
) -> Result<(Recorder, Option<OwnedFd>, Option<TracedCommand>, Nanos)> {
    let started = clock::now();
    let Some(held) = held else {
        // There is no pidfd for a process that no longer exists.
        let process = arguments.pid.map(|pid| pidfd(Pid(pid))).transpose();
        let process = process.context("the process ended before it could be followed")?;
        return Ok((recorder, process, None, started));
    };
    let command = TracedCommand { pid: held.pid(), launch: ROOT };
    recorder.set_root(ROOT);
    let kind = EventKind::Released { pid: command.pid };
    recorder.send(vec![Event { at: started, launch: ROOT, task: TaskId(ROOT.0), kind }]);
    match held.release() {
        Ok(process) => Ok((recorder, Some(process), Some(command), started)),
        Err(error) => {
            recorder.discard().context("failed to restore the earlier recording")?;
            Err(error.into())
        }
    }
}

/// What is needed after the session has ended.
struct End<'a> {
    outcome: &'a Outcome,
    json: Option<OutputFile>,
    publisher: Option<Publisher>,
    overhead: Vec<Calibration>,
}

/// Closes the recording, prints the report, and returns the command's exit status. Failures of
/// spawnscope are printed but do not replace the command's status.
fn finish(arguments: &RecordArguments, mut last: Recordings, end: End<'_>, owner: Option<&Owner>) -> Result<Status> {
    let End { outcome, json, publisher, overhead } = end;
    let arguments = &RecordArguments { output: last.file.clone(), ..arguments.clone() };
    let recorded_until = outcome.recorded_until.unwrap_or_else(clock::now);
    let ended = outcome.collector_failure.as_ref().map(|error| format!("failed: {error}"));
    let (lost, earlier_count) = (last.lost(&outcome.lost), last.complete());
    let written = last.recorder.finish(Ending {
        wall: Some(recorded_until.since(last.started)),
        ended: ended.unwrap_or_else(|| outcome.end_reason.to_owned()),
        allowed_cpus: outcome.allowed_cpus,
        lost,
        calibration: overhead,
    });
    let mut failed = outcome.has_failed || written.is_err();
    // The recorder is finished, so the publisher gets the last rows, and its thread ends.
    if let Some(Err(error)) = publisher.map(Publisher::finish) {
        print_failure(&error);
        failed = true;
    }
    print_incomplete(arguments, outcome, &written);
    // If the recording was moved away, another recording may have its name.
    let is_in_place = !matches!(written, Err(RecordError::Moved { .. }));
    if is_in_place && (json.is_some() || !arguments.quiet) {
        let printed = print_report(arguments, json.as_ref(), owner);
        failed |= printed.is_err();
        if let Ok(launches) = printed
            && written.is_ok()
            && !arguments.quiet
        {
            print_recorded(arguments, outcome, launches, earlier_count);
        }
    }
    let is_interrupted = outcome.end_reason == "interrupted" && !arguments.command.is_empty();
    Ok(match (outcome.wait_status, failed) {
        (Some(status), _) => Status::of_command(status),
        (None, true) => Status::Code(exit::FAILED),
        (None, false) if is_interrupted => Status::Code(exit::INTERRUPTED),
        (None, false) => Status::SUCCESS,
    })
}

/// Prints why the recording is incomplete, or which file must stay next to it.
fn print_incomplete(arguments: &RecordArguments, outcome: &Outcome, written: &Result<FinishedFiles, RecordError>) {
    match written {
        Err(error) if !outcome.has_failed => {
            print_message(&format!("the recording is incomplete: {}", escape_line(error)));
        }
        Ok(FinishedFiles::WithLog(log)) => print_message(&format!(
            "another program is reading {}: until it ends, keep {} next to the recording",
            arguments.output.display(),
            log.display()
        )),
        _ => {}
    }
}

fn print_recorded(arguments: &RecordArguments, outcome: &Outcome, launches: u64, earlier_count: usize) {
    let launches = units::counted(launches, "launch", "launches");
    let ended = outcome.wait_status.map_or_else(String::new, exit::outcome_clause);
    let earlier = match earlier_count {
        0 => String::new(),
        1 => " (1 earlier recording is kept)".to_owned(),
        many => format!(" ({} earlier recordings are kept)", units::count(many as u64)),
    };
    print_message(&format!("recorded {launches} to {}{earlier}{ended}", arguments.output.display()));
}

/// Prints the report, and returns the number of launches. Reads the recording with the ids of its
/// owner, who may have replaced the file.
fn print_report(arguments: &RecordArguments, json: Option<&OutputFile>, owner: Option<&Owner>) -> Result<u64> {
    let file = &arguments.output;
    let mut out = anstream::stderr().lock();
    let shown = (!arguments.quiet).then_some(&mut out as &mut dyn Write);
    let bytes = fs::metadata(file).map_or(0, |metadata| metadata.len());
    let printed = resources::why_report_does_not_fit(bytes)
        .map_or(Ok(()), |why| Err(anyhow::anyhow!(why)))
        .and_then(|()| act_as(owner).context("failed to switch to the ids of the recording's owner"))
        .and_then(|_owner_guard| report::print_after_recording(file, shown, json))
        .and_then(|launches| {
            out.flush().context("failed to write the report")?;
            Ok(launches)
        });
    drop(out);
    printed.inspect_err(|error| print_message(&format!("no report: {}", escape_line(format!("{error:#}")))))
}
