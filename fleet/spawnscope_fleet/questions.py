"""The questions: SQL files that any engine runs, and the values of their parameters.

The files use only what DuckDB, ClickHouse and Spark have in common:
- `1e0` is a floating-point number everywhere. `1.0` is a decimal in Spark.
- `NULLS LAST` is always written, because the default differs.
- Columns in subqueries have an explicit `AS`. Otherwise, ClickHouse names `m.job` with its qualifier.
- No alias is the name of another column in the same SELECT. ClickHouse would use the alias.
- Quantiles are written with ROW_NUMBER, since the functions for them differ.
- A query on launches is referred to once, because an engine may compute a `WITH` query again for each reference."""

import re
from pathlib import Path

DIRECTORY = Path(__file__).parent / "sql"
# The labels that have a column in SQL. All others are in the JSON object `runs.labels`.
LABEL_COLUMNS = {
    "target": "l.target",
    "crate": "l.crate",
    "directory": "l.directory",
    "package": "l.package",
    "test": "l.test",
    "cmake": "l.cmake_target",
    "job": "r.job",
    "host": "r.host",
    "branch": "r.branch",
    "image": "r.image",
    "commit": "r.commit",
}


def question(name, **parameters):
    """Returns the SQL of a question, with a value for each `${parameter}`. Comments mention parameters, so they go first."""
    lines = (DIRECTORY / f"{name}.sql").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("--"))
    return re.sub(r"\$\{(\w+)\}", lambda found: str(parameters[found[1]]), text)


def label_column(name):
    """Returns the SQL of a label's value."""
    if name in LABEL_COLUMNS:
        return LABEL_COLUMNS[name]
    # A JSON pointer takes any name; a path does not take a quotation mark after a backslash.
    key = name.replace("~", "~0").replace("/", "~1").replace("'", "''")
    return f"json_extract_string(r.labels, '/{key}')"
