"""`Popen`: pipes, waits, communicate, signals, and children that are dropped."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import threading
from types import ModuleType

import pytest

import vspawn

LARGE = bytes(range(256)) * 4096
FOREVER = ["sleep", "1000"]


def test_pipes_are_files(api: ModuleType) -> None:
    with api.Popen(["cat"], stdin=api.PIPE, stdout=api.PIPE) as child:
        assert child.args == ["cat"] and child.stderr is None and child.returncode is None
        child.stdin.write(b"a line\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"a line\n"
        child.stdin.close()
        assert child.stdout.read() == b""
    assert child.returncode == 0


def test_text_and_line_buffering(api: ModuleType) -> None:
    with api.Popen(["cat"], stdin=api.PIPE, stdout=api.PIPE, text=True, bufsize=1) as child:
        child.stdin.write("a line\n")
        assert child.stdout.readline() == "a line\n"


def test_without_buffers(api: ModuleType) -> None:
    with api.Popen(["cat"], stdin=api.PIPE, stdout=api.PIPE, bufsize=0) as child:
        child.stdin.write(b"x")
        assert child.stdout.read(1) == b"x"


def test_poll_and_wait(api: ModuleType) -> None:
    child = api.Popen(["cat"], stdin=api.PIPE)
    assert child.poll() is None
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        child.wait(timeout=0.01)
    assert (raised.value.cmd, raised.value.timeout) == (["cat"], 0.01)
    child.stdin.close()
    assert child.wait() == child.wait(timeout=0) == child.poll() == child.returncode == 0


@pytest.mark.parametrize(("method", "number"), [("terminate", 15), ("kill", 9)])
def test_terminate_and_kill_end_the_child(api: ModuleType, method: str, number: int) -> None:
    child = api.Popen(FOREVER)
    getattr(child, method)()
    assert child.wait() == -number
    getattr(child, method)()
    assert child.returncode == -number


def test_send_signal(api: ModuleType) -> None:
    with api.Popen(FOREVER) as child:
        child.send_signal(signal.SIGUSR1)
    assert child.returncode == -signal.SIGUSR1


@pytest.mark.parametrize("size", [0, 5, len(LARGE)])
def test_communicate(api: ModuleType, size: int) -> None:
    script = ["/bin/sh", "-c", "cat; echo done >&2; exit 2"]
    child = api.Popen(script, stdin=api.PIPE, stdout=api.PIPE, stderr=api.PIPE)
    assert child.communicate(LARGE[:size]) == (LARGE[:size], b"done\n")
    assert child.returncode == 2
    assert child.stdin.closed and child.stdout.closed and child.stderr.closed


def test_communicate_in_text(api: ModuleType) -> None:
    child = api.Popen(["cat"], stdin=api.PIPE, stdout=api.PIPE, stderr=api.PIPE, encoding="latin-1")
    assert child.communicate("\u00e9\r\n", timeout=1000) == ("\u00e9\n", "")


def test_communicate_continues_after_a_timeout() -> None:
    """Older versions of `subprocess` lose the rest of the input here."""
    reader, writer = os.pipe()
    script = ["/bin/sh", "-c", f"echo before; read line </proc/self/fd/{reader}; cat; echo after"]
    child = vspawn.Popen(script, stdin=vspawn.PIPE, stdout=vspawn.PIPE, pass_fds=[reader])
    try:
        # The child cannot end before the line is written.
        with pytest.raises(vspawn.TimeoutExpired) as raised:
            child.communicate(LARGE, timeout=1)
        assert raised.value.output == b"before\n"
        with pytest.raises(ValueError, match="Cannot send input after"):
            child.communicate(b"more", timeout=0.01)
        os.write(writer, b"\n")
    finally:
        os.close(reader)
        os.close(writer)
    assert child.communicate(timeout=1000) == (b"before\n" + LARGE + b"after\n", None)


def test_communicate_returns_data_that_a_file_has_buffered(api: ModuleType) -> None:
    child = api.Popen(["printf", r"1\n2\n3\n"], stdout=api.PIPE)
    assert child.stdout.readline() == b"1\n"
    assert child.communicate() == (b"2\n3\n", None)


@pytest.mark.parametrize("timeout", [None, 1000])
def test_communicate_with_a_child_that_reads_nothing(api: ModuleType, timeout: float | None) -> None:
    child = api.Popen(["true"], stdin=api.PIPE)
    assert child.communicate(LARGE, timeout=timeout) == (None, None)
    assert child.returncode == 0


def test_the_size_of_a_pipe_is_set() -> None:
    import fcntl

    F_GETPIPE_SZ = 1032
    with vspawn.Popen(["cat"], stdin=vspawn.PIPE, stdout=vspawn.PIPE, pipesize=4096) as child:
        assert child.stdin is not None
        assert fcntl.fcntl(child.stdin.fileno(), F_GETPIPE_SZ) == 4096
        child.stdin.close()


def test_fileno_is_a_pidfd() -> None:
    with vspawn.Popen(["cat"], stdin=vspawn.PIPE) as child:
        assert select.select([child], [], [], 0)[0] == []
        with open(f"/proc/self/fdinfo/{child.fileno()}") as info:
            assert f"Pid:\t{child.pid}\n" in info.readlines()
        assert child.stdin is not None
        child.stdin.close()
        assert select.select([child], [], [], 1000)[0] == [child]
    assert not os.get_inheritable(child.fileno())


def test_a_running_child_that_is_dropped_warns_and_is_reaped_later(api: ModuleType) -> None:
    child = api.Popen(["cat"], stdin=api.PIPE)
    pid, stdin = child.pid, child.stdin
    with pytest.warns(ResourceWarning, match=f"subprocess {pid} is still running"):
        del child
        gc.collect()
    stdin.close()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    api.Popen(["true"]).wait()
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_threads_wait_concurrently() -> None:
    child = vspawn.Popen(["cat"], stdin=vspawn.PIPE)
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(child.wait())) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert child.stdin is not None
    child.stdin.close()
    for thread in threads:
        thread.join()
    assert codes == [0] * 8


def test_a_child_that_other_code_has_reaped(api: ModuleType) -> None:
    child = api.Popen(["false"])
    os.waitpid(child.pid, 0)
    child.kill()
    assert child.wait() == 0


def test_other_threads_run_while_a_child_starts() -> None:
    """A thread runs only if the other one releases the GIL voluntarily: the switch interval is too long to force it."""
    script = """
import sys, threading, time
from vspawn import _core
sys.setswitchinterval(1000)
turns = 0
def turn():
    global turns
    while turns >= 0:
        turns += 1
        time.sleep(0)
thread = threading.Thread(target=turn, daemon=True)
thread.start()
moved = False
children = []
for _ in range(200):
    before = turns
    child = _core.Prepared(['true'], None, None, None).spawn()
    moved = moved or turns != before
    children.append(child)
for child in children:
    child.wait()
turns = -1 << 40
print(moved)
"""
    result = vspawn.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert (result.stdout, result.stderr) == ("True\n", "")


def test_repr(api: ModuleType) -> None:
    with api.Popen(["true"]) as child:
        assert repr(child) == "<Popen: returncode: None args: ['true']>"
    child.wait()
    child.args = ("true", "a tuple")
    assert repr(child) == "<Popen: returncode: 0 args: ('true', 'a tuple')>"
    child.args = ["ls", "--my-opts", "a" * 100]
    assert repr(child) == "<Popen: returncode: 0 args: ['ls', '--my-opts', 'aaaaaaaaaaaaaaaaaaaaaaaaaaa...>"
