#!/usr/bin/env python3
"""Runs commands in turns, and prints the seconds of each run and their median, so that recorded and unrecorded runs, or a program with
and without a fix, meet the same machine. Usage: turns.py [--runs N] [--prepare CMD] NAME=CMD..."""

import argparse
import statistics
import subprocess
import sys
import time


def main():
    options = parse()
    walls = {name: [] for name, _ in options.commands}
    for number in range(options.runs):
        # Each is first in turn.
        first = number % len(options.commands)
        for name, command in options.commands[first:] + options.commands[:first]:
            if options.prepare:
                run(options.prepare)
            walls[name].append(run(command))
    for name, seconds in walls.items():
        each = " ".join(f"{wall:.3f}" for wall in sorted(seconds))
        print(f"{name:20} median {statistics.median(seconds):.3f} s   {each}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--prepare", metavar="CMD", help="runs before each run, and is not timed")
    parser.add_argument("commands", nargs="+", type=named, metavar="NAME=CMD", help="a command for sh")
    return parser.parse_args()


def named(text):
    name, _, command = text.partition("=")
    if not command:
        raise argparse.ArgumentTypeError(f"not NAME=CMD: {text}")
    return name, command


def run(command):
    began = time.perf_counter()
    done = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"{command} exited with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    return seconds


if __name__ == "__main__":
    main()
