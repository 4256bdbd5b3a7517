"""The older functions of `subprocess`, with its meanings: `call`, `check_call`, `check_output`, and those that use a shell."""

from __future__ import annotations

import subprocess
from subprocess import PIPE, CalledProcessError

from ._run import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def call(args: Any, *, timeout: float | None = None, **options: Any) -> int:
    """Run a program to its end and return its code."""
    return run(args, timeout=timeout, **options).returncode


def check_call(args: Any, *, timeout: float | None = None, **options: Any) -> int:
    """Like `call`, but a code other than 0 raises `CalledProcessError`."""
    code = call(args, timeout=timeout, **options)
    if code:
        raise CalledProcessError(code, args)
    return 0


def check_output(args: Any, *, timeout: float | None = None, **options: Any) -> Any:
    """Run a program and return its output; a code other than 0 raises `CalledProcessError`."""
    for refused in ("stdout", "check"):
        if refused in options:
            raise ValueError(f"{refused} argument not allowed, it will be overridden.")
    if "input" in options and options["input"] is None:
        # As in `subprocess`, the input is then empty, not the parent's.
        in_text = any(options.get(name) for name in ("text", "encoding", "errors", "universal_newlines"))
        options["input"] = "" if in_text else b""
    return run(args, stdout=PIPE, timeout=timeout, check=True, **options).stdout


# Both take a text for a shell, which `subprocess` runs.
getstatusoutput = subprocess.getstatusoutput
getoutput = subprocess.getoutput
