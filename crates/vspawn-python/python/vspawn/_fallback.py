"""What `subprocess` does for us, and what a call here has in common with one there: the audit event, the options for Windows."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_needed(options: Any) -> bool:
    """Whether only `subprocess` can start it. Removes the options that mean nothing on Linux."""
    if options.pop("startupinfo", None) is not None:
        raise ValueError("startupinfo is only supported on Windows platforms")
    if options.pop("creationflags", 0) != 0:
        raise ValueError("creationflags is only supported on Windows platforms")
    return bool(options.get("shell")) or options.get("preexec_fn") is not None


def announce(args: Any, executable: Any, options: Any) -> None:
    """Raise the audit event of `subprocess`."""
    if executable is None:
        executable = args if isinstance(args, (str, bytes)) or hasattr(args, "__fspath__") else next(iter(args), None)
    sys.audit("subprocess.Popen", executable, args, options.get("cwd"), options.get("env"))
