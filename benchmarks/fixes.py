#!/usr/bin/env python3
"""Compares predicted with measured savings of fixes. For each pair in crates/spawnscope/tests/fixes (pair.rs there describes pairs), each round
records `before`, runs `before`, and runs `after`, the last two in alternating order. From each recording, `spawnscope whatif`
predicts the wall time with the pair's fix:

    error = |median of (predicted - `after`) / `before`|, each within a round

so the recording overhead and changes of the machine within a round count as errors, but not its changes between rounds. The error is a share
of the wall time before the fix, because a user decides by that share: of 600 ms, it does not matter whether 3 ms or 6 ms are left. The
ratio predicted / `after` is printed, too. Every recording is judged, since a user has only one: its interval is correct if it contains the
median of `after`, and its sign is correct if it says longer or shorter as the fix does. The advice is right if the pair's file `advice`
lists the rule that `spawnscope advise` prints first for most recordings. If `spawnscope advise --patch` prints a patch, it is applied to a
copy of the pair, whose `before` must print the same, and is timed as well. Prints a table, writes benchmarks/runs/<date>-<host>/fixes.json,
and with --write the table of docs/guide/predictions.md. --stored judges such a file again without measuring. Exits with status 1 if a goal
is missed (the constants below). Pairs whose fix changes more than launches (described in their file `beyond`) do not count, and have a
separate table.
Needs root, bash, python3, make, cc, 3 GB of memory, and a quiet machine."""

import argparse
import copy
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from results import new_results, say, spread, store

HERE = Path(__file__).resolve().parent
PAIRS = HERE.parent / "crates/spawnscope/tests/fixes"
GUIDE = HERE.parent / "docs/guide/predictions.md"
TABLE_BEGINS, TABLE_ENDS = "<!-- table: benchmarks/fixes.py --write -->\n", "<!-- end of table -->\n"
# The environment of pairs and runs: that of a user, without this machine's PATH or language.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}

# The goals. Errors and half widths of intervals are shares of the wall time before the fix.
MAX_MEDIAN_ERROR, MAX_ERROR = 0.02, 0.12
MIN_COVERAGE, MAX_HALF_WIDTH = 0.90, 0.06
# The keys of a prediction that are stored.
STORED_KEYS = ["wall_ns", "unrecorded_ns", "predicted_ns", "low_ns", "high_ns", "replay_error"]


def main():
    options = parse()
    results = json.loads(options.stored.read_text()) if options.stored else measure(options)
    rows = {name: {**row, **judge(row)} for name, row in results["measurements"].items()}
    print(tables(rows))
    if options.write:
        write_guide(results, rows)
    sys.exit(bool(missed_goals([row for row in rows.values() if not row["beyond"]])))


def measure(options):
    results = new_results()
    with tempfile.TemporaryDirectory(prefix="spawnscope-fixes.") as work:
        for name in options.names:
            say(f"measuring {name}")
            results["measurements"][name] = measure_pair(Pair(name, Path(work)), options)
            if not options.dry_run:
                store(results, "fixes")
    return results


def parse():
    known = sorted(file.parent.name for file in PAIRS.glob("*/whatif"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"pairs to measure (default: all): {', '.join(known)}")
    parser.add_argument("--binary", default="target/release/spawnscope", help="the profiler that predicts")
    parser.add_argument("--rounds", type=int, default=15, help="recordings, and runs of each variant")
    parser.add_argument("--write", action="store_true", help="put the table into docs/guide/predictions.md")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    parser.add_argument("--stored", type=Path, metavar="FILE", help="measure nothing: judge this fixes.json again")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="copy the recording with the median prediction of each pair into this directory")
    options = parser.parse_args()
    options.names = options.names or known
    if unknown := set(options.names) - set(known):
        parser.error(f"no such pair: {', '.join(sorted(unknown))}")
    if options.rounds < 2:
        parser.error("needs at least two rounds")
    options.binary = str(Path(options.binary).resolve())
    return options


class Pair:
    """A pair of programs, built in a directory of its own."""

    def __init__(self, name, work):
        self.name = name
        self.directory = PAIRS / name
        self.flags = (self.directory / "whatif").read_text().split()
        self.rules = self.text("advice").split()
        self.work = work / name
        self.work.mkdir()
        if (self.directory / "build").exists():
            self.call([self.directory / "build", self.directory])
        for variant in ("before", "after"):
            if not (self.work / variant).exists():
                shutil.copy(self.directory / variant, self.work / variant)

    def patched(self, binary, recording):
        """Returns a copy of the pair with the patch that a recording leads to; None if the patch is empty."""
        command = [binary, "advise", "--patch", recording]
        patch = subprocess.run(command, cwd=self.work, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if not patch:
            return None
        other = copy.copy(self)
        other.work = self.work.with_name(f"{self.name}.patched")
        shutil.copytree(self.work, other.work, symlinks=True, ignore=shutil.ignore_patterns("*.db"))
        subprocess.run(["patch", "-p0", "--silent", "--no-backup-if-mismatch"], cwd=other.work, input=patch, check=True)
        return other

    def beyond(self):
        """Returns what the fix changes besides launches; empty for most pairs."""
        return self.text("beyond").strip()

    def text(self, name):
        file = self.directory / name
        return file.read_text() if file.exists() else ""

    def call(self, command, stdout=None):
        environment = {**os.environ, **ENVIRONMENT}
        subprocess.run(command, cwd=self.work, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=stdout, timeout=120)

    def run(self, variant, wrapper):
        """Runs a variant through a wrapper, from the state that it expects. Returns its output."""
        if (self.directory / "setup").exists():
            self.call([self.directory / "setup"])
        command = [*wrapper, f"./{variant}"]
        if (self.work / "around").exists():
            command = ["./around", variant, *command]
        with tempfile.TemporaryFile() as output:
            self.call(command, stdout=output)
            output.seek(0)
            return output.read()

    def time_variant(self, variant, expected):
        """Runs a variant and returns its time in seconds. Exits if its output is not as `expected`."""
        file = self.work / "seconds"
        printed = self.run(variant, [sys.executable, HERE / "stopwatch.py", file])
        if printed != expected:
            sys.exit(f"{self.name}: `{variant}` output differs from that of `before`: it does not do the same work")
        return float(file.read_text())


def measure_pair(pair, options):
    expected = pair.run("before", [])
    recordings = []
    runs = {"before": [], "after": []}
    for variant in runs:
        pair.time_variant(variant, expected)
    for number in range(options.rounds):
        recordings.append(record_and_predict(pair, options, number))
        for variant in list(runs) if number % 2 else reversed(list(runs)):
            runs[variant].append(pair.time_variant(variant, expected))
    patched = pair.patched(options.binary, recordings[-1]["file"])
    patched_runs = [patched.time_variant("before", expected) for _ in range(options.rounds)] if patched else []
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        shutil.copy(recording_with_median_prediction(recordings)["file"], options.keep / f"{pair.name}.before.db")
    for recording in recordings:
        Path(recording["file"]).unlink()
    predictions = [recording["prediction"] for recording in recordings]
    measured = {"flags": pair.flags, "predictions": predictions, "runs_seconds": runs, "beyond": pair.beyond()}
    patch = {"patched_seconds": spread(patched_runs) if patched else None}
    return {**measured, **first_advice(pair.rules, recordings), **patch}


def first_advice(rules, recordings):
    """Returns the rule that came first in most recordings, and whether it is right; `-` in the pair's file means no advice."""
    firsts = [recording["first_rule"] for recording in recordings]
    first = statistics.mode(firsts)
    return {"first_rule": first, "first_rules": firsts, "expected_rules": rules, "is_advice_right": first in rules if rules else None}


def recording_with_median_prediction(recordings):
    return sorted(recordings, key=lambda recording: recording["prediction"]["predicted_ns"])[len(recordings) // 2]


def record_and_predict(pair, options, number):
    file = str(pair.work / f"before{number}.db")
    pair.run("before", [options.binary, "record", "--quiet", "-o", file, "--"])
    prediction = json_of([options.binary, "whatif", file, *pair.flags, "--json"])
    advice = json_of([options.binary, "advise", file, "--json"])["advice"]
    first = advice[0]["rule"] if advice else "-"
    return {"file": file, "prediction": {key: prediction[key] for key in STORED_KEYS}, "first_rule": first}


def json_of(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def judge(row):
    """Compares the predictions of a pair with its runs."""
    runs, predictions = row["runs_seconds"], row["predictions"]
    spreads = {f"{variant}_seconds": spread(runs[variant]) for variant in ["before", "after"]}
    before, after = (each["median"] for each in spreads.values())
    seconds = {key: [prediction[key] / 1e9 for prediction in predictions] for key in ["wall_ns", "predicted_ns", "low_ns", "high_ns"]}
    rounds = list(zip(seconds["predicted_ns"], runs["after"], runs["before"]))
    intervals = list(zip(seconds["low_ns"], seconds["high_ns"]))
    median = statistics.median
    return {
        "recorded_seconds": median(seconds["wall_ns"]),
        "predicted_seconds": median(seconds["predicted_ns"]),
        "interval_seconds": [median(seconds["low_ns"]), median(seconds["high_ns"])],
        **spreads,
        "error": abs(median((predicted - real) / earlier for predicted, real, earlier in rounds)),
        "ratio": median(predicted / real for predicted, real, _ in rounds),
        "covered": [low <= after <= high for low, high in intervals],
        "half_width": median((high - low) / 2 / before for low, high in intervals),
        "signs": [is_sign_right(prediction, *spreads.values()) for prediction in predictions],
    }


def is_sign_right(prediction, before, after):
    """Whether a prediction says longer or shorter as the fix does. A fix has no sign if the quartiles of the runs overlap."""
    if before["quartiles"][0] <= after["quartiles"][1] and after["quartiles"][0] <= before["quartiles"][1]:
        return True
    # Results before 2026-11-28 lack the wall time without the overhead of recording.
    wall = prediction.get("unrecorded_ns", prediction["wall_ns"])
    return (prediction["predicted_ns"] < wall) == (after["median"] < before["median"])


def missed_goals(rows):
    """Returns the goals that these pairs miss, as text."""
    if not rows:
        return []
    figures = [
        ("median error", statistics.median(row["error"] for row in rows), MAX_MEDIAN_ERROR),
        ("worst error", max(row["error"] for row in rows), MAX_ERROR),
        ("intervals that miss the real wall time", 1 - share_of(rows, "covered"), 1 - MIN_COVERAGE),
        ("median half width of the intervals", statistics.median(row["half_width"] for row in rows), MAX_HALF_WIDTH),
        ("wrong signs", 1 - share_of(rows, "signs"), 0),
    ]
    return [f"{name} {value:.1%} (at most {most:.0%})" for name, value, most in figures if value > most + 1e-9]


def share_of(rows, key):
    """Returns the share of recordings for which `key` is true. Each pair has the same weight."""
    return statistics.mean(statistics.mean(row[key]) for row in rows)


def tables(rows):
    within = {name: row for name, row in rows.items() if not row["beyond"]}
    beyond = {name: row for name, row in rows.items() if row["beyond"]}
    text = table(within) + summary(within) if within else ""
    if beyond:
        text += "\nBeyond the model:\n\n" + table(beyond)
        text += "".join(f"\n{name.replace('_', ' ')}: {row['beyond']}\n" for name, row in beyond.items())
    return text


def table(rows):
    lines = [
        "| fix | `whatif` | recorded | before | predicted | after | error | predicted / after | in interval | first advice | after `advise --patch` |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|---|--:|",
    ]
    for name, row in rows.items():
        low, high = row["interval_seconds"]
        cells = [
            name.replace("_", " "),
            f"`{' '.join(row['flags'])}`",
            ms(row["recorded_seconds"]),
            ms(row["before_seconds"]["median"]),
            f"{ms(row['predicted_seconds'])} ({ms(low)} to {ms(high)})",
            ms(row["after_seconds"]["median"]),
            f"{row['error']:.1%}",
            f"{row['ratio']:.2f}",
            f"{sum(row['covered'])} of {len(row['covered'])}",
            row["first_rule"] + (" (wrong)" if row["is_advice_right"] is False else ""),
            ms(row["patched_seconds"]["median"]) if row.get("patched_seconds") else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def ms(seconds):
    return f"{seconds * 1e3:,.0f}"


def summary(rows):
    errors = {name: row["error"] for name, row in rows.items()}
    worst = max(errors, key=errors.get)
    judged = [row["is_advice_right"] for row in rows.values() if row["is_advice_right"] is not None]
    widths = [row["half_width"] for row in rows.values()]
    missed = missed_goals(list(rows.values()))
    return (
        f"\nMedian error {statistics.median(errors.values()):.1%} of the wall time before, worst {errors[worst]:.1%} ({worst.replace('_', ' ')}); "
        f"{share_of(rows.values(), 'covered'):.0%} of the intervals contain the real wall time, their median half width is "
        f"{statistics.median(widths):.1%} of the wall time before; {share_of(rows.values(), 'signs'):.0%} of the signs are right. "
        f"The right advice comes first in {sum(judged)} of {len(judged)}. "
        f"{'Missed: ' + ', '.join(missed) if missed else 'All goals are met'}.\n"
    )


def write_guide(results, rows):
    text = GUIDE.read_text()
    head, _, rest = text.partition(TABLE_BEGINS)
    _, end, tail = rest.partition(TABLE_ENDS)
    if not end:
        sys.exit(f"{GUIDE}: the lines that mark where the table goes are missing")
    machine = results["machine"]
    runs = min(len(row["runs_seconds"]["after"]) for row in results["measurements"].values())
    where = f"{results['date']}, {machine['cpus']} CPUs ({machine['cpu']}), Linux {machine['kernel']}; milliseconds, medians of at least {runs} runs.\n\n"
    GUIDE.write_text(f"{head}{TABLE_BEGINS}{where}{tables(rows)}{TABLE_ENDS}{tail}")
    say(f"wrote {GUIDE}")


if __name__ == "__main__":
    main()
