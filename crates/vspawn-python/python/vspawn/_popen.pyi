# `Popen` for type checkers: its files and outputs contain bytes, or str in text mode.

from subprocess import Popen as _Base
from types import TracebackType
from typing import IO, Any, AnyStr, Literal, overload

from typing_extensions import Self, Unpack

from . import _core, _fallback
from ._options import Args, File, Input, Options, Path

_abandoned: list[_core.Child | _fallback.ForkedChild]

def _reap_abandoned() -> None: ...

class Popen(_Base[AnyStr]):
    args: Args
    pid: int
    returncode: int | None
    text_mode: bool
    encoding: str | None
    errors: str | None
    pipesize: int
    universal_newlines: bool
    stdin: IO[AnyStr] | None
    stdout: IO[AnyStr] | None
    stderr: IO[AnyStr] | None
    @overload
    def __init__(
        self: Popen[str],
        args: Args,
        bufsize: int | None = -1,
        executable: Path | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
        *,
        text: Literal[True],
        encoding: str | None = None,
        errors: str | None = None,
        universal_newlines: bool | None = None,
        pipesize: int = -1,
        nowait: bool = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: Popen[str],
        args: Args,
        bufsize: int | None = -1,
        executable: Path | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
        *,
        text: bool | None = None,
        encoding: str,
        errors: str | None = None,
        universal_newlines: bool | None = None,
        pipesize: int = -1,
        nowait: bool = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: Popen[str],
        args: Args,
        bufsize: int | None = -1,
        executable: Path | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
        *,
        text: bool | None = None,
        encoding: str | None = None,
        errors: str,
        universal_newlines: bool | None = None,
        pipesize: int = -1,
        nowait: bool = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: Popen[str],
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
        universal_newlines: Literal[True],
        pipesize: int = -1,
        nowait: bool = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: Popen[bytes],
        args: Args,
        bufsize: int | None = -1,
        executable: Path | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
        *,
        text: Literal[False] | None = None,
        encoding: None = None,
        errors: None = None,
        universal_newlines: Literal[False] | None = None,
        pipesize: int = -1,
        nowait: bool = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: Popen[Any],
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
    ) -> None: ...
    def fileno(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def communicate(self, input: AnyStr | Input | None = None, timeout: float | None = None) -> tuple[AnyStr, AnyStr]: ...
    def send_signal(self, sig: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def kill_tree(self) -> int: ...
    def _begin(
        self,
        args: Args,
        child: _core.Child | _fallback.ForkedChild,
        in_text: bool,
        encoding: str | None,
        errors: str | None,
        bufsize: int,
        pipesize: int,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def __del__(self) -> None: ...
