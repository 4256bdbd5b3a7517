#!/usr/bin/env python3
"""Runs CPython's own test_subprocess with `vspawn` in the place of `subprocess`, and compares the failures with the list below.

Run it by an interpreter that has the wheel (scripts/python-wheel.sh: target/venv/bin/python); scripts/cpython-suites.sh does so with Debian's
3.11 and 3.13. If that interpreter has no package `test`, Debian's libpython3.N-testsuite is fetched into a temporary directory. The status
is 1 for a failure that is not explained, and for an explained one that passes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

import vspawn
from vspawn import _popen

# Test -> why; versions of CPython have it in different classes. Everything else must pass. Each of these replaces or reads a name that begins
# with an underscore, or a function that subprocess happens to call inside; what it is about is tested by ours, as said.
EXPLAINED = {
    "test_call_keyboardinterrupt_no_kill": "counts calls of Popen._wait (ours: test_signals.py)",
    "test_context_manager_keyboardinterrupt_no_kill": "counts calls of Popen._wait (ours: test_signals.py)",
    "test_run_keyboardinterrupt_no_kill": "counts calls of Popen._wait (ours: test_signals.py)",
    "test_exception_errpipe_bad_data": "a false _fork_exec writes into the pipe for errors, which does not exist here",
    "test_exception_errpipe_normal": "a false _fork_exec writes into the pipe for errors, which does not exist here",
    "test_leak_fast_process_del_killed": "expects the Popen in _active: the child is there (ours: test_popen.py)",
    "test_zombie_fast_process_del": "expects the Popen in _active: the child is there (ours: test_popen.py)",
    "test_stopped": "a false os.waitpid reports a stopped child, which waitid with WEXITED never does",
    "test__use_vfork": "reads the arguments of _fork_exec",
    "test_failed_child_execute_fd_leak": "a false Popen._execute_child fails (ours: test_failures.py)",
    "test_repr": "a false Popen._execute_child starts nothing (ours: test_popen.py)",
}
# Names of the module's inside that the tests set and read: those of the true module, which starts a child with a shell or a preexec_fn.
INSIDE = ("_PopenSelector", "_fork_exec", "_posixsubprocess", "_USE_VFORK", "_USE_POSIX_SPAWN", "os", "time")


class Swapped(types.ModuleType):
    """`vspawn`, with the inside of `subprocess`: a test that replaces a name there replaces it for `subprocess` too."""


def forwarded(name: str) -> property:
    return property(
        lambda self: getattr(subprocess, name),
        lambda self, value: setattr(subprocess, name, value),
        lambda self: delattr(subprocess, name),
    )


for inside in INSIDE:
    setattr(Swapped, inside, forwarded(inside))


def provide_tests() -> None:
    """Make the package `test` importable."""
    try:
        import test.test_subprocess  # noqa: F401
    except ImportError:
        directory = tempfile.mkdtemp(prefix="cpython-tests.")
        package = f"libpython3.{sys.version_info.minor}-testsuite"
        subprocess.run(["apt-get", "-qq", "download", package], cwd=directory, check=True)
        (archive,) = Path(directory).glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, directory], check=True)
        sys.path.insert(0, f"{directory}/usr/lib/python3.{sys.version_info.minor}")
        for name in [name for name in sys.modules if name == "test" or name.startswith("test.")]:
            del sys.modules[name]
    sys.modules.pop("test.test_subprocess", None)


def name_of(test: str) -> str:
    """The last part of module.class.test."""
    return test.rsplit(".", 1)[-1]


def main() -> int:
    provide_tests()
    # The tests clean up by these private names between two tests.
    vspawn._active, vspawn._cleanup = _popen._abandoned, _popen._reap_abandoned  # type: ignore[attr-defined]
    vspawn.__class__ = Swapped  # type: ignore[assignment]
    # Loaded when they are first used; `__all__` names them.
    for name in vspawn.__all__:
        getattr(vspawn, name)
    # Their helpers use the true module.
    import test.support.script_helper  # noqa: F401

    sys.modules["subprocess"] = vspawn
    import test.test_subprocess as tests

    assert tests.subprocess is vspawn
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(tests))
    sys.modules["subprocess"] = subprocess
    failed = {case.id(): text.strip().splitlines()[-1] for case, text in result.failures + result.errors}
    unexplained = {test: why for test, why in failed.items() if name_of(test) not in EXPLAINED}
    kept = EXPLAINED.keys() - set(map(name_of, failed))
    for test, why in sorted(unexplained.items()):
        print(f"FAILED     {test}: {why}")
    for name in sorted(kept):
        print(f"no failure {name}: remove it from the list")
    print(f"{result.testsRun} tests, {len(result.skipped)} skipped, {len(failed)} failed, {len(unexplained)} of them unexplained")
    return 1 if unexplained or kept else 0


if __name__ == "__main__":
    sys.exit(main())
