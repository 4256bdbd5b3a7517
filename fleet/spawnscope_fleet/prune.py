"""`fleet prune`: deletes the recordings of old days. The row in `runs` makes a recording part of the dataset, so it goes first:
a query that runs meanwhile, or a prune that is interrupted, never sees a run without its launches."""

from datetime import datetime, timedelta, timezone

from .dataset import DOCTOR, RECORDING_TABLES, date_of
from .words import counted


def prune(dataset, days, is_trial):
    """Deletes the recordings and examinations that began more than `days` days before today, UTC. Returns the line to print."""
    first_kept = (datetime.now(timezone.utc).date() - timedelta(days=days)).isoformat()
    recordings = sum(len(dataset.runs_of(file)) for file in dataset.files("runs") if date_of(file) < first_kept)
    deleted = 0
    for table in (*reversed(RECORDING_TABLES), DOCTOR):
        old = [file for file in dataset.listing(table) if date_of(file) < first_kept]
        deleted += len(old)
        if not is_trial:
            # A compact file goes before its list, without which it would count what is apart twice.
            dataset.delete(sorted(old, key=lambda file: not file.endswith(".parquet")))
    found = f"{counted(recordings, 'recording', 'recordings')} from before {first_kept} ({counted(deleted, 'file', 'files')})"
    return f"{'Would delete' if is_trial else 'Deleted'} {found}.\n"
