#!/usr/bin/env python3
"""Runs `spawnscope bench first-launch` with each of two permission scanners: a single-threaded one of this repository, which takes 75 ms for
each new executable (the delay of a single scan in a published report on builds), and ClamAV's, which scans at each launch. Both watch a private tmpfs in a
mount namespace of their own, and end with the namespace. Writes benchmarks/runs/<date>-<host>/first-launch-<scanner>.json.
Needs root, cc, and for ClamAV scripts/scanner-daemons.sh."""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from results import HERE, machine, new_results, say

ROOT = HERE.parent
TESTS = ROOT / "crates/spawnscope/tests"
NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
SCAN_MS = 75
# Trials and a minimum number of rounds may take longer than --seconds, and our scanner exits after 60 s.
MAX_S = 20


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="spawnscope-bench.") as work:
        Path(work).chmod(0o755)
        for scanner in options.only:
            say(f"measuring first launches with {scanner}")
            measure(options, scanner, SCANNERS[scanner](Path(work)))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=ROOT / "target/release/spawnscope", type=Path)
    parser.add_argument("--seconds", default=MAX_S, type=int)
    parser.add_argument("--only", nargs="+", choices=SCANNERS, default=list(SCANNERS))
    options = parser.parse_args()
    if options.seconds > MAX_S:
        parser.error(f"--seconds: {MAX_S} at most: a measurement may take longer than that, and the scanner exits after 60 s")
    return options


def own_scanner(work):
    """Builds our own scanner. Returns the beginning of a command line that runs a program while this scanner is active."""
    daemon = work / "scans_new_files"
    source = TESTS / "workloads/scans_new_files.c"
    subprocess.run(["cc", "-O2", "-DEVENTS=FAN_OPEN_EXEC_PERM", f"-DSCAN_MS={SCAN_MS}", "-o", daemon, source], check=True)
    watched = work / "watched"
    watched.mkdir()
    return [*NAMESPACES, daemon, watched]


def clamav(work):
    daemons = ROOT / "target/scanners"
    if not daemons.exists():
        raise SystemExit(f"{daemons} does not exist: run scripts/scanner-daemons.sh")
    prefix = [*NAMESPACES, TESTS / "scanners/within.sh", "clamonacc", daemons, work]
    return [*prefix, "env", f"TMPDIR={work / 'scanned'}"]


SCANNERS = {"single-threaded": own_scanner, "clamav": clamav}


def measure(options, scanner, prefix):
    words = ["bench", "first-launch", "--seconds", str(options.seconds), "--json"]
    done = subprocess.run([*prefix, options.binary.resolve(), *words], check=True, stdout=subprocess.PIPE)
    report = json.loads(done.stdout)
    directory = HERE / "runs" / f"{new_results()['date']}-{machine()['host']}"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"first-launch-{scanner}.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    say(f"wrote {path}")
    for row in report["experiments"][0]["rows"]:
        figures = [f"{row[name]['median'] / 1e6:10.2f} ms" for name in row if isinstance(row[name], dict)]
        say(f"  {row['program']:24} {row['at_once']:3}" + "".join(figures))
    for note in report["experiments"][0]["notes"]:
        say(f"  {note}")


if __name__ == "__main__":
    main()
