# `run` for type checkers: the result contains bytes, or str in text mode.

from subprocess import CompletedProcess
from typing import Any, Literal, overload

from typing_extensions import Unpack

from ._core import _Options
from ._options import Args, File, Input

def input_bytes(input: str | Input, in_text: bool, encoding: str | None, errors: str | None) -> bytes: ...
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
    **options: Unpack[_Options],
) -> CompletedProcess[Any]: ...
