#!/usr/bin/env python3
"""Starts commands as coding agents do: each in a shell of its own.

Usage: agent-driver.py [--login] [--snapshot FILE] COUNT

Without options, each command is started as `bash -c TEXT`. With --login, the shell reads the files of a login
shell. With --snapshot, it first sources a file with functions, as some agents do to restore a user's shell.
"""

import argparse
import subprocess

COMMANDS = ["uname -s", "ls -d /", "cat /proc/version", "id -u"]

parser = argparse.ArgumentParser()
parser.add_argument("count", type=int)
parser.add_argument("--login", action="store_true")
parser.add_argument("--snapshot")
options = parser.parse_args()

for number in range(options.count):
    text = COMMANDS[number % len(COMMANDS)]
    if options.snapshot:
        text = f"source {options.snapshot} && eval '{text}' < /dev/null && pwd -P >/dev/null"
    flags = "-lc" if options.login else "-c"
    subprocess.run(["bash", flags, text], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
