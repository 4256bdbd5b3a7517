"""Tests the program on datasets that generate.py makes from real recordings: it finds the injected changes and nothing else; damaged
files, odd names and few runs do not mislead; errors say what to do."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest
from support import BASE, TABLES, failure, fleet, generate, printed, rows, words_of


@pytest.fixture(scope="session")
def injected(tmp_path_factory):
    """A fortnight of 10 jobs on 8 machines, with an expensive line from day 9 on, and a slow machine."""
    return generate(tmp_path_factory.mktemp("injected"), "--regression", "--slow-machine")


@pytest.fixture(scope="session")
def unchanged(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("unchanged"), "--seed", "2")


def test_only_the_line_that_became_expensive_is_reported(injected):
    (row,) = rows("regressions", "--since", "2026-11-09", injected)
    assert (row["file"], row["line"], row["command"]) == ("/ci/build.sh", 41, "git")
    assert (row["launches_before"], row["launches_after"]) == (0, 40)
    # 40 launches of 2 ms.
    assert abs(row["critical_after_ns"] - 80e6) < 2 * row["critical_half_width_ns"] < 4e6
    text = words_of(printed("regressions", "--since", "2026-11-09", injected))
    assert "git from /ci/build.sh:41: 0.0 -> 40.0 launches per run in 5 of 5 jobs" in text


@pytest.mark.parametrize("since", ["c0ffee08", "2026-11-09T00:00", "2026-11-09 00:00:00", "2026-11-09T00:00:00.000000Z"])
def test_a_commit_or_a_time_can_stand_for_a_date(injected, since):
    (by_date,), (found,) = (rows("regressions", "--since", each, injected) for each in ("2026-11-09", since))
    # The last digits of sums of floating-point numbers depend on the order.
    assert all(by_date[column] == found[column] for column in ("file", "line", "command", "jobs", "launches_after"))


def test_the_beginning_of_several_commits_is_none(injected):
    assert "several commits begin like this" in failure("regressions", injected, "--since", "c0ffee0")


def test_branches_are_compared_by_themselves(injected):
    both = rows("sql", injected, "SELECT branch, COUNT(*) AS runs FROM runs GROUP BY branch ORDER BY branch")
    assert [row["branch"] for row in both] == ["main", "topic"]
    for branch in both:
        (row,) = rows("regressions", "--since", "2026-11-09", "--branch", branch["branch"], injected)
        assert (row["line"], row["launches_after"]) == (41, 40) and row["runs"] < branch["runs"]
    (found,) = rows("sql", "--branch", "main", injected, "SELECT COUNT(DISTINCT branch) AS branches, COUNT(*) AS runs FROM runs")
    assert found == {"branches": 1, "runs": both[0]["runs"]}
    (found,) = rows("sql", "--branch", "main", injected, "SELECT COUNT(DISTINCT run) AS runs FROM launches")
    assert found == {"runs": both[0]["runs"]}


def test_a_regression_fails_a_check_and_an_improvement_does_not(injected, unchanged):
    since = ["regressions", "--since", "2026-11-09", "--check"]
    assert fleet(*since, injected).returncode == 1
    assert fleet(*since, unchanged).returncode == 0
    assert fleet(*since, injected.parent / "missing").returncode == 125


def test_without_a_change_nothing_is_reported(unchanged):
    assert rows("regressions", "--since", "2026-11-09", unchanged) == []
    assert all(not row["is_outlier"] for row in rows("machines", unchanged))
    assert "Nothing changed since 2026-11-09 beyond noise." in words_of(printed("regressions", "--since", "2026-11-09", unchanged))
    assert "No machine's launches cost clearly more or less" in printed("machines", unchanged)


def test_a_count_that_changes_in_every_one_of_few_runs_is_reported(injected):
    # 5 days before and 4 after, one run a day: no rank test of so few runs is significant.
    days = ["--job", "job-000", "--from", "2026-11-04", "--to", "2026-11-12"]
    (row,) = rows("regressions", "--since", "2026-11-09", *days, injected)
    assert (row["line"], row["launches_after"], row["is_constant"]) == (41, 40, 1)
    assert "in every run;" in words_of(printed("regressions", "--since", "2026-11-09", *days, injected))


def change_rows(file, change):
    table = parquet.read_table(file, partitioning=None)
    parquet.write_table(pyarrow.Table.from_pylist(change(table.to_pylist()), table.schema), file)


def test_a_count_that_changes_in_every_run_of_a_job_is_reported_if_it_varies_less_in_others(injected, tmp_path):
    dataset = tmp_path / "dataset"
    shutil.copytree(injected, dataset)
    for number, file in enumerate(sorted((dataset / "launches").glob("date=*/job=job-001/*.parquet"))):
        change_rows(file, lambda found: [{**row, "command": "git", "caller": 999} if place < 5 + number % 2 else row for place, row in enumerate(found)])
        callers = Path(str(file).replace("/launches/", "/callers/"))
        change_rows(callers, lambda found: [*found, {**found[0], "caller": 999, "file": "/ci/build.sh", "line": 41}])
    days = ["--job", "job-000", "--job", "job-001", "--from", "2026-11-04", "--to", "2026-11-12", dataset]
    (row,) = rows("regressions", "--since", "2026-11-09", *days)
    assert (row["changed_jobs"], row["constant_jobs"], row["is_constant"]) == (2, 1, 1)
    assert "in every run of 1 of these jobs;" in words_of(printed("regressions", "--since", "2026-11-09", *days))


def test_too_few_runs_are_no_all_clear(unchanged):
    days = ["--job", "job-002", "--from", "2026-11-07", "--to", "2026-11-10"]
    text = words_of(printed("regressions", "--since", "2026-11-09", *days, unchanged))
    assert "Too few runs to tell" in text and "Nothing changed" not in text
    assert "Compared 2 runs before 2026-11-09 with 2 runs since." in text
    assert "Too few runs to tell" in failure("regressions", "--since", "2026-11-09", "--check", *days, unchanged)


def test_jobs_whose_few_runs_could_hide_a_change_are_counted(unchanged, tmp_path):
    dataset = tmp_path / "dataset"
    shutil.copytree(unchanged, dataset)
    for day in ("12", "13", "14"):
        for folder in dataset.glob(f"*/date=2026-11-{day}/job=job-000"):
            folder.rename(folder.with_name("job=new"))
    text = words_of(printed("regressions", "--since", "2026-11-09", dataset))
    assert "Nothing changed since 2026-11-09 beyond noise. 10 jobs have fewer than 10 runs on a side" in text
    assert "1 job was not compared" in text


def test_only_the_slow_machine_is_an_outlier(injected):
    found = rows("machines", injected)
    assert len(found) == 8
    (outlier,) = (row for row in found if row["is_outlier"])
    assert outlier["host"] == "machine-07"
    assert abs(outlier["against_others"] - 1.5) < 2 * outlier["half_width"]


def test_the_latest_findings_of_the_doctor_are_shown_for_the_slow_machine(injected):
    text = words_of(printed("machines", injected))
    assert "`spawnscope doctor` found there on 2026-11-13: 1 problem, 6 notes" in text
    assert "What `spawnscope doctor` found on machine-07 on 2026-11-13 1. " in text
    assert "2026-11-04" not in text
    by_host = {row["host"]: row["doctor"] for row in rows("machines", injected)}
    assert by_host["machine-06"] is None
    findings = by_host["machine-07"]["findings"]
    assert findings[0]["severity"] == "problem"
    for finding in findings:
        assert (words_of(finding["title"]) in text) == (finding["severity"] != "unseen"), finding
    assert len(rows("doctor", injected)) == len(findings)
    assert "1 machine was examined: 1 problem, 6 notes" in printed("doctor", injected)


def test_an_outlier_that_was_not_examined_is_shown_with_the_command_to_run(injected, tmp_path):
    # Without the doctor's table, as in a dataset of an earlier version.
    for table in TABLES:
        (tmp_path / table).symlink_to(injected / table)
    assert f"was not run there: run `spawnscope doctor -o {tmp_path}` on it" in words_of(printed("machines", tmp_path))
    assert rows("doctor", tmp_path) == []
    assert "No machine was examined" in printed("doctor", tmp_path)


def test_with_one_machine_there_is_nothing_to_compare():
    assert "Nothing to compare" in printed("machines", BASE)


def test_answers_add_up_all_launches(injected):
    (total,) = rows("sql", injected, "SELECT COUNT(*) AS launches, SUM(critical_ns) AS critical_ns FROM launches")
    for by in ["command", "label:job", "label:host", "label:test", "label:cmake", "label:team"]:
        found = rows("top", "--by", by, "--rows", "100", injected)
        for column, expected in total.items():
            assert sum(row[column] or 0 for row in found) == expected, (by, column)
    days = rows("trend", injected)
    assert len(days) == 14 and sum(day["launches"] for day in days) == total["launches"]


def test_chosen_runs_are_those_of_the_days_jobs_and_machines(injected):
    query = "SELECT COUNT(*) AS runs, MIN(date) AS first, MAX(date) AS last, COUNT(DISTINCT job) AS jobs, COUNT(DISTINCT host) AS hosts FROM runs"
    chosen = ["--from", "2026-11-03", "--to", "2026-11-04", "--job", "job-001", "--job", "job-002"]
    (found,) = rows("sql", *chosen, injected, query)
    assert (found["runs"], found["first"], found["last"], found["jobs"]) == (4, "2026-11-03", "2026-11-04", 2)
    (machine,) = rows("sql", "--machine", "machine-03", injected, query)
    assert machine["hosts"] == 1
    (all_runs,) = rows("sql", injected, query)
    assert 0 < machine["runs"] < all_runs["runs"] == 140
    assert "no run is left" in failure("trend", "--from", "2027-01-01", injected)
    assert rows("sql", "--branch", "no-such-branch", injected, query)[0]["runs"] == 0
    # An examination is of a machine, whichever jobs it runs.
    by_host = {row["host"]: row["doctor"] for row in rows("machines", "--job", "job-001", "--job", "job-002", injected)}
    assert by_host["machine-07"]
    assert rows("doctor", "--machine", "machine-07", injected) and rows("doctor", "--machine", "machine-03", injected) == []


@pytest.mark.parametrize("order, column", [("critical", "critical_ns"), ("saving", "saving_ns"), ("count", "launches")])
def test_top_is_ordered_as_requested(order, column):
    figures = [row[column] for row in rows("top", "--order", order, BASE)]
    known = [figure for figure in figures if figure is not None]
    assert len(known) > 3 and known == sorted(known, reverse=True) and figures[: len(known)] == known


def test_a_line_that_two_shells_run_is_one_line(tmp_path):
    dataset = tmp_path / "dataset"
    shutil.copytree(BASE, dataset)
    as_dash = lambda found: [{**row, "language": "dash", "function": None, "module": "/bin/dash"} for row in found if row["file"]]
    for file in sorted((dataset / "callers").glob("**/*.parquet")):
        change_rows(file, lambda found: found + as_dash(found))
    once, twice = (rows("top", "--rows", "1000", each) for each in (BASE, dataset))
    sites = [[(row["file"], row["line"]) for row in found if row["file"]] for found in (once, twice)]
    assert len(set(sites[1])) == len(sites[1]) == len(sites[0]) > 3
    savings = [sum(row["saving_ns"] or 0 for row in found) for found in (once, twice)]
    assert savings[0] == savings[1] > 0


def test_the_trend_has_the_quantiles_of_each_day(injected):
    days = {row["date"]: row for row in rows("trend", injected)}
    runs = rows("sql", injected, "SELECT date, wall_ns FROM runs ORDER BY wall_ns")
    assert len(days) == 14
    for date, day in days.items():
        times = [run["wall_ns"] for run in runs if run["date"] == date]
        nearest = [times[-(-len(times) * percent // 100) - 1] for percent in (50, 95)]
        assert [day["wall_p50_ns"], day["wall_p95_ns"]] == nearest


def test_a_query_can_join_a_table_of_the_ci_service(injected, tmp_path):
    (tmp_path / "jobs.csv").write_text("job,team\njob-001,kernel\njob-002,kernel\n")
    query = f"SELECT team, COUNT(*) AS runs FROM runs JOIN '{tmp_path}/jobs.csv' AS jobs USING (job) GROUP BY team"
    assert rows("sql", injected, query) == [{"team": "kernel", "runs": 28}]


def test_old_recordings_are_deleted_from_all_tables(tmp_path):
    # The date of a directory above is not that of a recording.
    dataset = tmp_path / "date=2000-01-01/job=backup/dataset"
    shutil.copytree(BASE, dataset)
    before = sorted(file for file in dataset.glob("**/*.parquet"))
    new = datetime.now(timezone.utc).date()
    for table in TABLES:
        # One recording becomes one of today.
        file = sorted((dataset / table).glob("**/*.parquet"))[0]
        partition = dataset / table / f"date={new}" / file.parent.name
        partition.mkdir(parents=True)
        file.rename(partition / file.name)
        with contextlib.suppress(OSError):
            file.parent.rmdir()
            file.parent.parent.rmdir()
    trial = printed("prune", "--older-than", "1", "--dry-run", dataset)
    assert trial.startswith("Would delete") and len(list(dataset.glob("**/*.parquet"))) == len(before)
    assert printed("prune", "--older-than", "1", dataset) == trial.replace("Would delete", "Deleted")
    assert len(list(dataset.glob("**/*.parquet"))) == len(TABLES)
    assert [path.name for path in (dataset / "runs").iterdir()] == [f"date={new}"], "no empty folder is left"
    assert printed("prune", "--older-than", "1", dataset).startswith("Deleted 0 recordings")
    (left,) = rows("sql", dataset, "SELECT COUNT(*) AS runs FROM runs")
    assert left["runs"] == 1
    assert "give a number from 1" in fleet("prune", "--older-than", "0", dataset).stderr


def test_savings_are_known_by_line_only():
    assert "use --by line" in failure("top", "--by", "command", "--order", "saving", BASE)


@pytest.mark.parametrize("verb", ["top", "trend", "advice", "machines", "doctor"])
def test_each_answer_can_be_printed_and_written_as_a_page_that_loads_nothing(verb, injected, tmp_path):
    # The recordings in BASE are of one machine, so there is nothing to compare.
    dataset = injected if verb == "machines" else BASE
    assert len(printed(verb, dataset).splitlines()) > 3
    file = tmp_path / "page.html"
    assert printed(verb, "--html", file, dataset) == ""
    page = file.read_text()
    assert "<td" in page and "://" not in page


def test_names_of_jobs_are_those_that_the_user_gave(tmp_path):
    # Neither directories above nor files that are not of the dataset matter.
    dataset = tmp_path / "job=matrix/date=2000-01-01/it's [1]*"
    shutil.copytree(BASE, dataset)
    shutil.copy(next((dataset / "launches").glob("**/*.parquet")), dataset / "launches/copy.parquet")
    (dataset / "runs/tmp").mkdir()
    (dataset / "runs/tmp/copy.parquet").touch()
    for table in TABLES:
        partition = next((dataset / table).glob("date=2026-11-22/job=*"))
        partition.rename(partition.with_name("job=unit%20tests%2F%C3%BC"))
    jobs = {row["label"] for row in rows("top", "--by", "label:job", dataset)}
    assert jobs == {None, "unit tests/ü"}
    assert rows("sql", "--job", "unit tests/ü", dataset, "SELECT job FROM runs") == [{"job": "unit tests/ü"}]


def test_a_column_that_only_some_files_have_is_found(tmp_path):
    dataset = tmp_path / "dataset"
    shutil.copytree(BASE, dataset)
    older, *_ = sorted((dataset / "launches").glob("**/*.parquet"))
    table = parquet.read_table(older, partitioning=None)
    parquet.write_table(table.drop_columns(["cmake_target"]), older)
    (counted,) = rows("sql", dataset, "SELECT COUNT(*) AS launches, COUNT(cmake_target) AS known FROM launches")
    assert counted["launches"] == 111
    assert sum(row["launches"] for row in rows("top", "--by", "label:cmake", dataset)) == 111


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize(
    "damage",
    # DuckDB's message about damaged rows names no file, and that about a damaged schema quotes the names of innocent ones.
    [lambda data: data[:-100], lambda data: b"", lambda data: data[:20] + bytes(400) + data[420:], lambda data: data[:-400] + bytes(380) + data[-20:]],
    ids=["cut", "empty", "rows", "schema"],
)
def test_a_damaged_file_is_left_out_with_its_recording_and_named(tmp_path, damage, place):
    dataset = tmp_path / "dataset"
    shutil.copytree(BASE, dataset)
    file = sorted((dataset / "launches").glob("**/*.parquet"))[place]
    file.write_bytes(damage(file.read_bytes()))
    done = fleet("top", "--by", "command", "--json", dataset)
    assert done.returncode == 0, done.stderr
    assert file.stem in done.stderr and "1 damaged file is left out" in done.stderr
    (left,) = rows("sql", dataset, "SELECT COUNT(*) AS runs, SUM(launches) AS launches FROM runs WHERE run IN (SELECT run FROM launches)")
    assert sum(row["launches"] for row in json.loads(done.stdout)) == left["launches"] < 111


def test_texts_of_recordings_cannot_control_the_terminal(tmp_path):
    query = "SELECT 'a' || chr(27) || '[31m' || chr(8238) AS evil"
    text = printed("sql", BASE, query)
    assert "\x1b" not in text and "\u202e" not in text and "a\\u{1b}[31m\\u{202e}" in text


@pytest.mark.parametrize(
    "query", ["CREATE TABLE x AS SELECT 1", "COPY runs TO '/tmp/never.csv'", "SELECT 1; SELECT 2", "ATTACH 'x.db'", "SET threads = 1", "INSERT INTO runs SELECT 1"]
)
def test_only_one_query_is_run(query):
    assert "only one query is run" in failure("sql", BASE, query)


def test_errors_about_bad_input_say_what_to_do(tmp_path):
    assert "failed to open dataset" in failure("top", tmp_path / "missing")
    assert "spawnscope export --format parquet" in failure("top", tmp_path)
    for table in TABLES:
        (tmp_path / table).mkdir()
    assert "no recording yet" in failure("top", tmp_path)
    partition = tmp_path / "runs/date=2026-11-01/job=x"
    partition.mkdir(parents=True)
    (partition / "a.parquet").write_text("no parquet")
    assert "no run is left" in failure("top", tmp_path)
    assert "nothing" in failure("sql", BASE, "SELECT nothing FROM runs")
    since = ["regressions", BASE, "--since"]
    assert "no run has such a commit" in failure(*since, "deadbeef")
    assert "give a date" in failure(*since, "' OR 1")
    assert "month must be in 1..12" in failure(*since, "2026-13-45")
    assert "a comparison needs runs on both sides" in failure(*since, "1999-01-01")
    assert "2026-02-30" in fleet("top", "--from", "2026-02-30", BASE).stderr


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which then becomes another user")
def test_a_file_that_must_not_be_read_is_no_damaged_file(tmp_path):
    dataset = tmp_path / "dataset"
    shutil.copytree(BASE, dataset)
    file = sorted((dataset / "runs").glob("**/*.parquet"))[0]
    file.chmod(0)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.owner() == "root" and folder != Path("/") and folder.stat().st_mode & 0o5 != 0o5 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-m", "spawnscope_fleet", "trend", dataset]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 125 and "permission denied" in done.stderr, done


@pytest.fixture(scope="session")
def loaded(tmp_path_factory):
    """A fortnight with more load from day 9 on, and with an expensive line."""
    return generate(tmp_path_factory.mktemp("loaded"), "--load", "--regression", "--seed", "4")


def test_more_load_is_no_regression_and_hides_none(loaded, tmp_path):
    (row,) = rows("regressions", "--since", "2026-11-09", loaded)
    assert (row["line"], row["launches_after"]) == (41, 40)
    for seed in ("5", "6", "7"):
        dataset = generate(tmp_path / seed, "--load", "--seed", seed)
        assert rows("regressions", "--since", "2026-11-09", dataset) == []


def test_one_line_that_takes_longer_is_found_and_all_lines_together_are_load(tmp_path):
    sites = "SELECT c.file, c.line, l.command FROM launches AS l JOIN callers AS c USING (run, caller) GROUP BY ALL ORDER BY SUM(l.critical_ns) DESC"
    site = rows("sql", BASE, sites)[0]
    for name, is_slow in (("one", lambda launch, caller: caller == (site["file"], site["line"])), ("all", lambda launch, caller: True)):
        dataset = generate(tmp_path / name, "--seed", "8")
        for file in (dataset / "launches").glob("date=2026-11-*/job=*/*.parquet"):
            if file.parent.parent.name < "date=2026-11-09":
                continue
            callers = parquet.read_table(str(file).replace("/launches/", "/callers/"), partitioning=None).to_pylist()
            lines = {caller["caller"]: (caller["file"], caller["line"]) for caller in callers}
            slower = lambda row: {**row, "critical_ns": row["critical_ns"] * 2} if is_slow(row, lines.get(row["caller"])) else row
            change_rows(file, lambda found: list(map(slower, found)))
        found = {(row["file"], row["line"]) for row in rows("regressions", "--since", "2026-11-09", dataset)}
        assert found == ({(site["file"], site["line"])} if name == "one" else set()), name


def test_files_without_the_newest_columns_are_answered(tmp_path):
    dataset = tmp_path / "dataset"
    shutil.copytree(BASE, dataset)
    for file in (dataset / "launches").glob("**/*.parquet"):
        table = parquet.read_table(file, partitioning=None)
        parquet.write_table(table.drop_columns(["critical_cpu_wait_ns"]), file)
    assert "Compared" in printed("regressions", "--since", "2026-11-23", dataset)


def git(directory, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", directory, *identity, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_a_tag_is_the_first_run_that_contains_it(tmp_path):
    repository, dataset = tmp_path / "repository", tmp_path / "dataset"
    repository.mkdir()
    git(repository, "init", "-q")
    commits = []
    for number in range(4):
        git(repository, "commit", "-q", "--allow-empty", "-m", str(number))
        commits.append(git(repository, "rev-parse", "HEAD"))
    git(repository, "tag", "v1", commits[1])
    # A tag that looks like the beginning of a hash.
    git(repository, "tag", commits[0][:4], commits[1])
    shutil.copytree(BASE, dataset)
    # CI built the first, the third and the fourth commit.
    files = sorted((dataset / "runs").glob("**/*.parquet"))
    for file, commit in zip(files, [commits[0], commits[2], commits[3], commits[3]]):
        table = parquet.read_table(file, partitioning=None)
        index = table.schema.get_field_index("commit")
        parquet.write_table(table.set_column(index, table.schema.field(index), [[commit]]), file)
    since = ["regressions", "--repository", repository, dataset, "--since"]
    assert "Compared 1 run before v1 with 3 runs since." in words_of(printed(*since, "v1"))
    assert "Compared 1 run before" in printed(*since, commits[1][:9]) and "Compared 1 run before" in printed(*since, commits[0][:4])
    assert "has no such revision" in failure(*since, "v2")
    assert "has no such revision" in failure("regressions", "--repository", tmp_path, dataset, "--since", "v1")


def test_commits_and_runs_are_short_and_lead_to_the_services_of_the_user(injected, tmp_path):
    links = ["--link-commit", "https://git.example.com/c/{commit}", "--link-run", "https://ci.example.com/{run}"]
    commit = "c0ffee08" + "0" * 32
    text = printed("regressions", "--since", "2026-11-09", *links, injected)
    assert f"c0ffee080000: https://git.example.com/c/{commit}" in text and f" {commit}" not in text
    page = tmp_path / "page.html"
    printed("top", "--by", "label:commit", *links, "--html", page, injected)
    assert f'<a href="https://git.example.com/c/{commit}">c0ffee080000</a>' in page.read_text()
    (row,) = rows("regressions", "--since", "2026-11-09", injected)
    (first,) = rows("sql", injected, f"SELECT MIN(started) AS started FROM runs WHERE commit = '{commit}' AND job = '{row['first_job']}'")
    assert (row["first_commit"], row["first_started"]) == (commit, first["started"])
    assert "give an address" in fleet("top", "--link-run", "javascript:{run}", injected).stderr


def test_the_dashboard_has_all_answers_and_charts(injected, tmp_path):
    page = tmp_path / "page.html"
    printed("dashboard", "--since", "2026-11-09", "--html", page, injected)
    html = page.read_text()
    assert html.count("<svg") == 2 and html.count("<h2>") >= 5 and "/ci/build.sh:41" in html and "machine-07" in html
    assert html.count('<circle class="series-0"') == 14 + 7 and html.count('<circle class="outlier"') == 1
    found = json.loads(printed("dashboard", "--json", injected))
    assert list(found) == ["trend", "machines", "top", "advice"] and len(found["trend"]) == 14
    assert "Lines that cost the most" in printed("dashboard", injected)
