#!/usr/bin/env python3
"""Boots one guest, reads the battery's results from its console (`init` writes them), and stores them as JSON next to the complete console
output. Kills a guest that prints nothing for too long, or that takes too long. The exit status is always 0: table.py judges the results."""

import argparse
import datetime
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

# Limits in seconds of host time, for a silent guest and for a whole run. The longest test takes a few seconds on an idle host, ten times as
# long on a busy one.
MAX_SILENT_SECONDS = 300
MAX_SECONDS = 2400


def main():
    options = parse()
    # The guest must not outlive this script.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    result = {"series": options.series, "package": options.package, "battery": options.battery, "date": datetime.date.today().isoformat()}
    result |= {"tests": {}, "refused": None, "missing": [], "kernel": None, "ended": False, "stopped": None}
    options.into.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (options.into / "console.log").open("wb") as console:
        guest = subprocess.Popen(
            ["nice", *options.command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            output = []
            for line in lines(guest, console, result):
                handle_line(line, output, result, options.series)
        finally:
            guest.kill()
            guest.wait()
    result["seconds"] = round(time.monotonic() - began)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    result["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime)
    say(options.series, f"{result['seconds']} s, of which {result['cpu_seconds']} s on a CPU")
    (options.into / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    if not result["ended"]:
        say(options.series, f"did not finish: {result['stopped'] or 'the guest ended'}; last lines of the console:")
        print((options.into / "console.log").read_text(errors="replace")[-2000:], file=sys.stderr)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", required=True, help="the requested series, such as 6.1")
    parser.add_argument("--package", required=True, help="the version of the kernel's package")
    parser.add_argument("--battery", choices=["short", "full"], required=True)
    parser.add_argument("--into", type=Path, required=True, help="directory for the results")
    parser.add_argument("command", nargs="+", help="the emulator's command line")
    return parser.parse_args()


def lines(guest, console, result):
    """Yields the lines of the console as they arrive, and writes them to `console`."""
    began = last_output = time.monotonic()
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(guest.stdout, selectors.EVENT_READ)
        while True:
            ready = selector.select(timeout=1)
            now = time.monotonic()
            if ready:
                chunk = os.read(guest.stdout.fileno(), 65536)
                if not chunk:
                    return
                console.write(chunk)
                console.flush()
                last_output = now
                *complete_lines, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace").strip("\r") for line in complete_lines)
            if now - last_output > MAX_SILENT_SECONDS:
                result["stopped"] = f"silent for {MAX_SILENT_SECONDS} s"
                return
            if now - began > MAX_SECONDS:
                result["stopped"] = f"not done after {MAX_SECONDS} s"
                return


def handle_line(line, output, result, series):
    if not line.startswith("@"):
        return
    kind, _, rest = line[1:].partition(" ")
    if kind == "kernel":
        result["kernel"] = rest
        say(series, f"booted {rest}")
    elif kind == "report":
        report = json.loads(rest)
        result["missing"] = report["missing"]
        result["version"] = report.get("version")
    elif kind == "refused":
        result["refused"] = rest
        say(series, rest)
    elif kind == "output":
        output.append(rest)
    elif kind == "test":
        name, began, ended, outcome, *reason = rest.split(" ", 4)
        seconds = round(float(ended) - float(began), 2)
        result["tests"][name] = {"outcome": outcome, "reason": " ".join(reason), "seconds": seconds, "output": output.copy()}
        output.clear()
        say(series, f"{outcome:7} {seconds:6.2f} s {name} {' '.join(reason)}")
    elif kind == "end":
        result["ended"] = True


def say(series, text):
    print(f"{series:5} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
