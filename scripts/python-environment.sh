#!/usr/bin/env bash
# Creates target/venv with Perfetto's own protobuf classes, which check the trace export.
# Optional, unless SPAWNSCOPE_TEST_REQUIRE names the need.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/venv
if "$environment/bin/python" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2>/dev/null; then
    exit 0
fi
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check perfetto protobuf
