#!/usr/bin/env python3
"""Measures `import` of a large log of strace: seconds, CPU seconds, MB/s and peak memory. The log is that of a shell script, recorded here
by `strace -f -ttt -T -s N` and repeated with later times until it is large enough. Prints medians, and stores them in
benchmarks/runs/<date>-<host>/import.json. Needs strace, bash, python3 and disk space for the log."""

import argparse
import subprocess
import tempfile
from pathlib import Path

from overhead import measure_command
from results import new_results, say, spread, store

SCRIPT = """for i in 1 2 3 4 5 6 7 8; do
python3 -c 'import json, subprocess; subprocess.run(["true"])'
for f in a b c; do x=$(basename /x/$f); dirname /a/$f | sed s/a/b/; done
ls / | wc -l
done"""


def main():
    options = parse()
    results = new_results()
    with tempfile.TemporaryDirectory(prefix="spawnscope-bench.", dir=options.directory) as work:
        for length in options.strings:
            log = Path(work) / "log"
            write_log(log, length, int(options.gigabytes * 1e9))
            measure(options, log, f"strace -s {length}", results["measurements"])
    if not options.dry_run:
        say(f"wrote {store(results, 'import')}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/spawnscope", help="the program to measure")
    parser.add_argument("--gigabytes", type=float, default=5, help="size of the log")
    parser.add_argument("--strings", type=int, nargs="+", default=[32, 4096], help="values of strace's option -s")
    parser.add_argument("--directory", help="where to write the log (default: the directory for temporary files)")
    parser.add_argument("--runs", type=int, default=3, help="runs")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    return options


def write_log(log, length, size):
    command = ["strace", "-f", "-ttt", "-T", "-s", str(length), "-o", log, "bash", "-c", SCRIPT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = [line.split(maxsplit=1) for line in log.read_bytes().splitlines(keepends=True)]
    lines = [(pid, *rest.split(b".", 1)) for pid, rest in lines]
    span = int(lines[-1][1]) - int(lines[0][1]) + 1
    written, round = 0, 0
    with open(log, "wb") as file:
        while written < size:
            text = b"".join(b"%s %d.%s" % (pid, int(at) + round * span, rest) for pid, at, rest in lines)
            written, round = written + file.write(text), round + 1


def measure(options, log, name, measurements):
    rows, size = [], log.stat().st_size
    for _ in range(options.runs):
        seconds, usage = measure_command([options.binary, "import", str(log), "-o", str(log.with_suffix(".db"))])
        cpu = usage.ru_utime + usage.ru_stime
        row = {"seconds": seconds, "cpu_seconds": cpu, "mb_per_s": size / seconds / 1e6, "peak_mib": usage.ru_maxrss / 1024}
        rows.append(row)
    measurements[name] = {"bytes": size, **{key: spread([row[key] for row in rows]) for key in rows[0]}}
    medians = {key: measurements[name][key]["median"] for key in rows[0]}
    print(f"{name}: {size / 1e9:.1f} GB", ", ".join(f"{key} {value:.1f}" for key, value in medians.items()))


if __name__ == "__main__":
    main()
