"""Finds the files of a dataset: `TABLE/date=YYYY-MM-DD/job=JOB/RUN.parquet`, as `spawnscope export --format parquet` writes them,
in a directory or in an S3-compatible store. Choosing dates and jobs chooses directories, so files of other days are not opened."""

import os
import re
from pathlib import Path
from urllib.parse import unquote

from . import Failure

DOCTOR = "doctor"
# In the order in which they are written. `runs` is last, because its row makes a recording part of the dataset.
TABLES = ("launches", "execs", "callers", "waits", "advice", DOCTOR, "runs")
RECORDING_TABLES = tuple(table for table in TABLES if table != DOCTOR)
NO_JOB = "__HIVE_DEFAULT_PARTITION__"
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
        """Returns the complete files of a table, by name and so by date. Incomplete files do not end in `.parquet`."""
        directory = f"{self.root}/{table}"
        if self.filesystem:
            try:
                found = ["s3://" + file for file in self.filesystem.find(directory)]
            except Exception as error:  # of the client's HTTP, of AWS, or of the operating system
                raise Failure(f"failed to list {directory}: {error}") from None
        else:
            found = []
            for folder, _, names in os.walk(directory, onerror=cannot_list, followlinks=True):
                found += [os.path.join(folder, name) for name in names if not name.startswith(".")]
        return sorted(file for file in found if file.endswith(".parquet"))

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
    return partition(file, "date")


def job_of(file):
    """Returns the job of a file's directory; None if the recording has none."""
    job = partition(file, "job")
    return None if job in (None, NO_JOB) else unquote(job)


def run_of(file):
    """Returns the hash that names a recording's file in every table."""
    return Path(file).stem


def partition(file, name):
    found = re.search(rf"/{name}=([^/]*)/", file)
    return found and found[1]
