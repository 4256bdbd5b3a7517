#!/usr/bin/env python3
"""Runs commands in turn, and prints the seconds of each run and their median. If the speed of the machine changes, taking turns keeps runs
comparable, such as recorded and unrecorded runs, or runs with and without a fix. If a command writes a recording to FILE, its time is the
wall in that recording, without the recorder's start and end. Usage: turns.py [--runs N] [--prepare CMD] [--recording FILE] NAME=CMD..."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path


def main():
    options = parse()
    walls = {name: [] for name, _ in options.commands}
    for number in range(options.runs):
        # Each round begins with the next command.
        first = number % len(options.commands)
        for name, command in options.commands[first:] + options.commands[:first]:
            if options.prepare:
                run(options.prepare)
            walls[name].append(wall(command, options.recording, options.spawnscope))
    for name, seconds in walls.items():
        each = " ".join(f"{wall:.3f}" for wall in sorted(seconds))
        print(f"{name:20} median {statistics.median(seconds):.3f} s   {each}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--prepare", metavar="CMD", help="a command that runs before each run and is not timed")
    parser.add_argument("--recording", metavar="FILE", type=Path, help="the recording that some of the commands write")
    parser.add_argument("--spawnscope", default="spawnscope", help="the program that reads the recording")
    parser.add_argument("commands", nargs="+", type=named, metavar="NAME=CMD", help="a command for sh")
    return parser.parse_args()


def named(text):
    name, _, command = text.partition("=")
    if not command:
        raise argparse.ArgumentTypeError(f"not NAME=CMD: {text}")
    return name, command


def wall(command, recording, spawnscope):
    if recording:
        recording.unlink(missing_ok=True)
    seconds = run(command)
    if not recording or not recording.exists():
        return seconds
    report = subprocess.run([spawnscope, "report", "--json", recording], check=True, capture_output=True)
    return json.loads(report.stdout)["wall_ns"] / 1e9


def run(command):
    began = time.perf_counter()
    done = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"{command} exited with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    return seconds


if __name__ == "__main__":
    main()
