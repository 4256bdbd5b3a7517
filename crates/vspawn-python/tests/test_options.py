"""Properties of a child: program, directory, environment, descriptors, mask, groups, signals, user."""

from __future__ import annotations

import grp
import os
import pwd
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import vspawn

NOBODY = 65534


def stdout_of(api: ModuleType, *args: Any, **options: Any) -> str:
    """Return a child's standard output."""
    output: str = api.run(*args, stdout=api.PIPE, text=True, check=True, **options).stdout
    return output.rstrip("\n")


def status_of_child(api: ModuleType, field: str, **options: Any) -> str:
    line = stdout_of(api, ["grep", f"^{field}:", "/proc/self/status"], **options)
    return line.partition(":")[2].strip()


@pytest.mark.parametrize("args", [["echo", "a b"], ("echo", "a b"), [b"echo", b"a b"], [Path("echo"), Path("a b")]])
def test_kinds_of_words(api: ModuleType, args: Any) -> None:
    assert stdout_of(api, args) == "a b"


def test_words_that_are_not_text(api: ModuleType) -> None:
    assert api.run(["printf", "%s", "\udcff"], stdout=api.PIPE).stdout == b"\xff"


@pytest.mark.parametrize("program", ["true", b"true", Path("/bin/true")])
def test_a_single_word_is_a_program(api: ModuleType, program: Any) -> None:
    assert api.run(program).returncode == 0


def test_a_single_string_is_not_split(api: ModuleType) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        api.run("echo a")
    assert raised.value.filename == "echo a"


def test_executable_does_not_change_the_name(api: ModuleType) -> None:
    assert stdout_of(api, ["its name", "-c", "echo $0"], executable="/bin/sh") == "its name"


@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_cwd(api: ModuleType, tmp_path: Path, kind: Any) -> None:
    assert stdout_of(api, ["pwd", "-P"], cwd=kind(str(tmp_path))) == str(tmp_path.resolve())


def test_env_replaces_all(api: ModuleType) -> None:
    assert stdout_of(api, ["/usr/bin/env"], env={"A": "1"}) == "A=1"
    assert stdout_of(api, ["/usr/bin/env"], env={b"A": b"2"}) == "A=2"
    assert stdout_of(api, ["/usr/bin/env"], env={}) == ""


def test_env_is_inherited(api: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSPAWN_TEST", "x=y")
    assert stdout_of(api, ["printenv", "VSPAWN_TEST"]) == "x=y"


def test_the_search_uses_the_childs_path(api: ModuleType, tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert stdout_of(api, ["only-here"], env={"PATH": f"/nonexistent:{tmp_path}"}) == "found"


@pytest.mark.parametrize("env", [{"A=B": "1"}, {"A": "1\0"}])
def test_invalid_env(api: ModuleType, env: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        api.run(["true"], env=env)


def test_files_and_numbers_as_streams(api: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("text")
    with open(tmp_path / "in") as stdin, open(tmp_path / "out", "w") as stdout:
        api.run(["cat"], stdin=stdin, stdout=stdout.fileno(), check=True)
    assert (tmp_path / "out").read_text() == "text"


def test_streams_that_swap_places(api: ModuleType) -> None:
    script = (
        f"import sys, {api.__name__} as api; api.run(['/bin/sh', '-c', 'echo out; echo err >&2'], stdout=2, stderr=1)"
    )
    result = api.run([sys.executable, "-c", script], capture_output=True)
    assert (result.stdout, result.stderr) == (b"err\n", b"out\n")


def test_other_descriptors_are_closed_unless_passed(api: ModuleType) -> None:
    reader, writer = os.pipe()
    try:
        for fd in (reader, writer):
            os.set_inheritable(fd, True)
        test = ["/bin/sh", "-c", f"test -e /proc/self/fd/{reader}; echo $?; test -e /proc/self/fd/{writer}; echo $?"]
        assert stdout_of(api, test) == "1\n1"
        assert stdout_of(api, test, pass_fds=[writer]) == "1\n0"
        assert stdout_of(api, test, close_fds=False) == "0\n0"
        os.set_inheritable(writer, False)
        assert stdout_of(api, test, close_fds=False) == "0\n1"
        assert stdout_of(api, test, pass_fds=(writer,)) == "1\n0"
        with pytest.warns(RuntimeWarning, match="pass_fds overriding close_fds"):
            assert stdout_of(api, test, pass_fds=(writer,), close_fds=False) == "1\n0"
    finally:
        os.close(reader)
        os.close(writer)


def test_umask(api: ModuleType) -> None:
    assert stdout_of(api, ["/bin/sh", "-c", "umask"], umask=0o027) == "0027"
    assert stdout_of(api, ["/bin/sh", "-c", "umask"], umask=-1) == stdout_of(api, ["/bin/sh", "-c", "umask"])


def test_session_and_group(api: ModuleType) -> None:
    ids = ["-c", "import os; print(os.getpid(), os.getpgid(0), os.getsid(0))"]
    pid, group, session = stdout_of(api, [sys.executable, *ids], start_new_session=True).split()
    assert pid == group == session
    _, group, session = stdout_of(api, [sys.executable, *ids]).split()
    assert (int(group), int(session)) == (os.getpgid(0), os.getsid(0))
    if sys.version_info < (3, 11) and api is not vspawn:
        return
    pid, group, session = stdout_of(api, [sys.executable, *ids], process_group=0).split()
    assert pid == group and int(session) == os.getsid(0)


def test_signals_that_python_ignores_are_restored(api: ModuleType) -> None:
    restored = int(status_of_child(api, "SigIgn"), 16)
    kept = int(status_of_child(api, "SigIgn", restore_signals=False), 16)
    assert kept & ~restored == 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)


def test_blocked_signals_stay_blocked(api: ModuleType) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGRTMAX])
    try:
        blocked = int(status_of_child(api, "SigBlk"), 16)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert blocked == 1 << (signal.SIGUSR1 - 1) | 1 << (signal.SIGRTMAX - 1)


@pytest.mark.parametrize("by", ["id", "name"])
def test_user_and_groups(api: ModuleType, as_root: None, by: str) -> None:
    user: Any = NOBODY
    primary: Any = NOBODY
    extra: list[Any] = [12, NOBODY]
    if by == "name":
        user, primary = pwd.getpwuid(NOBODY).pw_name, grp.getgrgid(NOBODY).gr_name
        extra = [grp.getgrgid(12).gr_name, NOBODY]
    options = {"user": user, "group": primary, "extra_groups": extra}
    assert status_of_child(api, "Uid", **options).split() == [str(NOBODY)] * 4
    assert status_of_child(api, "Gid", **options).split() == [str(NOBODY)] * 4
    assert status_of_child(api, "Groups", **options).split() == ["12", str(NOBODY)]


def test_a_user_without_groups_loses_those_of_root(as_root: None) -> None:
    """`subprocess` keeps root's groups, which gives them to another user."""
    assert status_of_child(vspawn, "Groups", user=NOBODY) == ""


def test_the_parent_stays_dumpable(as_root: None) -> None:
    owner = os.stat("/proc/self/environ").st_uid
    stdout_of(vspawn, ["true"], user=NOBODY)
    assert os.stat("/proc/self/environ").st_uid == owner


@pytest.mark.parametrize("name", ["user", "group"])
def test_unknown_names_and_ids(api: ModuleType, as_root: None, name: str) -> None:
    with pytest.raises(KeyError):
        api.run(["true"], **{name: "no such name"})
    with pytest.raises(ValueError):
        api.run(["true"], **{name: -1})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startupinfo": 1}, "startupinfo is only supported on Windows"),
        ({"creationflags": 1}, "creationflags is only supported on Windows"),
        ({"stdout": -7}, "negative"),
        ({"stdin": vspawn.STDOUT}, "only be used for stderr"),
        ({"start_new_session": True, "process_group": 0}, "session"),
    ],
)
def test_the_exception_for_a_refused_option_gives_the_reason(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        vspawn.run(["true"], **options)
    with pytest.raises(ValueError, match=text):
        vspawn.Popen(["true"], **options)


def test_defaults_may_be_given(api: ModuleType) -> None:
    options = {"shell": False, "preexec_fn": None, "startupinfo": None, "creationflags": 0, "bufsize": None, "cwd": None, "env": None}
    options |= {"user": None, "extra_groups": None}
    assert api.run(["true"], executable=None, umask=-1, pass_fds=(), **options).returncode == 0


def test_empty_or_invalid_words(api: ModuleType) -> None:
    with pytest.raises((ValueError, IndexError)):
        api.run([])
    with pytest.raises(TypeError):
        api.run(["echo", 1])
