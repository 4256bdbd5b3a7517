"""Runs the program in the process of a test, and makes datasets."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

from spawnscope_fleet import cli

HERE = Path(__file__).resolve().parent
BASE = HERE / "base"
TABLES = ["runs", "launches", "execs", "callers", "waits", "advice"]


def fleet(*words):
    """Runs the program in this process. `test_store.py` runs it as a process of its own."""
    out, errors, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            cli.main([str(word) for word in words])
        except SystemExit as end:
            status = end.code or 0
    return subprocess.CompletedProcess(words, status, out.getvalue(), errors.getvalue())


def printed(*words):
    done = fleet(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(*words):
    return json.loads(printed(*words, "--json"))


def failure(*words):
    done = fleet(*words)
    assert done.returncode == 125, done
    assert "Traceback" not in done.stderr
    return done.stderr


def generate(directory, *more, runs=140):
    dataset = directory / "dataset"
    directory.mkdir(exist_ok=True)
    sizes = ["--runs", str(runs), "--jobs", "10", "--machines", "8", "--launches", "20000"]
    subprocess.run([sys.executable, HERE.parent / "generate.py", BASE, dataset, *sizes, *more], check=True)
    return dataset


def words_of(text):
    return " ".join(text.split())
