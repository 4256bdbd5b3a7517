#!/usr/bin/env python3
"""Checks that three engines give the same answers: spawnscope-fleet (DuckDB), ClickHouse (chdb) and Spark, which runs on a local cluster of
two workers and on a standalone master with two workers.

    fleet/tests/engines_agree.py [--jobs 40] [--launches 300000] [--store]

Makes a dataset of a fortnight, with a line that became expensive on day 9 and a slow machine. All engines must find these two, and nothing else.
Then jobs get odd names or none, some files lack a column, and the files of a job are merged: the engines must still agree. With --store, the same
questions are asked to a dataset in an object store, on the loopback device; Spark downloads 600 MB for that.
Needs pyarrow, numpy, chdb, pyspark and Java, which scripts/fleet-environment.sh installs.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
from urllib.parse import quote

import engines
import pyarrow
import pyarrow.parquet as parquet
from spawnscope_fleet.dataset import TABLES
from spawnscope_fleet.questions import question

HERE = pathlib.Path(__file__).resolve().parent
SINCE = "TIMESTAMP '2026-11-09 00:00:00'"
ROWS = "1000"
# Each question, the values of its parameters, and the same as arguments of spawnscope-fleet.
QUESTIONS = (
    ("lines", {"order": "critical_ns"}, ["top", "--by", "line"]),
    ("lines", {"order": "saving_ns"}, ["top", "--by", "line", "--order", "saving"]),
    ("commands", {"order": "launches"}, ["top", "--by", "command", "--order", "count"]),
    ("labels", {"order": "critical_ns", "label": "r.job"}, ["top", "--by", "label:job"]),
    ("trend", {}, ["trend"]),
    ("advice", {}, ["advice"]),
    ("regressions", {"since": SINCE}, ["regressions", "--since", "2026-11-09"]),
    ("machines", {}, ["machines"]),
    ("doctor", {}, ["doctor"]),
)

JOBS = next(index for index, (name, _, _) in enumerate(QUESTIONS) if name == "labels")
ODD_JOB = "unit tests/ü"


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="spawnscope-fleet.") as directory:
        dataset = pathlib.Path(directory, "dataset")
        generate = [sys.executable, HERE.parent / "generate.py", HERE / "base", dataset, "--regression", "--slow-machine"]
        sizes = ["--jobs", str(options.jobs), "--runs", str(options.jobs * 14), "--launches", str(options.launches)]
        subprocess.run([*generate, *sizes], check=True)
        expected = [fleet_answer(dataset, words) for _, _, words in QUESTIONS]
        check_only_injected_is_found(expected)
        print(f"spawnscope-fleet: {len(QUESTIONS)} questions answered")
        compare("ClickHouse", engines.ClickHouse(dataset), expected)
        compare("Spark, local-cluster[2,1,1024]", engines.Spark(dataset, "local-cluster[2,1,1024]"), expected)
        with standalone(directory) as master:
            compare(f"Spark, {master} with two workers", engines.Spark(dataset, master), expected)
        make_odd(dataset)
        expected = [fleet_answer(dataset, words) for _, _, words in QUESTIONS]
        names = {row["label"] for row in expected[JOBS]}
        assert None in names and ODD_JOB in names, names
        compare("ClickHouse, odd names and files", engines.ClickHouse(dataset), expected)
        compare("Spark, odd names and files", engines.Spark(dataset, "local[2]"), expected)
        if options.store:
            ask_store(dataset, expected)


def make_odd(dataset):
    """Gives one job an odd name and takes that of another, drops a column of some files, and merges the files of days."""
    for table in TABLES:
        for old, new in [("job-000", ODD_JOB), ("job-001", None)]:
            encoded = "__HIVE_DEFAULT_PARTITION__" if new is None else quote(new, safe="")
            for folder in (dataset / table).glob(f"*/job={old}"):
                folder.rename(folder.with_name(f"job={encoded}"))
    for file in (dataset / "launches").glob("date=2026-11-03/*/*.parquet"):
        table = parquet.read_table(file, partitioning=None)
        parquet.write_table(table.drop_columns(["cmake_target"]), file, compression="zstd")
    # More runs on a day, to be merged.
    for table in TABLES:
        for file in sorted((dataset / table).glob("date=2026-11-05/*/*.parquet")):
            rows = parquet.read_table(file, partitioning=None)
            if "run" in rows.column_names:
                run = f"{'f' * 31}{file.stem[-1]}"
                field = rows.schema.field("run")
                renamed = pyarrow.array([run] * rows.num_rows, field.type)
                rows = rows.set_column(rows.schema.get_field_index("run"), field, renamed)
                parquet.write_table(rows, file.with_name(f"{run}.parquet"), compression="zstd")
    done = subprocess.run([sys.executable, "-m", "spawnscope_fleet", "compact", dataset], check=True, capture_output=True, text=True).stdout
    assert not done.startswith("Merged 0 "), done


def ask_store(dataset, expected):
    server = subprocess.Popen([sys.executable, HERE / "store.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    store = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    try:
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
        os.environ.update(keys | {"AWS_ENDPOINT_URL": store, "AWS_ALLOW_HTTP": "true"})
        subprocess.run([sys.executable, "-m", "spawnscope_fleet", "push", dataset, "s3://builds/fleet"], check=True)
        compare("ClickHouse on a store", engines.ClickHouse("builds/fleet", store), expected)
        compare("Spark on a store", engines.Spark("builds/fleet", "local[2]", store), expected)
    finally:
        server.communicate()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--launches", type=int, default=300_000)
    parser.add_argument("--store", action="store_true")
    return parser.parse_args()


def fleet_answer(dataset, words):
    """Returns the answer of spawnscope-fleet."""
    rows = [] if words[0] == "sql" else ["--rows", ROWS]
    answer = json.loads(subprocess.run([sys.executable, "-m", "spawnscope_fleet", *words, *rows, "--json", dataset], check=True, capture_output=True).stdout)
    # `machines --json` adds the answer of doctor.sql to each row, and `regressions` that of first.sql.
    added = ("doctor", "first_job", "first_commit", "first_run", "first_started")
    return [{column: value for column, value in row.items() if column not in added} for row in answer]


def check_only_injected_is_found(answers):
    """Checks that the injected line and the slow machine are found, and nothing else."""
    by_name = {name: answer for (name, _, _), answer in zip(QUESTIONS, answers)}
    changed = [(row["file"], row["line"], row["command"]) for row in by_name["regressions"]]
    assert changed == [("/ci/build.sh", 41, "git")], changed
    slow = [row["host"] for row in by_name["machines"] if row["is_outlier"]]
    assert slow == ["machine-07"], slow
    examined = {(row["host"], row["date"]) for row in by_name["doctor"]}
    assert examined == {("machine-07", "2026-11-13")}, examined


def compare(engine, connection, expected):
    started = time.monotonic()
    try:
        for (name, parameters, _), wanted in zip(QUESTIONS, expected):
            found = connection.ask(question(name, rows=ROWS, **parameters))
            assert len(found) == len(wanted), f"{engine}, {name}: {len(found)} rows instead of {len(wanted)}"
            for index, (row, other) in enumerate(zip(found, wanted)):
                assert row.keys() == other.keys(), f"{engine}, {name}: columns {list(row)} instead of {list(other)}"
                for column in row:
                    difference = f"{row[column]!r} instead of {other[column]!r}"
                    assert is_same(row[column], other[column]), f"{engine}, {name}, row {index}, {column}: {difference}"
    finally:
        connection.close()
    print(f"{engine}: the same answers in {time.monotonic() - started:.0f} s")


def is_same(one, other):
    """Compares values. The last digits of sums of floating-point numbers depend on the order; all other values are exact."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return one == other


@contextlib.contextmanager
def standalone(directory):
    """Starts a standalone master with two workers from the package pyspark, on the loopback device."""
    import pyspark

    home = pathlib.Path(pyspark.__file__).parent
    # No process may listen on another device, and workers must write below the temporary directory.
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1", "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    port, ui = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    launch = lambda *words: subprocess.Popen(
        [home / "bin" / "spark-class", *words], env=environment, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    started = [launch("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))]
    try:
        wait_for(port)
        for number in range(2):
            words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--work-dir", f"{directory}/worker-{number}"]
            started.append(launch("org.apache.spark.deploy.worker.Worker", *words, "--webui-port", str(free_port()), master))
        yield master
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(timeout=30)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    sys.exit("Spark's master does not answer within 60 s")


if __name__ == "__main__":
    main()
