"""`Popen`: a started process, with its pipes as files."""

from __future__ import annotations

import contextlib
import io
import signal
import types
from subprocess import Popen as _Base
from subprocess import TimeoutExpired
from time import monotonic

from . import _core, _fallback, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import IO, Any

    from typing_extensions import Self, Unpack

    from ._options import Args, File, Input, Options, Path

# Ctrl-C at a terminal reaches the child, too. The child then has this many seconds to end by itself, as with `subprocess`.
_GRACE_SECONDS = 0.25

# Children that were still running when their Popen was garbage-collected. A later Popen reaps those that have ended.
_abandoned: list[_core.Child | _fallback.ForkedChild] = []


def _reap_abandoned() -> None:
    for child in _abandoned[:]:
        has_ended = True
        with contextlib.suppress(OSError):  # it had no exec
            has_ended = child.poll() is not None
        if has_ended:
            with contextlib.suppress(ValueError):  # another thread was faster
                _abandoned.remove(child)


class Popen(_Base):  # type: ignore[type-arg]
    """A child process, like `subprocess.Popen`, of which it is a subclass for `isinstance` only: nothing is inherited. `fileno()` is its
    pidfd, which is readable when the child has ended. Arguments after `stderr` are named.

    Further options: cwd, env, close_fds, pass_fds, restore_signals, start_new_session, process_group, umask, user, group,
    extra_groups, and those that `subprocess` lacks: rlimits, nice, cpus, cgroup, pdeathsig, chroot, no_new_privs, fds. With `nowait`, the
    parent continues before the child's exec, and the first `poll` or `wait` raises the exception of a failed start. With a preexec_fn, `subprocess` starts the child, because only a fork can run a function.

    Exceptions of a failed start have attributes `stage` ("exec", "chdir", "user", ...) and `action`.
    """

    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __init__(
        self,
        args: Args,
        bufsize: int | None = -1,
        executable: Path | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
        *,
        text: bool | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        universal_newlines: bool | None = None,
        pipesize: int = -1,
        nowait: bool = False,
        **options: Unpack[Options],
    ) -> None:
        self.returncode = None
        self.args = args
        in_text = _text.is_text_mode(text, encoding, errors, universal_newlines)
        if bufsize is None:
            bufsize = -1
        if not isinstance(bufsize, int):
            raise TypeError("bufsize must be an integer")
        is_forked = _fallback.is_needed(options)
        if bufsize == 1 and not in_text:
            import warnings

            message = "line buffering (buffering=1) isn't supported in binary mode, the default buffer size will be used"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        words = args
        if not is_forked:  # otherwise, `subprocess` raises the event
            if options.get("shell"):
                words = _fallback.with_shell(args, {**options, "executable": executable})
                options["shell"] = False
            _fallback.raise_audit_event(words, options, executable)
        if in_text:
            io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors)  # raises for an unknown encoding, before anything is started
        if _abandoned:
            _reap_abandoned()
        child: _core.Child | _fallback.ForkedChild
        if is_forked:
            child = _fallback.ForkedChild(args, stdin, stdout, stderr, executable=executable, **options)
        else:
            child = _core.Prepared(words, stdin, stdout, stderr, executable=executable, **options).spawn(nowait)
        self._begin(args, child, in_text, encoding, errors, bufsize, pipesize)

    def _begin(
        self,
        args: Args,
        child: _core.Child | _fallback.ForkedChild,
        in_text: bool,
        encoding: str | None,
        errors: str | None,
        bufsize: int,
        pipesize: int,
    ) -> None:
        """Fill in the attributes for a started child."""
        self.args = args
        self.returncode: int | None = None
        self.stdin: IO[Any] | None = None
        self.stdout: IO[Any] | None = None
        self.stderr: IO[Any] | None = None
        self.text_mode = in_text
        self.encoding = encoding
        self.errors = errors
        self.pipesize = pipesize
        self._exchange: _core.Exchange | None = None
        self._child = child
        self.pid = child.pid
        self._open_pipes(bufsize, encoding, errors, pipesize)

    @property
    def universal_newlines(self) -> bool:
        """Whether the streams are text, like `text_mode`."""
        return self.text_mode

    @universal_newlines.setter
    def universal_newlines(self, value: bool) -> None:
        self.text_mode = bool(value)

    def _open_pipes(self, bufsize: int, encoding: str | None, errors: str | None, pipesize: int) -> None:
        line_buffering = self.text_mode and bufsize == 1
        # A binary file cannot be buffered by lines.
        bufsize = -1 if bufsize == 1 else bufsize
        # All descriptors become files, which close themselves, before anything below can fail.
        pipes = zip(self._child.take_pipes(), ("wb", "rb", "rb"))
        opened = [None if fd is None else open(fd, mode, bufsize) for fd, mode in pipes]
        files: list[IO[Any] | None] = []
        for pipe, mode in zip(opened, ("wb", "rb", "rb")):
            if pipe is None:
                files.append(None)
                continue
            if pipesize > 0:
                _set_pipe_size(pipe.fileno(), pipesize)
            file: Any = pipe
            if self.text_mode:
                is_input = mode == "wb"
                file = io.TextIOWrapper(
                    file,
                    encoding=encoding,
                    errors=errors,
                    line_buffering=is_input and line_buffering,
                    write_through=is_input,
                )
            files.append(file)
        self.stdin, self.stdout, self.stderr = files

    def fileno(self) -> int:
        """Return the pidfd, which is readable when the child has ended. This object owns it and closes it."""
        return self._child.fileno()

    def poll(self) -> int | None:
        """Return the code if the child has ended, otherwise None. If a signal killed the child, the code is the signal's negative number."""
        if self.returncode is None:
            self._end(self._child.poll)
        return self.returncode

    def _end(self, code: Callable[[], int | None]) -> None:
        """Store the code. A child without an exec (`nowait`) has the one that a shell gives it."""
        try:
            self.returncode = code()
        except OSError:
            self.returncode = 127
            raise

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the child has ended, and return its code. Raise `TimeoutExpired` after `timeout` seconds."""
        if self.returncode is None:
            self._end(lambda: self._child.wait(timeout))
            if self.returncode is None:
                assert timeout is not None
                raise TimeoutExpired(self.args, timeout)
        return self.returncode

    def communicate(self, input: str | Input | None = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Write `input`, read both outputs to their ends, and wait. After `TimeoutExpired`, it can be called again."""
        if self._exchange is not None and input:
            raise ValueError("Cannot send input after starting communication")
        has_one_pipe = [self.stdin, self.stdout, self.stderr].count(None) >= 2
        try:
            if timeout is None and self._exchange is None and has_one_pipe:
                return self._communicate_by_one_pipe(input)
            return self._communicate(input, timeout)
        except KeyboardInterrupt:
            self._child.wait(_GRACE_SECONDS if timeout is None else min(timeout, _GRACE_SECONDS))
            raise

    def _communicate_by_one_pipe(self, input: str | Input | None) -> tuple[Any, Any]:
        """Communicate without an exchange, since a single pipe cannot block another one. Data that its file has buffered is not lost."""
        out = err = None
        if self.stdin:
            _write_and_close(self.stdin, input)
        elif self.stdout:
            out = self.stdout.read()
            self.stdout.close()
        elif self.stderr:
            err = self.stderr.read()
            self.stderr.close()
        self.wait()
        return out, err

    def _communicate(self, input: str | Input | None, timeout: float | None) -> tuple[Any, Any]:
        end = None if timeout is None else monotonic() + timeout
        exchange = self._exchange
        if exchange is None:
            exchange = self._exchange = self._start_exchange(input)
        while True:
            progress = exchange.advance(None if end is None else max(end - monotonic(), 0))
            if progress == "done":
                break
            if progress == "input done":
                _close(self.stdin)
                continue
            assert timeout is not None
            out, err = exchange.outputs()
            raise TimeoutExpired(self.args, timeout, output=out or None, stderr=err or None)
        out, err = exchange.outputs()
        if self._child.wait(None if end is None else max(end - monotonic(), 0)) is None:
            assert timeout is not None
            raise TimeoutExpired(self.args, timeout, output=out or None, stderr=err or None)
        self.wait()
        result = self._decode(out, self.stdout), self._decode(err, self.stderr)
        _close(self.stdout)
        _close(self.stderr)
        return result

    def _start_exchange(self, input: str | Input | None) -> _core.Exchange:
        data = None
        if self.stdin:
            _flush(self.stdin)
            if not input:
                _close(self.stdin)
            elif self.text_mode:
                data = _text.encode(input, self.stdin.encoding, self.stdin.errors)  # type: ignore
            else:
                data = bytes(memoryview(input))  # type: ignore[arg-type]  # a str is refused by memoryview
        files = (self.stdin, self.stdout, self.stderr)
        stdin, stdout, stderr = (file.fileno() if file and not file.closed else None for file in files)
        return _core.Exchange(stdin, data, stdout, stderr)

    def _decode(self, data: bytes | None, file: Any) -> Any:
        if data is None or file is None or not self.text_mode:
            return data
        return _text.decode(data, file.encoding, file.errors)

    def send_signal(self, sig: int) -> None:
        """Send a signal through the pidfd. Does nothing if the child has ended."""
        if self.poll() is None:
            self._child.send_signal(sig)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def kill_tree(self) -> int:
        """Kill the child and all its descendants, and return the number of descendants. Each process is stopped before its children
        are searched, so that none escapes by forking."""
        return self._child.kill_tree() if self.poll() is None else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in (self.stdout, self.stderr):
            if file:
                file.close()
        try:
            # Raises if written data cannot be flushed.
            if self.stdin:
                self.stdin.close()
        finally:
            if kind is not None and issubclass(kind, KeyboardInterrupt):
                self._child.wait(_GRACE_SECONDS)
            else:
                self.wait()

    def __del__(self) -> None:
        child = getattr(self, "_child", None)
        if child is None or self.returncode is not None:
            return
        import warnings

        warnings.warn(f"subprocess {child.pid} is still running", ResourceWarning, source=self)
        with contextlib.suppress(OSError):  # it had no exec
            if self.poll() is None:
                _abandoned.append(child)

    def __repr__(self) -> str:
        # Also works after a failed start.
        text = f"<{type(self).__name__}: returncode: {getattr(self, 'returncode', None)} args: {getattr(self, 'args', None)!r}>"
        return text if len(text) <= 80 else text[:76] + "...>"


def _set_pipe_size(fd: int, size: int) -> None:
    import fcntl

    F_SETPIPE_SZ = 1031  # fcntl has the constant since Python 3.10
    fcntl.fcntl(fd, F_SETPIPE_SZ, size)


def _flush(stdin: IO[Any]) -> None:
    try:
        stdin.flush()
    except BrokenPipeError:
        pass
    except ValueError:
        # A closed file needs no flush.
        if not stdin.closed:
            raise


def _close(file: IO[Any] | None) -> None:
    if file:
        try:
            file.close()
        except BrokenPipeError:
            pass


def _write_and_close(stdin: IO[Any], input: str | Input | None) -> None:
    try:
        if input:
            stdin.write(input)
    except BrokenPipeError:
        pass
    _close(stdin)
