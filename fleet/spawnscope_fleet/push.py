"""Copies the files of a dataset that another one lacks. A file name is never used again for other contents, so several machines may
push to the same store at once, and pushing may be repeated."""

import os
import shutil
import tempfile

from . import Failure
from .dataset import TABLES
from .words import count, counted


def push(source, target):
    """Copies the missing files, and returns the message to print. `runs` is the last table, so that a recording becomes part of the
    dataset only after all of its other tables."""
    copied = present = 0
    for table in TABLES:
        known = {target.relative(file) for file in target.files(table)}
        for file in source.files(table):
            name = source.relative(file)
            if name in known:
                present += 1
                continue
            try:
                copy(source, file, target, f"{target.root}/{name}")
            except Exception as error:  # of any of two file systems
                raise Failure(f"failed to copy {file} to {target.name}: {error}") from error
            copied += 1
    if not copied:
        return f"nothing to copy: {target.name} already has the {counted(present, 'file', 'files')}\n"
    were = "was" if present == 1 else "were"
    return f"copied {counted(copied, 'file', 'files')} to {target.name}; {count(present)} more {were} already there\n"


def copy(source, file, target, name):
    """The target shows the copy only when it is complete: a store by itself, a directory by a rename."""
    contents = source.filesystem.cat_file(file) if source.filesystem else open_and_read(file)
    if target.filesystem:
        target.filesystem.pipe_file(name, contents)
        return
    os.makedirs(os.path.dirname(name), exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".spawnscope-", suffix=".tmp", dir=os.path.dirname(name))
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(contents)
        if not source.filesystem:
            shutil.copymode(file, temporary)
        os.rename(temporary, name)
    except BaseException:
        os.unlink(temporary)
        raise


def open_and_read(file):
    with open(file, "rb") as opened:
        return opened.read()
