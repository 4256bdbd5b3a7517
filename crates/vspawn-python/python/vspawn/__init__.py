"""subprocess's `run` and `Popen` for Linux, at a cost that does not depend on the parent's memory, threads or open files.

Names and meanings are those of `subprocess`; constants, results and exceptions are the same objects. `run_async` and
`create_process` are for asyncio, which is imported when they are first used.
"""

from subprocess import (
    DEVNULL,
    PIPE,
    STDOUT,
    CalledProcessError,
    CompletedProcess,
    SubprocessError,
    TimeoutExpired,
)
from subprocess import list2cmdline as list2cmdline  # not in `__all__`, as in `subprocess`

from ._calls import call, check_call, check_output, getoutput, getstatusoutput
from ._popen import Popen
from ._run import OutputLimitExceeded, Prepared, prepare, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._asyncio import AsyncProcess, create_process, run_async
del TYPE_CHECKING  # the module's names are those of `subprocess`

__all__ = [
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "AsyncProcess",
    "CalledProcessError",
    "CompletedProcess",
    "OutputLimitExceeded",
    "Popen",
    "Prepared",
    "SubprocessError",
    "TimeoutExpired",
    "call",
    "check_call",
    "check_output",
    "create_process",
    "getoutput",
    "getstatusoutput",
    "prepare",
    "run",
    "run_async",
]


def __getattr__(name: str) -> object:
    if name in ("AsyncProcess", "create_process", "run_async"):
        from . import _asyncio

        value = getattr(_asyncio, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
