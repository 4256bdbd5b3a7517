"""Runs a command and writes the seconds it took into a file. Usage: stopwatch.py FILE COMMAND..., exit status: the command's.
A program of its own, so that what sets the stage for the command (a mount namespace) can be outside the time."""

import os
import subprocess
import sys
import time

began = time.perf_counter()
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
_, status = os.waitpid(child.pid, 0)
seconds = time.perf_counter() - began
with open(sys.argv[1], "w") as file:
    file.write(repr(seconds))
sys.exit(os.waitstatus_to_exitcode(status))
