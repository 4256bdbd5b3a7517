#!/usr/bin/env bash
# Makes target/venv with Perfetto's own protobuf classes, against which the trace export is checked.
# The check is optional: whoever needs it says so through SPAWNSCOPE_TEST_REQUIRE.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/venv
if "$environment/bin/python" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2>/dev/null; then
    exit 0
fi
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check perfetto protobuf
