#!/usr/bin/env python3
"""Reads a dataset with pyarrow and with DuckDB. Prints as JSON, for each of them, the number of rows of each table, and the partition, launches
and launch tax of each run; both must agree. Exits with 2 if one of them is not installed."""

import json
import sys

try:
    import duckdb
    import pyarrow.dataset
except ImportError as error:
    print(f"dataset_check: {error}; pip install pyarrow duckdb", file=sys.stderr)
    sys.exit(2)

TABLES = ["runs", "launches", "execs", "callers", "waits", "advice"]
TAX = "create_ns queue_ns setup_ns exec_ns load_ns teardown_ns reap_ns".split()


def summarize_with_pyarrow(root):
    tables = {name: pyarrow.dataset.dataset(f"{root}/{name}", partitioning="hive").to_table() for name in TABLES}
    sums = {}
    for row in tables["launches"].to_pylist():
        launches, tax = sums.get(row["run"], (0, 0))
        sums[row["run"]] = (launches + 1, tax + sum(row[phase] or 0 for phase in TAX))
    runs = tables["runs"].to_pylist()
    return {
        "rows": {name: table.num_rows for name, table in tables.items()},
        "runs": sorted([row["job"], str(row["date"]), row["started"].year, *sums[row["run"]]] for row in runs),
    }


def summarize_with_duckdb(root):
    read = lambda name: f"read_parquet('{root}/{name}/**/*.parquet', hive_partitioning = true, hive_types_autocast = false)"
    rows = {name: duckdb.sql(f"SELECT count(*) FROM {read(name)}").fetchall()[0][0] for name in TABLES}
    tax = " + ".join(f"coalesce({phase}, 0)" for phase in TAX)
    runs = duckdb.sql(f"""
        SELECT job, date, year(started), count(*), CAST(sum({tax}) AS BIGINT)
        FROM {read("runs")} AS runs JOIN {read("launches")} AS launch USING (run, job, date)
        GROUP BY run, job, date, started ORDER BY ALL""").fetchall()
    return {"rows": rows, "runs": [list(row) for row in runs]}


def main():
    [root] = sys.argv[1:]
    print(json.dumps({"pyarrow": summarize_with_pyarrow(root), "duckdb": summarize_with_duckdb(root)}))


if __name__ == "__main__":
    main()
