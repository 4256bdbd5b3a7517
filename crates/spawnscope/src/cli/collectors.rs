//! Chooses the collector of `record`, and prints what is unknown with it.

use anyhow::Result;

use super::args::CollectorChoice;
use super::output::print_message;
#[cfg(feature = "ebpf")]
use crate::collect::ebpf::EbpfCollector;
use crate::collect::ptrace::PtraceCollector;
use crate::collect::{CollectError, Collector, Follow, Refusal, Settings};
use crate::present::text::wrap;

/// The name of the collector that needs no privilege.
pub const PTRACE: &str = "ptrace";

/// What `print_message` puts before the first line of a notice.
const PREFIX: &str = "spawnscope: ";
/// Columns of the notice about ptrace, without its indentation.
const NOTICE_WIDTH: usize = 78;

/// How to choose, and what to print.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The user's choice.
    pub choice: CollectorChoice,
    /// Whether to print which BPF programs the kernel refuses.
    pub is_verbose: bool,
    /// Whether to print no notices.
    pub is_quiet: bool,
}

/// Attaches the chosen collector. With `auto`, that is eBPF if it loads, and otherwise ptrace where ptrace can follow.
///
/// # Errors
/// When the collector cannot be attached.
pub fn attach(manner: Manner, follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>> {
    match manner.choice {
        CollectorChoice::Ebpf => with_ebpf(manner, follow, settings).map_err(|error| describe(manner, error)),
        CollectorChoice::Ptrace => with_ptrace(manner, follow, settings, None),
        CollectorChoice::Auto => match with_ebpf(manner, follow, settings) {
            Err(error) if is_replaceable(&error, follow) => with_ptrace(manner, follow, settings, Some(&error)),
            collector => collector.map_err(|error| describe(manner, error)),
        },
    }
}

/// Whether ptrace may do what eBPF cannot. A failure that is not about rights or the kernel is an error that the user must see.
fn is_replaceable(error: &CollectError, follow: Follow) -> bool {
    let is_machine = matches!(
        error,
        CollectError::NotPermitted { .. }
            | CollectError::Unsupported(_)
            | CollectError::Refused(_)
            | CollectError::NotBuilt
    );
    is_machine && matches!(follow, Follow::Command(_))
}

fn with_ebpf(manner: Manner, follow: Follow, settings: &Settings) -> Result<Box<dyn Collector>, CollectError> {
    let collector = load_ebpf(follow, settings);
    if manner.is_verbose {
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

fn with_ptrace(
    manner: Manner,
    follow: Follow,
    settings: &Settings,
    instead_of: Option<&CollectError>,
) -> Result<Box<dyn Collector>> {
    let collector = PtraceCollector::attach(follow, settings)
        .map_err(|error| anyhow::Error::new(error).context("failed to collect with ptrace"));
    let collector = match (collector, instead_of) {
        (Ok(collector), _) => collector,
        (Err(error), None) => return Err(error),
        (Err(error), Some(ebpf)) => return Err(error.context(format!("failed to {ebpf}"))),
    };
    if !manner.is_quiet {
        let unknown: Vec<&str> = collector
            .missing()
            .iter()
            .map(|missing| missing.effect.as_str())
            .collect();
        let how = remedy(instead_of);
        let notice = wrap(
            &format!("{PREFIX}collecting with ptrace; unknown: {}", unknown.join("; ")),
            NOTICE_WIDTH,
        );
        let notice = notice.join("\n  ");
        print_message(&format!(
            "{}\n  to record these too: {how}",
            notice.trim_start_matches(PREFIX)
        ));
    }
    Ok(Box::new(collector))
}

/// What adds the events that ptrace does not give.
fn remedy(ebpf: Option<&CollectError>) -> String {
    match ebpf {
        Some(CollectError::NotPermitted { .. }) | None => {
            "sudo, or `setcap cap_bpf,cap_perfmon+ep` on spawnscope".to_owned()
        }
        Some(CollectError::NotBuilt) => "a spawnscope built with the feature `ebpf`".to_owned(),
        Some(CollectError::Refused(refusal)) => format!(
            "a kernel that loads the BPF program {} (--verbose prints why this one refuses it)",
            refusal.program
        ),
        Some(_) => "a kernel that supports eBPF with BTF (Linux 5.10)".to_owned(),
    }
}

fn describe(manner: Manner, error: CollectError) -> anyhow::Error {
    match &error {
        CollectError::NoProcess { .. } => anyhow::Error::new(error).context("failed to record"),
        CollectError::Refused(_) if !manner.is_verbose => {
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
