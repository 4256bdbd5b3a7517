#!/usr/bin/env python3
"""Compares the estimated wall without recording overhead (`unrecorded_ns` of `spawnscope whatif --json`) with the measured
wall of runs without the recorder. The programs are the `before` variants of the pairs in crates/spawnscope/tests/fixes. Each round records a program
once and runs it once, in alternating order:

    error = |median of (unrecorded_ns / run) - 1|, each ratio within a round

The column "recorded / run" has the ratio of the recorded wall, so the difference of the two columns is the correction. Prints a table, and
writes benchmarks/runs/<date>-<host>/unrecorded.json. Exit status 1 if the median error of all programs is above 2 %.
Needs root, the programs of the pairs, and a quiet machine."""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from fixes import PAIRS, Pair, json_of
from results import new_results, say, store

MAX_MEDIAN_ERROR = 0.02
# The wall of `scanner` depends on the scanner that `around` starts, which is not recorded. In `huge_pages`, filling 256 MB takes 0.3 to 1 s on a shared
# host, recorded or not.
UNSUITABLE = {"scanner", "huge_pages"}


def main():
    options = parse()
    results = new_results()
    with tempfile.TemporaryDirectory(prefix="spawnscope-unrecorded.") as work:
        for name in options.names:
            say(f"measuring {name}")
            results["measurements"][name] = measure_pair(Pair(name, Path(work)), options)
            if not options.dry_run:
                store(results, "unrecorded")
    rows = results["measurements"]
    print_table(rows)
    sys.exit(statistics.median(row["error"] for row in rows.values()) > MAX_MEDIAN_ERROR)


def parse():
    known = sorted({file.parent.name for file in PAIRS.glob("*/whatif")} - UNSUITABLE)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"pairs (default: all): {', '.join(known)}")
    parser.add_argument("--binary", default="target/release/spawnscope", help="the recorder to measure")
    parser.add_argument("--rounds", type=int, default=15, help="recordings, and runs without the recorder")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    options = parser.parse_args()
    options.names = options.names or known
    if unknown := set(options.names) - set(known):
        parser.error(f"no such pair: {', '.join(sorted(unknown))}")
    options.binary = str(Path(options.binary).resolve())
    return options


def measure_pair(pair, options):
    expected = pair.run("before", [])
    pair.time_variant("before", expected)
    rounds = [measure_round(pair, options, expected, number) for number in range(options.rounds)]
    ratio = lambda key: statistics.median(each[key] / each["run"] for each in rounds)
    unrecorded, recorded = ratio("unrecorded"), ratio("recorded")
    return {"unrecorded": unrecorded, "recorded": recorded, "error": abs(unrecorded - 1), "rounds_seconds": rounds}


def measure_round(pair, options, expected, number):
    """Returns the seconds of an unrecorded run, of a recorded run, and of the latter without its overhead."""
    times = {}
    for part in ["run", "recording"] if number % 2 else ["recording", "run"]:
        if part == "run":
            times["run"] = pair.time_variant("before", expected)
        else:
            times.update(recording(pair, options))
    return times


def recording(pair, options):
    file = pair.work / "before.db"
    pair.run("before", [options.binary, "record", "--quiet", "-o", str(file), "--"])
    found = json_of([options.binary, "whatif", str(file), *pair.flags, "--json"])
    file.unlink()
    return {"recorded": found["wall_ns"] / 1e9, "unrecorded": found["unrecorded_ns"] / 1e9}


def print_table(rows):
    print("| program | run | recorded / run | without overhead / run |\n|---|--:|--:|--:|")
    for name, row in rows.items():
        run = statistics.median(each["run"] for each in row["rounds_seconds"])
        print(f"| {name.replace('_', ' ')} | {run * 1e3:,.0f} ms | {row['recorded']:.3f} | {row['unrecorded']:.3f} |")
    errors = [row["error"] for row in rows.values()]
    before = statistics.median(abs(row["recorded"] - 1) for row in rows.values())
    print(f"\nMedian error {statistics.median(errors):.1%}, worst {max(errors):.1%}; median error without the correction {before:.1%}")


if __name__ == "__main__":
    main()
