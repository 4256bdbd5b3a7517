#!/usr/bin/env python3
"""Measures how long it takes to start a child with a controlling terminal, and to wait for it, from parents of given sizes: with vspawn.pty,
ptyprocess and pty.fork in Python, and with vspawn::pty and portable-pty in Rust. They alternate; prints medians.

Needs the vspawn wheel and ptyprocess for the interpreter that runs this file; cargo for the Rust part, which downloads portable-pty."""

from __future__ import annotations

import argparse
import os
import pty
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

RUST = """
use std::time::Instant;

fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let [mebibytes, rounds] = arguments[..] else { panic!("MEBIBYTES ROUNDS") };
    let mut memory = vec![0u8; mebibytes << 20];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
    for _ in 0..rounds {
        let begin = Instant::now();
        let pty = vspawn::pty::Pty::open(vspawn::pty::Size::new(24, 80)).expect("a pty");
        pty.spawn(vspawn::Command::new("/bin/true")).expect("a child").wait().expect("a status");
        println!("vspawn {}", begin.elapsed().as_nanos());
        let begin = Instant::now();
        let pair = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default()).expect("a pty");
        let command = portable_pty::CommandBuilder::new("/bin/true");
        pair.slave.spawn_command(command).expect("a child").wait().expect("a status");
        println!("portable-pty {}", begin.elapsed().as_nanos());
    }
}
"""

CARGO = """
[package]
name = "pty-bench"
version = "0.0.0"
edition = "2024"

[dependencies]
portable-pty = "0.9"
vspawn = {{ path = "{vspawn}" }}

[workspace]
"""


def rust(work: Path, mebibytes: int, rounds: int) -> dict[str, list[float]]:
    (work / "src").mkdir(exist_ok=True)
    (work / "src/main.rs").write_text(RUST)
    (work / "Cargo.toml").write_text(CARGO.format(vspawn=HERE.parent / "crates/vspawn"))
    subprocess.run(["cargo", "build", "--release", "-q"], cwd=work, check=True)
    printed = subprocess.run([work / "target/release/pty-bench", str(mebibytes), str(rounds)], capture_output=True, text=True, check=True)
    times: dict[str, list[float]] = {}
    for line in printed.stdout.splitlines():
        name, nanoseconds = line.split()
        times.setdefault(f"Rust: {name}", []).append(int(nanoseconds) / 1000)
    return times


def by_vspawn() -> None:
    from vspawn.pty import Pty

    with Pty() as terminal:
        terminal.spawn(["/bin/true"]).wait()


def by_ptyprocess() -> None:
    from ptyprocess import PtyProcess

    process = PtyProcess.spawn(["/bin/true"])
    process.wait()
    process.delayafterclose = 0  # close() sleeps for a tenth of a second
    process.close()


def by_fork() -> None:
    pid, fd = pty.fork()
    if pid == 0:
        os.execv("/bin/true", ["/bin/true"])
    os.waitpid(pid, 0)
    os.close(fd)


def python(mebibytes: int, rounds: int) -> dict[str, list[float]]:
    memory = bytearray(mebibytes << 20)
    memory[::4096] = b"x" * len(memory[::4096])
    methods = {"Python: vspawn.pty": by_vspawn, "Python: ptyprocess": by_ptyprocess, "Python: pty.fork": by_fork}
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, start in methods.items():
            begin = time.perf_counter()
            start()
            times[name].append((time.perf_counter() - begin) * 1e6)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, nargs="+", default=[0, 4096], help="sizes of the parent (default: 0 4096)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vspawn-pty.") as work:
        for mebibytes in options.mebibytes:
            times = {**rust(Path(work), mebibytes, options.rounds), **python(mebibytes, options.rounds)}
            for name, values in times.items():
                print(f"{mebibytes:6} MiB  {name:22} {statistics.median(values):12.0f} us")


if __name__ == "__main__":
    main()
