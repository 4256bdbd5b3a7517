"""Commits and runs in answers: a commit is shortened, and both become links if the user gives the address of a CI service or repository."""

from argparse import ArgumentTypeError
from urllib.parse import quote

from .pages import Link

COMMIT_LENGTH = 12
# The columns of answers that hold them.
COMMIT_COLUMNS, RUN_COLUMNS = ("commit", "first_commit"), ("ci_run", "first_run")


class Links:
    def __init__(self, options):
        self.templates = {"commit": options.link_commit, "run": options.link_run}

    def commit(self, commit):
        return self.link("commit", commit, commit and commit[:COMMIT_LENGTH])

    def run(self, number):
        return self.link("run", number, number)

    def link(self, name, value, shown):
        template = self.templates[name]
        if not value:
            return "-"
        return Link(shown, template.replace(f"{{{name}}}", quote(value, safe=""))) if template else shown

    def cell(self, column, value):
        """Returns the cell of a value in a column of any query."""
        if column in COMMIT_COLUMNS:
            return self.commit(value)
        return self.run(value) if column in RUN_COLUMNS else str(value)


def template(name):
    """Returns the parser of an option that holds an address with a placeholder."""

    def parse(text):
        if text.startswith(("https://", "http://")) and f"{{{name}}}" in text:
            return text
        raise ArgumentTypeError(f"{text}: give an address with {{{name}}} in it, such as https://ci.example.com/{name}s/{{{name}}}")

    return parse
