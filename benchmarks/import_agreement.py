#!/usr/bin/env python3
"""Compares `import` of a log of strace with `record` of the same command, for some programs: the tree (programs, arguments, failed execs,
exits, mechanisms), the first finding of `advise`, and whether the saving that `record` predicts lies in the interval of the import.
Prints a table; with --verbose, also what differs. Needs root, strace, autoconf, cc, git, npm and pytest."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = {
    "configure.ac": "AC_INIT([x],[1])\nAC_PROG_CC\nAC_CHECK_HEADERS([stdlib.h])\nAC_CONFIG_FILES([out])\nAC_OUTPUT\n",
    "out.in": "@CC@\n",
    "Makefile": "OBJECTS := $(shell ls *.c | sed s/c$$/o/)\nall: $(OBJECTS)\n\t@for f in $^; do basename $$f; done\n%.o: %.c\n\tgcc -c $<\n",
    "hook": "#!/bin/sh\nfor f in $(git diff --cached --name-only); do\ngit show :$f | grep -q x || echo $(basename $f)\ndone\n",
    "test_x.py": "import subprocess, pytest\n@pytest.mark.parametrize('n', range(6))\n"
    "def test_it(n):\n    assert subprocess.run(['expr', str(n), '+', '1'], capture_output=True).stdout\n",
    "package.json": '{"name": "x", "scripts": {"prebuild": "basename a/b", "build": "for i in 1 2 3; do node -e 1; done"}}',
    "spawn.py": "import subprocess\nfor n in range(30):\n    subprocess.run(['dirname', f'/a/{n}'], stdout=subprocess.DEVNULL)\n"
    "try: subprocess.run(['/nowhere/x'])\nexcept OSError: pass\nsubprocess.run('exit 3', shell=True)\n",
    "daemon.py": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(0.2)\n"
    "        os.execlp('true', 'true', 'daemon')\n    os._exit(0)\nos.wait()\nos.system('sleep 0.3')\n",
}
PROGRAMS = {
    "configure": "./configure --quiet",
    "make": "make -s -j2 >/dev/null",
    "git hook": "git add -A && git commit -q -m x",
    "pytest": "pytest -q -p no:cacheprovider test_x.py >/dev/null",
    "npm": "npm run -s build >/dev/null",
    "xargs": "seq 40 | xargs -P 4 -n 1 basename >/dev/null",
    "pipelines": "for i in $(seq 20); do echo a/$i | sed s/a/b/ | tr b c | cat >/dev/null; done",
    "python": "python3 spawn.py",
    "failing": "for i in $(seq 30); do x=$(expr $i : 'a'); ./missing; PATH=/nowhere:$PATH true-it; dirname /a/$i; done 2>/dev/null >/dev/null; :",
    "daemon": "python3 daemon.py",
    "find": "find . -name '*.c' -exec sh -c 'basename \"$1\" .c' sh {} \\; >/dev/null; find . -name '*.c' -exec wc -l {} \\; >/dev/null",
    "perl": "perl -e 'for (1..20) { my $x = `date +%s`; system(\"true; true\") }'",
    "while": "while read -r a b; do echo \"$a\" | cut -d. -f1; done <configure.ac >/dev/null; until test -e late; do sleep 0.1; [ -e l ] && >late; >l; done",
    "versions": "for i in $(seq 12); do git rev-parse --show-toplevel; uname -s; done >/dev/null",
}


def main():
    options = parse()
    print(f"{'program':<10} {'launches':>8} {'failed':>6} {'tree':>9} {'first finding':>13} {'saving':>22}")
    agreed = 0
    for name in options.programs:
        with tempfile.TemporaryDirectory(prefix="spawnscope-bench.") as work:
            agreed += compare(options, name, Path(work))
    print(f"{agreed} of {len(options.programs)} have the same first finding")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/spawnscope", help="the program to measure")
    parser.add_argument("--strace", default="strace", help="the strace to use")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help="which programs")
    parser.add_argument("--verbose", action="store_true", help="print what differs")
    parser.add_argument("--keep", type=Path, help="keep logs and recordings in this directory")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    return options


def compare(options, name, work):
    log, recorded, imported = work / "log", work / "recorded.db", work / "imported.db"
    shell = ["/bin/dash", "-c", PROGRAMS[name]]
    run([options.binary, "record", "-q", "--collector", "ebpf", "-o", recorded, "--", *shell], sources(work, "a"))
    run([options.strace, "-f", "-ttt", "-T", "-s", "4096", "-o", log, *shell], sources(work, "b"))
    run([options.binary, "import", "-o", imported, log], work)
    expected, found = (trees(options, file) for file in (recorded, imported))
    first, other = (findings(options, file) for file in (recorded, imported))
    is_same = [one["rule"] for one in first[:1]] == [one["rule"] for one in other[:1]]
    failed = sum(len(launch["failed_execs"]) for launch in launches(options, imported))
    print(f"{name:<10} {len(expected):>8} {failed:>6} {describe(expected, found):>9} {'same' if is_same else 'other':>13} {saving(first, other):>22}", flush=True)
    if options.verbose:
        details(expected, found, first, other)
    if options.keep:
        shutil.copytree(work, options.keep / name.replace(" ", "-"), dirs_exist_ok=True, symlinks=True)
    return is_same


def sources(work, name):
    """Returns a new directory of this name with all sources, always at the same path."""
    directory = work / "w"
    if directory.exists():
        directory.rename(work / "older")
    directory.mkdir()
    for file, text in SOURCES.items():
        (directory / file).write_text(text)
    for number in range(6):
        (directory / f"f{number}.c").write_text(f"int f{number};\n")
    run(["autoconf"], directory)
    run(["git", "init", "-q"], directory)
    hook = directory / ".git/hooks/pre-commit"
    hook.write_text(SOURCES["hook"])
    hook.chmod(0o755)
    return directory


def run(command, directory):
    identity = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "PYTHONDONTWRITEBYTECODE": "1", "NPM_CONFIG_UPDATE_NOTIFIER": "false"}
    subprocess.run(list(map(str, command)), cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def launches(options, file):
    text = subprocess.run([options.binary, "export", "--format", "ndjson", "-o", "-", file], stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def trees(options, file):
    """Returns one line for each launch, with the lines of its ancestors in front, without times and numbers."""
    all, lines = {launch["id"]: launch for launch in launches(options, file)}, []
    for launch in all.values():
        chain = []
        while launch:
            chain.append(text_of(launch))
            launch = all.get(launch["parent"])
        lines.append(" < ".join(chain))
    return sorted(lines)


def text_of(launch):
    execs = [exec["argv"] for exec in launch["execs"]]
    failed = [(exec["path"], exec["errno"]) for exec in launch["failed_execs"]]
    text = f"{launch['mechanism']} {execs} failed {failed} {launch['exit']}"
    # configure names its temporary files at random.
    return re.sub(r"\bconf(\d+|[A-Za-z0-9]{6}\b)", "conf", re.sub(r"/tmp/[\w.+-]+", "/tmp/X", text))


def findings(options, file):
    text = subprocess.run([options.binary, "advise", "--json", file], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(text)["advice"]


def describe(expected, found):
    missing, more = difference(expected, found), difference(found, expected)
    return "same" if not missing and not more else f"-{len(missing)} +{len(more)}"


def difference(some, others):
    others = list(others)
    return [one for one in some if one not in others or others.remove(one)]


def saving(first, other):
    if not first or not other:
        return "no finding"
    found = next((one for one in other if one["rule"] == first[0]["rule"]), None)
    if not found:
        return "not found"
    low, value, high = found["saving_low_ns"], first[0]["saving_ns"], found["saving_high_ns"]
    return f"{value / 1e6:.1f} in {low / 1e6:.1f}-{high / 1e6:.1f}" + ("" if low <= value <= high else " NO")


def details(expected, found, first, other):
    for sign, lines in (("-", difference(expected, found)), ("+", difference(found, expected))):
        for line in lines[:6]:
            print(f"  {sign} {line[:900]}")
    for name, all in (("record", first), ("import", other)):
        for one in all[:3]:
            print(f"  {name}: {one['rule']}: {one['title']} ({one['saving_ns'] / 1e6:.1f} ms)")


if __name__ == "__main__":
    sys.exit(main())
