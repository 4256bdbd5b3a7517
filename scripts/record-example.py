#!/usr/bin/env python3
"""Records `bash examples/unpack.sh 40` and writes its rows to crates/spawnscope/tests/recordings/unpack.sql, from which the
documents, their picture and many tests are made (scripts/documents.sh). Needs root, because only eBPF records everything.
Usage: record-example.py SPAWNSCOPE"""

import datetime
import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples/unpack.sh"
ROWS = ROOT / "crates/spawnscope/tests/recordings/unpack.sql"
# Stands for the directory of the checkout, whose name is of no interest.
DIRECTORY = b"/srv/package"
# Checksums depend on the replaced values, and labels describe the machine.
LEFT_OUT = {"checksum", "label"}
RECORDINGS = 10


def main():
    spawnscope = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(prefix="spawnscope-example.") as work:
        recordings = [recording(spawnscope, f"{work}/{number}.db") for number in range(RECORDINGS)]
        complete = [database for database in recordings if not lost_events(database)]
        if not complete:
            sys.exit("each recording lost events: try again on a quieter machine")
        # Other processes disturb the shortest run least.
        database = min(complete, key=wall)
        ROWS.write_text(head(database) + "".join(statements(database)))


def recording(spawnscope, file):
    record = [spawnscope, "record", "--quiet", "--collector", "ebpf", "-o", file, "--", "bash", "examples/unpack.sh", "40"]
    # Without the user's variables, the recording does not depend on them.
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    subprocess.run(record, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return sqlite3.connect(file)


def lost_events(database):
    return database.execute("SELECT sum(events) FROM lost").fetchone()[0]


def wall(database):
    return database.execute("SELECT wall_ns FROM recording").fetchone()[0]


def head(database):
    kernel, cpus = database.execute("SELECT kernel, cpus FROM recording").fetchone()
    checksum = hashlib.sha256(SCRIPT.read_bytes()).hexdigest()
    return (
        f"-- A recording of `bash examples/unpack.sh 40` by scripts/record-example.py: {cpus} CPUs, "
        f"Linux {short(kernel)}, {datetime.date.today().isoformat()}.\n"
        "-- Documents show what spawnscope prints for it. Names of the machine and of the directory are replaced.\n"
        f"-- The sha256sum of the script: {checksum}\n"
    )


def short(kernel):
    return kernel.split("-")[0]


def statements(database):
    """Yields an INSERT statement for each table with rows, in the order of the schema."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")]
    for table in tables:
        rows = database.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
        if rows and table not in LEFT_OUT:
            columns = [column for (_, column, *_) in database.execute(f"PRAGMA table_info({table})")]
            lines = [f"    ({', '.join(value(table, *pair) for pair in zip(columns, row))})" for row in rows]
            yield f"INSERT INTO {table} VALUES\n" + ",\n".join(lines) + ";\n"


def value(table, column, content):
    """Formats a value in SQL, without what identifies the machine."""
    if table == "recording" and column == "hostname":
        return "'host'"
    if table == "recording" and column == "kernel":
        return f"'{short(content)}'"
    if content is None:
        return "NULL"
    if isinstance(content, bytes):
        return blob(DIRECTORY if content == os.fsencode(ROOT) else content)
    if isinstance(content, str):
        return quoted(content)
    return str(content)


def blob(content):
    """Formats bytes as text where they are text: NUL separates arguments, and other bytes are rare."""
    try:
        parts = content.decode().split("\0")
    except UnicodeDecodeError:
        return f"x'{content.hex()}'"
    texts = " || char(0) || ".join(quoted(part) for part in parts)
    return f"CAST({texts} AS BLOB)"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    main()
