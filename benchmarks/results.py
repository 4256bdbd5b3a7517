"""Shared by the benchmarks: facts about the machine, order statistics, and the files with raw results."""

import datetime
import json
import os
import platform
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def new_results():
    return {"date": datetime.date.today().isoformat(), "machine": machine(), "measurements": {}}


def machine():
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"kernel": platform.release(), "cpu": model[0] if model else "unknown", "cpus": os.cpu_count(), "host": platform.node()}


def store(results, name):
    """Writes runs/<date>-<host>/<name>.json. A repeated measurement replaces the earlier one of the same name; others stay."""
    directory = HERE / "runs" / f"{results['date']}-{results['machine']['host']}"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    if path.exists():
        earlier = json.loads(path.read_text())["measurements"]
        results = {**results, "measurements": {**earlier, **results["measurements"]}}
    path.write_text(json.dumps(results, indent=1) + "\n")
    return path


def tenth_percentile(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 10]


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return {"median": statistics.median(values), "quartiles": [low, high], "min": min(values), "max": max(values)}


def say(text):
    print(text, file=sys.stderr)
