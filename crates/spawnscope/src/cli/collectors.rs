//! Chooses the collector of `record`, and prints what is unknown with it.

use anyhow::{Result, bail};

use super::args::CollectorChoice;
use super::output::print_message;
#[cfg(feature = "ebpf")]
use crate::collect::ebpf::EbpfCollector;
use crate::collect::perf::PerfCollector;
use crate::collect::ptrace::PtraceCollector;
use crate::collect::{CollectError, Collector, Follow, Refusal, Settings};
use crate::present::text::wrap;

/// Whether what the collector cannot see is printed with the choice.
pub fn was_explained(collector: &dyn Collector) -> bool {
    collector.name() != "ebpf"
}

/// What `print_message` puts before the first line of a notice.
const PREFIX: &str = "spawnscope: ";
/// Columns of the notice about the choice, without its indentation.
const NOTICE_WIDTH: usize = 78;

/// How to choose, and what to print.
#[derive(Clone, Copy, Debug)]
pub struct AttachOptions {
    /// The user's choice.
    pub choice: CollectorChoice,
    /// Whether to print which BPF programs the kernel refuses.
    pub is_verbose: bool,
    /// Whether to print no notices.
    pub is_quiet: bool,
}

/// Attaches the chosen collector. With `auto`, that is the first of eBPF, ptrace and perf that works; only eBPF follows processes that are already running.
///
/// # Errors
/// When the collector cannot be attached.
pub fn attach(options: AttachOptions, follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>> {
    if settings.node_lines && matches!(options.choice, CollectorChoice::Ptrace | CollectorChoice::Perf) {
        bail!("--node-lines needs eBPF: omit --collector");
    }
    match options.choice {
        CollectorChoice::Ebpf => with_ebpf(options, follow, settings).map_err(|error| describe(options, error)),
        CollectorChoice::Ptrace => Ok(explained(options, with_ptrace(follow, settings)?, PTRACE_LACKS)),
        CollectorChoice::Perf => Ok(explained(options, with_perf(follow, settings)?, PERF_LACKS)),
        CollectorChoice::Auto => match with_ebpf(options, follow, settings) {
            Err(error) if is_replaceable(&error, follow, settings) => without_ebpf(options, follow, settings, &error),
            collector => collector.map_err(|error| describe(options, error)),
        },
    }
}

/// What adds the events that a collector chosen by the user does not give.
const PTRACE_LACKS: &str = ROOT;
const PERF_LACKS: &str =
    "`--collector ptrace` records some of these; sudo, or `setcap cap_bpf,cap_perfmon+ep` on spawnscope, records all";
const ROOT: &str = "sudo, or `setcap cap_bpf,cap_perfmon+ep` on spawnscope";

/// Attaches ptrace, and if the kernel refuses that, perf.
fn without_ebpf(
    options: AttachOptions,
    follow: Follow,
    settings: &Settings,
    ebpf: &CollectError,
) -> Result<Box<dyn Collector>> {
    let how = remedy(ebpf);
    let ptrace = match with_ptrace(follow, settings) {
        Ok(collector) => return Ok(explained(options, collector, &how)),
        Err(error) => error,
    };
    match with_perf(follow, settings) {
        Ok(collector) => {
            let how = format!("{how}; ptrace would add some of them ({:#})", ptrace.root_cause());
            Ok(explained(options, collector, &how))
        }
        Err(perf) => Err(perf.context(format!("{ptrace:#}")).context(format!("failed to {ebpf}"))),
    }
}

/// Whether another collector may do what eBPF cannot. A failure that is not about rights or the kernel is an error that the user must see.
fn is_replaceable(error: &CollectError, follow: Follow, settings: &Settings) -> bool {
    let is_machine = matches!(
        error,
        CollectError::NotPermitted { .. }
            | CollectError::Unsupported(_)
            | CollectError::Refused(_)
            | CollectError::NotBuilt
    );
    is_machine && matches!(follow, Follow::Command(_)) && settings.with.is_empty() && !settings.node_lines
}

fn with_ebpf(options: AttachOptions, follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>, CollectError> {
    let collector = load_ebpf(follow, settings);
    if options.is_verbose {
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

fn with_ptrace(follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>> {
    let collector = PtraceCollector::attach(follow, settings);
    let collector = collector.map_err(|error| anyhow::Error::new(error).context("failed to collect with ptrace"))?;
    Ok(Box::new(collector))
}

fn with_perf(follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>> {
    let collector = PerfCollector::attach(follow, settings);
    let collector = collector.map_err(|error| anyhow::Error::new(error).context("failed to collect with perf"))?;
    Ok(Box::new(collector))
}

/// Prints which collector works, what is unknown with it, and how to record that too.
fn explained(options: AttachOptions, collector: Box<dyn Collector>, how: &str) -> Box<dyn Collector> {
    if !options.is_quiet {
        let unknown: Vec<&str> = collector
            .missing()
            .iter()
            .map(|missing| missing.effect.as_str())
            .collect();
        let lines = [
            format!(
                "{PREFIX}collecting with {}; unknown: {}",
                collector.name(),
                unknown.join(", ")
            ),
            format!("to record these too: {how}"),
        ];
        let lines: Vec<String> = lines.iter().flat_map(|line| wrap(line, NOTICE_WIDTH)).collect();
        print_message(lines.join("\n  ").trim_start_matches(PREFIX));
    }
    collector
}

/// What permits eBPF, which gives all events.
fn remedy(ebpf: &CollectError) -> String {
    match ebpf {
        CollectError::NotPermitted { .. } => ROOT.to_owned(),
        CollectError::NotBuilt => "a spawnscope built with the feature `ebpf`".to_owned(),
        CollectError::Refused(refusal) => format!(
            "a kernel that loads the BPF program {} (--verbose prints why this one refuses it)",
            refusal.program
        ),
        _ => "a kernel that supports eBPF with BTF (Linux 5.10)".to_owned(),
    }
}

fn describe(options: AttachOptions, error: CollectError) -> anyhow::Error {
    match &error {
        CollectError::NoProcess { .. } => anyhow::anyhow!("failed to {error}"),
        CollectError::Refused(_) if !options.is_verbose => {
            anyhow::anyhow!("failed to collect with eBPF: {error} (--verbose prints the end of the verifier's log)")
        }
        _ => anyhow::Error::new(error).context("failed to collect with eBPF"),
    }
}

/// Prints which BPF program the kernel refused, and the end of the verifier's log.
fn print_refusal(refusal: &Refusal) {
    let mut text = format!(
        "this kernel refuses the BPF program {}: {}",
        refusal.program, refusal.reason
    );
    for line in &refusal.log {
        text.push_str("\n  ");
        text.push_str(line);
    }
    print_message(&text);
}
