"""Runs SQL on a dataset with DuckDB, within a bounded memory.

A dataset grows for years, so its files can have the columns of many versions, and one of thousands can be damaged. Reading the columns
of every file before the first row takes as long as the question itself. So the columns of the newest file count at first; if a query
needs another column, or another file lacks one, the columns of all files are read. A damaged file is left out with its whole recording,
counted and named: a run without its launches would be a lie."""

import datetime
import decimal
import math
import os
import re
import tempfile

import duckdb

from . import Failure
from .dataset import DOCTOR, HOW_TO_ADD, TABLES, date_of, job_of

# Operators that need more write to temporary files.
MAX_MEMORY = "640MB"
# Beyond it, the dataset is damaged as a whole, and an answer from the rest would mislead.
MAX_DAMAGED_FILES = 100
# Names of jobs and dates stay text, also if all of them look like numbers.
# Columns that questions need and that files of earlier versions lack. They are unknown there.
ADDED_COLUMNS = {"launches": {"critical_cpu_wait_ns": "BIGINT"}}
READ_OPTIONS = "hive_partitioning = true, hive_types = {'date': VARCHAR, 'job': VARCHAR}"


class Choice:
    """Which runs a question is about: dates (inclusive), jobs, branches and machines. Empty means all."""

    def __init__(self, first=None, last=None, jobs=(), branches=(), machines=()):
        self.first, self.last = first, last
        self.jobs, self.branches, self.machines = list(jobs), list(branches), list(machines)

    def has(self, table, file):
        """Whether the directories of a file are chosen. An examination by the doctor is of a machine, whichever jobs it runs."""
        date = date_of(file)
        if (self.first and date < self.first) or (self.last and date > self.last):
            return False
        return not self.jobs or table == DOCTOR or job_of(file) in self.jobs

    def condition(self, table):
        """Returns SQL that chooses rows of a table by what directories do not say."""
        chosen = [("branch", self.branches if table != DOCTOR else []), ("host", self.machines)]
        condition = " AND ".join(f"{column} IN ({', '.join(map(literal, values))})" for column, values in chosen if values)
        if condition and table not in ("runs", DOCTOR):
            return "run IN (SELECT run FROM runs)"
        return condition or "TRUE"


class Engine:
    """A dataset, ready for queries. `damaged` maps the names of damaged files to what is wrong with them."""

    def __init__(self, dataset, choice=None, reads_all_columns=False):
        self.dataset = dataset
        self.choice = choice or Choice()
        self.reads_all_columns = reads_all_columns
        self.damaged = {}
        self.spill = tempfile.TemporaryDirectory(prefix="spawnscope-fleet.")
        # The engine takes each directory KEY=VALUE of a path as a column, also those above the dataset.
        self.root = dataset.root if dataset.filesystem else os.path.join(self.spill.name, "dataset")
        if not dataset.filesystem:
            os.symlink(dataset.root, self.root)
        self.connection = connect(dataset, self.spill.name)
        self.listed = {}
        self.registered = set()
        if not self.all_files("runs"):
            raise Failure(f"the dataset {dataset.name} has no recording yet: {HOW_TO_ADD}")

    def has_doctor(self):
        return bool(self.chosen_files(DOCTOR))

    def close(self):
        self.connection.close()
        self.spill.cleanup()

    def ask(self, sql):
        """Runs one query, and returns its Answer. Other statements are refused."""
        statements = self.parse(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise Failure("only one query is run: a SELECT statement that changes nothing")
        return self.retry(lambda: self.run(sql))

    def parse(self, sql):
        try:
            return duckdb.extract_statements(sql)
        except duckdb.Error as error:
            raise Failure(first_paragraph(error)) from None

    def run(self, sql):
        # Listing and opening the files of other tables would take as long as a small question.
        for table in TABLES:
            if table not in self.registered and re.search(rf"\b{table}\b", sql, re.IGNORECASE):
                self.register(table)
        cursor = self.connection.execute(sql)
        columns = [column[0] for column in cursor.description]
        return Answer(columns, [dict(zip(columns, map(plain, row))) for row in cursor.fetchall()])

    def retry(self, question):
        """Asks again with the columns of all files, and then without each damaged file that the engine names."""
        while True:
            try:
                return question()
            except duckdb.Error as error:
                if self.reads_all_columns:
                    self.leave_out(error)
                self.reads_all_columns = True
                self.registered.clear()

    def leave_out(self, error):
        message = self.reason(error)
        if isinstance(error, duckdb.OutOfMemoryException):
            raise Failure(f"the question needs more than {MAX_MEMORY} of memory: choose fewer days with --from, or jobs with --job") from None
        # The rest of the error quotes the query, and so names innocent files.
        file = next((file for file in self.opened() if self.dataset.relative(file) in message), None)
        if file and re.search(r"permission denied|access denied|forbidden", message, re.IGNORECASE):
            raise Failure(f"failed to read {file}: permission denied") from None
        if file and self.is_gone(file):
            self.listed.clear()
        if not file or file in self.all_files(self.dataset.relative(file).split("/", 1)[0]):
            self.damaged |= {self.dataset.relative(file): message} if file else self.probe(error)
        if len(self.damaged) > MAX_DAMAGED_FILES:
            name, message = next(iter(self.damaged.items()))
            raise Failure(f"more than {MAX_DAMAGED_FILES} files are damaged, such as {name}: {message}") from None
        self.registered.clear()

    def reason(self, error):
        return first_paragraph(error).replace(self.root, self.dataset.name.rstrip("/"))

    def opened(self):
        """Returns the chosen files of the tables that questions have opened."""
        return [file for table in self.listed for file in self.chosen_files(table)]

    def probe(self, error):
        """Reads all files, because the engine does not say which one it failed to read. Returns those that are damaged."""
        found = {}
        # What is wrong with the query, or with a value that it computes, is no matter of files.
        if not isinstance(error, (duckdb.ProgrammingError, duckdb.DataError)):
            for file in self.opened():
                try:
                    self.connection.execute(f"SELECT MIN(HASH(COLUMNS(*))) FROM read_parquet({literal(file)})").fetchall()
                except duckdb.Error as damage:
                    found[self.dataset.relative(file)] = self.reason(damage)
        if not found:
            raise Failure(self.reason(error)) from None
        return found

    def is_gone(self, file):
        """Whether a file was deleted after it was listed, by `prune` or `compact`."""
        filesystem = self.dataset.filesystem
        return not (filesystem.exists(file) if filesystem else os.path.exists(file))

    def all_files(self, table):
        if table not in self.listed:
            self.listed[table] = self.dataset.files(table)
        return self.listed[table]

    def chosen_files(self, table):
        damaged = {name.split("/", 1)[1] for name in self.damaged}
        return [file for file in self.all_files(table) if self.choice.has(table, file) and self.dataset.relative(file).split("/", 1)[1] not in damaged]

    def register(self, table):
        """Makes a view of the chosen files of a table. Without any, it has the columns of the table, and no row."""
        files = self.chosen_files(table)
        condition = self.choice.condition(table)
        if "FROM runs" in condition and "runs" not in self.registered:
            self.register("runs")
        if not files:
            if table == "runs":
                raise Failure("no run is left: the dataset has no run of these days and jobs, or their files are damaged")
            files, condition = [file for file in self.all_files(table) if self.dataset.relative(file) not in self.damaged][:1], "FALSE"
        if files:
            newest_first = ", ".join(literal(f"{self.root}/{self.dataset.relative(file)}") for file in reversed(files))
            source = f"read_parquet([{newest_first}], union_by_name = {self.reads_all_columns}, {READ_OPTIONS})"
            known = {row[0] for row in self.connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()} if table in ADDED_COLUMNS else set()
            added = "".join(f", NULL::{kind} AS {name}" for name, kind in ADDED_COLUMNS.get(table, {}).items() if name not in known)
            self.connection.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT *{added} FROM {source} WHERE {condition}")
        self.registered.add(table)


def connect(dataset, spill):
    """Returns a connection that reads the files of a dataset, with a directory for what does not fit in memory."""
    connection = duckdb.connect(config={"memory_limit": MAX_MEMORY, "temp_directory": spill})
    connection.execute("SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false")
    if dataset.filesystem:
        connection.register_filesystem(dataset.filesystem)
    return connection


class Answer:
    """Rows of values under named columns. None is unknown."""

    def __init__(self, columns=(), rows=()):
        self.columns, self.rows = list(columns), rows if isinstance(rows, dict) else list(rows)


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def plain(value):
    """Returns a value as JSON has it: times as text, unknown and infinite numbers as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def first_paragraph(error):
    """Returns what is wrong, without the engine's hints and the query."""
    return re.sub(r"\s+", " ", str(error).split("\n\n")[0]).strip()
