#!/usr/bin/env python3
"""Changes recordings at random and runs every verb that reads them: no verb may panic, die of a signal, run for long, or fill the memory.

A recording is untrusted input (SECURITY.md). Each mutant is a copy of a recording with one to four changes: values of columns (random, NULL,
huge, negative, of another type), deleted and duplicated rows, and cycles of parents. Its checksums are removed, as the format
allows, because they would reveal the change. Random changes find what the tests in crates/spawnscope-recording/src/reader/tests do not
anticipate.

The seed determines the changes, so `--first N --count 1` repeats mutant N. A mutant that fails is kept in the directory `--keep`. Exits with
status 1 if one failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

MEMORY_BYTES = 4 << 30
# The status of a Rust program that panicked.
PANICKED = 101
HUGE = (2**31 - 1, 2**31, 2**32, 2**53, 2**55, 2**56, 2**56 + 1, 2**62, 2**63 - 1)
CYCLES = (
    "UPDATE launch SET parent = id WHERE rowid = :a",
    "UPDATE launch SET parent = CASE id WHEN :a THEN :b ELSE :a END WHERE id IN (:a, :b)",
    "UPDATE launch SET parent = (SELECT max(id) FROM launch) - id + 1",
    "UPDATE thread SET creator = task",
    "UPDATE stack SET caller = id WHERE rowid = :a",
    "UPDATE slice SET waker = task",
)


def verbs(mutant: str, original: str, out: str) -> list[list[str]]:
    """Returns the arguments of all runs for one mutant. Files are written to the directory `out`."""
    changes = ["--remove *", "--remove dirname", "--builtin *", "--batch *=3", "--in-process *", "--coprocess *", "--replace *=0.5"]
    changes += ["--jobs 4", "--vfork *", "--huge-pages *", "--no-shell", "--static *", "--direct *", "--absolute *", "--no-search *"]
    changes += ["--steady-parent *", "--no-scan", "--no-teardown *", "--quick-launch *", "--close-range *", "--reap-now", "--cpus 65536"]
    formats = ["ndjson", "perfetto", "otlp"]
    return [
        ["report", "--full", mutant],
        ["report", "--full", "--json", mutant],
        ["report", "--by", "line", mutant],
        ["report", "--from", "0.01", "--to", "0.3", mutant],
        ["tree", "--unfold", mutant],
        ["tree", "--critical", mutant],
        ["advise", "--all", mutant],
        ["advise", "--all", "--json", mutant],
        *(["whatif", *change.split(), mutant] for change in changes),
        *(["export", "--format", name, "-o", f"{out}/export", mutant] for name in formats),
        ["export", "--format", "parquet", "-o", f"{out}/dataset", mutant],
        ["flame", "-o", f"{out}/flame.svg", mutant],
        ["flame", "--folded", "--weight", "critical", "-o", "-", mutant],
        ["flame", "--folded", "--by", "caller", "-o", "-", mutant],
        ["flame", "--off-cpu", "-o", f"{out}/flame.svg", mutant],
        ["html", "-o", f"{out}/page.html", mutant],
        ["diff", "-o", f"{out}/diff.html", original, mutant],
        ["diff", "--json", mutant, original],
        ["check", "--max-launches", "5", "--max-wall", "1s", "--per-line", "1", "--against", original, mutant],
        ["check", "--max-launches", "5", "--max-critical-tax", "1%", "--format", "json", mutant],
    ]


def value(rng: random.Random, old: object) -> object:
    """Returns another value for a column that holds `old`."""
    near = [old + 1, old - 1, -old, old * 2, old * 1000] if isinstance(old, int | float) else []
    choices = [
        None,
        0,
        rng.choice(HUGE),
        -rng.choice(HUGE),
        -rng.randrange(1, 1000),
        rng.randrange(1 << rng.randrange(1, 63)),
        rng.choice([1e15, -1e15, 1e300, -0.5, float("inf")]),
        rng.randbytes(rng.randrange(40)),
        "text",
        *near * 2,
    ]
    chosen = rng.choice(choices)
    fits = not isinstance(chosen, int) or -(2**63) <= chosen < 2**63
    return chosen if fits else 2**63 - 1


def change_values(rng: random.Random, file: sqlite3.Connection, table: str, rowids: list[int]) -> None:
    columns = [name for _, name, *_ in file.execute(f"PRAGMA table_info({table})")]
    column = rng.choice(columns)
    # Sometimes every row, so that sums overflow.
    chosen = rowids if rng.random() < 0.1 else rng.sample(rowids, min(len(rowids), rng.choice([1, 1, 2, 10])))
    old = file.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (chosen[0],)).fetchone()[0]
    new = value(rng, old)
    file.executemany(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?", [(new, rowid) for rowid in chosen])


def duplicate_rows(rng: random.Random, file: sqlite3.Connection, table: str, rowids: list[int]) -> None:
    columns = [(name, is_key) for _, name, _, _, _, is_key in file.execute(f"PRAGMA table_info({table})")]
    # A new key, where there is one that is a number; rows with other keys are ignored.
    values = ", ".join(f"(SELECT max({name}) + 1 FROM {table})" if is_key else name for name, is_key in columns)
    for rowid in rng.sample(rowids, min(len(rowids), rng.choice([1, 5, 50]))):
        file.execute(f"INSERT OR IGNORE INTO {table} SELECT {values} FROM {table} WHERE rowid = ?", (rowid,))


def delete_rows(rng: random.Random, file: sqlite3.Connection, table: str, rowids: list[int]) -> None:
    chosen = rowids if rng.random() < 0.1 else rng.sample(rowids, min(len(rowids), rng.choice([1, 1, 3, 20])))
    file.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(rowid,) for rowid in chosen])


def make_cycle(rng: random.Random, file: sqlite3.Connection, _table: str, _rowids: list[int]) -> None:
    launches = [rowid for (rowid,) in file.execute("SELECT rowid FROM launch")]
    statement = rng.choice(CYCLES)
    if len(launches) > 1:
        first, second = rng.sample(launches, 2)
        names = {name: number for name, number in (("a", first), ("b", second)) if f":{name}" in statement}
        file.execute(statement, names)


def mutate(rng: random.Random, path: Path) -> None:
    """Changes a copy of a recording."""
    file = sqlite3.connect(path)
    file.execute("PRAGMA ignore_check_constraints = ON")
    file.execute("DELETE FROM checksum")
    tables = [name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    kinds = [change_values] * 8 + [duplicate_rows, delete_rows, make_cycle]
    for _ in range(rng.choice([1, 1, 2, 4])):
        table = rng.choice(tables)
        rowids = [rowid for (rowid,) in file.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
        if rowids:
            try:
                rng.choice(kinds)(rng, file, table, rowids)
            except sqlite3.IntegrityError:
                # A constraint of the schema, such as NOT NULL, excludes this change.
                pass
    file.commit()
    file.close()


def add_rare_rows(path: Path) -> None:
    """Adds rows of kinds that few recordings have, so that they are changed, too."""
    file = sqlite3.connect(path)
    text = file.execute("SELECT min(id) FROM text").fetchone()[0]
    task, off = file.execute("SELECT task, off_ns FROM slice LIMIT 1").fetchone() or (1, 1)
    file.execute("INSERT OR IGNORE INTO lost VALUES ('ring buffer', 3), ('call chain', 2)")
    file.execute("INSERT INTO missing VALUES ('faults', 'nothing')")
    file.execute("INSERT INTO peer VALUES (1, 2, 3, ?)", (text,))
    file.execute("INSERT INTO edge SELECT id, ? FROM launch LIMIT 3", (text,))
    file.execute("INSERT INTO sample SELECT ?, ?, 1000000, 0, id FROM stack LIMIT 5", (task, off))
    file.execute("DELETE FROM checksum")
    file.commit()
    file.close()


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def failure(command: list[str], directory: str, seconds: float) -> str | None:
    """Runs a command. Returns what is wrong with how it ended."""
    environment = {"PATH": os.environ["PATH"], "HOME": directory, "RUST_BACKTRACE": "0"}
    try:
        run = subprocess.run(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=seconds,
            preexec_fn=limit_memory,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"runs for more than {seconds:g} s"
    last = run.stderr.decode(errors="replace").strip()[-300:]
    if run.returncode < 0:
        return f"died of {signal.Signals(-run.returncode).name}: {last}"
    if run.returncode == PANICKED or "panicked at" in last:
        return f"panicked: {last}"
    return None


def try_mutant(number: int, options: argparse.Namespace, originals: list[Path]) -> list[str]:
    """Returns the failures of all verbs with one mutant."""
    rng = random.Random(f"{options.seed}/{number}")
    original = rng.choice(originals)
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        mutant = Path(directory) / "mutant.db"
        shutil.copy(original, mutant)
        mutate(rng, mutant)
        runs = verbs(str(mutant), str(original), directory)
        chosen = runs if options.verbs == 0 else rng.sample(runs, min(options.verbs, len(runs)))
        failures = []
        for arguments in chosen:
            found = failure([options.binary, *arguments], directory, options.seconds)
            if found:
                failures.append(f"mutant {number} of {original.name}: {' '.join(arguments[:-1])}: {found}")
        if failures and options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(mutant, options.keep / f"{number}.db")
        return failures


def options_from_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=lambda path: str(Path(path).resolve()), help="the program spawnscope")
    parser.add_argument("recordings", type=Path, nargs="+", help="the recordings that are changed")
    parser.add_argument("--count", type=int, default=100, help="number of mutants (default: 100)")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant (default: 0)")
    parser.add_argument("--seed", default="1", help="(default: 1)")
    parser.add_argument("--verbs", type=int, default=0, help="runs for each mutant, chosen at random (default: all)")
    parser.add_argument("--seconds", type=float, default=20, help="limit of each run (default: 20)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--keep", type=Path, help="directory for mutants that fail")
    return parser.parse_args()


def main() -> int:
    options = options_from_arguments()
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        originals = []
        for number, recording in enumerate(options.recordings):
            original = Path(directory) / f"{number}-{recording.name}"
            shutil.copy(recording, original)
            add_rare_rows(original)
            originals.append(original)
        numbers = range(options.first, options.first + options.count)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            failures = []
            for found in pool.map(lambda number: try_mutant(number, options, originals), numbers):
                failures += found
                for line in found:
                    print(line, flush=True)
    print(f"{options.count} mutants, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
