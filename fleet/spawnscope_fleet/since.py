"""The time at which the later runs of a comparison begin: a date, a time, a commit that runs have, or any revision of a repository."""

import re
import subprocess
from datetime import datetime

from . import Failure

FORMS = "a date like 2026-11-10, a time like 2026-11-10T14:30 (UTC), a commit (7 digits), or a tag of the repository (--repository DIR)"
# Fewer digits may be the name of a tag, such as 2026. Git knows better.
COMMIT = re.compile("[0-9a-f]{7,64}")


class Since:
    """The time as SQL, and as the words after `since`."""

    def __init__(self, given, engine, repository="."):
        if is_time(given):
            self.sql, self.words = f"TIMESTAMP '{given.replace('T', ' ').rstrip('Z')}'", given
            return
        known = [row["commit"] for row in engine.ask("SELECT DISTINCT commit FROM runs WHERE commit IS NOT NULL").rows]
        chosen = [given] if given in known else [commit for commit in known if COMMIT.fullmatch(given) and commit.startswith(given)]
        self.words = f"commit {given[:12]}" if COMMIT.fullmatch(given) else given
        if len(chosen) > 1:
            raise Failure(f"--since {given}: several commits begin like this, such as {chosen[0]} and {chosen[1]}: give more digits")
        if not chosen:
            later = descendants(given, repository)
            chosen = [commit for commit in known if commit in later]
        if not chosen:
            raise Failure(f"--since {given}: no run has this commit or a later one")
        commits = ", ".join("'" + commit.replace("'", "''") + "'" for commit in chosen)
        self.sql = f"(SELECT MIN(started) FROM runs WHERE commit IN ({commits}))"


def is_time(text):
    """Whether a text is a date or a time of this calendar. A text of that form with a month 13 is an error of its own."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{6})?)?Z?)?", text):
        return False
    try:
        datetime.fromisoformat(text.rstrip("Z"))
    except ValueError as error:
        raise Failure(f"{text} is not a date: {error}") from None
    return True


def descendants(revision, repository):
    """Returns the commit of a revision, and all that contain it. CI builds not every commit, so the first run with a change may have a later one."""
    commit = git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    if not commit:
        raise Failure(f"--since {revision}: no run has such a commit, and the repository {repository} has no such revision; give {FORMS}")
    return {commit, *git(repository, "rev-list", "--all", "--ancestry-path", f"^{commit}").split()}


def git(repository, *words):
    """Returns what git prints; nothing if it fails, which it does where there is no repository."""
    try:
        return subprocess.run(["git", "-C", repository, *words], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""
