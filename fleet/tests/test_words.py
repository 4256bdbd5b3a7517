"""Tests formats and layout, without a dataset."""

import pytest

from spawnscope_fleet import words
from spawnscope_fleet.pages import Item, Page, Section, table
from spawnscope_fleet.text import render, width_of

PAGE = Page("Lines", ["One run."], [table(("line",), ("runs",), [["a.sh:1", "12"]])])


@pytest.mark.parametrize(
    "span, text",
    [(None, "-"), (0, "0 ns"), (999, "999 ns"), (7_800, "7.80 us"), (-45_600_000, "-45.6 ms"), (999_499_999, "999 ms"), (999_999_999, "1.00 s"),
     (99_960_000_000, "100 s"), (1_234_000_000_000, "1,234 s"), (9_999_500_000_000, "2.78 h"), (4_000_000_000_000_000, "1,111 h")],
)  # fmt: skip
def test_times_have_three_digits_in_the_largest_unit_that_fits(span, text):
    assert words.time(span) == text


def test_figures_are_aligned_to_the_right():
    assert render(PAGE, 80) == "Lines\n  One run.\n\n  line    runs\n  a.sh:1    12\n"


def test_a_long_path_is_shortened_to_its_end():
    page = Page("Lines", [], [table(("line",), ("runs",), [["/a/very/long/path/that/does/not/fit/build.sh:41", "1"]])])
    text = render(page, 40)
    assert "build.sh:41" in text and all(width_of(line) <= 40 for line in text.splitlines())


def test_items_are_numbered_and_commands_are_not_wrapped():
    command = "  sudo auditctl -d always,exit -F arch=b64 -S execve -k run-of-all-programs"
    item = Item("an audit rule logs each exec\x07", ["-> delete the rule, or narrow it:", command])
    page = Page("Machines", [], [], [Section("build-07: 1 problem", [item])])
    lines = render(page, 30).splitlines()
    assert lines[2:6] == ["  build-07: 1 problem", "  1. an audit rule logs each", "     exec\\u{7}", "     -> delete the rule, or"]
    assert lines[6] == "        narrow it:" and lines[7].strip() == command.strip()
