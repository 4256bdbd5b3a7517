"""Copies the recordings of a dataset that another one lacks. A file name is never used again for other contents, so several machines may
push to the same store at once, and pushing may be repeated. Compact files are copied as one file for each recording, because the target
may have some of their recordings."""

import tempfile

from . import Failure
from .compact import Copier
from .dataset import COMPACTED, DOCTOR, TABLES, run_of
from .engine import connect
from .words import count, counted


def push(source, target):
    """Copies the missing files, and returns the message to print. `runs` is the last table, so that a recording becomes part of the
    dataset only after all of its other tables."""
    copied = present = 0
    compacted = target.runs() - {run_of(file) for file in target.listing("runs")}
    with tempfile.TemporaryDirectory(prefix="spawnscope-fleet.") as spill, connect(source, spill) as connection:
        copier = Copier(source, connection, spill)
        for table in TABLES:
            known = {target.relative(file) for file in target.listing(table)}
            for name, contents, file in contained(source, table, copier):
                if name in known or (run_of(name) in compacted and table != DOCTOR):
                    present += 1
                    continue
                try:
                    target.write(f"{target.root}/{name}", contents(), like=None if source.filesystem else file)
                except Exception as error:  # of any of two file systems
                    raise Failure(f"failed to copy {file} to {target.name}: {error}") from error
                copied += 1
    if not copied:
        return f"nothing to copy: {target.name} already has the {counted(present, 'file', 'files')}\n"
    were = "was" if present == 1 else "were"
    return f"copied {counted(copied, 'file', 'files')} to {target.name}; {count(present)} more {were} already there\n"


def contained(source, table, copier):
    """Yields the name of each file of a recording, a function that reads it, and the file that it is in."""
    for file in source.files(table):
        if not COMPACTED.search(file):
            yield source.relative(file), lambda: source.read(file), file
            continue
        for run in sorted(source.compacted_runs(file)):
            yield f"{table}/{source.folder(file)}/{run}.parquet", lambda: copier.run(file, run), file
