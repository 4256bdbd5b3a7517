#!/usr/bin/env python3
"""Measures what `spawnscope accel` saves: each program with and without it, alternated, medians of the wall.

    benchmarks/accel.py [--binary FILE] [--rounds N] [--only NAME]

A program that is not installed is left out. The ratio must not exceed the limit beside it."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAKEFILE = "all: " + " ".join(f"t{i}" for i in range(300)) + "\nt%:\n\t@/bin/true \"$@\"\n.PHONY: all\n"
# Name, command, limit of the ratio. `{folder}` is a fresh folder.
CASES = [
    ("php exec x 300", ["php", "-r", "for ($i = 0; $i < 300; $i++) exec('/bin/true');"], 0.2),
    ("make, 300 recipes", ["make", "-s", "-f", "{folder}/Makefile"], 0.75),
    ("perl system x 300", ["perl", "-e", "system(\"/bin/true 'arg'\") for 1 .. 300"], 0.75),
    ("node execSync x 100", ["node", "-e", "for (let i = 0; i < 100; i++) require('child_process').execSync('/bin/true arg')"], 0.85),
    ("Python shell=True x 300", ["python3", "-c", "import subprocess\nfor _ in range(300): subprocess.run('/bin/true arg', shell=True)"], 0.75),
    ("Python os.system x 300", ["python3", "-c", "import os\nfor _ in range(300): os.system('/bin/true arg')"], None),
    ("examples/unpack.sh", [f"{ROOT}/examples/unpack.sh"], 0.7),
    ("launches nothing", ["python3", "-c", "sum(range(10_000_000))"], 1.01),
]


def wall(command, folder):
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300, check=False)
    took = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}")
    return took


def measure(command, accel, rounds, folder):
    plain, with_accel = [], []
    for index in range(rounds + 1):
        pair = [(plain, command), (with_accel, accel + command)]
        for times, words in pair if index % 2 else reversed(pair):
            took = wall(words, folder)
            if index:  # The first round only warms the caches.
                times.append(took)
    return statistics.median(plain), statistics.median(with_accel)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=f"{ROOT}/target/release/spawnscope")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    accel = [os.path.abspath(arguments.binary), "accel", "--"]
    failed = False
    print("| program | plain ms | accel ms | ratio | limit |\n|---|---|---|---|---|")
    for name, command, limit in CASES:
        if arguments.only not in name or not shutil.which(command[0]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/Makefile", "w") as file:
                file.write(MAKEFILE)
            words = [word.replace("{folder}", folder) for word in command]
            plain, fast = measure(words, accel, arguments.rounds, folder)
        ratio = fast / plain
        # A program that launches nothing may take 1 ms more, whatever its wall.
        is_over = limit is not None and ratio > limit and not (limit > 1 and fast - plain <= 0.001)
        failed |= is_over
        print(f"| {name} | {plain * 1e3:.1f} | {fast * 1e3:.1f} | {ratio:.2f} | {limit or '-'}{' exceeded' if is_over else ''} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
