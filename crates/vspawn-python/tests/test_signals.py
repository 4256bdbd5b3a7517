"""Signals while `run` and `Popen` wait: Python's handlers run, and their exceptions leave no child behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

import pytest

import vspawn


class HandlerError(Exception):
    """The exception of the test's handler."""


def raise_error(number: int, frame: FrameType | None) -> None:
    raise HandlerError


@pytest.fixture(autouse=True)
def handlers() -> Iterator[list[int]]:
    """Handlers: SIGINT raises KeyboardInterrupt, SIGUSR1 raises `HandlerError`, SIGUSR2 is only counted."""
    received: list[int] = []
    handlers_by_signal: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGUSR1: raise_error,
        signal.SIGUSR2: lambda number, frame: received.append(number),
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers_by_signal.items()}
    yield received
    for number, handler in before.items():
        signal.signal(number, handler)


def signal_parent(name: str, then: str) -> list[str]:
    """Return a command that sends this process a signal at about the time when it begins to wait. An early signal is not lost."""
    return ["/bin/sh", "-c", f"kill -{name} {os.getpid()}; {then}"]


def after_a_line(words: list[str]) -> list[str]:
    """Make the command read a line first, so that the writer of the line is ready for the signal."""
    return [*words[:-1], f"read line; {words[-1]}"]


OPTIONS: list[dict[str, Any]] = [{}, {"stdout": -1}, {"stdout": -1, "stderr": -1}, {"timeout": 1000}]


@pytest.mark.parametrize("options", OPTIONS)
def test_ctrl_c_ends_run_and_its_child(options: dict[str, Any]) -> None:
    """`subprocess` kills the child, too, but does not wait until it has ended."""
    with pytest.raises(KeyboardInterrupt):
        vspawn.run(signal_parent("INT", "exec sleep 1000"), **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_an_exception_of_a_handler_ends_run_and_its_child(options: dict[str, Any]) -> None:
    """In `subprocess`, it may arrive while the child is started, and the child is then left running."""
    with pytest.raises(HandlerError):
        vspawn.run(signal_parent("USR1", "exec sleep 1000"), **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_handler_that_returns_does_not_disturb_run(api: ModuleType, handlers: list[int], options: dict[str, Any]) -> None:
    result = api.run(signal_parent("USR2", "sleep 0.1; echo out >&1; exit 3"), **{"stdout": api.DEVNULL, **options})
    assert (result.returncode, handlers) == (3, [signal.SIGUSR2])
    assert result.stdout == (b"out\n" if "stdout" in options else None)


def test_ctrl_c_ends_wait_but_not_the_child(api: ModuleType) -> None:
    child = api.Popen(after_a_line(signal_parent("INT", "exec sleep 1000")), stdin=api.PIPE, bufsize=0)
    with pytest.raises(KeyboardInterrupt):
        child.stdin.write(b"now\n")
        child.wait()
    assert child.poll() is None
    child.kill()
    assert child.wait() == -signal.SIGKILL
    child.stdin.close()


def test_ctrl_c_ends_call_and_its_child() -> None:
    """`call` of `subprocess` does not wait until the child has ended."""
    with pytest.raises(KeyboardInterrupt):
        vspawn.call(signal_parent("INT", "exec sleep 1000"), timeout=1000)


def test_ctrl_c_in_a_with_block_waits_only_briefly(api: ModuleType) -> None:
    with pytest.raises(KeyboardInterrupt):
        with api.Popen(after_a_line(signal_parent("INT", "exec sleep 1000")), stdin=api.PIPE, bufsize=0) as child:
            child.stdin.write(b"now\n")
            child.wait()
    assert child.poll() is None
    child.kill()
    assert child.wait() == -signal.SIGKILL


def test_ctrl_c_ends_communicate_but_not_the_child(api: ModuleType) -> None:
    words = after_a_line(signal_parent("INT", "exec sleep 1000"))
    child = api.Popen(words, stdin=api.PIPE, stdout=api.PIPE, stderr=api.PIPE)
    with pytest.raises(KeyboardInterrupt):
        child.communicate(b"now\n" + b"x" * 200_000)
    assert child.poll() is None
    child.kill()
    child.wait()
    for file in (child.stdin, child.stdout, child.stderr):
        try:
            file.close()
        except BrokenPipeError:
            pass


def test_a_handler_of_the_parents_does_not_run_in_the_child(api: ModuleType, handlers: list[int]) -> None:
    result = api.run(["/bin/sh", "-c", "kill -USR2 $$"])
    assert (result.returncode, handlers) == (-signal.SIGUSR2, [])


def test_a_parent_that_ignores_sigchld(api: ModuleType) -> None:
    """The kernel then keeps no status, and the return code is 0."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        result = api.run(["/bin/sh", "-c", "echo out; exit 3"], stdout=api.PIPE)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (result.returncode, result.stdout) == (0, b"out\n")
