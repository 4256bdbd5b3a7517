//! Live tests of the perf collector: its recordings are compared with what the programs report about themselves, and with recordings by eBPF of
//! the same command. Each file is one subject.

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod support;

mod behaviour;
mod levels;
#[path = "../support/predicted.rs"]
mod predicted;
mod recorded;
mod unprivileged;

fn main() -> std::process::ExitCode {
    support::run::COLLECTOR.get_or_init(|| "perf");
    support::main()
}
