"""`fleet compact`: merges the files of a day and job. A question opens each file, so a job that runs hundreds of times a day makes questions
slow. Today's files stay, because the next export would make the merge obsolete. How readers tell what counts meanwhile is in dataset.py."""

import os
import tempfile
from datetime import datetime, timezone

import duckdb

from . import Failure
from .dataset import COMPACTED, COMPACTED_LIST, RECORDING_TABLES, date_of, run_of
from .engine import connect, first_paragraph, literal
from .words import counted

VERSION_KEY = "spawnscope.dataset_version"


def compact(dataset):
    """Merges files, and returns the lines to print."""
    # `runs` first: a recording with a row there has all of its other files.
    tables = [Table(dataset, table) for table in reversed(RECORDING_TABLES)]
    today = datetime.now(timezone.utc).date().isoformat()
    merged, failures = 0, []
    with tempfile.TemporaryDirectory(prefix="spawnscope-fleet.") as spill, connect(dataset, spill) as connection:
        copier = Copier(dataset, connection, spill)
        for folder, files in tables[0].counting.items():
            if len(files) > 1 and date_of(files[0]) < today:
                try:
                    merged += merge(dataset, copier, tables, folder)
                except (duckdb.Error, Failure) as error:
                    failures.append(f"Left as they are: the files of {folder}: {first_paragraph(error)}\n")
    return f"Merged {counted(merged, 'file', 'files')} of {dataset.name}.\n" + "".join(failures)


class Table:
    """The files of a table by folder: all of them, and those that count."""

    def __init__(self, dataset, name):
        self.name = name
        self.listed, self.counting = {}, {}
        for groups, files in ((self.listed, dataset.listing(name)), (self.counting, dataset.files(name))):
            for file in files:
                groups.setdefault(dataset.folder(file), []).append(file)


def merge(dataset, copier, tables, folder):
    """Merges the files of a folder in all tables. Returns their number."""
    runs = set().union(*map(dataset.runs_of, tables[0].counting[folder]))
    is_merged = lambda file: bool(COMPACTED.search(file)) or run_of(file) in runs
    sources = {table.name: list(filter(is_merged, table.counting.get(folder, []))) for table in tables}
    # Nothing is written if a file cannot be read.
    contents = {name: copier.merged(files) for name, files in sources.items() if files}
    listed = {table.name: table.listed.get(folder, []) for table in tables}
    used = [pattern.search(file) for files in listed.values() for file in files for pattern in (COMPACTED, COMPACTED_LIST)]
    number = f"{1 + max((int(found[1]) for found in used if found), default=0):06}"
    names = "".join(f"{run}\n" for run in sorted(runs))
    dataset.write(f"{dataset.root}/runs/{folder}/.compacted-{number}", names.encode(), like=sources["runs"][0])
    for name in RECORDING_TABLES:
        if name in contents:
            dataset.write(f"{dataset.root}/{name}/{folder}/compact-{number}.parquet", contents[name], like=sources[name][0])
        dataset.delete(list(filter(is_merged, listed[name])))
    dataset.delete(list(filter(COMPACTED_LIST.search, listed["runs"])))
    return sum(map(len, sources.values()))


class Copier:
    """Reads rows of files as the contents of a new file."""

    def __init__(self, dataset, connection, directory):
        self.dataset, self.connection = dataset, connection
        self.temporary = os.path.join(directory, "rows.parquet")

    def merged(self, files):
        """Returns a file with the rows of all files."""
        return self.copied(files, "TRUE")

    def run(self, file, run):
        """Returns a file with the rows of one recording in a compact file."""
        return self.copied([file], f"run = {literal(run)}")

    def copied(self, files, condition):
        names = ", ".join(map(literal, files))
        asked = f"SELECT DISTINCT decode(value) FROM parquet_kv_metadata([{names}]) WHERE decode(key) = '{VERSION_KEY}'"
        versions = sorted(row[0] for row in self.connection.execute(asked).fetchall())
        if len(versions) > 1:
            raise Failure(f"they have several versions of the tables: {', '.join(versions)}")
        metadata = f", KV_METADATA {{'{VERSION_KEY}': {literal(versions[0])}}}" if versions else ""
        rows = f"SELECT * FROM read_parquet([{names}], union_by_name = true, hive_partitioning = false) WHERE {condition}"
        self.connection.execute(f"COPY ({rows}) TO {literal(self.temporary)} (FORMAT parquet, COMPRESSION zstd{metadata})")
        with open(self.temporary, "rb") as opened:
            return opened.read()
