"""Runs a command and writes its time in seconds into a file. Usage: stopwatch.py FILE COMMAND...; exits with the command's status.
It is a separate program, so that a wrapper's work (such as making a mount namespace) is outside of the measured time."""

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
