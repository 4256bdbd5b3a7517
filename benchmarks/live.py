#!/usr/bin/env python3
"""Measures what it costs to record a machine for a long time with `record -a --keep --metrics`: CPU time of the recorder, its memory
each minute and at most, and the largest size of the ring, while a program is launched at a steady rate. Stores the figures in
benchmarks/runs/<date>-<host>/live.json. Needs root. Goal: memory that does not grow, at most 80 MB, and 3 % of one CPU at 500 launches
a second, whatever the size of a file (an eighth of --keep)."""

import argparse
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from results import new_results, say, store


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="spawnscope-bench.") as work:
        figures = measure(options, Path(work))
    for name, figure in figures.items():
        shown = " ".join(f"{each:,.1f}" for each in figure) if isinstance(figure, list) else f"{figure:,.1f}"
        print(f"{name:>24} {shown}")
    if not options.dry_run:
        results = new_results()
        results["measurements"][f"{options.rate} launches a second, {options.seconds} s, ring of {options.keep}"] = figures
        say(f"wrote {store(results, 'live')}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/spawnscope", help="the program to measure")
    parser.add_argument("--seconds", type=int, default=3600, help="how long to record")
    parser.add_argument("--rate", type=int, default=500, help="launches a second")
    parser.add_argument("--keep", default="1GB", help="the size of the ring")
    parser.add_argument("--program", default="/bin/true", help="what to launch")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    return parser.parse_args()


def measure(options, work):
    metrics = work / "spawnscope.prom"
    words = [str(Path(options.binary).resolve()), "record", "-q", "-a", "--keep", options.keep]
    recorder = subprocess.Popen([*words, "-o", str(work / "ring.db"), "--metrics", str(metrics)])
    try:
        wait_for(metrics, recorder)
        began, cpu_before = time.monotonic(), cpu_seconds(recorder.pid)
        largest, by_minute = launch(options, work, began, recorder.pid)
        elapsed = time.monotonic() - began
        cpu, peak = cpu_seconds(recorder.pid) - cpu_before, memory_mb(recorder.pid, "VmHWM")
    finally:
        # If this script is a background job, the recorder has inherited SIG_IGN for SIGINT.
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(timeout=60)
    text = metrics.read_text()
    return {
        "seconds": elapsed,
        "launches": value(text, "spawnscope_launches_started_total"),
        "skipped": value(text, "spawnscope_skipped_launches_total"),
        "lost events": sum(float(count) for count in re.findall(r"^spawnscope_lost_events_total\{.*\} (\S+)$", text, re.MULTILINE)),
        "% of one CPU": 100 * cpu / elapsed,
        "peak MB": peak,
        "MB by minute": by_minute,
        "largest ring MiB": largest / 2**20,
        "metrics KiB": metrics.stat().st_size / 1024,
    }


def launch(options, work, began, recorder):
    """Launches at the rate, in steps of a tenth of a second. Returns the largest size of the ring, and the recorder's memory each minute."""
    largest, step, by_minute = 0, 0, []
    while time.monotonic() - began < options.seconds:
        for _ in range(options.rate // 10):
            os.waitpid(os.posix_spawn(options.program, ["true"], {}), 0)
        step += 1
        if time.monotonic() - began >= 60 * len(by_minute):
            by_minute.append(memory_mb(recorder, "VmRSS"))
        if step % 10 == 0:
            largest = max(largest, sum(file.stat().st_size for file in list(work.iterdir()) if file.exists()))
        time.sleep(max(0, began + step / 10 - time.monotonic()))
    return largest, by_minute


def wait_for(file, recorder):
    deadline = time.monotonic() + 60
    while not file.exists():
        if recorder.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("live.py: the recorder did not start")
        time.sleep(0.1)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid, name):
    return int(re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024 / 1e6


def value(text, name):
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])


if __name__ == "__main__":
    main()
