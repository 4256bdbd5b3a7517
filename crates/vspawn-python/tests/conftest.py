"""Shared by all tests: both modules as `api`, checks for leaked descriptors and children, and the needs of the machine."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import vspawn

# If `python` is a required need, a test that cannot run is a failure.
REQUIRED = "python" in os.environ.get("SPAWNSCOPE_TEST_REQUIRE", "").split(",")


@pytest.fixture(params=[subprocess, vspawn], ids=["subprocess", "vspawn"])
def api(request: pytest.FixtureRequest) -> ModuleType:
    """Run the test with both modules, which must behave the same."""
    module: ModuleType = request.param
    return module


@pytest.fixture
def as_root() -> None:
    """Skip a test that becomes another user, unless it runs as root."""
    if os.geteuid() == 0:
        return
    reason = "not root: cannot become another user"
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


def open_descriptors() -> list[str]:
    """Return the descriptors of this process, with their targets."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            pass  # the descriptor of the listing itself
    return sorted(found)


def children() -> list[int]:
    """Return the pids of this process's children that are running or not yet waited for."""
    pids: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            pids += map(int, (task / "children").read_text().split())
        except FileNotFoundError:
            pass  # a thread that has just ended
    return pids


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Check that the test leaves no descriptor or child behind."""
    gc.collect()
    before = open_descriptors()
    yield
    gc.collect()
    assert open_descriptors() == before
    remaining = children()
    for pid in remaining:
        # Otherwise, the next test would fail because of this child, too.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert remaining == []
