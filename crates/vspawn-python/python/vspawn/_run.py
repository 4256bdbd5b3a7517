"""`run`, which starts a process, exchanges data with it and waits for it in one call of `_core`; `prepare`, for many such runs."""

from __future__ import annotations

import subprocess
import types
from subprocess import PIPE, CalledProcessError, CompletedProcess, SubprocessError, TimeoutExpired

from . import _core, _fallback, _text
from ._popen import Popen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from ._core import _Options
    from ._options import Args, File, Input


class OutputLimitExceeded(SubprocessError):
    """A program was killed because it wrote more than `output_limit` bytes. `output` and `stderr` contain what was read up to the limit."""

    def __init__(self, cmd: Args, limit: int, output: bytes | None = None, stderr: bytes | None = None) -> None:
        super().__init__(cmd, limit)
        self.cmd = cmd
        self.limit = limit
        self.output = output
        self.stderr = stderr

    def __str__(self) -> str:
        return f"Command '{self.cmd}' wrote more than {self.limit} bytes"


class Prepared:
    """A command for many starts, by `prepare`. Each start only creates the process."""

    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __init__(
        self,
        args: Args,
        words: Args,
        stdin: File,
        stdout: File,
        stderr: File,
        in_text: bool,
        encoding: str | None,
        errors: str | None,
        options: _Options,
    ) -> None:
        self.args = args
        self._has_input = stdin == PIPE
        self._in_text = in_text
        self._encoding = encoding
        self._errors = errors
        self._command = _core.Prepared(words, stdin, stdout, stderr, **options)

    def run(
        self,
        *,
        input: str | Input | None = None,
        timeout: float | None = None,
        check: bool = False,
        output_limit: int | None = None,
        kill_tree: bool = False,
    ) -> CompletedProcess[Any]:
        """Run the command to its end, like `vspawn.run`. `input` needs a command that was prepared with stdin=PIPE."""
        data = None
        if input is not None:
            if not self._has_input:
                raise ValueError("input needs a command that was prepared with stdin=PIPE")
            data = input_bytes(input, self._in_text, self._encoding, self._errors)
        result = self._command.run(data, timeout, output_limit, kill_tree)
        return _completed(self.args, result, timeout, output_limit, check, self._in_text, self._encoding, self._errors)

    def start(self, *, nowait: bool = False, bufsize: int = -1) -> Popen[Any]:
        """Start the command and return a `Popen`. For `nowait`, see `Popen`."""
        popen: Popen[Any] = Popen.__new__(Popen)
        child = self._command.spawn(nowait)
        popen._begin(self.args, child, self._in_text, self._encoding, self._errors, bufsize, -1)
        return popen


def prepare(
    args: Args,
    *,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    text: bool | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    **options: Unpack[_Options],
) -> Prepared:
    """Prepare a command to be started many times. The environment and PATH are those of this moment."""
    if _fallback.is_needed(options):
        raise ValueError("a command with a preexec_fn cannot be prepared")
    words = _fallback.with_shell(args, options)
    _fallback.raise_audit_event(words, options)
    if capture_output:
        stdout = stderr = PIPE
    in_text = _text.is_text_mode(text, encoding, errors, universal_newlines)
    return Prepared(args, words, stdin, stdout, stderr, in_text, encoding, errors, options)


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
    output_limit: int | None = None,
    kill_tree: bool = False,
    **options: Unpack[_Options],
) -> CompletedProcess[Any]:
    """Run a program to its end and return a `subprocess.CompletedProcess`, as `subprocess.run` does.

    Further options: executable, cwd, env, close_fds, pass_fds, restore_signals, start_new_session, process_group, umask,
    user, group, extra_groups, shell, and those that `subprocess` lacks: rlimits, nice, cpus, cgroup, pdeathsig, chroot, no_new_privs, fds.
    With `output_limit`, a program that writes more than this number of bytes is killed and `OutputLimitExceeded` raised. With
    `kill_tree`, the descendants of a killed program are killed, too. With a preexec_fn, `subprocess.run` runs the program, because only a fork can
    run a function. `bufsize` has no meaning here.

    Exceptions of a failed start have attributes `stage` ("exec", "chdir", "user", ...) and `action`.
    """
    words = args
    # After each launch, the caches are cold, so that every line that most calls can skip is skipped.
    if options:
        if _fallback.is_needed(options):
            if output_limit is not None or kill_tree:
                raise ValueError("output_limit and kill_tree need a child without a preexec_fn")
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
        words = _fallback.with_shell(args, options)
    _fallback.raise_audit_event(words, options)
    in_text = False
    if text or encoding or errors or universal_newlines:
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
    result = _core.run(words, stdin, stdout, stderr, data, timeout, output_limit, kill_tree, options)
    code, out, err, cut = result
    if cut is None and not in_text and not (check and code):
        return CompletedProcess(args, code, out, err)
    return _completed(args, result, timeout, output_limit, check, in_text, encoding, errors)


def _completed(
    args: Args,
    result: tuple[int, bytes | None, bytes | None, str | None],
    timeout: float | None,
    output_limit: int | None,
    check: bool,
    in_text: bool,
    encoding: str | None,
    errors: str | None,
) -> CompletedProcess[Any]:
    code, out, err, cut = result
    if cut == "timeout" and timeout is not None:
        raise TimeoutExpired(args, timeout, output=out or None, stderr=err or None)
    if cut == "limit" and output_limit is not None:
        raise OutputLimitExceeded(args, output_limit, output=out, stderr=err)
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
