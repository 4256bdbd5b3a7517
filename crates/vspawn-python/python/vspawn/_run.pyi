# `run` for type checkers: the result contains bytes, or str in text mode.

from subprocess import CompletedProcess, SubprocessError
from typing import Any, AnyStr, Generic, Literal, overload

from typing_extensions import Unpack

from ._core import _Options
from ._options import Args, File, Input
from ._popen import Popen

def input_bytes(input: str | Input, in_text: bool, encoding: str | None, errors: str | None) -> bytes: ...
class OutputLimitExceeded(SubprocessError):
    cmd: Args
    limit: int
    output: bytes | None
    stderr: bytes | None
    def __init__(self, cmd: Args, limit: int, output: bytes | None = None, stderr: bytes | None = None) -> None: ...

class Prepared(Generic[AnyStr]):
    args: Args
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
    ) -> None: ...
    def run(
        self,
        *,
        input: AnyStr | Input | None = None,
        timeout: float | None = None,
        check: bool = False,
        output_limit: int | None = None,
        kill_tree: bool = False,
    ) -> CompletedProcess[AnyStr]: ...
    def start(self, *, nowait: bool = False, bufsize: int = -1) -> Popen[AnyStr]: ...

@overload
def prepare(
    args: Args,
    *,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    text: Literal[False] | None = None,
    encoding: None = None,
    errors: None = None,
    universal_newlines: Literal[False] | None = None,
    **options: Unpack[_Options],
) -> Prepared[bytes]: ...
@overload
def prepare(
    args: Args,
    *,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    **options: Unpack[_Options],
) -> Prepared[str]: ...
@overload
def prepare(
    args: Args,
    *,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    text: bool | None = None,
    encoding: str,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    **options: Unpack[_Options],
) -> Prepared[str]: ...
@overload
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
) -> Prepared[Any]: ...
@overload
def run(
    args: Args,
    *,
    stdin: File = None,
    input: Input | None = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    text: Literal[False] | None = None,
    encoding: None = None,
    errors: None = None,
    universal_newlines: Literal[False] | None = None,
    bufsize: int | None = -1,
    output_limit: int | None = None,
    kill_tree: bool = False,
    **options: Unpack[_Options],
) -> CompletedProcess[bytes]: ...
@overload
def run(
    args: Args,
    *,
    stdin: File = None,
    input: str | None = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    bufsize: int | None = -1,
    output_limit: int | None = None,
    kill_tree: bool = False,
    **options: Unpack[_Options],
) -> CompletedProcess[str]: ...
@overload
def run(
    args: Args,
    *,
    stdin: File = None,
    input: str | None = None,
    stdout: File = None,
    stderr: File = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    text: bool | None = None,
    encoding: str,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    bufsize: int | None = -1,
    output_limit: int | None = None,
    kill_tree: bool = False,
    **options: Unpack[_Options],
) -> CompletedProcess[str]: ...
@overload
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
) -> CompletedProcess[Any]: ...
