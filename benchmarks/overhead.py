#!/usr/bin/env python3
"""Measures the cost of recording: a storm of launches, a cold ./configure of GNU hello, start and finish, lost events,
storage, the report on 100,000 launches, and how its time grows. Runs with and without the recorder alternate; on a noisy machine,
only medians and ratios of pairs are meaningful. Writes benchmarks/runs/<date>-<host>/overhead.json (overhead-ptrace.json with
--collector ptrace) and prints a table. Needs bash, cc, root (not for ptrace), and for configure a Debian mirror
(apt-get source) or --hello DIR."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import new_results, say, spread, store, tenth_percentile

HERE = Path(__file__).resolve().parent
WORKLOADS = HERE.parent / "crates/spawnscope/tests/workloads"

# These scripts print the microseconds of their own work, so the recorder's start and finish do not count.
TIMED = 'began=${EPOCHREALTIME/./}; %s; ended=${EPOCHREALTIME/./}; echo $((ended - began))'
STORM = TIMED % "for ((i = 0; i < %d; i++)); do /bin/true; done"
CONFIGURE = TIMED % "./configure >configure.out 2>&1 || exit 1"


def main():
    options = parse()
    work = Path(tempfile.mkdtemp(prefix="spawnscope-bench."))
    try:
        results = new_results()
        results["collector"] = options.collector
        for name in options.only:
            say(f"measuring {name}")
            results["measurements"][name] = MEASUREMENTS[name](options, work)
            if not options.dry_run:
                say(f"wrote {store(results, file_of(options))}")
        print_table(results["measurements"])
    finally:
        shutil.rmtree(work, ignore_errors=True)


def file_of(options):
    return "overhead" if options.collector == "ebpf" else f"overhead-{options.collector}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="target/release/spawnscope", help="the recorder to measure")
    parser.add_argument("--runs", type=int, default=15, help="pairs of runs, of the storm and of start and finish")
    parser.add_argument("--configure-runs", type=int, default=7, help="pairs of runs of ./configure")
    parser.add_argument("--storm", type=int, default=3000, help="launches of the storm")
    parser.add_argument("--launches", type=int, default=100_000, help="launches of the recording to report on")
    parser.add_argument("--hello", type=Path, help="unpacked source of GNU hello")
    parser.add_argument("--collector", choices=["ebpf", "ptrace"], default="ebpf", help="the collector to measure")
    parser.add_argument("--record-flag", action="append", default=[], metavar="FLAG", help="another option of `record`, such as --record-flag=--no-failed-execs")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--dry-run", action="store_true", help="do not store the results")
    options = parser.parse_args()
    options.binary = str(Path(options.binary).resolve())
    return options


def storm(options, work, *flags):
    """Compares the walls of N x /bin/true in bash, recorded / unrecorded."""
    command = ["bash", "-c", STORM % options.storm]
    return compare_pairs(options.runs, lambda: time_command(command), lambda: time_command(command_with_recorder(options, work, command, *flags)))


def storm_with_stacks(options, work):
    """Does the same as `storm`, with a native stack for each launch."""
    return storm(options, work, "--stacks")


def make_recipes(options, work):
    """Compares the walls of a makefile with 200 targets, each of which has two simple commands."""
    return makefile(options, work, "\t@/bin/true $@\n\t@/bin/echo $@ >/dev/null\n")


def make_shell(options, work):
    """Compares the walls of a makefile with 200 targets, each of which calls $(shell) twice."""
    return makefile(options, work, "\t@: $(shell echo $@ | tr a-z A-Z) $(shell basename $@)\n")


def makefile(options, work, recipe):
    targets = " ".join(f"target{number}" for number in range(200))
    (work / "Makefile").write_text(f"all: {targets}\n{targets}:\n{recipe}")
    command = ["bash", "-c", TIMED % "make -s all >/dev/null"]
    return compare_pairs(options.runs, lambda: time_command(command, work), lambda: time_command(command_with_recorder(options, work, command), work))


def configure(options, work):
    """Compares the walls of a cold ./configure of GNU hello, recorded / unrecorded, each in a fresh copy of the source."""
    source = options.hello or fetch_hello(work)

    def run(wrap):
        tree = work / "hello"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(source, tree, symlinks=True)
        return time_command(wrap(["bash", "-c", CONFIGURE]), tree)

    result = compare_pairs(options.configure_runs, lambda: run(list), lambda: run(lambda c: command_with_recorder(options, work, c)))
    counts = report(options, work / "bench.db")
    result["counts"] = {key: counts[key] for key in ("launches", "forks_without_exec", "failed_execs", "lost_events")}
    return result


def start_and_finish(options, work):
    """Measures the time that `record` adds to `true`."""
    pairs = []
    for _ in range(options.runs):
        plain = wall(["true"])
        pairs.append((plain, wall(command_with_recorder(options, work, ["true"]))))
    added = [(recorded - without) * 1e3 for without, recorded in pairs]
    return {"milliseconds": spread(added), "pairs_seconds": pairs}


def losses(options, work):
    """Records 4,000 launches by xargs -P8. Returns lost events, recorded launches, and stored bytes per launch."""
    command = ["bash", "-c", "seq 4000 | xargs -P8 -n1 /bin/true"]
    runs = []
    for _ in range(3):
        wall(command_with_recorder(options, work, command))
        size = (work / "bench.db").stat().st_size
        counts = report(options, work / "bench.db")
        runs.append({"lost": counts["lost_events"], "launches": counts["launches"], "bytes_per_launch": size / counts["launches"]})
    return {"lost": max(run["lost"] for run in runs), "runs": runs}


def report_time(options, work):
    """Measures the report on a large recording (including critical path, replay and advice), as text and as JSON: seconds and peak memory."""
    return measure_report(options, large_recording(options, work, options.launches), [], ["--json"])


def report_with_stacks(options, work):
    """Measures the report on a recording in which each launch has a native stack, by command and by caller."""
    return measure_report(options, large_recording(options, work, options.launches, "--stacks"), [], ["--by", "caller"])


def measure_report(options, file, *forms):
    rows = []
    for form in forms:
        for _ in range(5):
            seconds, usage = measure_command([options.binary, "report", *form, str(file)])
            rows.append({"form": " ".join(form), "seconds": seconds, "peak_mib": usage.ru_maxrss / 1024})
    return {
        "launches": report(options, file)["launches"],
        "seconds": spread([row["seconds"] for row in rows]),
        "peak_mib": max(row["peak_mib"] for row in rows),
        "file_mib": file.stat().st_size / 2**20,
        "runs": rows,
    }


def scaling(options, work):
    """Measures how the time of `report` and `advise --all` grows if the number of launches doubles. Above 2.3 times, something is quadratic."""
    files = [large_recording(options, work, launches) for launches in (options.launches // 2, options.launches)]
    result = {}
    for verb in (["report"], ["advise", "--all"]):
        runs = [[wall([options.binary, *verb, str(file)]) for file in files] for _ in range(options.runs)]
        result[verb[0]] = {"ratio": spread([whole / half for half, whole in runs]), "runs_seconds": runs}
    return {"worst_ratio": max(verb["ratio"]["median"] for verb in result.values()), "verbs": result}


def large_recording(options, work, launches, *flags):
    bare = ["-nostdlib", "-fno-stack-protector"]
    for name, cc_options in (("storm", []), ("tiny", bare)):
        subprocess.run(["cc", "-O1", "-static", *cc_options, "-o", work / name, WORKLOADS / f"{name}.c"], check=True)
    wall(command_with_recorder(options, work, [str(work / "storm"), str(launches), str(work / "tiny")], *flags))
    return (work / "bench.db").rename(work / f"{launches}.db")


MEASUREMENTS = {
    "storm": storm,
    "make_recipes": make_recipes,
    "make_shell": make_shell,
    "configure": configure,
    "start_and_finish": start_and_finish,
    "losses": losses,
    "report": report_time,
    "storm_with_stacks": storm_with_stacks,
    "report_with_stacks": report_with_stacks,
    "scaling": scaling,
}


def command_with_recorder(options, work, command, *flags):
    flags = ["--collector", options.collector, *options.record_flag, *flags]
    return [options.binary, "record", "-q", *flags, "-o", str(work / "bench.db"), "--", *command]


def report(options, file):
    done = subprocess.run([options.binary, "report", "--json", str(file)], check=True, capture_output=True)
    return json.loads(done.stdout)


def time_command(command, directory=None):
    """Runs a workload and returns the seconds that it reports."""
    done = subprocess.run(command, cwd=directory, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return int(done.stdout.split()[-1]) / 1e6


def wall(command):
    return measure_command(command)[0]


def measure_command(command):
    began = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command} exited with {child.returncode}")
    return seconds, usage


def compare_pairs(runs, plain, recorded):
    """Runs both once to warm up, then runs pairs of them; each is first in half of the pairs."""
    plain(), recorded()
    pairs = []
    for number in range(runs):
        if number % 2:
            second = recorded()
            pairs.append((plain(), second))
        else:
            pairs.append((plain(), recorded()))
    return {
        # A shared machine only adds time, so the fast runs show the cost itself best.
        "ratio_of_p10": tenth_percentile(p[1] for p in pairs) / tenth_percentile(p[0] for p in pairs),
        "ratio_of_medians": statistics.median(p[1] for p in pairs) / statistics.median(p[0] for p in pairs),
        "ratio": spread([second / first for first, second in pairs]),
        "plain_seconds": spread([first for first, _ in pairs]),
        "recorded_seconds": spread([second for _, second in pairs]),
        "pairs_seconds": pairs,
    }


def fetch_hello(work):
    """Downloads GNU hello's source from Debian, with a separate sources list and state, so that the system's are not changed."""
    source = work / "source"
    (source / "lists/partial").mkdir(parents=True)
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = release["VERSION_CODENAME"].strip('"')
    (source / "deb-src.sources").write_text(
        f"Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: {suite}\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={source}/deb-src.sources", "-o", "Dir::Etc::sourceparts=-"]
    apt += ["-o", f"Dir::State::lists={source}/lists", "-o", "APT::Sandbox::User=root"]
    for verb in (["update"], ["source", "hello"]):
        subprocess.run(apt + verb, cwd=source, check=True, stdout=subprocess.DEVNULL)
    return next(path for path in source.glob("hello-*") if path.is_dir())


def print_table(measurements):
    for name, result in measurements.items():
        if "ratio" in result:
            ratio = result["ratio"]
            words = f"{ratio['median']:.3f} ({ratio['quartiles'][0]:.3f} to {ratio['quartiles'][1]:.3f}) of the unrecorded wall; p10 {result['ratio_of_p10']:.3f}"
        elif "milliseconds" in result:
            words = f"{result['milliseconds']['median']:.0f} ms in addition to the command"
        elif "peak_mib" in result:
            words = f"{result['seconds']['median']:.2f} s, {result['peak_mib']:.0f} MiB for {result['launches']:,} launches"
        elif "verbs" in result:
            words = f"{result['worst_ratio']:.2f} times as long for twice as many launches"
        else:
            words = f"{result['lost']} events lost"
        print(f"{name:20} {words}", *([result["counts"]] if "counts" in result else []))


if __name__ == "__main__":
    main()
