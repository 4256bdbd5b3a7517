# The Rust side. Not public: `run` and `Popen` use it.

from typing import final

from typing_extensions import Unpack

from ._options import Args, File, Options, Path

__all__ = ["Child", "Exchange", "run", "spawn"]

class _Options(Options, total=False):
    executable: Path | None

def run(
    args: Args,
    input: bytes | bytearray | None,
    timeout: float | None,
    stdin: File,
    stdout: File,
    stderr: File,
    **options: Unpack[_Options],
) -> tuple[int, bytes | None, bytes | None, bool]: ...
def spawn(args: Args, stdin: File, stdout: File, stderr: File, **options: Unpack[_Options]) -> Child: ...
@final
class Child:
    @property
    def pid(self) -> int: ...
    def fileno(self) -> int: ...
    def take_pipes(self) -> list[int | None]: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int | None: ...
    def send_signal(self, signal: int) -> None: ...

@final
class Exchange:
    def __new__(
        cls, stdin: int | None, input: bytes | bytearray | None, stdout: int | None, stderr: int | None
    ) -> Exchange: ...
    def advance(self, timeout: float | None) -> str: ...
    def outputs(self) -> list[bytes | None]: ...
