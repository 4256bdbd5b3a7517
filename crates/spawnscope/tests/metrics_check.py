#!/usr/bin/env python3
"""Reads metrics with Prometheus' own parser (PyPI: prometheus_client) and prints them as JSON.

Checks what the parser accepts but a server does not: a series occurs once, every family has a help text and a type, and the
buckets of a histogram ascend to its count. Exits with 1 on a violation, and with 2 if the parser is not installed.
"""

import json
import sys
from collections import defaultdict

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError as error:
    print(f"metrics_check: {error}; pip install prometheus_client", file=sys.stderr)
    sys.exit(2)


def violations(families):
    seen, buckets, counts = set(), defaultdict(list), {}
    for family in families:
        if not family.documentation or family.type == "unknown":
            yield f"{family.name} has no help text or no type"
        for sample in family.samples:
            series = (sample.name, tuple(sorted(sample.labels.items())))
            if series in seen:
                yield f"{series} occurs twice"
            seen.add(series)
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            key = (family.name, tuple(sorted(labels.items())))
            if sample.name.endswith("_bucket"):
                buckets[key].append((float(sample.labels["le"]), sample.value))
            elif family.type == "histogram" and sample.name.endswith("_count"):
                counts[key] = sample.value
    for key, ends in buckets.items():
        if ends != sorted(ends) or [count for _, count in ends] != sorted(count for _, count in ends):
            yield f"the buckets of {key} do not ascend"
        if ends[-1] != (float("inf"), counts.get(key)):
            yield f"the last bucket of {key} is not its count"


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        families = list(text_string_to_metric_families(file.read()))
    wrong = list(violations(families))
    for violation in wrong:
        print(f"metrics_check: {violation}", file=sys.stderr)
    samples = [sample for family in families for sample in family.samples]
    json.dump([{"name": s.name, "labels": s.labels, "value": s.value} for s in samples], sys.stdout)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
