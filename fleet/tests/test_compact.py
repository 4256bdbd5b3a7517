"""Tests that merged files count as those that they replace, at any moment."""

import json
import shutil
import subprocess
import sys

import pytest
from support import BASE, HERE, TABLES, fleet, printed, rows

from spawnscope_fleet.dataset import Dataset


@pytest.fixture
def compacted(tmp_path):
    """A dataset whose jobs run several times a day, and the same, merged."""
    original = tmp_path / "original"
    sizes = ["--runs", "42", "--jobs", "1", "--machines", "4", "--launches", "4000", "--regression", "--slow-machine"]
    subprocess.run([sys.executable, HERE.parent / "generate.py", BASE, original, *sizes], check=True)
    dataset = tmp_path / "compacted"
    shutil.copytree(original, dataset)
    (dataset / "runs/notes.txt").write_text("not of the dataset")
    return original, dataset


QUESTIONS = [["top"], ["top", "--by", "command"], ["trend"], ["regressions", "--since", "2026-11-09"], ["machines"], ["advice"]]


def same_answers(one, other):
    # The last digits of sums of floating-point numbers depend on the order.
    rounded = lambda found: json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.6g}"))
    return all(rounded(rows(*words, one)) == rounded(rows(*words, other)) for words in QUESTIONS)


def test_merged_files_give_the_same_answers(compacted, tmp_path):
    original, dataset = compacted
    assert printed("compact", dataset) == f"Merged {6 * 42} files of {dataset}.\n"
    assert len(list(dataset.glob("launches/**/*.parquet"))) == len(list(dataset.glob("runs/**/*.parquet"))) == 14
    assert same_answers(original, dataset)
    assert printed("compact", dataset).startswith("Merged 0 files")
    # Recordings that are added later are merged, too.
    (day,) = original.glob("runs/date=2026-11-03")
    for table in TABLES:
        for file in (original / table / day.name).glob("**/*.parquet"):
            copy = dataset / file.relative_to(original)
            shutil.copy(file, copy.with_name(f"{'e' * 31}{file.stem[-1]}.parquet"))
    assert printed("compact", dataset).startswith(f"Merged {6 * 4} files")
    (total,) = rows("sql", dataset, "SELECT COUNT(*) AS runs FROM runs")
    assert total == {"runs": 45}
    assert [file.name for file in (dataset / "runs" / day.name / "job=job-000").iterdir() if "1" in file.name] == []


def test_an_interrupted_merge_counts_nothing_twice(compacted, monkeypatch):
    original, dataset = compacted
    for steps in range(1, 14, 3):
        calls = iter(range(steps))

        def interrupted(step):
            def run(*words, **options):
                if next(calls, None) is None:
                    raise KeyboardInterrupt
                return step(*words, **options)

            return run

        with monkeypatch.context() as patched:
            patched.setattr(Dataset, "write", interrupted(Dataset.write))
            patched.setattr(Dataset, "delete", interrupted(Dataset.delete))
            assert fleet("compact", dataset).returncode == 130
        assert same_answers(original, dataset), steps
    printed("compact", dataset)
    assert same_answers(original, dataset)
    assert len(list(dataset.glob("**/*.parquet"))) == 6 * 14 + 2, "nothing is left of the interrupted merges but the doctor's files"


def test_questions_during_a_merge_have_the_same_answer(compacted):
    _, dataset = compacted
    ask = lambda: rows("sql", dataset, "SELECT COUNT(*) AS launches, COUNT(DISTINCT run) AS runs FROM launches JOIN runs USING (run)")
    before, asked = ask(), 0
    merge = subprocess.Popen([sys.executable, "-m", "spawnscope_fleet", "compact", dataset], stdout=subprocess.DEVNULL)
    while merge.poll() is None:
        assert ask() == before
        asked += 1
    assert merge.returncode == 0 and asked > 0 and ask() == before


def test_merged_recordings_are_pushed_and_deleted_as_others(compacted, tmp_path):
    original, dataset = compacted
    printed("compact", dataset)
    copy = tmp_path / "copy"
    assert printed("push", dataset, copy).startswith(f"copied {6 * 42 + 2} files")
    assert same_answers(original, copy)
    assert printed("push", original, dataset).startswith("nothing to copy")
    assert printed("prune", "--older-than", "1", dataset).startswith("Deleted 42 recordings")
    assert [path.name for path in (dataset / "runs").iterdir()] == ["notes.txt"]


def test_a_merge_leaves_files_that_it_cannot_read(compacted):
    _, dataset = compacted
    file = sorted((dataset / "execs").glob("date=2026-11-05/**/*.parquet"))[0]
    file.write_bytes(b"PAR1")
    text = printed("compact", dataset)
    assert text.startswith(f"Merged {6 * 39} files") and "Left as they are: the files of date=2026-11-05/job=job-000" in text
