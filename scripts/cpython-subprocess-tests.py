#!/usr/bin/env python3
"""Runs CPython's own test_subprocess with `vspawn` in the place of `subprocess`, and compares the failures with the list below.

Run it by an interpreter that has the wheel (scripts/python-wheel.sh: target/venv/bin/python). If that interpreter has no package `test`,
Debian's libpython3.N-testsuite is fetched into a temporary folder. The status is 1 for a failure that is not explained, and for an
explained one that passes.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

import vspawn
from vspawn import _popen

# Test, of any class -> why it fails. Everything else must pass.
EXPLAINED = {
    "test__all__": "asyncio's names are imported when they are first used",
    "test__use_vfork": "reads the private _USE_VFORK and _USE_POSIX_SPAWN",
    "test_call_keyboardinterrupt_no_kill": "replaces the private Popen._communicate and Popen._wait",
    "test_context_manager_keyboardinterrupt_no_kill": "replaces the private Popen._communicate and Popen._wait",
    "test_exception_errpipe_bad_data": "replaces the private _fork_exec",
    "test_exception_errpipe_normal": "replaces the private _fork_exec",
    "test_failed_child_execute_fd_leak": "overrides the private Popen._execute_child",
    "test_leak_fast_process_del_killed": "looks for the Popen itself in the private _active",
    "test_preexec_errpipe_does_not_double_close_pipes": "overrides the private Popen._execute_child",
    "test_repr": "replaces the private Popen._execute_child",
    "test_run_keyboardinterrupt_no_kill": "replaces the private Popen._communicate and Popen._wait",
    "test_stopped": "replaces os.waitpid of the module, which does not call it",
    "test_vfork_used_when_expected": "replaces the private _USE_POSIX_SPAWN",
    "test_zombie_fast_process_del": "looks for the Popen itself in the private _active",
}


def provide_tests() -> None:
    """Make the package `test` importable."""
    try:
        import test.test_subprocess  # noqa: F401
    except ImportError:
        folder = tempfile.mkdtemp(prefix="cpython-tests.")
        package = f"libpython3.{sys.version_info.minor}-testsuite"
        subprocess.run(["apt-get", "-qq", "download", package], cwd=folder, check=True)
        (archive,) = Path(folder).glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, folder], check=True)
        sys.path.insert(0, f"{folder}/usr/lib/python3.{sys.version_info.minor}")
        for name in [name for name in sys.modules if name == "test" or name.startswith("test.")]:
            del sys.modules[name]
    sys.modules.pop("test.test_subprocess", None)


def name(test: str) -> str:
    """The name of a test without its module and class; a subtest's parameters follow in parentheses."""
    return test.split(" ")[0].split(".")[-1]


def all_of(suite: unittest.TestSuite) -> Iterator[str]:
    """The ids of the tests of a suite."""
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from all_of(each)
        else:
            yield each.id()


def main() -> int:
    provide_tests()
    # The tests clean up by these private names between two tests.
    vspawn._active, vspawn._cleanup = _popen._abandoned, _popen._reap_abandoned  # type: ignore[attr-defined]
    # A class replaces this one before it runs the tests of another.
    vspawn._PopenSelector = selectors.PollSelector  # type: ignore[attr-defined]
    vspawn.os, vspawn._fork_exec = os, getattr(subprocess, "_fork_exec", None)  # type: ignore[attr-defined]
    vspawn._posixsubprocess = getattr(subprocess, "_posixsubprocess", None)  # type: ignore[attr-defined]
    # Their helpers use the true module.
    import test.support.script_helper  # noqa: F401

    sys.modules["subprocess"] = vspawn
    import test.test_subprocess as tests

    assert tests.subprocess is vspawn
    suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
    every = list(all_of(suite))
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    sys.modules["subprocess"] = subprocess
    failed = {case.id(): text.strip().splitlines()[-1] for case, text in result.failures + result.errors}
    unexplained = {test: why for test, why in failed.items() if name(test) not in EXPLAINED}
    ended = {name(case.id()) for case, _ in result.skipped} | {name(test) for test in failed}
    kept = {test for test in map(name, every) if test in EXPLAINED and test not in ended}
    for test, why in sorted(unexplained.items()):
        print(f"FAILED     {test}: {why}")
    for reason in sorted(kept):
        print(f"no failure {reason}: remove it from the list")
    print(f"{result.testsRun} tests, {len(result.skipped)} skipped, {len(failed)} failed, {len(unexplained)} of them unexplained")
    return 1 if unexplained or kept else 0


if __name__ == "__main__":
    sys.exit(main())
