//! Live tests of the ptrace collector: its recordings are compared with what the programs know of themselves, and with recordings by eBPF of
//! the same command. Each file is one subject.

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod support;

// These tests are those of the eBPF collector, so the lines must be the same.
#[path = "../live_ebpf/bash_lines.rs"]
#[expect(dead_code, reason = "the shells of suites are tested with eBPF")]
mod bash_lines;
mod behaviour;
mod compared;
mod containers;
#[path = "../live_ebpf/dash_lines.rs"]
#[expect(dead_code, reason = "the shells of suites are tested with eBPF")]
mod dash_lines;
#[path = "../live_ebpf/make_lines.rs"]
#[expect(dead_code, reason = "the makes of suites are tested with eBPF")]
mod make_lines;
#[path = "../live_ebpf/perl_lines.rs"]
#[expect(dead_code, reason = "the Perls of suites are tested with eBPF")]
mod perl_lines;
mod phases;
#[path = "../support/predicted.rs"]
mod predicted;
#[path = "../live_ebpf/python_lines.rs"]
mod python_lines;
mod recorded;
mod sandboxes;
mod unprivileged;
mod yama;

fn main() -> std::process::ExitCode {
    support::run::COLLECTOR.get_or_init(|| "ptrace");
    support::main()
}
