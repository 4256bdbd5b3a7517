#!/usr/bin/env python3
"""Checks a trace with Perfetto's own protobuf classes (PyPI: perfetto, protobuf).

Every process has one track; slices are balanced and nested, phases inside a launch; each flow leads from one
parent to one child. Prints a summary; exit status 1 on a violation, 2 when it cannot read the trace.
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


class Violations(list):
    def expect(self, holds, what):
        if not holds:
            self.append(what)


def tracks_of(trace, violations):
    """Processes by track: each is described once, and every event has a track that is described."""
    tracks = {}
    for descriptor in (packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")):
        violations.expect(descriptor.uuid not in tracks, f"track {descriptor.uuid} is described twice")
        violations.expect(descriptor.HasField("process"), f"track {descriptor.uuid} belongs to no process")
        tracks[descriptor.uuid] = descriptor.process
    for event in (packet.track_event for packet in trace.packet if packet.HasField("track_event")):
        violations.expect(event.track_uuid in tracks, f"track {event.track_uuid} is not described")
    identities = [(process.pid, process.start_timestamp_ns) for process in tracks.values()]
    violations.expect(len(set(identities)) == len(identities), "a process has two tracks")
    return tracks


def check_slices(trace, violations):
    """Counts the launches and phases; each phase lies inside a launch, each begin has its end."""
    by_track = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            by_track[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event))
    counts = {"launch": 0, "phase": 0}
    for uuid, events in by_track.items():
        open_slices = []
        # Perfetto sorts by time and keeps the order of equal times: so does sort().
        for _, event in sorted(events, key=lambda pair: pair[0]):
            if event.type == Event.TYPE_SLICE_BEGIN:
                category = event.categories[0]
                expected_depth = 0 if category == "launch" else 1
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


def check_flows(trace, violations):
    """Each flow begins once, at the parent, and ends once, at another process, not earlier."""
    starts, ends = defaultdict(list), defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            place = (packet.timestamp, packet.track_event.track_uuid)
            for flow in packet.track_event.flow_ids:
                starts[flow].append(place)
            for flow in packet.track_event.terminating_flow_ids:
                ends[flow].append(place)
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
    for counted in ("processes", "launches", "phases", "flows"):
        parser.add_argument(f"--{counted}", type=int, help=f"{counted} that the trace must hold")
    options = parser.parse_args()
    trace = protos.Trace()
    try:
        with open(options.trace, "rb") as file:
            trace.ParseFromString(file.read())
    except (OSError, DecodeError) as error:
        print(f"perfetto_check: {options.trace}: {error}", file=sys.stderr)
        return 2

    violations = Violations()
    tracks = tracks_of(trace, violations)
    slices = check_slices(trace, violations)
    flows = check_flows(trace, violations)
    found = {"processes": len(tracks), "launches": slices["launch"], "phases": slices["phase"], "flows": flows}
    for counted, number in found.items():
        wanted = getattr(options, counted)
        violations.expect(wanted in (None, number), f"{number} {counted}, not {wanted}")
    print(", ".join(f"{number} {counted}" for counted, number in found.items()))
    for violation in violations:
        print(f"perfetto_check: {violation}", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
