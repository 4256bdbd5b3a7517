#!/usr/bin/env python3
"""Measures the cost of reading a large recording: seconds, CPU seconds and peak memory of `report`, `report --json` and `advise` on
recordings of many launches. Runs of all commands (and of all binaries, if --binary is given several times) alternate. Prints medians,
and stores them in benchmarks/runs/<date>-<host>/large.json. Recordings are made by the last binary, which needs root and cc, or given
with --recording."""

import argparse
import tempfile
from pathlib import Path

from overhead import large_recording, measure_command, report
from results import new_results, say, spread, store

FORMS = {"report": ["report"], "report --json": ["report", "--json"], "advise": ["advise"]}


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="spawnscope-bench.") as work:
        results = new_results()
        for file in options.recording or [large_recording(options, Path(work), count) for count in options.launches]:
            measure(options, file, results["measurements"])
    if options.dry_run or len(options.binaries) > 1:
        return
    say(f"wrote {store(results, 'large')}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", action="append", help="the program to measure (default: target/release/spawnscope)")
    parser.add_argument("--launches", type=int, nargs="+", default=[200_000, 1_000_000], help="launches of each recording")
    parser.add_argument("--recording", type=Path, nargs="+", help="read these recordings instead")
    parser.add_argument("--runs", type=int, default=5, help="runs of each command")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    options = parser.parse_args()
    options.binaries = [str(Path(each).resolve()) for each in options.binary or ["target/release/spawnscope"]]
    options.binary = options.binaries[-1]
    return options


def measure(options, file, measurements):
    launches = report(options, file)["launches"]
    runs = {(form, binary): [] for form in FORMS for binary in options.binaries}
    for _ in range(options.runs):
        for (form, binary), rows in runs.items():
            seconds, usage = measure_command([binary, *FORMS[form], str(file)])
            cpu = usage.ru_utime + usage.ru_stime
            rows.append({"seconds": seconds, "cpu_seconds": cpu, "peak_mib": usage.ru_maxrss / 1024})
    for (form, binary), rows in runs.items():
        figures = {key: spread([row[key] for row in rows]) for key in rows[0]}
        peak, seconds, cpu = (figures[key]["median"] for key in ("peak_mib", "seconds", "cpu_seconds"))
        suffix = f"  {binary}" if len(options.binaries) > 1 else ""
        print(f"{launches:>9,} launches  {form:13} {seconds:6.2f} s  {cpu:6.2f} s of CPU  {peak:6.0f} MiB{suffix}", flush=True)
        measurements[f"{form}, {launches} launches"] = {"launches": launches, **figures, "file_mib": file.stat().st_size / 2**20}


if __name__ == "__main__":
    main()
