#!/usr/bin/env python3
"""Evaluates the results of guests (stored by `guest.py`): prints a table of feature x kernel with the reasons below it, and with --write
puts it into docs/guide/kernels.md. Exits with status 1 if a feature fails that spawnscope does not report as missing."""

import argparse
import json
import sys
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide/kernels.md"


def main():
    options = parse()
    guests = [json.loads((directory / "result.json").read_text()) for directory in options.results]
    rows = features(options.battery)
    cells = {feature: [judge(tests, guest) for guest in guests] for feature, tests in rows.items()}
    text = f"{table(guests, cells)}\n{notes(guests, cells)}"
    print(text)
    if options.write:
        write(f"{facts(guests, options.command)}\n\n{text}", options.arch)
    bad = [number for number in range(len(guests)) if any(cells[feature][number][0] == "fails" for feature in rows)]
    if bad:
        consoles = "\n".join(f"  {options.results[number] / 'console.log'}" for number in bad)
        sys.exit(f"fails on {', '.join(guests[number]['series'] for number in bad)}; consoles of the guests:\n{consoles}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--battery", type=Path, required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--command", required=True, help="the command that made the results, for the guide")
    parser.add_argument("--write", action="store_true", help="put the table into docs/guide/kernels.md")
    parser.add_argument("results", nargs="+", type=Path, help="directories of guests")
    return parser.parse_args()


def features(battery):
    """Returns for each feature its lines of the battery: when the test runs, the test, and the words by which `missing` names the feature."""
    rows = {}
    for line in battery.read_text().splitlines():
        if line and not line.startswith("#"):
            when, test, feature, words = line.split("\t")
            rows.setdefault(feature, []).append((when, test, [word for word in words.split("|") if word]))
    return rows


def judge(tests, guest):
    """Returns whether a guest has a feature, and why not: `yes`, `no` if spawnscope reports it as missing, `unknown` if it could not be
    tested, otherwise `fails`."""
    if guest["refused"]:
        return "fails", guest["refused"]
    wanted = [(test, words) for when, test, words in tests if when == guest["battery"] or guest["battery"] == "full"]
    if not wanted:
        return "unknown", "tested in the full battery only"
    for test, words in wanted:
        result = guest["tests"].get(test)
        if result is None:
            return "fails", f"{test}: not run: {guest['stopped'] or 'the guest ended before'}"
        if result["outcome"] in ("failed", "late"):
            named = [entry for entry in guest["missing"] if any(word in entry["effect"] for word in words)]
            return ("no", describe_missing(named)) if named else ("fails", f"{test}: {failure(result)}")
        if result["outcome"] == "ignored":
            return "unknown", f"{test}: {result['reason']}"
    return "yes", None


def describe_missing(missing):
    return "; ".join(f"not recorded: {entry['what']}; unknown: {entry['effect']}" for entry in missing)


def failure(result):
    """Returns the message of the first panic, which libtest prints after the panic's location."""
    if result["outcome"] == "late":
        return f"not done after {result['seconds']:.0f} s of the guest's time"
    output = result["output"]
    panics = [number for number, line in enumerate(output) if " panicked at " in line]
    message = output[panics[0] + 1] if panics and panics[0] + 1 < len(output) else (output or ["no output"])[-1]
    return message[:300]


def table(guests, cells):
    shown = {"yes": "yes", "no": "no", "unknown": "unknown", "fails": "**fails**"}
    lines = ["| | " + " | ".join(guest["series"] for guest in guests) + " |", "|---|" + "---|" * len(guests)]
    for feature, verdicts in cells.items():
        lines.append(f"| {feature} | " + " | ".join(shown[verdict] for verdict, _ in verdicts) + " |")
    return "\n".join(lines) + "\n"


def notes(guests, cells):
    """Returns the reason for each cell that is not `yes`, and what spawnscope reports as missing, each once per kernel."""
    lines = {}
    for feature, verdicts in cells.items():
        for guest, (verdict, why) in zip(guests, verdicts):
            if why:
                lines.setdefault((guest["series"], verdict, why), []).append(feature)
    text = [f"- {series}: {', '.join(names)}: {verdict}: {why}" for (series, verdict, why), names in sorted(lines.items())]
    for guest in guests:
        if guest["missing"]:
            text.append(f"- {guest['series']}, in spawnscope's own words: {describe_missing(guest['missing'])}")
    return "\n".join(text) + ("\n" if text else "")


def facts(guests, command):
    kernels = ", ".join(guest["package"] for guest in guests)
    return f"`{command}`, {max(guest['date'] for guest in guests)}, Debian's packages of Linux {kernels}."


def write(text, arch):
    begins, ends = f"<!-- table: {arch} -->\n", f"<!-- end of table: {arch} -->\n"
    head, _, rest = GUIDE.read_text().partition(begins)
    _, found, tail = rest.partition(ends)
    if not found:
        sys.exit(f"{GUIDE}: the lines that mark the table of {arch} are missing: {begins.strip()}")
    GUIDE.write_text(f"{head}{begins}{text}{ends}{tail}")


if __name__ == "__main__":
    main()
