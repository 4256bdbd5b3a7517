#!/usr/bin/env python3
"""Runs CPython's own test_subprocess with `vspawn` in place of `subprocess`, and compares the failures with the list below.

Run it with an interpreter that has the wheel (scripts/python-wheel.sh: target/venv/bin/python); scripts/cpython-suites.sh does so with Debian's
3.11 and 3.13. If that interpreter has no package `test`, Debian's libpython3.N-testsuite is downloaded into a temporary directory. Exits with
status 1 if a test fails that is not in the list, or if a test in the list passes.
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

# The tests that may fail, with the reason; versions of CPython have them in different classes. All other tests must pass. Each test in the
# list replaces or reads a name that begins with an underscore, or a function that subprocess happens to call internally. "ours" names our
# test of the same behaviour.
EXPLAINED = {
    "test_call_keyboardinterrupt_no_kill": "counts calls of Popen._wait (ours: test_signals.py)",
    "test_context_manager_keyboardinterrupt_no_kill": "counts calls of Popen._wait (ours: test_signals.py)",
    "test_run_keyboardinterrupt_no_kill": "counts calls of Popen._wait (ours: test_signals.py)",
    "test_exception_errpipe_bad_data": "a mock of _fork_exec writes into the pipe for errors, which vspawn does not have",
    "test_exception_errpipe_normal": "a mock of _fork_exec writes into the pipe for errors, which vspawn does not have",
    "test_leak_fast_process_del_killed": "expects the Popen in _active, where vspawn has the child (ours: test_popen.py)",
    "test_zombie_fast_process_del": "expects the Popen in _active, where vspawn has the child (ours: test_popen.py)",
    "test_stopped": "a mock of os.waitpid reports a stopped child, which waitid with WEXITED never does",
    "test__use_vfork": "reads the arguments of _fork_exec",
    "test_failed_child_execute_fd_leak": "a mock of Popen._execute_child fails (ours: test_failures.py)",
    "test_repr": "a mock of Popen._execute_child starts nothing (ours: test_popen.py)",
}
# Internal names of `subprocess` that the tests set and read. The real module must see the changes, since it starts children with a shell or a
# preexec_fn.
FORWARDED_NAMES = ("_PopenSelector", "_fork_exec", "_posixsubprocess", "_USE_VFORK", "_USE_POSIX_SPAWN", "os", "time")


class SwappedModule(types.ModuleType):
    """`vspawn`, with internal names of `subprocess`: a test that replaces one of these names replaces it in `subprocess` too."""


def forward(name: str) -> property:
    return property(
        lambda self: getattr(subprocess, name),
        lambda self, value: setattr(subprocess, name, value),
        lambda self: delattr(subprocess, name),
    )


for forwarded_name in FORWARDED_NAMES:
    setattr(SwappedModule, forwarded_name, forward(forwarded_name))


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
    """Returns the last part of module.class.test."""
    return test.rsplit(".", 1)[-1]


def main() -> int:
    provide_tests()
    # The tests use these private names to clean up between two tests.
    vspawn._active, vspawn._cleanup = _popen._abandoned, _popen._reap_abandoned  # type: ignore[attr-defined]
    vspawn.__class__ = SwappedModule  # type: ignore[assignment]
    # Public names are loaded when they are first used. Load all of them now.
    for name in vspawn.__all__:
        getattr(vspawn, name)
    # The tests' helpers must use the real module, so they are imported before it is replaced.
    import test.support.script_helper  # noqa: F401

    sys.modules["subprocess"] = vspawn
    import test.test_subprocess as tests

    assert tests.subprocess is vspawn
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(tests))
    sys.modules["subprocess"] = subprocess
    failed = {case.id(): text.strip().splitlines()[-1] for case, text in result.failures + result.errors}
    unexplained = {test: why for test, why in failed.items() if name_of(test) not in EXPLAINED}
    passed = EXPLAINED.keys() - set(map(name_of, failed))
    for test, why in sorted(unexplained.items()):
        print(f"FAILED     {test}: {why}")
    for name in sorted(passed):
        print(f"no failure {name}: remove it from the list")
    print(f"{result.testsRun} tests, {len(result.skipped)} skipped, {len(failed)} failed, {len(unexplained)} of them unexplained")
    return 1 if unexplained or passed else 0


if __name__ == "__main__":
    sys.exit(main())
