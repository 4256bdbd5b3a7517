#!/usr/bin/env python3
"""Holds predictions against fixes: for each pair of crates/spawnscope/tests/fixes (main.rs there says what a pair is), records
`before`, lets `spawnscope whatif` predict the wall with the pair's fix, and runs `before` and `after` in turn without the
recorder. Recording costs a few per cent, which the prediction inherits, so that it is scaled to the unrecorded run:

    scaled prediction = predicted wall * (median of `before` / recorded wall)
    error             = |scaled prediction - median of `after`| / median of `after`

A prediction covers when the median of `after` lies in its interval, scaled alike. Prints a table, writes
benchmarks/runs/<date>-<host>/fixes.json, and with --write the table of docs/guide/predictions.md. Exit status 1 when the
median error is above 8 % or the worst above 20 %. Needs root, bash, python3, make, cc, 3 GB of memory, and a quiet machine."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from results import new, say, spread, store

HERE = Path(__file__).resolve().parent
PAIRS = HERE.parent / "crates/spawnscope/tests/fixes"
GUIDE = HERE.parent / "docs/guide/predictions.md"
TABLE_BEGINS, TABLE_ENDS = "<!-- table: benchmarks/fixes.py --write -->\n", "<!-- end of table -->\n"
# What counts of pairs and runs is what a user sees, so neither the path of this machine nor its language may matter.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}

MOST_MEDIAN_ERROR, MOST_ERROR = 0.08, 0.20
# Medians that are known worse than this are measured longer.
MOST_UNCERTAINTY, MOST_ROUNDS = 0.02, 4


def main():
    options = parse()
    results = new()
    with tempfile.TemporaryDirectory(prefix="spawnscope-fixes.") as work:
        for name in options.names:
            say(f"measuring {name}")
            results["measurements"][name] = measured(Pair(name, Path(work)), options)
            if not options.dry_run:
                store(results, "fixes")
    rows = results["measurements"]
    print(table(rows) + summary(rows))
    if options.write:
        write_guide(results)
    errors = [row["error"] for row in rows.values()]
    sys.exit(statistics.median(errors) > MOST_MEDIAN_ERROR or max(errors) > MOST_ERROR)


def parse():
    known = sorted(file.parent.name for file in PAIRS.glob("*/whatif"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"pairs to measure, all unless told otherwise: {', '.join(known)}")
    parser.add_argument("--binary", default="target/release/spawnscope", help="the profiler whose predictions count")
    parser.add_argument("--pairs", type=int, default=15, help="runs of each variant, at least")
    parser.add_argument("--recordings", type=int, default=3, help="the one with the median wall is used")
    parser.add_argument("--write", action="store_true", help="put the table into docs/guide/predictions.md")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="keep recordings of both variants there")
    options = parser.parse_args()
    options.names = options.names or known
    if unknown := set(options.names) - set(known):
        parser.error(f"no such pair: {', '.join(sorted(unknown))}")
    if options.pairs < 2 or options.recordings < 1:
        parser.error("needs at least two runs of each variant and one recording")
    options.binary = str(Path(options.binary).resolve())
    return options


class Pair:
    """A pair, built in a directory of its own."""

    def __init__(self, name, work):
        self.name = name
        self.folder = PAIRS / name
        self.flags = (self.folder / "whatif").read_text().split()
        self.work = work / name
        self.work.mkdir()
        if (self.folder / "build").exists():
            self.call([self.folder / "build", self.folder])

    def call(self, command, stdout=None):
        environment = {**os.environ, **ENVIRONMENT}
        subprocess.run(command, cwd=self.work, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=stdout, timeout=120)

    def run(self, variant, wrapper):
        """Runs a variant through a wrapper, from the state that it expects; gives what it printed."""
        if (self.folder / "setup").exists():
            self.call([self.folder / "setup"])
        built = self.work / variant
        command = [*wrapper, f"./{variant}" if built.exists() else self.folder / variant]
        if (self.work / "around").exists():
            command = ["./around", variant, *command]
        with tempfile.TemporaryFile() as output:
            self.call(command, stdout=output)
            output.seek(0)
            return output.read()

    def seconds(self, variant, expected):
        """How long a variant takes. What it prints has to be what the other one does."""
        file = self.work / "seconds"
        printed = self.run(variant, [sys.executable, HERE / "stopwatch.py", file])
        if printed != expected:
            sys.exit(f"{self.name}: `{variant}` does not print what `before` printed: it does not do the same work")
        return float(file.read_text())


def measured(pair, options):
    expected = pair.run("before", [])
    recordings = [recorded(pair, options, "before", number) for number in range(options.recordings)]
    middle = sorted(recordings, key=lambda recording: recording["wall_ns"])[len(recordings) // 2]
    prediction = json_of([options.binary, "whatif", middle["file"], *pair.flags, "--json"])
    runs = alternated(pair, options.pairs, expected)
    if options.keep:
        after = recorded(pair, options, "after", 0)
        options.keep.mkdir(parents=True, exist_ok=True)
        for variant, recording in (("before", middle), ("after", after)):
            shutil.copy(recording["file"], options.keep / f"{pair.name}.{variant}.db")
    for recording in recordings:
        Path(recording["file"]).unlink()
    return judged(pair.flags, prediction, recordings, runs)


def recorded(pair, options, variant, number):
    file = str(pair.work / f"{variant}{number}.db")
    pair.run(variant, [options.binary, "record", "--quiet", "-o", file, "--"])
    report = json_of([options.binary, "report", "--json", file])
    if report["lost_events"]:
        say(f"{pair.name}: {report['lost_events']} events were lost")
    return {"file": file, "wall_ns": report["wall_ns"], "replay_error": report["replay_error"]}


def json_of(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def alternated(pair, least, expected):
    """Seconds of both variants, each first half of the time; longer where the medians are still uncertain."""
    runs = {"before": [], "after": []}
    for variant in runs:
        pair.seconds(variant, expected)
    order = list(runs)
    while len(runs["after"]) < least * MOST_ROUNDS:
        for variant in order:
            runs[variant].append(pair.seconds(variant, expected))
        order.reverse()
        if len(runs["after"]) >= least and max(map(uncertainty, runs.values())) <= MOST_UNCERTAINTY:
            break
    return runs


def uncertainty(values):
    """Half the width of the median's 95 % interval, as a share of it (McGill, Tukey and Larsen's notch)."""
    low, middle, high = statistics.quantiles(values, n=4)
    return 1.57 * (high - low) / len(values) ** 0.5 / middle


def judged(flags, prediction, recordings, runs):
    before, after = (statistics.median(runs[variant]) for variant in ("before", "after"))
    scale = before / (prediction["wall_ns"] / 1e9)
    predicted, low, high = (prediction[key] / 1e9 for key in ("predicted_ns", "low_ns", "high_ns"))
    return {
        "flags": flags,
        "recorded_seconds": prediction["wall_ns"] / 1e9,
        "predicted_seconds": predicted,
        "interval_seconds": [low, high],
        "replay_error": prediction["replay_error"],
        "before_seconds": spread(runs["before"]),
        "after_seconds": spread(runs["after"]),
        "scaled_prediction_seconds": predicted * scale,
        "scaled_interval_seconds": [low * scale, high * scale],
        "ratio_predicted": predicted / (prediction["wall_ns"] / 1e9),
        "ratio_measured": after / before,
        "error": abs(predicted * scale - after) / after,
        # Without the scaling: holds the recorder's cost against the prediction, as a user who reads one number does.
        "error_unscaled": abs(predicted - after) / after,
        "covers": low * scale <= after <= high * scale,
        "recordings": recordings,
        "runs_seconds": runs,
    }


def table(rows):
    lines = [
        "| fix | `whatif` | recorded | predicted | before | after | predicted, scaled | error | in interval |",
        "|---|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name, row in rows.items():
        low, high = row["scaled_interval_seconds"]
        cells = [
            name.replace("_", " "),
            f"`{' '.join(row['flags'])}`",
            ms(row["recorded_seconds"]),
            ms(row["predicted_seconds"]),
            ms(row["before_seconds"]["median"]),
            ms(row["after_seconds"]["median"]),
            f"{ms(row['scaled_prediction_seconds'])} ({ms(low)} to {ms(high)})",
            f"{row['error']:.1%}",
            "yes" if row["covers"] else "no",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def ms(seconds):
    return f"{seconds * 1e3:,.0f}"


def summary(rows):
    errors = {name: row["error"] for name, row in rows.items()}
    worst = max(errors, key=errors.get)
    unscaled = statistics.median(row["error_unscaled"] for row in rows.values())
    covered = sum(row["covers"] for row in rows.values())
    return (
        f"\nMedian error {statistics.median(errors.values()):.1%}, worst {errors[worst]:.1%} ({worst.replace('_', ' ')}); "
        f"{covered} of {len(rows)} intervals cover. Not scaled, the median error is {unscaled:.1%}.\n"
    )


def write_guide(results):
    text = GUIDE.read_text()
    head, _, rest = text.partition(TABLE_BEGINS)
    _, end, tail = rest.partition(TABLE_ENDS)
    if not end:
        sys.exit(f"{GUIDE}: the lines that mark where the table goes are missing")
    machine = results["machine"]
    runs = min(len(row["runs_seconds"]["after"]) for row in results["measurements"].values())
    where = f"{results['date']}, {machine['cpus']} CPUs ({machine['cpu']}), Linux {machine['kernel']}; milliseconds, medians of at least {runs} runs.\n\n"
    rows = results["measurements"]
    GUIDE.write_text(f"{head}{TABLE_BEGINS}{where}{table(rows)}{summary(rows)}{TABLE_ENDS}{tail}")
    say(f"wrote {GUIDE}")


if __name__ == "__main__":
    main()
