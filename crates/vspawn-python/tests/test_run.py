"""`run`: results, input and output, text, timeouts. Tests with `api` hold for `subprocess`, too."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import vspawn

LARGE = bytes(range(256)) * 4096
# Reads its whole input, then writes it to both outputs.
TEE = [sys.executable, "-c", "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d); sys.stderr.buffer.write(d)"]


def sh(script: str, *args: str) -> list[str]:
    return ["/bin/sh", "-c", script, "sh", *args]


def test_the_result_has_the_arguments_and_the_code(api: ModuleType) -> None:
    result = api.run(sh("exit 3"))
    assert type(result) is subprocess.CompletedProcess
    assert (result.args, result.returncode, result.stdout, result.stderr) == (sh("exit 3"), 3, None, None)


@pytest.mark.parametrize("signal", [9, 15, 11])
def test_a_signal_is_a_negative_code(api: ModuleType, signal: int) -> None:
    assert api.run(sh(f"ulimit -c 0; kill -{signal} $$")).returncode == -signal


def test_outputs_are_captured_separately(api: ModuleType) -> None:
    result = api.run(sh("echo out; echo err >&2"), capture_output=True)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


def test_one_output_alone(api: ModuleType) -> None:
    result = api.run(sh("echo out; echo err >&2"), stdout=api.PIPE, stderr=api.DEVNULL)
    assert (result.stdout, result.stderr) == (b"out\n", None)
    result = api.run(sh("echo out; echo err >&2"), stdout=api.DEVNULL, stderr=api.PIPE)
    assert (result.stdout, result.stderr) == (None, b"err\n")


def test_stderr_joins_stdout_in_order(api: ModuleType) -> None:
    result = api.run(sh("echo 1; echo 2 >&2; echo 3"), stdout=api.PIPE, stderr=api.STDOUT)
    assert (result.stdout, result.stderr) == (b"1\n2\n3\n", None)


def test_stderr_joins_stdout_in_a_file(api: ModuleType, tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as file:
        api.run(sh("echo 1; echo 2 >&2"), stdout=file, stderr=api.STDOUT)
    assert (tmp_path / "out").read_bytes() == b"1\n2\n"


@pytest.mark.parametrize("size", [0, 1, 4096, 65536, 65537, len(LARGE)])
def test_input_and_both_outputs_never_block_each_other(api: ModuleType, size: int) -> None:
    result = api.run(TEE, input=LARGE[:size], capture_output=True)
    assert result.returncode == 0
    assert result.stdout == result.stderr == LARGE[:size]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_kinds_of_input(api: ModuleType, kind: Any) -> None:
    assert api.run(["cat"], input=kind(b"abc"), stdout=api.PIPE).stdout == b"abc"


def test_input_without_output(api: ModuleType) -> None:
    assert api.run(sh("test $(wc -c) -eq 1048576"), input=LARGE).returncode == 0


def test_a_child_that_does_not_read_its_input(api: ModuleType) -> None:
    assert api.run(sh("exit 4"), input=LARGE, capture_output=True).returncode == 4


def test_a_piped_input_without_bytes_is_at_its_end(api: ModuleType) -> None:
    assert api.run(["cat"], stdin=api.PIPE, stdout=api.PIPE).stdout == b""


@pytest.mark.parametrize("how", [{"text": True}, {"universal_newlines": True}, {"encoding": "utf-8"}, {"errors": "strict"}])
def test_text_mode(api: ModuleType, how: dict[str, Any]) -> None:
    result = api.run(sh(r"cat; printf '\r\nb\rc\n' >&2"), input="a\n", capture_output=True, **how)
    assert (result.stdout, result.stderr) == ("a\n", "\nb\nc\n")


def test_encodings_and_their_errors(api: ModuleType) -> None:
    result = api.run(["cat"], input="\u00e9", stdout=api.PIPE, encoding="latin-1")
    assert result.stdout == "\u00e9"
    result = api.run(["printf", r"\351"], stdout=api.PIPE, encoding="utf-8", errors="replace")
    assert result.stdout == "\ufffd"
    with pytest.raises(UnicodeDecodeError):
        api.run(["printf", r"\351"], stdout=api.PIPE, encoding="utf-8")


def test_check_raises_an_exception_with_the_outputs(api: ModuleType) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        api.run(sh("echo out; echo err >&2; exit 5"), capture_output=True, text=True, check=True)
    error = raised.value
    assert type(error) is api.CalledProcessError
    assert (error.returncode, error.stdout, error.stderr) == (5, "out\n", "err\n")
    assert error.cmd[0] == "/bin/sh"
    assert api.run(["true"], check=True).returncode == 0


def test_a_timeout_kills_the_child_and_reports_its_output(api: ModuleType) -> None:
    # One second is enough for the shell to print its line. Nothing else depends on the time.
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        api.run(sh("echo early; exec sleep 1000"), stdout=api.PIPE, timeout=1)
    error = raised.value
    assert type(error) is api.TimeoutExpired
    assert (error.timeout, error.stdout, error.stderr) == (1, b"early\n", None)


def test_a_timeout_ends_a_child_that_never_stops_writing(api: ModuleType) -> None:
    # The CPU limit ends the child if the timeout does not.
    endless = sh("ulimit -t 5; exec yes")
    # Starts with short timeouts, because all output is kept in memory.
    for timeout in (0.2, 0.4, 0.8, 1.6):
        with pytest.raises(api.TimeoutExpired) as raised:
            api.run(endless, stdout=api.PIPE, timeout=timeout)
        if raised.value.output:
            break
    assert raised.value.output.startswith(b"y\ny\n")


def test_an_unknown_encoding_is_reported_before_anything_is_started(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    with pytest.raises(LookupError):
        vspawn.Popen(["touch", str(mark)], stdout=vspawn.PIPE, encoding="nope")
    assert not mark.exists()


def test_a_timeout_without_capture(api: ModuleType) -> None:
    with pytest.raises(api.TimeoutExpired) as raised:
        api.run(["sleep", "1000"], timeout=0.01)
    assert (raised.value.cmd, raised.value.stdout) == (["sleep", "1000"], None)


def test_a_timeout_that_is_not_reached(api: ModuleType) -> None:
    result = api.run(TEE, input=LARGE, capture_output=True, timeout=1000)
    assert result.stdout == result.stderr == LARGE


def test_a_timeout_after_the_streams_have_ended(api: ModuleType) -> None:
    with pytest.raises(api.TimeoutExpired) as raised:
        api.run(sh("echo out; exec >&-; exec sleep 1000"), stdout=api.PIPE, timeout=1)
    # `subprocess` does not report the output here, although it has read it.
    assert raised.value.stdout == (b"out\n" if api is vspawn else None)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"input": b"", "stdin": 0}, ValueError),
        ({"capture_output": True, "stdout": 1}, ValueError),
        ({"text": True, "universal_newlines": False}, subprocess.SubprocessError),
        ({"input": "text"}, TypeError),
        ({"no_such_option": 1}, TypeError),
    ],
)
def test_invalid_arguments(api: ModuleType, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        api.run(["true"], **arguments)


def test_threads_do_not_mix_their_children(api: ModuleType) -> None:
    def work(number: int) -> list[bytes]:
        script = "cat; echo $1 >&2; exit $1"
        results = [api.run(sh(script, str(number)), input=b"%d" % turn, capture_output=True) for turn in range(20)]
        assert {result.returncode for result in results} == {number}
        assert {result.stderr for result in results} == {b"%d\n" % number}
        return [result.stdout for result in results]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [[b"%d" % turn for turn in range(20)]] * 8
