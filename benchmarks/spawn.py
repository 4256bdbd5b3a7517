#!/usr/bin/env python3
"""Compares vspawn with other libraries that start a process. `spawnscope bench` measures the mechanisms of Rust and C in turns, from
parents of several sizes. Separate programs measure Go's os/exec, Python's subprocess and Node's child_process. Writes
benchmarks/runs/<date>-<host>/spawn.json and prints tables. Needs cc and the release build of spawnscope. Go's row needs go, Python's rows need
an interpreter with the vspawn wheel (--python), Node's rows need the unpacked npm package (--npm-package), and rows with user= need root."""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from results import HERE, new_results, say, spread, store, tenth_percentile

ROOT = HERE.parent
# This program exits at once, so that only the start is measured.
TINY = ROOT / "crates/spawnscope/tests/workloads/tiny.c"
# Node processes for each module. The modules take turns.
NODE_TURNS = 4
EXPERIMENTS = ["mechanisms", "parent-size", "open-fds"]


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="vspawn-bench.") as work:
        work = Path(work)
        work.chmod(0o755)  # another user runs programs in it
        options.child = work / "tiny"
        command = ["cc", "-O1", "-static", "-nostdlib", "-fno-stack-protector", "-o", options.child, TINY]
        subprocess.run(command, check=True)
        results = new_results()
        for name in options.only:
            say(f"measuring {name}")
            results["measurements"][name] = MEASUREMENTS[name](options, work)
            if not options.dry_run:
                say(f"wrote {store(results, 'spawn')}")
        for name, result in results["measurements"].items():
            PRINT[name](result)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=ROOT / "target/release/spawnscope", type=Path)
    parser.add_argument("--seconds", type=int, default=30, help="time for each experiment of bench")
    parser.add_argument("--rounds", type=int, default=2000, help="starts by Go and by Python; Node makes fewer")
    parser.add_argument("--python", default=str(ROOT / "target/venv/bin/python"), help="the interpreter with the vspawn wheel")
    parser.add_argument("--node", default="node", help="Node's interpreter")
    parser.add_argument("--npm-package", default=ROOT / "target/npm/package", type=Path, help="the unpacked npm package of vspawn")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    return parser.parse_args()


def lab(options, _work):
    """Returns the rows of each experiment."""
    command = [options.binary, "bench", "--json", "--seconds", str(options.seconds), *EXPERIMENTS]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {experiment["name"]: experiment["rows"] for experiment in report["experiments"]}


def go(options, work):
    """Measures Go's os/exec."""
    if not shutil.which("go"):
        say("go is not installed: Go's row is left out")
        return {}
    subprocess.run(["go", "build", "-o", work / "spawn-go", "."], cwd=HERE / "spawn-go", check=True)
    done = subprocess.run([work / "spawn-go", options.child, str(options.rounds)], check=True, stdout=subprocess.PIPE)
    return order_statistics(json.loads(done.stdout))


def order_statistics(nanoseconds):
    microseconds = [value / 1e3 for value in nanoseconds]
    return {"p10": tenth_percentile(microseconds), **spread(microseconds)}


def python(options, _work):
    """Compares vspawn.run with subprocess.run, in a small parent, and with user= in a parent of 1 GB."""
    rows = {"run": [0], "run with user= in a 1 GB parent": [1024, 65534]}
    results = {}
    for name, flags in rows.items():
        rounds = options.rounds if len(flags) == 1 else max(20, options.rounds // 50)
        command = [options.python, HERE / "spawn_python.py", options.child, str(rounds), *map(str, flags)]
        times = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        sides = {side: order_statistics(values) for side, values in times.items()}
        medians = {side: statistics.median(values) for side, values in times.items()}
        results[name] = sides | {
            "ratio_of_p10": sides["vspawn"]["p10"] / sides["subprocess"]["p10"],
            "ratio_of_medians": medians["vspawn"] / medians["subprocess"],
        }
    return results


def node(options, _work):
    """Compares vspawn.spawn with child_process.spawn, in parents of Node's own size, and in ones with a heap of 1 GB."""
    modules = {"child_process": "child_process", "vspawn": options.npm_package.resolve()}
    rounds = str(max(20, options.rounds // 10 // NODE_TURNS))
    results = {}
    for mebibytes in (0, 1024):
        figures = {name: {"blocked": [], "wall": [], "together": []} for name in modules}
        for _ in range(NODE_TURNS):
            for name, module in modules.items():
                command = [options.node, "--max-old-space-size=4096", HERE / "node.mjs", module, rounds, str(mebibytes)]
                report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
                for figure, values in report["times"].items():
                    figures[name][figure].extend(values)
        row = {"resident_bytes": report["resident"]}
        for figure in ("blocked", "wall", "together"):
            row[figure] = {name: order_statistics(figures[name][figure]) for name in modules}
            row[figure]["ratio_of_medians"] = row[figure]["vspawn"]["median"] / row[figure]["child_process"]["median"]
        results[f"heap of {mebibytes} MiB"] = row
    return results


MEASUREMENTS = {"lab": lab, "go": go, "python": python, "node": node}


def print_lab(experiments):
    """Prints the times of each mechanism, and how many times as long they are from the largest parent as from the smallest."""
    for row in sorted(experiments["mechanisms"], key=lambda row: row["wall_ns"]["median"]):
        print(f"{row['mechanism']:24}{row['wall_ns']['median'] / 1e3:8.1f} us, in the call {row['call_ns']['median'] / 1e3:8.1f} us")
    for experiment, key, unit in (("parent-size", "parent_bytes", "bytes"), ("open-fds", "open_files", "open files")):
        print(f"{experiment}: the largest parent against the smallest")
        by_mechanism = {}
        for row in experiments[experiment]:
            if not row.get("memory"):
                by_mechanism.setdefault(row["mechanism"], []).append((row[key], row["wall_ns"]["median"]))
        for mechanism, points in by_mechanism.items():
            (_, least), (size, most) = min(points), max(points)
            print(f"  {mechanism:24}{most / 1e3:10.1f} us with {size:,} {unit}, ratio {most / least:.2f}")


def print_go(row):
    if row:
        print(f"Go's os/exec: p10 {row['p10']:.1f} us, median {row['median']:.1f} us")


def print_python(rows):
    for name, row in rows.items():
        p10, median = row["ratio_of_p10"], row["ratio_of_medians"]
        times = ", ".join(f"{side} {row[side]['p10']:.0f} us" for side in ("vspawn", "subprocess"))
        print(f"Python {name}: p10 {times}; ratio {p10:.3f}, of medians {median:.3f}")


def print_node(rows):
    for name, row in rows.items():
        for figure in ("blocked", "wall", "together"):
            sides = (f"{side} {value['median']:.0f} us ({value['quartiles'][0]:.0f} to {value['quartiles'][1]:.0f})"
                     for side, value in row[figure].items() if side != "ratio_of_medians")
            size = row["resident_bytes"] / 1e6
            print(f"Node, {name}, {size:.0f} MB resident, {figure}: {', '.join(sides)}; ratio {row[figure]['ratio_of_medians']:.3f}")


PRINT = {"lab": print_lab, "go": print_go, "python": print_python, "node": print_node}


if __name__ == "__main__":
    main()
