# The types of arguments, for type checkers only. At run time, `_core` reads and checks the options.

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import IO, Any, Literal, Protocol, TypedDict, Union

class HasFileno(Protocol):
    def fileno(self) -> int: ...

StrOrBytes = Union[str, bytes]
Path = Union[str, bytes, PathLike[str], PathLike[bytes]]
Args = Union[Path, Sequence[Path]]
File = Union[None, int, HasFileno, IO[Any]]
Env = Union[Mapping[str, Path], Mapping[bytes, Path]]
User = Union[str, int]
Input = Union[bytes, bytearray, memoryview]

class Options(TypedDict, total=False):
    cwd: Path | None
    env: Env | None
    close_fds: bool
    pass_fds: Iterable[int]
    restore_signals: bool
    start_new_session: bool
    process_group: int | None
    umask: int
    user: User | None
    group: User | None
    extra_groups: Iterable[User] | None
    # Not in `subprocess`. Resource limits: one number, or a soft and a hard one.
    rlimits: Mapping[int, int | tuple[int, int]] | None
    nice: int | None
    cpus: Iterable[int] | None
    cgroup: Path | int | None
    pdeathsig: int | None
    chroot: Path | None
    no_new_privs: bool
    # The child's descriptors from 3 on, by their number there.
    fds: Mapping[int, int | HasFileno] | None
    # A descriptor of the parent. Starts a session.
    controlling_terminal: int
    shell: bool
    # With this, `subprocess` starts the process.
    preexec_fn: Callable[[], Any] | None
    # For Windows. Other values are refused, as by `subprocess`.
    startupinfo: None
    creationflags: Literal[0]
