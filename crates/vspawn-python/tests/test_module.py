"""`import vspawn as subprocess`: the older functions, children that only `subprocess` can start, and the audit event."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import vspawn


def test_older_functions(api: ModuleType) -> None:
    assert api.call(["sh", "-c", "exit 3"]) == 3
    assert api.check_call(["true"]) == 0
    with pytest.raises(subprocess.CalledProcessError) as failure:
        api.check_call(["sh", "-c", "exit 4"])
    assert (failure.value.returncode, failure.value.cmd) == (4, ["sh", "-c", "exit 4"])
    assert api.check_output(["echo", "x"]) == b"x\n"
    assert api.check_output(["cat"], input=None, text=True) == ""
    with pytest.raises(ValueError):
        api.check_output(["true"], stdout=1)
    with pytest.raises(subprocess.CalledProcessError) as failure:
        api.check_output(["sh", "-c", "echo out; exit 5"])
    assert failure.value.output == b"out\n"
    with pytest.raises(subprocess.TimeoutExpired):
        api.call(["sleep", "1000"], timeout=0.05)
    assert api.getstatusoutput("echo x; exit 6") == (6, "x")
    assert api.getoutput("echo y") == "y"


def test_subprocess_starts_children_with_a_shell_or_a_preexec_fn(api: ModuleType) -> None:
    assert api.run("echo $((1 + 1))", shell=True, capture_output=True, text=True).stdout == "2\n"
    assert api.check_output("echo a | tr a b", shell=True) == b"b\n"
    with api.Popen("exit 7", shell=True) as child:
        assert child.wait() == 7
    with api.Popen(["pwd"], preexec_fn=lambda: os.chdir("/"), stdout=api.PIPE) as child:
        assert child.communicate()[0] == b"/\n"


def quiet_popen(api: ModuleType) -> type:
    """Return a subclass of `Popen` whose constructor has one more argument."""

    class QuietPopen(api.Popen):  # type: ignore[name-defined, misc]
        def __init__(self, mark: str, *args: Any, **options: Any) -> None:
            self.mark = mark
            super().__init__(*args, stderr=api.DEVNULL, **options)

    return QuietPopen


@pytest.mark.parametrize("options", [{"shell": True}, {"preexec_fn": lambda: None}, {}])
def test_a_subclass_of_popen_works_with_a_shell_and_a_preexec_fn(api: ModuleType, options: dict[str, Any]) -> None:
    with quiet_popen(api)("mark", "true", stdin=api.PIPE, stdout=api.PIPE, text=True, **options) as child:
        assert (child.mark, isinstance(child, api.Popen)) == ("mark", True)
        assert child.communicate("", timeout=60) == ("", None)
    assert child.returncode == 0


def test_a_shell_is_signalled_and_waited_for(api: ModuleType) -> None:
    child = api.Popen("exec sleep 1000", shell=True)
    with pytest.raises(api.TimeoutExpired):
        child.wait(0.01)
    assert child.poll() is None
    child.terminate()
    assert child.wait() == -15


def test_a_shell_has_a_pidfd() -> None:
    with vspawn.Popen("exit 3", shell=True) as child:
        ready, _, _ = select.select([child.fileno()], [], [], 60)
        assert (ready, child.poll()) == ([child.fileno()], 3)


@pytest.mark.parametrize("option", ["user", "group"])
def test_invalid_ids(api: ModuleType, option: str) -> None:
    for value, kind in ((-1, ValueError), (2**40, OverflowError), (2**64, OverflowError)):
        with pytest.raises(kind):
            api.run(["true"], **{option: value})
    with pytest.raises(ValueError):
        api.run(["true"], extra_groups=[2**64])


def test_popen_is_generic(api: ModuleType) -> None:
    assert api.Popen[str].__origin__ is api.Popen


def test_binary_line_buffering_is_warned_about(api: ModuleType) -> None:
    with pytest.warns(RuntimeWarning, match="line buffering"):
        api.Popen(["true"], bufsize=1, stdout=api.PIPE).communicate()
    api.Popen(["true"], bufsize=None, stdout=api.PIPE).communicate()


def test_audit_events(api: ModuleType) -> None:
    events = []
    is_on = True

    def hook(event: str, args: tuple[object, ...]) -> None:
        if is_on and event == "subprocess.Popen":
            events.append(args)

    sys.addaudithook(hook)  # it cannot be removed
    api.run(["true", "x"], cwd="/")
    api.Popen(["true"], executable="/bin/true").wait()
    is_on = False
    assert [(str(args[1]), args[2]) for args in events] == [("['true', 'x']", "/"), ("['true']", None)]
    assert events[1][0] == "/bin/true"


def test_every_public_name_of_subprocess_exists() -> None:
    for name in subprocess.__all__:
        assert hasattr(vspawn, name), name


def test_the_readme_begins_with_an_example_that_prints_what_it_shows() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    before, _, after = readme.partition("\n\nprints\n\n")
    code = textwrap.dedent(before[before.index("    import") :])
    shown = textwrap.dedent(after.partition("\n\n#")[0])
    assert len(code.replace("\n\n", "\n").splitlines()) == 9
    assert vspawn.check_output([sys.executable, "-c", code], text=True).strip() == shown.strip()
