"""A user's code, for `mypy --strict`: the types that `run` and `Popen` return. Lines with `type: ignore` must be errors."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO

from typing_extensions import assert_type

import vspawn


def results() -> None:
    assert_type(vspawn.run(["true"]), subprocess.CompletedProcess[bytes])
    assert_type(vspawn.run(["true"], text=True), subprocess.CompletedProcess[str])
    assert_type(vspawn.run(["true"], encoding="utf-8", input="x"), subprocess.CompletedProcess[str])
    vspawn.run([Path("x"), "y"], cwd=Path("/"), env={"A": "b"}, user="nobody", extra_groups=[1, "x"], pass_fds=[3])
    vspawn.run("true", stdin=vspawn.DEVNULL, stderr=vspawn.STDOUT, process_group=0, umask=0o22)
    vspawn.run("true", shell=True)
    vspawn.run(["true"], rlimits={7: 50, 0: (1, 2)}, nice=1, cpus={0}, cgroup="/x", pdeathsig=15, chroot="/", no_new_privs=True, fds={5: 6})
    assert_type(vspawn.check_output(["true"]), bytes)
    assert_type(vspawn.check_output(["true"], text=True, input="x"), str)
    assert_type(vspawn.prepare(["true"], encoding="utf-8"), vspawn.Prepared[str])
    assert_type(vspawn.prepare(["true"]).run(), subprocess.CompletedProcess[bytes])
    assert_type(vspawn.prepare(["true"]).start(nowait=True), vspawn.Popen[bytes])
    vspawn.run(["true"], cwd=1)  # type: ignore[call-overload]
    vspawn.run([1])  # type: ignore[list-item]


def children() -> None:
    with vspawn.Popen(["true"], stdout=vspawn.PIPE) as child:
        assert_type(child, vspawn.Popen[bytes])
        assert_type(child.stdout, IO[bytes] | None)
        assert_type(child.communicate(b"x"), tuple[bytes, bytes])
        assert_type(child.returncode, int | None)
        assert_type(child.wait(timeout=1), int)
    for texts in (vspawn.Popen(["true"], text=True), vspawn.Popen(["true"], encoding="utf-8")):
        assert_type(texts, vspawn.Popen[str])
        assert_type(texts.stdin, IO[str] | None)
        assert_type(texts.communicate("x")[0], str)
    assert_type(vspawn.Popen("true", shell=True, universal_newlines=True), vspawn.Popen[str])
    vspawn.Popen(["true"], preexec_fn=print)
    vspawn.Popen(["true"], creationflags=1)  # type: ignore[call-overload]


async def asynchronous() -> None:
    process = await vspawn.create_process(["true"])
    assert_type(process, vspawn.AsyncProcess)
    assert_type(await process.wait(), int)
    assert_type(await process.communicate(b""), tuple[bytes | None, bytes | None])
    await vspawn.run_async(["true"], text=True, timeout=1)
