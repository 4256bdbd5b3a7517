"""A launcher of the lab: see mod.rs."""

import subprocess
import sys

size, program, status = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ballast = b"x" * size
print(len(ballast), flush=True)
for line in sys.stdin:
    print(sum(subprocess.call([program]) == status for _ in range(int(line))), flush=True)
