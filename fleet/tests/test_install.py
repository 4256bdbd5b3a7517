"""Tests that the package is installed quickly from a package registry into a fresh environment, without a cache, and works there."""

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAX_SECONDS = 60


def test_a_fresh_environment_answers_within_a_minute(tmp_path):
    environment = {**os.environ, "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True, env=environment)
    subprocess.run([tmp_path / "bin/pip", "install", "--quiet", HERE.parent], check=True, env=environment)
    command = [tmp_path / "bin/spawnscope-fleet", "top", HERE / "base"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=tmp_path).stdout
    seconds = time.monotonic() - started
    assert "Lines that cost the most" in text
    assert seconds < MAX_SECONDS, f"{seconds:.0f} s"
