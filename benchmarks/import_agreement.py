#!/usr/bin/env python3
"""Compares recordings of the same command by eBPF, by ptrace (as uid 65534), and imported from a log of strace, for some programs: the tree
(programs, arguments, failed execs, exits, mechanisms), the first finding of `advise`, whether it matches the pattern of right findings, and
whether the saving that eBPF predicts lies in the interval of the import. Prints a table; with --verbose, also what differs. Needs root, strace,
autoconf, cc, git, jq, make, node, npm, perl and pytest."""

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
    "VERSION": "1.2\n",
    "versions.mk": "VERSION = $(shell cat VERSION)\nall: $(addprefix t,$(shell seq 30))\nt%:\n\t@echo $@ $(VERSION)\n",
    "names.sh": "#!/bin/bash\nfor f in many/*.txt; do\n  name=$(basename \"$f\" .txt)\n  directory=$(dirname \"$f\")\n"
    "  echo \"$directory: $name\"\ndone\n",
    "log.sh": "#!/bin/bash\nlog() {\n  echo \"$(date +%T) $*\"\n}\nfor f in many/*.txt; do\n  log \"begin $f\"\n  : >$f\n  log \"end $f\"\ndone\n",
    "names.awk": "{\n  line = \"dirname \" $1\n  line | getline directory\n  close(line)\n  print directory\n}\n",
    "tool.js": "const { execFileSync } = require('child_process');\nfor (let n = 0; n < 15; n++)\n"
    "  console.log(n, execFileSync('git', ['rev-parse', '--git-dir']).toString());\n",
    "config.json": '{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8}\n',
    "fields.sh": "#!/bin/sh\n" + "".join(f"{key}=$(jq -r .{key} config.json)\n" for key in "abcdefgh") + 'echo "$a $b $c $d $e $f $g $h"\n',
    "check": "#!/usr/bin/python3\nimport json, sys\nassert not json.dumps(open(sys.argv[1]).read()).isdigit()\n",
    "tests.sh": "#!/bin/sh\nfor test in many/*.txt; do\n  ./check \"$test\" || exit 1\ndone\n",
    "sums.sh": "#!/bin/sh\nfind many -name '*.txt' -exec md5sum {} \\; >sums\nsort sums\n",
    "upper.sh": "#!/bin/sh\nls many/*.txt | xargs -I{} sh -c 'tr a-z A-Z <{} >{}.up'\n",
    "authors.sh": "#!/bin/bash\nfor f in $(git ls-files); do\n  echo \"$f $(git log -1 --format=%h -- \"$f\")\"\ndone\n",
    "count.py": "import glob, subprocess\nfor name in glob.glob('many/*.txt'):\n"
    "    print(subprocess.run(f'grep -c x {name}', shell=True, capture_output=True).stdout)\n",
    "edit.sh": "#!/bin/sh\nfor f in many/*.txt; do\n  sed -i s/x/y/ \"$f\"\n  chmod 644 \"$f\"\ndone\n",
    "moves.sh": "#!/bin/bash\nset -eu\nmkdir -p new/a new/b\nwhile read -r path; do\n  directory=$(dirname \"$path\")\n"
    "  mv \"many/${path##*/}\" \"new/$directory/\"\ndone <paths\n",
    "paths": "".join(f"{'ab'[number % 2]}/n{number}.txt\n" for number in range(40)),
}
# Each program with a pattern of the first findings that are right, as `rule: title`.
PROGRAMS = {
    "configure": (r"(rm|cat) \d+ times", "./configure --quiet"),
    "make": (r"builtin.*basename", "make -s -j2 >/dev/null"),
    "git hook": (r"basename|git show", "git add -A && git commit -q -m x"),
    "pytest": (r"expr", "pytest -q -p no:cacheprovider test_x.py >/dev/null"),
    "npm": (r"node|^$", "npm run -s build >/dev/null"),
    "xargs": (r"many-per-launch.*basename", "seq 40 | xargs -P 4 -n 1 basename >/dev/null"),
    "pipelines": (r"cat|sed|tr|shell-line", "for i in $(seq 20); do echo a/$i | sed s/a/b/ | tr b c | cat >/dev/null; done"),
    "python": (r"in-language.*dirname", "python3 spawn.py"),
    "failing": (r"shell-line|builtin", "for i in $(seq 30); do x=$(expr $i : 'a'); ./missing; PATH=/nowhere:$PATH true-it; dirname /a/$i; done 2>/dev/null >/dev/null; :"),
    "daemon": (r"sleep-loop", "python3 daemon.py"),
    "find": (r"(wc|sh|basename) 6 times", "find . -name '*.c' -exec sh -c 'basename \"$1\" .c' sh {} \\; >/dev/null; find . -name '*.c' -exec wc -l {} \\; >/dev/null"),
    "perl": (r"in-language.*date", "perl -e 'for (1..20) { my $x = `date +%s`; system(\"true; true\") }'"),
    "while": (r"sleep-loop", "while read -r a b; do echo \"$a\" | cut -d. -f1; done <configure.ac >/dev/null; until test -e late; do sleep 0.1; [ -e l ] && >late; >l; done"),
    "versions": (r"once.*git", "for i in $(seq 12); do git rev-parse --show-toplevel; uname -s; done >/dev/null"),
    "variables": (r"cat", "make -s -f versions.mk >/dev/null"),
    "names": (r"(builtin|shell-line).*(basename|dirname)", "./names.sh >/dev/null"),
    "log": (r"builtin.*date", "./log.sh >/dev/null"),
    "awk": (r"dirname|sh \d+ times|needless-shell", "awk -f names.awk paths >/dev/null"),
    "node": (r"once.*git", "node tool.js >/dev/null"),
    "jq": (r"many-per-launch.*jq", "./fields.sh >/dev/null"),
    "tests": (r"(resident|many-per-launch).*(check|python3)", "./tests.sh"),
    "sums": (r"many-per-launch.*md5sum", "./sums.sh >/dev/null"),
    "upper": (r"(many-per-launch|builtin|shell-line|in-language|resident).*(sh|tr) ", "./upper.sh"),
    "authors": (r"many-per-launch.*git", "./authors.sh >/dev/null"),
    "count": (r"(in-language|many-per-launch).*grep|needless-shell", "python3 count.py >/dev/null"),
    "edit": (r"many-per-launch.*(sed|chmod)", "./edit.sh"),
    "moves": (r"(many-per-launch.*mv|(builtin|shell-line).*dirname)", "./moves.sh"),
}


KINDS = ["ebpf", "ptrace", "strace"]
# The user of ptrace, who is not allowed to use eBPF.
USER = 65534


def main():
    options = parse()
    others = options.sources
    print(f"{'program':<10} {'launches':>8} {'failed':>6} " + " ".join(f"{kind:>8} {'right':>5}" for kind in others) + f" {'saving':>22}")
    rows = []
    for name in options.programs:
        with tempfile.TemporaryDirectory(prefix="spawnscope-bench.") as work:
            os.chmod(work, 0o755)
            rows.append(compare(options, name, options.keep / name.replace(" ", "-") if options.keep else Path(work)))
    for number, kind in enumerate(others):
        same, right = (sum(row[number][index] for row in rows) for index in (0, 1))
        print(f"{kind}: {same} of {len(rows)} have the first finding of {others[0]}, {right} have a right one")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/spawnscope", help="the program to measure")
    parser.add_argument("--strace", default="strace", help="the strace to use")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help="which programs")
    parser.add_argument("--sources", nargs="+", choices=KINDS, default=["ebpf", "strace"], help="which recordings to compare with the first")
    parser.add_argument("--verbose", action="store_true", help="print what differs")
    parser.add_argument("--keep", type=Path, help="keep everything in this directory; what is there already is not recorded again")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    return options


def compare(options, name, work):
    """Prints the row of a program. Returns two answers for each source: whether its first finding is that of the first source, and whether it
    is a right one."""
    right, command = PROGRAMS[name]
    files = [recording(options, kind, work / kind, command) for kind in options.sources]
    all_trees, all_findings = [trees(options, file) for file in files], [findings(options, file) for file in files]
    first = all_findings[0]
    failed = sum(len(launch["failed_execs"]) for launch in launches(options, files[0]))
    row, texts = [], []
    for tree, found in zip(all_trees, all_findings):
        row.append((subject(found) == subject(first), bool(re.search(right, named(found)))))
        words = "same" if row[-1][0] else "other", "yes" if row[-1][1] else "no"
        texts.append(f"{words[0] if found is not first else len(found):>8} {words[1]:>5}")
    print(f"{name:<10} {len(all_trees[0]):>8} {failed:>6} " + " ".join(texts) + f" {saving(first, all_findings[-1]):>22}", flush=True)
    if options.verbose:
        for kind, tree, found in zip(options.sources, all_trees, all_findings):
            details(kind, all_trees[0], tree, found)
    return row


def recording(options, kind, work, command):
    """Returns the recording of a command, in a directory of its own."""
    file, shell = work / "recorded.db", ["/bin/dash", "-c", command]
    if file.exists():
        return file
    directory = sources(work, USER if kind == "ptrace" else 0)
    if kind == "strace":
        log = work / "log"
        run([options.strace, "-f", "-ttt", "-T", "-s", "4096", "-o", log, *shell], directory)
        run([options.binary, "import", "-o", file, log], work)
    elif kind == "ptrace":
        run([options.binary, "record", "-q", "--collector", kind, "-o", file, "--", *shell], directory, USER)
    else:
        run([options.binary, "record", "-q", "--collector", kind, "-o", file, "--", *shell], directory)
    return file


def subject(found):
    """Returns the rule of the first finding, and the beginning of its title: the launched programs, without count, owner and line."""
    return [(one["rule"], re.split(r" [\d,]+ ", re.sub(r" \([^)]*\)", "", one["title"]))[0]) for one in found[:1]]


def named(found):
    return "".join(f"{one['rule']}: {one['title']}" for one in found[:1])


def sources(work, user):
    """Returns a new directory with all sources, which belongs to this user."""
    directory = work / "w"
    (directory / "many").mkdir(parents=True)
    for file, text in SOURCES.items():
        (directory / file).write_text(text)
        (directory / file).chmod(0o755 if text.startswith("#!") else 0o644)
    for number in range(6):
        (directory / f"f{number}.c").write_text(f"int f{number};\n")
    for number in range(40):
        (directory / f"many/n{number}.txt").write_text("x\n")
    for path in [work, directory, *directory.rglob("*")]:
        os.chown(path, user, user)
    run(["autoconf"], directory, user)
    run(["git", "init", "-q"], directory, user)
    run(["git", "add", "f0.c", "many"], directory, user)
    run(["git", "commit", "-q", "-m", "first"], directory, user)
    hook = directory / ".git/hooks/pre-commit"
    hook.write_text(SOURCES["hook"])
    hook.chmod(0o755)
    return directory


def run(command, directory, user=0):
    identity = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "PYTHONDONTWRITEBYTECODE": "1", "NPM_CONFIG_UPDATE_NOTIFIER": "false", "HOME": str(directory)}
    rights = {"user": user, "group": user, "extra_groups": []} if user else {}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(list(map(str, command)), cwd=directory, env=environment, check=False, **quiet, **rights)


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
    return re.sub(r"\bconf(\d+|[A-Za-z0-9]{6}\b)", "conf", re.sub(r"/tmp/[\w.+/-]+", "/tmp/X", text))


def findings(options, file):
    text = subprocess.run([options.binary, "advise", "--json", file], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(text)["advice"]


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


def details(kind, expected, tree, found):
    for sign, lines in (("-", difference(expected, tree)), ("+", difference(tree, expected))):
        for line in lines[:6]:
            print(f"  {sign} {line[:900]}")
    for one in found[:3]:
        low, value, high = (one[f"saving_{end}ns"] / 1e6 for end in ("low_", "", "high_"))
        print(f"  {kind}: {one['rule']}: {one['title']} ({value:.1f} ms, {low:.1f} to {high:.1f})")


if __name__ == "__main__":
    sys.exit(main())
