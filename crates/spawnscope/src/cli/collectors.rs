//! Chooses the collector of `record` and the processes that it also follows, and prints what is
//! unknown with it.

use std::collections::{BTreeSet, HashSet};

use anyhow::{Result, bail};

use super::args::{CollectorChoice, RecordArguments};
use super::output::print_message;
use crate::analyze::model::launch::base_name;
#[cfg(feature = "ebpf")]
use crate::collect::ebpf::EbpfCollector;
use crate::collect::ptrace::PtraceCollector;
use crate::collect::{CollectError, Collector, Follow, Refusal, Settings};
use crate::event::Pid;
use crate::present::text::wrap;
use crate::process::pidfd;
use crate::procfs;

/// Whether `attach` prints what the collector does not record.
pub fn prints_notice(collector: &dyn Collector) -> bool {
    collector.name() != "ebpf"
}

/// What `print_message` puts before the first line of a notice.
const PREFIX: &str = "spawnscope: ";
/// Width of the notice, without its indentation.
const NOTICE_WIDTH: usize = 78;

/// Attaches the chosen collector. With `auto`, that is eBPF or, if it does not work, ptrace; only
/// eBPF follows processes that are already running.
pub fn attach(arguments: &RecordArguments, follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>> {
    if settings.node_lines && arguments.collector == CollectorChoice::Ptrace {
        bail!("--node-lines needs eBPF: omit --collector");
    }
    match arguments.collector {
        CollectorChoice::Ebpf => attach_ebpf(arguments, follow, settings).map_err(|error| describe(arguments, error)),
        CollectorChoice::Ptrace => Ok(announce(arguments, attach_ptrace(follow, settings)?, GRANT_EBPF)),
        CollectorChoice::Auto => match attach_ebpf(arguments, follow, settings) {
            Err(error) if may_fall_back(&error, follow, settings) => {
                attach_fallback(arguments, follow, settings, &error)
            }
            collector => collector.map_err(|error| describe(arguments, error)),
        },
    }
}

/// How to permit eBPF, which records everything.
const GRANT_EBPF: &str = "sudo, or `setcap cap_bpf,cap_perfmon+ep` on spawnscope";

fn attach_fallback(
    arguments: &RecordArguments,
    follow: Follow,
    settings: &Settings,
    ebpf: &CollectError,
) -> Result<Box<dyn Collector>> {
    let collector = attach_ptrace(follow, settings).map_err(|error| error.context(format!("failed to {ebpf}")))?;
    Ok(announce(arguments, collector, &ebpf_remedy(ebpf)))
}

/// Whether another collector may be used instead of eBPF. A failure that is not about permissions
/// or the kernel is an error that the user must see.
fn may_fall_back(error: &CollectError, follow: Follow, settings: &Settings) -> bool {
    let is_unavailable = matches!(
        error,
        CollectError::NotPermitted { .. }
            | CollectError::Unsupported(_)
            | CollectError::Refused(_)
            | CollectError::NotBuilt
    );
    is_unavailable && matches!(follow, Follow::Command(_)) && settings.with.is_empty() && !settings.node_lines
}

fn attach_ebpf(
    arguments: &RecordArguments,
    follow: Follow,
    settings: &Settings,
) -> Result<Box<dyn Collector>, CollectError> {
    let collector = load_ebpf(follow, settings);
    if arguments.verbose {
        match &collector {
            Ok(collector) => collector.refusals().iter().for_each(print_refusal),
            Err(CollectError::Refused(refusal)) => print_refusal(refusal),
            Err(_) => {}
        }
    }
    collector
}

#[cfg(feature = "ebpf")]
fn load_ebpf(follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>, CollectError> {
    EbpfCollector::attach(follow, settings).map(|collector| Box::new(collector) as Box<dyn Collector>)
}

#[cfg(not(feature = "ebpf"))]
fn load_ebpf(_: Follow, _: &Settings) -> Result<Box<dyn Collector>, CollectError> {
    Err(CollectError::NotBuilt)
}

fn attach_ptrace(follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>> {
    let collector = PtraceCollector::attach(follow, settings);
    let collector = collector.map_err(|error| anyhow::Error::new(error).context("failed to collect with ptrace"))?;
    Ok(Box::new(collector))
}

/// Prints the name of the collector, and how to record more. `report --full` lists what is unknown.
fn announce(arguments: &RecordArguments, collector: Box<dyn Collector>, remedy: &str) -> Box<dyn Collector> {
    if !arguments.quiet {
        let lines = [
            format!("{PREFIX}collecting with {}: savings are less certain than with eBPF", collector.name()),
            format!("eBPF needs {remedy}"),
        ];
        let lines: Vec<String> = lines.iter().flat_map(|line| wrap(line, NOTICE_WIDTH)).collect();
        print_message(lines.join("\n  ").trim_start_matches(PREFIX));
    }
    collector
}

/// Returns what is needed for eBPF.
fn ebpf_remedy(ebpf: &CollectError) -> String {
    match ebpf {
        CollectError::NotPermitted { .. } => GRANT_EBPF.to_owned(),
        CollectError::NotBuilt => "a spawnscope built with the feature `ebpf`".to_owned(),
        CollectError::Refused(refusal) => format!(
            "a kernel that loads the BPF program {} (--verbose prints why this one refuses it)",
            refusal.program
        ),
        _ => "a kernel that supports eBPF with BTF (Linux 5.10)".to_owned(),
    }
}

fn describe(arguments: &RecordArguments, error: CollectError) -> anyhow::Error {
    match &error {
        CollectError::NoProcess { .. } => anyhow::anyhow!("failed to {error}"),
        CollectError::Refused(_) if !arguments.verbose => {
            anyhow::anyhow!("failed to collect with eBPF: {error} (--verbose prints the end of the verifier's log)")
        }
        _ => anyhow::Error::new(error).context("failed to collect with eBPF"),
    }
}

/// Prints which BPF program the kernel refused, and the end of the verifier's log.
fn print_refusal(refusal: &Refusal) {
    let mut text = format!("this kernel refuses the BPF program {}: {}", refusal.program, refusal.reason);
    for line in &refusal.log {
        text.push_str("\n  ");
        text.push_str(line);
    }
    print_message(&text);
}

/// Returns the processes of `record --with`: daemons that are already running, which the user named
/// by pid or by name, and their descendants, except the recorder and its
/// descendants.
pub fn processes_with(wanted: &[String]) -> Result<Vec<Pid>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let own_processes: HashSet<Pid> = procfs::tree(Pid(std::process::id().cast_signed())).into_iter().collect();
    let mut found = BTreeSet::new();
    for text in wanted {
        let named: Vec<Pid> = match text.parse() {
            Ok(pid) => vec![check_exists(Pid(pid))?],
            Err(_) => procfs::processes()
                .filter(|pid| !own_processes.contains(pid) && has_name(*pid, text.as_bytes()))
                .collect(),
        };
        if named.is_empty() {
            bail!(
                "--with {text}: no process has this name; start the daemon before the recording, or give its pid (`ps -e` lists \
                 both)"
            );
        }
        found.extend(named.into_iter().flat_map(procfs::tree));
    }
    Ok(found.into_iter().filter(|pid| !own_processes.contains(pid)).collect())
}

/// Returns the pid. Fails if no process has it.
fn check_exists(pid: Pid) -> Result<Pid> {
    match pidfd(pid) {
        Ok(_) => Ok(pid),
        Err(error) => bail!("--with {}: no process has this pid ({error})", pid.0),
    }
}

/// Whether a process has this name. Its names are that of its main thread, which the kernel cuts to
/// 15 bytes, and the base name of its first argument.
fn has_name(pid: Pid, wanted: &[u8]) -> bool {
    procfs::name(pid).is_some_and(|name| name == wanted)
        || procfs::arguments(pid).first().is_some_and(|first| base_name(first) == wanted)
}
