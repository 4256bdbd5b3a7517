"""What changed since a date or commit, with a sentence for each change."""

import math

from . import Failure
from .engine import literal
from .links import Links
from .pages import Page, table
from .questions import question
from .since import Since
from .verbs import site
from .words import count, counted, time

SIGNIFICANCE = 0.05
# Of the wall time. Beyond it, no change of a line is no reason to say that nothing changed.
NOTABLE_FACTOR = 1.1


def regressions(engine, options):
    since = Since(options.since, engine, options.repository)
    jobs = engine.ask(question("sides", since=since.sql)).rows
    earlier, later = sum(job["earlier"] for job in jobs), sum(job["later"] for job in jobs)
    if not earlier or not later:
        runs = counted(earlier, "run", "runs"), counted(later, "run", "runs")
        raise Failure(f"there are {runs[0]} before {since.words} and {runs[1]} since: a comparison needs runs on both sides")
    found = engine.ask(question("regressions", since=since.sql, rows=options.rows))
    if options.check and not found.rows and not can_tell(jobs):
        raise Failure(all_clear(since, jobs))
    add_first_runs(engine, found.rows, since)
    return found, lambda: page(found.rows, since, jobs, Links(options))


def add_first_runs(engine, rows, since):
    """Adds to each row with more launches than before the first run that has more, with its job and commit."""
    for row in rows:
        row |= dict.fromkeys(("first_job", "first_commit", "first_run", "first_started"))
    changes = " UNION ALL ".join(
        f"SELECT {number} AS number, {literal(row['file'])} AS file, {row['line']} AS line, {literal(row['command'])} AS command"
        for number, row in enumerate(rows)
        if row["launches_after"] > row["launches_before"]
    )
    for first in engine.ask(question("first", changes=changes, since=since.sql)).rows if changes else []:
        rows[first.pop("number")] |= first


def page(rows, since, jobs, links):
    sentences = [sentence(row, since) for row in rows]
    if not rows:
        sentences.append(all_clear(since, jobs))
    sentences += [*change_of_wall_time(jobs), *jobs_with_few_runs(jobs)]
    earlier, later = (counted(sum(job[side] for job in jobs), "run", "runs") for side in ("earlier", "later"))
    sentences.append(f"Compared {earlier} before {since.words} with {later} since.")
    lost = sum(job["lost"] for job in jobs)
    if lost:
        sentences.append(f"{counted(lost, 'run is', 'runs are')} left out, because events were lost in {'it' if lost == 1 else 'them'}.")
    columns = (("command", "line", "first commit", "first run"), ("jobs", "before", "after", "critical before", "critical after"))
    return Page(f"Changes since {since.words}", sentences, [table(*columns, [cells(row, links) for row in rows])])


def change_of_wall_time(jobs):
    """Says by which factor runs became slower or faster, if that is notable. The factor is the mean of those of the jobs."""
    factors = [(job["later"], job["wall_after_ns"] / job["wall_before_ns"]) for job in jobs if job["wall_before_ns"] and job["wall_after_ns"]]
    factor = sum(runs * factor for runs, factor in factors) / max(1, sum(runs for runs, _ in factors))
    if not factors or 1 / NOTABLE_FACTOR < factor < NOTABLE_FACTOR:
        return []
    return [
        f"A run takes {factor:.2f} times the wall time of before. A change that affects all lines alike is not listed: "
        "other load, other machines or an input of another size cause it. See `spawnscope fleet machines`."
    ]


def all_clear(since, jobs):
    """Says that nothing changed only if a change could have been found."""
    if can_tell(jobs):
        if change_of_wall_time(jobs):
            return f"No line changed since {since.words} by more than the others of its job."
        return f"Nothing changed since {since.words} beyond noise."
    return (
        f"Too few runs to tell: noise could explain every difference. A job with 20 lines needs {ENOUGH_RUNS} runs on each side "
        f"of {since.words}, or 3 if all of them have the same count."
    )


def can_tell(jobs):
    """Whether a change in all jobs at once could exceed noise."""
    return best_z([(job["earlier"], job["later"]) for job in jobs if job["earlier"] > 1 and job["later"] > 1]) > threshold(tests=1)


def jobs_with_few_runs(jobs):
    """Says in which jobs a change may be missed, if one could exceed noise at all."""
    runs = [min(job["earlier"], job["later"]) for job in jobs]
    few, none = sum(1 < each < ENOUGH_RUNS for each in runs), sum(each < 2 for each in runs)
    sentences = []
    if few and can_tell(jobs):
        have = counted(few, "job has", "jobs have")
        sentences.append(f"{have} fewer than {ENOUGH_RUNS} runs on a side: a change in one job alone is found only if all runs have the same count.")
    if none and can_tell(jobs):
        sentences.append(f"{counted(none, 'job was', 'jobs were')} not compared: a comparison needs two runs on each side.")
    return sentences


def best_z(sides):
    """Returns the z score of van Elteren's test if all later runs of each job exceed all earlier ones."""
    excess = sum(earlier * later / 2 / (earlier + later + 1) for earlier, later in sides)
    variance = sum(earlier * later / 12 / (earlier + later + 1) for earlier, later in sides)
    return excess / math.sqrt(variance) if variance else 0.0


def threshold(tests):
    return math.sqrt(2 * math.log(2 * tests / SIGNIFICANCE))


# Runs on each side with which a change in a job with 20 lines can exceed noise.
ENOUGH_RUNS = next(runs for runs in range(2, 100) if best_z([(runs, runs)]) > threshold(tests=20))


def cells(row, links):
    launches = [f"{row[name]:,.1f}" for name in ("launches_before", "launches_after")]
    times = [time(row[name]) for name in ("critical_before_ns", "critical_after_ns")]
    first = links.commit(row["first_commit"]), links.run(row["first_run"])
    return [row["command"] or "-", site_of(row), *first, f"{count(row['changed_jobs'])} of {count(row['jobs'])}", *launches, *times]


def site_of(row):
    return site(row) if row["file"] else "(line unknown)"


def sentence(row, since):
    """`git from build.sh:41: 0.0 -> 40.0 launches per run in 100 of 200 jobs since 2026-11-09; +80.1 ms critical time per run (+- 112 us).`"""
    before, after = row["launches_before"], row["launches_after"]
    launches = f"{after:,.1f} launches per run, unchanged," if before == after else f"{before:,.1f} -> {after:,.1f} launches per run"
    jobs = counted(row["jobs"], "job", "jobs")
    changed = f"{count(row['changed_jobs'])} of {jobs}" if row["changed_jobs"] else jobs
    difference = row["critical_after_ns"] - row["critical_before_ns"]
    sign = "" if difference < 0 else "+"
    whose = "" if row["constant_jobs"] == row["changed_jobs"] else f" of {count(row['constant_jobs'])} of these jobs"
    every = f", in every run{whose}" if row["is_constant"] else ""
    width = time(row["critical_half_width_ns"])
    return f"{row['command']} from {site_of(row)}: {launches} in {changed} since {since.words}{every}; {sign}{time(difference)} critical time per run (+- {width})."


def is_costlier(found):
    """Whether something is launched more often, or takes more time, than before."""
    return any(row["launches_after"] > row["launches_before"] or row["critical_after_ns"] > row["critical_before_ns"] for row in found.rows)
