"""asyncio: results, streams, timeouts, cancellation; without a child watcher and without threads."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest

import vspawn

LARGE = bytes(range(256)) * 4096
FOREVER = ["sleep", "1000"]


def test_run_async() -> None:
    async def main() -> None:
        result = await vspawn.run_async(["/bin/sh", "-c", "cat; echo err >&2; exit 3"], input=LARGE, capture_output=True)
        assert (result.returncode, result.stdout, result.stderr) == (3, LARGE, b"err\n")
        result = await vspawn.run_async(["cat"], input="\u00e9\r\n", stdout=vspawn.PIPE, encoding="latin-1")
        assert (result.returncode, result.stdout, result.stderr) == (0, "\u00e9\n", None)
        result = await vspawn.run_async(["/bin/sh", "-c", "exit 4"])
        assert (result.returncode, result.stdout) == (4, None)

    asyncio.run(main())


def test_many_runs_are_concurrent_without_threads() -> None:
    async def main() -> None:
        words = [str(number) for number in range(100)]
        results = await asyncio.gather(*(vspawn.run_async(["echo", word], stdout=vspawn.PIPE) for word in words))
        assert [result.stdout for result in results] == [f"{word}\n".encode() for word in words]
        assert threading.active_count() == 1

    asyncio.run(main())


def test_check_and_a_missing_program_raise() -> None:
    async def main() -> None:
        with pytest.raises(vspawn.CalledProcessError) as raised:
            await vspawn.run_async(["/bin/sh", "-c", "echo out; exit 5"], stdout=vspawn.PIPE, check=True)
        assert (raised.value.returncode, raised.value.stdout) == (5, b"out\n")
        with pytest.raises(FileNotFoundError) as missing:
            await vspawn.run_async(["/no/such"])
        assert (missing.value.filename, missing.value.stage) == ("/no/such", "exec")  # type: ignore[attr-defined]

    asyncio.run(main())


def test_a_timeout_kills_the_child_and_reports_its_output() -> None:
    async def main() -> None:
        with pytest.raises(vspawn.TimeoutExpired) as raised:
            script = ["/bin/sh", "-c", "echo early; exec sleep 1000"]
            await vspawn.run_async(script, stdout=vspawn.PIPE, timeout=1)
        assert (raised.value.timeout, raised.value.stdout, raised.value.stderr) == (1, b"early\n", None)

    asyncio.run(main())


def test_a_cancelled_run_leaves_no_child() -> None:
    async def main() -> None:
        task = asyncio.create_task(vspawn.run_async(FOREVER, stdin=vspawn.PIPE, stdout=vspawn.PIPE))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_streams_of_a_process() -> None:
    async def main() -> None:
        process = await vspawn.create_process(["cat"], stdin=vspawn.PIPE, stdout=vspawn.PIPE)
        assert process.stdin and process.stdout and process.stderr is None and process.returncode is None
        process.stdin.write(b"a line\n")
        await process.stdin.drain()
        assert await process.stdout.readline() == b"a line\n"
        process.stdin.close()
        await process.stdin.wait_closed()
        assert await process.stdout.read() == b""
        assert await process.wait() == await process.wait() == process.returncode == 0

    asyncio.run(main())


def test_communicate_with_a_child_that_reads_nothing() -> None:
    async def main() -> None:
        process = await vspawn.create_process(["true"], stdin=vspawn.PIPE, stderr=vspawn.PIPE)
        assert await process.communicate(LARGE) == (None, b"")

    asyncio.run(main())


@pytest.mark.parametrize(("method", "number"), [("terminate", 15), ("kill", 9)])
def test_a_signal_ends_all_concurrent_waits(method: str, number: int) -> None:
    async def main() -> None:
        process = await vspawn.create_process(FOREVER)
        waits: list[Any] = [asyncio.create_task(process.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        getattr(process, method)()
        assert await asyncio.gather(*waits) == [-number] * 3
        process.send_signal(signal.SIGUSR1)

    asyncio.run(main())


def test_a_shell_is_refused() -> None:
    with pytest.raises(ValueError, match=r'\["/bin/sh", "-c", text\]'):
        asyncio.run(vspawn.run_async("true", shell=True))
