"""Finds the files of a dataset: `TABLE/date=YYYY-MM-DD/job=JOB/RUN.parquet`, as `spawnscope export --format parquet` writes them,
in a directory or in an S3-compatible store. Choosing dates and jobs chooses directories, so files of other days are not opened.

`compact` merges the files of a directory into `compact-N.parquet`, and lists their recordings in `runs/.../.compacted-N` before. So at any
moment, also after an interruption, this is known: of a directory, the last compact file counts, and each file whose recording it lacks."""

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from . import Failure

DOCTOR = "doctor"
# In the order in which they are written. `runs` is last, because its row makes a recording part of the dataset.
TABLES = ("launches", "execs", "callers", "waits", "advice", DOCTOR, "runs")
RECORDING_TABLES = tuple(table for table in TABLES if table != DOCTOR)
PARTITION = re.compile(r"/date=(\d{4}-\d\d-\d\d)/job=([^/]+)/[^/]*$")
NO_JOB = "__HIVE_DEFAULT_PARTITION__"
COMPACTED = re.compile(r"compact-(\d+)\.parquet$")
COMPACTED_LIST = re.compile(r"\.compacted-(\d+)$")
# Times that a table is listed if files are deleted meanwhile.
MAX_LISTED = 5
HOW_TO_ADD = "add a recording with `spawnscope export --format parquet -o DATASET RECORDING`"


class Dataset:
    """A dataset. `name` is its location as the user typed it; `root` is what file names begin with."""

    def __init__(self, location):
        self.name = location
        if "://" in location:
            self.filesystem = open_store(location)
            self.root = location.rstrip("/")
        else:
            self.filesystem = None
            self.root = os.path.abspath(location)

    @classmethod
    def open(cls, location):
        """Opens a dataset that must exist."""
        dataset = cls(location)
        if dataset.filesystem:
            return dataset
        if not os.path.exists(dataset.root):
            raise Failure(f"failed to open dataset {location}: no such directory")
        if not os.path.isdir(dataset.root):
            raise Failure(f"{location} is not a directory: a dataset is a directory made by `spawnscope export --format parquet -o DATASET RECORDING`")
        for table in RECORDING_TABLES:
            if not os.path.isdir(os.path.join(dataset.root, table)):
                raise Failure(f"{location} is not a dataset: it has no directory `{table}`; {HOW_TO_ADD}")
        return dataset

    @classmethod
    def open_or_create(cls, location):
        """Opens a dataset that files are copied to. Creates an empty one if there is none."""
        dataset = cls(location)
        if not dataset.filesystem and not os.path.exists(dataset.root):
            for table in RECORDING_TABLES:
                os.makedirs(os.path.join(dataset.root, table))
        return cls.open(location)

    def files(self, table):
        """Returns the files of a table that count, by name and so by date. Incomplete files do not end in `.parquet`."""
        for _ in range(MAX_LISTED):
            # `compact` deletes a list when the next one is there.
            with suppress(FileNotFoundError):
                return self.counting(self.listing(table))
        return self.counting(self.listing(table))

    def counting(self, listed):
        files = [file for file in listed if file.endswith(".parquet") and not os.path.basename(file).startswith(".")]
        last = {}
        for file in filter(COMPACTED.search, files):
            last[os.path.dirname(file)] = max(file, last.get(os.path.dirname(file), ""))
        lists = {folder: self.compacted_runs(file) for folder, file in last.items()}
        return [file for file in files if file == last.get(os.path.dirname(file)) or self.is_apart(file, lists)]

    @staticmethod
    def is_apart(file, lists):
        """Whether a file is not merged. `lists` has the merged recordings by directory."""
        return not COMPACTED.search(file) and run_of(file) not in lists.get(os.path.dirname(file), ())

    def compacted_runs(self, file):
        """Returns the recordings in a compact file."""
        return set(self.read(self.list_name(file)).decode().split())

    def list_name(self, file):
        """Returns the name of the list of the recordings in a compact file, which is beside the compact file of `runs`."""
        return f"{self.root}/runs/{self.folder(file)}/.compacted-{COMPACTED.search(file)[1]}"

    def folder(self, file):
        """Returns the folder of a file below its table: `date=DATE/job=JOB`."""
        return os.path.dirname(self.relative(file)).split("/", 1)[1]

    def runs_of(self, file):
        """Returns the recordings in a file."""
        return self.compacted_runs(file) if COMPACTED.search(file) else {run_of(file)}

    def runs(self):
        """Returns the recordings of the dataset."""
        return set().union(*map(self.runs_of, self.files("runs")))

    def listing(self, table):
        """Returns all files of a table, by name. A file that is elsewhere below the table is not of the dataset."""
        directory = f"{self.root}/{table}"
        if self.filesystem:
            try:
                found = ["s3://" + file for file in self.filesystem.find(directory)]
            except Exception as error:  # of the client's HTTP, of AWS, or of the operating system
                raise Failure(f"failed to list {directory}: {error}") from None
        else:
            folders = os.walk(directory, onerror=cannot_list, followlinks=True)
            found = [os.path.join(folder, name) for folder, _, names in folders for name in names]
        return sorted(file for file in found if PARTITION.fullmatch(file[len(directory) :]))

    def read(self, file):
        if self.filesystem:
            return self.filesystem.cat_file(file)
        with open(file, "rb") as opened:
            return opened.read()

    def write(self, file, contents, like=None):
        """Writes a file, which is seen only when it is complete: a store sees to that by itself, a directory by a rename. The file has the mode
        and the owner of another one."""
        if self.filesystem:
            self.filesystem.pipe_file(file, contents)
            return
        os.makedirs(os.path.dirname(file), exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".spawnscope-", suffix=".tmp", dir=os.path.dirname(file))
        try:
            with os.fdopen(descriptor, "wb") as out:
                out.write(contents)
            if like and os.path.exists(like):
                shutil.copymode(like, temporary)
                with suppress(PermissionError):
                    os.chown(temporary, os.stat(like).st_uid, os.stat(like).st_gid)
            os.rename(temporary, file)
        except BaseException:
            os.unlink(temporary)
            raise

    def delete(self, files):
        """Deletes files, and the folders of a job and of a day that are empty then."""
        if self.filesystem:
            if files:
                self.filesystem.rm(files)
            return
        for file in files:
            # Another process may do the same at the same time, and an export may add a file to a folder.
            with suppress(FileNotFoundError):
                os.remove(file)
            with suppress(OSError):
                folder = os.path.dirname(file)
                while os.path.dirname(folder) != self.root:
                    os.rmdir(folder)
                    folder = os.path.dirname(folder)

    def relative(self, file):
        return file[len(self.root) + 1 :]


def cannot_list(error):
    if not isinstance(error, FileNotFoundError):
        raise Failure(f"failed to list {error.filename}: {error.strerror}")


def open_store(location):
    """Returns the file system of a location in a store. Keys, region and address come from the environment, as for other programs:
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP."""
    if not location.startswith("s3://"):
        raise Failure(f"{location}: a dataset is a directory, or s3://BUCKET/PREFIX in S3-compatible storage")
    if not re.match(r"s3://[^/]+", location):
        raise Failure(f"{location} has no bucket: a dataset in a store is s3://BUCKET/PREFIX")
    try:
        from s3fs import S3FileSystem
    except ImportError:
        raise Failure(f"{location}: stores need one more package: `pip install 'spawnscope-fleet[s3]'`") from None
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint.startswith("http://") and os.environ.get("AWS_ALLOW_HTTP") != "true":
        raise Failure(f"AWS_ENDPOINT_URL is {endpoint}, without TLS: set AWS_ALLOW_HTTP=true if that is intended")
    region = {"region_name": os.environ["AWS_REGION"]} if os.environ.get("AWS_REGION") else {}
    limits = {"retries": {"max_attempts": 4}, "connect_timeout": 10, "read_timeout": 20}
    return S3FileSystem(client_kwargs=region, config_kwargs=limits, use_listings_cache=False)


def date_of(file):
    return PARTITION.search(file)[1]


def job_of(file):
    """Returns the job of a file's directory; None if the recording has none."""
    job = PARTITION.search(file)[2]
    return None if job == NO_JOB else unquote(job)


def run_of(file):
    """Returns the hash that names a recording's file in every table."""
    return Path(file).stem
