"""Tests datasets in an object store: questions have the same answers as on a dataset in a directory. The store is moto's, on the
loopback device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BASE = str(HERE / "base")
REMOTE = "s3://builds/all/fleet"


class Store:
    """The server ends when its standard input is closed."""

    def __init__(self):
        pipe = subprocess.PIPE
        command = [sys.executable, HERE / "store.py"]
        self.server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        port = self.server.stdout.readline().strip()
        assert port, "the store did not start"
        self.environment = {
            "PATH": os.environ["PATH"],
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        }

    def close(self):
        self.server.communicate()

    def start(self, *words):
        command = [sys.executable, "-m", "spawnscope_fleet", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)

    def printed(self, *words):
        process = self.start(*words)
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return printed

    def failure(self, *words):
        process = self.start(*words)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 125 and "Traceback" not in errors, errors
        return errors


@pytest.fixture
def store():
    opened = Store()
    yield opened
    opened.close()


def test_answers_from_a_store_and_a_directory_are_equal_and_files_are_pushed_once(store):
    pushed = store.printed("push", BASE, REMOTE)
    assert pushed.startswith("copied ") and pushed.endswith("; 0 more were already there\n")
    assert "already" in store.printed("push", BASE, REMOTE)
    query = "SELECT job, date, COUNT(*) AS launches FROM launches GROUP BY 1, 2 ORDER BY 1, 2"
    for question in [["top"], ["top", "--by", "command"], ["machines"], ["advice"], ["trend"], ["sql", query]]:
        verb, *rest = question
        local, remote = (json.loads(store.printed(verb, "--json", dataset, *rest)) for dataset in (BASE, REMOTE))
        assert local == remote and local is not None, question


def test_concurrent_pushes_make_one_dataset(store, tmp_path):
    for process in [store.start("push", BASE, REMOTE) for _ in range(3)]:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    # Push back into a directory that does not exist yet.
    copy = str(tmp_path / "copy")
    store.printed("push", REMOTE, copy)
    original, pushed, copied = (store.printed("sql", "--json", dataset, "SELECT COUNT(*) FROM execs") for dataset in (BASE, REMOTE, copy))
    assert original == pushed == copied
    assert all(folder.name.startswith("date=") for folder in (tmp_path / "copy/runs").iterdir())


def test_errors_of_a_store_name_the_dataset(store):
    assert "s3://missing/fleet" in store.failure("top", "s3://missing/fleet")
    assert "no recording yet" in store.failure("top", "s3://builds/nothing")
    assert "s3://BUCKET/PREFIX" in store.failure("top", "ftp://builds/nothing")
    assert "has no bucket" in store.failure("top", "s3:///nothing")
    del store.environment["AWS_ALLOW_HTTP"]
    assert "AWS_ALLOW_HTTP=true" in store.failure("top", REMOTE)
    store.environment["AWS_ALLOW_HTTP"] = "true"
    store.close()
    assert REMOTE in store.failure("push", BASE, REMOTE)
