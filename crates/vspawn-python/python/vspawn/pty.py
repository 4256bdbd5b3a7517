"""Pseudo-terminals: `Pty.spawn` starts a program with a controlling terminal, without the fork of `pty.fork` and ptyprocess."""

from __future__ import annotations

import errno
import os

from . import _core
from ._popen import Popen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self, Unpack

    from ._options import Args, Options


class Pty:
    """The program's side of a pseudo-terminal: written bytes are typed on the terminal, and reads return what the children print."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self._fd = -1
        self._fd = _core.open_pty(rows, columns)

    def fileno(self) -> int:
        """Return the descriptor, for `select` and event loops. This object closes it."""
        return self._fd

    @property
    def size(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return _core.pty_size(self._fd)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size. The foreground processes get SIGWINCH."""
        _core.resize_pty(self._fd, rows, columns)

    def spawn(self, args: Args, **options: Unpack[Options]) -> Popen[Any]:
        """Start a program in a session of its own, with this terminal as its controlling terminal and its standard streams."""
        terminal = _core.open_terminal(self._fd)
        try:
            all_options: dict[str, Any] = {"stdin": terminal, "stdout": terminal, "stderr": terminal, **options}
            return Popen(args, **all_options, controlling_terminal=terminal)
        finally:
            os.close(terminal)

    def read(self, size: int = 65536) -> bytes:
        """Read at least one byte of what was printed. Return nothing once no process has the terminal open any more."""
        try:
            return os.read(self._fd, size)
        except OSError as error:
            if error.errno == errno.EIO:
                return b""
            raise

    def write(self, data: bytes) -> int:
        """Type some or all of the data, and return the number of bytes that were typed."""
        return os.write(self._fd, data)

    def close(self) -> None:
        """Hang up: the session of the children gets SIGHUP."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
