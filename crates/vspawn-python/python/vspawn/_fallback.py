"""Children that `subprocess` starts for us, because they have a preexec_fn. Also what all calls share with `subprocess`: shell=True, the
audit event and the options for Windows."""

from __future__ import annotations

import os
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_needed(options: Any) -> bool:
    """Return whether only `subprocess` can start the child. Remove the options that have no meaning on Linux."""
    if options.pop("startupinfo", None) is not None:
        raise ValueError("startupinfo is only supported on Windows platforms")
    if options.pop("creationflags", 0) != 0:
        raise ValueError("creationflags is only supported on Windows platforms")
    return options.get("preexec_fn") is not None


def with_shell(args: Any, options: Any) -> Any:
    """Return the words to execute: with shell=True, those of a shell that reads the text."""
    if not options.pop("shell", False):
        return args
    if not isinstance(args, (str, bytes)) and hasattr(args, "__fspath__"):
        raise TypeError("path-like args is not allowed when shell is true")
    words = ["/bin/sh", "-c", *([args] if isinstance(args, (str, bytes)) else args)]
    executable = options.get("executable")
    if executable is not None:
        words[0] = executable
    return words


class ForkedChild:
    """A child that `subprocess` has started, with the interface of `_core.Child`."""

    def __init__(self, args: Any, stdin: Any, stdout: Any, stderr: Any, **options: Any) -> None:
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            args, bufsize=0, stdin=stdin, stdout=stdout, stderr=stderr, **options
        )
        self._pidfd: int | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def take_pipes(self) -> list[int | None]:
        process = self._process
        files = (process.stdin, process.stdout, process.stderr)
        process.stdin = process.stdout = process.stderr = None
        taken = []
        for file in files:
            taken.append(None if file is None else os.dup(file.fileno()))
            if file is not None:
                file.close()
        return taken

    def fileno(self) -> int:
        if self._pidfd is None:
            try:
                self._pidfd = os.pidfd_open(self.pid)
            except OSError:  # the table of descriptors is full, a filter refuses the call, or the child was waited for
                return -1
        return self._pidfd

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, signal: int) -> None:
        self._process.send_signal(signal)

    def kill_tree(self) -> int:
        raise ValueError("kill_tree needs a child without a preexec_fn")

    def __del__(self) -> None:
        pidfd = getattr(self, "_pidfd", None)
        if pidfd is not None:
            os.close(pidfd)


def raise_audit_event(args: Any, options: Any, executable: Any = None) -> None:
    """Raise the audit event of `subprocess`."""
    cwd = env = None
    if options:
        if executable is None:
            executable = options.get("executable")
        cwd, env = options.get("cwd"), options.get("env")
    if executable is None:
        if isinstance(args, (list, tuple)):
            executable = args[0] if args else None
        elif isinstance(args, (str, bytes)) or hasattr(args, "__fspath__"):
            executable = args
        else:
            executable = next(iter(args), None)
    sys.audit("subprocess.Popen", executable, args, cwd, env)
