#!/usr/bin/env python3
"""Runs CPython's own test_subprocess with `vspawn` in the place of `subprocess`, and compares the failures with the list below.

Run it by an interpreter that has the wheel (scripts/python-wheel.sh: target/venv/bin/python). If that interpreter has no package `test`,
Debian's libpython3.N-testsuite is fetched into a temporary folder. The status is 1 for a failure that is not explained, and for an
explained one that passes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import vspawn
from vspawn import _popen

# Class or class.test -> why. Everything else must pass.
EXPLAINED = {
    "ProcessTestCaseNoPoll": "replaces the private _PopenSelector",
    "MiscTests.test__all__": "compares the module's private names",
    "MiscTests.test_call_keyboardinterrupt_no_kill": "replaces the private Popen._wait",
    "MiscTests.test_context_manager_keyboardinterrupt_no_kill": "replaces the private Popen._wait",
    "MiscTests.test_run_keyboardinterrupt_no_kill": "replaces the private Popen._wait",
    "POSIXProcessTestCase.test_exception_errpipe_bad_data": "replaces the private _fork_exec",
    "POSIXProcessTestCase.test_exception_errpipe_normal": "replaces the private _fork_exec",
    "POSIXProcessTestCase.test_leak_fast_process_del_killed": "looks for the Popen itself in the private _active",
    "POSIXProcessTestCase.test_zombie_fast_process_del": "looks for the Popen itself in the private _active",
    "POSIXProcessTestCase.test_preexec_errpipe_does_not_double_close_pipes": "overrides the private Popen._execute_child",
    "POSIXProcessTestCase.test_stopped": "replaces os.waitpid, which is not used here",
    "ProcessTestCase.test__use_vfork": "reads the private _USE_VFORK",
    "ProcessTestCase.test_failed_child_execute_fd_leak": "overrides the private Popen._execute_child",
    "ProcessTestCase.test_repr": "replaces the private Popen._execute_child",
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


def explanation(test: str) -> str | None:
    """Why a test (module.class.test, or a class's set-up) may fail."""
    words = test.replace("(", " ").replace(")", " ").split()[-1].split(".")
    known = [".".join(words[-2:]), words[-2], words[-1]]
    return next((EXPLAINED[name] for name in known if name in EXPLAINED), None)


def main() -> int:
    provide_tests()
    # The tests clean up by these private names between two tests.
    vspawn._active, vspawn._cleanup = _popen._abandoned, _popen._reap_abandoned  # type: ignore[attr-defined]
    vspawn.os, vspawn._fork_exec = os, getattr(subprocess, "_fork_exec", None)  # type: ignore[attr-defined]
    # Their helpers use the true module.
    import test.support.script_helper  # noqa: F401

    sys.modules["subprocess"] = vspawn
    import test.test_subprocess as tests

    assert tests.subprocess is vspawn
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(tests))
    sys.modules["subprocess"] = subprocess
    failed = {case.id(): text.strip().splitlines()[-1] for case, text in result.failures + result.errors}
    unexplained = {test: why for test, why in failed.items() if explanation(test) is None}
    kept = {reason for reason in EXPLAINED if not any(reason in test for test in failed)}
    for test, why in sorted(unexplained.items()):
        print(f"FAILED     {test}: {why}")
    for reason in sorted(kept):
        print(f"no failure {reason}: remove it from the list")
    print(f"{result.testsRun} tests, {len(result.skipped)} skipped, {len(failed)} failed, {len(unexplained)} of them unexplained")
    return 1 if unexplained or kept else 0


if __name__ == "__main__":
    sys.exit(main())
