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
    """Assertions that take this hold for both modules."""
    module: ModuleType = request.param
    return module


@pytest.fixture
def as_root() -> None:
    """For tests that become another user."""
    if os.geteuid() == 0:
        return
    reason = "not root: cannot become another user"
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


def open_descriptors() -> list[str]:
    """The descriptors of this process, with their targets."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            pass  # the descriptor of the listing itself
    return sorted(found)


def children() -> list[int]:
    """Pids of this process's children, running or not yet waited for."""
    pids: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            pids += map(int, (task / "children").read_text().split())
        except FileNotFoundError:
            pass  # a thread that has just ended
    return pids


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No test leaves a descriptor or a child."""
    gc.collect()
    before = open_descriptors()
    yield
    gc.collect()
    assert open_descriptors() == before
    left = children()
    for pid in left:
        # Otherwise, the next test would fail for it too.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert left == []
