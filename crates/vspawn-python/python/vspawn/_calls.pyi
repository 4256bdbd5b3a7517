# `check_output` for type checkers: the output contains bytes, or str in text mode.

from subprocess import getoutput as getoutput
from subprocess import getstatusoutput as getstatusoutput
from typing import Any, Literal, overload

from typing_extensions import Unpack

from ._core import _Options
from ._options import Args, File, Input

def call(args: Args, *, timeout: float | None = None, **options: Any) -> int: ...
def check_call(args: Args, *, timeout: float | None = None, **options: Any) -> int: ...
@overload
def check_output(
    args: Args,
    *,
    timeout: float | None = None,
    stdin: File = None,
    input: Input | None = None,
    stderr: File = None,
    text: Literal[False] | None = None,
    encoding: None = None,
    errors: None = None,
    universal_newlines: Literal[False] | None = None,
    **options: Unpack[_Options],
) -> bytes: ...
@overload
def check_output(
    args: Args,
    *,
    timeout: float | None = None,
    stdin: File = None,
    input: str | None = None,
    stderr: File = None,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    **options: Unpack[_Options],
) -> str: ...
@overload
def check_output(
    args: Args,
    *,
    timeout: float | None = None,
    stdin: File = None,
    input: str | None = None,
    stderr: File = None,
    text: bool | None = None,
    encoding: str,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    **options: Unpack[_Options],
) -> str: ...
@overload
def check_output(
    args: Args,
    *,
    timeout: float | None = None,
    stdin: File = None,
    input: str | Input | None = None,
    stderr: File = None,
    text: bool | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    universal_newlines: bool | None = None,
    **options: Unpack[_Options],
) -> Any: ...
