//! Live tests of the ptrace collector: its recordings are compared with what the programs report
//! about themselves, and with recordings by eBPF of the same command. Each file covers one subject.

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod support;

mod behaviour;
// Tests of the eBPF collector, too.
#[path = "../live_ebpf/collected.rs"]
mod collected;
mod compared;
mod containers;
// Both collectors read interpreters by the same code. They differ only in when the setup of a
// forked dash ends.
#[path = "../live_ebpf/dash_lines.rs"]
#[expect(dead_code, reason = "the shells of other Debian releases are tested with eBPF only")]
mod dash_lines;
mod first_advice;
mod mcp;
#[path = "../live_ebpf/phases.rs"]
mod phases;
mod predicted;
mod recorded;
mod sandboxes;
mod shells;
mod unprivileged;
mod yama;
#[path = "../live_ebpf/zsh_lines.rs"]
#[expect(dead_code, reason = "the shells of other Debian releases are tested with eBPF only")]
mod zsh_lines;

fn main() -> std::process::ExitCode {
    support::run::COLLECTOR.get_or_init(|| "ptrace");
    support::main(&[])
}
