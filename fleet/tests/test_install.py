"""Tests that the package is installed quickly from a package registry into a fresh environment, without a cache, and works there."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAX_SECONDS = 60
# What a machine computes for it must be much less than the limit, which is mostly for the network. It is 9 s here.
MAX_CPU_SECONDS = 25


def is_busy():
    return os.getloadavg()[0] > 2 * os.cpu_count()


def test_a_fresh_environment_answers_within_a_minute(tmp_path):
    environment = {**os.environ, "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    started, used = time.monotonic(), cpu_seconds()
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True, env=environment)
    subprocess.run([tmp_path / "bin/pip", "install", "--quiet", HERE.parent], check=True, env=environment)
    command = [tmp_path / "bin/spawnscope-fleet", "top", HERE / "base"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=tmp_path).stdout
    seconds = time.monotonic() - started
    assert "Lines that cost the most" in text
    assert cpu_seconds() - used < MAX_CPU_SECONDS
    assert seconds < MAX_SECONDS or is_busy(), f"{seconds:.0f} s"


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
