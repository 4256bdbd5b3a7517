#!/usr/bin/env python3
"""Makes a dataset of any size by resampling the runs of a real one, for tests and benchmarks of `spawnscope fleet`.

    fleet/generate.py BASE DATASET --runs 2800 --launches 10000000 [--seed 1] [--regression] [--slow-machine]

BASE is a dataset of `spawnscope export --format parquet`. Each job resamples one of BASE's runs: launches are drawn with replacement, with
their execs and call sites, and times are multiplied by one factor per run and one per launch. Half of the machines build the branch
`main`. With --regression, a line of a script starts `git rev-parse` 40 times in each run of every second job from day 9 on. With
--slow-machine, launches cost 50 % more on one machine; if BASE has a result of `spawnscope doctor`, two results for that machine are
added. With --load, all machines have more load from day 9 on: a launch computes for longer, and every second one waits for a CPU. The
same arguments give the same dataset. Needs pyarrow and numpy.
"""
import argparse
import datetime
import pathlib
import sys

import numpy
import pyarrow
import pyarrow.compute as compute
import pyarrow.parquet as parquet

DAYS = 14
FIRST_DAY = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
CHANGED_DAY = 9
ADDED_LAUNCHES = 40
SLOWNESS = 1.5
SLOW_MACHINE = 7
# The days on which `spawnscope doctor` ran on the slow machine.
EXAMINED_DAYS = (3, 12)
PHASES = ("create_ns", "queue_ns", "setup_ns", "exec_ns", "load_ns", "run_ns", "teardown_ns", "reap_ns")
# What load does: the mean factor of a launch's times, and the mean time that every second launch waits for a CPU.
LOAD_FACTOR, LOAD_WAIT_NS = 1.3, 3e6
# The phases that take longer on a slow machine.
SLOWED_PHASES = ("create_ns", "setup_ns", "exec_ns", "load_ns", "teardown_ns")
TABLES = ("runs", "launches", "execs", "callers", "waits", "advice")


def main():
    options = arguments()
    random = numpy.random.default_rng(options.seed)
    base = Base(options.base)
    jobs = [f"job-{index:03}" for index in range(options.jobs)]
    writer = Writer(options.dataset)
    launches = split_evenly(options.launches, options.runs)
    for index in range(options.runs):
        # Each job runs equally often on each day.
        job = index % options.jobs
        day = (index // options.jobs) * DAYS // max(1, -(-options.runs // options.jobs))
        run = Run(base.runs[job % len(base.runs)], random, launches[index])
        run.finish(f"{options.seed:08x}{index:024x}", jobs[job], day, random.integers(options.machines), options)
        writer.add(run, jobs[job], day)
    if options.slow_machine and base.examination is not None:
        for day in EXAMINED_DAYS:
            writer.add_examination(base.examination, day, is_latest=day == EXAMINED_DAYS[-1])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("base", type=pathlib.Path, help="a dataset of real recordings")
    parser.add_argument("dataset", type=pathlib.Path, help="the directory to create")
    parser.add_argument("--runs", type=int, default=200 * DAYS)
    parser.add_argument("--launches", type=int, default=1_000_000, help="launches of all runs together")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--machines", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    regression = f"every second job starts git {ADDED_LAUNCHES} more times from day {CHANGED_DAY} on"
    parser.add_argument("--regression", action="store_true", help=regression)
    parser.add_argument("--slow-machine", action="store_true", help="launches cost more on machine-07, on which `spawnscope doctor` ran")
    parser.add_argument("--load", action="store_true", help=f"all machines have more load from day {CHANGED_DAY} on")
    options = parser.parse_args()
    if options.dataset.exists():
        sys.exit(f"{options.dataset} already exists: name a directory to create")
    return options


def split_evenly(total, parts):
    """Splits a number into parts that differ by at most 1, the larger ones first."""
    return [total // parts + (index < total % parts) for index in range(parts)]


class Base:
    """The runs of the real dataset, each with its rows of all tables."""

    def __init__(self, directory):
        tables = {name: read(directory / name) for name in TABLES}
        self.examination = read(directory / "doctor") if (directory / "doctor").exists() else None
        self.runs = []
        for run in sorted(tables["runs"]["run"].to_pylist()):
            rows = {name: table.filter(compute.equal(table["run"], run)) for name, table in tables.items()}
            if rows["launches"].num_rows > 1:
                self.runs.append(rows)
        if not self.runs:
            sys.exit(f"{directory} has no run with launches")


def read(directory):
    """Reads all rows of a table. The schemas of its files are merged."""
    files = sorted(directory.glob("date=*/job=*/*.parquet"))
    if not files:
        sys.exit(f"{directory} has no Parquet files: BASE must be a dataset")
    return pyarrow.concat_tables([parquet.ParquetFile(file).read() for file in files], promote_options="default")


class Run:
    """A resampled run."""

    def __init__(self, base, random, count):
        self.base, self.random = base, random
        chosen = numpy.sort(random.integers(base["launches"].num_rows, size=count))
        launches = base["launches"].take(pyarrow.array(chosen))
        factor = random.lognormal(0, 0.05) * random.lognormal(0, 0.1, size=count)
        for name in (*PHASES, "total_ns", "cpu_ns", "critical_ns", "critical_tax_ns", "critical_cpu_wait_ns"):
            launches = scaled(launches, name, factor)
        numbers = numpy.arange(1, count + 1)
        launches = with_column(launches, "launch", numbers)
        # Resampled launches do not form a tree.
        launches = with_column(launches, "parent", pyarrow.nulls(count, pyarrow.int64()))
        self.tables = {
            "launches": launches,
            "execs": self.execs(chosen, numbers),
            "waits": self.scaled_sums("waits", count, ("count", *durations(base["waits"]))),
            "advice": self.scaled_sums("advice", count, ("launches", *durations(base["advice"]))),
        }

    def execs(self, chosen, numbers):
        """Returns the execs of the chosen launches, with the launches' new numbers."""
        execs = self.base["execs"]
        owners = execs["launch"].to_numpy()
        order = numpy.argsort(owners, kind="stable")
        ids = self.base["launches"]["launch"].to_numpy()[chosen]
        first, last = (numpy.searchsorted(owners[order], ids, side=side) for side in ("left", "right"))
        counts = last - first
        within = numpy.arange(counts.sum()) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
        taken = execs.take(pyarrow.array(order[numpy.repeat(first, counts) + within]))
        return with_column(taken, "launch", numpy.repeat(numbers, counts))

    def scaled_sums(self, name, count, columns):
        """Returns the rows of a table of sums, scaled to the number of launches."""
        table = self.base[name]
        factor = numpy.full(table.num_rows, count / self.base["launches"].num_rows * self.random.lognormal(0, 0.05))
        for column in columns:
            table = scaled(table, column, factor)
        return table

    def finish(self, run, job, day, machine, options):
        """Sets the run's name, day and machine, and injects the regression and the slowness."""
        if options.regression and day + 1 >= CHANGED_DAY and int(job[-3:]) % 2 == 0:
            self.add_launches(run)
        if options.load and day + 1 >= CHANGED_DAY:
            self.add_load()
        if options.slow_machine and machine == SLOW_MACHINE:
            self.slow_down()
        self.tables["callers"] = self.callers()
        self.tables["runs"] = self.row_of_run(day, machine)
        for name, table in self.tables.items():
            self.tables[name] = with_column(table, "run", pyarrow.array([run] * table.num_rows, table["run"].type))

    def add_launches(self, run):
        """Adds a line that starts `git rev-parse`: copies of launches, with a call site of their own."""
        launches = self.tables["launches"]
        added = launches.take(pyarrow.array(self.random.integers(launches.num_rows, size=ADDED_LAUNCHES)))
        added = with_column(added, "launch", launches.num_rows + numpy.arange(1, ADDED_LAUNCHES + 1))
        added = with_column(added, "command", pyarrow.array(["git"] * ADDED_LAUNCHES))
        added = with_column(added, "caller", numpy.full(ADDED_LAUNCHES, self.new_caller()))
        added = with_column(added, "critical_ns", self.random.integers(1_500_000, 2_500_000, size=ADDED_LAUNCHES))
        added = with_column(added, "critical_cpu_wait_ns", numpy.zeros(ADDED_LAUNCHES))
        self.tables["launches"] = pyarrow.concat_tables([launches, added])

    def new_caller(self):
        return 1 + max(self.base["callers"]["caller"].to_pylist(), default=0)

    def slow_down(self):
        launches = self.tables["launches"]
        factor = numpy.full(launches.num_rows, SLOWNESS)
        for name in SLOWED_PHASES:
            launches = scaled(launches, name, factor)
        self.tables["launches"] = launches

    def add_load(self):
        launches = self.tables["launches"]
        count = launches.num_rows
        factor = LOAD_FACTOR * self.random.lognormal(0, 0.2) * self.random.lognormal(0, 0.3, size=count)
        wait = self.random.exponential(LOAD_WAIT_NS, size=count) * self.random.integers(2, size=count)
        for name in (*PHASES, "total_ns", "critical_ns", "critical_cpu_wait_ns"):
            launches = scaled(launches, name, factor)
        for name in ("queue_ns", "total_ns", "critical_ns", "critical_cpu_wait_ns"):
            launches = scaled(launches, name, numpy.ones(count), wait)
        self.tables["launches"] = launches

    def callers(self):
        """Returns the call sites, with the sums of their launches."""
        sites = self.base["callers"]
        launches = self.tables["launches"]
        if compute.any(compute.equal(launches["caller"], self.new_caller())).as_py():
            unknown = dict.fromkeys(("function", "module", "program", "text", "tax_ns"))
            new = unknown | {"language": "bash", "file": "/ci/build.sh", "line": 41, "run": "", "caller": self.new_caller()}
            row = [{name: new.get(name, 0) for name in sites.column_names}]
            sites = pyarrow.concat_tables([sites, pyarrow.Table.from_pylist(row, sites.schema)])
        aggregates = [("launch", "count"), ("total_ns", "sum"), ("critical_ns", "sum")]
        sums = {row["caller"]: row for row in launches.group_by("caller").aggregate(aggregates).to_pylist()}
        site_sums = [sums.get(caller, {}) for caller in sites["caller"].to_pylist()]
        for column, name in (("launches", "launch_count"), ("total_ns", "total_ns_sum"), ("critical_ns", "critical_ns_sum")):
            sites = with_column(sites, column, pyarrow.array([row.get(name) or 0 for row in site_sums]))
        return sites

    def row_of_run(self, day, machine):
        launches = self.tables["launches"]
        started = FIRST_DAY + datetime.timedelta(days=int(day), seconds=int(self.random.integers(86_400)))
        ratio = launches.num_rows / self.base["launches"].num_rows
        row = self.base["runs"].to_pylist()[0]
        row |= {
            "started": started,
            "commit": f"{0xC0FFEE00 + int(day):08x}" + "0" * 32,
            "host": f"machine-{machine:02}",
            "branch": "main" if machine % 2 else "topic",
            "launches": launches.num_rows,
            "lost_events": 0,
            "wall_ns": int(row["wall_ns"] * ratio),
            "tax_ns": int(sum(compute.sum(launches[name]).as_py() or 0 for name in PHASES if name != "run_ns")),
            "critical_tax_ns": compute.sum(launches["critical_tax_ns"]).as_py(),
        }
        return pyarrow.Table.from_pylist([row], self.base["runs"].schema)


def durations(table):
    return [name for name in table.column_names if name.endswith("_ns")]


def scaled(table, name, factor, added=0):
    """Returns the table with a column multiplied by a factor for each row, and a number added. Unknown values stay unknown."""
    column = table[name].combine_chunks()
    values = column.to_numpy(zero_copy_only=False).astype(float) * factor + added
    unknown = numpy.isnan(values)
    values = numpy.rint(numpy.nan_to_num(values)).astype(numpy.int64)
    return with_column(table, name, pyarrow.array(values, mask=unknown))


def with_column(table, name, values):
    """Returns the table with new values in a column, which keeps its type."""
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    if not isinstance(values, pyarrow.Array):
        values = pyarrow.array(values)
    return table.set_column(index, field, values.cast(field.type))


class Writer:
    """Writes runs as `spawnscope export` does: a file for each run and table, the row in `runs` last."""

    def __init__(self, directory):
        self.directory = directory

    def add(self, run, job, day):
        date = (FIRST_DAY + datetime.timedelta(days=int(day))).date().isoformat()
        name = run.tables["runs"]["run"][0].as_py()
        for table in sorted(TABLES, key=lambda table: table == "runs"):
            directory = self.directory / table / f"date={date}" / f"job={job}"
            directory.mkdir(parents=True, exist_ok=True)
            parquet.write_table(run.tables[table], directory / f"{name}.parquet", compression="zstd", row_group_size=1 << 20)

    def add_examination(self, rows, day, is_latest):
        """Adds a result of `spawnscope doctor` on the slow machine. An older result has only the last finding."""
        rows = rows if is_latest else with_column(rows.slice(rows.num_rows - 1), "place", [1])
        examined = FIRST_DAY + datetime.timedelta(days=day)
        name = f"{day:032x}"
        for column, value in (("examination", name), ("host", f"machine-{SLOW_MACHINE:02}"), ("examined", examined)):
            rows = with_column(rows, column, [value] * rows.num_rows)
        directory = self.directory / "doctor" / f"date={examined.date().isoformat()}" / "job=__HIVE_DEFAULT_PARTITION__"
        directory.mkdir(parents=True)
        parquet.write_table(rows, directory / f"{name}.parquet", compression="zstd")


if __name__ == "__main__":
    main()
