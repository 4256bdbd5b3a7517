//! Live tests of the ptrace collector: its recordings are compared with what the programs report about themselves, and with recordings by eBPF
//! of the same command. Each file covers one subject.

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod support;

// The modules `*_lines` are tests of the eBPF collector: ptrace must report the same script lines.
#[path = "../live_ebpf/bash_lines.rs"]
#[expect(dead_code, reason = "the shells of other Debian releases are tested with eBPF only")]
mod bash_lines;
mod behaviour;
mod compared;
mod containers;
#[path = "../live_ebpf/dash_lines.rs"]
#[expect(dead_code, reason = "the shells of other Debian releases are tested with eBPF only")]
mod dash_lines;
#[path = "../live_ebpf/make_lines.rs"]
#[expect(dead_code, reason = "the makes of other Debian releases are tested with eBPF only")]
mod make_lines;
mod mcp;
#[path = "../live_ebpf/perl_lines.rs"]
#[expect(dead_code, reason = "the Perls of other Debian releases are tested with eBPF only")]
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
#[path = "../live_ebpf/zsh_lines.rs"]
#[expect(dead_code, reason = "the shells of other Debian releases are tested with eBPF only")]
mod zsh_lines;

fn main() -> std::process::ExitCode {
    support::run::COLLECTOR.get_or_init(|| "ptrace");
    support::main()
}
