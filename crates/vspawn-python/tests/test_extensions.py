"""What `subprocess` lacks: options that replace a preexec_fn, prepared commands, a limit on the output, killing a tree, and starting without
waiting."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import vspawn


def output(args: Any, **options: Any) -> str:
    return vspawn.check_output(args, text=True, **options).strip()


def test_resource_limits() -> None:
    limits = {resource.RLIMIT_NOFILE: (50, 60), resource.RLIMIT_CORE: 0}
    assert output("ulimit -Sn; ulimit -Hn; ulimit -c", shell=True, rlimits=limits).split() == ["50", "60", "0"]
    infinite = {resource.RLIMIT_CPU: (7, resource.RLIM_INFINITY)}
    assert output("ulimit -St; ulimit -Ht", shell=True, rlimits=infinite).split() == ["7", "unlimited"]


def test_niceness_and_cpus() -> None:
    cpu = min(os.sched_getaffinity(0))
    assert output(["nice"], nice=3) == str(os.getpriority(os.PRIO_PROCESS, 0) + 3)
    assert output(["grep", "^Cpus_allowed_list", "/proc/self/status"], cpus={cpu}).split()[1] == str(cpu)


def test_no_new_privileges() -> None:
    assert output(["grep", "^NoNewPrivs", "/proc/self/status"], no_new_privs=True).split()[1] == "1"


def test_a_signal_at_the_parents_death() -> None:
    code = "import ctypes; s = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(s)); print(s.value)"
    assert output(["python3", "-c", code], pdeathsig=signal.SIGUSR1) == str(int(signal.SIGUSR1))


def test_another_root(as_root: None, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        vspawn.run(["/bin/true"], chroot=tmp_path)
    with pytest.raises(OSError) as raised:
        vspawn.run(["/bin/true"], chroot="/no/such")
    assert raised.value.stage == "chroot"  # type: ignore[attr-defined]


def test_a_cgroup_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError) as raised:
        vspawn.run(["true"], cgroup=tmp_path)
    assert raised.value.stage == "clone"  # type: ignore[attr-defined]
    with pytest.raises(FileNotFoundError):
        vspawn.run(["true"], cgroup=tmp_path / "missing")


def test_descriptors_get_the_requested_numbers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    with open(tmp_path / "a") as a, open(tmp_path / "b") as b:
        swapped = {a.fileno(): b, b.fileno(): a.fileno(), 9: a}
        words = "cat <&{}; cat /dev/fd/{}".format(a.fileno(), b.fileno())
        assert output(["bash", "-c", words], fds=swapped) == "ba"
        assert output(["bash", "-c", "ls /proc/$$/fd"], fds=swapped, close_fds=True).split()[3:] != []
    with pytest.raises(ValueError, match="stdin="):
        vspawn.run(["true"], fds={1: 2})


@pytest.mark.parametrize("option", ["rlimits", "nice", "cpus", "cgroup", "pdeathsig", "chroot", "fds"])
def test_none_changes_nothing(option: str) -> None:
    assert vspawn.run(["true"], **{option: None}).returncode == 0  # type: ignore[call-overload]


def test_too_much_output_kills_the_program() -> None:
    with pytest.raises(vspawn.OutputLimitExceeded) as raised:
        vspawn.run(["yes"], stdout=vspawn.PIPE, output_limit=4)
    assert (raised.value.output, raised.value.limit) == (b"y\ny\n", 4)
    assert str(raised.value) == "Command '['yes']' wrote more than 4 bytes"
    assert vspawn.run(["echo", "abc"], stdout=vspawn.PIPE, output_limit=4).stdout == b"abc\n"


def test_too_much_output_kills_the_program_asynchronously() -> None:
    with pytest.raises(vspawn.OutputLimitExceeded) as raised:
        asyncio.run(vspawn.run_async(["yes"], stdout=vspawn.PIPE, output_limit=4))
    assert raised.value.output == b"y\ny\n"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_ended(pid: int) -> None:
    end = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < end, "the process still runs"
        time.sleep(0.01)


def test_a_timeout_can_kill_the_descendants() -> None:
    with pytest.raises(vspawn.TimeoutExpired) as raised:
        vspawn.run("sleep 60 & echo $!; wait", shell=True, stdout=vspawn.PIPE, timeout=0.5, kill_tree=True)
    assert raised.value.output
    wait_until_ended(int(raised.value.output))


def test_a_tree_is_killed() -> None:
    with vspawn.Popen("sleep 60 & echo $!; wait", shell=True, stdout=vspawn.PIPE, text=True) as child:
        assert child.stdout
        sleep = int(child.stdout.readline())
        assert child.kill_tree() == 1
        assert child.wait() == -signal.SIGKILL
        assert child.kill_tree() == 0
    wait_until_ended(sleep)


def test_a_prepared_command_runs_many_times() -> None:
    upper = vspawn.prepare(["tr", "a-z", "A-Z"], stdin=vspawn.PIPE, stdout=vspawn.PIPE, text=True)
    assert [upper.run(input=text, check=True).stdout for text in ("ab", "c")] == ["AB", "C"]
    with upper.start() as child:
        assert child.communicate("x") == ("X", None)
        assert child.args == ["tr", "a-z", "A-Z"]
    with pytest.raises(subprocess.CalledProcessError):
        vspawn.prepare(["false"]).run(check=True)
    with pytest.raises(vspawn.TimeoutExpired):
        vspawn.prepare(["sleep", "60"]).run(timeout=0.05)
    with pytest.raises(ValueError, match="stdin=PIPE"):
        vspawn.prepare(["cat"]).run(input=b"x")
    with pytest.raises(ValueError, match="preexec_fn"):
        vspawn.prepare(["cat"], preexec_fn=print)
    with pytest.raises(FileNotFoundError) as raised:
        vspawn.prepare(["/no/such"]).run()
    assert raised.value.filename == "/no/such"


def test_a_start_without_waiting_reports_its_failure_later() -> None:
    child = vspawn.Popen(["/no/such"], nowait=True)
    with pytest.raises(FileNotFoundError) as raised:
        child.wait(10)
    assert raised.value.filename == "/no/such"
    assert child.poll() == 127
    with vspawn.prepare(["true"]).start(nowait=True) as child:
        assert child.wait() == 0


def test_attributes_of_subprocess() -> None:
    with vspawn.Popen(["true"], encoding="utf-8", errors="replace", pipesize=8192) as child:
        assert isinstance(child, subprocess.Popen)
        assert (child.encoding, child.errors, child.pipesize) == ("utf-8", "replace", 8192)
        assert child.text_mode and child.universal_newlines
    with vspawn.Popen(["true"]) as child:
        assert (child.encoding, child.errors, child.pipesize) == (None, None, -1)
        assert not child.text_mode and not child.universal_newlines


def test_a_shell_is_started_like_by_subprocess() -> None:
    for api in (subprocess, vspawn):
        assert api.check_output("echo $0 $1", shell=True, executable="/bin/bash") == b"/bin/bash\n"
        assert api.check_output(["echo $0 $1", "a", "b"], shell=True) == b"a b\n"
        with pytest.raises(TypeError):
            api.run(Path("x"), shell=True)
