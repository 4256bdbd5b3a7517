#!/usr/bin/env python3
"""Compares tools that look at the launches of a command. Each round runs `bash examples/unpack.sh COUNT` in pairs, once alone and
once with a tool; which one comes first alternates. The ratio of the two wall times is the tool's cost. What each tool reports
is compared with the truth: the number of programs is known from the script, and the saving without `dirname` is measured by
running the script with `${path%/*}` instead. Tools that are not installed, or that do not run here, are left out, with a
note. Prints a table, writes benchmarks/runs/<date>-<host>/compare.json, and with --write the table of
docs/comparison.md. Needs root, bash, and a quiet machine. --install gets the tools from Debian's packages and from
crates.io, the latter into target/tools."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import new_results, say, spread, store

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs/comparison.md"
TABLE_BEGINS, TABLE_ENDS = "<!-- table: benchmarks/compare.py --write -->\n", "<!-- end of table -->\n"
SCRIPT = ROOT / "examples/unpack.sh"
CALL, REPLACEMENT = '$(dirname "$path")', "${path%/*}"
# Programs that the script starts once: bash, mktemp, mkdir twice, rm. For each path, it starts dirname and mv.
STARTED_ONCE, STARTED_EACH = 5, 2
TOOLS_DIRECTORY = ROOT / "target/tools"
CRATES = ["tracexec@1.0.0", "buildprof@0.2.8", "samply@0.13.1"]
# sbin, for Debian's execsnoop.
SEARCH = os.pathsep.join([os.environ["PATH"], str(TOOLS_DIRECTORY / "bin"), "/usr/local/sbin", "/usr/sbin", "/sbin"])


# execsnoop needs tracefs, which is not mounted everywhere. The namespace of mounts ends with the program.
MOUNT = 'mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec "$0"'
WITH_TRACEFS = ["unshare", "--mount", "sh", "-c", MOUNT]


class Tool:
    """A tool: how it runs a command, and how its output is read. `programs` and `saving` return None if the output lacks them."""

    name, program, version_flag = "", "", "--version"
    # Whether the command waits until the tool has started.
    starts_the_command = True

    def __init__(self, options, work):
        self.options, self.file = options, work / "output"
        self.path = shutil.which(self.program, path=SEARCH)

    def run(self, command):
        return wall(self.wrapped(command))

    def version(self):
        said = subprocess.run([self.path, self.version_flag], capture_output=True, text=True, check=False)
        found = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
        return found and found[0]

    def bytes(self):
        return self.file.stat().st_size

    def programs(self):
        return None

    def saving(self):
        """Returns the share of the wall time that the script would save without dirname, and what kind of figure it is."""
        return None


class Strace(Tool):
    name, program, flags = "`strace -f`", "strace", ["-f"]

    def wrapped(self, command):
        return [self.path, *self.flags, "-qq", "-o", self.file, *command]

    def programs(self):
        # A call that another process interrupts is printed in two parts.
        finished = re.compile(r"execve(\(| resumed>).* = 0$")
        return sum(1 for line in self.file.read_text(errors="replace").splitlines() if finished.search(line))


class StraceOfProcesses(Strace):
    name = "`strace -f --seccomp-bpf -e trace=process`"
    flags = ["-f", "--seccomp-bpf", "-e", "trace=process"]


class Perf(Tool):
    name, program = "`perf record`", "perf"

    def wrapped(self, command):
        # Its cache would keep hard links to the recorded programs in the home directory.
        return [self.path, "record", "-q", "--no-buildid-cache", "-o", self.file, "--", *command]

    def programs(self):
        text = output([self.path, "script", "-i", self.file, "--show-task-events"])
        return sum(1 for line in text.splitlines() if "PERF_RECORD_COMM exec" in line)

    def saving(self):
        text = output([self.path, "report", "-i", self.file, "--stdio", "--sort", "comm", "--percentage", "absolute"])
        share = re.search(r"([0-9.]+)%\s+dirname", text)
        return share and {"median": float(share[1]) / 100, "kind": "share of CPU samples"}


class Execsnoop(Tool):
    name, program = "`execsnoop`", "execsnoop"
    starts_the_command = False

    def run(self, command):
        with open(self.file, "w") as target:
            snoop = subprocess.Popen([*WITH_TRACEFS, self.path], stdout=target, stderr=subprocess.PIPE, text=True)
            time.sleep(2)  # It does not report when it has attached its probes.
            if snoop.poll() is not None:
                raise subprocess.CalledProcessError(snoop.returncode, self.path, stderr=snoop.stderr.read())
            seconds = wall(command)
            time.sleep(0.5)
            snoop.send_signal(signal.SIGINT)
            snoop.communicate()
        return seconds

    def programs(self):
        # It shows the launches of the whole machine.
        names = {"bash", "mktemp", "mkdir", "rm", "dirname", "mv"}
        # Some lines are empty.
        return sum(1 for line in self.file.read_text().splitlines() if line.partition(" ")[0] in names)


class Tracexec(Tool):
    name, program = "`tracexec collect`", "tracexec"

    def wrapped(self, command):
        return [self.path, "collect", "--successful-only", "-F", "json-stream", "-o", self.file, "--", *command]

    def programs(self):
        # The first line describes the environment. Each further line is an exec.
        return len(self.file.read_text(errors="replace").splitlines()) - 1


class Buildprof(Tool):
    name, program, flags = "`buildprof`", "buildprof", []

    def wrapped(self, command):
        return [self.path, "--no-open", *self.flags, "-o", self.file, "--", *command]

    def programs(self):
        # A slice of Perfetto's format for each program, also for one that a process replaces.
        trace = subprocess.run(["zstd", "-dc", self.file], check=True, capture_output=True).stdout
        events = (event for _, packet in fields(trace) for number, event in fields(packet) if number == TRACK_EVENT)
        return sum(1 for event in events if dict(fields(event)).get(TYPE) == SLICE_BEGIN)


class BuildprofWithoutFiles(Buildprof):
    name, flags = "`buildprof --no-file-events`", ["--no-file-events"]


class Samply(Tool):
    name, program = "`samply record`", "samply"

    def wrapped(self, command):
        return [self.path, "record", "--save-only", "-o", self.file, "--", *command]


class Spawnscope(Tool):
    name, collector = "`spawnscope record`", "ebpf"

    def __init__(self, options, work):
        super().__init__(options, work)
        self.path, self.file = options.binary, work / "recording.db"

    def wrapped(self, command):
        return [self.path, "record", "-q", "--collector", self.collector, "-o", self.file, "--", *command]

    def programs(self):
        return json.loads(output([self.path, "report", "--json", self.file]))["launches"]

    def saving(self):
        found = json.loads(output([self.path, "whatif", "--json", "--remove", "dirname", self.file]))
        return {"median": found["saving_ns"] / found["unrecorded_ns"], "kind": "prediction"}


class WithoutRoot(Spawnscope):
    name, collector = "`spawnscope record --collector ptrace`", "ptrace"


TOOLS = [
    Strace,
    StraceOfProcesses,
    Perf,
    Samply,
    Execsnoop,
    Tracexec,
    Buildprof,
    BuildprofWithoutFiles,
    Spawnscope,
    WithoutRoot,
]

# Numbers in Perfetto's protobuf: fields of packets and events, and a type of events.
TRACK_EVENT, TYPE, SLICE_BEGIN = 11, 9, 1


def fields(message):
    """Yields number and content of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
            at += length
            yield key >> 3, message[at - length : at]


def main():
    options = parse()
    if options.install:
        install()
    with tempfile.TemporaryDirectory(prefix="spawnscope-compare.") as work:
        results = new_results()
        results["measurements"]["compare"] = measured = measure(options, Path(work))
    if not options.dry_run:
        say(f"wrote {store(results, 'compare')}")
    text = table(results)
    print(text)
    if options.write:
        before, rest = GUIDE.read_text().split(TABLE_BEGINS)
        GUIDE.write_text(before + TABLE_BEGINS + text + "\n" + TABLE_ENDS + rest.split(TABLE_ENDS)[1])
    missed = [row["tool"] for row in measured["tools"] if row["programs"] not in (None, measured["programs"])]
    for name in missed:
        say(f"{name} did not count {measured['programs']} programs")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/spawnscope", help="the spawnscope to compare")
    parser.add_argument("--install", action="store_true", help="install the tools first")
    parser.add_argument("--runs", type=int, default=11, help="rounds")
    parser.add_argument("--count", type=int, default=500, help="paths that the script unpacks")
    parser.add_argument("--write", action="store_true", help="put the table into docs/comparison.md")
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    return options


def install():
    """Installs the tools. `usable` leaves out those that could not be installed."""
    subprocess.run([ROOT / "scripts/install-dependencies.sh", "comparison"], check=False)
    for crate in CRATES:
        subprocess.run(["cargo", "install", "--quiet", "--locked", "--root", TOOLS_DIRECTORY, crate], check=False)


def measure(options, work):
    command = ["bash", str(SCRIPT), str(options.count)]
    fixed = ["bash", str(fixed_script(work)), str(options.count)]
    tools, absent = usable([tool(options, work) for tool in TOOLS], command)
    rows = [{"tool": tool.name, "version": tool.version(), "ratios": [], "idle": [], "savings": []} for tool in tools]
    plain, savings = [], []
    for number in range(options.runs):
        turn = list(zip(tools, rows))
        for tool, row in turn[number % len(turn) :] + turn[: number % len(turn)]:
            say(f"round {number + 1} of {options.runs}: {tool.name}")
            alone, seconds = pair(lambda: wall(command), lambda: tool.run(command), number)
            plain.append(alone)
            row["ratios"].append(seconds / alone)
            look(tool, row)
        for tool, row in turn:
            if tool.starts_the_command:
                row["idle"].append(tool.run(["true"]))
        alone, seconds = pair(lambda: wall(command), lambda: wall(fixed), number)
        savings.append(1 - seconds / alone)
    return {
        "count": options.count,
        "programs": STARTED_ONCE + STARTED_EACH * options.count,
        "plain_seconds": spread(plain),
        "true_saving": spread(savings),
        "tools": rows,
        "absent": absent,
    }


def usable(tools, command):
    """Returns the tools that record the command. For each of the others, returns a sentence that says why it does not."""
    found, absent = [], []
    for tool in tools:
        if not tool.path:
            absent.append(f"{tool.name}: not installed")
            continue
        try:
            tool.run(command)
            tool.bytes()
        except (subprocess.CalledProcessError, OSError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
            absent.append(f"{tool.name}: does not run here ({reason})")
        else:
            found.append(tool)
    return found, absent


def pair(first, second, number):
    """Returns the results of both functions. In every other round, the second one is called first."""
    if number % 2:
        later = second()
        return first(), later
    return first(), second()


def look(tool, row):
    """Adds what the tool reports about its last run to the row."""
    row["programs"], row["bytes"] = tool.programs(), tool.bytes()
    said = tool.saving()
    if said:
        row["savings"].append(said["median"])
        row["kind"] = said["kind"]
    tool.file.unlink()


def fixed_script(work):
    text = SCRIPT.read_text()
    if CALL not in text:
        sys.exit(f"{SCRIPT} has no {CALL}")
    fixed = work / "fixed.sh"
    fixed.write_text(text.replace(CALL, REPLACEMENT))
    return fixed


def output(command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def wall(command):
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return time.perf_counter() - began


def table(results):
    found = results["measurements"]["compare"]
    machine = results["machine"]
    runs = len(found["tools"][0]["ratios"])
    lines = [
        f"{results['date']}, {machine['cpus']} CPUs ({machine['cpu']}), Linux {machine['kernel'].split('-')[0]}; "
        f"`bash examples/unpack.sh {found['count']}` alone: {found['plain_seconds']['median']:.2f} s; medians of {runs} pairs.",
        "",
        "| | wall time, with the tool / alone | to record `true` | output | programs started | saving by `${path%/*}` |",
        "|---|--:|--:|--:|--:|--:|",
        f"| truth | | | | {found['programs']:,} | {percent(found['true_saving'])} |",
    ]
    lines += [row_of(row) for row in found["tools"]]
    if found["absent"]:
        lines += ["", f"Left out: {'; '.join(found['absent'])}."]
    return "\n".join(lines)


def row_of(row):
    cost = spread(row["ratios"])
    low, high = cost["quartiles"]
    idle = f"{spread(row['idle'])['median']:.2f} s" if row["idle"] else "-"
    programs = "-" if row["programs"] is None else f"{row['programs']:,}"
    saving = f"{percent(spread(row['savings']))} ({row['kind']})" if row["savings"] else "-"
    cells = [
        f"{row['tool']} {row['version'] or ''}".strip(),
        f"{cost['median']:.2f} ({low:.2f} to {high:.2f})",
        idle,
        f"{row['bytes'] / 1e6:.2f} MB",
        programs,
        saving,
    ]
    return f"| {' | '.join(cells)} |"


def percent(shares):
    return f"{100 * shares['median']:.0f} %"


if __name__ == "__main__":
    main()
