"""Answers questions about a dataset of many recordings of Spawnscope. `spawnscope fleet` runs this program.

Data goes one way: dataset -> engine -> answer -> page -> text, JSON or HTML."""

from importlib.metadata import version

VERSION = version("spawnscope-fleet")


class Failure(Exception):
    """An error that the user can act on. Its text says what failed, on what, and what to do."""
