"""Exceptions of a failed start: class, errno and filename as in `subprocess`, and in addition the stage."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import vspawn


def failure(api: ModuleType, args: Any, **options: Any) -> OSError:
    with pytest.raises(OSError) as raised:
        api.run(args, **options)
    with pytest.raises(type(raised.value)) as again:
        api.Popen(args, **options)
    assert again.value.args == raised.value.args
    return raised.value


@pytest.mark.parametrize("program", ["/no/such/program", "no-such-program", b"no-such-program", "./no-such-program"])
def test_a_missing_program(api: ModuleType, program: Any) -> None:
    error = failure(api, [program, "x"])
    assert type(error) is FileNotFoundError
    assert (error.errno, error.strerror, error.filename) == (errno.ENOENT, os.strerror(errno.ENOENT), program)


@pytest.mark.parametrize("options", [{}, {"shell": False, "cwd": "/nowhere"}, {"preexec_fn": lambda: None}])
def test_a_start_that_fails_closes_its_pipes(api: ModuleType, options: dict[str, Any]) -> None:
    """The fixture `nothing_left_behind` compares the descriptors."""
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            api.Popen(["/nowhere"], stdin=api.PIPE, stdout=api.PIPE, stderr=api.PIPE, **options)


def test_the_exception_names_the_executable(api: ModuleType) -> None:
    assert failure(api, ["true"], executable="/no/such/program").filename == "/no/such/program"


def test_a_program_that_may_not_be_run(api: ModuleType, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    error = failure(api, [str(program)])
    assert (type(error), error.filename) == (PermissionError, str(program))
    # The same if it is found in PATH.
    error = failure(api, ["program"], env={"PATH": f"{tmp_path}:/nonexistent"})
    assert (type(error), error.filename) == (PermissionError, "program")


def test_a_path_through_a_file(api: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = failure(api, [str(tmp_path / "file" / "program")])
    assert type(error) is NotADirectoryError


def test_a_program_of_an_unknown_format(api: ModuleType, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("echo no shell reads this\n")
    program.chmod(0o755)
    error = failure(api, [str(program)])
    assert (type(error), error.errno, error.filename) == (OSError, errno.ENOEXEC, str(program))


def test_arguments_that_are_too_large(api: ModuleType) -> None:
    error = failure(api, ["true", "x" * (1 << 20)])
    assert (error.errno, error.filename) == (errno.E2BIG, "true")


def test_a_missing_directory(api: ModuleType, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    error = failure(api, ["true"], cwd=missing)
    assert (type(error), error.filename) == (FileNotFoundError, missing)
    (tmp_path / "file").touch()
    error = failure(api, ["true"], cwd=str(tmp_path / "file"))
    assert (type(error), error.filename) == (NotADirectoryError, str(tmp_path / "file"))


def test_a_directory_that_the_user_may_not_enter(as_root: None, tmp_path: Path) -> None:
    """`subprocess` enters the directory as root."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(PermissionError) as raised:
        vspawn.run(["true"], cwd=closed, user=65534)
    assert raised.value.filename == closed


def test_a_closed_descriptor() -> None:
    """`subprocess` starts the child without the descriptor."""
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    error = failure(vspawn, ["true"], pass_fds=[writer])
    assert (type(error), error.errno, error.filename) == (OSError, errno.EBADF, None)


@pytest.mark.parametrize("words", [["true", "a\0b"], ["tr\0ue"]])
def test_nul_bytes(api: ModuleType, words: list[str]) -> None:
    with pytest.raises(ValueError):
        api.run(words)


@pytest.mark.parametrize(
    ("options", "stage", "action"),
    [
        ({"args": ["/no/such"]}, "exec", "exec /no/such"),
        ({"args": ["no-such"]}, "exec", "exec no-such, which is in no directory of PATH"),
        ({"cwd": "/no/such"}, "chdir", "chdir to /no/such"),
        ({"process_group": 2**22 + 1}, "process_group", "join process group 4194305"),
        ({"stdin": 987654}, "dup", "dup 987654 to 0"),
    ],
)
def test_stage_and_action(options: dict[str, Any], stage: str, action: str) -> None:
    options = {"args": ["true"], **options}
    for start in (vspawn.run, vspawn.Popen):
        with pytest.raises(OSError) as raised:
            start(**options)
        error: Any = raised.value
        assert (error.stage, error.action) == (stage, action)
        assert error.filename is not None or action in str(error)


def test_a_user_that_the_parent_may_not_become(as_root: None) -> None:
    script = "import os, vspawn; os.setuid(65534); vspawn.run(['true'], user=0)"
    result = vspawn.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "PermissionError: [Errno 1] Operation not permitted (failed to become user 0)" in result.stderr
