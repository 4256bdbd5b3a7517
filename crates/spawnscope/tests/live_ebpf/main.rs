//! Live tests of the eBPF collector: the real binary records real programs, and the recordings are
//! compared with what those programs know of themselves. Each file is one subject. All tests need
//! eBPF and the workloads; tests that cannot run here report why.

#[path = "../support/preload.rs"]
mod preload;
#[path = "../support/mod.rs"]
mod support;

mod arguments;
mod attacks;
mod bash_lines;
mod causes;
mod collected;
mod commands;
mod counts;
mod daemons;
mod dash_lines;
#[cfg(feature = "parquet")]
mod datasets;
mod event_loops;
mod histories;
mod identities;
mod interrupts;
mod limits;
mod losses;
mod make_lines;
mod metrics;
mod musl;
mod node_lines;
mod ownership;
mod peers;
mod perl_lines;
mod phases;
mod python_lines;
mod reaping;
mod refusals;
mod rings;
mod samples;
mod scopes;
mod setup_and_loader;
mod shells;
mod stacks;
mod suites;
mod terminal;
mod top;
mod variables;
mod waits;
mod wakeups;
mod zsh_lines;

use support::needs::Need;

fn main() -> std::process::ExitCode {
    support::main(&[Need::Ebpf, Need::Cc])
}
