#!/usr/bin/env python3
"""Measures what `spawnscope accel` saves: runs each program with and without accel, in alternation, and prints medians of the wall and of
the CPU time of all processes.

    benchmarks/accel.py [--binary FILE] [--rounds N] [--only NAME] [--php FILE]

A program that is not installed is left out; scripts/accel-suites.sh unpacks a PHP to target/held-out/php/php, and
scripts/held-out-suites.sh unpacks bash's source, whose configure is run. The ratio of the walls must not exceed the limit, which the table
shows beside it. The rows "starts no shell" are not expected to become faster."""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HELD_OUT = os.environ.get("HELD_OUT", f"{ROOT}/target/held-out")
# make needs a shell for the first rule's recipe, because of its quotes; it executes the second one's directly. The third one's shell cannot be
# skipped.
MAKEFILE = """shells: $(addprefix s,{numbers})
s%:
\t@/bin/true "$@"
plain: $(addprefix p,{numbers})
p%:
\t@/bin/true $@
kept: $(addprefix k,{numbers})
k%:
\t@x=1; /bin/true $$x && :
""".format(numbers=" ".join(map(str, range(300))))
PYTHON = "import subprocess\nfor _ in range(300): subprocess.run({!r}, shell=True)"
# Name, command, and limit of the ratio of walls (None: no limit). `{directory}` is replaced by a fresh directory.
CASES = [
    ("php exec x 300", ["php", "-r", "for ($i = 0; $i < 300; $i++) exec('/bin/true');"], 0.2),
    ("make, 300 recipes", ["make", "-s", "-f", "{directory}/Makefile", "shells"], 0.75),
    ("make, 300 recipes, starts no shell", ["make", "-s", "-f", "{directory}/Makefile", "plain"], None),
    ("make, 300 recipes, needs its shells", ["make", "-s", "-f", "{directory}/Makefile", "kept"], 1.02),
    ("perl system x 300", ["perl", "-e", "system(\"/bin/true 'arg'\") for 1 .. 300"], 0.75),
    ("perl system x 300, starts no shell", ["perl", "-e", "system('/bin/true arg') for 1 .. 300"], None),
    ("node execSync x 100", ["node", "-e", "for (let i = 0; i < 100; i++) require('child_process').execSync('/bin/true arg')"], 0.85),
    ("Python shell=True x 300", ["python3", "-c", PYTHON.format("/bin/true arg")], 0.75),
    ("Python shell=True, redirections, x 300", ["python3", "-c", PYTHON.format("/bin/true arg >/dev/null 2>&1")], None),
    ("Python os.system x 300", ["python3", "-c", "import os\nfor _ in range(300): os.system('/bin/true arg')"], None),
    ("examples/unpack.sh", [f"{ROOT}/examples/unpack.sh"], 0.7),
    ("configure of bash", ["sh", f"{HELD_OUT}/bash/configure", "--quiet"], None),
    ("launches nothing", ["python3", "-c", "sum(range(10_000_000))"], 1.01),
]


def measure_command(command, directory):
    """Runs a command once. Returns its wall and its CPU time, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=600, check=False)
    took = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}")
    return took, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(command, accel, rounds, directory):
    """Returns the median wall and CPU time of the command, and of the command with accel."""
    plain, with_accel = [], []
    for index in range(rounds + 1):
        pair = [(plain, command), (with_accel, accel + command)]
        for times, words in pair if index % 2 else reversed(pair):
            took = measure_command(words, directory)
            if index:  # The first round only warms the caches.
                times.append(took)
    return [[statistics.median(run[part] for run in runs) for part in (0, 1)] for runs in (plain, with_accel)]


def is_installed(command):
    return shutil.which(command[0]) and not any("/configure" in word and not os.path.exists(word) for word in command)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=f"{ROOT}/target/release/spawnscope")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", default="")
    parser.add_argument("--php", default=shutil.which("php") or f"{HELD_OUT}/php/php")
    arguments = parser.parse_args()
    accel = [os.path.abspath(arguments.binary), "accel", "--"]
    failed = False
    print("| program | plain ms | accel ms | ratio | limit | ratio of CPU times |\n|---|---|---|---|---|---|")
    for name, command, limit in CASES:
        command = [os.path.abspath(arguments.php)] + command[1:] if command[0] == "php" else command
        if arguments.only not in name:
            continue
        if not is_installed(command):
            print(f"left out, not installed: {name}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as directory:
            with open(f"{directory}/Makefile", "w") as file:
                file.write(MAKEFILE)
            words = [word.replace("{directory}", directory) for word in command]
            (plain, plain_cpu), (fast, fast_cpu) = measure(words, accel, arguments.rounds, directory)
        ratio = fast / plain
        # A program that launches nothing may take 1 ms more, whatever its wall.
        is_over = limit is not None and ratio > limit and not (limit > 1 and fast - plain <= 0.001)
        failed |= is_over
        shown = f"{limit or '-'}{' exceeded' if is_over else ''}"
        print(f"| {name} | {plain * 1e3:.1f} | {fast * 1e3:.1f} | {ratio:.2f} | {shown} | {fast_cpu / plain_cpu:.2f} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
