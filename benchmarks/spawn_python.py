#!/usr/bin/env python3
"""Starts a program with subprocess.run and vspawn.run in turn, and prints the time of each call in nanoseconds, as JSON. Arguments: the
program, the number of rounds, the MiB of memory to allocate first, and optionally (as root) the uid to run the program as."""

import json
import subprocess
import sys
import time

import vspawn

program, rounds, mebibytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = {"user": int(sys.argv[4])} if len(sys.argv) > 4 else {}
ballast = bytearray(b"\1" * (mebibytes << 20))  # every page is written, so that all memory is resident

times = {"subprocess": [], "vspawn": []}
modules = [("subprocess", subprocess), ("vspawn", vspawn)]
for _ in range(rounds):
    modules.reverse()
    for name, module in modules:
        began = time.perf_counter_ns()
        module.run([program], check=True, **options)
        times[name].append(time.perf_counter_ns() - began)
assert len(ballast) == mebibytes << 20
print(json.dumps(times))
