"""`run`, which starts a process, exchanges data with it and waits for it in one call of `_core`."""

from __future__ import annotations

import subprocess
from subprocess import PIPE, CalledProcessError, CompletedProcess, TimeoutExpired

from . import _core, _fallback, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from ._core import _Options
    from ._options import Args, File, Input


def run(
    args: Args,
    *,
    stdin: File = None,
    input: str | Input | None = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    text: bool | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    bufsize: int | None = -1,
    **options: Unpack[_Options],
) -> CompletedProcess[Any]:
    """Run a program to its end and return a `subprocess.CompletedProcess`, as `subprocess.run` does.

    Further options: executable, cwd, env, close_fds, pass_fds, restore_signals, start_new_session, process_group, umask,
    user, group, extra_groups. With shell=True or a preexec_fn, `subprocess.run` runs the program: only a fork can run a function, and
    only a shell can read a text. `bufsize` has no meaning here.

    Exceptions of a failed start have attributes `stage` ("exec", "chdir", "user", ...) and `action`.
    """
    if _fallback.is_needed(options):
        return subprocess.run(
            args,
            stdin=stdin,
            input=input,
            stdout=stdout,
            stderr=stderr,
            capture_output=capture_output,
            timeout=timeout,
            check=check,
            text=text,
            encoding=encoding,
            errors=errors,
            universal_newlines=universal_newlines,
            bufsize=bufsize,
            **options,
        )  # type: ignore[call-overload]
    _fallback.raise_audit_event(args, options.get("executable"), options)
    in_text = _text.is_text_mode(text, encoding, errors, universal_newlines)
    if capture_output:
        if stdout is not None or stderr is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        stdout = stderr = PIPE
    data = None
    if input is not None:
        if stdin is not None:
            raise ValueError("stdin and input arguments may not both be used.")
        stdin = PIPE
        data = input_bytes(input, in_text, encoding, errors)
    code, out, err, timed_out = _core.run(args, data, timeout, stdin, stdout, stderr, **options)
    if timed_out and timeout is not None:
        raise TimeoutExpired(args, timeout, output=out or None, stderr=err or None)
    output: Any = out
    error: Any = err
    if in_text:
        if out is not None:
            output = _text.decode(out, encoding, errors)
        if err is not None:
            error = _text.decode(err, encoding, errors)
    if check and code:
        raise CalledProcessError(code, args, output=output, stderr=error)
    return CompletedProcess(args, code, output, error)


def input_bytes(input: str | Input, in_text: bool, encoding: str | None, errors: str | None) -> bytes:
    """Return the bytes to write for an `input`."""
    if in_text:
        return _text.encode(input, encoding, errors)  # type: ignore[arg-type]  # `encode` checks the type
    if isinstance(input, bytes):
        return input
    return bytes(memoryview(input))  # type: ignore[arg-type]  # a str is refused by memoryview
