#!/usr/bin/env python3
"""Compares mechanisms that start a process: vspawn, the bare system calls, and common libraries. The Rust and C
mechanisms run in one process, one start of each per round, in random order; Python and Go alternate with that process. Parents with different amounts of
memory and numbers of open files alternate too. Compares the 10th percentile (p10) and the median, since other work on the machine only adds time. Writes
benchmarks/runs/<date>-<host>/spawn.json and prints tables. Needs cargo and cc; go for Go's row; for Python's rows an
interpreter with the vspawn wheel (--python); root for the rows with user=."""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from results import HERE, new_results, say, spread, store, tenth_percentile

# This program exits at once, so that only the start is measured.
TINY = HERE.parent / "crates/spawnscope/tests/workloads/tiny.c"


def main():
    options = parse()
    work = Path(tempfile.mkdtemp(prefix="vspawn-bench."))
    work.chmod(0o755)  # another user runs programs in it
    try:
        options.child = work / "tiny"
        command = ["cc", "-O1", "-static", "-nostdlib", "-fno-stack-protector", "-o", options.child, TINY]
        subprocess.run(command, check=True)
        options.bench = build()
        results = new_results()
        for name in options.only:
            say(f"measuring {name}")
            results["measurements"][name] = MEASUREMENTS[name](options, work)
            if not options.dry_run:
                say(f"wrote {store(results, 'spawn')}")
        for name, result in results["measurements"].items():
            PRINT[name](result)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000, help="starts of each mechanism")
    parser.add_argument("--python", default=str(HERE.parent / "target/venv/bin/python"), help="the interpreter with the vspawn wheel")
    parser.add_argument("--large-mb", type=int, default=4096, help="memory of the large parent")
    parser.add_argument("--many-files", type=int, default=19900, help="open files of the parent with many open files")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    return parser.parse_args()


def build():
    command = ["cargo", "bench", "-q", "-p", "vspawn", "--bench", "spawn", "--no-run", "--message-format=json"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "spawn")


def bench(options, rounds, *flags):
    command = [options.bench, "--child", options.child, "--rounds", str(rounds), *map(str, flags)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def mechanisms(options, work):
    """Measures all mechanisms in one process, and Go's os/exec, in five alternating parts."""
    go = build_go(work)
    rows, parts = {}, 5
    for _ in range(parts):
        for name, row in bench(options, options.rounds // parts).items():
            into = rows.setdefault(name, {"total_ns": [], "call_ns": [], "user_s": 0, "system_s": 0})
            for key in row:
                into[key] += row[key]
        if go:
            command = [go, options.child, str(options.rounds // parts)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            rows.setdefault("go_os_exec", {"total_ns": []})["total_ns"] += json.loads(done.stdout)
    return {name: summary(row) for name, row in rows.items()}


def summary(row):
    result = {"total_us": order_statistics(row["total_ns"])}
    if "call_ns" in row:
        each = 1e6 / len(row["total_ns"])
        result |= {"call_us": order_statistics(row["call_ns"]), "user_us": row["user_s"] * each, "system_us": row["system_s"] * each}
    return result


def order_statistics(nanoseconds):
    microseconds = [value / 1e3 for value in nanoseconds]
    return {"p10": tenth_percentile(microseconds), **spread(microseconds)}


def build_go(work):
    if not shutil.which("go"):
        say("go is not installed: Go's row is left out")
        return None
    subprocess.run(["go", "build", "-o", work / "spawn-go", "."], cwd=HERE / "spawn-go", check=True)
    return str(work / "spawn-go")


def nowait(options, _work):
    """Measures the time of the parent inside the call that starts a child. Only the three compared mechanisms run."""
    rows = bench(options, 2 * options.rounds, "--only", "raw_clone,raw_clone_nowait,vspawn_nowait")
    return {name: {"call_us": order_statistics(row["call_ns"]), "total_us": order_statistics(row["total_ns"])} for name, row in rows.items()}


def large_parent(options, _work):
    """Compares starts from a small and from a large parent."""
    names = "raw_clone3,vspawn,vspawn_nowait,std_process,posix_spawn"
    return contrast(options, names, {"small": ["--parent-mb", 0], "large": ["--parent-mb", options.large_mb]})


def many_files(options, _work):
    """Compares starts from a parent without open files of its own and from one with very many."""
    names = "raw_clone3,vspawn,vspawn_close_others,posix_spawn"
    return contrast(options, names, {"few": ["--open-files", 0], "many": ["--open-files", options.many_files]})


def contrast(options, names, parents):
    """Measures starts from two parents in alternating order. `parents` has the label and the flags of each."""
    parts, sides = 8, {label: {} for label in parents}
    for number in range(parts):
        for label in parents if number % 2 else reversed(parents):
            for name, row in bench(options, options.rounds // parts, "--only", names, *parents[label]).items():
                sides[label].setdefault(name, []).extend(row["total_ns"])
    first, second = sides.values()
    return {
        name: {label: order_statistics(sides[label][name]) for label in sides}
        | {"ratio_of_p10": tenth_percentile(second[name]) / tenth_percentile(first[name])}
        for name in first
    }


def in_flight(options, _work):
    """Measures the starts per second of one thread with 64 children in flight."""
    rates = bench(options, options.rounds * 10, "--in-flight", 64)
    ratios = [fast / slow for slow, fast in zip(rates["raw_clone"], rates["vspawn_nowait"])]
    return {name: spread(values) for name, values in rates.items()} | {"ratio": spread(ratios)}


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


MEASUREMENTS = {
    "mechanisms": mechanisms,
    "nowait": nowait,
    "large_parent": large_parent,
    "many_files": many_files,
    "in_flight": in_flight,
    "python": python,
}


def print_mechanisms(rows):
    """Prints CPU times (compared with vfork, as popen_noshell's author does), wall times, and ratios."""
    print(f"{'microseconds per start':24}{'user':>8}{'system':>8}{'total':>8}{'slower by':>13}{'wall p10':>10}{'median':>8}{'call p10':>10}")
    floor = rows["raw_clone"]["user_us"] + rows["raw_clone"]["system_us"]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["total_us"]["p10"]):
        wall = f"{row['total_us']['p10']:10.1f}{row['total_us']['median']:8.1f}"
        if "user_us" not in row:
            print(f"{name:24}{'-':>8}{'-':>8}{'-':>8}{'-':>13}{wall}{'-':>10}")
            continue
        user, system = row["user_us"], row["system_us"]
        slower = f"{100 * ((user + system) / floor - 1):+.0f} %"
        print(f"{name:24}{user:8.1f}{system:8.1f}{user + system:8.1f}{slower:>13}{wall}{row['call_us']['p10']:10.1f}")
    for above, below, part in (
        ("vspawn", "raw_clone3", "total_us"),
        ("vspawn", "raw_clone", "total_us"),
        ("vspawn_pipe", "raw_clone_pipe", "total_us"),
    ):
        print_ratio(rows, above, below, part)


def print_nowait(rows):
    for above in ("vspawn_nowait", "raw_clone_nowait"):
        print_ratio(rows, above, "raw_clone", "call_us")


def print_ratio(rows, numerator, denominator, part):
    p10, median = (rows[numerator][part][key] / rows[denominator][part][key] for key in ("p10", "median"))
    print(f"{numerator} / {denominator}, {part[:-3]}: p10 {p10:.3f}, median {median:.3f}")


def print_contrast(rows):
    for name, row in rows.items():
        sides = ", ".join(f"{label} {row[label]['p10']:8.1f} us" for label in row if label != "ratio_of_p10")
        print(f"{name:24} {sides}, ratio of p10 {row['ratio_of_p10']:.3f}")


def print_in_flight(rows):
    for name, row in rows.items():
        digits, unit = (2, "") if name == "ratio" else (0, " starts/s")
        median, low, high = (f"{value:.{digits}f}" for value in (row["median"], *row["quartiles"]))
        print(f"in flight, {name}: median {median}{unit} ({low} to {high})")


def print_python(rows):
    for name, row in rows.items():
        p10, median = row["ratio_of_p10"], row["ratio_of_medians"]
        times = ", ".join(f"{side} {row[side]['p10']:.0f} us" for side in ("vspawn", "subprocess"))
        print(f"Python {name}: p10 {times}; ratio {p10:.3f}, of medians {median:.3f}")


PRINT = {
    "mechanisms": print_mechanisms,
    "nowait": print_nowait,
    "large_parent": print_contrast,
    "many_files": print_contrast,
    "in_flight": print_in_flight,
    "python": print_python,
}


if __name__ == "__main__":
    main()
