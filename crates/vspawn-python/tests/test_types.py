"""Types: checks a user's code and the package itself with `mypy --strict`, and compares the stubs with the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import vspawn

HERE = Path(__file__).parent


def run_module(*args: str | Path, cwd: Path) -> None:
    result = subprocess.run([sys.executable, "-m", *args], capture_output=True, text=True, cwd=cwd)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_users_code_has_the_promised_types(tmp_path: Path) -> None:
    run_module("mypy", "--strict", "--cache-dir", tmp_path, HERE / "typed_sample.py", cwd=tmp_path)


def test_the_package_is_typed(tmp_path: Path) -> None:
    assert vspawn.__file__ is not None
    run_module("mypy", "--strict", "--cache-dir", tmp_path, "-p", "vspawn", cwd=tmp_path)


def test_the_stubs_match_the_package(tmp_path: Path) -> None:
    run_module("mypy.stubtest", "vspawn", "--allowlist", HERE / "stubtest_allowed.txt", cwd=tmp_path)
