"""`fleet prune`: deletes the recordings of old days. The row in `runs` makes a recording part of the dataset, so it goes first:
a query that runs meanwhile, or a prune that is interrupted, never sees a run without its launches."""

import os
from contextlib import suppress
from datetime import datetime, timedelta, timezone

from .dataset import DOCTOR, RECORDING_TABLES, date_of
from .words import counted


def prune(dataset, days, is_trial):
    """Deletes the recordings and examinations that began more than `days` days before today, UTC. Returns the line to print."""
    first_kept = (datetime.now(timezone.utc).date() - timedelta(days=days)).isoformat()
    recordings, files = 0, 0
    for table in (*reversed(RECORDING_TABLES), DOCTOR):
        old = [file for file in dataset.files(table) if (date_of(file) or first_kept) < first_kept]
        recordings += len(old) if table == "runs" else 0
        files += len(old)
        if not is_trial:
            delete(dataset, old)
    found = f"{counted(recordings, 'recording', 'recordings')} from before {first_kept} ({counted(files, 'file', 'files')})"
    return f"{'Would delete' if is_trial else 'Deleted'} {found}.\n"


def delete(dataset, files):
    if dataset.filesystem:
        if files:
            dataset.filesystem.rm(files)
        return
    for file in files:
        # Another prune may run at the same time, and an export may add a file to a folder.
        with suppress(FileNotFoundError):
            os.remove(file)
        remove_empty(os.path.dirname(file), dataset.root)


def remove_empty(folder, root):
    """Removes the folders of a job and of a day if they are empty, but not the table's."""
    with suppress(OSError):
        while os.path.dirname(folder) != root:
            os.rmdir(folder)
            folder = os.path.dirname(folder)
