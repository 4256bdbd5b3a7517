#!/usr/bin/env python3
"""Measures the questions of `spawnscope fleet` on datasets of growing size: seconds, CPU seconds and peak memory of each, and how they grow.

    make fleet
    target/venv/bin/python benchmarks/fleet.py [--launches 100000 1000000 10000000] [--runs 280 2800] [--engines fleet clickhouse spark]

fleet/generate.py makes datasets by resampling real recordings, one for each combination of numbers of launches and runs. With several
numbers of launches, it prints by which factor each size takes longer than the one before. With several numbers of both, the growth is
fitted: CPU seconds = start + runs * one run + launches * one launch (non-negative least squares of relative errors). The engines take
turns at each question. Each answer comes from a new process, so that the engine's start-up and
memory count. Prints medians, and stores them in benchmarks/runs/<date>-<host>/fleet.json. Goal: each question on 10,000,000 launches
takes at most 5 s and 1 GB. Needs pyarrow and numpy; scipy for the growth, and chdb and pyspark for the other engines
(scripts/fleet-environment.sh installs all)."""

import argparse
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import new_results, spread, store

FLEET = Path(__file__).resolve().parent.parent / "fleet"
sys.path.insert(0, str(FLEET / "tests"))
import engines  # noqa: E402
from engines_agree import QUESTIONS, ROWS  # noqa: E402
from spawnscope_fleet.dataset import TABLES  # noqa: E402
from spawnscope_fleet.questions import question  # noqa: E402


def main():
    options = parse()
    if options.ask:
        return ask(*options.ask)
    results = new_results()
    with tempfile.TemporaryDirectory(prefix="spawnscope-fleet.") as work:
        points = {}
        for size in itertools.product(options.launches, options.runs):
            dataset = Path(options.work or work, "-".join(map(str, size)))
            exists = dataset.exists()
            if not exists:
                # Each job runs once a day.
                sizes = ["--launches", str(size[0]), "--runs", str(size[1]), "--jobs", str(max(1, size[1] // 14))]
                changes = ["--regression", "--slow-machine"]
                subprocess.run([sys.executable, FLEET / "generate.py", FLEET / "tests/base", dataset, *sizes, *changes], check=True)
            measure(options, dataset, size, results["measurements"], points)
            if not exists:
                shutil.rmtree(dataset)
    print_factors(points)
    if len(options.launches) > 1 and len(options.runs) > 1:
        results["measurements"].update(growth(points))
    if not options.dry_run:
        print(store(results, "fleet"))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000], help="launches of each dataset")
    parser.add_argument("--runs", type=int, nargs="+", default=[2800], help="runs of each dataset")
    parser.add_argument("--rounds", type=int, default=3, help="times that each question is asked")
    parser.add_argument("--engines", nargs="+", choices=["fleet", "clickhouse", "spark"], default=["fleet"])
    names = sorted({name for name, _, _ in QUESTIONS})
    parser.add_argument("--questions", nargs="+", choices=names, help="only these (default: all)")
    parser.add_argument("--work", help="the directory for the datasets, LAUNCHES-RUNS; one that is there is used and stays")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    parser.add_argument("--ask", nargs=3, metavar=("ENGINE", "DATASET", "QUESTION"), help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(options, dataset, size, measurements, points):
    """Asks each question of each engine. Adds the figures to `measurements`, and the CPU seconds to `points`."""
    rows = {}
    for _ in range(options.rounds):
        for index, (name, _, words) in enumerate(QUESTIONS):
            for engine in options.engines if not options.questions or name in options.questions else []:
                rows.setdefault((engine, f"{index} {name}"), []).append(measure_question(options, engine, dataset, index, words))
    for (engine, name), figures in rows.items():
        medians = [statistics.median(row[key] for row in figures) for key in ("seconds", "cpu_seconds", "peak_mib")]
        launches, runs = size
        counts = f"{launches:>11,} launches  {runs:>6,} runs"
        print(f"{counts}  {engine:10} {name:14} {medians[0]:7.2f} s  {medians[1]:7.2f} s CPU  {medians[2]:7.0f} MiB", flush=True)
        point = {key: spread([row[key] for row in figures]) for key in figures[0]}
        measurements[f"{engine}, {name}, {launches} launches, {runs} runs"] = point
        points.setdefault((engine, name), []).append((size, medians[1]))


def print_factors(points):
    """Prints how many times the CPU seconds of the size before each size takes, for each question and number of runs."""
    for (engine, name), measured in points.items():
        for runs in sorted({runs for (_, runs), _ in measured}):
            seconds = [cpu for (_, others), cpu in sorted(measured) if others == runs]
            factors = " ".join(f"{later / earlier:6.2f}" for earlier, later in zip(seconds, seconds[1:]))
            if factors:
                print(f"{engine:10} {name:14} {runs:>6,} runs: times {factors}", flush=True)


def growth(points):
    """Returns the slopes of each question: CPU seconds of the start, of a run and of a launch."""
    import numpy as np
    from scipy.optimize import nnls

    slopes = {}
    for (engine, name), measured in points.items():
        seconds = np.array([cpu for _, cpu in measured])
        sizes = np.array([[1, runs, launches] for (launches, runs), _ in measured])
        start, run, launch = nnls(sizes / seconds[:, None], np.ones(len(seconds)))[0]
        print(f"{engine:10} {name:14} {start:6.2f} s + {run * 1e3:6.3f} ms a run + {launch * 1e6:6.3f} us a launch", flush=True)
        slopes[f"growth, {engine}, {name}"] = {"start_seconds": start, "seconds_per_run": run, "seconds_per_launch": launch}
    return slopes


def measure_question(options, engine, dataset, index, words):
    """Asks one question in a new process. Returns its wall, its CPU time and its peak memory."""
    if engine == "fleet":
        command = [sys.executable, "-m", "spawnscope_fleet", *words, "--rows", ROWS, "--json", str(dataset)]
    else:
        command = [sys.executable, __file__, "--ask", engine, str(dataset), str(index)]
    begun = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed with status {status}")
    return {
        "seconds": time.monotonic() - begun,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }


def ask(engine, dataset, index):
    name, parameters, _ = QUESTIONS[int(index)]
    asked = question(name, rows=ROWS, **parameters)
    if engine == "clickhouse":
        connection = engines.ClickHouse(dataset)
    else:
        # Spark reads the footer of each file of a table that it opens.
        tables = [table for table in TABLES if re.search(rf"\b{table}\b", asked)]
        connection = engines.Spark(dataset, "local[2]", tables=tables)
    connection.ask(asked)
    connection.close()


if __name__ == "__main__":
    main()
