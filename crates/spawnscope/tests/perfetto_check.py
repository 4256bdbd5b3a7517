#!/usr/bin/env python3
"""Checks a trace with Perfetto's own protobuf classes (PyPI: perfetto, protobuf).

There is one root, and every track is below it. Slices are balanced and nested, phases inside a launch; those of the critical
path have no gaps. Each flow leads from one parent to one child. Prints a summary. Exits with 1 on a violation, and with 2 if the
trace cannot be read.
"""

import argparse
import sys
from collections import defaultdict

try:
    from google.protobuf.message import DecodeError
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
except ImportError as error:
    print(f"perfetto_check: {error}; pip install perfetto protobuf", file=sys.stderr)
    sys.exit(2)

Event = protos.TrackEvent
Descriptor = protos.TrackDescriptor
CRITICAL_PATH = "critical path"


class Violations(list):
    def expect(self, is_met, violation):
        if not is_met:
            self.append(violation)


def check_tracks(trace, violations):
    """Returns the number of tracks. Each must be described once, have a name, and be below one root; siblings must have an order."""
    tracks, ranks = {}, set()
    for descriptor in (packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")):
        uuid, parent = descriptor.uuid, descriptor.parent_uuid
        violations.expect(uuid not in tracks, f"track {uuid} is described twice")
        violations.expect(descriptor.name != "", f"track {uuid} has no name")
        # Perfetto ignores the parent of a track that belongs to a process.
        violations.expect(not descriptor.HasField("process"), f"track {uuid} belongs to a process")
        if descriptor.HasField("parent_uuid"):
            violations.expect(parent in tracks, f"track {uuid} is described before its parent")
            ordering = tracks[parent].child_ordering if parent in tracks else None
            violations.expect(ordering == Descriptor.EXPLICIT, f"the children of track {parent} have no order")
            violations.expect((parent, descriptor.sibling_order_rank) not in ranks, f"track {uuid} has no rank of its own")
            ranks.add((parent, descriptor.sibling_order_rank))
        tracks[uuid] = descriptor
    roots = [descriptor for descriptor in tracks.values() if not descriptor.HasField("parent_uuid")]
    violations.expect(len(roots) == 1, f"{len(roots)} roots")
    violations.expect(all(root.description for root in roots), "the root has no description")
    for event in (packet.track_event for packet in trace.packet if packet.HasField("track_event")):
        violations.expect(event.track_uuid in tracks, f"track {event.track_uuid} is not described")
    return len(tracks)


def check_slices(trace, violations):
    """Returns the number of slices of each category. Each phase must be inside a launch, and each slice must have an end."""
    by_track = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            by_track[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event))
    counts = {"launch": 0, "phase": 0, CRITICAL_PATH: 0}
    for uuid, events in by_track.items():
        open_slices = []
        # Perfetto sorts by time and keeps the order of events with equal times, as sorted() does.
        for _, event in sorted(events, key=lambda pair: pair[0]):
            if event.type == Event.TYPE_SLICE_BEGIN:
                category = event.categories[0]
                expected_depth = 1 if category == "phase" else 0
                violations.expect(len(open_slices) == expected_depth, f"track {uuid}: {event.name} at a wrong depth")
                violations.expect(event.name != "", f"track {uuid}: a slice without a name")
                open_slices.append(category)
                counts[category] += 1
            elif event.type == Event.TYPE_SLICE_END:
                violations.expect(open_slices, f"track {uuid}: an end without a beginning")
                if open_slices:
                    open_slices.pop()
        violations.expect(not open_slices, f"track {uuid}: a slice without an end")
    return counts


def check_critical_path(trace, violations):
    """Returns the length of the critical path, whose slices must follow each other without gaps."""
    packets = [packet for packet in trace.packet if packet.HasField("track_event")]
    tracks = {packet.track_event.track_uuid for packet in packets if CRITICAL_PATH in packet.track_event.categories}
    times = [packet.timestamp for packet in packets if packet.track_event.track_uuid in tracks]
    for end, start in zip(times[1::2], times[2::2]):
        violations.expect(end == start, f"the critical path jumps from {end} to {start}")
    return sum(times[1::2]) - sum(times[0::2])


def arguments_of(trace, name):
    """Returns the arguments of the first launch whose name starts with `name`."""
    for event in (packet.track_event for packet in trace.packet if packet.HasField("track_event")):
        if event.type == Event.TYPE_SLICE_BEGIN and "launch" in event.categories and event.name.startswith(name):
            return {each.name: each.string_value or str(each.int_value) for each in event.debug_annotations}
    return {}


def check_flows(trace, violations):
    """Returns the number of flows. Each must start once, at the parent, and end once, at another process and not earlier."""
    starts, ends = defaultdict(list), defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            point = (packet.timestamp, packet.track_event.track_uuid)
            for flow in packet.track_event.flow_ids:
                starts[flow].append(point)
            for flow in packet.track_event.terminating_flow_ids:
                ends[flow].append(point)
    for flow in starts.keys() | ends.keys():
        connected = len(starts[flow]) == 1 and len(ends[flow]) == 1
        violations.expect(connected, f"flow {flow} has {len(starts[flow])} beginnings and {len(ends[flow])} ends")
        if connected:
            (start_ns, parent), (end_ns, child) = starts[flow][0], ends[flow][0]
            violations.expect(parent != child, f"flow {flow} stays on track {parent}")
            violations.expect(start_ns <= end_ns, f"flow {flow} goes back in time")
    return len(starts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace")
    for counted in ("tracks", "launches", "phases", "flows", "critical-ns"):
        parser.add_argument(f"--{counted}", type=int, help=f"{counted} that the trace must contain")
    parser.add_argument("--arguments", nargs="+", default=[], metavar="TEXT",
                        help="the beginning of a launch's name, and NAME=VALUE of its arguments")
    options = parser.parse_args()
    trace = protos.Trace()
    try:
        with open(options.trace, "rb") as file:
            trace.ParseFromString(file.read())
    except (OSError, DecodeError) as error:
        print(f"perfetto_check: {options.trace}: {error}", file=sys.stderr)
        return 2

    violations = Violations()
    tracks = check_tracks(trace, violations)
    slices = check_slices(trace, violations)
    flows = check_flows(trace, violations)
    found = {"tracks": tracks, "launches": slices["launch"], "phases": slices["phase"], "flows": flows}
    found["critical_ns"] = check_critical_path(trace, violations)
    for counted, number in found.items():
        wanted = getattr(options, counted)
        violations.expect(wanted in (None, number), f"{number} {counted}, not {wanted}")
    for name in options.arguments[:1]:
        given = arguments_of(trace, name)
        for argument in options.arguments[1:]:
            key, value = argument.split("=", 1)
            violations.expect(given.get(key) == value, f"{name}: {key} is {given.get(key)}, not {value}")
    print(", ".join(f"{number} {counted}" for counted, number in found.items()))
    for violation in violations:
        print(f"perfetto_check: {violation}", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
