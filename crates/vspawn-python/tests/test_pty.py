"""Programs on a pseudo-terminal."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from vspawn.pty import Pty


@pytest.fixture(autouse=True)
def _default_signals() -> Iterator[None]:
    """Programs end by the signals of a terminal, even if a script started the tests in the background, which ignores some."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def read_all(pty: Pty) -> bytes:
    parts = iter(pty.read, b"")
    return b"".join(parts).replace(b"\r\n", b"\n")


def test_a_program_has_a_controlling_terminal() -> None:
    with Pty(rows=7, columns=33) as pty:
        child = pty.spawn(["sh", "-c", "stty size; echo to the terminal >/dev/tty"])
        assert read_all(pty) == b"7 33\nto the terminal\n"
        assert child.wait() == 0
        pty.resize(8, 44)
        assert pty.size == (8, 44)


def test_typed_text_reaches_the_program() -> None:
    with Pty() as pty:
        child = pty.spawn(["sh", "-c", "stty -echo; echo ready; read line; echo got $line; exec cat"])
        assert pty.read().startswith(b"ready")
        assert pty.write(b"text\n") == 5
        assert b"got text" in pty.read()
        pty.write(b"\x03")
        assert child.wait() == -signal.SIGINT


def test_closing_a_pty_hangs_up_the_session() -> None:
    pty = Pty()
    child = pty.spawn(["sleep", "1000"])
    pty.close()
    assert child.wait() == -signal.SIGHUP


def test_errors() -> None:
    with Pty() as pty:
        with pytest.raises(FileNotFoundError):
            pty.spawn(["/nowhere"])
    with pytest.raises(ValueError):
        pty.resize(1, 1)
