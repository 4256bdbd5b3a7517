//! gdb attaches to a held process before its first instruction. What debuggers miss is tested in
//! `run.rs`, where `hold` starts them.

use std::os::unix::fs::FileExt;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::holding::{hold, send, state};

use crate::support::prelude::*;

/// Keys of the auxiliary vector (getauxval(3)).
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;
/// The offset of the entry address in a 64-bit ELF file.
const ELF_ENTRY: u64 = 24;

/// Attaches gdb, executes the commands, and detaches.
fn gdb(pid: Pid, commands: &[&str]) -> Finished {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-p", &pid.to_string()]);
    gdb.args(commands.iter().flat_map(|command| ["-ex", command]));
    run(&mut gdb).expect_code(0)
}

#[apply(live_test)]
#[needs(Gdb)]
fn gdb_finds_a_held_process_at_the_entry_of_its_loader() {
    // One program with a dynamic loader, one without.
    for program in ["run_base", "tiny"] {
        let (running, pid) = hold([path(program)]);
        let expected = format!("pc={:#x}", entry(pid));
        let output = gdb(pid, &["printf \"pc=%#lx\\n\", $pc"]).output();
        assert!(output.contains(&expected), "{program}: no {expected} in: {output}");
        assert_eq!(state(pid), Some('T'), "gdb leaves the process stopped");
        send(pid, Signal::SIGCONT);
        running.finish().expect_code(0);
    }
}

/// Returns the address where a process starts: in its loader, if it has one.
fn entry(pid: Pid) -> u64 {
    let words = std::fs::read(format!("/proc/{pid}/auxv")).expect("our own process");
    let words: Vec<u64> =
        words.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect();
    let Some(base) = auxiliary_value(&words, AT_BASE).filter(|base| *base != 0) else {
        return auxiliary_value(&words, AT_ENTRY).expect("an entry");
    };
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("our own process");
    let loader = maps
        .lines()
        .find(|line| line.starts_with(&format!("{base:x}-")))
        .and_then(|line| line.split_whitespace().last())
        .expect("the loader is mapped");
    let mut entry = [0; 8];
    let file = std::fs::File::open(loader).expect("the loader");
    file.read_exact_at(&mut entry, ELF_ENTRY).expect("its header");
    base + u64::from_ne_bytes(entry)
}

fn auxiliary_value(words: &[u64], kind: u64) -> Option<u64> {
    words.chunks_exact(2).find(|entry| entry[0] == kind).map(|entry| entry[1])
}
