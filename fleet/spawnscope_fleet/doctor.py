"""What the latest `spawnscope doctor` found on each machine."""

from .engine import Answer
from .pages import Item, Page, Section, table
from .questions import question
from .words import counted, time


def latest(engine):
    return Examinations(Examinations.ask(engine, 2**31 - 1))


class Examinations:
    """The rows of the latest examination of each machine."""

    def __init__(self, found):
        self.found, self.hosts = found, {}
        for row in found.rows:
            self.hosts.setdefault(row["host"] or "", []).append(row)

    @staticmethod
    def ask(engine, rows):
        """Asks for the latest examinations. The answer is empty if the dataset has none yet."""
        return engine.ask(question("doctor", rows=rows)) if engine.has_doctor() else Answer()

    def as_json(self, host):
        """Returns the examination of a machine, with its date and findings; None if there is none."""
        rows = self.hosts.get(host or "")
        if not rows:
            return None
        findings = [{name: value for name, value in row.items() if name not in ("host", "date")} for row in rows if row["severity"]]
        return {"date": rows[0]["date"], "findings": findings}

    def summary(self, host):
        """Counts the findings: `found there on 2026-11-13: 2 problems, 1 note`. None if the machine was not examined."""
        rows = self.hosts.get(host or "")
        return rows and f"found there on {rows[0]['date']}: {counts(rows)}"

    def section(self, host):
        """Returns a section with all findings on a machine. None if it was not examined."""
        rows = self.hosts.get(host or "")
        if not rows:
            return None
        items = [item(row) for row in rows if row["severity"] not in (None, "unseen")]
        return Section(f"What `spawnscope doctor` found on {host} on {rows[0]['date']}", items)

    def page(self, dataset, extent):
        sentence = f"No machine was examined: run `spawnscope doctor -o {dataset}` on each machine."
        if self.hosts:
            sentence = f"{counted(len(self.hosts), 'machine was', 'machines were')} examined: {counts(self.found.rows)}."
        columns = (("machine", "examined", "severity", "check", "finding"), ("effect",))
        return Page("What `spawnscope doctor` found on each machine", [sentence, extent], [table(*columns, map(cells, self.found.rows))])


def cells(row):
    bound = "> " if row["is_lower_bound"] else ""
    effect = f"{bound}{time(row['effect_ns'])}"
    return [row["host"] or "-", row["date"] or "-", row["severity"] or "nothing found", row["check_name"] or "-", row["title"] or "-", effect]


def counts(rows):
    """Counts rows by severity: `2 problems, 1 note, 3 items that could not be checked`."""
    numbers = {severity: sum(row["severity"] == severity for row in rows) for severity in ("problem", "note", "unseen")}
    parts = [counted(numbers["problem"], "problem", "problems") if numbers["problem"] else "no problems"]
    if numbers["note"]:
        parts.append(counted(numbers["note"], "note", "notes"))
    if numbers["unseen"]:
        parts.append(f"{counted(numbers['unseen'], 'item', 'items')} that could not be checked")
    return ", ".join(parts)


def item(row):
    lines = []
    if row["effect_ns"] is not None:
        more_than = "more than " if row["is_lower_bound"] else ""
        lines.append(f"effect: {more_than}{time(row['effect_ns'])} for {row['effect_of'] or 'each launch'} ({row['effect_basis'] or 'basis unknown'})")
    if row["evidence"]:
        lines.append(row["evidence"])
    lines += [line if line.startswith("  ") else f"-> {line}" for line in (row["fix"] or "").splitlines()]
    if row["fix_cost"]:
        lines.append(f"cost of the fix: {row['fix_cost']}")
    return Item(("note: " if row["severity"] == "note" else "") + (row["title"] or "-"), lines)
