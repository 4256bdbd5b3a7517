#!/usr/bin/env python3
"""Measures `export --format parquet`: launches per second, CPU seconds, peak memory, and bytes per launch in each table, on recordings of many
launches. Prints medians, and stores them in benchmarks/runs/<date>-<host>/parquet.json. Recordings are made by the
binary, which needs root and cc, or given with --recording. Goals: 200,000 launches per second, 60 bytes per launch."""

import argparse
import statistics
import tempfile
from pathlib import Path

from overhead import large_recording, measure_command, report
from results import new_results, say, spread, store

TABLES = ["runs", "launches", "execs", "callers", "waits", "advice"]


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="spawnscope-bench.") as work:
        results = new_results()
        for file in options.recording or [large_recording(options, Path(work), count) for count in options.launches]:
            measure(options, file, Path(work), results["measurements"])
    if not options.dry_run:
        say(f"wrote {store(results, 'parquet')}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/spawnscope", help="the program to measure")
    parser.add_argument("--launches", type=int, nargs="+", default=[100_000], help="launches of each recording")
    parser.add_argument("--recording", type=Path, nargs="+", help="read these recordings instead")
    parser.add_argument("--runs", type=int, default=5, help="exports of each recording")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    # Options that large_recording reads.
    options.collector, options.record_flag = "auto", []
    return options


def measure(options, file, work, measurements):
    launches = report(options, file)["launches"]
    rows = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="dataset.", dir=work) as dataset:
            command = [options.binary, "export", "--format", "parquet", "-o", dataset, str(file)]
            seconds, usage = measure_command(command)
            rows.append({
                "launches_per_second": launches / seconds,
                "cpu_seconds": usage.ru_utime + usage.ru_stime,
                "peak_mib": usage.ru_maxrss / 1024,
            })
            sizes = {table: size(Path(dataset, table)) for table in TABLES}
    figures = {key: spread([row[key] for row in rows]) for key in rows[0]}
    speed = statistics.median(row["launches_per_second"] for row in rows)
    total = sum(sizes.values())
    print(f"{launches:>9,} launches  {speed:10,.0f} launches/s  {total / launches:6.1f} B a launch", flush=True)
    for table, bytes_of_table in sizes.items():
        print(f"          {table:10} {bytes_of_table / launches:8.2f} B a launch", flush=True)
    measurements[f"export --format parquet, {launches} launches"] = {
        "launches": launches,
        **figures,
        "bytes_per_launch": total / launches,
        "table_bytes": sizes,
    }


def size(directory):
    return sum(file.stat().st_size for file in directory.rglob("*.parquet"))


if __name__ == "__main__":
    main()
