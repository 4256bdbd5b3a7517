"""The command line of `spawnscope fleet`."""

import argparse
import io
import json
import os
import re
import sys

from . import VERSION, Failure, html, text
from .compact import compact
from .dashboard import dashboard
from .dataset import Dataset
from .engine import Choice, Engine
from .links import template
from .prune import prune
from .push import push
from .questions import LABEL_COLUMNS
from .regressions import is_costlier, regressions
from .since import is_time
from .verbs import advice, doctor, machines, sql, top, trend
from .words import counted, printable

QUESTIONS = {
    "top": top, "trend": trend, "regressions": regressions, "machines": machines, "doctor": doctor, "advice": advice, "dashboard": dashboard, "sql": sql,
}  # fmt: skip
# As all verbs of spawnscope.
FAILED, COSTLIER = 125, 1
EXAMPLES = """examples:
  spawnscope export --format parquet -o fleet/ spawnscope.db
  spawnscope fleet top fleet/
  spawnscope fleet top --by label:team --job nightly --from 2026-11-01 fleet/
  spawnscope fleet regressions --since 2026-11-10 --branch main --check fleet/
  spawnscope fleet regressions --since v2.1 --link-commit 'https://git.example.com/app/commit/{commit}' fleet/
  spawnscope fleet dashboard --since 2026-11-10 --html fleet.html fleet/
  spawnscope doctor -o fleet/
  spawnscope fleet compact fleet/
  spawnscope fleet prune --older-than 90 fleet/
  spawnscope fleet push fleet/ s3://builds/fleet
  spawnscope fleet sql fleet/ "SELECT host, wall_ns FROM runs"
"""
DESCRIPTION = """Query a dataset of many recordings.

A dataset is a directory of Parquet files that `spawnscope export --format parquet -o DATASET` adds recordings to. A dataset in
S3-compatible storage is named s3://BUCKET/PREFIX; credentials, region and endpoint come from AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL."""


def main(arguments=None):
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # As spawnscope does, whatever the locale.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = parser().parse_args(arguments)
    try:
        sys.exit(run(options))
    except Failure as failure:
        fail(failure)
    except BrokenPipeError:
        # The reader has left, as in `| head`. Nothing more can be written, not even at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else error)


def fail(reason):
    print(f"spawnscope fleet: {printable(str(reason))}", file=sys.stderr)
    sys.exit(FAILED)


def run(options):
    """Runs a verb. Returns the exit status."""
    dataset = Dataset.open(options.dataset)
    if options.verb == "push":
        print(push(dataset, Dataset.open_or_create(options.to)), end="")
        return 0
    if options.verb == "compact":
        print(compact(dataset), end="")
        return 0
    if options.verb == "prune":
        print(prune(dataset, options.older_than, options.dry_run), end="")
        return 0
    choice = Choice(options.first, options.last, options.job, options.branch, options.machine)
    # `SELECT *` must not lack a column silently.
    engine = Engine(dataset, choice, reads_all_columns=options.verb == "sql")
    try:
        found, page = QUESTIONS[options.verb](engine, options)
        write(options, found, page)
        warn_of_damage(engine)
    finally:
        engine.close()
    return COSTLIER if options.verb == "regressions" and options.check and is_costlier(found) else 0


def write(options, found, page):
    if options.json:
        print(json.dumps(found.rows, indent=2, ensure_ascii=False))
    elif options.html:
        with open(options.html, "w", encoding="utf-8") as file:
            file.write(html.render(page()))
    else:
        print(text.render(page()), end="", flush=True)


def warn_of_damage(engine):
    if engine.damaged:
        name, reason = next(iter(engine.damaged.items()))
        files = counted(len(engine.damaged), "damaged file is left out with its recording", "damaged files are left out with their recordings")
        print(f"spawnscope fleet: {files}, the first: {printable(name)} ({printable(reason)})", file=sys.stderr)


def parser():
    options = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    main_parser = argparse.ArgumentParser(prog="spawnscope fleet", description=DESCRIPTION, epilog=EXAMPLES, **options)
    main_parser.add_argument("--version", action="version", version=f"spawnscope-fleet {VERSION}")
    verbs = main_parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name, text, more=""):
        return verbs.add_parser(name, help=text, description=f"{text}. {more}".strip(), **options)

    added = verb("top", "Print the lines, commands or labels that cost the most")
    added.add_argument("--by", type=by, default="line", metavar="WHAT", help="add up costs by line (the default), command, or label:NAME")
    added.add_argument("--order", choices=["critical", "saving", "count"], default="critical", help="order rows by this figure, largest first")
    add_common(added)
    add_common(verb("trend", "Print the cost of a run on each day: means, and quantiles of the wall time"), default_rows=90)
    added = verb(
        "regressions",
        "Print what changed since a date or commit, apart from noise",
        "The runs of a job before and after are compared with each other, and one rank test combines the jobs.",
    )
    add_since(added, is_required=True)
    added.add_argument("--check", action="store_true", help="exit with status 1 if something is costlier, for CI; 125 if that is unknown")
    add_common(added)
    add_common(verb("machines", "Print the cost of launches on each machine, which machines differ, and what `spawnscope doctor` found there"))
    add_common(verb("doctor", "Print the latest result of `spawnscope doctor -o DATASET` on each machine"))
    add_common(verb("advice", "Print the findings of `spawnscope advise` over all runs"))
    added = verb("dashboard", "Print all of this at once: trend, changes, machines, lines and findings")
    add_since(added, is_required=False)
    added.set_defaults(check=False)
    add_common(added, default_rows=10)
    added = verb("push", "Copy the files that another dataset lacks", "Any number of machines may push to the same dataset at once.")
    added.add_argument("dataset", help="the directory of the dataset, or s3://BUCKET/PREFIX")
    added.add_argument("to", help="the dataset to copy to")
    added = verb("prune", "Delete the recordings of old days")
    added.add_argument("dataset", help="the directory of the dataset, or s3://BUCKET/PREFIX")
    added.add_argument("--older-than", type=rows, required=True, metavar="DAYS", help="delete what began more than this number of days before today (UTC)")
    added.add_argument("--dry-run", action="store_true", help="print what would be deleted, and delete nothing")
    added = verb("compact", "Merge the files of each day and job, so that questions open fewer files", "Run one at a time. Exports and queries may run meanwhile.")
    added.add_argument("dataset", help="the directory of the dataset, or s3://BUCKET/PREFIX")
    added = verb("sql", "Run a query on the tables runs, launches, execs, callers, waits, advice and doctor")
    add_common(added, default_rows=None)
    added.add_argument("query", help='such as "SELECT host, COUNT(*) FROM runs GROUP BY host"')
    return main_parser


def add_since(added, is_required):
    what = "the first day, time, commit or tag of the later runs"
    added.add_argument("--since", required=is_required, metavar="TIME|REVISION", help=what)
    added.add_argument("--repository", metavar="DIR", default=".", help="the Git repository that knows the revision, if no run has it (default: .)")


def add_common(added, default_rows=20):
    """Adds the arguments of all questions. A query says itself how many rows it wants."""
    added.add_argument("dataset", help="the directory of the dataset, or s3://BUCKET/PREFIX")
    if default_rows:
        added.add_argument("-n", "--rows", type=rows, default=default_rows, metavar="N", help=f"maximum number of rows (default: {default_rows})")
    chosen = added.add_argument_group("which runs")
    chosen.add_argument("--from", dest="first", type=day, metavar="DATE", help="the first day")
    chosen.add_argument("--to", dest="last", type=day, metavar="DATE", help="the last day")
    for name in ("job", "branch", "machine"):
        chosen.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=f"only of this {name}; may be repeated")
    output = added.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print an array with an object for each row; times are in nanoseconds")
    output.add_argument("--html", metavar="FILE", help="write the answer to FILE as a self-contained HTML page")
    for name in ("run", "commit"):
        what = f"the address of a {name}, with {{{name}}} in it; {name}s become links"
        added.add_argument(f"--link-{name}", type=template(name), metavar="ADDRESS", help=what)


def by(text):
    if text in ("line", "command") or re.fullmatch(r"label:.+", text):
        return text
    raise argparse.ArgumentTypeError(f"use line, command or label:NAME, where NAME is a label of runs, or one of {', '.join(LABEL_COLUMNS)}")


def rows(text):
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}: give a number from 1")
    return int(text)


def day(text):
    try:
        if is_time(text) and len(text) == 10:
            return text
    except Failure as failure:
        raise argparse.ArgumentTypeError(str(failure)) from None
    raise argparse.ArgumentTypeError(f"{text}: give a date like 2026-11-10")
