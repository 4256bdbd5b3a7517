"""Processes for asyncio. The event loop watches the pidfd, which becomes readable when the child has ended, so neither a child
watcher nor a thread nor a handler of SIGCHLD is needed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from subprocess import PIPE, CalledProcessError, CompletedProcess, TimeoutExpired
from typing import IO, TYPE_CHECKING, Any

from . import _core, _text
from ._run import OutputLimitExceeded, input_bytes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._core import _Options
    from ._options import Args, File, Input

_STREAM_LIMIT = 2**16
_POLL_SECONDS = 0.005


class AsyncProcess:
    """A started process in an event loop, with the interface of `asyncio.subprocess.Process`."""

    def __init__(self, args: Args, child: _core.Child) -> None:
        self.args = args
        self.pid = child.pid
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._waiters: list[asyncio.Future[None]] = []
        self._readers: list[asyncio.BaseTransport] = []
        self._watch()

    def _watch(self) -> None:
        if self._child.fileno() >= 0:
            self._loop.add_reader(self._child.fileno(), self._check_end)
        else:  # no pidfd (a full table of descriptors, an old filter): nothing reports the end
            self._loop.call_later(_POLL_SECONDS, self._poll_again)

    def _poll_again(self) -> None:
        self._check_end()
        if self.returncode is None and not self._loop.is_closed():
            self._loop.call_later(_POLL_SECONDS, self._poll_again)

    async def _connect(self, limit: int) -> None:
        # The descriptors become files first, so that they are closed if anything below fails.
        pipes = zip(self._child.take_pipes(), ("wb", "rb", "rb"))
        stdin, stdout, stderr = (None if fd is None else open(fd, mode, buffering=0) for fd, mode in pipes)
        if stdin is not None:
            protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=self._loop), loop=self._loop)
            transport, _ = await self._loop.connect_write_pipe(lambda: protocol, stdin)
            self.stdin = asyncio.StreamWriter(transport, protocol, None, self._loop)
        self.stdout = await self._reader(stdout, limit)
        self.stderr = await self._reader(stderr, limit)

    async def _reader(self, file: IO[bytes] | None, limit: int) -> asyncio.StreamReader | None:
        if file is None:
            return None
        reader = asyncio.StreamReader(limit=limit, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        transport, _ = await self._loop.connect_read_pipe(lambda: protocol, file)
        self._readers.append(transport)
        return reader

    def _check_end(self) -> None:
        code = self._child.poll()
        if code is None:
            return
        if self._child.fileno() >= 0:
            self._loop.remove_reader(self._child.fileno())
        self.returncode = code
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def fileno(self) -> int:
        """Return the pidfd, which the event loop watches."""
        return self._child.fileno()

    async def wait(self) -> int:
        """Wait until the child has ended, and return its code."""
        while self.returncode is None:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        return self.returncode

    async def communicate(self, input: Input | None = None) -> tuple[bytes | None, bytes | None]:
        """Write `input`, read both outputs to their ends, and wait until the child has ended."""
        outputs = bytearray(), bytearray()
        await self._communicate(input, outputs, None)
        out, err = (bytes(output) for output in outputs)
        return out if self.stdout else None, err if self.stderr else None

    async def _communicate(self, input: Input | None, outputs: tuple[bytearray, bytearray], limit: int | None) -> None:
        out, err = outputs
        await asyncio.gather(self._feed(input), _read(self.stdout, out, limit), _read(self.stderr, err, limit))
        await self.wait()

    async def _feed(self, input: Input | None) -> None:
        if self.stdin is None:
            return
        try:
            if input:
                self.stdin.write(input)
                await self.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the child does not read its input: its status reports the result
        self.stdin.close()

    def send_signal(self, signal: int) -> None:
        """Send a signal through the pidfd. Does nothing if the child has ended."""
        if self.returncode is None:
            self._child.send_signal(signal)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def kill_tree(self) -> int:
        """Kill the child and all its descendants, and return the number of descendants."""
        return self._child.kill_tree() if self.returncode is None else 0

    async def _abort(self, kill_tree: bool = False) -> None:
        """Kill the process and close its pipes."""
        try:
            self.kill_tree() if kill_tree else self.kill()
        finally:
            # A closed transport has no loop any more and cannot be aborted; a closing one may still have data.
            if self.stdin is not None:
                with contextlib.suppress(AttributeError):
                    self.stdin.transport.abort()
            for transport in self._readers:
                transport.close()
        await self.wait()
        # Transports close their files in the loop's next iteration.
        await asyncio.sleep(0)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: pid {self.pid} returncode: {self.returncode} args: {self.args!r}>"


class _TooLarge(Exception):
    pass


async def _read(stream: asyncio.StreamReader | None, buffer: bytearray, limit: int | None) -> None:
    while stream is not None:
        chunk = await stream.read(_STREAM_LIMIT)
        if not chunk:
            return
        buffer += chunk
        if limit is not None and len(buffer) > limit:
            raise _TooLarge


async def create_process(
    args: Args,
    *,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    limit: int = _STREAM_LIMIT,
    **options: Unpack[_Options],
) -> AsyncProcess:
    """Start a process. The running event loop watches its pipes and its end. Options as for `vspawn.Popen`; the streams contain bytes."""
    process = AsyncProcess(args, _core.Prepared(args, stdin, stdout, stderr, **options).spawn())
    try:
        await process._connect(limit)
    except BaseException:
        await process._abort()
        raise
    return process


async def run_async(
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
    output_limit: int | None = None,
    kill_tree: bool = False,
    **options: Unpack[_Options],
) -> CompletedProcess[Any]:
    """`vspawn.run` for asyncio. The child is killed at the timeout or the limit, and when the task is cancelled."""
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
    process = await create_process(args, stdin=stdin, stdout=stdout, stderr=stderr, **options)
    outputs = bytearray(), bytearray()
    try:
        await asyncio.wait_for(process._communicate(data, outputs, output_limit), timeout)
    except BaseException as raised:
        await process._abort(kill_tree)
        if isinstance(raised, _TooLarge) and output_limit is not None:
            out, err = (bytes(output[:output_limit]) or None for output in outputs)
            raise OutputLimitExceeded(args, output_limit, output=out, stderr=err) from None
        if isinstance(raised, asyncio.TimeoutError) and timeout is not None:
            out, err = (bytes(output) or None for output in outputs)
            raise TimeoutExpired(args, timeout, output=out, stderr=err) from None
        raise
    code = await process.wait()
    streams = zip((process.stdout, process.stderr), outputs)
    out, err = (_result(bytes(data), in_text, encoding, errors) if stream else None for stream, data in streams)
    if check and code:
        raise CalledProcessError(code, args, output=out, stderr=err)
    return CompletedProcess(args, code, out, err)


def _result(data: bytes, in_text: bool, encoding: str | None, errors: str | None) -> Any:
    return _text.decode(data, encoding, errors) if in_text else data
