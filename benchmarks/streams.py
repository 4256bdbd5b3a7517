#!/usr/bin/env python3
"""Compares ways to start a program with a pipe and to read its output to the end: a bare clone, a prepared command, posix_spawn,
vspawn_popen, popen_noshell of this library, glibc's popen and, with --original, the popen_noshell library itself. They take turns in one
process. Prints medians of the ratios of each round, and the number of system calls if strace is installed. Writes
benchmarks/runs/<date>-<host>/streams.json. Needs libvspawn.so (cargo build --release -p vspawn-capi) and cc."""

import argparse
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from results import HERE, new_results, say, spread, store, tenth_percentile

ROOT = HERE.parent
TINY = ROOT / "crates/spawnscope/tests/workloads/tiny.c"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=ROOT / "target/release", type=Path, help="the directory of libvspawn.so")
    parser.add_argument("--original", type=Path, help="a checkout of the popen_noshell library")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vspawn-bench.") as work:
        command = build(options, Path(work))
        done = subprocess.run([*command, str(options.rounds), *original(options, Path(work))], check=True, stdout=subprocess.PIPE, text=True)
        rows = summarize(dict(parse(line) for line in done.stdout.splitlines()))
        count_system_calls(rows, command, original(options, Path(work)))
    results = new_results()
    results["measurements"]["streams"] = rows
    show(rows)
    if not options.dry_run:
        say(f"wrote {store(results, 'streams')}")


def build(options, work):
    """Returns the command without its last arguments."""
    cc = ["cc", "-O2"]
    subprocess.run([*cc, "-static", "-nostdlib", "-fno-stack-protector", "-o", work / "tiny", TINY], check=True)
    library = options.library.resolve()
    (work / "libvspawn.so.0").symlink_to(library / "libvspawn.so")
    include = ROOT / "crates/vspawn-capi/include"
    source = [f"-I{include}", HERE / "streams.c", "-o", work / "streams"]
    subprocess.run([*cc, *source, f"-L{library}", "-lvspawn", "-ldl", f"-Wl,-rpath,{work}"], check=True)
    if options.original:
        subprocess.run([*cc, "-shared", "-fPIC", "-w", "-o", work / "original.so", options.original / "popen_noshell.c"], check=True)
    return [work / "streams", work / "tiny"]


def original(options, work):
    return [work / "original.so"] if options.original else []


def parse(line):
    name, *times = line.split()
    return name, [int(time) / 1e3 for time in times]


def summarize(times):
    """Returns the order statistics of each way, in microseconds, and the medians of its ratios to the two bases in the same round."""
    rows = {}
    for name, values in times.items():
        ratios = {f"to_{base}": statistics.median(map(float.__truediv__, values, times[base])) for base in ("clone", "posix_spawn")}
        rows[name] = {"p10": tenth_percentile(values), **spread(values), **ratios}
    return rows


def count_system_calls(rows, command, last):
    """Adds the number of system calls of a later start: those of the parent, and those of each new process until its exec. The last of as
    many rounds as there are ways, and one more, has the ways in their order."""
    if not shutil.which("strace"):
        return
    with tempfile.NamedTemporaryFile() as log:
        subprocess.run(["strace", "-f", "-o", log.name, *command, str(len(rows) + 1), *last], check=True, stdout=subprocess.DEVNULL)
        lines = [line.split(None, 1) for line in open(log.name)]
    parent, executed, counts = lines[0][0], set(), []
    for pid, call in lines:
        if not call[0].isalpha() or pid in executed:  # the end of a call, a signal, an exit
            continue
        if pid != parent and call.startswith("execve("):
            executed.add(pid)
        if call.startswith("pipe2("):
            counts.append(0)
        if counts and not call.startswith("exit_group("):
            counts[-1] += 1
    for name, count in zip(rows, counts[-len(rows) :]):
        rows[name]["system_calls"] = count


def show(rows):
    for name, row in rows.items():
        times = f"{name:16} median {row['median']:7.1f} us, p10 {row['p10']:7.1f} us"
        ratios = f"of clone {row['to_clone']:.3f}, of posix_spawn {row['to_posix_spawn']:.3f}"
        print(f"{times}; {ratios}; system calls: {row.get('system_calls', '-')}")


if __name__ == "__main__":
    main()
